//! The bridge and the daemon: start, hand-over, re-connection.

use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    process::Command,
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Desk, McpClient, desk::is_running, desk::signal, until};

fn notice(number: u32) -> Value {
    json!({ "message": format!("notice {number}") })
}

#[test]
fn ten_clients_at_once_start_one_daemon() {
    let desk = Desk::new();
    let pids: BTreeSet<u32> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..10)
            .map(|number| {
                let desk = &desk;
                scope.spawn(move || {
                    let mut client = desk.mcp(&[]);
                    client.initialize();
                    client.call("notify", &notice(number));
                    desk.pid()
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    assert_eq!(pids.len(), 1);
}

#[test]
fn only_the_user_can_reach_the_state_folder_and_the_socket() {
    let mut desk = Desk::new();
    desk.serve();
    let mode = |name: &str| {
        std::fs::metadata(desk.state().join(name)).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode("."), 0o700);
    assert_eq!(mode("daemon.sock"), 0o600);
}

#[test]
fn a_second_daemon_is_refused_and_told_why() {
    let mut desk = Desk::new();
    desk.serve();
    let (code, stdout, stderr) = desk.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.contains(&desk.pid().to_string()), "{stderr}");
}

#[test]
fn a_daemon_that_is_told_to_end_leaves_nothing_behind() {
    let mut desk = Desk::new();
    desk.serve();
    desk.terminate();
    for name in ["daemon.sock", "daemon.pid", "daemon.json"] {
        assert!(!desk.state().join(name).exists(), "{name}");
    }
}

#[test]
fn a_client_goes_on_when_its_daemon_is_killed() {
    let desk = Desk::new();
    let mut client = desk.mcp(&[]);
    client.initialize();
    let first = desk.pid();
    for number in 0..5 {
        let pid = desk.pid();
        client.call("notify", &notice(number));
        signal(pid, Signal::KILL);
        until("the daemon's end", || (!is_running(pid)).then_some(()));
        let result = client.call("notify", &notice(number + 100));
        assert_ne!(result["isError"], true, "{result}");
    }
    assert_ne!(desk.pid(), first);
    let (code, rest) = client.close();
    assert_eq!((code, rest), (Some(0), Vec::new()), "an answer came twice");
}

#[test]
fn an_older_daemon_hands_over_to_a_newer_bridge() {
    let mut desk = Desk::new();
    desk.serve();
    let pid = desk.pid();
    let mut bridge = UnixStream::connect(desk.state().join("daemon.sock")).unwrap();
    let hello = json!({ "version": "999.0.0", "key": "k" });
    writeln!(bridge, "{hello}").unwrap();
    let mut welcome = String::new();
    BufReader::new(bridge).read_line(&mut welcome).unwrap();
    let welcome: Value = serde_json::from_str(&welcome).unwrap();
    assert_eq!(welcome["hands_over"], true);
    until("the old daemon's end", || (!is_running(pid)).then_some(()));
    // Whoever comes next starts a new one.
    let mut client = desk.mcp(&[]);
    client.initialize();
    assert_ne!(desk.pid(), pid);
}

#[test]
fn answers_that_are_open_come_on_a_line_each_before_the_end_of_stdin_ends_the_bridge_row_53() {
    let desk = Desk::new();
    let mut client = desk.mcp(&[]);
    client.initialize();
    for id in 100..120 {
        let params = json!({ "name": "notify", "arguments": notice(id) });
        client
            .send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
    }
    let (code, lines) = client.close();
    assert_eq!(code, Some(0));
    // Other messages, such as what is logged, have lines of their own.
    let messages = lines.iter().map(|line| {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error} in {line:?}"))
    });
    let answers = messages.filter(|message| message.get("method").is_none());
    let mut ids: Vec<_> = answers
        .map(|answer| {
            let id = answer["id"].as_u64().unwrap();
            let text = &answer["result"]["content"][0]["text"];
            assert_eq!(*text, format!("Notification sent: notice {id}"));
            id
        })
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (100..120).collect::<Vec<_>>(), "{lines:?}");
}

#[test]
fn a_framed_client_gets_framed_answers_row_57() {
    let desk = Desk::new();
    let mut command = desk.command(&["mcp"]);
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": { "name": "f", "version": "1" } },
    })
    .to_string();
    let mut child = command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let framed = format!("Content-Length: {}\r\n\r\n{body}", body.len());
    child.stdin.take().unwrap().write_all(framed.as_bytes()).unwrap();
    let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let (header, answer) = output.split_once("\r\n\r\n").unwrap();
    assert_eq!(header, format!("Content-Length: {}", answer.len()));
    assert_eq!(serde_json::from_str::<Value>(answer).unwrap()["id"], 1);
}

#[test]
fn one_process_is_enough_where_no_second_is_allowed() {
    let desk = Desk::new();
    // What forbids the socket here is a folder in its place; a sandbox refuses it in its own way.
    std::fs::create_dir_all(desk.state().join("daemon.sock")).unwrap();
    let mut client = desk.mcp(&["--in-process"]);
    client.initialize();
    let result = client.call("notify", &notice(1));
    assert_eq!(result["content"][0]["text"], "Notification sent: notice 1");
    until("the notice on stderr", || client.stderr().contains("notice 1").then_some(()));
    let stderr = client.stderr();
    assert_eq!(stderr.matches("cannot be served").count(), 1, "{stderr}");
    assert_eq!(client.close().0, Some(0));
    assert!(!desk.state().join("daemon.json").exists());
}

#[test]
fn commands_and_other_clients_reach_a_client_that_is_the_daemon() {
    let desk = Desk::new();
    let mut first = desk.mcp(&["--in-process"]);
    first.initialize();
    first.call("notify", &notice(1));
    assert_eq!(desk.pid(), first.pid());
    let (code, _, stderr) = desk.run(&["notify", "from a command"]);
    assert_eq!(code, 0, "{stderr}");
    let mut others = [desk.mcp(&["--in-process"]), desk.mcp(&[])];
    for (number, other) in (2..).zip(&mut others) {
        other.initialize();
        other.call("notify", &notice(number));
    }
    let (_, history, _) = desk.run(&["history", "--json"]);
    assert_eq!(history.lines().count(), 4, "{history}");
    assert_eq!(desk.pid(), first.pid());
    // What others report is none of this client's business.
    until("the notice on stderr", || first.stderr().contains("notice 1").then_some(()));
    assert!(!first.stderr().contains("notice 2"), "{}", first.stderr());

    assert_eq!(first.close().0, Some(0));
    for (number, other) in (4..).zip(&mut others) {
        other.call("notify", &notice(number));
    }
    let (_, history, _) = desk.run(&["history", "--json"]);
    assert_eq!(history.lines().count(), 6, "{history}");
}

#[test]
fn a_client_that_is_the_daemon_leaves_nothing_behind_when_it_ends() {
    let desk = Desk::new();
    let left = || {
        ["daemon.sock", "daemon.pid", "daemon.json"]
            .into_iter()
            .filter(|name| desk.state().join(name).exists())
            .count()
    };
    let mut client = desk.mcp(&["--in-process"]);
    client.initialize();
    assert_eq!(left(), 3);
    assert_eq!(client.close().0, Some(0));
    assert_eq!(left(), 0);

    let mut client = desk.mcp(&["--in-process"]);
    client.initialize();
    let pid = client.pid();
    signal(pid, Signal::TERM);
    until("the client's end", || (!is_running(pid)).then_some(()));
    assert_eq!(left(), 0);
}

#[test]
fn a_client_that_may_be_the_daemon_uses_the_one_that_runs_and_follows_it() {
    let mut desk = Desk::new();
    desk.serve();
    let daemon = desk.pid();
    let mut client = desk.mcp(&["--in-process"]);
    client.initialize();
    client.call("notify", &notice(1));
    assert_eq!(desk.pid(), daemon);
    desk.kill();
    client.call("notify", &notice(2));
    assert_eq!(desk.pid(), client.pid());
    let (_, history, _) = desk.run(&["history", "--json"]);
    assert_eq!(history.lines().count(), 2, "{history}");
}

#[test]
fn a_client_that_is_the_daemon_hands_over_to_a_newer_one() {
    let mut desk = Desk::new();
    let mut client = desk.mcp(&["--in-process"]);
    client.initialize();
    let mut bridge = UnixStream::connect(desk.state().join("daemon.sock")).unwrap();
    writeln!(bridge, "{}", json!({ "version": "999.0.0", "key": "k" })).unwrap();
    let lock = std::fs::File::open(desk.state().join("daemon.lock")).unwrap();
    until("the daemon's lock", || lock.try_lock().ok());
    drop(lock);
    desk.serve();
    client.call("notify", &notice(1));
    assert_ne!(desk.pid(), client.pid());
    let (_, history, _) = desk.run(&["history", "--json"]);
    assert_eq!(history.lines().count(), 1, "{history}");
}

#[test]
fn two_requests_with_one_id_are_both_carried_out() {
    let desk = Desk::new();
    let mut client = desk.mcp(&[]);
    client.initialize();
    for number in 0..2 {
        let params = json!({ "name": "notify", "arguments": notice(number) });
        client.send(
            &json!({ "jsonrpc": "2.0", "id": "same", "method": "tools/call", "params": params }),
        );
    }
    for number in 0..2 {
        let answer = client.answer(&json!("same"));
        assert_eq!(
            answer["result"]["content"][0]["text"],
            format!("Notification sent: notice {number}")
        );
    }
}

#[test]
fn a_command_waits_for_a_daemon_that_is_ending_and_starts_the_next() {
    let desk = Desk::new();
    assert_eq!(desk.run(&["notify", "first"]).0, 0);
    let mut watch = desk.command(&["watch"]).stdout(std::process::Stdio::null()).spawn().unwrap();
    for number in 0..5 {
        signal(desk.pid(), Signal::TERM);
        let (code, _, stderr) = desk.run(&["notify", &format!("while it ends {number}")]);
        assert_eq!(code, 0, "{stderr}");
    }
    let _gone = watch.kill();
    watch.wait().unwrap();
    let (_, history, _) = desk.run(&["history", "--json"]);
    assert_eq!(history.lines().count(), 6, "{history}");
}

#[test]
fn what_daemons_say_on_stderr_does_not_grow_without_end() {
    let desk = Desk::new();
    assert_eq!(desk.run(&["notify", "makes the folder"]).0, 0);
    let (log, old) = (desk.state().join("daemon.err"), desk.state().join("daemon.err.1"));
    let next_daemon = || {
        let pid = desk.pid();
        signal(pid, Signal::TERM);
        until("the daemon's end", || (!is_running(pid)).then_some(()));
        assert_eq!(desk.run(&["notify", "starts the next"]).0, 0);
    };
    std::fs::write(&log, "a\n").unwrap();
    next_daemon();
    assert_eq!((std::fs::read_to_string(&log).unwrap().as_str(), old.exists()), ("a\n", false));
    for _ in 0..2 {
        std::fs::write(&log, "x".repeat(1024 * 1024 + 1)).unwrap();
        next_daemon();
        assert_eq!(std::fs::metadata(&log).unwrap().len(), 0);
        assert_eq!(std::fs::metadata(&old).unwrap().len(), 1024 * 1024 + 1);
    }
}

#[test]
fn a_daemon_keeps_nothing_open_that_its_starter_inherited() {
    let desk = Desk::new();
    let lock = desk.folder().join("lock");
    let script = format!("exec 9>'{}'; flock 9; \"$0\" notify hello", lock.display());
    let program = env!("CARGO_BIN_EXE_deskbell");
    let mut command = desk.command(&[]);
    let environment: Vec<_> = command
        .get_envs()
        .map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)))
        .collect();
    command = std::process::Command::new("sh");
    command
        .args(["-c", &script, program])
        .env_clear()
        .envs(environment.into_iter().filter_map(|(name, value)| Some((name, value?))));
    assert!(command.status().unwrap().success());
    let taken =
        std::process::Command::new("flock").args(["-n"]).arg(&lock).arg("true").status().unwrap();
    assert!(taken.success(), "the daemon holds its starter's lock");
}

/// The file of the program that `client` runs by now.
fn program(client: &McpClient) -> String {
    let file = std::fs::read_link(format!("/proc/{}/exe", client.pid()));
    let file = file.expect("a running program has a file");
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[test]
fn a_bridge_is_the_small_program() {
    let desk = Desk::new();
    let mut client = desk.mcp(&["--profile", "mcp-push"]);
    client.initialize();
    assert_eq!(program(&client), "deskbell-bridge");
    let tools = client.request("tools/list", &json!({})).to_string();
    assert!(tools.contains("notify.send"), "the profile is passed on: {tools}");
}

#[test]
fn without_a_small_program_beside_it_the_large_one_bridges() {
    let desk = Desk::new();
    let alone = desk.folder().join("deskbell");
    std::fs::copy(env!("CARGO_BIN_EXE_deskbell"), &alone).unwrap();
    check_large_bridges(desk.command_of(&alone, &["mcp"]));
}

#[test]
fn a_small_program_of_another_version_gives_way_to_the_large_one() {
    let desk = Desk::new();
    let small = std::path::Path::new(env!("CARGO_BIN_EXE_deskbell-bridge"));
    let mut command = desk.command_of(small, &["mcp"]);
    command.env("DESKBELL_BRIDGE_OF", "0.0.1");
    check_large_bridges(command);
}

#[track_caller]
fn check_large_bridges(command: Command) {
    let mut client = McpClient::launch(command);
    client.initialize();
    client.call("notify", &notice(1));
    assert_eq!(program(&client), "deskbell");
}
