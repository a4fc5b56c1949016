use aws_lc_rs::{
    aead::{AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey},
    rand,
};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE},
};

use crate::{prelude::*, variables};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Bark>(About {
    name: "bark",
    title: "Bark",
    docs: "https://bark.day.app/#/en-us/tutorial",
    transport: Transport::Http {
        accepted: r#"{"code":200,"message":"success","timestamp":1767323045}"#,
        verdict: Verdict { reason: &["/message"], ..Verdict::field("/code", &["200"]) },
        refusals: &[
            Refusal::permanent(400, r#"{"code":400,"message":"device key is empty","timestamp":1767323045}"#),
            Refusal::permanent(200, r#"{"code":400,"message":"failed to get device token: failed to get [k] device token from database","timestamp":1767323045}"#),
            Refusal::temporary(500, r#"{"code":500,"message":"push failed: APNs is not reachable","timestamp":1767323045}"#),
        ],
    },
    dialect: Dialect::Markdown,
    // Apple takes 4,096 bytes for everything together; encryption makes a third more of it.
    limits: Limits { title: 200, body: 2_400, unit: Unit::Bytes, per_minute: None },
    edits: true,
    example: r#"
        key = "DxHcxxRxcm81"
    "#,
})
.with_links()
.with_urls(Urls {
    schemes: &["bark", "barks"],
    examples: &[
        "barks://api.day.app/DxHcxxRxcm81",
        "barks://user:password-1@bark.example.com:8443/DxHcxxRxcm81/DxHcxxRxcm82?sound=alarm\
         &level=critical&volume=7&click=https://ci.example.com&badge=3&group=ci&call=yes&archive=yes&ttl=60",
    ],
    read,
    ..Urls::NONE
})
.with_variables(Variables {
    name: "bark",
    needs: &["BARK_PUSH"],
    takes: &["BARK_ARCHIVE", "BARK_GROUP", "BARK_SOUND", "BARK_ICON", "BARK_LEVEL", "BARK_URL"],
    read: variables,
});

/// Push notifications to iPhones and iPads through the [Bark](https://github.com/Finb/Bark) app.
///
/// 1. Install Bark from the App Store and open it.
/// 2. It shows addresses such as `https://api.day.app/<key>/…`: set `key` to the part after the host.
/// 3. If you run a server of your own, set `server` to its address.
///
/// The steps of a run replace each other in the app, from Bark 1.5.2 and server 2.2.5 on.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Bark {
    /// Key of the device. Several get a message each.
    key: Targets<Secret>,
    /// Address of the server.
    #[serde(default = "public_server")]
    #[schemars(extend("default" = "https://api.day.app"))]
    server: Address,
    /// User, for servers behind a login.
    user: Option<String>,
    /// Password of the user.
    password: Option<Secret>,
    /// Group that the app files messages under.
    group: Option<String>,
    /// Sound, by its name in the app.
    sound: Option<String>,
    /// Address of a picture to show beside the message.
    icon: Option<Address>,
    /// How a message arrives whatever its level: `passive`, `active`, `timeSensitive` or `critical`.
    level: Option<Urgency>,
    /// Address that a tap opens where a message has no link of its own.
    url: Option<String>,
    /// Second title.
    subtitle: Option<String>,
    /// Text that is copied instead of the message's.
    copy: Option<String>,
    /// Whether a tap opens the app's own view: `alert` or `none`.
    action: Option<Action>,
    /// Category of actions, for apps built with categories of their own.
    category: Option<String>,
    /// Number to show on the app.
    badge: Option<u32>,
    /// Loudness of critical messages, from 0 to 10.
    volume: Option<u8>,
    /// Whether to ring for half a minute.
    call: Option<bool>,
    /// Whether the app keeps messages; without it the app's own setting holds.
    archive: Option<bool>,
    /// How long the app keeps them, in seconds.
    ttl: Option<u32>,
    /// Name that makes every message take the place of the last one.
    id: Option<String>,
    /// Key of the app's encryption (AES in GCM), 16, 24 or 32 characters.
    encryption_key: Option<Secret>,
}

#[derive(Clone, Copy, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
enum Urgency {
    Passive,
    Active,
    TimeSensitive,
    Critical,
}

#[derive(Clone, Copy, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Action {
    Alert,
    None,
}

fn public_server() -> Address {
    Address::parse("https://api.day.app").expect("a constant address")
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    url.ignore(&["image"]);
    if url.yes("delete") == Some(true) {
        return Err(url.wrong("has `delete`, which tells nothing"));
    }
    // Shoutrrr writes the key as a password without a user.
    let bare_key = if url.user.is_none() { url.password.take().map(Into::into) } else { None };
    let password = url.password.take().or_else(|| url.user.as_ref().map(|_| String::new()));
    let keys = bare_key.or_else(|| url.targets());
    let mut table = url.table(&[
        ("sound", "sound"),
        ("level", "level"),
        ("url", "click"),
        ("category", "category"),
        ("group", "group"),
        ("icon", "icon"),
        ("subtitle", "subtitle"),
        ("copy", "copy"),
        ("action", "action"),
        ("id", "id"),
        ("encryption_key", "key"),
    ]);
    let numbers = ["badge", "volume", "ttl"].map(|name| Ok((name, url.number(name)?)));
    for number in numbers {
        let (name, number) = number?;
        table.extend(number.map(|number| (name.to_owned(), number.into())));
    }
    table.extend(url::options([
        ("key", Some(keys.ok_or_else(|| url.wrong("names no device key"))?)),
        ("server", Some(url.web()?.into())),
        ("user", url.user.take().map(Into::into)),
        ("password", password.map(Into::into)),
        ("call", url.yes("call").map(Into::into)),
        ("archive", url.yes("archive").map(Into::into)),
    ]));
    Ok(table)
}

fn variables(set: &Set<'_>) -> Result<toml::Table, Wrong> {
    let mut table = set.table(&[
        ("group", "BARK_GROUP"),
        ("sound", "BARK_SOUND"),
        ("icon", "BARK_ICON"),
        ("level", "BARK_LEVEL"),
        ("url", "BARK_URL"),
    ]);
    let (server, key) = variables::server_and_key(set.get("BARK_PUSH").unwrap_or_default());
    table.extend(url::options([
        ("key", Some(key.into())),
        ("server", server.map(Into::into)),
        ("archive", set.has("BARK_ARCHIVE").then(|| true.into())),
    ]));
    Ok(table)
}

#[async_trait]
impl Channel for Bark {
    fn targets(&self) -> Vec<Mark> {
        self.key.marks()
    }

    fn check(&self) -> Result<(), ConfigError> {
        let fits =
            |key: &Secret| key.expose().is_ascii() && matches!(key.expose().len(), 16 | 24 | 32);
        if self.encryption_key.as_ref().is_some_and(|key| !fits(key)) {
            let wrong = "`encryption_key` is not right; expected 16, 24 or 32 ASCII characters";
            return Err(ConfigError(wrong.to_owned()));
        }
        if self.volume.is_some_and(|volume| volume > 10) {
            return Err(ConfigError("`volume` is not right; expected 0 to 10".to_owned()));
        }
        Ok(())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let earlier = cx.edit.as_ref().and_then(|receipt| receipt.message_id.clone());
        // A message with the id of an earlier one takes its place, so a repeat is not seen twice.
        let own = || match &self.id {
            Some(id) if cx.part == 1 => id.clone(),
            Some(id) => format!("{id}-{}", cx.part),
            None => format!("{}-{}", message.event, cx.part),
        };
        let id = earlier.unwrap_or_else(own);
        let mut push = self.push(message);
        if let Some(key) = &self.encryption_key {
            push = sealed(key, &push)?;
        }
        if let Some(fields) = push.as_object_mut() {
            fields.insert("device_key".to_owned(), self.key.at(cx).expose().into());
            fields.insert("id".to_owned(), id.clone().into());
        }
        let mut request = cx.post(&self.server.at(&["push"])).json(&push);
        if let (Some(user), Some(password)) = (&self.user, &self.password) {
            request = request.basic(user, password);
        }
        request.delivered(&KIND).await?;
        Ok(Receipt { message_id: Some(id) })
    }
}

impl Bark {
    fn push(&self, message: &Message) -> Value {
        let level = self.level.unwrap_or(match message.level {
            Level::Debug => Urgency::Passive,
            Level::Info | Level::Notice => Urgency::Active,
            Level::Warning | Level::Error => Urgency::TimeSensitive,
            Level::Critical | Level::Alert | Level::Emergency => Urgency::Critical,
        });
        let text = if message.format == Format::Markdown { "markdown" } else { "body" };
        let sound = self.sound.as_ref().map(|sound| match sound.strip_suffix(".caf") {
            Some(_) => sound.clone(),
            None => format!("{sound}.caf"),
        });
        present(json!({
            "title": message.title,
            "subtitle": self.subtitle,
            text: message.body,
            "url": message.link.as_ref().or(self.url.as_ref()),
            "level": level,
            "group": self.group,
            "sound": sound,
            "icon": self.icon.as_ref().map(|icon| icon.url().as_str()),
            "copy": self.copy,
            "action": self.action,
            "category": self.category,
            "badge": self.badge,
            "volume": self.volume,
            "call": self.call.filter(|call| *call).map(|_| "1"),
            "isArchive": self.archive.map(|archive| if archive { "1" } else { "0" }),
            "ttl": self.ttl.map(|ttl| ttl.to_string()),
        }))
    }
}

/// `push` as only the app can read it.
fn sealed(key: &Secret, push: &Value) -> Result<Value, SendError> {
    // Nine bytes are twelve characters in Base64, which is as long as the app wants the vector to be.
    let mut random = [0; 9];
    rand::fill(&mut random).map_err(|_| SendError::temporary("there is no randomness"))?;
    sealed_with(key.expose(), &BASE64_URL_SAFE.encode(random), push)
        .ok_or_else(|| SendError::permanent("the message cannot be encrypted"))
}

fn sealed_with(key: &str, vector: &str, push: &Value) -> Option<Value> {
    let algorithm = match key.len() {
        16 => &AES_128_GCM,
        24 => &AES_192_GCM,
        _ => &AES_256_GCM,
    };
    let key = LessSafeKey::new(UnboundKey::new(algorithm, key.as_bytes()).ok()?);
    let nonce = Nonce::try_assume_unique_for_key(vector.as_bytes()).ok()?;
    let mut text = push.to_string().into_bytes();
    key.seal_in_place_append_tag(nonce, Aad::empty(), &mut text).ok()?;
    Some(json!({ "ciphertext": BASE64_STANDARD.encode(text), "iv": vector }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with Python's `cryptography`.
    #[test]
    fn encrypted_pushes_are_what_the_app_reads_row_112() {
        let push = json!({ "body": "Grüße" });
        for (key, ciphertext) in [
            ("0123456789abcdef", "tTGGs2pF0LjANeLql+CdnVlUvEZtrWIlwxxVduO5GmMMFg=="),
            ("0123456789abcdef01234567", "Sm8u2ej80i7477x0tg8gZp1clPwHZFXrPWd7GHukC0u6Tg=="),
            (
                "0123456789abcdef0123456789abcdef",
                "0kRTzaFocQRTPhjuDoz3lRW8Hqs60ZQF/YUbhJjwHE6EAg==",
            ),
        ] {
            let sealed = sealed_with(key, "abcdefABCDEF", &push).unwrap();
            assert_eq!(sealed, json!({ "ciphertext": ciphertext, "iv": "abcdefABCDEF" }));
        }
    }
}
