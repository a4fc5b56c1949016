//! References to secrets, and what they stand for: `env:NAME`, `file:PATH`, `keyring:NAME`.
//!
//! What goes wrong is told by the reference, never by a value.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Read as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use deskbell_core::text;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{
    load::read_file,
    resolve::absolute,
    tree::{Place, Source},
};

/// Longest secret, in bytes.
const SECRET_LIMIT: u64 = 64 * 1024;

/// How long the keyring may take: it may ask the user to unlock it.
const KEYRING_PATIENCE: Duration = Duration::from_secs(10);

/// What the entries of a keyring are filed under.
const KEYRING_SERVICE: &str = "deskbell";

/// Finds what references stand for.
pub(super) struct Secrets<'a> {
    variables: &'a BTreeMap<String, String>,
    /// The files that secrets were read from, so that a change of one is seen.
    pub(super) files: BTreeSet<PathBuf>,
    /// The files that hold a secret in the clear.
    pub(super) clear_in: Vec<Arc<Source>>,
}

/// Why a reference leads nowhere, told by the reference and never by a value.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unresolved {
    /// The process has no such variable.
    #[error("the variable {} is not set", shown(.0))]
    Variable(String),
    /// The file or the keyring does not give it.
    #[error("{0}")]
    Elsewhere(String),
}

/// A text that may be a reference.
enum Reference<'a> {
    Variable(&'a str),
    File(&'a str),
    Keyring(&'a str),
    None,
}

impl<'a> Reference<'a> {
    fn of(text: &'a str) -> Self {
        match text.split_once(':') {
            Some(("env", name)) => Self::Variable(name),
            Some(("file", path)) => Self::File(path),
            Some(("keyring", name)) => Self::Keyring(name),
            _ => Self::None,
        }
    }
}

/// Whether `text` refers to a secret elsewhere.
pub(super) fn is_reference(text: &str) -> bool {
    !matches!(Reference::of(text), Reference::None)
}

impl<'a> Secrets<'a> {
    pub(super) const fn new(variables: &'a BTreeMap<String, String>) -> Self {
        Self { variables, files: BTreeSet::new(), clear_in: Vec::new() }
    }

    /// What `text` stands for; a text that is no reference stands for itself.
    ///
    /// # Errors
    /// Names the reference and what is missing.
    pub(super) fn resolve(&mut self, text: &str, place: &Place) -> Result<String, Unresolved> {
        match Reference::of(text) {
            Reference::Variable(name) => self.variable(name),
            Reference::File(path) => self.file(path, place).map_err(Unresolved::Elsewhere),
            Reference::Keyring(name) => self.keyring(name).map_err(Unresolved::Elsewhere),
            Reference::None => Ok(text.to_owned()),
        }
    }

    /// What `value` stands for, and every text in it.
    pub(super) fn resolve_all(
        &mut self,
        value: toml::Value,
        place: &Place,
    ) -> Result<toml::Value, Unresolved> {
        Ok(match value {
            toml::Value::String(text) => toml::Value::String(self.resolve(&text, place)?),
            toml::Value::Array(items) => {
                let items = items.into_iter().map(|item| self.resolve_all(item, place));
                toml::Value::Array(items.collect::<Result<_, _>>()?)
            }
            toml::Value::Table(table) => {
                let entries = table.into_iter().map(|(key, value)| {
                    self.resolve_all(value, place).map(|resolved| (key, resolved))
                });
                toml::Value::Table(entries.collect::<Result<_, _>>()?)
            }
            other => other,
        })
    }

    /// Notes that the source of `place` has a secret in the clear.
    pub(super) fn note_clear(&mut self, place: &Place) {
        if !self.clear_in.contains(&place.source) {
            self.clear_in.push(Arc::clone(&place.source));
        }
    }

    fn variable(&self, name: &str) -> Result<String, Unresolved> {
        let value = self.variables.get(name).filter(|value| !value.is_empty());
        value.cloned().ok_or_else(|| Unresolved::Variable(name.to_owned()))
    }

    fn file(&mut self, path: &str, place: &Place) -> Result<String, String> {
        let path = absolute(Path::new(path), place, self.variables).ok_or_else(|| {
            "the path behind `file:` is relative; expected one from the root or from `~/`"
                .to_owned()
        })?;
        let failed = |error: io::Error| {
            let path = path.display().to_string();
            format!("the secret file {} cannot be read: {error}", text::one_line(&path))
        };
        self.files.insert(path.clone());
        let mut secret = read_file(&path, SECRET_LIMIT).map_err(failed)?;
        if secret.ends_with('\n') {
            secret.pop();
            if secret.ends_with('\r') {
                secret.pop();
            }
        }
        Ok(secret)
    }

    fn keyring(&self, name: &str) -> Result<String, String> {
        if name.is_empty() || name.starts_with('-') {
            return Err("the name behind `keyring:` is missing".to_owned());
        }
        let (program, arguments) = if cfg!(target_os = "macos") {
            ("security", ["find-generic-password", "-w", "-s", KEYRING_SERVICE, "-a", name])
        } else {
            ("secret-tool", ["lookup", "service", KEYRING_SERVICE, "name", name, ""])
        };
        let mut command = Command::new(program);
        command.args(arguments.iter().filter(|argument| !argument.is_empty()));
        if let Some(path) = self.variables.get("PATH") {
            command.env("PATH", path);
        }
        ask_keyring(command, program)
            .map_err(|problem| format!("`keyring:{}` cannot be read: {problem}", shown(name)))
    }
}

/// Runs the program that asks the keyring, and ends it when it takes too long.
fn ask_keyring(mut command: Command, program: &str) -> Result<String, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            format!("the program `{program}` is not there; install it, or use `env:` or `file:`")
        }
        _ => format!("the program `{program}` does not start: {error}"),
    })?;
    let (sender, answer) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        thread::spawn(move || {
            let mut text = String::new();
            let read = stdout.take(SECRET_LIMIT).read_to_string(&mut text);
            // Nobody listens when it took too long.
            let _too_late = sender.send(read.map(|_| text));
        });
    }
    let answer = answer.recv_timeout(KEYRING_PATIENCE);
    if answer.is_err() {
        // It may have ended by itself meanwhile.
        let _ended = child.kill();
    }
    let is_found = child.wait().is_ok_and(|status| status.success());
    match answer {
        Err(_) => Err("the keyring does not answer; is it locked?".to_owned()),
        Ok(Ok(text)) if is_found && !text.trim_end_matches('\n').is_empty() => {
            Ok(text.trim_end_matches('\n').to_owned())
        }
        Ok(_) => Err(format!(
            "there is no such entry, or the keyring is locked; the entry has `service` {KEYRING_SERVICE}"
        )),
    }
}

/// A name from outside, as it may be shown.
fn shown(name: &str) -> String {
    text::cut(&text::one_line(name), 80, text::Unit::Characters)
}

/// Puts what `env:NAME` and `keyring:NAME` stand for in their place within an address.
///
/// A reference begins after one of `/:@?&=` and its name consists of letters, digits and `_`. What would end its part of
/// the address is escaped, so that a password may hold an `@`; in a path slashes stay, because a secret such as Slack's
/// is a path of its own.
pub(super) fn resolve_address(
    address: &str,
    secrets: &mut Secrets<'_>,
    place: &Place,
) -> Result<String, Unresolved> {
    if is_reference(address) {
        return secrets.resolve(address, place);
    }
    let mut resolved = String::with_capacity(address.len());
    let mut rest = address;
    while let Some((before, reference, after)) = next_reference(rest) {
        resolved.push_str(before);
        let secret = secrets.resolve(reference, place)?;
        let is_login = after.split(['/', '?']).next().is_some_and(|near| near.contains('@'));
        let escaped = if is_login || resolved.contains('?') { WHOLE } else { PATH };
        resolved.extend(utf8_percent_encode(&secret, escaped));
        rest = after;
    }
    resolved.push_str(rest);
    Ok(resolved)
}

/// What is escaped in a part of an address that ends at its delimiter.
const WHOLE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What is escaped in a secret that may be several parts of a path.
const PATH: &AsciiSet = &WHOLE.remove(b'/').remove(b':');

/// The first reference in an address, with what is before and after it.
fn next_reference(address: &str) -> Option<(&str, &str, &str)> {
    let (start, prefix) = ["env:", "keyring:"]
        .into_iter()
        .flat_map(|prefix| address.match_indices(prefix))
        .filter(|(index, _)| {
            let before = address.get(..*index).unwrap_or_default();
            before.ends_with(['/', ':', '@', '?', '&', '='])
        })
        .min_by_key(|(index, _)| *index)?;
    let (before, found) = address.split_at_checked(start)?;
    let name = found.get(prefix.len()..)?;
    let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let length = name.find(|character| !is_name(character)).unwrap_or(name.len());
    let (reference, after) = found.split_at_checked(prefix.len() + length)?;
    (length > 0).then_some((before, reference, after))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn variables(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn place(file: &Path) -> Place {
        Place::of(Source::File(file.to_owned()))
    }

    fn nowhere() -> Place {
        Place::of(Source::BuiltIn)
    }

    #[test]
    fn a_variable_stands_for_its_value_and_a_missing_one_is_named() {
        let variables = variables(&[("TOKEN", "hunter2"), ("EMPTY", "")]);
        let mut secrets = Secrets::new(&variables);
        assert_eq!(secrets.resolve("env:TOKEN", &nowhere()).unwrap(), "hunter2");
        assert_eq!(secrets.resolve("plain", &nowhere()).unwrap(), "plain");
        for name in ["EMPTY", "MISSING"] {
            let error =
                secrets.resolve(&format!("env:{name}"), &nowhere()).unwrap_err().to_string();
            assert_eq!(error, format!("the variable {name} is not set"));
        }
    }

    #[test]
    fn what_a_variable_holds_is_not_looked_at_again() {
        let variables = variables(&[("A", "env:B"), ("B", "b")]);
        assert_eq!(Secrets::new(&variables).resolve("env:A", &nowhere()).unwrap(), "env:B");
    }

    #[test]
    fn a_secret_file_loses_one_line_break() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_str().unwrap();
        let variables = variables(&[("HOME", home)]);
        let mut secrets = Secrets::new(&variables);
        #[track_caller]
        fn check(secrets: &mut Secrets<'_>, folder: &Path, content: &str, expected: &str) {
            fs::write(folder.join("token"), content).unwrap();
            let absolute = format!("file:{}", folder.join("token").display());
            for reference in [&absolute, "file:~/token", "file:token"] {
                let beside = place(&folder.join("config.toml"));
                assert_eq!(secrets.resolve(reference, &beside).unwrap(), expected, "{reference}");
            }
        }
        check(&mut secrets, folder.path(), "hunter2\n", "hunter2");
        check(&mut secrets, folder.path(), "hunter2\r\n", "hunter2");
        check(&mut secrets, folder.path(), "hunter2\n\n", "hunter2\n");
        check(&mut secrets, folder.path(), " hunter2", " hunter2");
        assert!(secrets.files.contains(&folder.path().join("token")));
        assert!(
            secrets.resolve("file:token", &nowhere()).unwrap_err().to_string().contains("relative")
        );
        let missing = secrets.resolve("file:~/missing", &nowhere()).unwrap_err().to_string();
        assert!(missing.contains("missing"), "{missing}");
    }

    #[test]
    fn references_are_found_deep_in_a_table() {
        let variables = variables(&[("A", "1a"), ("B", "2b")]);
        let table: toml::Table =
            toml::from_str("x = 'env:A'\nn = 5\n[h]\nk = ['env:B', 'c']").unwrap();
        let expected: toml::Table =
            toml::from_str("x = '1a'\nn = 5\n[h]\nk = ['2b', 'c']").unwrap();
        let resolved =
            Secrets::new(&variables).resolve_all(toml::Value::Table(table), &nowhere()).unwrap();
        assert_eq!(resolved, toml::Value::Table(expected));
    }

    #[test]
    fn references_stand_anywhere_in_an_address() {
        let variables = variables(&[("A", "T0/B:0/x y?"), ("B_2", "p@ss/:1")]);
        #[track_caller]
        fn check(variables: &BTreeMap<String, String>, address: &str, expected: &str) {
            let mut secrets = Secrets::new(variables);
            assert_eq!(resolve_address(address, &mut secrets, &nowhere()).unwrap(), expected);
        }
        check(&variables, "slack://env:A", "slack://T0/B:0/x%20y%3F");
        check(&variables, "env:A", "T0/B:0/x y?");
        check(
            &variables,
            "mailto://me:env:B_2@example.com?to=a&b=env:A",
            "mailto://me:p%40ss%2F%3A1@example.com?to=a&b=T0%2FB%3A0%2Fx%20y%3F",
        );
        check(&variables, "json://host/myenv:A", "json://host/myenv:A");
        check(&variables, "json://host/env:", "json://host/env:");
        let mut secrets = Secrets::new(&variables);
        let missing =
            resolve_address("slack://env:NO/x", &mut secrets, &nowhere()).unwrap_err().to_string();
        assert_eq!(missing, "the variable NO is not set");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_keyring_entry_is_asked_for_by_name_and_a_missing_program_is_named() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let variables = variables(&[("PATH", folder.path().to_str().unwrap())]);
        let mut secrets = Secrets::new(&variables);
        let program = folder.path().join("secret-tool");
        let missing = secrets.resolve("keyring:phone", &nowhere()).unwrap_err().to_string();
        assert!(missing.contains("`secret-tool` is not there"), "{missing}");
        let script =
            "#!/bin/sh\n[ \"$*\" = 'lookup service deskbell name phone' ] && echo hunter2\n";
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(secrets.resolve("keyring:phone", &nowhere()).unwrap(), "hunter2");
        let unknown = secrets.resolve("keyring:other", &nowhere()).unwrap_err().to_string();
        assert!(unknown.contains("no such entry"), "{unknown}");
    }
}
