//! How much room the disk of a folder has. A probe that writes a page does not notice that the next thousand will not
//! fit.

use std::{fmt, io, path::Path};

const MIB: u64 = 1024 * 1024;

/// With less room than this, in bytes, the program does not call itself ready: SQLite's log alone may need it.
const FLOOR: u64 = 16 * MIB;

/// With less room than this, in bytes, somebody should look.
const LOW: u64 = 256 * MIB;

/// The room on the disk of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// What this user may still write, in bytes.
    pub free_bytes: u64,
    /// How large the disk is, in bytes.
    pub total_bytes: u64,
}

/// Whether the room is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Enough,
    /// It soon is not.
    Low,
    /// It is not.
    Full,
}

impl Room {
    /// The room where `folder` is.
    ///
    /// # Errors
    /// Fails when there is no such folder.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let disk = rustix::fs::statvfs(folder)?;
        Ok(Self {
            free_bytes: disk.f_bavail.saturating_mul(disk.f_frsize),
            total_bytes: disk.f_blocks.saturating_mul(disk.f_frsize),
        })
    }

    /// Whether it is enough.
    pub const fn verdict(self) -> Verdict {
        match self.free_bytes {
            ..FLOOR => Verdict::Full,
            FLOOR..LOW => Verdict::Low,
            LOW.. => Verdict::Enough,
        }
    }

    /// What is needed at least, for whoever has less.
    pub fn needed(self) -> String {
        let needed = if self.free_bytes < FLOOR { FLOOR } else { LOW };
        format!("at least {} MiB are needed", needed / MIB)
    }
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |bytes: u64| {
            let tenths = u128::from(bytes) * 10 / u128::from(MIB);
            format!("{}.{} MiB", tenths / 10, tenths % 10)
        };
        write!(f, "{} free of {}", size(self.free_bytes), size(self.total_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(free_bytes: u64, expected: Verdict) {
        assert_eq!(Room { free_bytes, total_bytes: 1024 * MIB }.verdict(), expected);
    }

    #[test]
    fn a_disk_is_full_before_nothing_fits_any_more() {
        check(0, Verdict::Full);
        check(FLOOR - 1, Verdict::Full);
        check(FLOOR, Verdict::Low);
        check(LOW - 1, Verdict::Low);
        check(LOW, Verdict::Enough);
    }

    #[test]
    fn figures_are_named() {
        let room = Room { free_bytes: 3 * MIB + MIB / 2, total_bytes: 64 * MIB };
        assert_eq!(room.to_string(), "3.5 MiB free of 64.0 MiB");
        assert_eq!(room.needed(), "at least 16 MiB are needed");
    }

    #[test]
    fn the_disk_of_a_folder_has_a_size() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Room::of(folder.path()).unwrap().total_bytes > 0);
        assert!(Room::of(&folder.path().join("none")).is_err());
    }
}
