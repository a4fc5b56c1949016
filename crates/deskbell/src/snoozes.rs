//! Which channels the user told to be silent for a while, kept in a file so that a restart does not wake them.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use deskbell_core::{ChannelName, quiet::Snoozed};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, watch};
use tracing::warn;

use crate::{
    config::{load, trust},
    journal::{Ack, Journal, JournalError, Write},
};

/// The largest file that is read, in bytes.
const FILE_LIMIT: u64 = 1024 * 1024;

/// What is snoozed, as it is stored. A reader that does not know a field ignores it.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    all: Option<Timestamp>,
    #[serde(default)]
    channels: BTreeMap<String, Timestamp>,
}

/// Why a snooze did not come about.
#[derive(Debug, thiserror::Error)]
pub enum SnoozeError {
    /// The file cannot be written.
    #[error("what is snoozed cannot be kept in {}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// What was held back cannot be put off or told now.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// The snoozes, and those who follow them.
pub struct Snoozes {
    path: PathBuf,
    newest: watch::Sender<Arc<Snoozed>>,
    turn: Mutex<()>,
}

impl Snoozes {
    /// The snoozes that are kept at `path`. A file that cannot be read silences nothing.
    pub fn open(path: PathBuf) -> Self {
        let snoozed = read(&path).unwrap_or_else(|error| {
            warn!("nothing is snoozed, because {} cannot be read: {error}", path.display());
            Snoozed::default()
        });
        Self { path, newest: watch::Sender::new(Arc::new(snoozed)), turn: Mutex::default() }
    }

    /// What is snoozed, now and later.
    pub fn follow(&self) -> watch::Receiver<Arc<Snoozed>> {
        self.newest.subscribe()
    }

    /// What is snoozed at `now`.
    pub fn at(&self, now: Timestamp) -> Snoozed {
        let mut snoozed = Snoozed::clone(&self.newest.borrow());
        snoozed.forget_past(now);
        snoozed
    }

    /// Silences `channel`, or all of them, until `until`, or no longer. What an earlier snooze holds back is held
    /// until then as well, or told now; returns how much that is.
    ///
    /// # Errors
    /// Fails when the file cannot be written or the journal refuses. Where only the journal refuses, the snooze holds.
    pub async fn set(
        &self,
        journal: &dyn Journal,
        channel: Option<ChannelName>,
        until: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<u64, SnoozeError> {
        let _turn = self.turn.lock().await;
        let mut snoozed = self.at(now);
        let before = match &channel {
            None => std::mem::replace(&mut snoozed.all, until),
            Some(name) => match until {
                Some(until) => snoozed.channels.insert(name.clone(), until),
                None => snoozed.channels.remove(name),
            },
        };
        let (path, text) = (self.path.clone(), text(&snoozed));
        let written = tokio::task::spawn_blocking(move || trust::write_whole(&path, &text?)).await;
        let written = written.unwrap_or_else(|ended| Err(io::Error::other(ended)));
        written.map_err(|source| SnoozeError::File { path: self.path.clone(), source })?;
        self.newest.send_replace(Arc::new(snoozed));
        let Some(from) = before else { return Ok(0) };
        // The times are told apart to the nanosecond, so that of one snooze is in no other delivery.
        let write = Write::Reschedule { channel, from, to: until.unwrap_or(now) };
        match journal.commit(vec![write]).await?.first() {
            Some(Ack::Done(count)) => Ok(*count),
            _ => Ok(0),
        }
    }
}

fn read(path: &Path) -> io::Result<Snoozed> {
    let text = match load::read_file(path, FILE_LIMIT) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Snoozed::default()),
        other => other?,
    };
    let Stored { all, channels } = serde_json::from_str(&text).map_err(io::Error::other)?;
    let channels =
        channels.into_iter().filter_map(|(name, until)| Some((name.parse().ok()?, until)));
    Ok(Snoozed { all, channels: channels.collect() })
}

fn text(snoozed: &Snoozed) -> io::Result<String> {
    let channels = snoozed.channels.iter().map(|(name, until)| (name.to_string(), *until));
    let stored = Stored { all: snoozed.all, channels: channels.collect() };
    serde_json::to_string_pretty(&stored).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::memory::MemoryJournal;

    #[tokio::test]
    async fn what_is_snoozed_survives_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("snoozed.json");
        let (journal, now) = (MemoryJournal::default(), Timestamp::from_second(100).unwrap());
        let until = Timestamp::from_nanosecond(200_000_000_001).unwrap();
        let phone: ChannelName = "phone".parse().unwrap();
        let first = Snoozes::open(path.clone());
        first.set(&journal, Some(phone.clone()), Some(until), now).await.unwrap();
        let second = Snoozes::open(path.clone());
        assert_eq!(second.at(now).until(&phone, now), Some(until));
        assert!(second.at(until) == Snoozed::default());
        second.set(&journal, Some(phone), None, now).await.unwrap();
        assert!(Snoozes::open(path.clone()).at(now).is_over(now));
        std::fs::write(&path, "damaged").unwrap();
        assert!(Snoozes::open(path).at(now).is_over(now));
    }

    #[tokio::test]
    async fn a_snooze_that_cannot_be_kept_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let snoozes = Snoozes::open(folder.path().join("gone").join("snoozed.json"));
        let (journal, now) = (MemoryJournal::default(), Timestamp::UNIX_EPOCH);
        assert!(snoozes.set(&journal, None, Some(Timestamp::MAX), now).await.is_err());
        assert!(snoozes.at(now).is_over(now));
    }
}
