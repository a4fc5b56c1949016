//! The commands.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod import;
mod telling;

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, Stdio},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    support::{Desk, FarEnd, Reply, desk::signal, until},
    tree,
};

fn with_channel(far_end: &FarEnd) -> Desk {
    let url = far_end.url();
    Desk::with_config(&format!("[channels.far]\nkind = \"webhook_json\"\nurl = \"{url}\"\n"))
}

/// Lines of JSON.
fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A command that runs on, with its lines of stdout.
struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    fn start(desk: &Desk, arguments: &[&str]) -> Self {
        let mut command = desk.command(arguments);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                drop(sender.send(line));
            }
        });
        Self { child, lines }
    }

    #[track_caller]
    fn next(&self) -> String {
        self.lines.recv_timeout(Duration::from_secs(30)).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn a_notice_shows_on_stderr_and_only_there_row_16() {
    let desk = Desk::new();
    let (code, stdout, stderr) =
        desk.run(&["notify", "back up\nfirst", "-l", "warning", "-c", "safety"]);
    assert_eq!((code, stdout.as_str()), (0, ""), "{stderr}");
    assert_eq!(stderr, "WARN   safety  back up\\nfirst\n");
    let (_, stdout, _) = desk.run(&["history", "--json"]);
    let events = lines(&stdout);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["text"], "back up\nfirst");
    assert_eq!(events[0]["source"]["client"], "deskbell notify");
}

#[test]
fn the_text_may_come_from_stdin() {
    let desk = Desk::new();
    let mut command = desk.command(&["notify", "-", "--json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all("from a pipe ✓\n".as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let accepted: Value = serde_json::from_slice(&output.stdout).unwrap();
    let (_, stdout, _) = desk.run(&["history", "--json"]);
    assert_eq!(lines(&stdout)[0]["id"], accepted["id"]);
    assert_eq!(lines(&stdout)[0]["text"], "from a pipe ✓");
}

#[test]
fn a_notice_with_a_key_is_told_once() {
    let desk = Desk::new();
    for _ in 0..2 {
        assert_eq!(desk.run(&["notify", "a", "--key", "nightly"]).0, 0);
    }
    assert_eq!(lines(&desk.run(&["history", "--json"]).1).len(), 1);
}

#[test]
fn wrong_values_end_with_2_and_say_what_was_expected() {
    let desk = Desk::new();
    #[track_caller]
    fn check(desk: &Desk, arguments: &[&str], named: &str) {
        let (code, stdout, stderr) = desk.run(arguments);
        assert_eq!((code, stdout.as_str()), (2, ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(named), "{arguments:?}: {stderr}");
    }
    check(&desk, &["notify", "a", "-l", "loud"], "'--level <LEVEL>': expected one of debug, info");
    for command in [&["history"][..], &["runs"], &["delivery", "list"]] {
        check(&desk, &[command, &["-n", "0"]].concat(), "'--limit <LIMIT>': expected a whole");
    }
    check(&desk, &["snooze", "all", "0s"], "expected more than nothing");
    check(&desk, &["delivery", "list", "-c", "phone"], "no channel `phone`; configured are: none");
    check(&desk, &["watch", "--after", "x"], "'--after <CURSOR>': expected a cursor");
    check(&desk, &["notify", "a", "-w", "--timeout", "x"], "'--timeout <DURATION>': expected a");
    let config = desk.config_file();
    std::fs::write(&config, "").unwrap();
    check(&desk, &["trust", config.to_str().unwrap()], "would be read");
    check(&desk, &["notify", " "], "`text` is only white space");
    check(&desk, &["notify", "a", "--data", "{"], "--data");
    check(&desk, &["notify", "a", "--to", "nobody"], "`to` is \"nobody\"");
    check(&desk, &["event", "r", "stop", "a"], "one of start, update, end, error");
    check(&desk, &["event", "r", "start", "a", "--progress", "7"], "a number from 0 to 1");
    check(&desk, &["event", "r", "start", "a", "--timestamp", "noon"], "--timestamp");
    check(&desk, &["history", "--since", "yesterday"], "--since");
    check(&desk, &["history", "--level", "loud"], "--level");
    check(&desk, &["wtach"], "watch");
    check(&desk, &["serve", "--profile", "lambda"], "unified, swissarmyhammer, mcp-push");
    check(&desk, &["mcp", "--profile", "lambda"], "unified, swissarmyhammer, mcp-push");
    check(&desk, &["\u{1b}[31m\u{202e}x"], "\\u{1b}[31m\\u{202e}x");
    check(&desk, &["notify", "\u{200b}\u{2800}"], "`text` is only invisible characters");
}

#[test]
fn json_shows_what_an_agent_hid_in_a_text() {
    let desk = Desk::new();
    let hidden = "a\u{202e}b\u{9b}31mc\u{2028}d";
    assert_eq!(desk.run(&["notify", hidden]).0, 0);
    let (_, stdout, _) = desk.run(&["history", "--json"]);
    assert!(stdout.contains("a\\u202eb\\u009b31mc\\u2028d"), "{stdout}");
    assert_eq!(lines(&stdout)[0]["text"], hidden);
}

#[test]
fn a_channel_that_the_daemon_left_out_is_told_wherever_it_is_looked_for() {
    let config = "[channels.phone]\nkind = \"ntfy\"\ntopic = \"env:TOPIC_OF_THE_USER\"\n";
    let mut desk = Desk::with_config(config);
    desk.serve();
    // The commands have the variable, and the daemon does not.
    for arguments in [&["doctor"][..], &["channel", "list"], &["channel", "test", "phone"]] {
        let output = desk.command(arguments).env("TOPIC_OF_THE_USER", "t").output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains("TOPIC_OF_THE_USER is not set"), "{arguments:?}: {said}");
        assert!(said.contains("start it again where the variable is set"), "{arguments:?}: {said}");
    }
    let (code, _, stderr) = desk.run(&["notify", "a", "--to", "phone"]);
    assert_eq!((code, stderr.contains("TOPIC_OF_THE_USER is not set")), (2, true), "{stderr}");
}

#[test]
fn a_report_is_given_up_when_the_daemon_is_stuck() {
    let mut desk = Desk::new();
    desk.serve();
    let pid = desk.pid();
    signal(pid, rustix::process::Signal::STOP);
    let (code, _, stderr) = desk.run(&["notify", "a"]);
    signal(pid, rustix::process::Signal::CONT);
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.contains("within 10 s") && stderr.contains("deskbell doctor"), "{stderr}");
}

#[test]
fn a_run_is_told_in_order_and_listed_rows_104_and_107() {
    let mut desk = Desk::new();
    let (code, _, stderr) = desk.run(&["event", "backup", "update", "too early"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("send `start` first"), "{stderr}");
    assert_eq!(desk.run(&["event", "backup", "start", "begins"]).0, 0);
    desk.terminate();
    let update = ["event", "backup", "update", "goes on", "--progress", "0.4", "--step", "export"];
    let (code, _, stderr) = desk.run(&update);
    assert_eq!((code, stderr.as_str()), (0, "INFO   llm  backup update 40 % (export): goes on\n"));
    let runs = lines(&desk.run(&["runs", "--state", "open", "--json"]).1);
    assert_eq!((&runs[0]["id"], &runs[0]["progress"]), (&json!("backup"), &json!(0.4)));
    let (_, table, _) = desk.run(&["runs"]);
    assert!(
        table.contains("backup") && table.contains("40 %") && table.contains("export"),
        "{table}"
    );
    assert_eq!(desk.run(&["event", "backup", "end", "done"]).0, 0);
    assert_eq!(desk.run(&["event", "backup", "update", "late"]).0, 1);
    assert_eq!(desk.run(&["runs", "--state", "open", "--json"]).1, "");
}

#[test]
fn waiting_tells_what_became_of_each_delivery() {
    let far_end = FarEnd::answering(|number, _| Reply::status(if number == 0 { 200 } else { 400 }));
    let desk = with_channel(&far_end);
    let (code, stdout, stderr) = desk.run(&["notify", "a", "--to", "far", "--wait"]);
    assert_eq!((code, stdout.as_str()), (0, ""), "{stderr}");
    assert!(stderr.contains("far: sent"), "{stderr}");
    let (code, stdout, _) = desk.run(&["notify", "b", "--to", "far", "--wait", "--json"]);
    assert_eq!(code, 1);
    assert_eq!(lines(&stdout)[0]["deliveries"][0]["state"], "given_up");
    let failing = FarEnd::answering(|_, _| Reply::status(503));
    let desk = with_channel(&failing);
    let (code, _, stderr) = desk.run(&["notify", "c", "--to", "far", "--wait", "--timeout", "1s"]);
    assert_eq!(code, 13, "{stderr}");
    assert!(stderr.contains("far: still open"), "{stderr}");
}

#[test]
fn watch_goes_on_where_it_was_when_the_daemon_restarts() {
    let mut desk = Desk::new();
    desk.serve();
    let watch = Running::start(&desk, &["watch", "--json", "--level", "notice.."]);
    // Until it watches, what is told goes past it.
    until("the viewer", || (desk.get("/v1/status").json()["viewers"] == 1).then_some(()));
    desk.run(&["notify", "unseen", "-l", "info"]);
    desk.run(&["notify", "one", "-l", "notice"]);
    assert_eq!(lines(&watch.next())[0]["text"], "one");
    desk.kill();
    desk.serve();
    desk.run(&["notify", "two", "-l", "error"]);
    desk.run(&["notify", "three", "-l", "error"]);
    assert_eq!(lines(&watch.next())[0]["text"], "two");
    assert_eq!(lines(&watch.next())[0]["text"], "three");
}

#[test]
fn watch_begins_anew_when_the_daemon_has_another_journal() {
    let mut desk = Desk::new();
    desk.serve_with(&["--journal", "memory"]);
    let watch = Running::start(&desk, &["watch", "--json"]);
    until("the viewer", || (desk.get("/v1/status").json()["viewers"] == 1).then_some(()));
    desk.run(&["notify", "one"]);
    assert_eq!(lines(&watch.next())[0]["text"], "one");
    desk.kill();
    desk.serve_with(&["--journal", "memory"]);
    until("the viewer", || (desk.get("/v1/status").json()["viewers"] == 1).then_some(()));
    desk.run(&["notify", "another"]);
    assert_eq!(lines(&watch.next())[0]["text"], "another");
}

#[test]
fn watch_replays_from_a_place_and_writes_plain_lines_without_a_terminal() {
    let desk = Desk::new();
    desk.run(&["notify", "first", "-t", "a\u{1b}[31m"]);
    desk.run(&["event", "r", "start", "second"]);
    let watch = Running::start(&desk, &["watch", "--after", "0-0"]);
    let (first, second) = (watch.next(), watch.next());
    assert!(first.contains("INFO   llm  a\\u{1b}[31m: first"), "{first}");
    assert!(second.contains("r start: second"), "{second}");
    assert!(!first.contains('\u{1b}'));
}

#[test]
fn why_tells_the_way_of_an_event_and_what_to_do() {
    let far_end = FarEnd::answering(|_, _| Reply::status(400));
    let desk = with_channel(&far_end);
    desk.run(&["notify", "a", "--to", "far", "--wait"]);
    let (code, stdout, stderr) = desk.run(&["why"]);
    assert_eq!(code, 0);
    assert!(stdout.contains("far: given up"), "{stdout}");
    assert!(stdout.contains("named by the caller"), "{stdout}");
    assert!(stdout.contains("attempt 1"), "{stdout}");
    assert!(stderr.contains("hint: once the cause is mended"), "{stderr}");
    let (code, _, stderr) = desk.run(&["why", "019a9c2e-5f00-7000-8000-000000000000"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("there is no event"), "{stderr}");
}

#[test]
fn deliveries_that_were_given_up_are_listed_and_tried_again() {
    let far_end = FarEnd::answering(|number, _| Reply::status(if number == 0 { 400 } else { 200 }));
    let desk = with_channel(&far_end);
    assert_eq!(desk.run(&["notify", "a", "--to", "far", "--wait"]).0, 1);
    let given_up = lines(&desk.run(&["delivery", "list", "--state", "given_up", "--json"]).1);
    let id = given_up[0]["id"].as_str().unwrap();
    assert_eq!(desk.run(&["delivery", "retry", id]).0, 0);
    far_end.wait_for(2);
    until("the delivery", || {
        let list = desk.run(&["delivery", "list", "--state", "sent"]).1;
        list.contains(id).then_some(())
    });
    let (code, _, stderr) = desk.run(&["delivery", "retry", id]);
    assert_eq!(code, 1);
    assert!(stderr.contains("only one that was given up"), "{stderr}");
}

#[test]
fn channels_are_listed_and_tested_for_real() {
    let far_end = FarEnd::answering(|number, _| Reply::status(if number == 0 { 200 } else { 403 }));
    let desk = with_channel(&far_end);
    let (code, stdout, _) = desk.run(&["channel", "test", "far"]);
    assert_eq!((code, stdout.starts_with("far: the far end took it")), (0, true), "{stdout}");
    assert_eq!(far_end.requests().len(), 1);
    let (code, stdout, _) = desk.run(&["channel", "test", "far"]);
    assert_eq!(code, 1);
    assert!(stdout.contains("403"), "{stdout}");
    let (_, stdout, _) = desk.run(&["channel", "list"]);
    assert!(stdout.starts_with("far  webhook_json  ok  "), "{stdout}");
    let later = FarEnd::answering(|_, _| Reply::status(503));
    let (code, stdout, stderr) = with_channel(&later).run(&["channel", "test", "far"]);
    assert_eq!((code, stdout.contains("failed")), (1, true), "{stdout}");
    assert!(stderr.contains("it is tried again, so the message may still arrive"), "{stderr}");
    let channels = lines(&desk.run(&["channel", "list", "--json"]).1);
    assert_eq!(
        (&channels[0]["name"], &channels[0]["kind"]),
        (&json!("far"), &json!("webhook_json"))
    );
    assert_eq!(desk.run(&["channel", "test", "gone"]).0, 1);
}

#[test]
fn doctor_checks_the_whole_way() {
    let desk = Desk::with_config("");
    let (code, stdout, stderr) = desk.run(&["doctor", "--json"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    let checks = lines(&stdout);
    let names: Vec<_> = checks.iter().map(|check| check["check"].as_str().unwrap()).collect();
    for name in
        ["state folder", "disk", "space", "daemon", "journal", "clock", "configuration", "HTTP"]
    {
        assert!(names.contains(&name), "{names:?}");
    }
    // How slow and how full the disk is, is the machine's business.
    let mut others =
        checks.iter().filter(|check| check["check"] != "disk" && check["check"] != "space");
    assert!(others.all(|check| check["finding"] == "good"), "{stdout}");
    let space = checks.iter().find(|check| check["check"] == "space").unwrap();
    assert!(space["detail"].as_str().unwrap().contains(" MiB free of "), "{space}");
}

#[test]
fn doctor_says_what_to_do_about_a_broken_channel_and_ends_with_1() {
    let desk = Desk::with_config("[channels.phone]\nkind = \"nonsense\"\n");
    let (code, stdout, stderr) = desk.run(&["doctor"]);
    assert_eq!(code, 1, "{stdout}{stderr}");
    assert!(stdout.contains("phone") && stdout.contains("→ "), "{stdout}");
    assert!(stderr.contains("something needs you"), "{stderr}");
}

#[test]
fn doctor_says_why_there_is_no_state_folder() {
    let desk = Desk::new();
    let file = desk.folder().join("a-file");
    std::fs::write(&file, "").unwrap();
    let output = desk.command(&["doctor"]).env("DESKBELL_STATE_DIR", &file).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(
        stdout.contains("is not a folder") && stdout.contains("DESKBELL_STATE_DIR"),
        "{stdout}"
    );
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let desk = Desk::new();
    for number in 0..20 {
        desk.run(&["notify", &format!("{number} {}", "x".repeat(60_000))]);
    }
    let mut history = desk
        .command(&["history", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(history.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let output = history.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn completions_are_written_for_each_shell() {
    let desk = Desk::new();
    for shell in ["bash", "zsh", "fish"] {
        let (code, stdout, _) = desk.run(&["completions", shell]);
        assert_eq!((code, stdout.contains("deskbell")), (0, true), "{shell}");
    }
}

#[test]
fn the_commands_are_documented_as_they_are() {
    tree::check_document("docs/cli.md", &deskbell::cli::reference::page());
}

#[test]
fn a_preview_of_a_mail_is_the_mail_as_it_would_be_read() {
    let desk = Desk::new();
    let address = "mailtos://u:p@mail.example.com?to=a@b.example";
    let (code, stdout, stderr) =
        desk.run(&["channel", "preview", address, "-t", "Greetings", "-b", "Hello."]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("\nSubject: Greetings\n") && stdout.contains("\nHello.\n"), "{stdout}");
    let (code, _, stderr) = desk.run(&["channel", "preview", "nonsense://a/b", "-b", "B"]);
    assert!(code == 2 && !stderr.contains("channels.preview"), "{stderr}");
}

#[test]
fn a_preview_shows_the_requests_hides_secrets_and_sends_nothing() {
    let far_end = FarEnd::start();
    let url = far_end.url();
    let desk = Desk::with_config(&format!(
        "[channels.far]\nkind = \"webhook_json\"\nurl = \"{url}\"\ntoken = \"s3cr3t-token\"\n"
    ));
    let arguments = ["channel", "preview", "far", "--title", "T", "--body", "B ✓", "--json"];
    let (code, stdout, stderr) = desk.run(&arguments);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(!stdout.contains("s3cr3t"), "{stdout}");
    let preview = &lines(&stdout)[0];
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(preview), ["kind", "requests"]);
    let request = &preview["requests"][0];
    assert_eq!(names(request), ["body", "headers", "method", "transport", "url"]);
    assert_eq!(request["transport"], "http");
    let body: Value = serde_json::from_str(request["body"].as_str().unwrap()).unwrap();
    assert_eq!((&body["title"], &body["body"]), (&json!("T"), &json!("B ✓")));
    let revealed = desk.run(&[&arguments[..], &["--show-secrets"]].concat()).1;
    assert_eq!(
        lines(&revealed)[0]["requests"][0]["headers"]["authorization"],
        "Bearer s3cr3t-token"
    );
    assert!(far_end.requests().is_empty());
    assert!(!desk.state().join("daemon.pid").exists(), "a preview started the daemon");
    let (code, _, stderr) = desk.run(&["channel", "preview", "gone", "--body", "B"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("configured are: far"), "{stderr}");
}

#[test]
fn the_configuration_is_checked_shown_and_described() {
    let desk = Desk::with_config("[channels.phone]\nkind = \"ntfy\"\n");
    let (code, stdout, _) = desk.run(&["config", "check", "--json"]);
    assert_eq!(code, 1);
    assert!(lines(&stdout)[0].to_string().contains("topic"), "{stdout}");
    desk.configure("[channels.phone]\nkind = \"ntfy\"\ntopic = \"s3cr3t-topic\"\n");
    assert_eq!(desk.run(&["config", "check"]).0, 0);
    let (code, stdout, _) = desk.run(&["config", "show"]);
    assert!(code == 0 && stdout.contains("[channels.phone]"), "{stdout}");
    let (code, stdout, _) = desk.run(&["config", "schema"]);
    let schema: Value = serde_json::from_str(&stdout).unwrap();
    assert!(code == 0 && schema["properties"]["channels"].is_object());
}

#[test]
fn a_project_is_trusted_and_not_any_more() {
    let desk = Desk::new();
    let (code, _, stderr) = desk.run(&["trust"]);
    assert!(code == 1 && stderr.contains(".deskbell.toml"), "{stderr}");
    std::fs::write(desk.folder().join(".deskbell.toml"), "[mcp]\nprofile = \"swissarmyhammer\"\n")
        .unwrap();
    let (code, _, stderr) = desk.run(&["trust"]);
    assert!(code == 0 && stderr.contains("is trusted"), "{stderr}");
    let (_, _, stderr) = desk.run(&["trust", "--revoke"]);
    assert!(stderr.contains("is not trusted any more"), "{stderr}");
    assert!(desk.run(&["trust", "--revoke"]).2.contains("was not trusted"));
}

#[test]
fn the_demonstration_shows_the_whole_way_and_leaves_nothing_behind() {
    let desk = Desk::new();
    let temporary = desk.folder().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let output = desk.command(&["demo"]).env("TMPDIR", &temporary).output().unwrap();
    let (stdout, stderr) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    for told in [
        "WARN   safety  The migration drops a column",
        "deploy-2.4 update 50 % (test): testing",
        "the phone gets  [END] deploy-2.4: version 2.4 is live",
        "the phone gets  Review, please: Pull request 42 is ready.",
        "phone: sent",
        "claude mcp add deskbell -- deskbell mcp",
    ] {
        assert!(stdout.contains(told), "{told} is not in {stdout}");
    }
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "something was left behind");
    assert!(!desk.state().exists(), "the user's own state was touched");
}

#[test]
fn a_daemon_that_cannot_start_is_told_with_its_reason() {
    let desk = Desk::with_config("not toml");
    let (code, stdout, stderr) = desk.run(&["notify", "a"]);
    assert_eq!((code, stdout.as_str()), (3, ""), "{stderr}");
    assert!(stderr.contains("config.toml:1") && stderr.contains("hint: "), "{stderr}");
    let (code, stdout, _) = desk.run(&["doctor", "--json"]);
    assert_eq!(code, 1);
    let bad: Vec<_> =
        lines(&stdout).into_iter().filter(|check| check["finding"] == "bad").collect();
    assert_eq!(bad[0]["check"], "configuration", "{stdout}");
    assert!(bad.iter().all(|check| check["advice"].is_string()), "{stdout}");
}

#[test]
fn why_tells_the_reason_of_then_where_the_rules_have_changed() {
    let far_end = FarEnd::start();
    let mut desk = with_channel(&far_end);
    desk.run(&["notify", "a", "-l", "error", "--wait"]);
    let (_, stdout, _) = desk.run(&["why"]);
    assert!(stdout.contains("Its way: there are no routes: pushes, runs"), "{stdout}");
    desk.terminate();
    desk.configure("");
    let (_, stdout, _) = desk.run(&["why"]);
    let way = "Its way: no routes are configured, as the rules were when it was reported; today's";
    assert!(stdout.contains(way) && stdout.contains("far: sent"), "{stdout}");
    assert!(!stdout.contains("no channel works"), "{stdout}");
}

#[test]
fn why_looks_at_the_routes_of_the_project_that_the_event_comes_from() {
    let far_end = FarEnd::start();
    let desk = with_channel(&far_end);
    let route = "[[routes]]\ncontext = [\"safety\"]\nchannels = [\"far\"]\n";
    std::fs::write(desk.folder().join(".deskbell.toml"), route).unwrap();
    desk.run(&["notify", "a", "-c", "safety"]);
    let (_, stdout, _) = desk.run(&["why"]);
    assert!(stdout.contains("(context safety → far): matches"), "{stdout}");
    assert_eq!(far_end.wait_for(1).len(), 1);
}
