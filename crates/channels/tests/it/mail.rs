//! Mail through a real Exim, which keeps what it gets in its queue.

use deskbell_core::{Message, delivery::Failure, event::Format};

use crate::{
    Configured, configured,
    mail_server::{MailServer, PASSWORD},
    sample::{context, message, step, titled},
};

/// A channel to `server`; `more` overrides and adds options.
fn channel(server: &MailServer, more: &str) -> Configured {
    let defaults = format!(
        "host = 'localhost'\nport = {}\nuser = 'bell'\npassword = '{PASSWORD}'\nca_file = '{}'\n\
         from = 'Bell <bell@example.com>'\nto = ['ada@example.com', 'grace@example.com']",
        server.port(),
        server.ca_file().display(),
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

async fn sent(server: &MailServer, message: &Message) -> String {
    let receipt = channel(server, "").deliver(message, &context(message, None)).await.unwrap();
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
        let error = channel(&server, options).deliver(&message, &cx).await.unwrap_err();
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
