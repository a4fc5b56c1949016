//! Matrix through a real Synapse.
#![expect(clippy::indexing_slicing, reason = "a test that cannot go on should say where")]

use std::{fs, path::Path, sync::Mutex};

use aws_lc_rs::hmac;
use serde_json::{Value, json};

use super::{done, python, real::Server};
use crate::support::{Desk, FarEnd, Reply, far_end::Request, until};

/// What may register users.
const SECRET: &str = "registration-secret-0001";

const PASSWORD: &str = "matrix-password-0001";

/// A homeserver with a user for the program, and one who reads.
struct Homeserver {
    server: Server,
    /// The token of the user `bell`.
    bell: String,
    /// The token of the user `ada`.
    ada: String,
}

impl Homeserver {
    fn start() -> Self {
        let server = Server::start_file(&python(), |folder, port| {
            let file = folder.join("homeserver.yaml");
            fs::write(&file, configuration(folder, port)).unwrap();
            // The seed of a key that signs for nobody.
            let seed = "A".repeat(43);
            fs::write(folder.join("signing.key"), format!("ed25519 a_test {seed}\n")).unwrap();
            let logging = "version: 1\ndisable_existing_loggers: false\n";
            fs::write(folder.join("log.yaml"), logging).unwrap();
            ["-m", "synapse.app.homeserver", "-c", file.to_str().unwrap()]
                .map(str::to_owned)
                .to_vec()
        });
        let mut homeserver = Self { server, bell: String::new(), ada: String::new() };
        homeserver.bell = homeserver.register("bell");
        homeserver.ada = homeserver.register("ada");
        homeserver
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.server.port)
    }

    /// Registers a user as an operator does, and gives its token.
    fn register(&self, user: &str) -> String {
        let path = "/_synapse/admin/v1/register";
        let nonce = self.ask("GET", path, "", None)["nonce"].as_str().unwrap().to_owned();
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, SECRET.as_bytes());
        let told = format!("{nonce}\0{user}\0{PASSWORD}\0notadmin");
        let mac = hmac::sign(&key, told.as_bytes());
        let mac: String = mac.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let told = json!({
            "nonce": nonce, "username": user, "password": PASSWORD, "admin": false, "mac": mac,
        });
        let answer = self.ask("POST", path, "", Some(&told));
        answer["access_token"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Makes a room to which `bell` is invited.
    fn room(&self) -> String {
        let told = json!({
            "preset": "private_chat",
            "room_alias_name": "builds",
            "invite": ["@bell:localhost"],
        });
        let path = "/_matrix/client/v3/createRoom";
        self.ask("POST", path, &self.ada, Some(&told))["room_id"].as_str().unwrap().to_owned()
    }

    /// The messages that `ada` sees in `room`, edits as messages of their own.
    fn messages(&self, room: &str) -> Vec<Value> {
        let path = format!("/_matrix/client/v3/rooms/{room}/messages?dir=f&limit=100");
        let page = self.ask("GET", &path, &self.ada, None);
        let mut events = page["chunk"].as_array().unwrap_or_else(|| panic!("{page}")).clone();
        events.retain(|event| event["type"] == "m.room.message");
        events
    }

    /// The texts of the messages that are no edits.
    fn texts(&self, room: &str) -> Vec<String> {
        let messages = self.messages(room).into_iter();
        let new = messages.filter(|event| event["content"]["m.relates_to"].is_null());
        new.map(|event| event["content"]["body"].as_str().unwrap().to_owned()).collect()
    }

    fn ask(&self, method: &str, path: &str, token: &str, body: Option<&Value>) -> Value {
        let body = body.map(ToString::to_string).unwrap_or_default();
        let (_, answer) = ask(&self.url(), method, path, &format!("Bearer {token}"), &body);
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error} in {answer}"))
    }

    /// A channel to `room`, with more options.
    fn channel(&self, name: &str, room: &str, more: &str) -> String {
        channel(name, &self.url(), room, more)
    }
}

fn channel(name: &str, server: &str, room: &str, more: &str) -> String {
    format!("[channels.{name}]\nkind = 'matrix'\nserver = '{server}'\nroom = '{room}'\n{more}\n")
}

fn ask(server: &str, method: &str, path: &str, login: &str, body: &str) -> (u16, String) {
    let agent = ureq::Agent::new_with_config(
        ureq::Agent::config_builder().http_status_as_error(false).build(),
    );
    let request = http::Request::builder().method(method).uri(format!("{server}{path}"));
    let request = request.header("authorization", login).header("content-type", "application/json");
    let answer = match body {
        "" => agent.run(request.body(()).unwrap()),
        _ => agent.run(request.body(body.to_owned()).unwrap()),
    };
    let mut answer = answer.unwrap();
    (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
}

fn configuration(folder: &Path, port: u16) -> String {
    let at = |name: &str| folder.join(name).display().to_string();
    let listener = json!({
        "port": port, "bind_addresses": ["127.0.0.1"], "type": "http", "tls": false,
        "resources": [{ "names": ["client", "media"] }],
    });
    let limit = json!({ "per_second": 5, "burst_count": 5 });
    // JSON is YAML.
    json!({
        "server_name": "localhost",
        "report_stats": false,
        "pid_file": at("pid"),
        "signing_key_path": at("signing.key"),
        "media_store_path": at("media"),
        "log_config": at("log.yaml"),
        "registration_shared_secret": SECRET,
        "macaroon_secret_key": "macaroon-secret-0001",
        "form_secret": "form-secret-0001",
        "trusted_key_servers": [],
        "federation_domain_whitelist": [],
        "presence": { "enabled": false },
        "listeners": [listener],
        "database": { "name": "sqlite3", "args": { "database": at("homeserver.db") } },
        "rc_message": limit,
        "max_upload_size": "1M",
    })
    .to_string()
}

fn token(token: &str) -> String {
    format!("token = '{token}'")
}

#[test]
fn a_real_homeserver_shows_a_run_as_one_message_after_a_restart_too_row_117() {
    let homeserver = Homeserver::start();
    let room = homeserver.room();
    let mut desk = Desk::with_config(&homeserver.channel("room", &room, &token(&homeserver.bell)));
    desk.serve();
    // It was invited, and joins by itself.
    let markdown = json!({ "kind": "push", "title": "Build", "text": "it is **green**", "format": "markdown" });
    assert_eq!(desk.post("/v1/events", &markdown).status, 201);
    let first = until("the first message", || homeserver.messages(&room).pop());
    assert_eq!(first["sender"], "@bell:localhost");
    let html = first["content"]["formatted_body"].as_str().unwrap();
    assert!(html.contains("<strong>green</strong>") && html.contains("Build"), "{first}");

    done(&desk, &["event", "deploy-1", "start", "deploying"]);
    until("the first step", || (homeserver.texts(&room).len() == 2).then_some(()));
    until("its receipt", || {
        let open = desk.get("/v1/deliveries?state=in_flight").json();
        open["deliveries"].as_array().unwrap().is_empty().then_some(())
    });
    desk.kill();
    desk.serve();
    done(&desk, &["event", "deploy-1", "end", "deployed <everywhere>"]);
    let edit = until("the last step", || {
        homeserver
            .messages(&room)
            .into_iter()
            .find(|event| event["content"]["m.relates_to"]["rel_type"] == "m.replace")
    });
    assert_eq!(homeserver.texts(&room).len(), 2, "{:?}", homeserver.messages(&room));
    // What the homeserver itself makes of it: the message has a newer text.
    let id = edit["content"]["m.relates_to"]["event_id"].as_str().unwrap();
    let path = format!("/_matrix/client/v3/rooms/{room}/event/{id}");
    let message = homeserver.ask("GET", &path, &homeserver.ada, None);
    assert!(message["content"]["body"].as_str().unwrap().contains("deploying"), "{message}");
    let newer = &message["unsigned"]["m.relations"]["m.replace"]["content"]["m.new_content"];
    assert!(newer["body"].as_str().unwrap().contains("deployed <everywhere>"), "{message}");
}

#[test]
fn a_real_homeserver_keeps_files_and_one_that_it_refuses_is_named() {
    const LARGE: usize = 1_100_000;
    let homeserver = Homeserver::start();
    let room = homeserver.room();
    let mut desk = Desk::with_config(&homeserver.channel("room", &room, &token(&homeserver.bell)));
    desk.serve();
    let held = "what was\nattached";
    fs::write(desk.folder().join("build ☃.log"), held).unwrap();
    fs::write(desk.folder().join("core.bin"), "x".repeat(LARGE)).unwrap();
    let files = ["--attach", "build ☃.log", "--attach", "core.bin"];
    let told = [&["notify", "it failed", "--to", "room", "--wait"], &files[..]].concat();
    let (code, _, stderr) = desk.run(&told);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("`core.bin` was not sent: "), "{stderr}");
    let messages = homeserver.messages(&room);
    let [text, file, missing] = &messages[..] else { panic!("{messages:?}") };
    assert!(text["content"]["body"].as_str().unwrap().contains("it failed"), "{text}");
    let said = missing["content"]["body"].as_str().unwrap();
    assert!(said.starts_with("Attached: core.bin (1.1 MB, not taken: "), "{said}");
    let content = &file["content"];
    assert_eq!(
        (&content["msgtype"], &content["filename"]),
        (&"m.file".into(), &"build ☃.log".into())
    );
    assert_eq!(content["info"], json!({ "mimetype": "text/plain", "size": held.len() }));
    let place = content["url"].as_str().unwrap().strip_prefix("mxc://").unwrap();
    let path = format!("/_matrix/client/v1/media/download/{place}");
    let login = format!("Bearer {}", homeserver.ada);
    assert_eq!(ask(&homeserver.url(), "GET", &path, &login, ""), (200, held.to_owned()));
}

#[test]
fn a_repeat_after_a_lost_answer_is_one_message_in_a_real_room() {
    let homeserver = Homeserver::start();
    let room = homeserver.room();
    let (server, lost) = (homeserver.url(), Mutex::new(0));
    // What stands before the homeserver loses its first answers to messages.
    let gateway = FarEnd::answering(move |_, request: &Request| {
        let login = request.headers["authorization"].to_str().unwrap();
        let (status, body) =
            ask(&server, request.method.as_str(), &request.path, login, &request.body);
        let mut lost = lost.lock().unwrap();
        if request.method == http::Method::PUT && status == 200 && *lost < 2 {
            *lost += 1;
            return Reply::status(502);
        }
        Reply { body, ..Reply::status(status) }
    });
    let login = token(&homeserver.bell);
    let mut desk = Desk::with_config(&channel("room", &gateway.url(), &room, &login));
    desk.serve();
    done(&desk, &["notify", "only once", "--to", "room"]);
    let delivery = until("the delivery", || {
        let delivery = desk.get("/v1/deliveries").json()["deliveries"][0].clone();
        (delivery["state"] == "sent").then_some(delivery)
    });
    assert_eq!(delivery["attempt_count"], 3, "{delivery}");
    assert_eq!(homeserver.texts(&room).len(), 1, "{:?}", homeserver.messages(&room));
    let requests = gateway.requests().into_iter();
    let mut sent: Vec<_> = requests.filter(|one| one.method == http::Method::PUT).collect();
    sent.dedup_by_key(|request| request.path.clone());
    assert_eq!(sent.len(), 1, "{sent:?}");
}

#[test]
fn a_real_homeserver_says_why_it_refuses_and_how_long_to_wait() {
    let homeserver = Homeserver::start();
    let room = homeserver.room();
    let login = token(&homeserver.bell);
    let by_name = format!("user = 'bell'\npassword = '{PASSWORD}'");
    let mut desk = Desk::with_config(
        &[
            homeserver.channel("room", "#builds:localhost", &by_name),
            homeserver.channel("stranger", &room, &token("syt_d3Jvbmc_wrong_000000")),
            homeserver.channel("nowhere", "!nowhere:localhost", &login),
        ]
        .concat(),
    );
    desk.serve();
    for (channel, reason) in [("stranger", "Invalid access token passed."), ("nowhere", "M_")] {
        let (code, stdout, stderr) = desk.run(&["channel", "test", channel]);
        assert_eq!(code, 1, "{stdout}{stderr}");
        assert!(stdout.contains(reason), "{channel}: {stdout}{stderr}");
    }
    let given_up = desk.get("/v1/deliveries?state=given_up").json();
    assert_eq!(given_up["deliveries"].as_array().unwrap().len(), 2, "{given_up}");

    // Five at once are taken, and five a second.
    let texts: Vec<String> = (0..12).map(|number| format!("notice {number}")).collect();
    for text in &texts {
        let told = json!({ "kind": "push", "text": text, "to": ["room"] });
        assert_eq!(desk.post("/v1/events", &told).status, 201);
    }
    let deliveries = until("the end of all notices", || {
        let page = desk.get("/v1/deliveries?channel=room&limit=100").json();
        let all = page["deliveries"].as_array().unwrap().clone();
        all.iter().all(|one| one["state"] == "sent" || one["state"] == "given_up").then_some(all)
    });
    assert!(deliveries.iter().all(|delivery| delivery["state"] == "sent"), "{deliveries:?}");
    let mut told = homeserver.texts(&room);
    told.sort_by_key(|text| text.rsplit(' ').next().and_then(|number| number.parse::<u32>().ok()));
    assert_eq!(told, texts);
    let waited = deliveries.iter().filter(|one| one["attempt_count"].as_u64() > Some(1));
    assert!(waited.count() > 0, "the homeserver's limit was never met: {deliveries:?}");
}
