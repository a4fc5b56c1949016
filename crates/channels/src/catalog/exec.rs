use std::{collections::BTreeMap, io, path::PathBuf, process::Stdio, time::Duration};

use deskbell_core::text;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, Command},
};

use crate::{envelope::Envelope, prelude::*, secret};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Exec>(About {
    name: "exec",
    title: "the program",
    docs: "https://man7.org/linux/man-pages/man3/sysexits.h.3head.html",
    transport: Transport::Local,
    dialect: Dialect::Markdown,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        command = ["/usr/local/bin/tell", "--room", "ops"]
        env = { TELL_TOKEN = "tell-token-4711" }
    "#,
})
.with_links();

/// Runs a program of yours for each message.
///
/// 1. Write a program that reads the message as JSON from its standard input, or title, text and level from the
///    variables `TITLE`, `BODY`, `SEVERITY` and `LINK`.
/// 2. Set `command` to the program and its arguments. There is no shell between: to have one, call it.
/// 3. Let it end with 0 when the message arrived, with 75 (`EX_TEMPFAIL`) when it is to be tried again, and with any
///    other code when that would not help.
///
/// A program that takes longer than an attempt may is killed, with those that it started, and is run again later. What
/// it said last is in the error. Only your own configuration can name programs, no tool call and no project that is not
/// trusted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Exec {
    /// The program and its arguments.
    command: Vec<String>,
    /// Variables that the program gets beside those of the daemon.
    #[serde(default)]
    env: BTreeMap<String, Secret>,
    /// Folder to run it in; without it the one that the daemon runs in.
    directory: Option<PathBuf>,
}

/// The exit code of a failure that may pass (`sysexits.h`).
const EX_TEMPFAIL: i32 = 75;

/// What the system says of a file that is no program.
const ENOEXEC: i32 = 8;

/// The longest text that is given as a variable, in bytes. Linux takes 128 KiB for one.
const VARIABLE: usize = 64 * 1024;

/// How much of each output is looked at, in bytes. The rest is read and dropped, so that nobody waits for it.
const OUTPUT: usize = 16 * 1024;

/// How long what a program said is waited for after it has ended. Something that it started may keep its output open.
const LAST_WORDS: Duration = Duration::from_millis(200);

#[async_trait]
impl Channel for Exec {
    fn check(&self) -> Result<(), ConfigError> {
        match self.command.first() {
            Some(program) if !program.is_empty() => Ok(()),
            _ => Err(ConfigError("`command` names no program".to_owned())),
        }
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let body = text::cut(&message.body, VARIABLE, Unit::Bytes);
        let variables = [
            ("TITLE", message.title.as_deref().unwrap_or_default()),
            ("BODY", &body),
            ("SEVERITY", message.level.as_str()),
            ("LINK", message.link.as_deref().unwrap_or_default()),
        ];
        let own = self.env.iter().map(|(name, value)| (name.as_str(), value.expose()));
        let variables: BTreeMap<&str, &str> = variables.into_iter().chain(own).collect();
        let input = Envelope::of(message, cx).line();
        if let Some(preview) = &cx.preview {
            preview.note(json!({
                "transport": "exec",
                "command": self.command,
                "directory": self.directory,
                "env": variables,
                "body": input,
            }));
            return Ok(Receipt::default());
        }
        self.run(&variables, &input, cx).await?;
        Ok(Receipt::default())
    }
}

impl Exec {
    async fn run(
        &self,
        variables: &BTreeMap<&str, &str>,
        input: &str,
        cx: &SendContext,
    ) -> Result<(), SendError> {
        let mut child = self.started(variables).map_err(|error| not_started(&error))?;
        let group = Group::of(&child);
        let (mut errors, mut output) = (Vec::new(), Vec::new());
        let ended = {
            let (stdin, stdout, stderr) =
                (child.stdin.take(), child.stdout.take(), child.stderr.take());
            let mut talk = Box::pin(async {
                let write = async {
                    if let Some(mut stdin) = stdin {
                        // A program may well not read what it is told.
                        let _unread = stdin.write_all(format!("{input}\n").as_bytes()).await;
                    }
                };
                tokio::join!(write, keep(stderr, &mut errors), keep(stdout, &mut output));
            });
            tokio::select! {
                ended = child.wait() => {
                    tokio::time::timeout(LAST_WORDS, &mut talk).await.unwrap_or_default();
                    ended
                }
                () = &mut talk => child.wait().await,
            }
        };
        group.ended();
        let ended =
            ended.map_err(|error| SendError::temporary(format!("lost the program: {error}")))?;
        if ended.success() {
            return Ok(());
        }
        let said = [errors, output].iter().find_map(|said| last_line(said, cx)).unwrap_or_default();
        match ended.code() {
            Some(EX_TEMPFAIL) => {
                Err(SendError::temporary(format!("the program asks to try again later{said}")))
            }
            Some(code) => Err(SendError::permanent(format!("the program ended with {code}{said}"))),
            None => Err(SendError::temporary(format!("the program was killed ({ended}){said}"))),
        }
    }

    fn started(&self, variables: &BTreeMap<&str, &str>) -> io::Result<Child> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command.spawn()
    }
}

fn not_started(error: &io::Error) -> SendError {
    let message = format!("cannot run the program: {error}");
    match error.kind() {
        io::ErrorKind::NotFound
        | io::ErrorKind::PermissionDenied
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::ArgumentListTooLong => SendError::permanent(message),
        _ if error.raw_os_error() == Some(ENOEXEC) => SendError::permanent(message),
        _ => SendError::temporary(message),
    }
}

/// Reads `output` to its end and keeps the beginning.
async fn keep(output: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut output) = output else { return };
    let mut chunk = vec![0; 4096];
    while let Ok(read @ 1..) = output.read(&mut chunk).await {
        let room = OUTPUT - kept.len();
        kept.extend(chunk.iter().take(read.min(room)));
    }
}

/// The last line that is not empty in what a program said, fit for an error.
fn last_line(said: &[u8], cx: &SendContext) -> Option<String> {
    // Secrets go first: one may be on several lines.
    let said = secret::mask(&String::from_utf8_lossy(said), &cx.secrets);
    let line = said.lines().rfind(|line| !line.trim().is_empty())?;
    Some(format!(": {}", cx.excerpt(line)))
}

/// A program and all that it started, killed unless it has ended by itself.
struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

#[cfg(unix)]
impl Group {
    fn of(child: &Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok());
        Self { leader: leader.and_then(rustix::process::Pid::from_raw) }
    }

    fn ended(mut self) {
        self.leader = None;
    }
}

#[cfg(unix)]
impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.leader {
            // It may have ended meanwhile.
            let _ended = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}

/// Where there are no groups, the program alone is killed when its `Child` is dropped.
#[cfg(not(unix))]
impl Group {
    const fn of(_child: &Child) -> Self {
        Self {}
    }

    const fn ended(self) {}
}
