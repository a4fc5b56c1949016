//! Prompts: texts that a person hands to an agent, from the program itself, the user's folder and a trusted project's.
//!
//! A prompt is a template. What it notifies of while it is rendered is given back with its text; whoever asked for it
//! reports that, as it reports everything else.

mod built_in;
mod folder;
mod front;
mod scan;
mod template;

use std::{
    collections::BTreeMap,
    fmt, iter,
    path::{Path, PathBuf},
};

use deskbell_core::{Context, Invalid, Level, field::nearest, text};

pub use self::built_in::{INSTRUCTIONS, INSTRUCTIONS_ZH};
use self::{
    scan::{Scanned, Wrong},
    template::{Given, VALUE_LIMIT},
};
use crate::config::load::{self, Sources};

/// The folder of prompts beside the user's configuration file.
pub const USER_FOLDER: &str = "prompts";

/// The folder of prompts beside a project's configuration file.
pub const PROJECT_FOLDER: &str = ".deskbell/prompts";

/// The largest value of an argument, in bytes.
const ARGUMENT_LIMIT: usize = 64 * 1024;

const _: () = assert!(ARGUMENT_LIMIT <= VALUE_LIMIT, "an argument is a value like any other");

/// A prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// What it is called.
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What it is filled in with.
    pub arguments: Vec<Argument>,
    /// Where it comes from.
    pub origin: Origin,
    /// The template.
    text: String,
    /// How many lines of the file stand before the template.
    lines_before: usize,
}

/// What a prompt is filled in with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Argument {
    /// Its name in the template.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// Whether the prompt is not rendered without it.
    pub required: bool,
    /// What it is where nobody says.
    pub default: Option<String>,
    /// What it may well be, for completion.
    pub values: Vec<String>,
    /// Whether it is always a text, also where it writes a number.
    pub is_text: bool,
}

/// Where a prompt comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The program.
    BuiltIn,
    /// A file of the user's.
    User(PathBuf),
    /// A file of the project's.
    Project(PathBuf),
}

impl Origin {
    /// The word for it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::BuiltIn => "built in",
            Self::User(_) => "user",
            Self::Project(_) => "project",
        }
    }

    /// The file, if there is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::BuiltIn => None,
            Self::User(file) | Self::Project(file) => Some(file),
        }
    }
}

/// A prompt that was filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// The text.
    pub text: String,
    /// What it notified of, in order.
    pub notices: Vec<Notice>,
}

/// Something that a prompt notifies of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What is said.
    pub message: String,
    /// How serious it is.
    pub level: Level,
    /// Its category.
    pub context: Context,
    /// Its headline.
    pub title: Option<String>,
    /// A web address that belongs to it.
    pub link: Option<String>,
}

/// What is wrong with a prompt's file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// The file, or the name of a prompt that has none.
    pub file: PathBuf,
    /// Line and column, from 1.
    pub place: Option<(usize, usize)>,
    /// What is wrong.
    pub message: String,
}

impl Flaw {
    /// The same with the file's name alone, for whoever need not know the folders of this machine.
    #[must_use]
    pub fn without_folder(mut self) -> Self {
        if let Some(name) = self.file.file_name() {
            self.file = name.into();
        }
        self
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::one_line(&self.file.display().to_string()))?;
        if let Some((line, column)) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", text::one_line(&self.message))
    }
}

/// Why a prompt is not rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// An argument is wrong.
    #[error(transparent)]
    Argument(#[from] Invalid),
    /// The prompt is.
    #[error("{0}")]
    Prompt(Flaw),
}

/// The prompts that there are, by name.
#[derive(Debug, Default)]
pub struct Found {
    /// The prompts, by name.
    pub prompts: Vec<Prompt>,
    /// What is wrong with files that hold none.
    pub flaws: Vec<Flaw>,
}

impl Found {
    /// The prompt of this name.
    pub fn find(&self, name: &str) -> Option<&Prompt> {
        self.prompts.iter().find(|prompt| prompt.name == name)
    }
}

/// The prompts of this user.
#[derive(Debug, Clone)]
pub struct Prompts {
    sources: Sources,
}

impl Prompts {
    /// Prompts beside the configuration that is read from `sources`.
    pub const fn new(sources: Sources) -> Self {
        Self { sources }
    }

    /// The prompts in `folder`, the user's and the program's. Of a project that is not trusted nothing is read.
    ///
    /// It reads files.
    pub fn of(&self, folder: Option<&Path>) -> Found {
        let mut found = Found::default();
        let mut by_name: BTreeMap<String, Prompt> = BTreeMap::new();
        let user = self.sources.paths.config_user.parent().map(|parent| parent.join(USER_FOLDER));
        let of_user = user.map(|folder| folder::read(&folder, None, Origin::User));
        let project = folder.and_then(|folder| self.project(folder));
        let of_project = project.map(|project| {
            folder::read(&project.join(PROJECT_FOLDER), Some(&project), Origin::Project)
        });
        // The first of a name counts: a project takes nothing away from its user.
        for (prompts, flaws) in of_user.into_iter().chain(of_project) {
            found.flaws.extend(flaws);
            for prompt in prompts {
                let taken = by_name.get(&prompt.name).map(|other| other.origin.clone());
                match taken {
                    None => drop(by_name.insert(prompt.name.clone(), prompt)),
                    Some(other) => found.flaws.push(prompt.doubled(&other)),
                }
            }
        }
        for prompt in built_in::prompts() {
            match by_name.get(&prompt.name) {
                None => drop(by_name.insert(prompt.name.clone(), prompt)),
                Some(other) if matches!(other.origin, Origin::Project(_)) => {
                    found.flaws.push(other.doubled(&Origin::BuiltIn));
                    by_name.insert(prompt.name.clone(), prompt);
                }
                Some(_) => {}
            }
        }
        found.prompts = by_name.into_values().collect();
        found
    }

    /// The folder of the project that `folder` belongs to, if the user trusts it.
    fn project(&self, folder: &Path) -> Option<PathBuf> {
        let sources = Sources { folder: Some(folder.to_owned()), ..self.sources.clone() };
        let project =
            load::project(&sources).ok().flatten().filter(|project| project.is_trusted)?;
        project.file.parent().map(Path::to_owned)
    }
}

impl Prompt {
    /// Fills it in.
    ///
    /// It may take a while, and works without a pause: not for a thread that others wait for.
    ///
    /// # Errors
    /// Says which argument is wrong, or where the prompt is.
    pub fn render(&self, given: &BTreeMap<String, String>) -> Result<Rendered, RenderError> {
        let known: Vec<&str> =
            self.arguments.iter().map(|argument| argument.name.as_str()).collect();
        for (name, value) in given {
            if !known.contains(&name.as_str()) {
                return Err(unknown(name, value, &known).into());
            }
            if value.len() > ARGUMENT_LIMIT {
                let expected = format!("at most {ARGUMENT_LIMIT} bytes");
                return Err(Invalid::value(name, "too long", expected).into());
            }
        }
        let mut variables = Vec::new();
        for argument in &self.arguments {
            let value = given.get(&argument.name).or(argument.default.as_ref());
            if argument.required && value.is_none() {
                let expected = argument.description.clone().unwrap_or_else(|| "a text".to_owned());
                return Err(Invalid::value(&argument.name, "missing", expected).into());
            }
            let value = match value {
                None => Given::Nothing,
                Some(value) if argument.is_text => Given::Text(value.clone()),
                Some(value) => Given::Written(value.clone()),
            };
            variables.push((argument.name.as_str(), value));
        }
        let flaw = |wrong: Wrong| RenderError::Prompt(self.flaw(&wrong));
        let scanned = Scanned::of(&self.text).map_err(flaw)?;
        let (text, notices) = template::render(&scanned, variables).map_err(flaw)?;
        Ok(Rendered { text: text.trim().to_owned(), notices: notices.0 })
    }

    /// What completes `begun` as a value of an argument; `None` where there is no such argument.
    pub fn complete(&self, argument: &str, begun: &str) -> Option<Vec<&str>> {
        let argument = self.arguments.iter().find(|known| known.name == argument)?;
        let begun = begun.to_lowercase();
        let fits = |value: &&str| value.to_lowercase().starts_with(&begun);
        Some(argument.values.iter().map(String::as_str).filter(fits).collect())
    }

    /// Where in the file something is wrong.
    fn flaw(&self, wrong: &Wrong) -> Flaw {
        let before = self.text.get(..wrong.at).unwrap_or_default();
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
        Flaw {
            file: self.shown_file(),
            place: Some((self.lines_before + line + 1, column + 1)),
            message: wrong.message.clone(),
        }
    }

    /// What is said of it when there is another of its name.
    fn doubled(&self, other: &Origin) -> Flaw {
        let other = match other.file() {
            None => "one that is built in".to_owned(),
            Some(file) => file.display().to_string(),
        };
        let message = format!("it is left out: `{}` is the name of {other}", self.name);
        Flaw { file: self.shown_file(), place: None, message }
    }

    fn shown_file(&self) -> PathBuf {
        self.origin.file().map_or_else(|| self.name.clone().into(), Path::to_owned)
    }
}

/// Says that there is no such argument, and which there are.
fn unknown(name: &str, value: &str, known: &[&str]) -> Invalid {
    let name = text::one_line(name).into_owned();
    let expected = match (nearest(&name, known.iter().copied()), known) {
        (Some(near), _) => format!("no such argument; did you mean `{near}`?"),
        (None, []) => "no argument at all".to_owned(),
        (None, known) => {
            let names: Vec<_> = known.iter().map(|name| format!("`{name}`")).collect();
            format!("one of the arguments {}", names.join(", "))
        }
    };
    Invalid::text(&name, value, expected)
}

/// The arguments that a template has where its file says nothing of them: each variable that it uses and does not set.
fn arguments_of(scanned: &Scanned) -> Vec<Argument> {
    let argument = |name: &String| Argument { name: name.clone(), ..Argument::default() };
    scanned.variables.iter().map(argument).collect()
}

/// The first heading or line of a template that is text, for prompts whose file says nothing of what they are for.
fn first_line(template: &str) -> Option<String> {
    let is_text = |line: &&str| !line.is_empty() && !line.contains("{{") && !line.contains("{%");
    let line =
        template.lines().map(|line| line.trim().trim_start_matches('#').trim()).find(is_text)?;
    let cut = text::cut(&text::one_line(line), DESCRIPTION, text::Unit::Characters);
    Some(cut).filter(|line| !line.is_empty())
}

/// The longest description that is made of a template, in characters.
const DESCRIPTION: usize = 120;

/// The lines of `text` before its byte `at`.
fn lines_before(text: &str, at: usize) -> usize {
    iter::once(text.get(..at).unwrap_or_default()).flat_map(|before| before.matches('\n')).count()
}

#[cfg(test)]
mod tests;
