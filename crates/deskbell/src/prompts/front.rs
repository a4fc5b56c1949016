//! What a prompt's file says of itself, in YAML between two lines of `---` at its head.

use std::path::Path;

use super::{Argument, Flaw, Origin, Prompt, Scanned, arguments_of, first_line, lines_before};
use crate::config::import::yaml::{self, NoYaml, Yaml};

/// How many arguments a prompt may have.
const ARGUMENTS_LIMIT: usize = 32;

/// The prompt that is written as `source`.
pub(super) fn read(name: &str, origin: Origin, source: &str) -> Result<Prompt, Flaw> {
    let file = origin.file().unwrap_or(Path::new(name)).to_owned();
    let flaw = |line: Option<usize>, message: String| Flaw {
        file: file.clone(),
        place: line.map(|line| (line, 1)),
        message,
    };
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    let (front, text) = split(source).ok_or_else(|| {
        flaw(Some(1), "the head that begins here is never closed with a line of `---`".to_owned())
    })?;
    let front = match front {
        None => Yaml::Null,
        Some(front) => yaml::parse(front).map_err(|NoYaml { line, reason }| {
            flaw(line.map(|line| line + 1), format!("the head cannot be read: {reason}"))
        })?,
    };
    let field = |name: &str| text_of(front.get(name)).filter(|text| !text.is_empty());
    let mut prompt = Prompt {
        name: name.to_owned(),
        title: field("title"),
        description: field("description").or_else(|| first_line(text)),
        arguments: Vec::new(),
        origin,
        text: text.to_owned(),
        lines_before: lines_before(source, source.len() - text.len()),
    };
    let scanned = Scanned::of(text).map_err(|wrong| prompt.flaw(&wrong))?;
    prompt.arguments = match front.get("arguments") {
        None | Some(Yaml::Null) => arguments_of(&scanned),
        Some(list) => {
            arguments(list).map_err(|(line, message)| flaw(line.map(|line| line + 1), message))?
        }
    };
    if prompt.arguments.len() > ARGUMENTS_LIMIT {
        return Err(flaw(None, format!("it has more than {ARGUMENTS_LIMIT} arguments")));
    }
    Ok(prompt)
}

/// The head, if there is one, and the template; `None` if the head has no end.
fn split(source: &str) -> Option<(Option<&str>, &str)> {
    let opens = |line: &str| line.trim_end() == "---";
    let mut lines = source.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| opens(line)) else { return Some((None, source)) };
    let mut at = first.len();
    for line in lines {
        if opens(line) {
            return Some((source.get(first.len()..at), source.get(at + line.len()..)?));
        }
        at += line.len();
    }
    None
}

fn text_of(value: Option<&Yaml>) -> Option<String> {
    match value? {
        Yaml::Text(text) => Some(text.trim().to_owned()),
        _ => None,
    }
}

/// What is wrong, with its line in the head.
type WrongLine = (Option<usize>, String);

fn arguments(list: &Yaml) -> Result<Vec<Argument>, WrongLine> {
    let Yaml::List(items) = list else {
        return Err((None, "`arguments` is no list".to_owned()));
    };
    let mut arguments: Vec<Argument> = Vec::new();
    for (line, item) in items {
        let argument = argument(item).map_err(|message| (Some(*line), message))?;
        if arguments.iter().any(|known| known.name == argument.name) {
            return Err((Some(*line), format!("there are two arguments `{}`", argument.name)));
        }
        arguments.push(argument);
    }
    Ok(arguments)
}

fn argument(item: &Yaml) -> Result<Argument, String> {
    if let Yaml::Text(name) = item {
        return Ok(Argument { name: named(name)?, ..Argument::default() });
    }
    let name = text_of(item.get("name")).ok_or("an argument has no `name`")?;
    let required = match text_of(item.get("required")).as_deref() {
        None | Some("false" | "no") => false,
        Some("true" | "yes") => true,
        Some(_) => {
            return Err(format!("`required` of the argument `{name}` is neither true nor false"));
        }
    };
    let values = match item.get("values").or_else(|| item.get("choices")) {
        Some(Yaml::List(values)) => {
            values.iter().filter_map(|(_, value)| text_of(Some(value))).collect()
        }
        _ => Vec::new(),
    };
    Ok(Argument {
        name: named(&name)?,
        description: text_of(item.get("description")),
        required,
        default: text_of(item.get("default")),
        values,
        is_text: text_of(item.get("type")).is_some_and(|kind| kind == "string"),
    })
}

/// The name of an argument, which a template can write.
fn named(name: &str) -> Result<String, String> {
    let is_first = |it: char| it.is_ascii_alphabetic() || it == '_';
    let is_further = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
    if name.len() <= 64 && name.starts_with(is_first) && name.chars().all(is_further) {
        return Ok(name.to_owned());
    }
    Err("the name of an argument is not right; expected letters, digits, `_` and `-`, at most 64"
        .to_owned())
}
