//! Adds a plan to the user's configuration file: all of it or nothing, and the file as it was is kept beside it.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use toml::Table;

use super::{
    super::{
        load::{FILE_LIMIT, read_file},
        trust::canonical,
    },
    page::{body, top},
    plan::Plan,
};

/// How many copies of earlier states are kept before a new one is refused.
const BACKUPS_LIMIT: usize = 1000;

/// What was written.
#[derive(Debug)]
pub struct Written {
    /// The file, with links followed.
    pub file: PathBuf,
    /// The copy of the file as it was, if there was one.
    pub backup: Option<PathBuf>,
    /// Whether the file has a list of titles already, which stays as it is.
    pub keeps_titles: bool,
}

/// Appends what `plan` has to `file`.
///
/// # Errors
/// Fails when the file cannot be read or written or would not be TOML afterwards; it is as it was then.
pub fn append(file: &Path, plan: &Plan) -> io::Result<Written> {
    // A link to a file in somebody's collection of configurations stays one.
    let file = canonical(file);
    let before = match read_file(&file, FILE_LIMIT) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let old = before.as_deref().unwrap_or_default();
    let options: Table = parse(old, "it is no TOML; `deskbell config check` says where")?;
    let keeps_titles = !plan.skip_titles.is_empty() && options.contains_key("skip_titles");
    let top = if keeps_titles { String::new() } else { top(plan) };
    let new = joined(&[&top, old, &body(plan)]);
    parse(&new, "it would be no TOML afterwards")?;
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let backup = before.map(|old| keep(&file, &old)).transpose()?;
    replace(&file, &new)?;
    Ok(Written { file, backup, keeps_titles })
}

fn parse(text: &str, what: &'static str) -> io::Result<Table> {
    // The error of the parser shows the line, which may hold a secret.
    text.parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, what))
}

/// The parts that are not empty, with an empty line between them.
fn joined(parts: &[&str]) -> String {
    let parts =
        parts.iter().map(|part| part.trim_end_matches('\n')).filter(|part| !part.is_empty());
    let mut joined = parts.collect::<Vec<_>>().join("\n\n");
    joined.push('\n');
    joined
}

/// Copies the file as it was to a name that is free.
fn keep(file: &Path, text: &str) -> io::Result<PathBuf> {
    for number in 1..=BACKUPS_LIMIT {
        let mut name = file.as_os_str().to_owned();
        name.push(if number == 1 { ".bak".to_owned() } else { format!(".bak{number}") });
        let path = PathBuf::from(name);
        match create(&path, file, text) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("there are too many backups of it; remove some"))
}

/// Puts a new file in place of the old one, so that a reader sees one or the other.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = PathBuf::from(name);
    let written = create(&new, file, text).and_then(|()| fs::rename(&new, file));
    if written.is_err() {
        // It may not be there at all.
        let _absent = fs::remove_file(&new);
    }
    written
}

/// Creates `path` with the permissions that `like` has, or for its owner only, because there may be secrets in it.
fn create(path: &Path, like: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut created = options.open(path)?;
    created.write_all(text.as_bytes())?;
    if let Ok(metadata) = fs::metadata(like) {
        created.set_permissions(metadata.permissions())?;
    }
    created.sync_all()
}
