//! Secrets in a configuration: found wherever they are written, and never shown.

use super::*;

#[test]
fn secrets_are_found_wherever_they_are_and_never_shown_row_116() {
    let text = r#"
[channels.hook]
kind = "webhook_json"
url = "env:HOOK"
headers = { X-Key = "file:key" }
token = "hunter2-clear"
[serve.tokens]
one = "file:~/key"
two = "env:MISSING"
three = "hunter2-clear"
"#;
    let trial = Trial::user(text)
        .with("key", "hunter2-file\n")
        .with_variable("HOOK", "https://h.example/hunter2-env");
    let config = trial.config();
    let hook = channel(&config, "hook");
    assert_eq!(hook["url"].as_str(), Some("https://h.example/hunter2-env"));
    assert_eq!(hook["headers"]["X-Key"].as_str(), Some("hunter2-file"));
    assert_eq!(config.serve.tokens["one"], "hunter2-file");
    assert_eq!(config.serve.tokens.len(), 2, "a token that is not there is left out");
    assert!(
        config.problems[0].text.contains("`serve.tokens.two`: the variable MISSING is not set")
    );

    let report = config::check(&trial.sources);
    let shown = config::show(&trial.sources).unwrap();
    assert!(shown.contains("url = \"env:HOOK\"") && shown.contains("token = \"***\""), "{shown}");
    let all = format!("{config:?}{report}{report:?}{}{shown}", report.to_json());
    assert!(!all.contains("hunter2"), "{all}");
}

#[test]
fn a_short_token_is_warned_of_and_taken() {
    let trial = Trial::user("[serve.tokens]\na = \"env:SHORT\"\nb = \"env:LONG\"\n")
        .with_variable("SHORT", "fifteen-letters")
        .with_variable("LONG", "sixteen--letters");
    let said = trial.said().concat();
    assert!(said.contains("`serve.tokens.a`: this token is short"), "{said}");
    assert!(!said.contains("serve.tokens.b") && !said.contains("fifteen-letters"), "{said}");
    assert!(config::check(&trial.sources).is_right());
    assert_eq!(trial.config().serve.tokens.len(), 2);
}

#[test]
fn the_login_in_an_address_is_not_shown_row_116() {
    let text =
        "[channels.a]\nkind = \"ntfy\"\ntopic = \"t\"\nserver = \"http://me:hunter2@h.example/\"\n";
    let shown = config::show(&Trial::user(text).sources).unwrap();
    assert!(shown.contains("server = \"http://***@h.example/\""), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[cfg(unix)]
#[test]
fn secrets_that_others_can_read_are_warned_of() {
    use std::os::unix::fs::PermissionsExt as _;
    #[track_caller]
    fn check(text: &str, mode: u32, is_warned_of: bool) {
        let trial = Trial::user(text);
        fs::set_permissions(trial.path("user.toml"), fs::Permissions::from_mode(mode)).unwrap();
        let findings = trial.findings();
        assert_eq!(!findings.is_empty(), is_warned_of, "{findings:?}");
        assert!(findings.iter().all(|finding| finding.severity == Severity::Warning));
        assert!(config::check(&trial.sources).is_right());
    }
    let channel = |token: &str| {
        format!("[channels.a]\nkind = \"ntfy\"\ntopic = \"t\"\ntoken = \"{token}\"\n")
    };
    check(&channel("clear"), 0o644, true);
    check(&channel("clear"), 0o600, false);
    check(&channel("file:/dev/null"), 0o644, false);
    check("[channels.a]\nkind = \"ntfy\"\ntopic = \"t\"\n", 0o644, false);
    check("[serve.tokens]\na = \"clear\"\n", 0o640, true);
}

#[test]
fn secrets_that_travel_in_the_clear_are_warned_of() {
    let channel = |server: &str| {
        format!("[channels.a]\nkind = \"gotify\"\nserver = \"{server}\"\ntoken = \"env:TOKEN\"\n")
    };
    let said = |server: &str| {
        Trial::user(&channel(server)).with_variable("TOKEN", "AKs9f0Qe1vGdx7c").said()
    };
    let warned = said("http://push.example.com");
    assert!(warned.len() == 1 && warned[0].contains("without encryption"), "{warned:?}");
    assert!(warned[0].contains("channels.a.server"), "{warned:?}");
    for fine in ["https://push.example.com", "http://127.0.0.1:8080", "http://localhost"] {
        assert_eq!(said(fine), Vec::<String>::new(), "{fine}");
    }
}
