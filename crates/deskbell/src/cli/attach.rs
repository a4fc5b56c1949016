//! What `--attach` names: files, and addresses of files.

use std::{borrow::Cow, path::Path};

use deskbell_channels::files;
use deskbell_core::attachment::FILE_LIMIT;

use super::{Exit, Failure};
use crate::api::wire::AttachmentBody;

/// What is attached. A file has to be there, and no larger than is ever sent.
pub(super) fn read(arguments: &[String]) -> Result<Vec<AttachmentBody<'static>>, Failure> {
    arguments.iter().map(|argument| one(argument)).collect()
}

fn one(argument: &str) -> Result<AttachmentBody<'static>, Failure> {
    if argument.contains("://") {
        let url = Some(Cow::Owned(argument.to_owned()));
        return Ok(AttachmentBody { url, ..AttachmentBody::default() });
    }
    let wrong = |why: &dyn std::fmt::Display| {
        Failure::new(Exit::Wrong, format!("cannot attach `{argument}`: {why}"))
    };
    // Links are followed here, where you named them, and nowhere else.
    let path = std::fs::canonicalize(argument).map_err(|error| wrong(&error))?;
    let (_, size) = files::open(&path).map_err(|error| wrong(&error))?;
    if size > FILE_LIMIT {
        let (size, limit) = (files::in_words(size), files::in_words(FILE_LIMIT));
        return Err(wrong(&format!("it has {size}; at most {limit} are sent")));
    }
    let path = path.to_str().ok_or_else(|| wrong(&"its path is no UTF-8"))?.to_owned();
    let name = Path::new(argument).file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(AttachmentBody {
        name: name.map(Cow::Owned),
        path: Some(path.into()),
        ..AttachmentBody::default()
    })
}
