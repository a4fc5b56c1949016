//! The alert interface that Opsgenie made and Jira Service Management has taken over.

use std::collections::BTreeMap;

use serde::{Deserializer, de::Error as _};

use crate::{
    alert::{self, Step},
    prelude::*,
};

/// The longest `message`, in characters; the far end cuts what is longer.
pub(crate) const MESSAGE_LIMIT: usize = 130;

/// What the far ends take: the longest `message` and `description`.
pub(crate) const LIMITS: Limits =
    Limits { title: MESSAGE_LIMIT, body: 15_000, unit: Unit::Characters, per_minute: None };

/// Requests are taken at once and worked on later, so an answer says no more than that.
pub(crate) const TRANSPORT: Transport = Transport::Http {
    accepted: r#"{"result":"Request will be processed","took":0.302,"requestId":"43a29c5c-3dbf-4fa4-9c26-f4f71023e120"}"#,
    verdict: Verdict {
        id: None,
        reason: &["/message"],
        hints: &[("40301", "check `key`, and whether its integration may create alerts")],
        ..Verdict::id("/requestId")
    },
    refusals: &[
        Refusal::permanent(
            403,
            r#"{"message":"Key format is not valid!","took":0.001,"requestId":"ecad2c5f-9a2f-4a3b-9d0e-0d3b5e2b6e5e"}"#,
        ),
        Refusal::permanent(
            422,
            r#"{"message":"Request body is not processable. Please check the errors.","errors":{"message":"Message can not be empty."},"took":0.0,"requestId":"0a0b"}"#,
        ),
        Refusal::temporary(
            429,
            r#"{"message":"You are making too many requests!","took":0.0,"requestId":"0a0c"}"#,
        ),
    ],
};

/// What both kinds are told.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct Genie {
    /// Key of the API integration.
    key: Secret,
    /// Who is called, if the integration does not say: `#team`, `@user`, `^escalation` or `*schedule`, each by its
    /// name or its id.
    #[serde(default)]
    responders: Vec<Responder>,
    /// Priority of every alert, `P1` to `P5`, instead of one that follows the level.
    priority: Option<Priority>,
    /// Tags of every alert.
    #[serde(default)]
    tags: Vec<String>,
    /// What the alert is about, such as the name of a server.
    entity: Option<String>,
    /// Key of the one alert that everything goes to, instead of one for each message or run.
    alias: Option<String>,
    /// Who is shown as having made the alert.
    user: Option<String>,
    /// More facts to show with every alert, by name.
    #[serde(default)]
    details: BTreeMap<String, String>,
    /// Address of the interface, if it is not the usual one.
    api: Option<Address>,
}

/// How urgent an alert is; the first is the most urgent.
#[derive(Clone, Copy, Deserialize, JsonSchema, serde::Serialize)]
enum Priority {
    P1,
    P2,
    P3,
    P4,
    P5,
}

/// Somebody who is called.
#[derive(JsonSchema)]
#[schemars(transparent)]
struct Responder(#[schemars(with = "String")] Value);

impl<'de> Deserialize<'de> for Responder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = String::deserialize(deserializer)?;
        let mut rest = written.chars();
        let (kind, named) = match rest.next() {
            Some('#') => ("team", "name"),
            Some('@') => ("user", "username"),
            Some('^') => ("escalation", "name"),
            Some('*') => ("schedule", "name"),
            _ => {
                return Err(D::Error::custom(
                    "not a responder, expected `#team`, `@user`, `^escalation` or `*schedule`",
                ));
            }
        };
        let name = rest.as_str();
        let named = if alert::is_uuid(name) { "id" } else { named };
        Ok(Self(json!({ "type": kind, named: name })))
    }
}

/// The options that an address such as `opsgenie://user@KEY/#team` stands for.
pub(crate) fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    // What happens to an alert follows from the message; all responders get one.
    url.ignore(&["batch", "action"]);
    if !url.parameters(':').is_empty() {
        return Err(url.wrong("maps types to actions, which follow from the runs here"));
    }
    let key = url.parameter("apikey").or_else(|| url.authority());
    let priority = match url.parameter("priority") {
        Some(name) => Some(
            priority_named(&name).ok_or_else(|| url.wrong("has a `priority` that is unknown"))?,
        ),
        None => None,
    };
    let responders = match url.targets() {
        Some(toml::Value::Array(all)) => all,
        one => one.into_iter().collect(),
    };
    // Apprise takes what has no sign in front for a user.
    let signed = |name: toml::Value| match name.as_str() {
        Some(text) if !text.starts_with(['#', '@', '^', '*']) => format!("@{text}").into(),
        _ => name,
    };
    let responders: Vec<toml::Value> = responders.into_iter().map(signed).collect();
    let tags = url.parameter("tags").map(|tags| words(&tags));
    let details: toml::Table =
        url.parameters('+').into_iter().map(|(name, value)| (name, value.into())).collect();
    Ok(url::options([
        ("key", key.map(Into::into)),
        ("responders", Some(responders).filter(|all| !all.is_empty()).map(Into::into)),
        ("priority", priority.map(Into::into)),
        ("tags", tags),
        ("entity", url.parameter("entity").map(Into::into)),
        ("alias", url.parameter("alias").map(Into::into)),
        ("user", url.user.take().map(Into::into)),
        ("details", Some(details).filter(|all| !all.is_empty()).map(Into::into)),
    ]))
}

fn words(list: &str) -> toml::Value {
    let words = list.split([',', ' ']).filter(|word| !word.is_empty());
    words.map(toml::Value::from).collect::<Vec<_>>().into()
}

/// Apprise counts its names the other way round (`high` is P4 there); the far end calls P1 critical and P5 low.
fn priority_named(name: &str) -> Option<&'static str> {
    let first = name.to_ascii_lowercase();
    match first.trim_start_matches('p').chars().next()? {
        '1' | 'e' => Some("P1"),
        '2' | 'h' => Some("P2"),
        '3' | 'n' => Some("P3"),
        '4' | 'm' => Some("P4"),
        '5' | 'l' => Some("P5"),
        _ => None,
    }
}

impl Genie {
    /// Opens the alert that `message` belongs to, adds to it or closes it; `usual` is where that is done.
    pub(crate) async fn tell(
        &self,
        usual: &str,
        kind: &ChannelKind,
        message: &Message,
        cx: &SendContext,
    ) -> Result<Receipt, SendError> {
        let api = self.api.clone();
        let api = api.unwrap_or_else(|| Address::parse(usual).expect("a constant address"));
        let alerts = api.at(&["v2", "alerts"]);
        let alias = alert::key(self.alias.as_deref(), message, cx);
        let to_alert = |action| alerts.at(&[&alias, action]).with("identifierType", "alias");
        let (address, body) = match alert::step(message, cx) {
            Step::Open => (alerts, self.opening(&alias, message)),
            Step::Add => (to_alert("notes"), self.note(message)),
            Step::Close => (to_alert("close"), self.note(message)),
        };
        let login = format!("GenieKey {}", self.key.expose());
        cx.post(&address).header("authorization", &login).json(&body).delivered(kind).await?;
        Ok(Receipt { message_id: Some(alias) })
    }

    fn opening(&self, alias: &str, message: &Message) -> Value {
        let priority = self.priority.unwrap_or(match message.level {
            Level::Debug | Level::Info | Level::Notice => Priority::P5,
            Level::Warning => Priority::P3,
            Level::Error => Priority::P2,
            Level::Critical | Level::Alert | Level::Emergency => Priority::P1,
        });
        let mut details: BTreeMap<&str, &str> =
            self.details.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        if let Some(link) = &message.link {
            details.entry("link").or_insert(link);
        }
        let responders: Vec<_> = self.responders.iter().map(|Responder(value)| value).collect();
        present(json!({
            "message": alert::summary(message, MESSAGE_LIMIT),
            "alias": alias,
            "description": Dialect::Plain.body(message),
            "priority": priority,
            "source": alert::source(message),
            "details": details,
            "responders": (!responders.is_empty()).then_some(responders),
            "tags": (!self.tags.is_empty()).then_some(&self.tags),
            "entity": self.entity,
            "user": self.user,
        }))
    }

    fn note(&self, message: &Message) -> Value {
        let note = Dialect::Plain.body(message);
        let note = match &message.title {
            Some(title) => format!("{title}\n\n{note}"),
            None => note,
        };
        present(json!({ "note": note, "user": self.user, "source": alert::source(message) }))
    }
}
