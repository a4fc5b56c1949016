//! What is found in the places that the user names, one after the other.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use deskbell_channels::FromUrl;

use super::{
    super::{
        ChannelOptions, Place, Source,
        load::{FILE_LIMIT, read_file},
        mcp_push, secrets,
        trust::canonical,
    },
    apprise_text, apprise_yaml,
};

/// How many files may include one another.
const FILES_LIMIT: usize = 100;

/// A channel that somebody else's configuration describes.
pub(super) struct Found {
    /// Where it is written.
    pub(super) place: Place,
    /// What it is called there, the name first.
    pub(super) names: Vec<String>,
    /// The channel, with its secrets as they are.
    pub(super) channel: ChannelOptions,
    /// What its address says and no channel does.
    pub(super) passed_over: Vec<&'static str>,
}

/// What cannot be taken, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Where it is written.
    pub place: Place,
    /// What it is called there.
    pub names: Vec<String>,
    /// Why it cannot be taken, as a sentence without values.
    pub reason: String,
}

/// What is found in all places so far.
#[derive(Default)]
pub struct Gathered {
    pub(super) found: Vec<Found>,
    pub(super) left: Vec<Left>,
    pub(super) skip_titles: Vec<String>,
    /// The variables of mcp-push that are set, by their values: a secret is referred to by the one that has it.
    pub(super) variables: BTreeMap<String, String>,
    seen: BTreeSet<PathBuf>,
}

/// The forms in which channels are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `export KEY=VALUE` of mcp-push and Qinglong.
    Variables,
    /// Apprise's lines of `tag = address`.
    Text,
    /// Apprise's YAML.
    Yaml,
}

impl Gathered {
    /// Adds the channel of an address that was typed as argument number `position`.
    pub fn address(&mut self, position: usize, address: &str) {
        let place = Place::of(Source::Flag(format!("argument {position}")));
        self.apprise(place, Vec::new(), deskbell_channels::from_url(address).map_err(|e| e.0));
    }

    /// Adds what the variables of the process describe.
    pub fn environment(&mut self, variables: &BTreeMap<String, String>) {
        self.mcp_push(variables, None);
    }

    /// Adds what a file describes, and the files that it includes. `variables` go before those of a `config.sh`.
    ///
    /// # Errors
    /// Fails when the file cannot be read.
    pub fn file(&mut self, path: &Path, variables: &BTreeMap<String, String>) -> io::Result<()> {
        if self.seen.insert(canonical(path)) {
            let text = read_file(path, FILE_LIMIT)?;
            self.text(&Arc::new(Source::File(path.to_owned())), Some(path), &text, variables);
        }
        Ok(())
    }

    /// Adds what came over stdin.
    pub fn stdin(&mut self, text: &str, variables: &BTreeMap<String, String>) {
        self.text(&Arc::new(Source::Flag("stdin".to_owned())), None, text, variables);
    }

    fn text(
        &mut self,
        source: &Arc<Source>,
        path: Option<&Path>,
        text: &str,
        variables: &BTreeMap<String, String>,
    ) {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let includes = match form(path, text) {
            Form::Variables => {
                self.mcp_push(variables, Some((path.unwrap_or(Path::new("stdin")), text)));
                return;
            }
            Form::Text => apprise_text::read(source, text, self),
            Form::Yaml => apprise_yaml::read(source, text, self),
        };
        for (place, include) in includes {
            self.include(place, path, &include, variables);
        }
    }

    /// Adds a file that another one includes; what is elsewhere is not fetched.
    fn include(
        &mut self,
        place: Place,
        from: Option<&Path>,
        include: &str,
        variables: &BTreeMap<String, String>,
    ) {
        let path = match include.split_once("://") {
            None => include,
            Some((scheme, path)) if scheme.eq_ignore_ascii_case("file") => path,
            Some(_) => {
                let reason =
                    "what it includes is not on this machine; save it to a file and import that";
                return self.leave(place, Vec::new(), reason);
            }
        };
        let path = match (path.strip_prefix("~/"), variables.get("HOME")) {
            (Some(rest), Some(home)) => Path::new(home).join(rest),
            _ => from.and_then(Path::parent).unwrap_or(Path::new("")).join(path),
        };
        if self.seen.len() >= FILES_LIMIT {
            return self.leave(place, Vec::new(), "there are too many files that include others");
        }
        if let Err(error) = self.file(&path, variables) {
            let reason = format!("the file that it includes cannot be read: {error}");
            self.leave(place, Vec::new(), reason);
        }
    }

    fn mcp_push(&mut self, variables: &BTreeMap<String, String>, config_sh: Option<(&Path, &str)>) {
        let imported = mcp_push::import(variables, config_sh);
        for (name, channel) in imported.channels {
            let Some(place) = imported.places.get(&name).cloned() else { continue };
            let names = vec![name.to_string()];
            self.take(Found { place, names, channel, passed_over: Vec::new() });
        }
        for finding in imported.findings {
            let names = finding.channel().iter().map(ToString::to_string).collect();
            self.leave(finding.place, names, finding.message);
        }
        self.skip_titles.extend(imported.skip_titles);
        self.variables.extend(imported.values.into_iter().map(|(name, value)| (value, name)));
    }

    /// Adds the channel that Apprise's address at `place` stands for.
    pub(super) fn apprise(
        &mut self,
        place: Place,
        tags: Vec<String>,
        read: Result<FromUrl, String>,
    ) {
        match read {
            Ok(FromUrl { kind, options, manner, passed_over }) => {
                let channel = ChannelOptions {
                    kind: kind.to_owned(),
                    options,
                    per_minute: None,
                    manner,
                    quiet: None,
                    stand_in: None,
                };
                self.take(Found { place, names: tags, channel, passed_over });
            }
            Err(reason) => self.leave(place, tags, reason),
        }
    }

    /// Adds a channel if it can be built.
    fn take(&mut self, found: Found) {
        let Some(kind) = deskbell_channels::kind(&found.channel.kind) else { return };
        // What is somebody else's text must not become the content of one of this user's files.
        if found.channel.options.values().any(has_reference) {
            let reason = "one of its values begins with `env:`, `file:` or `keyring:`, which would be a reference to a secret";
            return self.leave(found.place, found.names, reason);
        }
        match kind.build(found.channel.options.clone()) {
            Ok(_) => self.found.push(found),
            Err(error) => self.leave(found.place, found.names, error.0),
        }
    }

    pub(super) fn leave(&mut self, place: Place, names: Vec<String>, reason: impl Into<String>) {
        self.left.push(Left { place, names, reason: reason.into() });
    }
}

/// Whether a text in `value` would be read as a reference.
fn has_reference(value: &toml::Value) -> bool {
    match value {
        toml::Value::String(text) => secrets::is_reference(text),
        toml::Value::Array(items) => items.iter().any(has_reference),
        toml::Value::Table(table) => table.values().any(has_reference),
        _ => false,
    }
}

/// The form of a text: what the file's name says, else what the first line says that says something.
fn form(path: Option<&Path>, text: &str) -> Form {
    let extension = path.and_then(Path::extension).and_then(|end| end.to_str());
    match extension.map(str::to_ascii_lowercase).as_deref() {
        Some("sh" | "env") => return Form::Variables,
        Some("yml" | "yaml") => return Form::Yaml,
        _ => {}
    }
    let says = |line: &&str| !line.is_empty() && !line.starts_with(['#', ';']);
    let Some(line) = text.lines().map(str::trim).find(says) else { return Form::Text };
    let is_key = |key: &str| key.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if text.lines().any(|line| line.trim_start().starts_with("export ")) {
        Form::Variables
    } else if line == "---"
        || line.split_once(':').is_some_and(|(key, rest)| is_key(key) && !rest.starts_with("//"))
    {
        Form::Yaml
    } else {
        Form::Text
    }
}
