use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use aws_lc_rs::digest;
use rumqttc::{
    AsyncClient, ConnectReturnCode, ConnectionError, EventLoop, MqttOptions, PubAckReason,
    PubRecReason, PublishNoticeError, PublishOptions, PublishProperties, QoS, TlsConfiguration,
    ValidatedTopic,
};
use serde::{Deserializer, de::Error as _};
use tokio::net::TcpStream;

use crate::{below, envelope::Envelope, prelude::*, tls};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Mqtt>(About {
    name: "mqtt",
    title: "MQTT",
    docs: "https://docs.oasis-open.org/mqtt/mqtt/v5.0/mqtt-v5.0.html",
    transport: Transport::Mqtt,
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        host = "broker.example.com"
        topic = "deskbell/builds"
        user = "bell"
        password = "mqtt-password-0815"
    "#,
})
.with_links()
.with_urls(Urls {
    schemes: &["mqtt", "mqtts"],
    examples: &["mqtts://bell:mqtt-password-0815@broker.example.com/deskbell/builds?qos=1"],
    read,
    ..Urls::NONE
});

/// Publishes each message to an MQTT broker that speaks MQTT 5, such as Mosquitto, EMQX or `HiveMQ`.
///
/// 1. Set `host` to the broker, and `tls = true` if it has a certificate.
/// 2. Set `user` and `password` if it wants to know who publishes.
/// 3. Set `topic`, and subscribe to it.
///
/// A message counts as sent when the broker has acknowledged it, which it does with `qos` 1 and 2.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Mqtt {
    /// Name or address of the broker.
    host: String,
    /// Port of the broker; without it 1883, or 8883 with `tls`.
    port: Option<u16>,
    /// Whether the connection is encrypted.
    #[serde(default)]
    tls: bool,
    /// Topic to publish to.
    #[serde(deserialize_with = "topic")]
    topic: String,
    /// How the broker acknowledges: 0 not at all, 1 at least once, 2 exactly once.
    #[serde(default = "at_least_once", deserialize_with = "quality")]
    qos: u8,
    /// Whether the broker keeps the last message for those who subscribe later.
    #[serde(default)]
    retain: bool,
    /// What is published: `json` for programs, `text` for people.
    #[serde(default)]
    payload: Payload,
    /// User to log in as.
    user: Option<String>,
    /// Password of the user.
    password: Option<Secret>,
    /// Certificates to trust beside the machine's, as a PEM file, for brokers with a certificate of their own.
    ca_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Payload {
    #[default]
    Json,
    Text,
}

const fn at_least_once() -> u8 {
    1
}

fn topic<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let topic = String::deserialize(deserializer)?;
    if ValidatedTopic::new(topic.as_str()).is_ok() && !topic.is_empty() {
        Ok(topic)
    } else {
        Err(D::Error::custom("not a topic, expected one without `+` and `#`"))
    }
}

fn quality<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    let quality = u8::deserialize(deserializer)?;
    if quality <= 2 { Ok(quality) } else { Err(D::Error::custom("too high, expected 0, 1 or 2")) }
}

/// How long saying goodbye to the broker may take after it has the message.
const GOODBYE: Duration = Duration::from_secs(1);

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    url.ignore(&["version", "client_id", "session"]);
    let quality = url.parameter("qos").map(|quality| quality.parse::<i64>()).transpose();
    let quality = quality.map_err(|_| url.wrong("has a `qos` that is no number"))?;
    let retain = url.parameter("retain").map(|retain| url::is_yes(&retain));
    let path = url.rest().join("/");
    let topic = url.parameter("to").unwrap_or(path);
    if topic.is_empty() {
        return Err(url.wrong("names no topic"));
    }
    let (user, password) = (url.user.take(), url.password.take());
    let (host, port) = url.host()?;
    Ok(url::options([
        ("host", Some(host.into())),
        ("port", port.map(|port| i64::from(port).into())),
        ("tls", (url.scheme == "mqtts").then(|| true.into())),
        ("topic", Some(topic.into())),
        ("qos", quality.map(Into::into)),
        ("retain", retain.map(Into::into)),
        ("user", user.map(Into::into)),
        ("password", password.map(Into::into)),
    ]))
}

#[async_trait]
impl Channel for Mqtt {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let (kind, body) = match self.payload {
            Payload::Json => ("application/json", Envelope::of(message, cx).line()),
            Payload::Text => ("text/plain", text(message)),
        };
        if let Some(preview) = &cx.preview {
            preview.note(json!({
                "transport": "mqtt",
                "topic": self.topic,
                "qos": self.qos,
                "retain": self.retain,
                "body": body,
            }));
            return Ok(Receipt::default());
        }
        let properties = PublishProperties {
            payload_format_indicator: Some(1),
            content_type: Some(kind.to_owned()),
            user_properties: vec![("delivery_id".to_owned(), cx.id())],
            ..PublishProperties::default()
        };
        let quality = match self.qos {
            0 => QoS::AtMostOnce,
            1 => QoS::AtLeastOnce,
            _ => QoS::ExactlyOnce,
        };
        let options = PublishOptions::new(quality).retain(self.retain).properties(properties);
        let addresses = cx.resolve(&self.host, self.port()).await?;
        self.publish(body, options, self.connection(addresses.into(), cx)?).await?;
        Ok(Receipt::default())
    }
}

fn text(message: &Message) -> String {
    let body = KIND.about.dialect.body(&below::whole(message));
    match &message.title {
        Some(title) => format!("{title}\n\n{body}"),
        None => body,
    }
}

impl Mqtt {
    fn port(&self) -> u16 {
        self.port.unwrap_or(if self.tls { 8883 } else { 1883 })
    }

    /// Connects, publishes, and leaves when the broker has acknowledged.
    async fn publish(
        &self,
        body: String,
        options: PublishOptions,
        connection: MqttOptions,
    ) -> Result<(), SendError> {
        let (client, mut connection) = AsyncClient::builder(connection)
            .try_build()
            .map_err(|error| SendError::permanent(format!("cannot connect: {error}")))?;
        let published = async {
            let sent = client.publish_tracked(self.topic.as_str(), body, options).await;
            let notice =
                sent.map_err(|error| SendError::permanent(format!("cannot publish: {error}")))?;
            notice.wait_completion_async().await.map_err(|error| not_published(&error))
        };
        tokio::select! {
            outcome = published => outcome?,
            error = broken(&mut connection) => return Err(not_connected(&error)),
        }
        // The broker has the message; what happens to the goodbye changes nothing.
        let goodbye = async {
            if client.disconnect().await.is_ok() {
                broken(&mut connection).await;
            }
        };
        tokio::time::timeout(GOODBYE, goodbye).await.unwrap_or_default();
        Ok(())
    }

    /// How the broker at `addresses` is reached. Its name is only for its certificate.
    fn connection(
        &self,
        addresses: Arc<[SocketAddr]>,
        cx: &SendContext,
    ) -> Result<MqttOptions, SendError> {
        let mut options = MqttOptions::new(client_id(cx), (self.host.as_str(), self.port()));
        options.set_socket_connector(move |_name, _options| {
            let addresses = Arc::clone(&addresses);
            async move { TcpStream::connect(&*addresses).await }
        });
        options.set_connect_timeout(cx.timeout);
        if self.tls {
            let config = tls::client_config(self.ca_file.as_deref())
                .map_err(|error| SendError::permanent(error.to_string()))?;
            let config = TlsConfiguration::Rustls(Arc::new(config));
            options.set_transport(rumqttc::Transport::tls_with_config(config));
        }
        match (&self.user, &self.password) {
            (Some(user), Some(password)) => {
                options.set_credentials(user, password.expose().to_owned());
            }
            (Some(user), None) => {
                options.set_username(user);
            }
            _ => {}
        }
        Ok(options)
    }
}

/// A name for the connection. A broker ends an older connection of the same name, so each attempt has its own.
fn client_id(cx: &SendContext) -> String {
    let attempt = format!("{} {}", cx.id(), cx.attempt);
    let digest = digest::digest(&digest::SHA256, attempt.as_bytes());
    // Every broker takes 23 letters and digits.
    let name: String = digest.as_ref().iter().take(7).map(|byte| format!("{byte:02x}")).collect();
    format!("deskbell{name}")
}

/// Keeps the connection going until it breaks, and says why.
async fn broken(connection: &mut EventLoop) -> ConnectionError {
    loop {
        if let Err(error) = connection.poll().await {
            return error;
        }
    }
}

fn not_connected(error: &ConnectionError) -> SendError {
    let message = format!("cannot reach the broker: {error}");
    let ConnectionError::ConnectionRefused(code) = error else {
        return SendError::temporary(message);
    };
    match code {
        ConnectReturnCode::ServiceUnavailable
        | ConnectReturnCode::ServerUnavailable
        | ConnectReturnCode::ServerBusy
        | ConnectReturnCode::QuotaExceeded
        | ConnectReturnCode::ConnectionRateExceeded
        | ConnectReturnCode::UnspecifiedError
        | ConnectReturnCode::ImplementationSpecificError => SendError::temporary(message),
        _ => SendError::permanent(format!("the broker refused the connection: {code:?}")),
    }
}

fn not_published(error: &PublishNoticeError) -> SendError {
    let message = format!("the broker did not take the message: {error}");
    match error {
        PublishNoticeError::V5PubAck(
            PubAckReason::NotAuthorized
            | PubAckReason::TopicNameInvalid
            | PubAckReason::PayloadFormatInvalid,
        )
        | PublishNoticeError::V5PubRec(
            PubRecReason::NotAuthorized
            | PubRecReason::TopicNameInvalid
            | PubRecReason::PayloadFormatInvalid,
        )
        | PublishNoticeError::RetainNotSupported => SendError::permanent(message),
        _ => SendError::temporary(message),
    }
}
