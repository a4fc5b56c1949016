//! Deskbell's own files, which nobody attaches: the state folder with its token, and the configuration.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use deskbell_core::{
    Invalid,
    attachment::{Attachment, Place},
};

use crate::paths::Paths;

/// The name of a configuration folder that holds nothing but Deskbell's configuration.
const OWN_FOLDER: &str = "deskbell";

/// How deep the folders are looked through for a file that has other names.
const DEPTH_LIMIT: usize = 8;

/// How many of the files in them are looked at. Where there are more, no file that has several names is attached.
const COUNT_LIMIT: usize = 10_000;

/// The files and folders that are not attached to anything.
#[derive(Debug, Clone, Default)]
pub struct OwnFiles(Arc<[PathBuf]>);

impl OwnFiles {
    /// Those that `paths` name, and `others`.
    ///
    /// Of a configuration in a folder that is not Deskbell's alone, only the file itself is.
    pub fn of(paths: &Paths, others: impl IntoIterator<Item = PathBuf>) -> Self {
        let configuration = [&paths.config_user, &paths.config_machine].map(|file| {
            let folder = file.parent().filter(|folder| folder.ends_with(OWN_FOLDER));
            folder.unwrap_or(file).to_owned()
        });
        let named = std::iter::once(paths.state.clone()).chain(configuration).chain(others);
        Self(named.flat_map(|path| [real(&path), path]).collect())
    }

    /// Refuses `attachments` that name one of them.
    ///
    /// # Errors
    /// Names the first one.
    pub async fn refuse(&self, attachments: &[Attachment]) -> Result<(), Invalid> {
        if !attachments.iter().any(|attachment| matches!(attachment.place, Place::Path(_))) {
            return Ok(());
        }
        let (own, attachments) = (self.clone(), attachments.to_owned());
        // A disk may take its time to say where a path leads.
        let look = tokio::task::spawn_blocking(move || own.check(&attachments));
        look.await.unwrap_or_else(|_panic| {
            Err(Invalid::value("attachments", "not to be looked up", "paths that lead somewhere"))
        })
    }

    fn check(&self, attachments: &[Attachment]) -> Result<(), Invalid> {
        let is_own = |attachment: &Attachment| match &attachment.place {
            Place::Path(path) => self.hold(Path::new(path)),
            Place::Url(_) => false,
        };
        let Some(index) = attachments.iter().position(is_own) else { return Ok(()) };
        let given = "a file of Deskbell's own, with its tokens or what was told";
        Err(Invalid::value(&format!("attachments[{index}].path"), given, "another file"))
    }

    fn hold(&self, path: &Path) -> bool {
        let path = real(path);
        self.0.iter().any(|own| path.starts_with(own)) || self.hold_under_another_name(&path)
    }
}

#[cfg(unix)]
impl OwnFiles {
    /// Whether the file at `path` is one of them by another name of its own, a hard link.
    fn hold_under_another_name(&self, path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let Ok(given) = path.metadata() else { return false };
        if !given.is_file() || given.nlink() < 2 {
            return false;
        }
        let is_given = |path: &Path| {
            path.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (given.dev(), given.ino()))
        };
        let mut seen = 0;
        let mut left: Vec<_> = self.0.iter().map(|own| (0, own.clone())).collect();
        while let Some((depth, path)) = left.pop() {
            seen += 1;
            if seen > COUNT_LIMIT || depth > DEPTH_LIMIT || is_given(&path) {
                return true;
            }
            // A link inside a folder is not followed: it may lead back.
            let is_link = depth > 0 && path.is_symlink();
            let entries = std::fs::read_dir(&path).ok().filter(|_| !is_link);
            // One more than is looked at, so that there are seen to be too many.
            let entries = entries.into_iter().flatten().flatten().take(COUNT_LIMIT + 1);
            left.extend(entries.map(|entry| (depth + 1, entry.path())));
        }
        false
    }
}

#[cfg(not(unix))]
impl OwnFiles {
    /// The names of a file cannot be counted here.
    #[expect(clippy::unused_self, reason = "it is asked on unix")]
    fn hold_under_another_name(&self, _path: &Path) -> bool {
        false
    }
}

/// Where `path` leads: what is there of it without links, and the rest as it is written.
fn real(path: &Path) -> PathBuf {
    let mut missing = Vec::new();
    for there in path.ancestors() {
        if let Ok(real) = there.canonicalize() {
            return missing.iter().rev().fold(real, |real, name| real.join(name));
        }
        missing.extend(there.file_name().map(ToOwned::to_owned));
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_files_are_refused_however_they_are_named_row_116() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let state = home.join("state/deskbell");
        std::fs::create_dir_all(&state).unwrap();
        std::fs::create_dir_all(home.join(".config/deskbell")).unwrap();
        std::fs::write(state.join("token"), "x").unwrap();
        std::os::unix::fs::symlink(&state, home.join("link")).unwrap();
        let paths = Paths {
            state: home.join("link"),
            config_user: home.join(".config/deskbell/config.toml"),
            config_machine: home.join("machine.toml"),
        };
        let own = OwnFiles::of(&paths, [home.join("config.sh")]);
        #[track_caller]
        fn check(own: &OwnFiles, path: &Path, is_refused: bool) {
            let path = Place::Path(path.to_str().unwrap().to_owned());
            let url = Place::Url("https://h/token".to_owned());
            let attachments = [url, path].map(|place| Attachment::new(place, None, None));
            let field = own.check(&attachments).err().map(|refusal| refusal.field);
            assert_eq!(field.as_deref(), is_refused.then_some("attachments[1].path"));
        }
        for name in [
            "state/deskbell/token",
            "state/deskbell/not-there-yet",
            "link/token",
            "state/x/../deskbell/token",
            ".config/deskbell/secrets/telegram",
            "machine.toml",
            "config.sh",
        ] {
            std::fs::create_dir_all(home.join("state/x")).unwrap();
            check(&own, &home.join(name), true);
        }
        std::fs::create_dir_all(home.join(".config/deskbell/secrets")).unwrap();
        std::fs::write(home.join(".config/deskbell/secrets/telegram"), "x").unwrap();
        std::fs::write(home.join("machine.toml"), "").unwrap();
        std::fs::write(home.join("notes.txt"), "").unwrap();
        for (own_file, name) in [
            ("state/deskbell/token", "token-by-another-name"),
            (".config/deskbell/secrets/telegram", "secret-by-another-name"),
            ("machine.toml", "configuration-by-another-name"),
        ] {
            std::fs::hard_link(home.join(own_file), home.join(name)).unwrap();
            check(&own, &home.join(name), true);
        }
        std::fs::hard_link(home.join("notes.txt"), home.join("notes-by-another-name")).unwrap();
        check(&own, &home.join("notes-by-another-name"), false);
        for name in ["machine.toml.bak", "state/other", "notes.txt", ".config/other/token"] {
            check(&own, &home.join(name), false);
        }
    }
}
