use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use deskbell_core::text::one_line;

use crate::{below, envelope::Envelope, prelude::*};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Appended>(About {
    name: "file",
    title: "File",
    docs: "https://jsonlines.org",
    transport: Transport::Local,
    dialect: Dialect::Markdown,
    limits: Limits::NONE,
    edits: false,
    example: r#"path = "/var/log/deskbell/messages.jsonl""#,
})
.with_links();

/// Appends each message to a file, as one line, and waits until it is on the disk.
///
/// 1. Set `path`. The folder is made when it is missing; only you can read the file.
/// 2. Choose `format`: `json` for programs, `text` for people.
///
/// A full file is renamed to `path.1`, the one before to `path.2`, and so on.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Appended {
    /// The file.
    path: PathBuf,
    /// How lines are written: `json` or `text`.
    #[serde(default)]
    format: LineFormat,
    /// How large the file grows before a new one is begun, in bytes.
    #[serde(default = "ten_megabytes")]
    max_bytes: u64,
    /// How many full files are kept.
    #[serde(default = "three")]
    keep: usize,
    /// One message is written at a time.
    #[serde(skip)]
    turn: Arc<Mutex<()>>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum LineFormat {
    #[default]
    Json,
    Text,
}

const fn ten_megabytes() -> u64 {
    10 * 1024 * 1024
}

const fn three() -> usize {
    3
}

#[async_trait]
impl Channel for Appended {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let line = match self.format {
            LineFormat::Json => Envelope::of(message, cx).line(),
            LineFormat::Text => text_line(message),
        };
        if let Some(preview) = &cx.preview {
            preview.note(json!({ "transport": "file", "path": self.path, "body": line }));
            return Ok(Receipt::default());
        }
        let (path, max_bytes, keep) = (self.path.clone(), self.max_bytes, self.keep);
        let turn = Arc::clone(&self.turn);
        let appended = tokio::task::spawn_blocking(move || {
            let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            append(&path, &line, max_bytes, keep)
        });
        match appended.await {
            Ok(Ok(())) => Ok(Receipt::default()),
            Ok(Err(error)) => Err(failure(&error)),
            Err(_) => Err(SendError::temporary("writing was broken off")),
        }
    }
}

fn text_line(message: &Message) -> String {
    let body = Dialect::Plain.body(&below::whole(message));
    let text = match &message.title {
        Some(title) => format!("{title}: {body}"),
        None => body,
    };
    format!("{:.0} {} {} {}", message.at, message.level, message.context, one_line(&text))
}

/// What the disk says about itself passes with time; what it says about the path does not.
fn failure(error: &io::Error) -> SendError {
    let message = format!("cannot write to the file: {error}");
    match error.kind() {
        io::ErrorKind::PermissionDenied
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::InvalidInput => SendError::permanent(message),
        _ => SendError::temporary(message),
    }
}

/// Appends `line` to the file at `path` so that it is there whole and on the disk, or not at all.
fn append(path: &Path, line: &str, max_bytes: u64, keep: usize) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let added = line.len() as u64 + 1;
    if fs::metadata(path)
        .is_ok_and(|file| file.is_file() && file.len() > 0 && file.len() + added > max_bytes)
    {
        rotate(path, keep)?;
    }
    let mut file = open(path)?;
    let before = file.seek(SeekFrom::End(0))?;
    let written = write_line(&mut file, line, before);
    if written.is_err() {
        // Half a line would spoil the next one.
        file.set_len(before)?;
    }
    written
}

fn write_line(file: &mut File, line: &str, length: u64) -> io::Result<()> {
    // A line that another program, or a power cut, left open is ended first.
    let mut last = [b'\n'];
    if length > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    let start = if last == [b'\n'] { "" } else { "\n" };
    file.write_all(format!("{start}{line}\n").as_bytes())?;
    file.sync_data()
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes room for a new file: `path` becomes `path.1`, and so on; the oldest goes.
fn rotate(path: &Path, keep: usize) -> io::Result<()> {
    let numbered = |number: usize| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    if keep == 0 {
        return fs::remove_file(path);
    }
    for number in (1..keep).rev() {
        let older = numbered(number);
        if older.exists() {
            fs::rename(older, numbered(number + 1))?;
        }
    }
    fs::rename(path, numbered(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_files_are_kept_under_numbers_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/folder/log");
        for number in 0..9 {
            append(&path, &format!("line {number}"), 14, 2).unwrap();
        }
        let read = |name: &str| fs::read_to_string(path.with_file_name(name)).unwrap_or_default();
        assert_eq!(read("log"), "line 8\n");
        assert_eq!(read("log.1"), "line 6\nline 7\n");
        assert_eq!(read("log.2"), "line 4\nline 5\n");
        assert_eq!(read("log.3"), "");
    }

    #[test]
    fn a_line_left_open_is_ended_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, "half").unwrap();
        append(&path, "whole", 1_000, 1).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "half\nwhole\n");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_user_reads_the_file_row_116() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        append(&path, "line", 1_000, 1).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_folder_in_the_way_is_a_permanent_failure() {
        let folder = tempfile::tempdir().unwrap();
        let error = append(folder.path(), "line", 1_000, 1).unwrap_err();
        assert_eq!(failure(&error).failure, deskbell_core::delivery::Failure::Permanent);
    }
}
