//! `deskbell lab` as a program of its own, and the way to those of its fakes whose channels send to the service only.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say where"
)]

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
    thread,
};

use deskbell_channels::kind;
use serde_json::Value;

use super::{Desk, StandIn};

/// What the page says before the kinds whose channels only send to the service.
const AT_HOME: &str = "# In the lab, but their channels only send to the service: ";

/// The lab. It ends with its value.
pub(crate) struct Lab {
    child: Child,
    /// Where it listens.
    pub(crate) url: String,
    /// The channels that lead there.
    page: toml::Table,
    /// The hosts of the services that the other kinds send to.
    at_home: BTreeMap<String, String>,
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
        let at_home = page.lines().find_map(|line| line.strip_prefix(AT_HOME)).unwrap();
        let at_home = at_home.split(", ").map(|place| place.split_once(" at ").unwrap());
        let at_home = at_home.map(|(kind, host)| (kind.to_owned(), host.to_owned())).collect();
        let page = page.parse().unwrap_or_else(|error| panic!("{error} in {page}"));
        Self { child, url, page, at_home }
    }

    pub(crate) fn port(&self) -> u16 {
        self.url.rsplit(':').next().unwrap().parse().unwrap()
    }

    /// The kinds that have a fake.
    pub(crate) fn kinds(&self) -> Vec<&'static str> {
        let channels = self.page["channels"].as_table().unwrap();
        let led = channels.values().map(|channel| channel["kind"].as_str().unwrap());
        let all = led.chain(self.at_home.keys().map(String::as_str));
        all.map(|name| kind(name).unwrap().about.name).collect()
    }

    /// A way on which channels reach the fakes that stand for services at their own addresses.
    pub(crate) fn stand_in(&self) -> StandIn {
        let hosts = self.at_home.values().cloned().collect();
        StandIn::start(hosts, self.url.strip_prefix("http://").unwrap())
    }

    /// The channels of `kinds`, called `lab-KIND`.
    pub(crate) fn channels(&self, kinds: &[&str]) -> String {
        let mut page = String::new();
        for name in kinds {
            let led = self.page["channels"].get(format!("lab-{name}"));
            let mut options = match led {
                Some(options) => options.as_table().unwrap().clone(),
                None => kind(name).unwrap().about.example.parse().unwrap(),
            };
            options.insert("kind".to_owned(), (*name).into());
            let channel = toml::Table::from_iter([(format!("lab-{name}"), options.into())]);
            let channels = toml::Table::from_iter([("channels".to_owned(), channel.into())]);
            writeln!(page, "{channels}").unwrap();
        }
        page
    }

    /// The same for kinds that lead to the lab, whose fakes then meet with mishaps now and then.
    pub(crate) fn mixed_channels(&self, kinds: &[&str]) -> String {
        let mixed = format!("{}/mixed/", self.url);
        self.channels(kinds).replace(&format!("{}/", self.url), &mixed)
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
