//! Channels through the program, to far ends that behave as the real ones do, and to a real mail server.
#![expect(
    clippy::unwrap_used,
    clippy::string_slice,
    reason = "a test that cannot go on should say where"
)]

// The far ends of the channels' own tests; their certificates are made by rcgen.
#[expect(dead_code, reason = "the channels' own tests use all of it")]
#[path = "../../../channels/tests/fakes/telegram.rs"]
mod fake_telegram;
#[path = "../../../channels/tests/it/mail_server.rs"]
mod mail_server;
#[path = "../../../channels/tests/it/real.rs"]
pub(crate) mod real;

mod matrix;
mod sns;
mod syslog;

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use self::{
    fake_telegram::{CHAT, TOKEN, Telegram},
    mail_server::MailServer,
};
use crate::support::{Desk, FarEnd, Reply, until};

/// A Bot API that answers while its value lives.
struct Bot {
    telegram: Telegram,
    _runtime: Runtime,
}

impl Bot {
    fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        Self { telegram: runtime.block_on(Telegram::start()), _runtime: runtime }
    }

    fn channel(&self) -> String {
        telegram(&self.telegram.address)
    }
}

fn telegram(api: &str) -> String {
    format!(
        "[channels.chat]\nkind = 'telegram'\ntoken = '{TOKEN}'\nchat_id = {CHAT}\napi = '{api}'\n"
    )
}

/// The Python that has the servers of other makers.
fn python() -> PathBuf {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/servers/bin/python");
    assert!(file.exists(), "the servers are not installed; run scripts/test-clients.sh");
    file
}

#[track_caller]
fn done(desk: &Desk, arguments: &[&str]) -> String {
    let (code, stdout, stderr) = desk.run(arguments);
    assert_eq!(code, 0, "{arguments:?}: {stdout}{stderr}");
    stdout
}

#[test]
fn the_steps_of_a_run_are_one_message_in_telegram() {
    let bot = Bot::start();
    let mut desk = Desk::with_config(&bot.channel());
    desk.serve();
    done(&desk, &["event", "deploy-1", "start", "deploying"]);
    until("the first step", || (bot.telegram.messages().len() == 1).then_some(()));
    done(&desk, &["event", "deploy-1", "end", "deployed <everywhere>"]);
    let last = until("the last step", || {
        let messages = bot.telegram.messages();
        assert_eq!(messages.len(), 1, "{messages:?}");
        (messages[0].edits > 0).then(|| messages[0].text.clone())
    });
    assert_eq!(last, "[END] deploy-1\n\ndeployed <everywhere>\n\nprogress: 100 %");
}

#[test]
fn ten_thousand_characters_reach_telegram_in_parts_row_114() {
    let bot = Bot::start();
    let mut desk = Desk::with_config(&bot.channel());
    desk.serve();
    let words: Vec<String> = (0..1_500).map(|number| format!("w{number}&")).collect();
    let text = words.join(" ");
    assert!(text.len() > 9_000);
    done(&desk, &["notify", &format!("{text} {}", "end ".repeat(300)), "--to", "chat"]);
    let told = until("all parts", || {
        let parts: Vec<_> = bot.telegram.messages().into_iter().map(|part| part.text).collect();
        let told = parts.join(" ");
        told.trim_end().ends_with("end").then_some(told)
    });
    let told: Vec<_> = told.split_whitespace().filter(|word| word.starts_with('w')).collect();
    assert_eq!(told, words);
}

#[test]
fn a_refusal_under_200_is_a_failed_delivery_row_109() {
    let far_end = FarEnd::answering(|_, _| {
        let body =
            json!({ "ok": false, "error_code": 400, "description": "Bad Request: chat not found" });
        Reply { body: body.to_string(), ..Reply::status(200) }
    });
    let mut desk = Desk::with_config(&telegram(&far_end.url()));
    desk.serve();
    let (code, stdout, stderr) = desk.run(&["channel", "test", "chat"]);
    assert_eq!(code, 1, "{stdout}{stderr}");
    assert!(stdout.contains("Telegram refused with 400: Bad Request: chat not found"), "{stdout}");
    let deliveries = desk.get("/v1/deliveries").json();
    assert_eq!(deliveries["deliveries"][0]["state"], "given_up", "{deliveries}");
    assert_eq!(far_end.requests().len(), 1, "a refusal for good is not repeated");
}

/// Everything that the far end got comes back in its refusal.
fn echo(number: usize, request: &crate::support::far_end::Request) -> Reply {
    let told = format!("{} {:?} {}", request.path, request.headers, request.body);
    let body = json!({ "ok": false, "error_code": 400, "description": told, "error": told });
    Reply {
        body: body.to_string(),
        ..Reply::status(if number.is_multiple_of(2) { 400 } else { 503 })
    }
}

#[test]
fn no_output_and_no_file_shows_a_secret_row_116() {
    const SECRETS: [&str; 5] =
        ["hook-token-4711", "header-value-4712", "path-secret-4713", "ntfy-password-4714", TOKEN];
    let far_end = FarEnd::answering(echo);
    let url = far_end.url();
    let mut desk = Desk::with_config(&format!(
        "[delivery]\nattempts = 2\n{}\
         [channels.hook]\nkind = 'webhook_json'\nurl = '{url}/path-secret-4713'\ntoken = 'hook-token-4711'\n\
         headers = {{ X-Key = 'header-value-4712' }}\n\
         [channels.push]\nurl = 'ntfy://me:ntfy-password-4714@{}/topic'\n",
        telegram(&url),
        url.trim_start_matches("http://"),
    ));
    desk.serve();
    let mut outputs = Vec::new();
    let mut shown = |arguments: &[&str]| {
        let (_, stdout, stderr) = desk.run(arguments);
        outputs.push((arguments.join(" "), format!("{stdout}{stderr}")));
    };
    shown(&["event", "run-1", "start", "text", "--json"]);
    for channel in ["chat", "hook", "push"] {
        shown(&["channel", "test", channel]);
        shown(&["channel", "preview", channel, "--body", "text"]);
        shown(&["channel", "preview", channel, "--body", "text", "--json"]);
    }
    for arguments in [
        ["channel", "list"].as_slice(),
        &["channel", "list", "--json"],
        &["delivery", "list", "--json"],
        &["config", "show"],
        &["config", "check"],
        &["history", "--json"],
        &["doctor"],
    ] {
        shown(arguments);
    }
    let event = desk.get("/v1/events").json()["events"][0]["id"].as_str().unwrap().to_owned();
    shown(&["why", &event]);
    outputs.push(("GET /v1/deliveries".to_owned(), desk.get("/v1/deliveries").body));
    desk.terminate();
    files(&desk.state(), &mut |path, text| outputs.push((path.display().to_string(), text)));

    assert!(far_end.requests().len() >= 6, "{}", far_end.requests().len());
    let received = format!("{:?}", far_end.requests());
    for secret in SECRETS.iter().filter(|secret| !secret.starts_with("ntfy")) {
        assert!(received.contains(secret), "{secret} was not sent, so this test shows nothing");
    }
    for (place, output) in outputs {
        for secret in SECRETS.iter().chain(&["bWU6bnRmeS1wYXNzd29yZC00NzE0"]) {
            assert!(!output.contains(secret), "{secret} is in {place}:\n{output}");
        }
    }
}

fn files(folder: &Path, see: &mut impl FnMut(&Path, String)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, see);
        } else if path.is_file() {
            see(&path, String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned());
        }
    }
}

#[test]
fn a_mail_reaches_a_real_server_and_a_repeat_has_the_same_id() {
    let server = MailServer::start();
    let mut desk = Desk::with_config(&format!(
        "[channels.mail]\nkind = 'smtp'\nhost = 'localhost'\nport = {}\nuser = 'bell'\npassword = '{}'\n\
         ca_file = '{}'\nfrom = 'bell@example.com'\nto = ['ada@example.com']\n",
        server.port(),
        mail_server::PASSWORD,
        server.ca_file().display(),
    ));
    desk.serve();
    done(&desk, &["notify", "it is **green**", "-t", "Build", "--to", "mail"]);
    let mail = until("the mail", || server.mails().pop());
    assert!(mail.contains("Subject: Build\n") && mail.contains("it is **green**"), "{mail}");
    let deliveries = until("the receipt", || {
        let deliveries: Value = desk.get("/v1/deliveries").json()["deliveries"].clone();
        (deliveries[0]["state"] == "sent").then_some(deliveries)
    });
    let id = deliveries[0]["message_id"].as_str().unwrap();
    assert!(mail.contains(&format!("Message-ID: {id}")), "{id} is not in {mail}");
}

/// Slim containers have no certificates, and may name a proxy that this machine's far ends know nothing of.
#[test]
fn a_machine_without_certificates_still_sends() {
    let far_end = FarEnd::start();
    let url = far_end.url();
    let mut desk =
        Desk::with_config(&format!("[channels.hook]\nkind = 'webhook_json'\nurl = '{url}'\n"));
    desk.serve_with_env(&[
        ("SSL_CERT_FILE", "/nowhere/certificates.pem"),
        ("SSL_CERT_DIR", "/nowhere"),
        ("HTTP_PROXY", "http://127.0.0.1:1"),
        ("ALL_PROXY", "http://127.0.0.1:1"),
    ]);
    done(&desk, &["notify", "text", "--to", "hook"]);
    assert_eq!(far_end.wait_for(1)[0].json()["body"], "text");
}

#[test]
fn a_console_that_nobody_watches_is_named() {
    const UNSEEN: &str = "the daemon was started in the background";
    let mut desk = Desk::with_config("[channels.here]\nkind = 'console'\n");
    let (code, _, stderr) = desk.run(&["channel", "list"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains(&format!("channel `here`: {UNSEEN}")), "{stderr}");
    let (_, stdout, _) = desk.run(&["doctor"]);
    assert!(stdout.contains(&format!("channel here: {UNSEEN}")), "{stdout}");

    desk = Desk::with_config("[channels.here]\nkind = 'console'\n");
    desk.serve();
    let (_, _, stderr) = desk.run(&["channel", "list"]);
    assert!(!stderr.contains(UNSEEN), "{stderr}");
}
