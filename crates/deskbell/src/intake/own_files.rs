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
        self.0.iter().any(|own| path.starts_with(own))
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
        for name in ["machine.toml.bak", "state/other", "notes.txt", ".config/other/token"] {
            check(&own, &home.join(name), false);
        }
    }
}
