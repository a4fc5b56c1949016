use crate::{alert, prelude::*};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<HomeAssistant>(About {
    name: "home_assistant",
    title: "Home Assistant",
    docs: "https://companion.home-assistant.io/docs/notifications/notifications-basic/",
    transport: Transport::Http {
        // A service answers with the states that it changed.
        accepted: "[]",
        verdict: Verdict { success: Success::List, ..Verdict::STATUS },
        refusals: &[
            Refusal::permanent(401, "401: Unauthorized"),
            Refusal::permanent(400, "400: Bad Request"),
        ],
    },
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: true,
    example: r#"
        server = "http://homeassistant.local:8123"
        token = "eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJhIn0.c2lnbmF0dXJl"
        service = "mobile_app_pixel"
    "#,
})
.with_urls(Urls {
    schemes: &["hassio", "hassios"],
    examples: &[
        "hassio://homeassistant.local/eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJhIn0.c2lnbmF0dXJl",
        "hassios://ha.example.com/eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJhIn0.c2lnbmF0dXJl/mobile_app_pixel/notify.family?prefix=/ha",
    ],
    read,
    ..Urls::NONE
});

/// Notifications of [Home Assistant](https://www.home-assistant.io): in its apps, or on its page.
///
/// 1. Open your profile, then Security, create a long-lived access token and set `token` to it.
/// 2. Set `server` to the address of the page.
/// 3. For the app on a phone set `service` to `mobile_app_` and the name of the phone; Developer tools, Actions lists
///    all services. Without `service` the notification stands on the page.
///
/// The steps of a run take each other's place, in the app with a bar that shows the progress.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HomeAssistant {
    /// Address of the server.
    server: Address,
    /// Long-lived access token.
    token: Secret,
    /// Service that notifies: one of the domain `notify`, or another one as `domain.service`, with its own targets
    /// behind a colon where it has some: `telegram:family,ops`. Several get a message each.
    service: Option<Targets<String>>,
    /// Id of the notification, so that each message takes the place of the last one.
    notification_id: Option<String>,
}

/// The port of a server that is not reached through a proxy.
const PORT: u16 = 8123;

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    url.ignore(&["batch"]);
    // Home Assistant takes its token and no login.
    (url.user, url.password) = (None, None);
    let prefix = url.parameter("prefix").unwrap_or_default();
    let server = match url.host()? {
        (_, Some(_)) => url.web()?,
        (host, None) if url.scheme == "hassio" => format!("http://{host}:{PORT}"),
        (host, None) => format!("https://{host}"),
    };
    let named = url.parameter("accesstoken").or_else(|| url.parameter("token"));
    let token = match (named, url.path.iter().position(|part| is_token(part)), url.path.len()) {
        (Some(token), _, _) => token,
        (None, Some(place), _) => url.path.remove(place),
        (None, None, 1) => url.next("token")?,
        (None, None, 0) => return Err(url.wrong("names no token")),
        _ => return Err(url.wrong("has no long-lived token in its path; give it as `token`")),
    };
    Ok(url::options([
        ("server", Some(format!("{server}{prefix}").into())),
        ("token", Some(token.into())),
        ("service", url.targets()),
        ("notification_id", url.parameter("nid").map(Into::into)),
    ]))
}

/// Whether `part` is a JSON Web Token, as long-lived tokens are.
fn is_token(part: &str) -> bool {
    let parts: Vec<_> = part.split('.').collect();
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    parts.len() == 3 && parts.iter().all(|part| !part.is_empty() && part.chars().all(is_base64))
}

#[async_trait]
impl Channel for HomeAssistant {
    fn targets(&self) -> Vec<Mark> {
        Targets::marks_or_one(self.service.as_ref())
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let id = alert::key(self.notification_id.as_deref(), message, cx);
        let service = self.service.as_ref().map(|service| service.at(cx).as_str());
        let (domain, service) = match service {
            None => ("persistent_notification", "create"),
            Some(service) => service.split_once('.').unwrap_or(("notify", service)),
        };
        let (service, places) = service.split_once(':').unwrap_or((service, ""));
        let places: Vec<_> = places.split(',').filter(|place| !place.is_empty()).collect();
        let is_page = domain == "persistent_notification";
        // Only the apps say what they know beside title and message; other services refuse what they do not.
        let is_app = domain == "notify" && service.starts_with("mobile_app_");
        // The page reads Markdown, where the apps do not.
        let body = if is_page { message.body.clone() } else { KIND.about.dialect.body(message) };
        let call = json!({
            "title": message.title,
            "message": body,
            "target": (!places.is_empty()).then_some(places),
            "notification_id": is_page.then_some(&id),
            "data": is_app.then(|| app_data(&id, message)),
        });
        let address = self.server.at(&["api", "services", domain, service]);
        let request = cx.post(&address).bearer(Some(&self.token)).json(&present(call));
        request.delivered(&KIND).await?;
        Ok(Receipt { message_id: Some(id) })
    }
}

/// What the apps know beside title and message. What only one of them knows, the other one passes over.
fn app_data(id: &str, message: &Message) -> Value {
    let (ios, is_urgent) = match message.level {
        Level::Debug => ("passive", false),
        Level::Info | Level::Notice => ("active", false),
        Level::Warning | Level::Error => ("time-sensitive", true),
        Level::Critical | Level::Alert | Level::Emergency => ("critical", true),
    };
    let progress = message.run.as_ref().and_then(|run| run.progress);
    present(json!({
        "tag": id,
        "url": message.link,
        "clickAction": message.link,
        "push": { "interruption-level": ios },
        "priority": is_urgent.then_some("high"),
        "ttl": is_urgent.then_some(0),
        "progress": progress.map(|progress| progress.percent()),
        "progress_max": progress.map(|_| 100),
    }))
}
