//! A folder of prompts: which files are prompts, and what they are called.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{Flaw, Origin, Prompt, front};
use crate::config::load::read_file;

/// The largest file of a prompt, in bytes.
const FILE_LIMIT: u64 = 64 * 1024;

/// How many prompts a folder may have; what comes behind them by name is left out.
const PROMPTS_LIMIT: usize = 200;

/// How many files of a folder are told to be wrong; those behind them are only counted.
const FLAWS_LIMIT: usize = 200;

/// The longest name of a prompt, in characters.
const NAME_LIMIT: usize = 64;

/// What a prompt's file ends with.
const ENDS: &[&str] = &[".liquid.md", ".md.liquid", ".liquid", ".markdown", ".md"];

/// The prompts in `folder`, by name, and what is wrong with files that hold none.
///
/// With `within`, nothing is read that lies outside of it, by whatever link: what a project brings must be its own.
pub(super) fn read(
    folder: &Path,
    within: Option<&Path>,
    origin: fn(PathBuf) -> Origin,
) -> (Vec<Prompt>, Vec<Flaw>) {
    let (mut prompts, mut flaws): (Vec<Prompt>, Vec<Flaw>) = (Vec::new(), Vec::new());
    let flaw = |file: &Path, message: String| Flaw { file: file.to_owned(), place: None, message };
    let files = match files(folder) {
        Ok(files) => files,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            flaws.push(flaw(folder, format!("the folder cannot be read: {error}")));
            Vec::new()
        }
    };
    let count = files.len();
    for (index, (name, file)) in files.into_iter().enumerate() {
        if flaws.len() >= FLAWS_LIMIT {
            flaws.push(flaw(folder, format!("and {} more files are left out", count - index)));
            break;
        }
        if prompts.len() >= PROMPTS_LIMIT {
            let message = format!("it is left out: a folder may have {PROMPTS_LIMIT} prompts");
            flaws.push(flaw(&file, message));
        } else if !is_name(&name) {
            let message = format!(
                "it is left out: the name of a prompt has 1 to {NAME_LIMIT} letters, digits, `-` and `_`"
            );
            flaws.push(flaw(&file, message));
        } else if within.is_some_and(|within| !lies_in(&file, within)) {
            flaws.push(flaw(&file, "it is left out: it leads out of the project".to_owned()));
        } else {
            match read_file(&file, FILE_LIMIT) {
                Ok(source) => match front::read(&name, origin(file), &source) {
                    Ok(prompt) => match prompts.iter().find(|other| other.name == prompt.name) {
                        Some(other) => flaws.push(prompt.doubled(&other.origin)),
                        None => prompts.push(prompt),
                    },
                    Err(wrong) => flaws.push(wrong),
                },
                Err(error) => flaws.push(flaw(&file, format!("it cannot be read: {error}"))),
            }
        }
    }
    (prompts, flaws)
}

/// The files that are prompts by what they end with, in the order of their names.
fn files(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let prompt = ENDS.iter().find_map(|end| name.strip_suffix(end)).map(str::to_owned);
        if let Some(prompt) = prompt.filter(|prompt| !prompt.starts_with('.')) {
            files.push((prompt, entry.path()));
        }
    }
    files.sort();
    Ok(files)
}

fn is_name(name: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_');
    (1..=NAME_LIMIT).contains(&name.len()) && name.chars().all(is_plain)
}

fn lies_in(file: &Path, folder: &Path) -> bool {
    let real = (fs::canonicalize(file), fs::canonicalize(folder));
    matches!(real, (Ok(file), Ok(folder)) if file.starts_with(&folder))
}
