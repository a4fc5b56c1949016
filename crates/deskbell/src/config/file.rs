//! What may stand in a configuration file. The doc comments here are the documentation of the options.

mod length;
mod quiet;

use std::{
    borrow::Cow, collections::BTreeMap, fmt, net::SocketAddr, path::PathBuf, str::FromStr,
    time::Duration,
};

use deskbell_channels::{Overflow, StandIn};
use deskbell_core::{
    ChannelName, Context, Invalid, Level,
    event::Format,
    group::{By, Grouping},
    level::LevelRange,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use length::{History, Pause, Period};
pub use quiet::QuietTable;

use super::{DeliveryOptions, default_log_limits};
use crate::mcp::profiles;

/// The configuration of Deskbell.
///
/// A later layer goes before an earlier one: built-in defaults, the machine's file, the user's file, the project's
/// `.deskbell.toml`, variables such as `DESKBELL_SERVE__LISTEN`, flags.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct File {
    /// Where messages can go, each under a name of your own such as `[channels.phone]`.
    ///
    /// Every text in a channel may be a reference to a secret: `env:NAME`, `file:PATH` or `keyring:NAME`.
    pub channels: BTreeMap<String, ChannelTable>,
    /// Which events go to which channels. The first route that takes an event wins, unless it says `continue`.
    ///
    /// With channels but no routes, pushes and runs go to every channel, and so do notices of level error and above.
    pub routes: Vec<RouteTable>,
    /// What the terminal and the log file show.
    pub tracing: TracingTable,
    /// How deliveries are tried.
    pub delivery: DeliveryTable,
    /// When channels are left alone: a channel's own `quiet` goes before these hours, option by option.
    pub quiet: QuietTable,
    /// What MCP clients find.
    pub mcp: McpTable,
    /// The HTTP door of `deskbell serve`.
    pub serve: ServeTable,
    /// How long finished history is kept, such as `30d`; `forever` keeps all.
    pub keep_history: Parsed<History>,
    /// Titles that are never pushed.
    pub skip_titles: Vec<String>,
}

/// A channel. Which further options there are depends on its kind; see `docs/channels.md`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ChannelTable {
    /// The kind of channel, such as `ntfy`. Needed unless `url` says it.
    pub kind: Option<String>,
    /// Without `kind`: an Apprise address that says kind and options at once, such as `slack://env:SLACK_WEBHOOK`.
    pub url: Option<String>,
    /// How many messages a minute it takes; without it the far end decides.
    #[schemars(range(min = 1))]
    pub per_minute: Option<u32>,
    /// How texts are taken to be written, whatever their reporter says: `text` or `markdown`.
    pub format: Option<Parsed<Format>>,
    /// What becomes of a text that is longer than the far end takes: `split`, `truncate` or `upstream` (sent as it is).
    /// It is split where nothing is said.
    pub overflow: Option<Parsed<Overflow>>,
    /// Its own quiet hours, such as `{ from = "20:00", to = "08:00" }`; what is left out is as in `[quiet]`.
    pub quiet: QuietTable,
    /// For trying it without the service: a server on this machine that gets its HTTP requests in place of the service,
    /// such as `http://127.0.0.1:8390/slack_bot` of `deskbell lab`. The paths of the service follow on this one's path.
    pub stand_in: Option<Parsed<StandIn>>,
    /// Whether it is used.
    pub enabled: Enabled,
}

/// Whether something is used; it is, unless somebody says no.
#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Enabled(pub bool);

impl Default for Enabled {
    fn default() -> Self {
        Self(true)
    }
}

/// A rule from events to channels. Whatever it leaves out matches everything.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteTable {
    /// The levels it takes: one, or a range such as `error..`, `..info` or `notice..error`.
    #[serde(default)]
    pub level: Option<Parsed<LevelRange>>,
    /// The categories it takes: one, or a list.
    #[serde(default)]
    pub context: OneOrMany<Parsed<Context>>,
    /// The sorts of event it takes: `notice`, `push`, `run`, or a list.
    #[serde(default)]
    pub kind: OneOrMany<EventKind>,
    /// The clients it takes, such as `claude-code`, or a list.
    #[serde(default)]
    pub client: OneOrMany<String>,
    /// The channels its events go to; an empty list sends them nowhere.
    pub channels: Vec<Parsed<ChannelName>>,
    /// Whether the routes after it are looked at too.
    #[serde(default, rename = "continue")]
    pub continues: bool,
    /// What the events have in common that are told as one message: `context`, `client`, `project`, `level`, `title`,
    /// `text`, or a list. Steps of runs are never told together.
    #[serde(default)]
    pub group_by: OneOrMany<GroupBy>,
    /// How long the first of a group waits for more, at most `1d`; with `group_by`, `10s` where nothing is said. Without
    /// `group_by` all events of the route are one group.
    #[serde(default)]
    pub group_wait: Option<Parsed<Pause>>,
    /// The least time between two messages of a group, at most `1d`; with `group_by`, `1m` where nothing is said.
    /// Without `group_by` all events of the route are one group.
    #[serde(default)]
    pub group_interval: Option<Parsed<Pause>>,
    /// For how long something that was told is not told again, such as `4h`; without it everything is told. When a
    /// message is given up, what was not told for its sake is told after all.
    #[serde(default)]
    pub repeat_interval: Option<Parsed<Period>>,
    /// What two events have in common that say the same, out of the same words as for `group_by`; without it level,
    /// context, client, project, title and text.
    #[serde(default)]
    pub repeat_by: OneOrMany<GroupBy>,
}

impl RouteTable {
    /// How the route tells its events together, if it does.
    pub fn grouping(&self) -> Option<Grouping> {
        /// How long the first of a group waits where nothing is said.
        const WAIT: Duration = Duration::from_secs(10);
        /// The least time between two messages of a group where nothing is said.
        const INTERVAL: Duration = Duration::from_mins(1);
        let pause = |pause: Option<Parsed<Pause>>| pause.map(|pause| pause.0.0);
        let (wait, interval) = (pause(self.group_wait), pause(self.group_interval));
        let repeat = self.repeat_interval.map(|period| period.0.0);
        let list = |by: &OneOrMany<GroupBy>| by.0.iter().copied().map(By::from).collect();
        let (by, same): (Vec<By>, _) = (list(&self.group_by), list(&self.repeat_by));
        if by.is_empty() && wait.is_none() && interval.is_none() {
            return repeat.map(|repeat| Grouping::of_repeats(repeat, same));
        }
        let default = |length| if by.is_empty() { Duration::ZERO } else { length };
        let wait = wait.unwrap_or_else(|| default(WAIT));
        let interval = interval.unwrap_or_else(|| default(INTERVAL));
        Some(Grouping { by, wait, interval, repeat, same })
    }
}

/// What events of a group have in common.
#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum GroupBy {
    Context,
    Client,
    Project,
    Level,
    Title,
    Text,
}

impl From<GroupBy> for By {
    fn from(by: GroupBy) -> Self {
        match by {
            GroupBy::Context => Self::Context,
            GroupBy::Client => Self::Client,
            GroupBy::Project => Self::Project,
            GroupBy::Level => Self::Level,
            GroupBy::Title => Self::Title,
            GroupBy::Text => Self::Text,
        }
    }
}

/// A sort of event.
#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum EventKind {
    Notice,
    Push,
    Run,
}

impl EventKind {
    /// The sort's name on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Notice => "notice",
            Self::Push => "push",
            Self::Run => "run",
        }
    }
}

/// What the terminal and the log file show.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TracingTable {
    /// Rules of name and level; the longest name that fits wins.
    ///
    /// `llm_notify` stands for what agents report, `llm_notify::warn` for what they report at exactly that level; any
    /// other name is a module of the program, such as `deskbell::dispatch`.
    pub targets: Vec<TargetTable>,
    /// The categories that are shown; empty means all.
    pub contexts: Vec<Parsed<Context>>,
    /// The categories that are not shown.
    pub hide_contexts: Vec<Parsed<Context>>,
    /// The log file.
    pub file: LogFileTable,
}

/// A rule of what is shown.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetTable {
    /// The name it is for, and for every name below it.
    pub name: String,
    /// The least level that is shown, or `off`.
    pub level: Parsed<LeastLevel>,
}

/// The log file.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogFileTable {
    /// Where it is; without it `deskbell.log` in the state folder.
    pub path: Option<PathBuf>,
    /// How large it grows before a new one is begun, in bytes.
    #[schemars(range(min = 1024))]
    pub max_bytes: u64,
    /// How many full files are kept.
    #[schemars(range(max = 100))]
    pub keep: u32,
}

impl Default for LogFileTable {
    fn default() -> Self {
        let (max_bytes, keep) = default_log_limits();
        Self { path: None, max_bytes, keep }
    }
}

/// How deliveries are tried.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DeliveryTable {
    /// How often a delivery is tried before it is given up.
    #[schemars(range(min = 1, max = 100))]
    pub attempts: u32,
    /// How long one attempt may take, such as `15s`.
    pub timeout: Parsed<Period>,
    /// The least time between two updates of a run on a channel.
    pub update_interval: Parsed<Period>,
}

impl Default for DeliveryTable {
    fn default() -> Self {
        let DeliveryOptions { attempts, timeout, update_interval } = DeliveryOptions::default();
        let period = |duration| Parsed(Period(duration));
        Self { attempts, timeout: period(timeout), update_interval: period(update_interval) }
    }
}

/// What MCP clients find.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpTable {
    /// The profile where a client names none: which tools are listed, and with which schema. Without it `unified`.
    pub profile: Option<Profile>,
    /// How the names of tools are listed: `dot` or `underscore`. Without it the profile decides.
    pub tool_names: Option<ToolNames>,
    /// How many notifications a client gets in any 60 seconds at most; 0 sets no limit. Without it 60. What is too much
    /// is dropped and counted in one warning; changes of resources and the last word on a run wait or do not count.
    pub notifications_per_minute: Option<u32>,
}

/// A profile.
#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Profile {
    Unified,
    Swissarmyhammer,
    McpPush,
}

impl Profile {
    /// The profile's name on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unified => "unified",
            Self::Swissarmyhammer => "swissarmyhammer",
            Self::McpPush => "mcp-push",
        }
    }
}

/// How the names of tools are listed.
#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ToolNames {
    Dot,
    Underscore,
}

impl From<ToolNames> for profiles::ToolNames {
    fn from(names: ToolNames) -> Self {
        match names {
            ToolNames::Dot => Self::Dot,
            ToolNames::Underscore => Self::Underscore,
        }
    }
}

/// The HTTP door of `deskbell serve`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServeTable {
    /// The address to listen on, such as `127.0.0.1:8377`; without it a loopback port that is free.
    ///
    /// An address that others can reach is refused without tokens.
    pub listen: Option<Parsed<Listen>>,
    /// Tokens that are accepted, by a name of your own. Each may be a reference to a secret.
    pub tokens: BTreeMap<String, String>,
    /// Host names that requests may name, beside those of loopback.
    pub allowed_hosts: Vec<String>,
    /// Origins that browsers may come from, such as `https://bell.example.com`, beside those of loopback.
    pub allowed_origins: Vec<String>,
    /// Whether requests over loopback need no token. For development.
    pub anonymous_loopback: bool,
    /// Whether the token of the state folder may attach files of this machine to what it reports over HTTP. Over the
    /// local socket you always may; tokens of your own and anonymous requests never may.
    pub attach_files: bool,
}

/// A text that is read as a `T`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parsed<T>(pub T);

impl<'de, T: FromStr<Err = Invalid>> Deserialize<'de> for Parsed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // Of a refusal only what was expected: the value may be a password in the wrong place.
        let expected =
            |refusal: Invalid| de::Error::custom(format!("expected {}", refusal.expected));
        text.parse().map(Self).map_err(expected)
    }
}

impl<T: fmt::Display> Serialize for Parsed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<T> JsonSchema for Parsed<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// One, or a list.
#[derive(Debug, Clone)]
pub struct OneOrMany<T>(pub Vec<T>);

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> de::Visitor<'de> for Visitor<T> {
            type Value = OneOrMany<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of texts")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                T::deserialize(de::IntoDeserializer::into_deserializer(text))
                    .map(|one| OneOrMany(vec![one]))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(de::value::SeqAccessDeserializer::new(items)).map(OneOrMany)
            }
        }
        deserializer.deserialize_any(Visitor(std::marker::PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "OneOrMany".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
    }
}

/// The least level that is shown, or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeastLevel(pub Option<Level>);

impl FromStr for LeastLevel {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text.trim().eq_ignore_ascii_case("off") {
            return Ok(Self(None));
        }
        text.parse().map(|level| Self(Some(level))).map_err(|refusal: Invalid| Invalid {
            expected: format!("{}, or off", refusal.expected),
            ..refusal
        })
    }
}

/// An address to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listen(pub SocketAddr);

impl FromStr for Listen {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let address = text.trim().replacen("localhost:", "127.0.0.1:", 1).parse();
        address.map(Self).map_err(|_| {
            Invalid::text("listen", text, "an address with a port such as 127.0.0.1:8377")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_may_be_configured() {
        let names = [Profile::Unified, Profile::Swissarmyhammer, Profile::McpPush];
        assert!(names.map(Profile::as_str).into_iter().eq(profiles::names()));
    }
}
