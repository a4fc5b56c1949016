//! What a project's own file may do: add to the channels that the user's routes choose, and when the user trusts it,
//! choose for them and bring channels.
//!
//! Whoever opens a strange repository must not have their messages sent elsewhere by a file in it, or kept back. The rest is
//! the user's in any case: one daemon serves all projects.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use aws_lc_rs::digest::{SHA256, digest};
use deskbell_core::text;
use serde::{Deserialize, Serialize};

use super::{
    file::File,
    finding::Finding,
    load::{FILE_LIMIT, FileState, PROJECT_FILE, read_file},
    read::read,
    tree::{self, Node, Place, Source, Value},
};
use crate::paths::{self, Paths};

/// What every project's file may have.
const FREE: &[&str] = &["routes"];

/// What a trusted one may have.
const TRUSTED: &[&str] = &["routes", "channels"];

/// The list of trusted files, as it is stored. A reader that does not know a field ignores it.
#[derive(Debug, Default, Serialize, Deserialize)]
struct TrustList {
    #[serde(default)]
    trusted: Vec<Trusted>,
}

/// A file that is trusted as long as it stays as it is.
#[derive(Debug, Serialize, Deserialize)]
struct Trusted {
    path: PathBuf,
    sha256: String,
}

/// Why a file was not put on the list or taken from it.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file cannot be read.
    #[error("{} cannot be read", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// The list cannot be read or written.
    #[error("the list of trusted files {} cannot be kept", .path.display())]
    List {
        /// The list.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
}

/// The file that `place` means: itself, or of a folder the project's file in it or in a folder above.
pub fn find(place: &Path) -> Option<PathBuf> {
    if place.is_file() {
        return Some(place.to_owned());
    }
    let folder = place;
    folder.ancestors().map(|folder| folder.join(PROJECT_FILE)).find(|file| file.is_file())
}

/// Trusts `file` as it is now.
///
/// # Errors
/// Fails when the file or the list cannot be read or the list cannot be written.
pub fn trust(paths: &Paths, file: &Path) -> Result<(), TrustError> {
    let failed = |source| TrustError::File { path: file.to_owned(), source };
    let sha256 = hash(&read_file(file, FILE_LIMIT).map_err(failed)?);
    let path = canonical(file);
    change(paths, |list| {
        list.trusted.retain(|entry| entry.path != path);
        list.trusted.push(Trusted { path, sha256 });
    })
}

/// Takes the trust in `file` back. Returns whether it was trusted.
///
/// # Errors
/// Fails when the list cannot be read or written.
pub fn revoke(paths: &Paths, file: &Path) -> Result<bool, TrustError> {
    let path = canonical(file);
    let mut was_trusted = false;
    change(paths, |list| {
        list.trusted.retain(|entry| {
            was_trusted |= entry.path == path;
            entry.path != path
        });
    })?;
    Ok(was_trusted)
}

/// The projects' files that are still as the user trusts them, with their content.
pub(super) fn trusted_projects(paths: &Paths) -> Vec<(PathBuf, String)> {
    let list = read_list(&paths.trusted()).unwrap_or_default();
    let projects = list
        .trusted
        .into_iter()
        .filter(|entry| entry.path.file_name().is_some_and(|name| name == PROJECT_FILE));
    projects
        .filter_map(|entry| Some((read_file(&entry.path, FILE_LIMIT).ok()?, entry)))
        .filter(|(text, entry)| hash(text) == entry.sha256)
        .map(|(text, entry)| (entry.path, text))
        .collect()
}

/// Whether the user trusts `file` with the content `text`.
pub(super) fn is_trusted(paths: &Paths, file: &Path, text: &str) -> bool {
    // A list that cannot be read trusts nothing.
    let list = read_list(&paths.trusted()).unwrap_or_default();
    let (path, sha256) = (canonical(file), hash(text));
    list.trusted.iter().any(|entry| entry.path == path && entry.sha256 == sha256)
}

/// What of the project's file `path` may be used, and what is to be said about the rest.
pub(super) fn layer(
    paths: &Paths,
    path: &Path,
    text: &str,
    source: &Arc<Source>,
) -> (Option<Node>, FileState, Vec<Finding>) {
    let place = Place { source: Arc::clone(source), position: None };
    let shown = text::one_line(&path.display().to_string()).into_owned();
    let hint = format!("look at it, then run `deskbell trust {shown}`");
    let is_trusted = is_trusted(paths, path, text);
    if !is_trusted && !paths::belongs_to_us(path) {
        let message = "this file belongs to another user, so nothing of it is used";
        let finding = Finding::problem(place, "", message).with_hint(hint);
        return (None, FileState::LeftOut, vec![finding]);
    }
    let mut layer = match tree::parse(text, source) {
        Ok(layer) => layer,
        Err(finding) => return (None, FileState::LeftOut, vec![finding]),
    };
    let mut findings = Vec::new();
    if let Value::Table(table) = &mut layer.value {
        table.retain(|section, node| {
            let (is_free, is_allowed) =
                [FREE, TRUSTED].map(|list| list.contains(&section.as_str())).into();
            let is_used = is_free || is_allowed && is_trusted;
            if !is_used {
                let key = tree::shown(&[tree::Step::Key(section.clone())]);
                findings.push(if is_allowed {
                    let message = "a project's file may have channels once you trust it";
                    Finding::problem(node.place.clone(), key, message).with_hint(hint.clone())
                } else {
                    let message = "a project's file may have routes and channels only";
                    let hint = "it belongs into your own configuration";
                    Finding::problem(node.place.clone(), key, message).with_hint(hint)
                });
            }
            is_used
        });
    }
    let state = if is_trusted { FileState::Read } else { FileState::Limited };
    // Alone first: a broken value must not take the place of a good one in a layer below.
    let mut options = layer.clone();
    let _channels = options.take("channels");
    let before = findings.len();
    let _options: File = read(options, &[], &mut findings);
    if findings.len() > before {
        return (None, FileState::LeftOut, findings);
    }
    (Some(layer), state, findings)
}

fn change(paths: &Paths, change: impl FnOnce(&mut TrustList)) -> Result<(), TrustError> {
    let path = paths.trusted();
    let failed = |source| TrustError::List { path: path.clone(), source };
    let mut list = read_list(&path).map_err(failed)?;
    change(&mut list);
    let text = toml::to_string(&list).map_err(|error| failed(io::Error::other(error)))?;
    write_whole(&path, &text).map_err(failed)
}

fn read_list(path: &Path) -> io::Result<TrustList> {
    match read_file(path, FILE_LIMIT) {
        Ok(text) => toml::from_str(&text).map_err(|_| io::Error::other("it is damaged")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(TrustList::default()),
        Err(error) => Err(error),
    }
}

/// Puts a new file in place of the old one, so that a reader sees one or the other.
pub(crate) fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension(format!("{}.new", std::process::id()));
    fs::write(&new, text)?;
    fs::rename(&new, path)
}

/// The one path of a file that can be reached by several.
pub(super) fn canonical(file: &Path) -> PathBuf {
    fs::canonicalize(file).unwrap_or_else(|_| file.to_owned())
}

fn hash(text: &str) -> String {
    digest(&SHA256, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
