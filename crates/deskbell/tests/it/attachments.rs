//! Files that go out with a message: who may name them, and what is said of those that do not arrive.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Desk, FarEnd, Reply};

/// A configuration whose channel `far` takes files.
fn ntfy(far_end: &FarEnd) -> String {
    let url = far_end.url();
    format!("[channels.far]\nkind = \"ntfy\"\nserver = \"{url}\"\ntopic = \"builds\"\n")
}

fn taken() -> Reply {
    Reply { body: "{\"id\":\"x\"}".to_owned(), ..Reply::status(200) }
}

fn report(path: &str) -> Value {
    json!({ "text": "a", "attachments": [{ "url": "https://h/a" }, { "path": path }] })
}

#[test]
fn over_tcp_files_are_attached_only_where_the_user_wants_it_row_116() {
    let mut desk = Desk::new();
    desk.serve();
    let file = desk.folder().join("notes.txt");
    fs::write(&file, "x").unwrap();
    let file = file.canonicalize().unwrap();
    let refused = desk.post("/v1/events", &report(file.to_str().unwrap()));
    assert_eq!(refused.status, 422);
    let problem = refused.json();
    assert_eq!(problem["field"], "attachments[1].path", "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("`serve.attach_files`"), "{problem}");
    desk.terminate();
    desk.configure("[serve]\nattach_files = true\n[serve.tokens]\nci = \"a-token-of-ones-own\"\n");
    desk.serve();
    assert_eq!(desk.post("/v1/events", &report(file.to_str().unwrap())).status, 201);
    let own = desk.state().canonicalize().unwrap().join("token");
    let refused = desk.post("/v1/events", &report(own.to_str().unwrap()));
    assert_eq!((refused.status, &refused.json()["field"]), (422, &"attachments[1].path".into()));
    let somebody =
        [("content-type", "application/json"), ("authorization", "Bearer a-token-of-ones-own")];
    let body = report(file.to_str().unwrap()).to_string();
    let refused = desk.request("POST", "/v1/events", &somebody, Some(&body));
    assert_eq!((refused.status, &refused.json()["field"]), (422, &"attachments[1].path".into()));
    let null = desk.post("/v1/events", &report("/a\0b")).json();
    assert!(null["detail"].as_str().unwrap().contains("without a null character"), "{null}");
}

#[test]
fn nobody_attaches_deskbells_own_files_row_116() {
    let desk = Desk::with_config("");
    assert_eq!(desk.run(&["notify", "so that there is a token"]).0, 0);
    std::os::unix::fs::symlink(desk.state().join("token"), desk.folder().join("link")).unwrap();
    let own = desk.state().join("journal.sqlite");
    for (command, path) in [
        (&["notify", "a"][..], own.to_str().unwrap()),
        (&["event", "run-1", "start", "a"], "link"),
        (&["notify", "a"], desk.config_file().to_str().unwrap()),
    ] {
        let arguments = [command, &["--attach", path]].concat();
        let (code, _, stderr) = desk.run(&arguments);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains("Deskbell's own"), "{stderr}");
    }
}

#[test]
fn a_step_of_a_run_takes_files_with_it() {
    let far_end = FarEnd::answering(|_, _| taken());
    let desk = Desk::with_config(&ntfy(&far_end));
    fs::write(desk.folder().join("build.log"), "two errors").unwrap();
    let event = ["event", "build-7", "start", "it begins", "--attach", "build.log"];
    let (code, _, stderr) = desk.run(&event);
    assert_eq!(code, 0, "{stderr}");
    let requests = far_end.wait_for(2);
    assert_eq!(requests[1].body, "two errors");
}

#[test]
fn a_file_that_does_not_arrive_is_said_at_both_ends() {
    let far_end = FarEnd::answering(|_, request| match request.method.as_str() {
        "PUT" => {
            let body = r#"{"code":41301,"http":413,"error":"attachment too large"}"#.to_owned();
            Reply { body, ..Reply::status(413) }
        }
        _ => taken(),
    });
    let desk = Desk::with_config(&ntfy(&far_end));
    fs::write(desk.folder().join("big.log"), "x".repeat(2_000)).unwrap();
    fs::write(desk.folder().join("empty.log"), "").unwrap();
    let files = ["--attach", "big.log", "--attach", "empty.log"];
    let told = [&["notify", "it failed", "--to", "far", "--wait"], &files[..]].concat();
    let (code, _, stderr) = desk.run(&told);
    assert_eq!(code, 0, "{stderr}");
    let requests = far_end.requests();
    let [text, file, missing] = &requests[..] else { panic!("{requests:?}") };
    assert_eq!(text.json()["message"], "it failed\n\nAttached: empty.log (0 bytes)");
    assert_eq!(file.method, "PUT");
    let missing = missing.json()["message"].as_str().unwrap().to_owned();
    assert!(missing.starts_with("Attached: big.log (2.0 kB, not taken: "), "{missing}");
    assert!(missing.contains("attachment too large"), "{missing}");
    for said in ["far: sent: `empty.log` was not sent: it is empty", "; `big.log` was not sent: "] {
        assert!(stderr.contains(said), "{stderr}");
    }
}
