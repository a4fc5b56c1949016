//! MQTT through a real Mosquitto.

use std::{fs, process::Command, time::Duration};

use deskbell_core::{delivery::Failure, event::Format};
use rumqttc::{AsyncClient, Event, EventLoop, Incoming, MqttOptions, Publish, QoS};
use serde_json::Value;

use crate::{
    Configured, configured,
    real::{Certificate, Server, installed},
    sample::{context, message},
};

const PASSWORD: &str = "mqtt-password-0001";

struct Broker {
    server: Server,
    certificate: Option<Certificate>,
}

impl Broker {
    fn start(certificate: Option<Certificate>) -> Self {
        let server = Server::start("mosquitto", |folder, port| {
            let (passwords, rights) = (folder.join("passwords"), folder.join("rights"));
            let mut making = Command::new(installed("mosquitto_passwd"));
            making.args(["-c", "-b"]).arg(&passwords).args(["bell", PASSWORD]);
            assert!(making.status().unwrap().success());
            fs::write(&rights, "user bell\ntopic readwrite deskbell/#\n").unwrap();
            let tls = certificate.as_ref().map_or_else(String::new, |certificate| {
                let (cert, key) = (certificate.path(), certificate.key());
                format!("certfile {}\nkeyfile {}\n", cert.display(), key.display())
            });
            // A broker that is started by root gives that up, and then reads nothing in this folder.
            let configuration = format!(
                "user root\nlistener {port} 127.0.0.1\n{tls}allow_anonymous false\npassword_file {}\nacl_file {}\n",
                passwords.display(),
                rights.display(),
            );
            let file = folder.join("mosquitto.conf");
            fs::write(&file, configuration).unwrap();
            ["-c", file.to_str().unwrap()].map(str::to_owned).to_vec()
        });
        Self { server, certificate }
    }

    fn channel(&self, more: &str) -> Configured {
        let mut options: toml::Table = toml::from_str(&format!(
            "host = 'localhost'\nport = {}\ntopic = 'deskbell/a'\nuser = 'bell'\npassword = '{PASSWORD}'",
            self.server.port
        ))
        .unwrap();
        if let Some(certificate) = &self.certificate {
            let path = certificate.path().display().to_string();
            options.extend([("ca_file".to_owned(), path.into()), ("tls".to_owned(), true.into())]);
        }
        options.extend(toml::from_str::<toml::Table>(more).unwrap());
        configured("mqtt", &options.to_string())
    }

    /// A subscriber to everything that ours publish.
    async fn subscriber(&self) -> (AsyncClient, EventLoop) {
        let mut options = MqttOptions::new("reader", ("localhost", self.server.port));
        options.set_credentials("bell", PASSWORD);
        let (client, mut events) = AsyncClient::builder(options).capacity(8).build();
        client.subscribe("deskbell/#", QoS::AtLeastOnce).await.unwrap();
        while !matches!(events.poll().await.unwrap(), Event::Incoming(Incoming::SubAck(_))) {}
        (client, events)
    }
}

async fn next(events: &mut EventLoop) -> Publish {
    let read = async {
        loop {
            if let Event::Incoming(Incoming::Publish(publish)) = events.poll().await.unwrap() {
                return publish;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), read).await.unwrap()
}

#[tokio::test]
async fn a_message_arrives_with_every_quality() {
    let broker = Broker::start(None);
    let (_client, mut events) = broker.subscriber().await;
    let message = message("text \"ä\" <b>", Format::Text);
    let cx = context(&message, None);
    for quality in 0..=2 {
        broker.channel(&format!("qos = {quality}")).deliver(&message, &cx).await.unwrap();
        let publish = next(&mut events).await;
        let json: Value = serde_json::from_slice(&publish.payload).unwrap();
        assert_eq!(json["body"], "text \"ä\" <b>");
        assert_eq!(json["delivery_id"], cx.delivery.to_string());
    }
    broker.channel("payload = 'text'").deliver(&message, &cx).await.unwrap();
    let told = "Build failed\n\ntext \"ä\" <b>\n\nhttps://ci.example.com/7";
    assert_eq!(next(&mut events).await.payload, told);
}

#[tokio::test]
async fn a_retained_message_waits_for_readers() {
    let broker = Broker::start(None);
    let message = message("kept", Format::Text);
    broker.channel("retain = true").deliver(&message, &context(&message, None)).await.unwrap();
    let (_client, mut events) = broker.subscriber().await;
    let publish = next(&mut events).await;
    assert!(publish.retain);
    assert_eq!(publish.topic, "deskbell/a");
}

#[tokio::test]
async fn the_brokers_certificate_is_checked() {
    let broker = Broker::start(Some(Certificate::new()));
    let message = message("text", Format::Text);
    let cx = context(&message, None);
    broker.channel("").deliver(&message, &cx).await.unwrap();
    let stranger = Certificate::new().path().display().to_string();
    let missing = broker.channel(&format!("ca_file = '{stranger}'"));
    let error = missing.deliver(&message, &cx).await.unwrap_err();
    assert!(error.message.contains("cannot read certificates"), "{error}");
    let other = Certificate::new();
    let wrong = broker.channel(&format!("ca_file = '{}'", other.path().display()));
    let error = wrong.deliver(&message, &cx).await.unwrap_err();
    assert_eq!(error.failure, Failure::Temporary { retry_after: None });
    assert!(error.message.contains("certificate"), "{error}");
}

#[tokio::test]
async fn refusals_mean_what_their_code_says() {
    let broker = Broker::start(None);
    let message = message("text", Format::Text);
    let cx = context(&message, None);
    for (options, told) in [
        ("password = 'wrong-password-1'", "NotAuthorized"),
        ("topic = 'elsewhere'", "NotAuthorized"),
    ] {
        let error = broker.channel(options).deliver(&message, &cx).await.unwrap_err();
        assert_eq!(error.failure, Failure::Permanent, "{options}: {error}");
        assert!(error.message.contains(told), "{options}: {error}");
        // Row 116.
        assert!(!error.message.contains("password-"), "{error}");
    }
}

#[test]
fn topics_and_qualities_are_checked() {
    let kind = deskbell_channels::kind("mqtt").unwrap();
    let refusal =
        |options: &str| kind.build(toml::from_str(options).unwrap()).map(drop).unwrap_err().0;
    assert_eq!(
        refusal("host = 'h'\ntopic = 'a/#'"),
        "`topic` is not right; expected one without `+` and `#`"
    );
    assert_eq!(
        refusal("host = 'h'\ntopic = 'a'\nqos = 3"),
        "`qos` is not right; expected 0, 1 or 2"
    );
}
