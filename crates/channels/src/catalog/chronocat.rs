use super::onebot;
use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Chronocat>(About {
    name: "chronocat",
    title: "Chronocat",
    docs: "https://github.com/chrononeko/chronocat",
    transport: Transport::Http { accepted: "{}", verdict: Verdict::NO_PAGE, refusals: &[] },
    dialect: Dialect::Plain,
    limits: Limits { title: 200, body: 4_200, unit: Unit::Characters, per_minute: None },
    edits: false,
    example: r#"
        server = "http://127.0.0.1:16530"
        token = "chronocat-token-1"
        users = [10001]
    "#,
})
.with_variables(Variables {
    name: "chronocat",
    needs: &["CHRONOCAT_URL", "CHRONOCAT_QQ", "CHRONOCAT_TOKEN"],
    takes: &[],
    read: |set| {
        let mut table = onebot::places("CHRONOCAT_QQ", set)?;
        table.extend(set.table(&[("server", "CHRONOCAT_URL"), ("token", "CHRONOCAT_TOKEN")]));
        Ok(table)
    },
});

/// Messages from QQ on your own machine through Chronocat's Red protocol.
///
/// 1. Install Chronocat into QQ and start it; its settings name the port and the token.
/// 2. Set `server` to its address and `token` to the token.
/// 3. Set `users` and `groups` to the QQ numbers to tell.
///
/// New setups do better with `onebot`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Chronocat {
    /// Address of Chronocat.
    server: Address,
    /// Token of Chronocat.
    token: Secret,
    /// QQ numbers of people. Each gets a message.
    #[serde(default)]
    users: Vec<u64>,
    /// Numbers of groups. Each gets a message.
    #[serde(default)]
    groups: Vec<u64>,
}

#[async_trait]
impl Channel for Chronocat {
    fn targets(&self) -> Vec<Mark> {
        let users = self.users.iter().map(|user| format!("user {user}"));
        let groups = self.groups.iter().map(|group| format!("group {group}"));
        users.chain(groups).map(|place| Mark::of(&place)).collect()
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.users.is_empty() && self.groups.is_empty() {
            return Err(ConfigError("`users` and `groups` name nobody".to_owned()));
        }
        Ok(())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let chat_type = if cx.target < self.users.len() { 1 } else { 2 };
        let number = self.users.iter().chain(&self.groups).nth(cx.target);
        let body = json!({
            "peer": { "chatType": chat_type, "peerUin": number.map(ToString::to_string) },
            "elements": [{
                "elementType": 1,
                "textElement": { "content": KIND.about.dialect.titled(message) },
            }],
        });
        let request = cx.post(&self.server.at(&["api", "message", "send"]));
        request.bearer(Some(&self.token)).json(&body).delivered(&KIND).await
    }
}
