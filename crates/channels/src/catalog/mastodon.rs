use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Mastodon>(About {
    name: "mastodon",
    title: "Mastodon",
    docs: "https://docs.joinmastodon.org/methods/statuses/#create",
    transport: Transport::Http {
        accepted: r#"{"id":"103254962155278888"}"#,
        verdict: Verdict {
            reason: &["/error"],
            // <https://docs.joinmastodon.org/api/rate-limits/>
            wait: Wait::UntilIn("x-ratelimit-reset"),
            ..Verdict::id("/id")
        },
        refusals: &[
            Refusal::permanent(401, r#"{"error":"The access token is invalid"}"#),
            Refusal::permanent(403, r#"{"error":"This action is outside the authorized scopes"}"#),
            Refusal::permanent(422, r#"{"error":"Validation failed: Text character limit of 500 exceeded"}"#),
            Refusal::temporary(429, r#"{"error":"Too many requests"}"#),
        ],
    },
    dialect: Dialect::Unmentioned,
    // 500 with the readers' names, unless the server says otherwise.
    limits: Limits { title: 80, body: 340, unit: Unit::Characters, per_minute: None },
    edits: true,
    example: r#"
        server = "https://mastodon.example.com"
        token = "ZA-Yj3aBD8U8Cm7lKUp-lm9O9BmDgdhHzDeqsY8tlL0"
        to = ["@ada@example.org"]
    "#,
})
// 8 MB on older servers.
.with_files(Files::Pictures { most: 4, bytes: 8_000_000 })
.with_urls(Urls {
    schemes: &["mastodon", "mastodons", "toot", "toots"],
    examples: &[
        "mastodons://ZA-Yj3aBD8U8Cm7lKUp-lm9O9BmDgdhHzDeqsY8tlL0@mastodon.example.com/@ada?visibility=direct",
        "toots://ZA-Yj3aBD8U8Cm7lKUp-lm9O9BmDgdhHzDeqsY8tlL0@mastodon.example.com:8443?spoiler=Builds&language=en",
    ],
    read,
    ..Urls::NONE
});

/// Posts from a Mastodon account, to some people or to all.
///
/// 1. In the account's preferences, under "Development", make an application with the scope `write:statuses` and, for
///    attached pictures, `write:media`.
/// 2. Set `token` to its access token and `server` to the address of the server.
/// 3. Set `to` to the readers; without them set `visibility`, and mind who can read the posts then.
///
/// The steps of a run edit one post in place.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Mastodon {
    /// Address of the server.
    server: Address,
    /// Access token.
    token: Secret,
    /// Accounts to name in each post, such as `@ada` or `@ada@example.org`.
    #[serde(default)]
    to: Vec<String>,
    /// Who can read the posts: `direct`, `private`, `unlisted`, `public`, or `default` for the account's own choice.
    #[serde(default)]
    #[schemars(extend("default" = "direct"))]
    visibility: Visibility,
    /// Warning to fold the posts under.
    spoiler: Option<String>,
    /// Language of the posts, such as `en`.
    language: Option<String>,
}

#[derive(Deserialize, JsonSchema, serde::Serialize, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Visibility {
    #[default]
    Direct,
    Private,
    Unlisted,
    Public,
    Default,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    url.ignore(&["key", "cache", "sensitive", "batch"]);
    if url.parameter("ping").is_some() {
        return Err(url.wrong("has `ping`; name the readers in the path"));
    }
    let usual = if url.scheme.starts_with("toot") { "public" } else { "default" };
    let visibility = url.parameter("visibility").unwrap_or_else(|| usual.to_owned());
    let user = url.user.take();
    let token = url.parameter("token").or(user);
    let server = url.web()?;
    let named = |name: &str| format!("@{}", name.trim_start_matches('@'));
    let to: Vec<toml::Value> = match url.targets() {
        Some(toml::Value::String(one)) => vec![named(&one).into()],
        Some(toml::Value::Array(all)) => {
            all.iter().filter_map(toml::Value::as_str).map(|one| named(one).into()).collect()
        }
        _ => Vec::new(),
    };
    Ok(url::options([
        ("server", Some(server.into())),
        ("token", token.map(Into::into)),
        ("to", (!to.is_empty()).then(|| to.into())),
        ("visibility", Some(visibility.into())),
        ("spoiler", url.parameter("spoiler").map(Into::into)),
        ("language", url.parameter("language").map(Into::into)),
    ]))
}

#[async_trait]
impl Channel for Mastodon {
    fn check(&self) -> Result<(), ConfigError> {
        if self.visibility == Visibility::Direct && self.to.is_empty() {
            return Err(ConfigError(
                "`to` is empty, and nobody reads a `direct` post then".to_owned(),
            ));
        }
        Ok(())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let text = KIND.about.dialect.titled(message);
        let status =
            if self.to.is_empty() { text } else { format!("{} {text}", self.to.join(" ")) };
        let statuses = self.server.at(&["api", "v1", "statuses"]);
        let mut pictures = Vec::new();
        for picture in &cx.files {
            let media = cx.post(&self.server.at(&["api", "v2", "media"])).bearer(Some(&self.token));
            let media = media.form_with_file(&[], "file", picture).delivered(&KIND).await?;
            pictures.extend(media.message_id);
        }
        let mut body = json!({
            "status": status,
            "media_ids": (!pictures.is_empty()).then_some(pictures),
            "spoiler_text": self.spoiler,
            "language": self.language,
        });
        let earlier = cx.edit.as_ref().and_then(|receipt| receipt.message_id.as_deref());
        let request = match earlier {
            Some(id) => cx.put(&statuses.at(&[id])),
            None => {
                if let (Some(fields), true) =
                    (body.as_object_mut(), self.visibility != Visibility::Default)
                {
                    fields.insert("visibility".to_owned(), json!(self.visibility));
                }
                cx.post(&statuses).header("idempotency-key", &cx.id())
            }
        };
        request.bearer(Some(&self.token)).json_without_nulls(body).delivered(&KIND).await
    }
}
