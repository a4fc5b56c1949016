//! What is attached to an event: a file of the daemon's machine, or one that stands in the web.

use crate::{
    field::Invalid,
    link,
    text::{self, Unit},
};

/// Most that may be attached to one event.
pub const ATTACHMENTS_LIMIT: usize = 8;

/// Longest name of an attachment, in bytes, as file systems allow it.
pub const NAME_LIMIT: usize = 255;

/// Longest path, in bytes.
pub const PATH_LIMIT: usize = 4_096;

/// Largest file that is attached, in bytes. Services take less.
pub const FILE_LIMIT: u64 = 20 * 1024 * 1024;

/// Something that is attached to an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// What it is called where it arrives: a name, no path.
    pub name: String,
    /// Its media type, such as `image/png`, if it is known.
    pub media_type: Option<String>,
    /// Where it is.
    pub place: Place,
}

/// Where an attachment is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A file, by its absolute path. It is read when a message is sent, so what arrives is what the file holds then.
    Path(String),
    /// A web address.
    Url(String),
}

impl Attachment {
    /// What stands at `place`, called as the place says unless there is another `name`.
    pub fn new(place: Place, name: Option<&str>, media_type: Option<&str>) -> Self {
        let called = name.map_or_else(|| last_part(&place).to_owned(), str::to_owned);
        let name = text::cut(&text::one_line(last(&called)), NAME_LIMIT, Unit::Bytes);
        let name = if text::is_blank(&name) { "attachment".to_owned() } else { name };
        let known = || media_type_of(&name).map(str::to_owned);
        let media_type = media_type.map(str::to_owned).or_else(known);
        Self { name, media_type, place }
    }

    /// Checks what somebody gave as `field`.
    ///
    /// # Errors
    /// Names the field, its value and what was expected.
    pub fn check(&self, field: &str) -> Result<(), Invalid> {
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$&-^_.+".contains(c);
        let is_type = |(kind, sort): (&str, &str)| {
            [kind, sort].iter().all(|word| !word.is_empty() && word.chars().all(is_token))
        };
        if let Some(media_type) = &self.media_type
            && !(media_type.len() <= NAME_LIMIT && media_type.split_once('/').is_some_and(is_type))
        {
            let field = format!("{field}.media_type");
            return Err(Invalid::text(&field, media_type, "a media type such as image/png"));
        }
        match &self.place {
            Place::Url(url) => link::check(&format!("{field}.url"), url),
            Place::Path(path) if path.len() > PATH_LIMIT => {
                Err(Invalid::too_long(&format!("{field}.path"), path.len(), PATH_LIMIT, "bytes"))
            }
            Place::Path(path) if path.contains('\0') => {
                let expected = "a path without a null character";
                Err(Invalid::text(&format!("{field}.path"), path, expected))
            }
            Place::Path(path) if !std::path::Path::new(path).is_absolute() => {
                Err(Invalid::text(&format!("{field}.path"), path, "an absolute path"))
            }
            Place::Path(_) => Ok(()),
        }
    }
}

/// What a place is called: its last part, without the query of an address.
fn last_part(place: &Place) -> &str {
    match place {
        Place::Path(path) => last(path),
        Place::Url(url) => last(url.split(['?', '#']).next().unwrap_or_default()),
    }
}

fn last(path: &str) -> &str {
    path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or_default()
}

/// The media type that the end of `name` stands for, for the few that services treat in their own way.
fn media_type_of(name: &str) -> Option<&'static str> {
    let (_, end) = name.rsplit_once('.')?;
    Some(match end.to_ascii_lowercase().as_str() {
        "txt" | "log" => "text/plain",
        "md" => "text/markdown",
        "csv" => "text/csv",
        "html" | "htm" => "text/html",
        "json" => "application/json",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "gz" | "tgz" => "application/gzip",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "mp4" => "video/mp4",
        "mp3" => "audio/mpeg",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(path: &str) -> Place {
        Place::Path(path.to_owned())
    }

    fn url(url: &str) -> Place {
        Place::Url(url.to_owned())
    }

    #[test]
    fn an_attachment_is_called_as_its_place_says() {
        #[track_caller]
        fn check(place: Place, name: Option<&str>, expected: (&str, Option<&str>)) {
            let attachment = Attachment::new(place, name, None);
            assert_eq!((attachment.name.as_str(), attachment.media_type.as_deref()), expected);
        }
        check(path("/tmp/a/shot.PNG"), None, ("shot.PNG", Some("image/png")));
        check(
            url("https://h/x/report.pdf?sig=a/b#c"),
            None,
            ("report.pdf", Some("application/pdf")),
        );
        check(url("https://h/"), None, ("h", None));
        check(path("/a/b"), Some("../../etc/cron.d/x\ny"), ("x\\ny", None));
        check(path("/"), None, ("attachment", None));
    }

    #[test]
    fn wrong_attachments_are_refused_by_field() {
        #[track_caller]
        fn check(place: Place, media_type: Option<&str>, field: Option<&str>) {
            let refusal = Attachment::new(place, None, media_type).check("attachments[0]");
            assert_eq!(refusal.err().map(|refusal| refusal.field).as_deref(), field);
        }
        check(url("https://h/a"), Some("image/png"), None);
        check(url("file:///etc/passwd"), None, Some("attachments[0].url"));
        check(path("/etc/hostname"), None, None);
        check(path("/etc/host\0name"), None, Some("attachments[0].path"));
        check(path("etc/hostname"), None, Some("attachments[0].path"));
        check(path("/a"), Some("text/plain\r\nx: y"), Some("attachments[0].media_type"));
    }
}
