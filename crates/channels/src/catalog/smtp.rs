use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::OnceLock,
};

use lettre::transport::smtp::{
    Error,
    authentication::{Credentials, DEFAULT_MECHANISMS},
    client::{AsyncSmtpConnection, Certificate, CertificateStore, TlsParameters},
    extension::ClientId,
};

use crate::{
    mail::{self, Head, MailAddress},
    mail_url, mail_variables,
    prelude::*,
    tls,
};

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Smtp>(About {
    name: "smtp",
    title: "Mail",
    docs: "https://www.rfc-editor.org/rfc/rfc5321",
    transport: Transport::Smtp,
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: false,
    example: r#"
        host = "mail.example.com"
        user = "bell@example.com"
        password = "app-password-4711"
        from = "Deskbell <bell@example.com>"
        to = ["ada@example.com", "Grace <grace@example.com>"]
    "#,
})
// Servers take 25 MB as a rule, and in a mail a file grows by a third.
.with_files(Files::Within(15_000_000))
.with_urls(Urls {
    schemes: &["mailto", "mailtos"],
    examples: &[
        "mailtos://bell:app-password-4711@example.com/ada@example.com?smtp=mail.example.com",
        "mailto://bell:app-password-4711@gmail.com",
        "mailtos://example.com?user=bell@example.com&pass=app-password-4711&to=ada@example.com&cc=grace@example.com&bcc=eve@example.com&reply=team@example.com&+X-Team=shop",
    ],
    read: mail_url::read,
    ..Urls::NONE
})
.with_variables(Variables {
    name: "smtp",
    needs: &["SMTP_SERVER", "SMTP_EMAIL", "SMTP_PASSWORD"],
    takes: &["SMTP_SSL", "SMTP_NAME", "SMTP_EMAIL_TO", "SMTP_TO"],
    read: mail_variables::read,
});

/// Mail through your mail provider's server.
///
/// 1. Set `host` to the server your provider names for outgoing mail.
/// 2. Set `user` and `password`. Providers with two-factor login ask for an app password made for this.
/// 3. Set `from` to an address you may send from, and `to` to the readers.
///
/// All readers get the same mail; where the server refuses one of them, none gets it and the refusal is shown. The
/// mails of a run form one thread.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Smtp {
    /// Name of the mail server.
    host: String,
    /// Port of the server; without it 587 for `starttls`, 465 for `tls`, 25 for `none`.
    port: Option<u16>,
    /// How the connection is protected: `starttls`, `tls` (from the first byte) or `none`.
    #[serde(default)]
    security: Security,
    /// User to log in as.
    user: Option<String>,
    /// Password of the user.
    password: Option<Secret>,
    /// Sender.
    from: MailAddress,
    /// Readers.
    to: Vec<MailAddress>,
    /// Readers of a copy, whom everybody sees.
    #[serde(default)]
    cc: Vec<MailAddress>,
    /// Readers of a copy, whom nobody sees.
    #[serde(default)]
    bcc: Vec<MailAddress>,
    /// Where answers go, if not to the sender.
    #[serde(default)]
    reply_to: Vec<MailAddress>,
    /// Further headers of each mail.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Certificates to trust beside the machine's, as a PEM file, for servers with a certificate of their own.
    ca_file: Option<PathBuf>,
    /// Made when it is first needed, because it reads the machine's certificates.
    #[serde(skip)]
    tls: OnceLock<Result<TlsParameters, String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Security {
    #[default]
    Starttls,
    Tls,
    None,
}

#[async_trait]
impl Channel for Smtp {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let head = Head {
            from: &self.from,
            to: &self.to,
            cc: &self.cc,
            bcc: &self.bcc,
            reply_to: &self.reply_to,
            headers: &self.headers,
        };
        let mail = mail::compose(message, cx, &head)?;
        if let Some(preview) = &cx.preview {
            let readers = [&self.to, &self.cc, &self.bcc].into_iter().flatten();
            let readers: Vec<_> = readers.map(ToString::to_string).collect();
            preview.note(json!({
                "transport": "smtp",
                "from": self.from.to_string(),
                "to": readers,
                "body": String::from_utf8_lossy(&mail.formatted()),
            }));
            return Ok(Receipt::default());
        }
        let tls = self.tls()?;
        let addresses = cx.resolve(&self.host, self.port()).await?;
        self.deliver(&mail, &addresses, tls, cx).await.map_err(|error| failure(&error, cx))?;
        Ok(Receipt { message_id: Some(mail::message_id(cx, &self.from)) })
    }

    fn check(&self) -> Result<(), ConfigError> {
        let local = self.host == "localhost"
            || self.host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        match (&self.user, &self.password) {
            _ if self.headers.keys().any(|name| !mail::is_header(name)) => {
                Err(ConfigError("`headers` has a name that mails do not allow".to_owned()))
            }
            _ if self.to.is_empty() => Err(ConfigError("`to` names no reader".to_owned())),
            (Some(_), None) => Err(ConfigError("`password` is missing beside `user`".to_owned())),
            (None, Some(_)) => Err(ConfigError("`user` is missing beside `password`".to_owned())),
            (Some(_), Some(_)) if self.security == Security::None && !local => Err(ConfigError(
                "`security` is `none`, which would show `password` to the network; expected `starttls` or `tls`"
                    .to_owned(),
            )),
            _ => Ok(()),
        }
    }
}

impl Smtp {
    fn port(&self) -> u16 {
        self.port.unwrap_or(match self.security {
            Security::Starttls => 587,
            Security::Tls => 465,
            Security::None => 25,
        })
    }

    /// Sends `mail` over a connection to the first of `addresses` that takes one. The server's name is only in `tls`,
    /// for its certificate: lettre's own transport would resolve it again, past the guard.
    async fn deliver(
        &self,
        mail: &lettre::Message,
        addresses: &[SocketAddr],
        tls: Option<TlsParameters>,
        cx: &SendContext,
    ) -> Result<(), Error> {
        let (at_once, later) = match self.security {
            Security::Tls => (tls, None),
            Security::Starttls | Security::None => (None, tls),
        };
        let (timeout, hello) = (Some(cx.timeout), ClientId::default());
        let mut server =
            AsyncSmtpConnection::connect_tokio1(addresses, timeout, &hello, at_once, None).await?;
        if let Some(tls) = later {
            server.starttls(tls, &hello).await?;
        }
        if let (Some(user), Some(password)) = (&self.user, &self.password) {
            let login = Credentials::new(user.clone(), password.expose().to_owned());
            server.auth(DEFAULT_MECHANISMS, &login).await?;
        }
        server.send(mail.envelope(), &mail.formatted()).await?;
        server.abort().await;
        Ok(())
    }

    fn tls(&self) -> Result<Option<TlsParameters>, SendError> {
        if self.security == Security::None {
            return Ok(None);
        }
        let tls = self.tls.get_or_init(|| self.trusted()).clone();
        tls.map(Some).map_err(SendError::permanent)
    }

    fn trusted(&self) -> Result<TlsParameters, String> {
        let extra = self.ca_file.as_deref().map(tls::read).transpose();
        let mut machine = TlsParameters::builder(self.host.clone());
        let mut bundled =
            TlsParameters::builder(self.host.clone()).certificate_store(CertificateStore::None);
        let certificate =
            |der: &[u8]| Certificate::from_der(der.to_vec()).map_err(|error| error.to_string());
        for der in extra.map_err(|error| error.to_string())?.into_iter().flatten() {
            machine = machine.add_root_certificate(certificate(&der)?);
            bundled = bundled.add_root_certificate(certificate(&der)?);
        }
        machine.build_rustls().or_else(|_| {
            // As in `tls`: a machine may have no certificates at all.
            for der in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
                bundled = bundled.add_root_certificate(certificate(der)?);
            }
            bundled.build_rustls().map_err(|error| error.to_string())
        })
    }
}

/// What a failure means: servers say it with the first digit of their code.
fn failure(error: &Error, cx: &SendContext) -> SendError {
    let told = cx.excerpt(&error.to_string());
    if error.is_permanent() || error.is_client() {
        SendError::permanent(format!("the mail server refused: {told}"))
    } else if error.is_transient() {
        SendError::temporary(format!("the mail server refused for now: {told}"))
    } else {
        SendError::temporary(format!("cannot reach the mail server: {told}"))
    }
}
