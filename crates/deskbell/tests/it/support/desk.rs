//! The built program in an empty folder: its state, its configuration, its daemon.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say where"
)]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use super::{McpClient, until};

/// The program with a folder of its own. What it started ends with it.
pub(crate) struct Desk {
    folder: TempDir,
    daemon: Option<Child>,
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

impl Desk {
    /// A desk without any configuration.
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), daemon: None }
    }

    /// A desk whose user has this configuration.
    pub(crate) fn with_config(config: &str) -> Self {
        let desk = Self::new();
        desk.configure(config);
        desk
    }

    /// Writes the user's configuration.
    pub(crate) fn configure(&self, config: &str) {
        fs::write(self.config_file(), config).unwrap();
    }

    pub(crate) fn config_file(&self) -> PathBuf {
        self.folder.path().join("config.toml")
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// The program with `arguments`, in the desk's folder and with nothing of the surrounding environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(Path::new(env!("CARGO_BIN_EXE_deskbell")), arguments)
    }

    /// The same with another file as the program.
    pub(crate) fn command_of(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("DESKBELL_STATE_DIR", self.state())
            .env("DESKBELL_CONFIG", self.config_file());
        command
    }

    /// Runs a command to its end: exit code, stdout, stderr.
    pub(crate) fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = self.command(arguments).stdin(Stdio::null()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
    }

    /// Starts the daemon in the foreground on a port of its own, and waits until it listens.
    pub(crate) fn serve(&mut self) -> &mut Self {
        self.serve_with(&[])
    }

    /// Starts the daemon with further arguments.
    pub(crate) fn serve_with(&mut self, arguments: &[&str]) -> &mut Self {
        self.start(arguments, &[]).unwrap_or_else(|said| panic!("the daemon did not start: {said}"))
    }

    /// Starts the daemon with further variables.
    pub(crate) fn serve_with_env(&mut self, environment: &[(&str, &str)]) -> &mut Self {
        self.start(&[], environment)
            .unwrap_or_else(|said| panic!("the daemon did not start: {said}"))
    }

    /// The same for a daemon that may end before it listens; false if it did.
    pub(crate) fn serve_to_the_end(&mut self, environment: &[(&str, &str)]) -> bool {
        self.start(&[], environment).is_ok()
    }

    /// Gives what the daemon said if it ended before it listened.
    fn start(
        &mut self,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<&mut Self, String> {
        let mut all = vec!["serve", "--listen", "127.0.0.1:0"];
        all.extend(arguments);
        let mut daemon = self
            .command(&all)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(daemon.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        loop {
            match lines.next() {
                Some(Ok(line)) if line.contains("deskbell listens on") => break,
                Some(Ok(line)) => said.push(line),
                _ => {
                    daemon.wait().unwrap();
                    return Err(said.join("\n"));
                }
            }
        }
        // What it says later is read, so that it never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        self.daemon = Some(daemon);
        Ok(self)
    }

    /// Ends the daemon as a user or a supervisor would, and waits for its end.
    pub(crate) fn terminate(&mut self) {
        signal(self.pid(), rustix::process::Signal::TERM);
        self.collect();
    }

    /// Kills the daemon without a word.
    pub(crate) fn kill(&mut self) {
        if let Some(pid) = self.try_pid() {
            signal(pid, rustix::process::Signal::KILL);
        }
        self.collect();
    }

    fn collect(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.wait().unwrap();
        } else {
            until("the daemon's end", || {
                self.try_pid().is_none_or(|pid| !is_running(pid)).then_some(())
            });
        }
    }

    /// The daemon's process id.
    pub(crate) fn pid(&self) -> u32 {
        until("the daemon's process id", || self.try_pid())
    }

    fn try_pid(&self) -> Option<u32> {
        fs::read_to_string(self.state().join("daemon.pid")).ok()?.trim().parse().ok()
    }

    /// Where the daemon serves HTTP, such as `http://127.0.0.1:40123`.
    pub(crate) fn url(&self) -> String {
        let info: Value = until("daemon.json", || {
            serde_json::from_slice(&fs::read(self.state().join("daemon.json")).ok()?).ok()
        });
        format!("http://{}", info["address"].as_str().unwrap())
    }

    /// The token of the state folder.
    pub(crate) fn token(&self) -> String {
        until("the token", || {
            Some(fs::read_to_string(self.state().join("token")).ok()?.trim().to_owned())
        })
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], None)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.request("POST", path, &[("content-type", "application/json")], Some(&body.to_string()))
    }

    /// Sends a request with the desk's token; a header given here takes the place of ours.
    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Answer {
        let agent = ureq::Agent::new_with_config(
            ureq::Agent::config_builder().http_status_as_error(false).build(),
        );
        let mut request =
            http::Request::builder().method(method).uri(format!("{}{path}", self.url()));
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
            request = request.header("authorization", format!("Bearer {}", self.token()));
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            request = request.header(*name, *value);
        }
        let mut answer = match body {
            Some(body) => agent.run(request.body(body.to_owned()).unwrap()).unwrap(),
            None => agent.run(request.body(()).unwrap()).unwrap(),
        };
        let body = answer.body_mut().read_to_string().unwrap();
        Answer { status: answer.status().as_u16(), headers: answer.headers().clone(), body }
    }

    /// Launches `deskbell mcp` as an MCP client does.
    pub(crate) fn mcp(&self, arguments: &[&str]) -> McpClient {
        self.mcp_with_env(arguments, &[])
    }

    /// Launches `deskbell mcp` with further variables.
    pub(crate) fn mcp_with_env(
        &self,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> McpClient {
        let mut all = vec!["mcp"];
        all.extend(arguments);
        let mut command = self.command(&all);
        command.envs(environment.iter().copied());
        McpClient::launch(command)
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        if let Some(pid) = self.try_pid() {
            signal(pid, rustix::process::Signal::KILL);
        }
        if let Some(mut daemon) = self.daemon.take() {
            drop(daemon.kill());
            drop(daemon.wait());
        }
    }
}

/// Sends a signal; a process that is gone already is fine.
pub(crate) fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).unwrap();
    let _gone = rustix::process::kill_process(pid, signal);
}

/// Whether a process with this id runs (a zombie does not).
pub(crate) fn is_running(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}
