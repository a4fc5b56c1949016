use deskbell_core::attachment::FILE_LIMIT;

use crate::{
    catalog::mattermost_webhook::{self, channels, priority},
    files::ReadFile,
    prelude::*,
};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<MattermostBot>(About {
    name: "mattermost_bot",
    title: "Mattermost",
    docs: "https://developers.mattermost.com/api-documentation/#/operations/CreatePost",
    transport: Transport::Http {
        accepted: r#"{"id":"p1kdqz8h7tfxipbq8jhm3n9wra","file_infos":[{"id":"6x3m8ipyrbghjpfz3kygm1ah8c"}]}"#,
        verdict: Verdict {
            code: Some("/status_code"),
            reason: &["/message"],
            hints: &[
                ("401", "check `token`"),
                ("403", "add the bot to the channel"),
                ("404", "check `channel`"),
            ],
            ..Verdict::id("/id")
        },
        refusals: &[
            Refusal::permanent(401, r#"{"id":"api.context.session_expired.app_error","message":"Invalid or expired session, please login again.","detailed_error":"","status_code":401}"#),
            Refusal::permanent(403, r#"{"id":"api.context.permissions.app_error","message":"You do not have the appropriate permissions.","detailed_error":"","status_code":403}"#),
            Refusal::temporary(500, r#"{"id":"app.post.save.app_error","message":"Unable to save the Post.","detailed_error":"","status_code":500}"#),
        ],
    },
    dialect: Dialect::ChatMarkdown,
    limits: mattermost_webhook::LIMITS,
    edits: true,
    example: r#"
        server = "https://mattermost.example.com"
        token = "9xuqwrwgstrb3mzrxb83nb357a"
        channel = "4yxs6krpqfrxdyxkkh4ffzmpzw"
    "#,
})
// 100 MB unless the server says otherwise.
.with_files(Files::After(FILE_LIMIT))
.with_urls(Urls {
    schemes: &["mmost", "mmosts"],
    claims: mattermost_webhook::is_bot,
    examples: &[
        "mmosts://mattermost.example.com/9xuqwrwgstrb3mzrxb83nb357a?mode=bot&to=4yxs6krpqfrxdyxkkh4ffzmpzw",
        "mmosts://mattermost.example.com/sub/9xuqwrwgstrb3mzrxb83nb357a?team=ops&to=%23builds",
    ],
    read,
    ..Urls::NONE
});

/// Messages from a Mattermost bot to channels.
///
/// 1. In Mattermost, open "Integrations" in the main menu, then "Bot Accounts", add one and set `token` to the token
///    that appears. Where the menu lacks it, an administrator has to switch bots on.
/// 2. Add the bot to your team and to the channel.
/// 3. Set `channel` to the id that the channel's "View Info" shows, or set `team` to the team's name as in addresses and
///    `channel` to `#name`.
///
/// The steps of a run edit one message in place.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MattermostBot {
    /// Address of the server.
    server: Address,
    /// Token of the bot.
    token: Secret,
    /// The channel: its id, or `#name` with `team`. Several get a message each.
    channel: Targets<String>,
    /// Name of the team that the names of channels belong to, as in addresses.
    team: Option<String>,
    /// Id of a message in whose thread to write.
    thread: Option<String>,
    /// Whether errors are marked as important and worse as urgent. Some servers refuse marked messages.
    #[serde(default)]
    #[schemars(extend("default" = false))]
    priority: bool,
}

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    // Pictures and names are the bot's own.
    url.ignore(&["mode", "icon_url", "botname"]);
    let token = url.path.pop().ok_or_else(|| url.wrong("names no token"))?;
    let server = [&[url.web()?], url.rest().as_slice()].concat().join("/");
    let channels: Vec<toml::Value> =
        channels(url).iter().map(|name| name.trim_start_matches('+').into()).collect();
    if channels.is_empty() {
        return Err(url.wrong("names no channel"));
    }
    let team = url.parameter("team").or_else(|| url.user.take());
    Ok(url::options([
        ("server", Some(server.into())),
        ("token", Some(token.into())),
        ("channel", Some(channels.into())),
        ("team", team.map(Into::into)),
    ]))
}

#[async_trait]
impl Channel for MattermostBot {
    fn targets(&self) -> Vec<Mark> {
        self.channel.marks()
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.team.is_none() && self.channel.iter().any(|channel| channel.starts_with('#')) {
            return Err(ConfigError(
                "`team` is not set, and `channel` needs it for `#name`".to_owned(),
            ));
        }
        Ok(())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let text = KIND.about.dialect.titled(message);
        let posts = self.server.at(&["api", "v4", "posts"]);
        let earlier = cx.edit.as_ref().and_then(|receipt| receipt.message_id.as_deref());
        // <https://docs.mattermost.com/api/reference/patch-post>
        if let Some(id) = earlier {
            let edit = cx.put(&posts.at(&[id, "patch"])).bearer(Some(&self.token));
            return edit.json(&json!({ "message": text })).delivered(&KIND).await;
        }
        let channel = self.channel_id(cx).await?;
        let file = match cx.files.first() {
            Some(file) => Some(self.upload(file, &channel, cx).await?),
            None => None,
        };
        // Answers in a thread cannot be marked, and a file is no news of its own.
        let priority = priority(message.level)
            .filter(|_| self.priority && self.thread.is_none() && file.is_none());
        let post = json!({
            "channel_id": channel,
            "message": if file.is_some() { "" } else { &text },
            "file_ids": file.map(|file| [file]),
            "root_id": self.thread,
            "metadata": priority.map(|priority| json!({ "priority": { "priority": priority } })),
            // A repeat within half a minute gets the message that is there.
            "pending_post_id": cx.id(),
        });
        let request = cx.post(&posts).bearer(Some(&self.token));
        request.json_without_nulls(post).delivered(&KIND).await
    }
}

impl MattermostBot {
    /// Uploads `file` and gives its id.
    async fn upload(
        &self,
        file: &ReadFile,
        channel: &str,
        cx: &SendContext,
    ) -> Result<String, SendError> {
        let files = self.server.at(&["api", "v4", "files"]);
        let address = files.with("channel_id", channel).with("filename", &file.name);
        let reply = cx.post(&address).bearer(Some(&self.token)).file(file).answered().await?;
        let id = Some("/file_infos/0/id");
        let verdict =
            Verdict { success: Success::Present("/file_infos/0/id"), id, ..*KIND.verdict() };
        Ok(verdict.judge(KIND.about.title, &reply)?.message_id.unwrap_or_default())
    }

    /// The id of the channel that this attempt is for; of a name the server knows it.
    async fn channel_id(&self, cx: &SendContext) -> Result<String, SendError> {
        let channel = self.channel.at(cx);
        let (Some(team), Some(name)) = (&self.team, channel.strip_prefix('#')) else {
            return Ok(channel.clone());
        };
        let address =
            self.server.at(&["api", "v4", "teams", "name", team, "channels", "name", name]);
        let found = cx.get(&address).bearer(Some(&self.token)).delivered(&KIND).await?;
        Ok(found.message_id.unwrap_or_default())
    }
}
