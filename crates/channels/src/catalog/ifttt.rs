use std::collections::BTreeMap;

use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Ifttt>(About {
    name: "ifttt",
    title: "IFTTT",
    docs: "https://help.ifttt.com/hc/en-us/articles/115010230347-Webhooks-service-FAQ",
    transport: Transport::Http {
        accepted: "Congratulations! You've fired the deskbell event",
        // The answer is a sentence for people.
        verdict: Verdict {
            success: Success::Holding("Congratulations! You've fired the"),
            reason: &["/errors/0/message"],
            ..Verdict::STATUS
        },
        refusals: &[
            Refusal::permanent(401, r#"{"errors":[{"message":"You sent an invalid key."}]}"#),
            Refusal::permanent(200, r#"{"errors":[{"message":"You sent an invalid key."}]}"#),
            Refusal::temporary(429, ""),
        ],
    },
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        key = "dXKmPvqYhN2example"
        event = "deskbell"
    "#,
})
.with_urls(Urls {
    schemes: &["ifttt"],
    native: &["maker.ifttt.com/use/"],
    examples: &[
        "ifttt://dXKmPvqYhN2example@deskbell",
        "ifttt://dXKmPvqYhN2example/deskbell?to=other&+value3=shop&-value1=",
    ],
    read,
    ..Urls::NONE
});

/// Applets of [IFTTT](https://ifttt.com), which do with a message whatever you set up there.
///
/// 1. Create an applet whose trigger is Webhooks, "Receive a web request", and set `event` to its event name.
/// 2. On the page of the Webhooks service open Documentation and set `key` to the key it shows.
/// 3. In the applet, `Value1` is the title, `Value2` the text and `Value3` the level.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Ifttt {
    /// Key of the Webhooks service.
    key: Secret,
    /// Name of the event that starts the applet. Several are started one after the other.
    event: Targets<String>,
    /// Texts that take the place of `value1`, `value2` or `value3`; an empty one leaves it out.
    #[serde(default)]
    values: BTreeMap<String, String>,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let authority = url.authority();
    let is_native = url.is_native();
    // With a login the host is the first event; an address of IFTTT's own has the key after `use/`.
    let (key, first) = match url.user.take() {
        _ if is_native => {
            url.next("part `use`")?;
            (Some(url.next("key")?), None)
        }
        Some(user) => (Some(user), authority),
        None => (authority, None),
    };
    if let Some(events) = first {
        let events = events.split(',').filter(|event| !event.is_empty()).map(str::to_owned);
        let events: Vec<String> = events.chain(url.rest()).collect();
        url.path = events;
    }
    let events = url.targets().ok_or_else(|| url.wrong("names no event"))?;
    let dropped = url.parameters('-').into_iter().map(|(name, _)| (name, String::new()));
    let values: toml::Table = url
        .parameters('+')
        .into_iter()
        .chain(dropped)
        .map(|(name, value)| (name.to_lowercase(), value.into()))
        .collect();
    Ok(url::options([
        ("key", key.map(Into::into)),
        ("event", Some(events)),
        ("values", Some(values).filter(|all| !all.is_empty()).map(Into::into)),
    ]))
}

#[async_trait]
impl Channel for Ifttt {
    fn targets(&self) -> Vec<Mark> {
        self.event.marks()
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let body = KIND.about.dialect.body(message);
        let mut values = BTreeMap::from([
            ("value1", message.title.as_deref().unwrap_or_default()),
            ("value2", body.as_str()),
            ("value3", message.level.as_str()),
        ]);
        values.extend(self.values.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        values.retain(|name, value| !(self.values.contains_key(*name) && value.is_empty()));
        let trigger =
            Address::parse("https://maker.ifttt.com/trigger").expect("a constant address");
        let address = trigger.at(&[self.event.at(cx), "with", "key", self.key.expose()]);
        cx.post(&address).json(&values).delivered(&KIND).await
    }
}
