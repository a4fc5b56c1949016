use deskbell_core::text;

use crate::{
    aws::{Signer, credentials, elements},
    prelude::*,
};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Sns>(About {
    name: "aws_sns",
    title: "SNS",
    docs: "https://docs.aws.amazon.com/sns/latest/api/API_Publish.html",
    transport: Transport::Http {
        accepted: "<PublishResponse xmlns=\"https://sns.amazonaws.com/doc/2010-03-31/\"><PublishResult><MessageId>567910cd-659e-55d4-8ccb-5aaf14679dc0</MessageId></PublishResult><CreateTopicResult><TopicArn>arn:aws:sns:eu-central-1:123456789012:builds</TopicArn></CreateTopicResult></PublishResponse>",
        verdict: Verdict {
            code: Some("/Code"),
            reason: &["/Message"],
            passing: &[
                Passing::soon("Throttling"),
                Passing::soon("ThrottledException"),
                Passing::soon("RequestLimitExceeded"),
                Passing::soon("InternalError"),
                Passing::soon("InternalFailure"),
                Passing::soon("ServiceUnavailable"),
            ],
            hints: &[
                ("SignatureDoesNotMatch", "check `secret_key`, and this machine's clock"),
                ("AuthorizationError", "allow `sns:Publish` on the topic"),
            ],
            ..Verdict::id("/MessageId")
        },
        refusals: &[
            Refusal::permanent(404, "<ErrorResponse xmlns=\"http://sns.amazonaws.com/doc/2010-03-31/\"><Error><Type>Sender</Type><Code>NotFound</Code><Message>Topic does not exist</Message></Error><RequestId>1</RequestId></ErrorResponse>"),
            Refusal::permanent(403, "<ErrorResponse xmlns=\"http://sns.amazonaws.com/doc/2010-03-31/\"><Error><Type>Sender</Type><Code>SignatureDoesNotMatch</Code><Message>The request signature we calculated does not match the signature you provided.</Message></Error></ErrorResponse>"),
            Refusal::permanent(400, "<ErrorResponse xmlns=\"http://sns.amazonaws.com/doc/2010-03-31/\"><Error><Type>Sender</Type><Code>InvalidParameter</Code><Message>Invalid parameter: PhoneNumber Reason: +1 is not valid to publish to</Message></Error></ErrorResponse>"),
            Refusal::temporary(400, "<ErrorResponse xmlns=\"http://sns.amazonaws.com/doc/2010-03-31/\"><Error><Type>Sender</Type><Code>Throttling</Code><Message>Rate exceeded</Message></Error></ErrorResponse>"),
        ],
    },
    dialect: Dialect::Plain,
    // 262,144 bytes in all.
    limits: Limits { title: 1_000, body: 250_000, unit: Unit::Bytes, per_minute: None },
    edits: false,
    example: r#"
        access_key = "AKIAIOSFODNN7EXAMPLE"
        secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
        region = "eu-central-1"
        to = "arn:aws:sns:eu-central-1:123456789012:builds"
    "#,
})
.with_urls(Urls {
    schemes: &["sns"],
    examples: &[
        "sns://AKIAIOSFODNN7EXAMPLE/wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY/eu-central-1/builds",
        "sns://AQoDYXdzEPT@AKIAIOSFODNN7EXAMPLE/wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY/eu-central-1/14155552671/%23builds",
        "sns://_?access=AKIAIOSFODNN7EXAMPLE&secret=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY&region=eu-central-1&to=builds",
    ],
    read,
    ..Urls::NONE
});

/// Topics and text messages of AWS SNS.
///
/// 1. Create a topic and subscribe to it, by mail for example.
/// 2. In IAM create a user that may do `sns:Publish` and nothing else, with an access key. Set `access_key` and
///    `secret_key`.
/// 3. Set `region`, and `to` to the topic's ARN.
///
/// A topic's plain name needs `sns:CreateTopic` as well, which finds or makes it. A number, such as `+14155552671`, gets
/// a text message, cut at 1,600 characters.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Sns {
    /// Id of the access key.
    access_key: String,
    /// Secret of the access key.
    secret_key: Secret,
    /// Token of temporary credentials.
    session_token: Option<Secret>,
    /// Region, such as `eu-central-1`.
    region: String,
    /// ARN of a topic, its name, or a telephone number. Several get the message each.
    to: Targets<String>,
    /// Address of the service, if it is not the region's own: of an endpoint in your VPC, or of an emulator.
    api: Option<Address>,
}

/// The longest text message, in characters.
const SMS: usize = 1_600;

/// The longest subject, in characters.
const SUBJECT: usize = 99;

const FORM: &str = "application/x-www-form-urlencoded";

fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    // Which is meant shows in what is named.
    url.ignore(&["mode"]);
    let token = url.user.take();
    let key = url.authority();
    let mut options = credentials(url, key)?;
    if let Some(token) = token {
        options.entry("session_token").or_insert_with(|| token.into());
    }
    let targets = url.rest();
    let more = url.parameter("to").unwrap_or_default();
    let all = targets.iter().map(String::as_str).chain(more.split([',', ' ']));
    let all: Vec<toml::Value> = all
        .map(str::trim)
        .filter(|target| !target.is_empty())
        .map(|target| named(target).into())
        .collect();
    if all.is_empty() {
        return Err(url.wrong("names no topic and no number"));
    }
    options.insert("to".to_owned(), all.into());
    Ok(options)
}

/// A target as the option has it: a number with a plus sign, a topic without a hash.
fn named(target: &str) -> String {
    let digits: String = target.chars().filter(char::is_ascii_digit).collect();
    let is_number = target.chars().all(|c| c.is_ascii_digit() || "+-() ".contains(c));
    if is_number && (11..=14).contains(&digits.len()) {
        format!("+{digits}")
    } else {
        target.trim_start_matches('#').to_owned()
    }
}

#[async_trait]
impl Channel for Sns {
    fn targets(&self) -> Vec<Mark> {
        self.to.marks()
    }

    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let to = self.to.at(cx);
        let body = KIND.about.dialect.body(message);
        let with_title = |body: &str| match &message.title {
            Some(title) => format!("{title}\n\n{body}"),
            None => body.to_owned(),
        };
        if to.starts_with('+') {
            let text = text::cut(&with_title(&body), SMS, Unit::Characters);
            return self.publish(&[("PhoneNumber", to), ("Message", &text)], cx).await;
        }
        let topic = if to.starts_with("arn:") { to.clone() } else { self.topic(to, cx).await? };
        // A subject that is not plain ASCII is refused, so that title stands before the text.
        let title = message.title.as_deref();
        let subject = title.filter(|title| title.chars().all(|c| c.is_ascii_graphic() || c == ' '));
        let subject = subject.map(|title| text::cut(title, SUBJECT, Unit::Characters));
        let subject = subject.filter(|subject| subject.is_ascii());
        let text = if subject.is_some() { body } else { with_title(&body) };
        let id = cx.id();
        let mut fields = vec![("TopicArn", topic.as_str()), ("Message", &text)];
        if let Some(subject) = &subject {
            fields.push(("Subject", subject));
        }
        if topic.ends_with(".fifo") {
            fields.extend([("MessageGroupId", "deskbell"), ("MessageDeduplicationId", &id)]);
        }
        self.publish(&fields, cx).await
    }
}

impl Sns {
    async fn publish(
        &self,
        fields: &[(&str, &str)],
        cx: &SendContext,
    ) -> Result<Receipt, SendError> {
        let reply = self.call("Publish", fields, cx).await?;
        KIND.verdict().judge(KIND.about.title, &reply)
    }

    /// The ARN of the topic called `name`.
    async fn topic(&self, name: &str, cx: &SendContext) -> Result<String, SendError> {
        let reply = self.call("CreateTopic", &[("Name", name)], cx).await?;
        let verdict = Verdict { success: Success::Present("/TopicArn"), ..*KIND.verdict() };
        let topic = Verdict { id: Some("/TopicArn"), ..verdict }.judge(KIND.about.title, &reply)?;
        topic.message_id.ok_or_else(|| SendError::temporary("SNS named no topic"))
    }

    async fn call(
        &self,
        action: &str,
        fields: &[(&str, &str)],
        cx: &SendContext,
    ) -> Result<crate::reply::Reply, SendError> {
        let signer = Signer {
            access_key: &self.access_key,
            secret_key: &self.secret_key,
            session_token: self.session_token.as_ref(),
            region: &self.region,
            service: "sns",
            api: self.api.as_ref(),
        };
        let server =
            signer.server("sns").ok_or_else(|| SendError::permanent("`region` is no region"))?;
        let form = form(action, fields);
        let request = signer.sign(cx.post(&server), &server, FORM, &form, cx.now);
        Ok(request.answered().await?.reading(elements))
    }
}

fn form(action: &str, fields: &[(&str, &str)]) -> String {
    let mut form = ::url::form_urlencoded::Serializer::new(String::new());
    form.append_pair("Action", action).append_pair("Version", "2010-03-31").extend_pairs(fields);
    form.finish()
}
