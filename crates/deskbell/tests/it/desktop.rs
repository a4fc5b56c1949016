//! Notifications on a real desktop: dunst, on a screen without a monitor.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

// The bus of the channels' own tests.
#[expect(dead_code, reason = "the channels' own tests use all of it")]
#[path = "../../../channels/tests/it/session_bus.rs"]
mod session_bus;

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use self::session_bus::SessionBus;
use crate::{
    channels::real,
    support::{Desk, until},
};

/// A desktop session, ended when it is dropped.
struct Session {
    bus: SessionBus,
    folder: TempDir,
    screen: Child,
    dunst: Child,
}

impl Session {
    fn start() -> Self {
        let bus = SessionBus::start();
        let folder = tempfile::tempdir().unwrap();
        let mut screen = Command::new(real::installed("Xvfb"))
            .args(["-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut display = String::new();
        BufReader::new(screen.stdout.take().unwrap()).read_line(&mut display).unwrap();
        let configuration = folder.path().join("dunstrc");
        fs::write(&configuration, "[global]\nmarkup = full\n").unwrap();
        let dunst = Command::new(real::installed("dunst"))
            .arg("-print")
            .arg("-conf")
            .arg(configuration)
            .env("DBUS_SESSION_BUS_ADDRESS", bus.address())
            .env("DISPLAY", format!(":{}", display.trim()))
            .env_remove("WAYLAND_DISPLAY")
            .stdin(Stdio::null())
            .stdout(File::create(folder.path().join("shown")).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let session = Self { bus, folder, screen, dunst };
        until("dunst to take notifications", || session.displayed());
        session
    }

    /// What dunst says it was told, one field a line.
    fn shown(&self) -> String {
        fs::read_to_string(self.folder.path().join("shown")).unwrap()
    }

    /// How many notifications are on the screen.
    fn displayed(&self) -> Option<u32> {
        let (properties, of_dunst) =
            ("org.freedesktop.DBus.Properties.Get", "org.dunstproject.cmd0");
        let told =
            self.call(properties, &[&format!("string:{of_dunst}"), "string:displayedLength"]);
        told?.split_whitespace().last()?.parse().ok()
    }

    /// Clicks on the topmost notification.
    fn click(&self) {
        self.call("org.dunstproject.cmd0.NotificationAction", &["uint32:0"]).unwrap();
    }

    fn call(&self, method: &str, arguments: &[&str]) -> Option<String> {
        let output = Command::new(real::installed("dbus-send"))
            .arg(format!("--bus={}", self.bus.address()))
            .args(["--print-reply=literal", "--dest=org.freedesktop.Notifications"])
            .args(["/org/freedesktop/Notifications", method])
            .args(arguments)
            .output()
            .unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    /// A folder with an `xdg-open` that writes down what it is to open, and the file that it writes.
    fn opener(&self) -> (PathBuf, PathBuf) {
        let (program, opened) =
            (self.folder.path().join("xdg-open"), self.folder.path().join("opened"));
        let script = format!("#!/bin/sh\nprintf %s \"$1\" > '{}'\n", opened.display());
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        (self.folder.path().to_owned(), opened)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for program in [&mut self.dunst, &mut self.screen] {
            // It may have ended by itself.
            let _ended = (program.kill(), program.wait());
        }
    }
}

const CONFIG: &str = "[channels.screen]\nkind = 'desktop'\n";

#[track_caller]
fn done(desk: &Desk, arguments: &[&str]) {
    let (code, stdout, stderr) = desk.run(arguments);
    assert_eq!(code, 0, "{arguments:?}: {stdout}{stderr}");
}

#[test]
fn a_run_is_one_notification_also_after_a_restart_and_a_click_opens_its_address_row_18() {
    let session = Session::start();
    let (folder, opened) = session.opener();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let environment = [("DBUS_SESSION_BUS_ADDRESS", session.bus.address()), ("PATH", path)];
    let environment = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
    let mut desk = Desk::with_config(CONFIG);
    desk.serve_with_env(&environment);
    done(&desk, &["event", "nightly-7", "start", "a <b> & c", "--progress", "0.4"]);
    let shown = until("the first step", || {
        let shown = session.shown();
        shown.contains("progress: 40").then_some(shown)
    });
    assert!(shown.contains("summary: '[START] nightly-7'"), "{shown}");
    assert!(shown.contains("body: 'a &lt;b&gt; &amp; c"), "{shown}");
    let before = session.displayed();

    desk.kill();
    desk.serve_with_env(&environment);
    let data = r#"{"url":"https://ci.example.com/7"}"#;
    done(&desk, &["event", "nightly-7", "end", "all is there", "--data", data]);
    until("the last step", || session.shown().contains("summary: '[END] nightly-7'").then_some(()));
    assert_eq!(session.displayed(), before);

    session.click();
    until("the address to be opened", || {
        (fs::read_to_string(&opened).ok()? == "https://ci.example.com/7").then_some(())
    });
}

#[test]
fn a_daemon_without_a_desktop_says_what_is_missing() {
    let nowhere = tempfile::tempdir().unwrap();
    let mut desk = Desk::with_config(CONFIG);
    desk.serve_with_env(&[("XDG_RUNTIME_DIR", &nowhere.path().display().to_string())]);
    let missing = format!(
        "there is no desktop session: DBUS_SESSION_BUS_ADDRESS is not set and `{}` is missing",
        nowhere.path().join("bus").display()
    );
    let (code, stdout, _) = desk.run(&["doctor"]);
    assert_eq!(code, 0, "{stdout}");
    assert!(stdout.contains(&format!("channel screen: {missing}")), "{stdout}");
    assert!(stdout.contains("set the channel's `bus`"), "{stdout}");
    let (code, stdout, _) = desk.run(&["channel", "test", "screen"]);
    assert_eq!(code, 1, "{stdout}");
    assert!(stdout.contains(&missing), "{stdout}");
}
