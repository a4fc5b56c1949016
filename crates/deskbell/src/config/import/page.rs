//! The TOML of a plan, with what a reader has to know as comments.

use std::fmt::{self, Write as _};

use deskbell_core::text;
use toml::{Table, Value};

use super::plan::{Plan, Planned, TagGroup};

/// The whole page: what is to be set at the top of a file, and what may follow anything.
pub fn page(plan: &Plan) -> String {
    let top = top(plan);
    let between = if top.is_empty() { "" } else { "\n" };
    format!("{top}{between}{}", body(plan))
}

/// The options that stand before every table.
pub(super) fn top(plan: &Plan) -> String {
    if plan.skip_titles.is_empty() {
        return String::new();
    }
    let titles = plan.skip_titles.iter().cloned().map(Value::String).collect();
    Table::from_iter([("skip_titles".to_owned(), Value::Array(titles))]).to_string()
}

/// The channels, with routes for those that share a tag and with what is left out.
pub(super) fn body(plan: &Plan) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _infallible = write_body(&mut page, plan);
    page
}

fn write_body(page: &mut String, plan: &Plan) -> fmt::Result {
    let variables = plan.variables();
    if !variables.is_empty() {
        writeln!(page, "# Set these variables where the daemon is started:")?;
        variables.iter().try_for_each(|variable| writeln!(page, "#   {variable}"))?;
    }
    for channel in &plan.channels {
        let gap = if page.is_empty() { "" } else { "\n" };
        page.push_str(gap);
        write_channel(page, channel)?;
    }
    plan.groups.iter().try_for_each(|group| write_route(page, group))?;
    if !plan.left.is_empty() {
        let gap = if page.is_empty() { "" } else { "\n" };
        writeln!(page, "{gap}# Not taken:")?;
    }
    for left in &plan.left {
        let names = match left.names.as_slice() {
            [] => String::new(),
            names => format!(" ({})", names.join(", ")),
        };
        comment(page, &format!("  {}{names}: {}", left.place, left.reason))?;
    }
    Ok(())
}

fn write_channel(page: &mut String, channel: &Planned) -> fmt::Result {
    comment(page, &format!("From {}.", channel.place))?;
    if !channel.tags.is_empty() {
        comment(page, &format!("Its other tags: {}.", channel.tags.join(", ")))?;
    }
    if !channel.passed_over.is_empty() {
        comment(page, &format!("Means nothing here: {}.", channel.passed_over.join(", ")))?;
    }
    let mut table = channel.table.clone();
    table.remove("kind");
    let name = &channel.name;
    let header = format!("[channels.{name}]\nkind = {}\n", Value::String(channel.kind.clone()));
    let nested = Table::from_iter([(name.to_string(), Value::Table(table))]);
    let nested = Table::from_iter([("channels".to_owned(), Value::Table(nested))]).to_string();
    // What is not in tables of its own comes first, below the header that is written here already.
    let rest = nested.strip_prefix(&format!("[channels.{name}]\n")).unwrap_or(&nested);
    let gap = if rest.starts_with('[') { "\n" } else { "" };
    write!(page, "{header}{gap}{rest}")
}

fn write_route(page: &mut String, group: &TagGroup) -> fmt::Result {
    let channels = group.channels.iter().map(|name| Value::String(name.to_string())).collect();
    writeln!(page)?;
    comment(page, &format!("All channels with the tag {}:", group.tag))?;
    writeln!(page, "# [[routes]]")?;
    comment(page, &format!("context = {}", Value::String(group.tag.to_ascii_lowercase())))?;
    comment(page, &format!("channels = {}", Value::Array(channels)))
}

/// Writes a line that is none of the configuration's, whatever stands in it.
fn comment(page: &mut String, line: &str) -> fmt::Result {
    writeln!(page, "# {}", text::one_line(line))
}
