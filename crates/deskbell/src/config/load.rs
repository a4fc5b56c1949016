//! Reads the layers, the earlier ones first, and lays each on top of those before it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File as OpenFile},
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use deskbell_core::route::Route;

use super::{
    Config, ConfigErrors,
    file::File,
    finding::{Finding, Severity},
    mcp_push,
    problem::Problem,
    read::read,
    resolve,
    tree::{self, Node, Place, Source, Value},
    trust, variables,
};
use crate::{bridge::start::CONFIG_SH, paths::Paths};

/// Largest configuration file, in bytes.
pub const FILE_LIMIT: u64 = 1024 * 1024;

/// The name of a project's own file.
pub const PROJECT_FILE: &str = ".deskbell.toml";

/// Where the configuration comes from.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The files of machine and user, and the state folder with the list of trusted files.
    pub paths: Paths,
    /// The folder from which a project's file is looked for, upwards.
    pub folder: Option<PathBuf>,
    /// The environment variables.
    pub variables: BTreeMap<String, String>,
    /// What flags say.
    pub overrides: Vec<Override>,
    /// The `config.sh` of mcp-push, where it may hold channels.
    pub config_sh: Option<PathBuf>,
}

/// An option that a flag sets.
#[derive(Debug, Clone)]
pub struct Override {
    /// The flag, such as `--listen`.
    pub flag: String,
    /// The option, such as `serve.listen`.
    pub key: String,
    /// The value, as it was typed.
    pub value: String,
}

impl Sources {
    /// The user's sources, without any project: for the daemon, which serves all of them.
    pub fn of_the_daemon(paths: &Paths) -> Self {
        let unicode = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self {
            paths: paths.clone(),
            folder: None,
            variables: std::env::vars_os().filter_map(unicode).collect(),
            overrides: Vec::new(),
            config_sh: config_sh(),
        }
    }

    /// The sources of a command in `folder`, with the project that the folder belongs to.
    pub fn of_a_folder(paths: &Paths, folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        let config_sh = Some(folder.join("config.sh"));
        Self { folder: Some(folder), config_sh, ..Self::of_the_daemon(paths) }
    }

    /// The files of machine and user, the earlier one first.
    fn files_before_the_project(&self) -> [&PathBuf; 2] {
        [&self.paths.config_machine, &self.paths.config_user]
    }

    /// The same without anything that a file or a variable configures. Variables are still there for references.
    #[must_use]
    pub fn without_files(mut self) -> Self {
        self.paths.config_machine = PathBuf::new();
        self.paths.config_user = PathBuf::new();
        self.variables.retain(|name, _| !name.starts_with("DESKBELL_"));
        Self { folder: None, config_sh: None, ..self }
    }

    /// The same with the profile that `--profile` names.
    #[must_use]
    pub fn with_profile(self, profile: Option<&str>) -> Self {
        match profile {
            Some(profile) => self.with_override("--profile", "mcp.profile", profile),
            None => self,
        }
    }

    /// The same with an option that a flag sets.
    #[must_use]
    pub fn with_override(mut self, flag: &str, key: &str, value: impl Into<String>) -> Self {
        let (flag, key) = (flag.to_owned(), key.to_owned());
        self.overrides.push(Override { flag, key, value: value.into() });
        self
    }
}

/// The `config.sh` that may hold channels: the one beside whoever started the daemon, which itself runs in `/`.
fn config_sh() -> Option<PathBuf> {
    std::env::var_os(CONFIG_SH)
        .map(PathBuf::from)
        .or_else(|| std::env::current_dir().ok().map(|folder| folder.join("config.sh")))
}

/// A configuration with what is known of its making.
#[derive(Clone)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// The files that were looked at, in order.
    pub files: Vec<FileSeen>,
    /// What is to be said about it.
    pub findings: Vec<Finding>,
    /// Every file whose change changes the configuration, there or not.
    pub watched: BTreeSet<PathBuf>,
    /// All layers on top of each other, as they were written.
    pub(super) tree: Node,
}

impl Loaded {
    /// The same, unless something is so wrong that it must not be used.
    pub(super) fn usable(self) -> Result<Self, ConfigErrors> {
        let is_fatal = |finding: &Finding| finding.severity == Severity::Fatal;
        if self.findings.iter().any(is_fatal) {
            return Err(ConfigErrors(self.findings.into_iter().filter(is_fatal).collect()));
        }
        Ok(self)
    }
}

/// A file that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSeen {
    /// The file.
    pub path: PathBuf,
    /// What became of it.
    pub state: FileState,
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// It was read.
    Read,
    /// A project's file of which only routes are read, and these only add, because the user does not trust it.
    Limited,
    /// It is not there.
    Absent,
    /// Something is wrong with it, and nothing of it is used.
    LeftOut,
}

impl FileState {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Limited => "read for routes that only add, because it is not trusted",
            Self::Absent => "not there",
            Self::LeftOut => "left out",
        }
    }
}

/// Reads the configuration.
///
/// # Errors
/// Names everything that is wrong. What is wrong with single channels is no error: they are left out.
pub fn load(sources: &Sources) -> Result<Loaded, ConfigErrors> {
    examine(sources).usable()
}

/// Reads as much of the configuration as can be read.
pub(super) fn examine(sources: &Sources) -> Loaded {
    let mut layers = Layers::of(sources);
    let imports = layers.tree.as_table().is_none_or(|table| !table.contains_key("channels"));
    if sources.folder.is_none() {
        layers.trusted_channels(&sources.paths);
    }
    let Layers { tree, files, mut findings, mut watched, .. } = layers;

    let mut options = tree.clone();
    let channels = options.take("channels");
    let file: File = read(options, &[], &mut findings);
    let imported = imports.then(|| import(sources, &file, &mut watched));
    let mut parts = resolve::Parts {
        tree: &tree,
        sources,
        findings,
        secrets: super::secrets::Secrets::new(&sources.variables),
    };
    let mut config = parts.config(file, channels, imported);
    parts.warn_of_clear_secrets();
    watched.extend(parts.secrets.files);
    let findings = parts.findings;
    config.problems = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Problem)
        .map(Problem::from)
        .collect();
    Loaded { config, files, findings, watched, tree }
}

/// What the project of a folder chooses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The project's file.
    pub file: PathBuf,
    /// The routes that it has; `None` leaves the user's as they are.
    pub routes: Option<Vec<Route>>,
    /// Whether they take the place of the user's. Those of a file that the user does not trust add to the user's.
    pub is_trusted: bool,
}

/// What the project that `sources` has a folder of chooses, or `None` where there is no project. Secrets are not looked
/// for, so this is quick.
///
/// # Errors
/// Names what is wrong with a project's file of which nothing is used.
pub fn project(sources: &Sources) -> Result<Option<Project>, ConfigErrors> {
    let Layers { mut tree, files, mut findings, added_routes, .. } = Layers::of(sources);
    let Some(FileSeen { path, state }) = files.get(sources.files_before_the_project().len()) else {
        return Ok(None);
    };
    let of_the_project = Source::File(path.clone());
    if *state == FileState::LeftOut {
        findings.retain(|finding| *finding.place.source == of_the_project);
        return Err(ConfigErrors(findings));
    }
    let routes = tree.take("routes").filter(|routes| *routes.place.source == of_the_project);
    let routes = added_routes.or(routes).map(|routes| {
        let mut choices = Node::table(tree.place.clone());
        choices.put(&["routes".to_owned()], routes);
        let choices: File = read(choices, &[], &mut findings);
        choices.routes.into_iter().map(Route::from).collect()
    });
    let (file, is_trusted) = (trust::canonical(path), *state == FileState::Read);
    Ok(Some(Project { file, routes, is_trusted }))
}

/// The channels of mcp-push's variables and of its `config.sh`, which is a project's file like any other: it is read
/// where the profile is mcp-push's, whose contract it is (row 111), or where the user trusts it.
fn import(sources: &Sources, file: &File, watched: &mut BTreeSet<PathBuf>) -> mcp_push::Imported {
    let is_asked_for = matches!(file.mcp.profile, Some(super::file::Profile::McpPush))
        || sources.variables.contains_key(CONFIG_SH);
    let script = sources.config_sh.as_ref().and_then(|path| {
        watched.insert(path.clone());
        let text = read_file(path, FILE_LIMIT).ok()?;
        let is_trusted = || trust::is_trusted(&sources.paths, path, &text);
        (is_asked_for || is_trusted()).then_some((path.as_path(), text))
    });
    let script = script.as_ref().map(|(path, text)| (*path, text.as_str()));
    mcp_push::import(&sources.variables, script)
}

/// The layers so far.
struct Layers {
    tree: Node,
    files: Vec<FileSeen>,
    findings: Vec<Finding>,
    watched: BTreeSet<PathBuf>,
    /// The routes of a project that the user does not trust, which must not take the place of the user's.
    added_routes: Option<Node>,
}

impl Default for Layers {
    fn default() -> Self {
        Self {
            tree: Node::table(Place::of(Source::BuiltIn)),
            files: Vec::new(),
            findings: Vec::new(),
            watched: BTreeSet::new(),
            added_routes: None,
        }
    }
}

impl Layers {
    /// All layers of `sources`.
    fn of(sources: &Sources) -> Self {
        let mut layers = Self::default();
        for file in sources.files_before_the_project() {
            layers.file(file);
        }
        layers.named_file(sources);
        if let Some(folder) = &sources.folder {
            layers.project(&sources.paths, folder);
        }
        layers.lay(variables::layer(&sources.variables));
        for flag in &sources.overrides {
            let place = Place::of(Source::Flag(flag.flag.clone()));
            let path: Vec<_> = flag.key.split('.').map(str::to_owned).collect();
            let mut layer = Node::table(place.clone());
            layer.put(&path, Node { value: Value::Text(flag.value.clone()), place });
            layers.lay(layer);
        }
        layers
    }

    /// Lays a file of the machine or the user on top, if it is there.
    fn file(&mut self, path: &Path) {
        self.watched.insert(path.to_owned());
        let source = Arc::new(Source::File(path.to_owned()));
        let state = match read_file(path, FILE_LIMIT) {
            Ok(text) => match tree::parse(&text, &source) {
                Ok(layer) => {
                    self.lay(layer);
                    FileState::Read
                }
                Err(finding) => {
                    self.findings.push(finding);
                    FileState::LeftOut
                }
            },
            Err(error) if is_absent(&error) => FileState::Absent,
            Err(error) => {
                let place = Place { source, position: None };
                self.findings.push(Finding::fatal(place, "", cannot_be_read(&error)));
                FileState::LeftOut
            }
        };
        self.files.push(FileSeen { path: path.to_owned(), state });
    }

    /// Says so when the file that the user named is not there; it may come later.
    fn named_file(&mut self, sources: &Sources) {
        let is_named =
            sources.variables.get("DESKBELL_CONFIG").is_some_and(|file| !file.is_empty());
        let is_absent = self.files.last().is_some_and(|file| file.state == FileState::Absent);
        if is_named && is_absent {
            let place = Place::of(Source::Variable("DESKBELL_CONFIG".to_owned()));
            self.findings.push(Finding::warning(place, "", "the file that it names is not there"));
        }
    }

    /// Lays the file of the project on top, as far as the user trusts it. Whatever is wrong with it stops nothing: it
    /// comes with the project, not from the user.
    fn project(&mut self, paths: &Paths, folder: &Path) {
        self.watched.insert(paths.trusted());
        self.watched.insert(folder.join(PROJECT_FILE));
        let Some(path) = trust::find(folder) else {
            return;
        };
        self.watched.insert(path.clone());
        let source = Arc::new(Source::File(path.clone()));
        let (layer, state, findings) = match read_file(&path, FILE_LIMIT) {
            Ok(text) => trust::layer(paths, &path, &text, &source),
            Err(error) => {
                let place = Place { source, position: None };
                let finding = Finding::problem(place, "", cannot_be_read(&error));
                (None, FileState::LeftOut, vec![finding])
            }
        };
        if let Some(mut layer) = layer {
            if state == FileState::Limited {
                self.added_routes = layer.take("routes");
            }
            self.lay(layer);
        }
        self.findings.extend(findings.into_iter().map(Finding::at_most_a_problem));
        self.files.push(FileSeen { path, state });
    }

    /// Adds the channels of the projects that the user trusts, as far as their names are free; only what is reported from
    /// a project reaches them.
    fn trusted_channels(&mut self, paths: &Paths) {
        self.watched.insert(paths.trusted());
        for (path, text) in trust::trusted_projects(paths) {
            self.watched.insert(path.clone());
            let source = Arc::new(Source::File(path));
            let channels =
                tree::parse(&text, &source).ok().and_then(|mut tree| tree.take("channels"));
            let Some(Value::Table(channels)) = channels.map(|channels| channels.value) else {
                continue;
            };
            for (name, channel) in channels {
                let path = ["channels".to_owned(), name];
                let key = path.clone().map(tree::Step::Key);
                if self.tree.at(&key).is_some() {
                    let (place, key) = (channel.place, tree::shown(&key));
                    let message =
                        "there is a channel of this name already, so the project's is left out";
                    self.findings.push(Finding::problem(place, key, message));
                } else {
                    self.tree.put(&path, channel);
                }
            }
        }
    }

    fn lay(&mut self, layer: Node) {
        // A channel of another kind is another channel: none of the old one's options belong to it.
        let replaced = layer.as_table().and_then(|table| table.get("channels")?.as_table());
        for (name, channel) in replaced.into_iter().flatten() {
            let is_another = channel.as_table().is_some_and(|keys| keys.contains_key("kind"));
            if is_another {
                let path = ["channels", name].map(|key| tree::Step::Key(key.to_owned()));
                self.tree.cut(&path);
            }
        }
        self.tree.overlay(layer);
    }
}

/// Reads a text file of at most `limit` bytes.
///
/// # Errors
/// Refuses what is not a file, because reading a pipe or a device might never end.
pub(crate) fn read_file(path: &Path, limit: u64) -> io::Result<String> {
    let metadata = fs::metadata(path)?;
    if path == Path::new("/dev/null") {
        return Ok(String::new());
    }
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut text = String::new();
    OpenFile::open(path)?.take(limit + 1).read_to_string(&mut text)?;
    if text.len() as u64 > limit {
        return Err(io::Error::other(format!("it is larger than {limit} bytes")));
    }
    Ok(text)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn cannot_be_read(error: &io::Error) -> String {
    format!("this file cannot be read: {error}")
}
