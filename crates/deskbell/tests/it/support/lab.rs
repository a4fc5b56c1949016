//! `deskbell lab` as a program of its own.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say where"
)]

use std::{
    fmt::Write as _,
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
    thread,
};

use deskbell_channels::kind;
use serde_json::Value;

use super::Desk;

/// The lab. It ends with its value.
pub(crate) struct Lab {
    child: Child,
    /// Where it listens.
    pub(crate) url: String,
    /// The channels that lead there.
    page: toml::Table,
}

impl Lab {
    pub(crate) fn start(desk: &Desk) -> Self {
        Self::start_at(desk, 0)
    }

    /// A lab at `port`; 0 takes one that is free.
    pub(crate) fn start_at(desk: &Desk, port: u16) -> Self {
        let mut command = desk.command(&["lab", "--port", &port.to_string()]);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut page = String::new();
        for line in lines.by_ref().map_while(Result::ok) {
            page.extend([line.as_str(), "\n"]);
            if line.starts_with("# Not in the lab") {
                break;
            }
        }
        let line = said.next().unwrap().unwrap();
        let url = line.strip_prefix("the lab listens on ").unwrap().to_owned();
        thread::spawn(move || lines.for_each(drop));
        let page = page.parse().unwrap_or_else(|error| panic!("{error} in {page}"));
        Self { child, url, page }
    }

    pub(crate) fn port(&self) -> u16 {
        self.url.rsplit(':').next().unwrap().parse().unwrap()
    }

    /// The kinds that have a fake.
    pub(crate) fn kinds(&self) -> Vec<&'static str> {
        let channels = self.page["channels"].as_table().unwrap().values();
        channels
            .map(|channel| kind(channel["kind"].as_str().unwrap()).unwrap().about.name)
            .collect()
    }

    /// The channels of `kinds` as the lab has printed them, called `lab-KIND`.
    pub(crate) fn channels(&self, kinds: &[&str]) -> String {
        let mut page = String::new();
        for name in kinds.iter().map(|kind| format!("lab-{kind}")) {
            let channel = self.page["channels"][&name].clone();
            let channel = toml::Table::from_iter([(name, channel)]);
            let channels = toml::Table::from_iter([("channels".to_owned(), channel.into())]);
            writeln!(page, "{channels}").unwrap();
        }
        page
    }

    /// The same, whose fakes meet with `mishap`.
    pub(crate) fn channels_with(&self, mishap: &str, kinds: &[&str]) -> String {
        self.channels(kinds).replace(&format!("{}/", self.url), &format!("{}/{mishap}/", self.url))
    }

    /// What arrived, in order.
    pub(crate) fn messages(&self) -> Vec<Value> {
        let mut answer = ureq::get(&self.url).call().unwrap();
        let body = answer.body_mut().with_config().limit(1_000_000_000).read_to_string().unwrap();
        let list: Value = serde_json::from_str(&body).unwrap();
        list["messages"].as_array().unwrap().clone()
    }

    /// The messages that the fake of `kind` holds.
    pub(crate) fn held_by(&self, kind: &str) -> Vec<Value> {
        let is_held = |seen: &Value| seen["kind"] == kind && seen["taken"] == true;
        self.messages().into_iter().filter(is_held).collect()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
