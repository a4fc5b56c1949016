//! What is attached to an event, as it is written and read back.

use std::borrow::Cow;

use deskbell_core::{
    Invalid,
    attachment::{Attachment, Place},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that is attached to an event: a file by its `path`, or one of the web by its `url`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Attachment")]
pub struct AttachmentBody<'a> {
    /// What it is called where it arrives; without it as its place says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Cow<'a, str>>,
    /// Its media type, such as `image/png`; without it what the end of the name stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<Cow<'a, str>>,
    /// Absolute path of a file on the daemon's machine, which is read when it is sent. Only the daemon's own user may
    /// name one, over the local socket, or with `serve.attach_files` with the token of the state folder. Files of
    /// Deskbell's own are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Cow<'a, str>>,
    /// Web address of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<Cow<'a, str>>,
}

impl<'a> AttachmentBody<'a> {
    pub(crate) fn of(attachment: &'a Attachment) -> Self {
        let (path, url) = match &attachment.place {
            Place::Path(path) => (Some(path.into()), None),
            Place::Url(url) => (None, Some(url.into())),
        };
        let media_type = attachment.media_type.as_deref().map(Cow::Borrowed);
        Self { name: Some(attachment.name.as_str().into()), media_type, path, url }
    }
}

/// What `bodies` attach.
///
/// # Errors
/// Names the one that has no place, or two.
pub(crate) fn attachments(bodies: &[AttachmentBody<'_>]) -> Result<Vec<Attachment>, Invalid> {
    let read = |(index, body): (usize, &AttachmentBody<'_>)| {
        let place = match (&body.path, &body.url) {
            (Some(path), None) => Place::Path(path.clone().into_owned()),
            (None, Some(url)) => Place::Url(url.clone().into_owned()),
            (given, _) => {
                let given = if given.is_some() { "both" } else { "neither" };
                let field = format!("attachments[{index}]");
                let given = format!("an object with {given} of `path` and `url`");
                return Err(Invalid::value(&field, given, "one of them"));
            }
        };
        Ok(Attachment::new(place, body.name.as_deref(), body.media_type.as_deref()))
    };
    bodies.iter().enumerate().map(read).collect()
}
