//! SNS through an emulator of AWS that checks signatures and rights as AWS does: moto.

use serde_json::Value;

use super::{done, python, real::Server};
use crate::support::{Desk, until};

const TOPIC: &str = "arn:aws:sns:eu-central-1:123456789012:builds";

const QUEUE: &str = "arn:aws:sqs:eu-central-1:123456789012:inbox";

/// The emulator with a topic, a queue that hears it, and a user who may publish.
struct Cloud {
    server: Server,
    access_key: String,
    secret_key: String,
}

impl Cloud {
    fn start() -> Self {
        let server = Server::start_file(&python(), |_, port| {
            let arguments = ["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()];
            arguments.map(str::to_owned).to_vec()
        });
        let mut cloud = Self { server, access_key: String::new(), secret_key: String::new() };
        cloud.ask("iam", &[("Action", "CreateUser"), ("UserName", "bell")]);
        let rights = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["sns:Publish","sns:CreateTopic"],"Resource":"*"}]}"#;
        cloud.ask(
            "iam",
            &[
                ("Action", "PutUserPolicy"),
                ("UserName", "bell"),
                ("PolicyName", "publish"),
                ("PolicyDocument", rights),
            ],
        );
        let key = cloud.ask("iam", &[("Action", "CreateAccessKey"), ("UserName", "bell")]);
        cloud.access_key = element(&key, "AccessKeyId");
        cloud.secret_key = element(&key, "SecretAccessKey");
        cloud.ask("sns", &[("Action", "CreateTopic"), ("Name", "builds")]);
        cloud.ask("sqs", &[("Action", "CreateQueue"), ("QueueName", "inbox")]);
        cloud.ask(
            "sns",
            &[
                ("Action", "Subscribe"),
                ("TopicArn", TOPIC),
                ("Protocol", "sqs"),
                ("Endpoint", QUEUE),
            ],
        );
        cloud.check_callers(true);
        cloud
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.server.port)
    }

    /// Whether everybody has to sign and to be allowed what they ask for.
    fn check_callers(&self, check: bool) {
        let unchecked = if check { "0" } else { "inf" };
        let reset = ureq::post(format!("{}/moto-api/reset-auth", self.url()));
        reset.header("content-type", "text/plain").send(unchecked).unwrap();
    }

    /// Asks a service whose callers are not checked.
    fn ask(&self, service: &str, fields: &[(&str, &str)]) -> String {
        let login = format!(
            "AWS4-HMAC-SHA256 Credential=any/20260101/eu-central-1/{service}/aws4_request, \
             SignedHeaders=host, Signature=0"
        );
        let request = ureq::post(format!("{}/", self.url())).header("authorization", &login);
        let mut answer = request.send_form(fields.iter().copied()).unwrap();
        answer.body_mut().read_to_string().unwrap()
    }

    /// What the queue got from the topic: the notification as subscribers get it.
    fn receive(&self) -> Option<Value> {
        self.check_callers(false);
        let url = format!("{}/123456789012/inbox", self.url());
        let told = self.ask("sqs", &[("Action", "ReceiveMessage"), ("QueueUrl", &url)]);
        self.check_callers(true);
        let body = told.contains("<Body>").then(|| element(&told, "Body"))?;
        let body = body.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">");
        Some(serde_json::from_str(&body.replace("&amp;", "&")).unwrap())
    }

    fn channel(&self, name: &str, to: &str, secret_key: &str) -> String {
        format!(
            "[channels.{name}]\nkind = 'aws_sns'\napi = '{}'\naccess_key = '{}'\n\
             secret_key = '{secret_key}'\nregion = 'eu-central-1'\nto = '{to}'\n",
            self.url(),
            self.access_key
        )
    }
}

/// The text of the first element called `name`.
fn element(xml: &str, name: &str) -> String {
    let text = xml.split_once(&format!("<{name}>")).unwrap_or_else(|| panic!("{name}: {xml}")).1;
    text.split_once("</").unwrap().0.to_owned()
}

#[test]
fn a_signed_notice_reaches_the_queue_behind_its_topic_and_others_are_refused() {
    let cloud = Cloud::start();
    let wrong_key = "wrong-secret-key-0000000000000000000000";
    let missing = TOPIC.replace("builds", "missing");
    let mut desk = Desk::with_config(
        &[
            cloud.channel("topic", TOPIC, &cloud.secret_key),
            cloud.channel("by-name", "builds", &cloud.secret_key),
            cloud.channel("missing", &missing, &cloud.secret_key),
            cloud.channel("forged", TOPIC, wrong_key),
        ]
        .concat(),
    );
    desk.serve();
    let text = "212 of 212 <tests> & \"ü\" 你好";
    for channel in ["topic", "by-name"] {
        done(&desk, &["notify", text, "-t", "Build 4711", "--to", channel]);
        let told = until("the notification", || cloud.receive());
        assert_eq!((&told["Subject"], &told["Message"]), (&"Build 4711".into(), &text.into()));
        assert_eq!(told["TopicArn"], TOPIC);
        let deliveries = until("the receipt", || {
            let page = desk.get(&format!("/v1/deliveries?channel={channel}&state=sent")).json();
            (!page["deliveries"].as_array().unwrap().is_empty()).then_some(page)
        });
        assert_eq!(deliveries["deliveries"][0]["message_id"], told["MessageId"]);
    }
    for (channel, reason) in [
        ("missing", "NotFound: Endpoint does not exist"),
        ("forged", "The request signature we calculated does not match"),
    ] {
        let (code, stdout, stderr) = desk.run(&["channel", "test", channel]);
        assert_eq!(code, 1, "{stdout}{stderr}");
        assert!(stdout.contains(reason), "{channel}: {stdout}{stderr}");
        let page = desk.get(&format!("/v1/deliveries?channel={channel}")).json();
        assert_eq!(page["deliveries"][0]["state"], "given_up", "{page}");
    }
    assert_eq!(cloud.receive(), None);
}
