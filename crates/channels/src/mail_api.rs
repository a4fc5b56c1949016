//! What the channels of mail services have in common: who writes to whom, the parts of a mail, and addresses that
//! stand for such a channel.

use deskbell_core::Message;
use serde_json::{Value, json};

use crate::{
    channel::{ConfigError, SendContext},
    files::ReadFile,
    mail::{self, MailAddress},
    render::Dialect,
    targets::Targets,
    url::{self, ServiceUrl},
};

/// Declares the options of a mail service's channel: its own, and those that all of them have.
///
/// A macro rather than a struct in a struct, because serde forgets which option was wrong in what it flattens.
macro_rules! mail_options {
    (
        $(#[$about:meta])*
        struct $name:ident {
            $($(#[$doc:meta])* $option:ident: $kind:ty,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        struct $name {
            $($(#[$doc])* $option: $kind,)*
            /// Sender, such as `Deskbell <bell@example.com>`.
            from: $crate::mail::MailAddress,
            /// Readers. All of them get the same mail and see each other.
            to: Targets<$crate::mail::MailAddress>,
            /// Readers of a copy, whom everybody sees.
            cc: Option<Targets<$crate::mail::MailAddress>>,
            /// Readers of a copy, whom nobody sees.
            bcc: Option<Targets<$crate::mail::MailAddress>>,
            /// Where answers go, if not to the sender.
            reply_to: Option<Targets<$crate::mail::MailAddress>>,
        }

        impl $name {
            /// `message` as a mail in its parts.
            fn letter<'a>(
                &'a self,
                message: &Message,
                cx: &SendContext,
            ) -> $crate::mail_api::Letter<'a> {
                $crate::mail_api::Letter::new(&self.from, &self.to, message, cx)
                    .with_copies(self.cc.as_ref(), self.bcc.as_ref(), self.reply_to.as_ref())
            }
        }
    };
}

pub(crate) use mail_options;

/// A file in a mail.
pub(crate) struct Attached {
    pub(crate) name: String,
    pub(crate) media_type: String,
    /// What it holds.
    pub(crate) base64: String,
}

/// A mail in its parts.
pub(crate) struct Letter<'a> {
    pub(crate) from: &'a MailAddress,
    pub(crate) to: Vec<&'a MailAddress>,
    pub(crate) cc: Vec<&'a MailAddress>,
    pub(crate) bcc: Vec<&'a MailAddress>,
    pub(crate) reply_to: Vec<&'a MailAddress>,
    pub(crate) subject: String,
    pub(crate) text: String,
    pub(crate) html: String,
    pub(crate) files: Vec<Attached>,
    /// How urgent it is, that nobody is to answer it by machine, and what run it belongs to.
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl<'a> Letter<'a> {
    pub(crate) fn new(
        from: &'a MailAddress,
        to: &'a Targets<MailAddress>,
        message: &Message,
        cx: &SendContext,
    ) -> Self {
        Self {
            from,
            to: to.iter().collect(),
            cc: Vec::new(),
            bcc: Vec::new(),
            reply_to: Vec::new(),
            subject: mail::subject(message),
            text: Dialect::Plain.body(message),
            html: mail::page(message),
            files: cx.files.iter().map(|file| Attached::of(file, cx)).collect(),
            headers: mail::headers(message, cx, from),
        }
    }

    pub(crate) fn with_copies(
        self,
        cc: Option<&'a Targets<MailAddress>>,
        bcc: Option<&'a Targets<MailAddress>>,
        reply_to: Option<&'a Targets<MailAddress>>,
    ) -> Self {
        let all = |targets: Option<&'a Targets<MailAddress>>| {
            targets.into_iter().flat_map(Targets::iter).collect()
        };
        Self { cc: all(cc), bcc: all(bcc), reply_to: all(reply_to), ..self }
    }
}

impl Attached {
    fn of(file: &ReadFile, cx: &SendContext) -> Self {
        let (name, media_type) = (file.name.clone(), file.media_type.clone());
        Self { name, media_type, base64: file.in_base64(cx) }
    }
}

/// `address` as `{"email": …, "name": …}`.
pub(crate) fn object(address: &MailAddress) -> Value {
    match address.name() {
        Some(name) => json!({ "email": address.address(), "name": name }),
        None => json!({ "email": address.address() }),
    }
}

/// `addresses` as objects, each `{"email": …, "name": …}`.
pub(crate) fn objects(addresses: &[&MailAddress]) -> Vec<Value> {
    addresses.iter().map(|address| object(address)).collect()
}

/// `addresses` as texts, each `Name <address>`.
pub(crate) fn texts(addresses: &[&MailAddress]) -> Vec<String> {
    addresses.iter().map(ToString::to_string).collect()
}

/// `body` without the fields that are null or an empty list, which services refuse.
pub(crate) fn compact(mut body: Value) -> Value {
    if let Some(fields) = body.as_object_mut() {
        fields
            .retain(|_, value| !value.is_null() && value.as_array().is_none_or(|a| !a.is_empty()));
    }
    body
}

/// The options that `SCHEME://KEY:SENDER@DOMAIN/READER/…` stands for. With `from` what else stands there is a reader.
pub(crate) fn read(url: &mut ServiceUrl) -> Result<toml::Table, ConfigError> {
    let (user, password) = (url.user.take(), url.password.take());
    let (token, local) = match url.parameter("apikey") {
        Some(token) => (Some(token), password.or(user)),
        None => (user, password),
    };
    let token = token.ok_or_else(|| url.wrong("names no key"))?;
    let host = url.authority();
    let address = local.zip(host.clone()).map(|(local, domain)| format!("{local}@{domain}"));
    let (sender, reader) = match (url.parameter("from"), address) {
        (Some(sender), address) => (sender, address.or(host.filter(|host| host.contains('@')))),
        (None, Some(sender)) => (sender, None),
        (None, None) => return Err(url.wrong("names no sender")),
    };
    let name = url.parameter("name");
    let mut options = people(url, &sender, name.as_deref(), reader);
    options.insert("token".to_owned(), token.into());
    Ok(options)
}

/// The options that name people: the sender, and the readers that are left in `url` after `first`. Without any, the
/// sender is the reader.
pub(crate) fn people(
    url: &mut ServiceUrl,
    sender: &str,
    name: Option<&str>,
    first: Option<String>,
) -> toml::Table {
    let mut readers: Vec<toml::Value> =
        first.into_iter().chain(url.rest()).map(Into::into).collect();
    readers.extend(listed(url, "to").into_iter().flatten());
    if readers.is_empty() {
        readers.push(sender.into());
    }
    let from = match name {
        Some(name) => format!("\"{}\" <{sender}>", name.replace(['"', '\\'], "")),
        None => sender.to_owned(),
    };
    url::options([
        ("from", Some(from.into())),
        ("to", Some(readers.into())),
        ("cc", listed(url, "cc").map(Into::into)),
        ("bcc", listed(url, "bcc").map(Into::into)),
        ("reply_to", listed(url, "reply").map(Into::into)),
    ])
}

/// The addresses in the parameter `name`, if there are any.
fn listed(url: &mut ServiceUrl, name: &str) -> Option<Vec<toml::Value>> {
    let written = url.parameter(name)?;
    let all = written.split([',', ';']).map(str::trim).filter(|address| !address.is_empty());
    Some(all.map(toml::Value::from).collect()).filter(|all: &Vec<_>| !all.is_empty())
}

#[cfg(test)]
mod tests {
    use crate::catalog::from_url;

    #[track_caller]
    fn check(address: &str, options: &str) {
        let read = from_url(address).unwrap();
        assert!(address.starts_with(read.kind));
        let options: toml::Table = toml::from_str(options).unwrap();
        assert_eq!(read.options, options);
    }

    #[test]
    fn addresses_of_mail_services_are_read_as_apprise_reads_them() {
        check(
            "brevo://k-1:bell@example.com",
            "token = 'k-1'\nfrom = 'bell@example.com'\nto = ['bell@example.com']",
        );
        check(
            "sendgrid://SG.x:bell@example.com/a@x.org/b@x.org?to=c@x.org,d@x.org&template=d-1&+team=shop",
            "token = 'SG.x'\nfrom = 'bell@example.com'\n\
             to = ['a@x.org', 'b@x.org', 'c@x.org', 'd@x.org']\n\
             template = 'd-1'\ntemplate_data = { team = 'shop' }",
        );
        check(
            "resend://a@x.org/b@x.org?apikey=re_1&from=bell@example.com&name=The%20%22Bell%22&reply=c@x.org",
            "token = 're_1'\nfrom = '\"The Bell\" <bell@example.com>'\n\
             to = ['a@x.org', 'b@x.org']\nreply_to = ['c@x.org']",
        );
        check(
            "postmark://t-1:bell@example.com?cc=a@x.org&bcc=b@x.org",
            "token = 't-1'\nfrom = 'bell@example.com'\nto = ['bell@example.com']\n\
             cc = ['a@x.org']\nbcc = ['b@x.org']",
        );
        check(
            "mailgun://bell@mg.example.com/key-1/a@x.org?name=Bell&region=EU&+X-A=b&:c=d&batch=yes",
            "token = 'key-1'\ndomain = 'mg.example.com'\nregion = 'eu'\n\
             from = '\"Bell\" <bell@mg.example.com>'\nto = ['a@x.org']\n\
             headers = { X-A = 'b' }\nvariables = { c = 'd' }",
        );
    }
}
