//! The routes that a project chooses for what is reported from its folder, in its own `.deskbell.toml`.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use deskbell_core::route::Route;
use tokio::time::Instant;
use tracing::warn;

use crate::config::load::{self, FileState, PROJECT_FILE, Sources};

/// How long what was read of a folder holds, before its file is looked at again.
const FRESH: Duration = Duration::from_secs(2);

/// How many folders are remembered; at the limit all are looked at anew.
const FOLDERS: usize = 256;

/// The projects that reports came from.
pub struct Projects {
    sources: Sources,
    known: Mutex<HashMap<PathBuf, Known>>,
}

/// What is known of a folder.
#[derive(Clone)]
struct Known {
    read_at: Instant,
    routes: Option<Arc<[Route]>>,
}

impl Projects {
    /// Projects on top of the user's own `sources`.
    pub fn new(sources: Sources) -> Self {
        Self { sources, known: Mutex::default() }
    }

    /// The routes for what is reported from `folder`; `None` where no project file says anything of its own.
    ///
    /// A file that is wrong counts for nothing and is told in the log.
    pub async fn routes(&self, folder: &Path) -> Option<Arc<[Route]>> {
        if let Some(known) = self.fresh(folder) {
            return known.routes;
        }
        let sources = Sources { folder: Some(folder.to_owned()), ..self.sources.clone() };
        let routes = tokio::task::spawn_blocking(move || read(&sources)).await.unwrap_or_default();
        let known = Known { read_at: Instant::now(), routes: routes.clone() };
        let mut folders = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if folders.len() >= FOLDERS {
            folders.clear();
        }
        folders.insert(folder.to_owned(), known);
        routes
    }

    fn fresh(&self, folder: &Path) -> Option<Known> {
        let folders = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        folders.get(folder).filter(|known| known.read_at.elapsed() < FRESH).cloned()
    }
}

fn read(sources: &Sources) -> Option<Arc<[Route]>> {
    let folder = sources.folder.as_deref()?;
    // Most folders belong to no project; the rest of the configuration need not be read for them.
    folder.ancestors().find(|folder| folder.join(PROJECT_FILE).is_file())?;
    let loaded = match load::load(sources) {
        Ok(loaded) => loaded,
        Err(error) => {
            warn!("the project file for {} is left out: {error}", folder.display());
            return None;
        }
    };
    let counts = |state| matches!(state, FileState::Read | FileState::Limited);
    let is_project = |path: &Path| path.file_name().is_some_and(|name| name == PROJECT_FILE);
    let is_used = loaded.files.iter().any(|file| is_project(&file.path) && counts(file.state));
    is_used.then(|| loaded.config.routes.into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::paths::Paths;

    fn projects(home: &Path, config: &str) -> Projects {
        fs::write(home.join("config.toml"), config).unwrap();
        let paths = Paths {
            state: home.join("state"),
            config_user: home.join("config.toml"),
            config_machine: home.join("none.toml"),
        };
        paths.create_state().unwrap();
        Projects::new(Sources {
            variables: [].into(),
            config_sh: None,
            ..Sources::of_the_daemon(&paths)
        })
    }

    #[tokio::test]
    async fn a_project_chooses_the_routes_of_its_folder_and_of_no_other() {
        let home = tempfile::tempdir().unwrap();
        let project = home.path().join("project");
        fs::create_dir_all(project.join("src")).unwrap();
        let projects = projects(home.path(), "[channels.log]\nkind = \"console\"\n");
        fs::write(
            project.join(PROJECT_FILE),
            "[[routes]]\nlevel = \"info..\"\nchannels = [\"log\"]\n",
        )
        .unwrap();
        let routes = projects.routes(&project.join("src")).await.unwrap();
        assert_eq!(routes.len(), 1);
        assert_eq!(projects.routes(home.path()).await, None);
    }

    #[tokio::test]
    async fn a_broken_project_file_counts_for_nothing() {
        let home = tempfile::tempdir().unwrap();
        let projects = projects(home.path(), "");
        fs::write(home.path().join(PROJECT_FILE), "[[routes]\n").unwrap();
        assert_eq!(projects.routes(home.path()).await, None);
    }
}
