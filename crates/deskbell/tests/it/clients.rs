//! Clients of the official SDKs: the same plan over both transports and in both eras, with the same results.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use crate::support::{Desk, far_end::FarEnd, until};

/// A file that `scripts/test-clients.sh` installs, by its path below `.tools`.
#[track_caller]
pub(crate) fn tool(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let file = root.join(".tools").join(path);
    assert!(file.exists(), "{path} is not installed; run scripts/test-clients.sh");
    file
}

/// A client program and how it is run.
#[derive(Clone, Copy)]
enum Client {
    Python { generation: u8, source: &'static str },
    Node { source: &'static str },
}

impl Client {
    fn command(self) -> Command {
        match self {
            Self::Python { generation, source } => {
                let mut command = Command::new(tool(&format!("python-{generation}/bin/python")));
                command.args(["-c", source]);
                command
            }
            Self::Node { source } => {
                let mut command = Command::new(tool("node/node_modules/node/bin/node"));
                // The folder decides where imports are looked for.
                command.args(["--input-type=module", "-e", source]).current_dir(tool("node"));
                command
            }
        }
    }

    /// Carries out `plan` and gives what the client printed, a line for each step.
    #[track_caller]
    fn run(self, plan: &Value) -> String {
        let folder = tempfile::tempdir().unwrap();
        let (printed, said) = (folder.path().join("printed"), folder.path().join("said"));
        let mut command = self.command();
        command
            .stdin(Stdio::piped())
            .stdout(File::create(&printed).unwrap())
            .stderr(File::create(&said).unwrap());
        let mut running = Running(command.spawn().unwrap());
        running.0.stdin.take().unwrap().write_all(plan.to_string().as_bytes()).unwrap();
        let status = until("the end of the client", || running.0.try_wait().unwrap());
        assert!(status.success(), "{}", fs::read_to_string(said).unwrap());
        fs::read_to_string(printed).unwrap()
    }
}

/// A client that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// What every client does.
fn steps(run: &str) -> Value {
    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let event = |event: &str, data: Value| {
        json!({
            "call": call(
                "notify_event",
                json!({
                    "run_id": run, "event": event, "message": format!("现在 {event}"), "data": data,
                    "timestamp": "2024-01-01T18:00:00+08:00"
                }),
            )
        })
    };
    let together: Vec<_> = (0..8)
        .map(|index| call("notify", json!({ "message": format!("side by side {index}") })))
        .collect();
    json!([
        { "list": true },
        { "call": call("notify", json!({ "message": "hello 🔔", "level": "WARN", "context": "safety" })) },
        { "call": call("notify", json!({ "message": " \n" })) },
        { "call": call("notify_send", json!({ "title": "任务完成", "content": "a\nb" })) },
        { "call": call("notify.send", json!({ "title": "t", "content": "c", "extra": 1 })) },
        { "together": together },
        { "hear": call("notify", json!({ "message": "told", "level": "error" })) },
        { "hear": call("notify", json!({ "message": "not told", "level": "debug" })) },
        { "watch": format!("runs://{run}") },
        event("start", json!({})),
        { "changed": true },
        event("update", json!({ "step": "parse", "progress": 0.32 })),
        { "changed": true },
        event("update", json!({ "progress": 7 })),
        { "hear": event("update", json!({ "progress": 0.5 })).get("call") },
        { "changed": true },
        event("end", json!({})),
        { "changed": true },
        event("update", json!({})),
        { "read": format!("runs://{run}") },
    ])
}

/// Runs the plan in each era over each transport, and compares what comes out with the same snapshot.
fn check(name: &str, client: Client, eras: &[&str]) {
    let far_end = FarEnd::start();
    let mut desk = Desk::with_config(&format!(
        "[channels.phone]\nkind = \"ntfy\"\nserver = \"{}\"\ntopic = \"t\"\n",
        far_end.url()
    ));
    desk.serve();
    let environment = json!({
        "PATH": std::env::var("PATH").unwrap_or_default(),
        "HOME": desk.folder(),
        "DESKBELL_STATE_DIR": desk.state(),
        "DESKBELL_CONFIG": desk.config_file(),
    });
    let local = json!({
        "command": env!("CARGO_BIN_EXE_deskbell"), "arguments": ["mcp"], "environment": environment
    });
    let remote = json!({ "url": format!("{}/mcp", desk.url()), "token": desk.token() });
    for era in eras {
        for (transport, server) in [("stdio", &local), ("http", &remote)] {
            let run = format!("run-{name}-{era}-{transport}");
            let plan = json!({ "server": server, "era": era, "steps": steps(&run) });
            let printed = client.run(&plan);
            compare(&printed, &run);
        }
    }
}

/// What the tool of the SDK's example tells, to every client and in every era.
#[track_caller]
fn check_example(name: &str, client: Client, eras: &[&str]) {
    let programs = Path::new(env!("CARGO_BIN_EXE_deskbell")).parent().unwrap();
    let example = programs.join("examples/server");
    assert!(
        example.exists(),
        "the SDK's example is not built; run the tests of the whole workspace"
    );
    let server = json!({ "command": example, "arguments": [], "environment": {} });
    for era in eras {
        let steps = json!([{ "hear": { "name": "index", "arguments": {} } }]);
        let printed = client.run(&json!({ "server": server, "era": era, "steps": steps }));
        let told = as_javascript_writes(serde_json::from_str(&printed).unwrap());
        let progress = |progress: u32, text: &str| json!({ "progress": f64::from(progress), "total": 3.0, "text": text });
        let message =
            |level: &str, text: &str| json!({ "level": level, "logger": "index", "text": text });
        let expected = json!({ "told": [
            message("info", "indexing"),
            progress(0, "Indexing"),
            progress(1, "indexed Cargo.toml"),
            progress(2, "indexed src/lib.rs"),
            message("notice", "indexed"),
            progress(3, "indexed src/main.rs"),
        ] });
        assert_eq!(told, as_javascript_writes(expected), "{name} {era}");
    }
}

/// A time of the test itself; the plan's own are of 2024.
const NOW: &str = r"20(2[5-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z";

/// What a client printed, without what differs from run to run, is what every other one printed.
#[track_caller]
fn compare(printed: &str, run: &str) {
    let lines: Vec<String> = printed
        .lines()
        .map(|line| {
            let line = as_javascript_writes(serde_json::from_str(line).unwrap());
            serde_json::to_string_pretty(&line).unwrap().replace(run, "RUN")
        })
        .collect();
    let uuid = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}";
    insta::with_settings!({
        filters => vec![(uuid, "EVENT"), (NOW, "NOW")],
        description => "the plan of tests/it/clients.rs, the same for every client, transport and era",
        prepend_module_to_snapshot => false,
    }, {
        insta::assert_snapshot!("official_clients", lines.join("\n"));
    });
}

/// JavaScript knows no difference between 1.0 and 1.
fn as_javascript_writes(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(as_javascript_writes).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, field)| (name, as_javascript_writes(field))).collect()
        }
        Value::Number(number) if number.is_f64() => {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0);
            whole.map_or(Value::Number(number), |whole| {
                serde_json::from_str(&format!("{whole:.0}")).unwrap()
            })
        }
        other => other,
    }
}

#[test]
fn the_python_client_1_gets_the_same_over_each_transport_rows_53_56() {
    let source = include_str!("../clients/python/client_1.py");
    check("python-1", Client::Python { generation: 1, source }, &["legacy"]);
    check_example("python-1", Client::Python { generation: 1, source }, &["legacy"]);
}

#[test]
fn the_python_client_2_gets_the_same_in_each_era_rows_53_56() {
    let source = include_str!("../clients/python/client_2.py");
    check("python-2", Client::Python { generation: 2, source }, &["legacy", "modern"]);
    check_example("python-2", Client::Python { generation: 2, source }, &["legacy", "modern"]);
}

#[test]
fn the_typescript_client_1_gets_the_same_over_each_transport_rows_53_56() {
    let source = include_str!("../clients/node/client-1.mjs");
    check("node-1", Client::Node { source }, &["legacy"]);
    check_example("node-1", Client::Node { source }, &["legacy"]);
}

#[test]
fn the_typescript_client_2_gets_the_same_in_each_era_rows_53_56() {
    let source = include_str!("../clients/node/client-2.mjs");
    check("node-2", Client::Node { source }, &["legacy", "modern"]);
    check_example("node-2", Client::Node { source }, &["legacy", "modern"]);
}
