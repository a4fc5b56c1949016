//! What a project chooses for what is reported from its folder, in its own `.deskbell.toml`.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use tokio::time::Instant;
use tracing::warn;

use crate::config::load::{self, Project, Sources};

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
    /// When the list of trusted files was changed before that.
    trust_changed_at: Option<SystemTime>,
    project: Option<Arc<Project>>,
}

impl Projects {
    /// Projects on top of the user's own `sources`.
    pub fn new(sources: Sources) -> Self {
        Self { sources, known: Mutex::default() }
    }

    /// The project that `folder` belongs to, if there is one.
    ///
    /// A file that is wrong counts for nothing and is told in the log.
    pub async fn of(&self, folder: &Path) -> Option<Arc<Project>> {
        // What is trusted meanwhile counts at once.
        let trust_changed_at = self.trust_changed_at();
        let known = self.fresh(folder);
        if let Some(known) = known.filter(|known| known.trust_changed_at == trust_changed_at) {
            return known.project;
        }
        let sources = Sources { folder: Some(folder.to_owned()), ..self.sources.clone() };
        let project = tokio::task::spawn_blocking(move || read(&sources)).await.unwrap_or_default();
        let known = Known { read_at: Instant::now(), trust_changed_at, project: project.clone() };
        let mut folders = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if folders.len() >= FOLDERS {
            folders.clear();
        }
        folders.insert(folder.to_owned(), known);
        project
    }

    fn trust_changed_at(&self) -> Option<SystemTime> {
        fs::metadata(self.sources.paths.trusted()).ok()?.modified().ok()
    }

    fn fresh(&self, folder: &Path) -> Option<Known> {
        let folders = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        folders.get(folder).filter(|known| known.read_at.elapsed() < FRESH).cloned()
    }
}

fn read(sources: &Sources) -> Option<Arc<Project>> {
    match load::project(sources) {
        Ok(project) => project.map(Arc::new),
        Err(error) => {
            warn!("a project's file is left out: {error}");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::{load::PROJECT_FILE, trust},
        paths::Paths,
    };

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
        let chosen = projects.of(&project.join("src")).await.unwrap();
        assert_eq!(chosen.routes.as_ref().map(Vec::len), Some(1));
        assert!(!chosen.is_trusted);
        assert_eq!(projects.of(home.path()).await, None);
        trust::trust(&projects.sources.paths, &project.join(PROJECT_FILE)).unwrap();
        assert!(projects.of(&project.join("src")).await.unwrap().is_trusted, "at once");
    }

    #[tokio::test]
    async fn a_broken_project_file_counts_for_nothing() {
        let home = tempfile::tempdir().unwrap();
        let projects = projects(home.path(), "");
        fs::write(home.path().join(PROJECT_FILE), "[[routes]\n").unwrap();
        assert_eq!(projects.of(home.path()).await, None);
    }
}
