//! The documents that describe the configuration say what the program does.

use std::{collections::BTreeSet, fmt::Write as _};

use deskbell::config::{self, Config};
use serde_json::Value;

use super::Trial;
use crate::tree;

const DEFAULT_FILE: &str = "docs/config.default.toml";

#[test]
fn the_default_file_says_what_holds_without_it() {
    let without = Trial::new().config();
    let with = Trial::user(&tree::read(DEFAULT_FILE));
    assert_eq!(with.said(), [""; 0]);
    let with = with.config();
    // Both mean the same profile.
    assert_eq!(with.mcp.profile.as_deref(), Some("unified"));
    let without = Config { mcp: with.mcp.clone(), tracing: with.tracing.clone(), ..without };
    assert_eq!(with, without);
}

#[test]
fn the_examples_in_the_default_file_are_right() {
    // Prose has a space behind its `#`, examples have none.
    let is_prose = |line: &str| line.starts_with("# ");
    let text = tree::read(DEFAULT_FILE);
    let lines = text.lines().filter(|line| !is_prose(line));
    let text: String =
        lines.map(|line| line.strip_prefix('#').unwrap_or(line).to_owned() + "\n").collect();
    let trial = Trial::user(&text)
        .with("laptop.token", "a token of some length")
        .with_variable("NTFY_TOPIC", "t")
        .with_variable("TG_TOKEN", "1:a");
    assert_eq!(trial.said(), [""; 0], "{text}");
    let config = trial.config();
    assert_eq!((config.channels.len(), config.routes.len()), (2, 2));
    assert_eq!((config.tracing.targets.len(), config.serve.tokens.len()), (3, 1));
    assert!(config.serve.listen.is_some() && config.mcp.tool_names.is_some());
}

#[test]
fn the_default_file_has_every_option() {
    let text = tree::read(DEFAULT_FILE);
    let schema = config::schema();
    for (section, options) in sections(&schema) {
        for option in options {
            let is_there = text.lines().any(|line| {
                let line = line.trim_start_matches('#').trim_start_matches("  { ");
                line.strip_prefix(option.as_str())
                    .is_some_and(|rest| rest.trim_start().starts_with('='))
                    || line.contains(&format!(" {option} ="))
                    || line.contains(&format!(".{option}]"))
                    || line.contains(&format!("[{option}"))
                    || option == "url"
            });
            assert!(is_there, "`{option}` of {section} is not in docs/config.default.toml");
        }
    }
}

/// The names of the options, by section.
fn sections(schema: &Value) -> Vec<(String, BTreeSet<String>)> {
    let named = |schema: &Value| {
        schema
            .get("properties")
            .and_then(Value::as_object)
            .map(|options| options.keys().cloned().collect::<BTreeSet<_>>())
    };
    let mut sections = vec![("the top".to_owned(), named(schema).unwrap())];
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        sections.extend(named(definition).map(|options| (name.clone(), options)));
    }
    sections
}

#[test]
fn the_options_in_the_document_are_those_of_the_program() {
    const PATH: &str = "docs/config.md";
    const HEAD: &str = "## Options\n";
    const NOTE: &str = "<!-- Written by `UPDATE_DOCS=1 cargo test --workspace --test it config::` from here on. -->";
    let text = tree::read(PATH);
    let (written, _) = text.split_once(HEAD).unwrap();
    tree::check_document(PATH, &format!("{written}{HEAD}\n{NOTE}\n{}", options()));
}

/// The options as Markdown, section by section.
fn options() -> String {
    let schema = config::schema();
    let mut text = String::new();
    for (head, definition, intro) in [
        ("At the top", None, ""),
        ("`[channels.NAME]`", Some("ChannelTable"), ""),
        ("`[[routes]]`", Some("RouteTable"), ""),
        ("`[quiet]`", Some("QuietTable"), ""),
        ("`[tracing]`", Some("TracingTable"), ""),
        ("A rule of `targets`", Some("TargetTable"), ""),
        ("`[tracing.file]`", Some("LogFileTable"), ""),
        ("`[delivery]`", Some("DeliveryTable"), ""),
        ("`[mcp]`", Some("McpTable"), ""),
        ("`[serve]`", Some("ServeTable"), ""),
    ] {
        let table = match definition {
            None => &schema,
            // The last way to write a channel is the one with the options that all have.
            Some("ChannelTable") => schema
                .pointer("/$defs/ChannelTable/anyOf")
                .unwrap()
                .as_array()
                .unwrap()
                .last()
                .unwrap(),
            Some(name) => &schema["$defs"][name],
        };
        write!(text, "\n### {head}\n\n{intro}| option | default | |\n|---|---|---|\n").unwrap();
        for (name, option) in table["properties"].as_object().unwrap() {
            let default = option.get("default").filter(|default| {
                !default.is_null()
                    && !default.is_object()
                    && default.as_array().is_none_or(|list| !list.is_empty())
            });
            let default = default.map(|default| format!("`{default}`")).unwrap_or_default();
            let doc = option["description"].as_str().unwrap_or_default();
            let doc = doc.replace("\n\n", "\n").replace('\n', " ");
            writeln!(text, "| `{name}` | {default} | {doc} |").unwrap();
        }
    }
    text
}
