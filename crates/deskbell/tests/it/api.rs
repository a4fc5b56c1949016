//! The HTTP API.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say where"
)]

use std::collections::BTreeSet;

use http::header::{CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use serde_json::{Value, json};

use crate::{
    support::{Answer, Desk, FarEnd, Reply, until},
    tree,
};

const JSON: (&str, &str) = ("content-type", "application/json");

fn served() -> Desk {
    let mut desk = Desk::new();
    desk.serve();
    desk
}

/// A served desk whose channel `far` is `far_end`.
fn served_with(far_end: &FarEnd) -> Desk {
    let url = far_end.url();
    let mut desk =
        Desk::with_config(&format!("[channels.far]\nkind = \"webhook_json\"\nurl = \"{url}\"\n"));
    desk.serve();
    desk
}

/// The answer is a problem of this status, and its detail says so.
#[track_caller]
fn check_problem(answer: &Answer, status: u16, detail: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.headers[CONTENT_TYPE], "application/problem+json");
    let problem = answer.json();
    assert_eq!(problem["status"], status);
    assert!(problem["detail"].as_str().unwrap().contains(detail), "{problem}");
}

#[test]
fn a_report_is_accepted_and_read_back() {
    let desk = served();
    let answer = desk.post(
        "/v1/events",
        &json!({
            "text": "the disk is **full**",
            "title": "Disk",
            "level": "error",
            "context": "safety",
            "format": "markdown",
            "data": { "free": 0 },
            "source": { "client": "df", "host": "h" },
        }),
    );
    assert_eq!(answer.status, 201);
    let accepted = answer.json();
    assert_eq!(accepted["duplicate"], false);
    let event = desk.get(answer.headers[LOCATION].to_str().unwrap()).json();
    assert_eq!(event["id"], accepted["id"]);
    assert_eq!(event["at"], accepted["at"]);
    for (field, expected) in [
        ("text", json!("the disk is **full**")),
        ("title", json!("Disk")),
        ("level", json!("error")),
        ("context", json!("safety")),
        ("format", json!("markdown")),
        ("kind", json!("notice")),
        ("data", json!({ "free": 0 })),
        ("source", json!({ "client": "df", "host": "h" })),
    ] {
        assert_eq!(event[field], expected, "{field}");
    }
}

#[test]
fn a_key_is_accepted_once_whoever_repeats_it() {
    let desk = served();
    let send = |text: &str, key: &str| {
        let body = json!({ "text": text }).to_string();
        desk.request("POST", "/v1/events", &[JSON, ("idempotency-key", key)], Some(&body))
    };
    let (first, again) = (send("a", "k-1"), send("b", "\"k-1\""));
    assert_eq!((first.status, again.status), (201, 200));
    assert_eq!(again.json()["id"], first.json()["id"]);
    assert_eq!(again.json()["duplicate"], true);
    assert_eq!(send("a", "k-2").status, 201);
    let events = desk.get("/v1/events").json();
    assert_eq!(events["events"].as_array().unwrap().len(), 2);
}

#[test]
fn refusals_name_field_value_and_expectation() {
    let desk = served();
    let answer = desk.post("/v1/events", &json!({ "text": "a", "level": "loud" }));
    check_problem(&answer, 422, "`level` is \"loud\"; expected one of debug");
    let problem = answer.json();
    assert_eq!((&problem["field"], &problem["value"]), (&json!("level"), &json!("\"loud\"")));
    check_problem(&desk.post("/v1/events", &json!({ "text": " " })), 422, "`text` is only white");
    check_problem(&desk.post("/v1/events", &json!({ "message": "" })), 422, "`message` is empty");
    let raw = |headers: &[(&str, &str)], body: &str| {
        desk.request("POST", "/v1/events", headers, Some(body))
    };
    check_problem(&raw(&[JSON], "{\"text\":"), 400, "not JSON");
    check_problem(&raw(&[("content-type", "text/plain")], "hello"), 415, "text/plain");
    check_problem(&raw(&[JSON], &"x".repeat(3 * 1024 * 1024)), 413, "larger than");
    assert_eq!(
        raw(&[("content-type", "application/json; charset=utf-8")], "{\"text\":\"a\"}").status,
        201
    );
    check_problem(&desk.get("/v1/events/nonsense"), 422, "event id");
    for path in ["events/%ff", "events/%ff/why", "runs/%ff", "deliveries/%ff"] {
        check_problem(&desk.get(&format!("/v1/{path}")), 400, "UTF-8");
    }
    check_problem(&desk.get("/v1/events/019a9c2e-5f00-7000-8000-000000000000"), 404, "no event");
    check_problem(&desk.get("/v1/events?levle=error"), 422, "`levle`");
    check_problem(&desk.get("/v1/nothing"), 404, "/v1/nothing");
    check_problem(&desk.request("DELETE", "/v1/events", &[], None), 405, "DELETE");
    assert_eq!(desk.get("/v1/events").json()["events"].as_array().unwrap().len(), 1);
}

#[test]
fn every_operation_but_health_wants_a_token_row_59() {
    let desk = served();
    let document = desk.get("/openapi.json").json();
    let mut guarded = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let path = path.replace("{id}", "x").replace("{name}", "x");
            let method = method.to_uppercase();
            let without = desk.request(&method, &path, &[("authorization", "")], None);
            if operation["security"] == json!([]) {
                assert_eq!(without.status, 200, "{method} {path}");
                continue;
            }
            guarded += 1;
            check_problem(&without, 401, "token");
            assert!(without.headers[WWW_AUTHENTICATE].to_str().unwrap().starts_with("Bearer"));
            let wrong = desk.request(&method, &path, &[("authorization", "Bearer nope")], None);
            check_problem(&wrong, 401, "token");
        }
    }
    assert!(guarded > 10, "{guarded}");
}

#[test]
fn other_hosts_and_origins_are_refused() {
    let desk = served();
    check_problem(
        &desk.request("GET", "/v1/status", &[("host", "evil.example")], None),
        403,
        "host",
    );
    let origin = [("origin", "https://evil.example")];
    check_problem(&desk.request("GET", "/v1/status", &origin, None), 403, "origin");
    let origin = [("origin", "http://localhost:3000")];
    assert_eq!(desk.request("GET", "/v1/status", &origin, None).status, 200);
}

#[test]
fn pages_lead_through_all_events_in_both_directions() {
    let desk = served();
    for number in 0..25 {
        assert_eq!(desk.post("/v1/events", &json!({ "text": number.to_string() })).status, 201);
    }
    let texts = |order: &str, cursor: &str| {
        let (mut texts, mut next) = (Vec::new(), String::new());
        loop {
            let page = desk.get(&format!("/v1/events?limit=10&order={order}{next}")).json();
            let events = page["events"].as_array().unwrap();
            texts.extend(events.iter().map(|event| event["text"].as_str().unwrap().to_owned()));
            match page["next"].as_str() {
                Some(place) => next = format!("&{cursor}={place}"),
                None => return texts,
            }
        }
    };
    let all: Vec<_> = (0..25).map(|number| number.to_string()).collect();
    assert_eq!(texts("oldest", "after"), all);
    let reversed: Vec<_> = all.into_iter().rev().collect();
    assert_eq!(texts("newest", "before"), reversed);
}

#[test]
fn a_cursor_that_is_not_of_this_journal_is_refused_wherever_it_comes_in() {
    let desk = served();
    let newest = |desk: &Desk| desk.get("/v1/status").json()["cursor"].as_str().unwrap().to_owned();
    let expected = |desk: &Desk| {
        format!("expected a cursor of this journal, whose newest event is at {}", newest(desk))
    };
    check_problem(&desk.get("/v1/events?after=0-1"), 422, &expected(&desk));
    assert_eq!(desk.get("/v1/events?after=0-0").status, 200);
    for number in 0..2 {
        assert_eq!(desk.post("/v1/events", &json!({ "text": number.to_string() })).status, 201);
    }
    for beyond in ["0-3", "0-ffffffffffffffff", "1-0"] {
        for path in ["/v1/events?after=", "/v1/events?before=", "/events?after="] {
            let answer = desk.get(&format!("{path}{beyond}"));
            check_problem(&answer, 422, &expected(&desk));
            assert_eq!(answer.json()["value"], format!("\"{beyond}\""));
        }
        let answer = desk.request("GET", "/events", &[("last-event-id", beyond)], None);
        check_problem(&answer, 422, "`Last-Event-ID` is");
        for command in [["history", "--after", beyond], ["watch", "--after", beyond]] {
            let (code, stdout, stderr) = desk.run(&command);
            assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
            assert!(stderr.contains(&expected(&desk)), "{stderr}");
        }
    }
    // The end itself is where everybody stands who has read all.
    let page = desk.get(&format!("/v1/events?after={}", newest(&desk)));
    assert_eq!((page.status, page.json()["events"].as_array().unwrap().len()), (200, 0));
    assert_eq!(desk.run(&["history", "--after", &newest(&desk)]).0, 0);
}

#[test]
fn filters_narrow_the_list() {
    let desk = served();
    let step = |phase: &str| json!({ "id": "r", "phase": phase });
    for body in [
        json!({ "text": "a", "level": "error", "context": "safety" }),
        json!({ "text": "b", "kind": "push", "source": { "client": "ci" } }),
        json!({ "text": "c", "run": step("start") }),
        json!({ "text": "d", "run": step("error") }),
    ] {
        assert_eq!(desk.post("/v1/events", &body).status, 201, "{body}");
    }
    #[track_caller]
    fn check(desk: &Desk, query: &str, expected: &[&str]) {
        let list = desk.get(&format!("/v1/events?order=oldest&{query}")).json();
        let texts: Vec<_> =
            list["events"].as_array().unwrap().iter().map(|event| &event["text"]).collect();
        assert_eq!(texts, expected, "{query}");
    }
    check(&desk, "level=error..", &["a", "d"]);
    check(&desk, "context=safety", &["a"]);
    check(&desk, "kind=push", &["b"]);
    check(&desk, "client=ci", &["b"]);
    check(&desk, "run=r", &["c", "d"]);
    check(&desk, "run=r&level=info", &["c"]);
    check(&desk, "since=2100-01-01T00:00:00Z", &[]);
}

#[test]
fn a_run_goes_from_start_to_end_and_nothing_follows_rows_104_to_106() {
    let far_end = FarEnd::start();
    let desk = served_with(&far_end);
    let step = |id: &str, phase: &str, more: Value| {
        let mut run = json!({ "id": id, "phase": phase });
        run.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        desk.post("/v1/events", &json!({ "text": phase, "run": run }))
    };
    check_problem(&step("r", "update", json!({})), 409, "was not started");
    assert_eq!(step("r", "start", json!({})).status, 201);
    check_problem(&step("r", "start", json!({})), 409, "already started");
    check_problem(&step("r", "update", json!({ "progress": 7 })), 422, "`run.progress` is 7");
    check_problem(&step("r", "update", json!({ "timestamp": "noon" })), 422, "`run.timestamp`");
    assert_eq!(step("r", "update", json!({ "progress": 0.4 })).json()["run"]["progress"], 0.4);
    assert_eq!(step("r", "end", json!({})).json()["run"]["progress"], 1.0);
    check_problem(&step("r", "update", json!({})), 409, "already ended");
    assert_eq!(step("failing", "start", json!({ "progress": 0.2 })).status, 201);
    assert_eq!(step("failing", "error", json!({})).json()["run"]["progress"], 0.2);

    let run = desk.get("/v1/runs/r").json();
    assert_eq!((&run["state"], &run["steps"]), (&json!("ended"), &json!(3)));
    let failed = desk.get("/v1/runs?state=failed").json();
    assert_eq!(failed["runs"].as_array().unwrap().len(), 1);
    assert_eq!(failed["runs"][0]["id"], "failing");

    // Of a refused step nothing is kept, and so nothing arrives but what the journal has as sent.
    assert_eq!(desk.get("/v1/events").json()["events"].as_array().unwrap().len(), 5);
    let sent = until("the end of all deliveries", || {
        let page = desk.get("/v1/deliveries").json();
        let deliveries = page["deliveries"].as_array().unwrap();
        assert_eq!(deliveries.len(), 5);
        let of_state = |state: &str| {
            let ids = deliveries.iter().filter(|delivery| delivery["state"] == state);
            ids.map(|delivery| delivery["id"].as_str().unwrap().to_owned()).collect::<BTreeSet<_>>()
        };
        let (sent, superseded) = (of_state("sent"), of_state("superseded"));
        (sent.len() + superseded.len() == 5).then_some(sent)
    });
    let arrived = far_end.requests();
    let ids: BTreeSet<_> = arrived
        .iter()
        .map(|request| request.json()["delivery_id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!((ids, arrived.len()), (sent.clone(), sent.len()));
}

#[test]
fn a_step_without_a_time_happened_now_row_106() {
    let desk = served();
    desk.post("/v1/events", &json!({ "text": "a", "run": { "id": "r", "phase": "start" } }));
    let event = &desk.get("/v1/events").json()["events"][0];
    let time = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let (reported, accepted) = (time(&event["run"]["reported_at"]), time(&event["at"]));
    assert!(reported.duration_until(accepted).unsigned_abs().as_secs() < 1);
}

#[test]
fn a_run_survives_a_restart_row_107() {
    let mut desk = served();
    let step = |phase: &str| json!({ "text": phase, "run": { "id": "long", "phase": phase } });
    assert_eq!(desk.post("/v1/events", &step("start")).status, 201);
    desk.terminate();
    desk.serve();
    assert_eq!(desk.get("/v1/runs/long").json()["state"], "open");
    assert_eq!(desk.post("/v1/events", &step("update")).status, 201);
}

#[test]
fn a_channel_test_gives_the_far_end_s_answer() {
    let far_end = FarEnd::answering(|number, _| Reply::status(if number == 0 { 200 } else { 401 }));
    let desk = served_with(&far_end);
    let test = desk.request("POST", "/v1/channels/far/test", &[], None).json();
    assert_eq!(test["outcome"], "sent", "{test}");
    assert_eq!(far_end.requests().len(), 1);
    let test = desk.request("POST", "/v1/channels/far/test", &[], None).json();
    assert_eq!(test["outcome"], "failed", "{test}");
    assert!(test["error"].as_str().unwrap().contains("401"), "{test}");
    check_problem(
        &desk.request("POST", "/v1/channels/gone/test", &[], None),
        404,
        "configured are: far",
    );
    let channels = desk.get("/v1/channels").json();
    let far = &channels["channels"][0];
    assert_eq!((&far["name"], &far["sent"], &far["failed"]), (&json!("far"), &json!(1), &json!(1)));
}

#[test]
fn a_delivery_that_was_given_up_is_tried_again_when_asked() {
    let far_end = FarEnd::answering(|number, _| Reply::status(if number == 0 { 400 } else { 200 }));
    let desk = served_with(&far_end);
    let id = desk.post("/v1/events", &json!({ "text": "a", "kind": "push" })).json()["id"].clone();
    let id = id.as_str().unwrap();
    let settled = || desk.get(&format!("/v1/deliveries?event={id}&wait=30")).json();
    assert_eq!(settled()["deliveries"][0]["state"], "given_up");
    let why = desk.get(&format!("/v1/events/{id}/why")).json();
    let attempt = &why["deliveries"][0]["attempts"][0];
    assert!(attempt["error"].as_str().unwrap().contains("400"), "{why}");

    let retry = format!("/v1/deliveries/{id}.far/retry");
    assert_eq!(desk.request("POST", &retry, &[], None).status, 200);
    assert_eq!(settled()["deliveries"][0]["state"], "sent");
    check_problem(&desk.request("POST", &retry, &[], None), 409, "is sent");
    let unknown = "/v1/deliveries/019a9c2e-5f00-7000-8000-000000000000.far/retry";
    check_problem(&desk.request("POST", unknown, &[], None), 404, "no delivery");
}

#[test]
fn why_tells_each_route_apart_row_120() {
    let far_end = FarEnd::start();
    let url = far_end.url();
    let mut desk = Desk::with_config(&format!(
        "[channels.far]\nkind = \"webhook_json\"\nurl = \"{url}\"\n\
         [[routes]]\nlevel = \"error..\"\nchannels = [\"far\"]\n\
         [[routes]]\ncontext = [\"safety\"]\nchannels = []\n"
    ));
    desk.serve();
    let why = |body: &Value| {
        let id = desk.post("/v1/events", body).json()["id"].as_str().unwrap().to_owned();
        desk.get(&format!("/v1/events/{id}/why")).json()
    };
    let quiet = why(&json!({ "text": "a", "level": "info", "context": "safety" }));
    assert_eq!(quiet["routes"][0]["matches"], false);
    assert!(quiet["routes"][0]["verdict"].as_str().unwrap().contains("level"));
    assert_eq!(quiet["routes"][1]["matches"], true);
    assert_eq!(quiet["deliveries"], json!([]));
    let loud = why(&json!({ "text": "b", "level": "error", "context": "safety" }));
    assert_eq!(loud["routes"][0]["matches"], true);
    assert!(loud["routes"][1]["verdict"].as_str().unwrap().contains("earlier route"));
    assert_eq!(loud["deliveries"][0]["reason"], "route 1");
    assert_eq!(far_end.wait_for(1).len(), 1);
}

#[test]
fn no_answer_shows_a_secret_row_116() {
    let far_end = FarEnd::answering(|_, _| Reply::status(500));
    let url = far_end.url();
    let mut desk = Desk::with_config(&format!(
        "[channels.far]\nkind = \"webhook_json\"\nurl = \"{url}/hook?key=s3cr3t-value\"\n\
         [serve.tokens]\nci = \"s3cr3t-token\"\n"
    ));
    desk.serve();
    desk.request("POST", "/v1/channels/far/test", &[], None);
    let token = desk.token();
    for path in ["/v1/channels", "/v1/status", "/v1/events", "/v1/deliveries", "/openapi.json"] {
        let answer = desk.get(path);
        assert_eq!(answer.status, 200, "{path}");
        for secret in ["s3cr3t", &token] {
            assert!(!answer.body.contains(secret), "{path}: {}", answer.body);
        }
    }
}

#[test]
fn the_program_says_how_it_does() {
    let desk = served();
    let free = [("authorization", "")];
    assert_eq!(desk.request("GET", "/healthz", &free, None).body, "ok\n");
    assert_eq!(desk.get("/readyz").body, "ready\n");
    let status = desk.get("/v1/status").json();
    assert_eq!(status["pid"], desk.pid());
    assert_eq!(status["cursor"], "0-0");
    assert!(status["disk_free_bytes"].as_u64().unwrap() > 0, "{status}");
}

#[test]
fn the_description_is_what_is_served_and_documented() {
    let desk = served();
    assert_eq!(desk.get("/openapi.json").json(), deskbell::api::document());
    tree::check_document("docs/http.md", &deskbell::api::page());
}

#[test]
fn answers_are_what_the_description_says() {
    let far_end = FarEnd::start();
    let desk = served_with(&far_end);
    let document = desk.get("/openapi.json").json();
    let step = json!({ "id": "r", "phase": "start", "progress": 0.1, "step": "s" });
    let report = json!({ "text": "a", "title": "t", "data": {}, "run": step, "to": ["far"] });
    let accepted = desk.post("/v1/events", &report);
    let id = accepted.json()["id"].as_str().unwrap().to_owned();
    let check = |answer: &Answer, path: &str, method: &str| {
        let operation = &document["paths"][path][method];
        let response = &operation["responses"][answer.status.to_string()];
        let (media_type, content) = response["content"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(answer.headers[CONTENT_TYPE], media_type.as_str(), "{method} {path}");
        conforms(&answer.json(), &content["schema"], &document, path);
    };
    check(&accepted, "/v1/events", "post");
    check(&desk.get("/v1/events"), "/v1/events", "get");
    check(&desk.get(&format!("/v1/events/{id}")), "/v1/events/{id}", "get");
    check(&desk.get(&format!("/v1/events/{id}/why")), "/v1/events/{id}/why", "get");
    check(&desk.get("/v1/runs"), "/v1/runs", "get");
    check(&desk.get("/v1/runs/r"), "/v1/runs/{id}", "get");
    check(&desk.get("/v1/deliveries?wait=30"), "/v1/deliveries", "get");
    check(&desk.get(&format!("/v1/deliveries/{id}.far")), "/v1/deliveries/{id}", "get");
    check(&desk.get("/v1/channels"), "/v1/channels", "get");
    check(
        &desk.request("POST", "/v1/channels/far/test", &[], None),
        "/v1/channels/{name}/test",
        "post",
    );
    check(&desk.get("/v1/status"), "/v1/status", "get");
    check(&desk.get("/v1/runs/none"), "/v1/runs/{id}", "get");
}

/// `value` is what `schema` says, as far as our schemas say anything: types, required and known fields, items.
fn conforms(value: &Value, schema: &Value, document: &Value, place: &str) {
    if let Some(reference) = schema["$ref"].as_str() {
        let found = document.pointer(reference.strip_prefix('#').unwrap()).unwrap();
        return conforms(value, found, document, place);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let choice = choices.iter().find(|choice| choice["type"] != "null").unwrap();
        return conforms(value, choice, document, place);
    }
    let types = match &schema["type"] {
        Value::String(name) => BTreeSet::from([name.as_str()]),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => return,
    };
    let fits = match value {
        Value::Null => types.contains("null"),
        Value::Bool(_) => types.contains("boolean"),
        Value::Number(number) => {
            types.contains("number") || (number.is_u64() && types.contains("integer"))
        }
        Value::String(_) => types.contains("string"),
        Value::Array(_) => types.contains("array"),
        Value::Object(_) => types.contains("object"),
    };
    assert!(fits, "{place} is {value}, not {types:?}");
    for required in schema["required"].as_array().into_iter().flatten() {
        assert!(value.get(required.as_str().unwrap()).is_some(), "{place}: no {required}");
    }
    for (name, field) in value.as_object().into_iter().flatten() {
        let known = schema["properties"].get(name);
        let known = known.unwrap_or_else(|| panic!("{place}: `{name}` is not described"));
        conforms(field, known, document, &format!("{place}.{name}"));
    }
    for item in value.as_array().into_iter().flatten() {
        conforms(item, &schema["items"], document, &format!("{place}[]"));
    }
}

#[test]
fn many_reports_are_answered_line_by_line_and_each_for_itself() {
    let desk = served();
    let step =
        |phase: &str| json!({ "text": phase, "run": { "id": "r", "phase": phase } }).to_string();
    let body = [
        json!({ "text": "a", "key": "k" }).to_string(),
        String::new(),
        "{".to_owned(),
        step("start"),
        step("update"),
        step("end"),
        step("update"),
        json!({ "text": "a", "key": "k" }).to_string(),
    ];
    let headers = [("content-type", "application/x-ndjson")];
    let answer = desk.request("POST", "/v1/events", &headers, Some(&body.join("\n")));
    assert_eq!(answer.status, 200);
    let lines: Vec<Value> =
        answer.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 7, "{}", answer.body);
    assert_eq!(lines[1]["status"], 400);
    assert_eq!(
        (&lines[3]["run"]["steps"], &lines[4]["run"]["state"]),
        (&json!(2), &json!("ended"))
    );
    assert_eq!(lines[5]["status"], 409);
    assert_eq!(lines[6]["id"], lines[0]["id"]);
    assert_eq!(desk.get("/v1/events").json()["events"].as_array().unwrap().len(), 4);
    let keyed = |key: &str| {
        let headers = [headers[0], ("idempotency-key", key)];
        desk.request("POST", "/v1/events", &headers, Some("{\"text\":\"a\"}\n\n{\"text\":\"b\"}\n"))
    };
    let ids = |answer: Answer| -> Vec<Value> {
        let lines = answer.body.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| line["id"].clone()).collect()
    };
    let (first, again) = (ids(keyed("\"b-1\"")), ids(keyed("b-1")));
    assert!(first[0] != first[1] && first[0].is_string(), "{first:?}");
    assert_eq!(first, again);
    assert_eq!(desk.get("/v1/events").json()["events"].as_array().unwrap().len(), 6);
    check_problem(&keyed(&"k".repeat(200)), 422, "Idempotency-Key");
    let many = "{\"text\":\"a\"}\n".repeat(1_001);
    check_problem(&desk.request("POST", "/v1/events", &headers, Some(&many)), 413, "1000");
}

#[test]
fn refusals_speak_of_fields_and_not_of_types_of_rust() {
    let desk = served();
    let post = |path: &str, body: &str| {
        desk.request("POST", path, &[("content-type", "application/json")], Some(body))
    };
    let (events, preview) = ("/v1/events", "/v1/channels/preview");
    for (path, body, status, detail) in [
        (events, r#"{"text":"a","text":"b"}"#, 422, "`text` is given twice; expected it once"),
        (events, r#"{"text":7,"#, 400, "the body is not JSON: EOF while parsing"),
        (
            events,
            r#"{"text":"a","run":{"id":"r"}}"#,
            422,
            "`run.phase` is missing; expected one of",
        ),
        (preview, "[]", 422, "`body` is a list; expected a JSON object"),
        (preview, "{}", 422, "`channel` is missing; expected a channel or an address"),
        (preview, r#"{"channel":7}"#, 422, "`channel` is 7; expected a channel or an address"),
        (preview, r#"{"chanel":"x"}"#, 422, "`chanel` is an unknown field; expected `channel`?"),
        (
            preview,
            r#"{"channel":"mqtt://h/t?qos=300","body":"b"}"#,
            422,
            "`qos` is not right; expected a whole number from 0 to 255",
        ),
    ] {
        check_problem(&post(path, body), status, detail);
    }
    // `null` is an absent field, everywhere.
    assert_eq!(post(events, r#"{"text":"a","to":null,"run":null}"#).status, 201);
}

#[test]
fn a_preview_masks_secrets_and_sends_nothing() {
    let far_end = FarEnd::start();
    let url = far_end.url();
    let mut desk = Desk::with_config(&format!(
        "[channels.far]\nkind = \"webhook_json\"\nurl = \"{url}\"\ntoken = \"s3cr3t\"\n"
    ));
    desk.serve();
    let preview = |channel: &str| {
        desk.post("/v1/channels/preview", &json!({ "channel": channel, "title": "T", "body": "B" }))
    };
    let answer = preview("far");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["kind"], "webhook_json");
    assert!(answer.json()["requests"][0]["body"].as_str().unwrap().contains("\"B\""));
    assert!(!answer.body.contains("s3cr3t"), "{answer:?}");
    assert_eq!(preview("ntfy://topic").json()["kind"], "ntfy");
    check_problem(&preview("gone"), 404, "configured are: far");
    check_problem(&preview("nonsense://x"), 422, "channel");
    check_problem(&desk.post("/v1/channels/preview", &json!({ "channel": "far" })), 422, "body");
    assert!(far_end.requests().is_empty());
}
