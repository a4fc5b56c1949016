//! What the configuration and the log promise, seen from outside of the running program.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::fs::{PermissionsExt as _, symlink},
    process::{Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::{Desk, FarEnd, McpClient, Reply, until};

/// Calls `notify` and checks that it worked.
#[track_caller]
fn notify(client: &mut McpClient, message: &str, level: &str, context: &str) {
    let arguments = json!({ "message": message, "level": level, "context": context });
    let result = client.call("notify", &arguments);
    assert_ne!(result["isError"], true, "{result}");
}

/// The lines of stderr, once `last` is among them.
fn shown_until(client: &McpClient, last: &str) -> String {
    until("a line on stderr", || {
        let stderr = client.stderr();
        stderr.contains(last).then_some(stderr)
    })
}

#[test]
fn what_the_configuration_hides_is_not_shown_and_the_tool_succeeds_rows_9_and_10() {
    for arguments in [&[][..], &["--in-process"]] {
        let desk = Desk::with_config(
            "[tracing]\ntargets = [{ name = \"llm_notify\", level = \"warn\" }]\nhide_contexts = [\"performance\"]\n",
        );
        let mut client = desk.mcp(arguments);
        client.initialize();
        notify(&mut client, "an info", "info", "safety");
        notify(&mut client, "a slow query", "error", "performance");
        notify(&mut client, "a warning", "warn", "safety");
        let stderr = shown_until(&client, "a warning");
        assert!(!stderr.contains("an info") && !stderr.contains("slow query"), "{stderr}");
        assert_eq!(stderr.matches("a warning").count(), 1, "{stderr}");
    }
}

#[test]
fn new_rules_and_channels_hold_without_a_restart() {
    let mut desk =
        Desk::with_config("[tracing]\ntargets = [{ name = \"llm_notify\", level = \"off\" }]\n");
    desk.serve();
    let mut client = desk.mcp(&[]);
    client.initialize();
    notify(&mut client, "hidden", "error", "safety");
    desk.configure("[channels.new]\nkind = \"console\"\n");
    until("the new channel", || desk.run(&["channel", "list"]).1.contains("new").then_some(()));
    notify(&mut client, "seen", "error", "safety");
    assert!(!shown_until(&client, "seen").contains("hidden"));
    desk.configure("[channels.new]\nkind = \"console\"\n[channels.broken\n");
    notify(&mut client, "seen too", "error", "safety");
    shown_until(&client, "seen too");
    assert!(desk.run(&["channel", "list"]).1.contains("new"), "the old configuration stays");
}

#[test]
fn a_channel_that_is_enabled_changes_the_lists_once_row_34() {
    let mut desk = Desk::new();
    desk.serve();
    let mut client = desk.mcp(&[]);
    let answer = client.initialize();
    let capabilities = &answer["result"]["capabilities"];
    for list in ["tools", "resources"] {
        assert_eq!(capabilities[list]["listChanged"], true, "{answer}");
    }
    // Answered once the client is known to have shaken hands.
    client.request("tools/list", &json!({}));
    desk.configure("[channels.new]\nkind = \"console\"\n");
    let mut told = [client.receive(), client.receive()];
    told.sort_by_key(|message| message["method"].to_string());
    let methods = ["resources", "tools"].map(|list| format!("notifications/{list}/list_changed"));
    for (message, method) in told.iter().zip(methods) {
        assert_eq!((&message["method"], &message["params"]), (&json!(method), &json!({})));
    }
    // The same channels with another option are the same lists.
    desk.configure("[channels.new]\nkind = \"console\"\nper_minute = 9\n");
    until("the new option", || {
        desk.run(&["config", "show"]).1.contains("per_minute = 9").then_some(())
    });
    notify(&mut client, "m", "info", "safety");
    let more = client.close().1;
    assert!(!more.iter().any(|line| line.contains("list_changed")), "{more:?}");
}

#[test]
fn a_hangup_reads_the_configuration_anew_and_ends_nothing() {
    let mut desk = Desk::new();
    // A file in a folder behind a link: what the link leads to is watched, the link itself is not.
    let (folder, link) = (desk.folder(), desk.folder().join("behind").join("current"));
    fs::create_dir(folder.join("behind")).unwrap();
    for name in ["old", "new"] {
        fs::create_dir(folder.join(name)).unwrap();
        let config = format!("[channels.{name}]\nkind = \"console\"\n");
        fs::write(folder.join(name).join("real.toml"), config).unwrap();
    }
    symlink(folder.join("old"), &link).unwrap();
    symlink(link.join("real.toml"), desk.config_file()).unwrap();
    desk.serve();
    let pid = desk.pid();
    let channels = || desk.get("/v1/channels").body;
    assert!(channels().contains("\"old\""), "{}", channels());
    fs::remove_file(&link).unwrap();
    symlink(folder.join("new"), &link).unwrap();
    crate::support::desk::signal(pid, rustix::process::Signal::HUP);
    until("the new channel", || channels().contains("\"new\"").then_some(()));
    let log = fs::read_to_string(desk.state().join("deskbell.log")).unwrap();
    assert_eq!(log.matches("as SIGHUP asks").count(), 1, "{log}");
    assert!(crate::support::desk::is_running(pid));
}

#[test]
fn the_console_channel_writes_to_the_daemon_s_stderr() {
    // Without the line that shows every event.
    let mut desk = Desk::with_config(
        "[channels.here]\nkind = \"console\"\n[tracing]\ntargets = [{ name = \"llm_notify\", level = \"off\" }]\n",
    );
    let stderr = desk.folder().join("stderr");
    let mut daemon = desk
        .command(&["serve", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(&stderr).unwrap())
        .spawn()
        .unwrap();
    until("the daemon", || desk.state().join("daemon.json").exists().then_some(()));
    let body = json!({ "kind": "push", "level": "error", "title": "Disk\u{1b}[2J", "text": "is full\nsoon" });
    assert_eq!(desk.post("/v1/events", &body).status, 201);
    let written = until("the message on stderr", || {
        let written = fs::read_to_string(&stderr).unwrap();
        written.contains("soon").then_some(written)
    });
    // A line of facts, then the text, which cannot pass for another message.
    let lines: Vec<_> = written.lines().skip_while(|line| !line.contains("Disk")).take(3).collect();
    assert!(lines[0].contains(" ERROR llm Disk") && !written.contains('\u{1b}'), "{written:?}");
    assert_eq!((lines[1].trim_start(), lines[2].trim_start()), ("is full", "soon"));
    assert!(lines[1].starts_with(' ') && lines[2].starts_with(' '), "{written:?}");
    desk.kill();
    daemon.wait().unwrap();
}

#[test]
fn a_log_that_cannot_be_written_fails_no_tool_row_11() {
    let desk = Desk::new();
    // A folder in place of the file: root could write to a file that is read-only.
    fs::create_dir_all(desk.state().join("deskbell.log")).unwrap();
    for arguments in ["mcp", "mcp --in-process"] {
        let mut command = desk.command(&[]);
        let program = command.get_program().to_owned();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec \"$0\" {arguments} 2>&-")]).arg(program);
        shell.current_dir(desk.folder()).env_clear();
        shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command = shell;
        let mut client = McpClient::launch(command);
        client.initialize();
        notify(&mut client, "still here", "error", "safety");
        assert_eq!(client.close().0, Some(0), "{arguments}");
        if arguments == "mcp" {
            signal_daemon(&desk);
        }
    }
}

/// Ends the daemon that a client started, so that the next one may open the journal.
fn signal_daemon(desk: &Desk) {
    let pid = desk.pid();
    crate::support::desk::signal(pid, rustix::process::Signal::TERM);
    until("the daemon's end", || (!crate::support::desk::is_running(pid)).then_some(()));
}

#[test]
fn a_thousand_calls_wait_for_nobody_who_reads_stderr_row_13() {
    const CALLS: u64 = 1_000;
    // A debug build on a loaded machine is slow by itself, and still far from a wait in each call.
    const MOST: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 1 });
    for arguments in [&["mcp"][..], &["mcp", "--in-process"]] {
        let desk = Desk::new();
        let mut child = desk
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, answers) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let message: Value = serde_json::from_str(&line).unwrap();
                if message.get("method").is_none() && sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut send = |message: Value| writeln!(input, "{message}").unwrap();
        let client = json!({ "name": "test", "version": "1" });
        send(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client } }));
        send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        // Far more than a pipe holds, and nobody reads it.
        let text = "x".repeat(1_000);
        #[expect(clippy::disallowed_methods, reason = "real pipes take real time")]
        let start = Instant::now();
        for id in 1..=CALLS {
            send(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
                "name": "notify", "arguments": { "message": text, "level": "error" } } }));
        }
        for _ in 0..=CALLS {
            let answer = answers.recv_timeout(Duration::from_secs(60)).expect("an answer");
            assert_ne!(answer["result"]["isError"], true, "{answer}");
        }
        assert!(start.elapsed() < MOST, "{arguments:?} took {:?}", start.elapsed());
        drop(input);
        assert!(child.wait().unwrap().success(), "{arguments:?}");
    }
}

#[test]
fn two_runs_append_and_the_log_is_rotated_and_private_row_17() {
    let mut desk = Desk::with_config("[tracing.file]\nmax_bytes = 4096\nkeep = 2\n");
    let log = desk.state().join("deskbell.log");
    let logged = |text: &str| {
        until("a line in the log", || {
            fs::read_to_string(&log).ok().filter(|log| log.contains(text))
        })
    };
    for number in 0..2 {
        desk.serve();
        desk.run(&["notify", &format!("from run {number}\nINFO forged")]);
        logged(&format!("from run {number}\\nINFO forged"));
        desk.terminate();
    }
    assert!(logged("from run 0").contains("from run 1"), "the second run appends");
    assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
    desk.serve();
    for number in 0..30 {
        desk.run(&["notify", &format!("{number} {}", "x".repeat(500))]);
    }
    logged("29 x");
    let names = ["deskbell.log", "deskbell.log.1", "deskbell.log.2", "deskbell.log.3"];
    let sizes = names.map(|name| fs::metadata(desk.state().join(name)).map(|log| log.len()).ok());
    assert!(sizes[..3].iter().all(|size| size.is_some_and(|size| size <= 4096)), "{sizes:?}");
    assert_eq!(sizes[3], None, "only two are kept");
}

#[test]
fn mcp_pushs_variables_are_channels_of_the_program_row_111() {
    let desk = Desk::new();
    fs::write(
        desk.folder().join("config.sh"),
        "export NTFY_TOPIC=file\nexport NTFY_URL='https://n.example'\n",
    )
    .unwrap();
    let mut command = desk.command(&["config", "show"]);
    command.env("NTFY_TOPIC", "environment").env("DESKBELL_MCP__PROFILE", "mcp-push");
    let output = command.output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("topic = \"environment\""), "{shown}");
    assert!(shown.contains("server = \"https://n.example\""), "{shown}");
}

#[test]
fn a_token_is_in_nothing_that_is_said_logged_or_kept_row_116() {
    const TOKEN: &str = "tk-hunter2-3f9a";
    let far_end = FarEnd::answering(|_, _| Reply::status(500));
    let mut desk = Desk::with_config(&format!(
        "[channels.far]\nkind = \"webhook_json\"\nurl = \"{}/{TOKEN}\"\ntoken = \"env:TOKEN\"\nsigning_secret = \"wrong {TOKEN}\"\n\
         [channels.good]\nkind = \"webhook_json\"\nurl = \"{}/{TOKEN}\"\ntoken = \"env:TOKEN\"\n\
         [tracing]\ntargets = [{{ name = \"deskbell\", level = \"debug\" }}, {{ name = \"deskbell_channels\", level = \"debug\" }}]\n",
        far_end.url(),
        far_end.url(),
    ));
    desk.serve_with_env(&[("TOKEN", TOKEN)]);
    let mut said = String::new();
    for arguments in [
        &["config", "check"][..],
        &["config", "check", "--json"],
        &["config", "show"],
        &["channel", "list"],
        &["channel", "list", "--json"],
        &["channel", "test", "good"],
        &["notify", "a", "-l", "error"],
        &["history", "--json"],
        &["doctor"],
    ] {
        let (_, stdout, stderr) = desk.run(arguments);
        said += &stdout;
        said += &stderr;
    }
    until("an attempt that failed", || {
        let log = fs::read_to_string(desk.state().join("deskbell.log")).ok()?;
        log.contains("500").then_some(())
    });
    desk.terminate();
    assert!(!said.contains(TOKEN), "{said}");
    for entry in fs::read_dir(desk.state()).unwrap() {
        let path = entry.unwrap().path();
        let kept = fs::read(&path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(!kept.unwrap_or_default().contains(TOKEN), "{}", path.display());
    }
}
