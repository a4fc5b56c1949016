//! The files that go out with a message: opened and read when it is sent, as the user that the program runs as.
//!
//! A file is read by the path that was reported, which is one without links on the way; a link in its place is not
//! followed, and what is no regular file is not read. So nobody who may write beside a file can choose another one.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io::{self, Read as _},
    path::Path,
    sync::Arc,
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use deskbell_core::{
    Message,
    attachment::{Attachment, FILE_LIMIT, Place},
    delivery::Mark,
};

use crate::{
    below::Line,
    channel::{ChannelKind, SendContext},
    manner::Manner,
};

/// How files go out with the messages of a kind, and how large one may be, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// Not at all: the text says what is attached.
    Not,
    /// In the message itself, with the last part of its text, and no larger together. [`crate::SendContext::files`]
    /// holds them.
    Within(u64),
    /// Each by a `send` of its own after the text. [`crate::SendContext::files`] holds the one then.
    After(u64),
    /// The first pictures in the message itself, as [`Files::Within`]; no other files.
    Pictures {
        /// How many pictures a message takes.
        most: usize,
        /// How large each may be.
        bytes: u64,
    },
}

impl Files {
    /// The largest file, in bytes.
    const fn limit(self) -> u64 {
        match self {
            Self::Not => 0,
            Self::Within(bytes) | Self::After(bytes) | Self::Pictures { bytes, .. } => {
                if bytes < FILE_LIMIT { bytes } else { FILE_LIMIT }
            }
        }
    }

    /// How large the files of one message may be together, in bytes.
    const fn together(self) -> u64 {
        match self {
            Self::Within(bytes) if bytes < TOGETHER => bytes,
            _ => TOGETHER,
        }
    }
}

/// The most that the files of one message hold together, in bytes. What is beyond it is said in the text.
const TOGETHER: u64 = 25 * 1024 * 1024;

/// How much longer than for a text alone a far end is waited for, for each file.
pub(crate) const FILE_TIME: Duration = Duration::from_secs(30);

impl ChannelKind {
    /// How much longer than for a text alone a message with these attachments may take, for each place.
    pub(crate) fn time_for(&self, attachments: &[Attachment]) -> Duration {
        let is_file = |attachment: &&Attachment| matches!(attachment.place, Place::Path(_));
        let files = attachments.iter().filter(is_file).filter(|_| self.files != Files::Not).count();
        FILE_TIME.saturating_mul(u32::try_from(files).unwrap_or(u32::MAX))
    }
}

/// A file that was read.
pub struct ReadFile {
    /// Its name.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// What it holds.
    pub bytes: Vec<u8>,
}

impl ReadFile {
    /// Whether it is a picture that services show.
    pub fn is_picture(&self) -> bool {
        is_picture(&self.media_type)
    }

    /// What it holds as Base64, or its size where a preview is shown.
    pub(crate) fn in_base64(&self, cx: &SendContext) -> String {
        match cx.preview {
            Some(_) => format!("[{} bytes]", self.bytes.len()),
            None => BASE64_STANDARD.encode(&self.bytes),
        }
    }
}

fn is_picture(media_type: &str) -> bool {
    matches!(media_type, "image/png" | "image/jpeg" | "image/gif")
}

impl fmt::Debug for ReadFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} bytes)", self.name, self.bytes.len())
    }
}

/// What is attached to a message, for one kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gathered {
    /// The files that can be sent, each by the mark of its attachment.
    pub(crate) files: Vec<(Mark, Arc<ReadFile>)>,
    /// What the text has to say.
    pub(crate) below: Vec<Line>,
    /// Which files do not go out, and why, for whoever looks into the delivery.
    pub(crate) without: Vec<(Mark, String)>,
}

/// What an attachment is known by between attempts: what was reported. What the file holds may change meanwhile.
fn mark(index: usize, attachment: &Attachment) -> Mark {
    Mark::of(&format!("file {index} {}", attachment.name))
}

/// Why a file does not go out.
struct Left {
    /// What the text says of it beside its name: how large it is, or what is wrong with it.
    facts: String,
    /// The reason.
    why: String,
}

impl Left {
    /// What is wrong with the file itself.
    fn wrong(facts: String) -> Self {
        Self { why: facts.clone(), facts }
    }
}

/// Reads the files of `message` as far as `kind` takes them.
pub(crate) async fn gather(kind: &ChannelKind, message: &Message, manner: Manner) -> Gathered {
    if message.attachments.is_empty() {
        return Gathered::default();
    }
    let (files, urls, title) = (kind.files, kind.file_urls, kind.about.title);
    let attachments = message.attachments.clone();
    let format = manner.format.unwrap_or(message.format);
    let gathered = tokio::task::spawn_blocking(move || {
        let mut gathered = Gathered::default();
        let (mut left, mut urls) = (files.together(), urls);
        for (index, attachment) in attachments.iter().enumerate() {
            match &attachment.place {
                Place::Url(_) if urls > 0 => urls -= 1,
                Place::Url(url) => gathered.below.push(Line::file_at(attachment, url, format)),
                Place::Path(path) => {
                    let taken = match room(files, gathered.files.len(), title) {
                        Ok(()) => take(files, Path::new(path), attachment, left, title),
                        Err(why) => {
                            size(Path::new(path)).and_then(|facts| Err(Left { facts, why }))
                        }
                    };
                    match taken {
                        Ok(file) => {
                            left = left.saturating_sub(file.bytes.len() as u64);
                            gathered.files.push((mark(index, attachment), Arc::new(file)));
                        }
                        Err(Left { facts, why }) => {
                            gathered.below.push(Line::file(&attachment.name, &facts, format));
                            let why = not_sent(&attachment.name, &why);
                            gathered.without.push((mark(index, attachment), why));
                        }
                    }
                }
            }
        }
        gathered
    });
    gathered.await.unwrap_or_default()
}

/// What is said of a file that does not arrive.
pub(crate) fn not_sent(name: &str, why: &str) -> String {
    format!("`{name}` was not sent: {why}")
}

/// Whether one more file fits where `count` are in the message.
fn room(files: Files, count: usize, title: &str) -> Result<(), String> {
    match files {
        Files::Not => Err(format!("{title} takes no files")),
        Files::Pictures { most: 1, .. } if count >= 1 => {
            Err(format!("{title} takes one picture with a message"))
        }
        Files::Pictures { most, .. } if count >= most => {
            Err(format!("{title} takes {most} pictures with a message"))
        }
        Files::Within(_) | Files::After(_) | Files::Pictures { .. } => Ok(()),
    }
}

/// How large the file at `path` is, for people.
fn size(path: &Path) -> Result<String, Left> {
    let (_, size) = open(path).map_err(unreadable)?;
    Ok(in_words(size))
}

#[expect(clippy::needless_pass_by_value, reason = "it takes what `map_err` gives")]
fn unreadable(error: io::Error) -> Left {
    Left::wrong(format!("cannot be read: {error}"))
}

/// The file at `path`, or why it does not go out.
fn take(
    files: Files,
    path: &Path,
    attachment: &Attachment,
    left: u64,
    title: &str,
) -> Result<ReadFile, Left> {
    let (file, size) = open(path).map_err(unreadable)?;
    let media_type = attachment.media_type.as_deref().unwrap_or("application/octet-stream");
    if matches!(files, Files::Pictures { .. }) && !is_picture(media_type) {
        return Err(Left { facts: in_words(size), why: format!("{title} takes only pictures") });
    }
    if size == 0 && !matches!(files, Files::Within(_)) {
        // Services take it for no file at all, or refuse it.
        return Err(Left { facts: in_words(size), why: "it is empty".to_owned() });
    }
    let limit = files.limit().min(left);
    let too_large = || Left::wrong(format!("{}, too large to send", in_words(size)));
    if size > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    // One byte more, so that a file that grows meanwhile is seen to be too large.
    let read = file.take(limit.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(unreadable)?;
    if bytes.len() as u64 > limit {
        return Err(too_large());
    }
    Ok(ReadFile { name: attachment.name.clone(), media_type: media_type.to_owned(), bytes })
}

/// Opens a regular file, and says how large it is.
///
/// # Errors
/// Says what the system says, that it is no file, or that a link is in the way.
pub fn open(path: &Path) -> io::Result<(File, u64)> {
    if std::fs::canonicalize(path)? != path {
        return Err(io::Error::other("a link is in its place"));
    }
    if ["/proc", "/sys"].iter().any(|system| path.starts_with(system)) {
        // What processes know, their secrets too, looks like files there.
        return Err(io::Error::other("it belongs to the system"));
    }
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt as _;
        // A pipe without a writer would be waited for.
        let flags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
        options.custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    let facts = file.metadata()?;
    if !facts.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    Ok((file, facts.len()))
}

/// A size for people.
pub fn in_words(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1_000 {
        return format!("{bytes} bytes");
    }
    let (mut tenths, mut unit) = (bytes / 100, 0);
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        (tenths, unit) = (tenths / 1_000, unit + 1);
    }
    let unit = UNITS.get(unit).copied().unwrap_or_default();
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_for_people() {
        for (bytes, words) in [
            (999, "999 bytes"),
            (1_000, "1.0 kB"),
            (1_260_000, "1.2 MB"),
            (3_400_000_000, "3.4 GB"),
        ] {
            assert_eq!(in_words(bytes), words);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn links_folders_and_pipes_are_not_read_row_116() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let secret = folder.join("secret");
        std::fs::write(&secret, "hunter2").unwrap();
        let link = folder.join("link");
        std::os::unix::fs::symlink(&secret, &link).unwrap();
        let pipe = folder.join("pipe");
        let (sort, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, sort, mode, 0).unwrap();
        assert_eq!(open(&secret).unwrap().1, 7);
        for path in [&link, &folder, &pipe, &folder.join("none")] {
            assert!(open(path).is_err(), "{}", path.display());
        }
    }

    #[test]
    fn a_file_that_is_too_large_is_said_and_not_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "x".repeat(2_000)).unwrap();
        let path = file.path().canonicalize().unwrap();
        let attachment =
            Attachment::new(Place::Path(path.to_str().unwrap().to_owned()), Some("a.log"), None);
        let taken = |files, left| {
            take(files, &path, &attachment, left, "Pushover").map_err(|left| (left.facts, left.why))
        };
        assert_eq!(taken(Files::Within(3_000), 9_000).unwrap().media_type, "text/plain");
        for (files, left) in [(Files::After(1_999), 9_000), (Files::Within(3_000), 1_999)] {
            assert_eq!(taken(files, left).unwrap_err().0, "2.0 kB, too large to send");
        }
        let (facts, why) = taken(Files::Pictures { most: 1, bytes: 9_000 }, 9_000).unwrap_err();
        assert_eq!((facts.as_str(), why.as_str()), ("2.0 kB", "Pushover takes only pictures"));
    }

    #[test]
    fn an_empty_file_goes_out_only_within_a_message() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().canonicalize().unwrap();
        let place = Place::Path(path.to_str().unwrap().to_owned());
        let attachment = Attachment::new(place, Some("a.png"), None);
        let taken = |files| take(files, &path, &attachment, 9, "ntfy").map_err(|left| left.why);
        assert!(taken(Files::Within(9)).is_ok());
        for files in [Files::After(9), Files::Pictures { most: 1, bytes: 9 }] {
            assert_eq!(taken(files).unwrap_err(), "it is empty");
        }
    }

    #[test]
    fn a_message_takes_as_many_pictures_as_its_kind_says() {
        let pictures = Files::Pictures { most: 4, bytes: 9 };
        assert!(room(pictures, 3, "Mastodon").is_ok() && room(Files::After(9), 99, "").is_ok());
        let told = room(pictures, 4, "Mastodon").unwrap_err();
        assert_eq!(told, "Mastodon takes 4 pictures with a message");
        assert_eq!(room(Files::Not, 0, "Gotify").unwrap_err(), "Gotify takes no files");
    }
}
