#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

//! The project's own files, for the tests that read them.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// What was built, installed or recorded, never what was written.
const NOT_OURS: &[&str] =
    &[".git", ".tools", "target", "node_modules", "__pycache__", "corpus", "artifacts"];

/// A text file of the project.
pub(crate) struct TextFile {
    /// Its path from the root of the project, with `/` between the parts.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl TextFile {
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }
}

/// The root of the project.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All text files below `folder`, by path.
pub(crate) fn files(folder: &str) -> Vec<TextFile> {
    let mut found = Vec::new();
    collect(&root().join(folder), folder.trim_matches('/'), &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// The text of one file.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The generated document at `path` is `expected`; with `UPDATE_DOCS` it is written anew.
#[track_caller]
pub(crate) fn check_document(path: &str, expected: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(root().join(path), expected).unwrap();
    }
    let found = fs::read_to_string(root().join(path)).unwrap_or_default();
    let lines = found.lines().chain(std::iter::repeat(""));
    let differing = expected.lines().zip(lines).find(|(expected, found)| expected != found);
    assert!(
        found == expected,
        "{path} is stale, first at: {differing:?}\n\
         regenerate it: UPDATE_DOCS=1 cargo test --workspace"
    );
}

fn collect(folder: &Path, path: &str, found: &mut Vec<TextFile>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{path}: {error}")) {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
        if NOT_OURS.contains(&name.as_str()) {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), &path, found);
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            found.push(TextFile { path, text });
        }
    }
}
