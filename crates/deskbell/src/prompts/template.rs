//! Templates in Liquid: parsed, rendered within bounds, and what they notify of on the way.
//!
//! Only this module and those below know the crates that read Liquid. A template has no way to another file.

mod language;
mod limits;
mod notify;

use std::thread;

use liquid_core::{
    Error, Object, Renderable as _, Template as Elements, Value,
    model::KString,
    parser,
    runtime::{Runtime as _, RuntimeBuilder},
};

use self::limits::{Bounded, Watched};
pub(super) use self::{limits::VALUE_LIMIT, notify::Notices};
use super::scan::{Scanned, Wrong};

/// The stack of the thread that renders: the parser and its elements call themselves, and a stack that is full ends the
/// program.
const STACK: usize = 16 * 1024 * 1024;

/// What a variable is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Given {
    /// Nothing.
    Nothing,
    /// A text, as it is.
    Text(String),
    /// A text that counts as the number or the truth that it writes.
    Written(String),
}

impl Given {
    /// What was written stays the same when it is written again: `007` and `1.50` are no numbers.
    fn value(&self) -> Value {
        match self {
            Self::Nothing => Value::Nil,
            Self::Text(text) => Value::scalar(text.clone()),
            Self::Written(text) => {
                let number = text.parse::<i64>().ok().filter(|number| number.to_string() == *text);
                let fraction = text.parse::<f64>().ok().filter(|it| it.to_string() == *text);
                match (text.as_str(), number, fraction) {
                    ("true", ..) => Value::scalar(true),
                    ("false", ..) => Value::scalar(false),
                    (_, Some(number), _) => Value::scalar(number),
                    (_, None, Some(fraction)) => Value::scalar(fraction),
                    _ => Value::scalar(text.clone()),
                }
            }
        }
    }
}

/// Renders what was scanned with `variables`, and gives the text and what was notified of.
///
/// It blocks, for as long as [`limits::TIME_LIMIT`].
pub(super) fn render<'a>(
    scanned: &Scanned,
    variables: impl IntoIterator<Item = (&'a str, Given)>,
) -> Result<(String, Notices), Wrong> {
    let variables: Object = variables
        .into_iter()
        .map(|(name, given)| (KString::from_ref(name), given.value()))
        .collect();
    let wrong = |reason: &str| Wrong {
        at: 0,
        message: format!("the template cannot be rendered; {reason}"),
    };
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("prompt".to_owned()).stack_size(STACK);
        let rendering = builder
            .spawn_scoped(scope, || carry_out(scanned, &variables))
            .map_err(|error| wrong(&format!("there is no thread for it: {error}")))?;
        // The crate panics at some of what it calls impossible.
        rendering.join().unwrap_or_else(|_| Err(wrong("its parser gave up")))
    })
}

fn carry_out(scanned: &Scanned, variables: &Object) -> Result<(String, Notices), Wrong> {
    let wrong = |error: &Error| explain(error, scanned);
    let elements =
        parser::parse(&scanned.text, language::language()).map_err(|error| wrong(&error))?;
    let runtime = RuntimeBuilder::new().set_globals(variables).build();
    let watched = Watched::new(&runtime, &scanned.range_ends);
    let mut text = Bounded::new();
    let rendered = Elements::new(elements).render_to(&mut text, &watched);
    if let Some(reason) = watched.reason().or(text.reason()) {
        return Err(Wrong { at: 0, message: reason });
    }
    rendered.map_err(|error| wrong(&error))?;
    let notices = std::mem::take(&mut *runtime.registers().get_mut::<Notices>());
    Ok((text.into_text(), notices))
}

/// What an error of the crate says, in one sentence and with its place.
fn explain(error: &Error, scanned: &Scanned) -> Wrong {
    let told = error.to_string();
    let context = |key: &str| {
        told.lines()
            .find_map(|line| line.trim_start().strip_prefix(key)?.strip_prefix('='))
            .map(str::trim)
    };
    let first = told.lines().next().unwrap_or_default();
    let first = first.strip_prefix("liquid:").unwrap_or(first).trim();
    if let Some(place) = context(notify::PLACE).or(first.strip_prefix("-->"))
        && let Some(at) = offset(&scanned.text, place)
    {
        // The sentence stands below the excerpt that points at it.
        let sentence = told.lines().find_map(|line| line.trim_start().strip_prefix("= "));
        return Wrong { at, message: sentence.unwrap_or(first).to_owned() };
    }
    let (variable, index) = (context("requested variable"), context("requested index"));
    let filter = context("requested filter");
    let of = context("variable");
    let message = match (variable, index, filter) {
        (_, Some(index), _) => format!("there is no `{index}` in `{}`", of.unwrap_or("it")),
        (Some(variable), ..) => format!("there is no variable `{variable}`"),
        (.., Some(filter)) => format!("there is no filter `{filter}`"),
        _ => first.to_owned(),
    };
    let named = || context("filter")?.split([':', ' ']).next();
    let words = [index, variable, filter, named(), of].into_iter().flatten();
    let at = words.into_iter().find_map(|word| scanned.place(word));
    Wrong { at: at.unwrap_or_default(), message }
}

/// The offset in `text` of what is written as `LINE:COLUMN`, both from 1.
fn offset(text: &str, place: &str) -> Option<usize> {
    let (line, column) = place.trim().split_once(':')?;
    let (line, column): (usize, usize) = (line.parse().ok()?, column.parse().ok()?);
    let start: usize = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let before = text.get(start..)?.chars().take(column.checked_sub(1)?);
    Some(start + before.map(char::len_utf8).sum::<usize>())
}
