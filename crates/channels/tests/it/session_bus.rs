//! A bus as each desktop session has one.

use std::{
    fs,
    os::unix::net::UnixStream,
    path::Path,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use super::real::{installed, until};

/// As the usual one, except that it starts none of the programs that are installed.
const CONFIGURATION: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path=SOCKET</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"#;

/// A bus of its own, ended when it is dropped.
pub(crate) struct SessionBus {
    child: Child,
    folder: TempDir,
}

impl SessionBus {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let child = started(&folder.path().join("bus"));
        Self { child, folder }
    }

    /// Ends it and starts another in its place, as when somebody logs out and in again.
    pub(crate) fn restart(&mut self) {
        self.end();
        self.child = started(&self.folder.path().join("bus"));
    }

    /// As clients of it are told.
    pub(crate) fn address(&self) -> String {
        format!("unix:path={}", self.folder.path().join("bus").display())
    }

    fn end(&mut self) {
        // It may have ended by itself.
        let _ended = (self.child.kill(), self.child.wait());
    }
}

fn started(socket: &Path) -> Child {
    let _gone = fs::remove_file(socket);
    let configuration = socket.with_extension("conf");
    fs::write(&configuration, CONFIGURATION.replace("SOCKET", &socket.display().to_string()))
        .unwrap();
    let child = Command::new(installed("dbus-daemon"))
        .args(["--nofork", "--nopidfile"])
        .arg(format!("--config-file={}", configuration.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the bus to listen", || UnixStream::connect(socket).ok());
    child
}

impl Drop for SessionBus {
    fn drop(&mut self) {
        self.end();
    }
}
