//! The folder in which the demonstration happens, and the daemon that lives in it.

use std::{
    env, fs, io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tokio::{process::Command, time::Instant};
use uuid::Uuid;

use crate::{cli::Client, paths::Paths};

/// How long the daemon may take to end.
const ENDING: Duration = Duration::from_secs(15);

/// A folder of its own, which is removed with all that is in it.
pub(super) struct Stage {
    folder: PathBuf,
    paths: Paths,
}

impl Stage {
    /// A folder whose only channel leads to `far_end`.
    pub(super) fn build(far_end: &str) -> io::Result<Self> {
        let folder = env::temp_dir().join(format!("deskbell-demo-{}", Uuid::new_v4()));
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let stage = Self {
            paths: Paths {
                state: folder.join("state"),
                config_user: folder.join("config.toml"),
                config_machine: folder.join("none.toml"),
            },
            folder,
        };
        fs::write(&stage.paths.config_user, configuration(far_end))?;
        Ok(stage)
    }

    /// This program, with the folder's own journal and configuration and nothing of the user's.
    pub(super) fn command(&self) -> io::Result<Command> {
        let mut command = Command::new(env::current_exe()?);
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("DESKBELL_") {
                command.env_remove(name);
            }
        }
        command
            .env("DESKBELL_STATE_DIR", &self.paths.state)
            .env("DESKBELL_CONFIG", &self.paths.config_user)
            .current_dir(&self.folder);
        Ok(command)
    }

    /// A client of the folder's daemon.
    pub(super) fn client(&self) -> Client {
        Client::of_running(self.paths.clone())
    }

    /// Ends the daemon and removes the folder.
    pub(super) async fn clear(self) -> io::Result<()> {
        if let Some(pid) = daemon(&self.paths.pid()) {
            // A daemon that has ended meanwhile is what is wanted.
            let _gone = kill_process(pid, Signal::TERM);
            let deadline = Instant::now() + ENDING;
            while test_kill_process(pid).is_ok() && Instant::now() < deadline {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        Ok(())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            tracing::warn!("failed to remove {}: {error}", self.folder.display());
        }
    }
}

fn daemon(file: &Path) -> Option<Pid> {
    Pid::from_raw(fs::read_to_string(file).ok()?.trim().parse().ok()?)
}

/// One route takes everything, so that a machine-wide configuration has no part in it.
fn configuration(far_end: &str) -> String {
    format!(
        "[channels.phone]\nkind = \"webhook_json\"\nurl = \"{far_end}\"\n\n\
         [[routes]]\nkind = [\"push\", \"run\"]\nchannels = [\"phone\"]\n"
    )
}
