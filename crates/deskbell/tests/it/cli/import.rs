//! `deskbell channel import`.

use std::{fs, io::Write as _, process::Stdio};

use serde_json::Value;

use crate::support::Desk;

/// A configuration in lines, as Apprise documents it.
const LINES: &str = "\
# my services
; and another comment
ntfy://plain
team,ops = gotify://gotify.example.com/AbCdEfGhIjKlMn1
team=ntfys://ntfy.example.com/team?format=markdown
everyone = team, phone
phone = pbulll://nothing
include more.cfg
this is wrong!
";

/// A configuration in YAML, as Apprise documents it.
const YAML: &str = "\
version: 1
asset:
  app_id: Backups
tag: global
groups:
  - everyone: family, ops
include: more.cfg
urls:
  - ntfy://plain:
      tag: family
  - json://localhost:8080/hook:
      - tag: ops
        +X-Token: a-long-token-here
      - tag: ops
        user: me
        pass: my-password
  - mailtos://example.com:
      smtp: mail.example.com
      from: sender@example.com
      user: me
      password: another-secret
      to:
        - one@example.com
        - two@example.com
  - not an address
  - https://elsewhere.example.com/unknown
";

fn desk() -> Desk {
    let desk = Desk::new();
    let file = |name: &str, text: &str| fs::write(desk.folder().join(name), text).unwrap();
    file("apprise.conf", LINES);
    file("apprise.yml", YAML);
    file("more.cfg", "included=gotifys://g.example.com/AbCdEfGhIjKlMn2\ninclude apprise.conf\n");
    file("config.sh", "export NTFY_TOPIC=\"of-the-file\"\nexport DD_BOT_TOKEN='dd-token-0123'\n");
    desk
}

#[track_caller]
fn imported(desk: &Desk, arguments: &[&str]) -> (i32, toml::Table, String, String) {
    let (code, stdout, stderr) = desk.run(&[&["channel", "import"], arguments].concat());
    let table = stdout.parse().unwrap_or_else(|error| panic!("{error} in {stdout}\n{stderr}"));
    (code, table, stdout, stderr)
}

#[track_caller]
fn check(table: &toml::Table, name: &str, expected: &str) {
    let expected: toml::Table = expected.parse().unwrap();
    assert_eq!(table["channels"].get(name), Some(&toml::Value::Table(expected)), "{name}");
}

#[test]
fn lines_of_apprise_become_channels() {
    let (code, table, page, _) = imported(&desk(), &["apprise.conf"]);
    assert_eq!(code, 1, "{page}");
    assert_eq!(table["channels"].as_table().unwrap().len(), 4, "{page}");
    check(&table, "ntfy", "kind = 'ntfy'\ntopic = 'plain'");
    let gotify = "kind = 'gotify'\nserver = 'http://gotify.example.com'\ntoken = 'AbCdEfGhIjKlMn1'";
    check(&table, "team", gotify);
    assert_eq!(table["channels"]["team-2"]["kind"].as_str(), Some("ntfy"));
    assert_eq!(table["channels"]["included"]["kind"].as_str(), Some("gotify"));
    for line in [
        "# From apprise.conf:4:1.\n# Its other tags: ops, everyone.",
        "# All channels with the tag team:\n# [[routes]]\n# context = \"team\"\n# channels = [\"team\", \"team-2\"]",
        "#   apprise.conf:7:1 (phone, everyone): no kind of channel takes such an address",
        "#   apprise.conf:9:1: this line is no address",
    ] {
        assert!(page.contains(line), "{line} is not in\n{page}");
    }
}

#[test]
fn yaml_of_apprise_becomes_channels() {
    let (code, table, page, _) = imported(&desk(), &["apprise.yml"]);
    assert_eq!(code, 1, "{page}");
    check(&table, "family", "kind = 'ntfy'\ntopic = 'plain'");
    check(
        &table,
        "ops",
        "kind = 'apprise_webhook'\nurl = 'http://localhost:8080/hook'\nheaders = { X-Token = 'a-long-token-here' }",
    );
    assert_eq!(table["channels"]["ops-2"]["kind"].as_str(), Some("apprise_webhook"));
    assert!(page.contains("my-password"), "{page}");
    check(
        &table,
        "global",
        "kind = 'smtp'\nhost = 'mail.example.com'\nsecurity = 'starttls'\nuser = 'me'\npassword = 'another-secret'
         from = 'sender@example.com'\nto = ['one@example.com', 'two@example.com']",
    );
    for line in [
        "# Its other tags: global, everyone.",
        "apprise.yml:25:1: this entry",
        "apprise.yml:26:1 (global)",
    ] {
        assert!(page.contains(line), "{line} is not in\n{page}");
    }
    assert_eq!(table["channels"]["included"]["kind"].as_str(), Some("gotify"));
}

#[test]
fn variables_of_mcp_push_go_before_its_file_row_111() {
    let desk = desk();
    let mut command = desk.command(&["channel", "import", "config.sh", "--secrets", "env"]);
    let command = command.env("NTFY_TOPIC", "of-the-environment").env("SKIP_PUSH_TITLE", "a\nb");
    let output = command.output().unwrap();
    let page = String::from_utf8(output.stdout).unwrap();
    let table: toml::Table = page.parse().unwrap();
    assert_eq!(output.status.code(), Some(0), "{page}");
    assert_eq!(table["channels"]["ntfy"]["topic"].as_str(), Some("of-the-environment"));
    assert_eq!(table["channels"]["dingtalk"]["token"].as_str(), Some("env:DD_BOT_TOKEN"));
    assert_eq!(table["skip_titles"], toml::Value::from(vec!["a", "b"]));
    assert!(page.contains("# From variable NTFY_TOPIC."), "{page}");
    assert!(page.contains("#   DD_BOT_TOKEN\n"), "{page}");
    assert!(!page.contains("dd-token"), "{page}");
}

#[test]
fn secrets_become_references_where_that_is_asked_for() {
    let (_, table, page, stderr) = imported(&desk(), &["apprise.yml", "--secrets", "env"]);
    for secret in ["a-long-token-here", "my-password", "another-secret", "AbCdEfGhIjKlMn"] {
        assert!(!page.contains(secret), "{secret} is in\n{page}");
    }
    let password = &table["channels"]["global"]["password"];
    assert_eq!(password.as_str(), Some("env:DESKBELL_GLOBAL_PASSWORD"));
    assert!(stderr.contains("DESKBELL_GLOBAL_PASSWORD"), "{stderr}");
    assert!(!stderr.contains("warning"), "{stderr}");
    let (_, _, _, stderr) = imported(&desk(), &["apprise.yml"]);
    assert!(stderr.contains("warning: there are secrets in it as they are"), "{stderr}");
}

#[test]
fn what_an_address_says_and_no_channel_does_is_told() {
    let (code, _, page, stderr) =
        imported(&desk(), &["ntfy://a?verify=no&retry=3&wait=1", "ntfy://b?verify=yes"]);
    assert_eq!(code, 0, "{page}");
    assert!(page.contains("# Means nothing here: verify, retry, wait.\n"), "{page}");
    let warning = "warning: argument 1: no channel has verify, retry, wait";
    assert!(stderr.contains(warning) && !stderr.contains("argument 2"), "{stderr}");
}

#[test]
fn writing_keeps_what_is_there_and_a_copy_of_it() {
    let desk = desk();
    let before = "# mine\nkeep_history = \"30d\"\n\n[channels.team]\nkind = \"console\" # as it is";
    desk.configure(before);
    let (code, stdout, stderr) = desk.run(&["channel", "import", "apprise.conf", "--write"]);
    assert_eq!((code, stdout.as_str()), (1, ""), "{stderr}");
    let after = fs::read_to_string(desk.config_file()).unwrap();
    assert!(after.starts_with(before), "{after}");
    let table: toml::Table = after.parse().unwrap();
    assert_eq!(table["channels"]["team"]["kind"].as_str(), Some("console"));
    assert_eq!(table["channels"]["team-2"]["kind"].as_str(), Some("gotify"));
    assert_eq!(table["channels"]["team-3"]["kind"].as_str(), Some("ntfy"));
    let backup = desk.folder().join("config.toml.bak");
    assert_eq!(fs::read_to_string(backup).unwrap(), before);
    assert_eq!(desk.run(&["config", "check"]).0, 0, "{after}");
    // Once more there is nothing new.
    let (code, _, stderr) = desk.run(&["channel", "import", "apprise.conf", "--write"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("channel `team-2` is the same"), "{stderr}");
    assert_eq!(fs::read_to_string(desk.config_file()).unwrap(), after);
}

#[test]
#[cfg(unix)]
fn a_configuration_that_is_new_is_its_owners_alone() {
    let desk = desk();
    let (code, _, stderr) =
        desk.run(&["channel", "import", "gotify://g.example.com/AbCdEfGhIjKlMn3", "--write"]);
    assert_eq!(code, 0, "{stderr}");
    let metadata = fs::metadata(desk.config_file()).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777, 0o600);
    desk.configure("what [ is this");
    let (code, _, stderr) = desk.run(&["channel", "import", "ntfy://plain", "--write"]);
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("it is no TOML"), "{stderr}");
    assert_eq!(fs::read_to_string(desk.config_file()).unwrap(), "what [ is this");
}

#[test]
fn addresses_come_as_arguments_and_over_stdin() {
    let desk = desk();
    let (code, table, page, _) =
        imported(&desk, &["ntfy://a", "ntfy://b?overflow=truncate&format=markdown"]);
    assert_eq!(code, 0, "{page}");
    check(
        &table,
        "ntfy-2",
        "kind = 'ntfy'\ntopic = 'b'\nformat = 'markdown'\noverflow = 'truncate'",
    );
    let mut command = desk.command(&["channel", "import", "-", "--json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"phone=ntfy://a\nntfy://a\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["channels"][0]["name"], "phone");
    assert_eq!(told["channels"][0]["from"], "stdin:1:1");
    assert_eq!(told["not_taken"][0]["reason"], "channel `phone` is the same");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn hostile_files_are_told_about_and_write_nothing_but_comments() {
    let desk = desk();
    let hostile = [
        (
            "bomb.yml",
            "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nurls: [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n",
        ),
        ("deep.yml", &"[".repeat(100_000)),
        ("tag.yml", "urls:\n  - ntfy://x:\n      tag: [\"a\\n[channels.evil]\\nkind='file'\"]\n"),
        ("reference.yml", "urls:\n  - json://evil.example.com:\n      +X-Key: file:/etc/passwd\n"),
        ("loop.cfg", "include loop.cfg\n"),
        ("far.cfg", "include http://evil.example.com/x\n"),
        ("two.yml", "version: 2\nurls: [ntfy://a]\n"),
    ];
    for (name, text) in hostile {
        fs::write(desk.folder().join(name), text).unwrap();
        let (code, table, page, _) = imported(&desk, &[name]);
        let channels = table.get("channels").and_then(toml::Value::as_table);
        assert!(channels.is_none_or(|channels| !channels.contains_key("evil")), "{page}");
        assert_eq!(code, i32::from(name != "tag.yml"), "{name}: {page}");
        assert!(!page.contains("/etc/passwd"), "{page}");
    }
}
