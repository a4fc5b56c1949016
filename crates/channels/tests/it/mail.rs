//! Mail through a real Exim, which keeps what it gets in its queue.

use std::{fs, path::Path};

use deskbell_core::{Message, delivery::Failure, event::Format};

use crate::{
    Configured, configured,
    real::{Certificate, Server},
    sample::{context, message, step, titled},
};

const PASSWORD: &str = "mail-password-0001";

struct MailServer {
    server: Server,
    certificate: Certificate,
}

impl MailServer {
    fn start() -> Self {
        let certificate = Certificate::new();
        let server = Server::start("exim4", |folder, port| {
            let file = folder.join("exim.conf");
            fs::write(&file, configuration(folder, port, &certificate)).unwrap();
            ["-C", file.to_str().unwrap(), "-bdf"].map(str::to_owned).to_vec()
        });
        Self { server, certificate }
    }

    /// A channel to this server; `more` overrides and adds options.
    fn channel(&self, more: &str) -> Configured {
        let defaults = format!(
            "host = 'localhost'\nport = {}\nuser = 'bell'\npassword = '{PASSWORD}'\nca_file = '{}'\n\
             from = 'Bell <bell@example.com>'\nto = ['ada@example.com', 'grace@example.com']",
            self.server.port,
            self.certificate.path().display(),
        );
        let mut options: toml::Table = toml::from_str(&defaults).unwrap();
        for (name, value) in toml::from_str::<toml::Table>(more).unwrap() {
            match value.as_str() {
                Some("-") => options.remove(&name),
                _ => options.insert(name, value),
            };
        }
        configured("smtp", &options.to_string())
    }

    /// The queued mails, each with its envelope and headers before its text.
    fn mails(&self) -> Vec<String> {
        let mut ids: Vec<_> = fs::read_dir(self.server.folder.path().join("spool/input"))
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path().to_str().unwrap().to_owned())
            .filter_map(|path| path.strip_suffix("-H").map(str::to_owned))
            .collect();
        ids.sort();
        let read = |id: &String| {
            ["-H", "-D"].map(|part| fs::read_to_string(format!("{id}{part}")).unwrap()).concat()
        };
        ids.iter().map(read).collect()
    }
}

fn configuration(folder: &Path, port: u16, certificate: &Certificate) -> String {
    let (spool, cert, key) = (folder.join("spool"), certificate.path(), certificate.key());
    format!(
        r#"
spool_directory = {spool}
log_file_path = {spool}/%slog
pid_file_path = {folder}/pid
primary_hostname = mail.example.com
daemon_smtp_ports = {port}
local_interfaces = 127.0.0.1
tls_advertise_hosts = *
tls_certificate = {cert}
tls_privatekey = {key}
auth_advertise_hosts = *
queue_only = true
keep_environment =
host_lookup =
rfc1413_query_timeout = 0s
acl_smtp_rcpt = rcpt
acl_smtp_data = data
begin acl
rcpt:
  deny message = no such user here
       local_parts = nobody
  defer message = try again later
       local_parts = later
  accept authenticated = *
  deny message = log in first
data:
  accept
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = ${{if and{{{{eq{{$auth2}}{{bell}}}}{{eq{{$auth3}}{{{PASSWORD}}}}}}}}}
  server_set_id = $auth2
  server_advertise_condition = ${{if eq{{$tls_in_cipher}}{{}}{{}}{{*}}}}
"#,
        spool = spool.display(),
        folder = folder.display(),
        cert = cert.display(),
        key = key.display(),
    )
}

async fn sent(server: &MailServer, message: &Message) -> String {
    let receipt = server.channel("").deliver(message, &context(message, None)).await.unwrap();
    let mail = server.mails().pop().unwrap();
    assert!(mail.contains(&receipt.message_id.unwrap()), "{mail}");
    mail
}

#[tokio::test]
async fn a_mail_arrives_as_text_and_html_over_tls() {
    let server = MailServer::start();
    let mail = sent(&server, &message("a **b**\n<script>", Format::Markdown)).await;
    for expected in [
        "\nada@example.com\n",
        "\ngrace@example.com\n",
        "TLS1.3",
        "Subject: Build failed",
        "From: Bell <bell@example.com>",
        "Message-ID: <019b7c2e-5f00-7000-8000-000000000001.team@example.com>",
        "Date: Fri, 02 Jan 2026 03:04:05 +0000",
        "Auto-Submitted: auto-generated",
        "Importance: high",
        "Content-Type: multipart/alternative",
        "a b\n",
        "<strong>b</strong>",
        "&lt;script&gt;",
    ] {
        assert!(mail.contains(expected), "{expected} is not in {mail}");
    }
}

#[tokio::test]
async fn headers_cannot_be_forged_and_odd_letters_arrive_row_115() {
    let server = MailServer::start();
    let odd = titled("Größe 漢字\r\nBcc: eve@example.com", "line\r\n.\r\nQUIT ä", Format::Text);
    let mail = sent(&server, &odd).await;
    assert!(!mail.contains("\nBcc:") && !mail.contains("\n037  Bcc"), "{mail}");
    assert!(mail.contains("=?utf-8?"), "{mail}");
    assert!(mail.contains("\n.\n") || mail.contains("\n..\n"), "a lone dot ends no mail: {mail}");
    assert_eq!(server.mails().len(), 1);
}

#[tokio::test]
async fn the_mails_of_a_run_are_one_thread() {
    let server = MailServer::start();
    let thread = |mail: &str| {
        let line = mail.lines().find(|line| line.contains("References: ")).unwrap();
        line.split("References: ").nth(1).unwrap().to_owned()
    };
    let first = thread(&sent(&server, &step("one")).await);
    assert_eq!(first, thread(&sent(&server, &step("two")).await));
    assert!(first.starts_with("<run."), "{first}");
}

#[tokio::test]
async fn refusals_mean_what_their_code_says() {
    let server = MailServer::start();
    let message = message("text", Format::Text);
    let cx = context(&message, None);
    let temporary = Failure::Temporary { retry_after: None };
    for (options, failure, told) in [
        ("to = ['nobody@example.com']", Failure::Permanent, "no such user here"),
        ("to = ['ada@example.com', 'later@example.com']", temporary, "try again later"),
        ("password = 'wrong-password-1'", Failure::Permanent, "535"),
        ("user = '-'\npassword = '-'", Failure::Permanent, "log in first"),
        ("ca_file = '-'", temporary, "certificate"),
    ] {
        let error = server.channel(options).deliver(&message, &cx).await.unwrap_err();
        assert_eq!(error.failure, failure, "{options}: {error}");
        assert!(error.message.contains(told), "{options}: {error}");
        // Row 116.
        assert!(!error.message.contains("password-"), "{error}");
    }
    assert!(server.mails().is_empty());
}

#[test]
fn a_password_is_not_sent_in_the_clear_row_116() {
    let kind = deskbell_channels::kind("smtp").unwrap();
    let build = |host: &str| {
        let options = format!(
            "host = '{host}'\nsecurity = 'none'\nuser = 'u'\npassword = 'pass-0001'\nfrom = 'a@b.c'\nto = ['a@b.c']"
        );
        kind.build(toml::from_str(&options).unwrap()).map(drop).map_err(|error| error.to_string())
    };
    assert!(build("mail.example.com").unwrap_err().contains("`security` is `none`"));
    assert_eq!(build("127.0.0.1"), Ok(()));
}
