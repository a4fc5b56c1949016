//! Whether a configuration is right, for `deskbell config check`.

use std::fmt;

use deskbell_channels::Channel;
use deskbell_core::ChannelName;
use serde_json::{Value, json};

use super::{
    finding::{Finding, Severity},
    load::{FileSeen, Loaded, Sources, examine},
    tree::{self, Place, Step},
};

/// What was found.
#[derive(Debug, Clone)]
pub struct Report {
    /// The files that were looked at, in order.
    pub files: Vec<FileSeen>,
    /// What is to be said, the most serious first.
    pub findings: Vec<Finding>,
    /// The channels that work, by name, with their kind.
    pub channels: Vec<(String, String)>,
    /// How many routes there are.
    pub routes: usize,
}

/// Reads the configuration and builds every channel, without sending anything.
pub fn check(sources: &Sources) -> Report {
    look(sources, |_| None)
}

/// The same, and warns of channels whose messages nobody would see if this process sent them.
pub fn check_from_here(sources: &Sources) -> Report {
    look(sources, |channel| channel.unseen())
}

fn look(sources: &Sources, unseen: fn(&dyn Channel) -> Option<String>) -> Report {
    let loaded = examine(sources);
    let mut findings = loaded.findings.clone();
    let mut channels = Vec::new();
    for (name, channel) in &loaded.config.channels {
        let Some(kind) = deskbell_channels::kind(&channel.kind) else {
            continue;
        };
        match kind.build(channel.options.clone()) {
            Ok(built) => {
                channels.push((name.to_string(), channel.kind.clone()));
                findings.extend(unseen(&*built).map(|reason| {
                    let message = format!("nobody would see its messages: {reason}");
                    Finding::warning(place(&loaded, name, &reason), key(name), message)
                }));
            }
            Err(error) => {
                let message = error.to_string();
                findings.push(Finding::problem(place(&loaded, name, &message), key(name), message));
            }
        }
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Report { files: loaded.files, findings, channels, routes: loaded.config.routes.len() }
}

fn key(name: &ChannelName) -> String {
    format!("channels.{name}")
}

/// Where the option stands that `message` of a channel's kind names first, else where the channel does.
fn place(loaded: &Loaded, name: &ChannelName, message: &str) -> Place {
    let option = message.split('`').nth(1).unwrap_or_default();
    let way =
        |keys: &[&str]| keys.iter().map(|key| Step::Key((*key).to_owned())).collect::<Vec<_>>();
    let name = name.as_str();
    let paths = [way(&["channels", name, option]), way(&["channels", name])];
    let place = paths.iter().find_map(|path| loaded.tree.at(path)).map(|node| node.place.clone());
    place.unwrap_or_else(|| Place::of(tree::Source::BuiltIn))
}

impl Report {
    /// Whether there is nothing wrong. Warnings are not wrong.
    pub fn is_right(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity == Severity::Warning)
    }

    /// How many channels and routes there are, in words.
    pub fn size(&self) -> String {
        let counted = |count: usize, noun: &str| match count {
            1 => format!("1 {noun}"),
            count => format!("{count} {noun}s"),
        };
        format!("{}, {}", counted(self.channels.len(), "channel"), counted(self.routes, "route"))
    }

    /// The report for programs.
    pub fn to_json(&self) -> Value {
        let findings = self.findings.iter().map(|finding| {
            let position = finding.place.position;
            json!({
                "severity": finding.severity.as_str(),
                "source": finding.place.source.to_string(),
                "line": position.map(|(line, _)| line),
                "column": position.map(|(_, column)| column),
                "key": (!finding.key.is_empty()).then_some(&finding.key),
                "message": finding.message,
                "hint": finding.hint,
            })
        });
        let files = self.files.iter().map(
            |file| json!({ "path": file.path.display().to_string(), "state": file.state.as_str() }),
        );
        let channels =
            self.channels.iter().map(|(name, kind)| json!({ "name": name, "kind": kind }));
        json!({
            "is_right": self.is_right(),
            "files": files.collect::<Vec<_>>(),
            "findings": findings.collect::<Vec<_>>(),
            "channels": channels.collect::<Vec<_>>(),
            "routes": self.routes,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for file in &self.files {
            writeln!(f, "{}: {}", tree::Source::File(file.path.clone()), file.state.as_str())?;
        }
        for finding in &self.findings {
            writeln!(f, "{}: {finding}", finding.severity.as_str())?;
            if let Some(hint) = &finding.hint {
                writeln!(f, "  hint: {hint}")?;
            }
        }
        let verdict = match (self.is_right(), self.findings.is_empty()) {
            (false, _) => "something is wrong",
            (true, false) => "nothing is wrong beside what the warnings say",
            (true, true) => "the configuration is right",
        };
        writeln!(f, "{verdict}: {}", self.size())
    }
}
