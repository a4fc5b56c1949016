//! Syslog through a real rsyslog, which says how it reads the records.

use std::fs;

use deskbell::app::SystemClock;
use deskbell_core::clock::Clock as _;
use serde_json::{Value, json};

use super::real::Server;
use crate::support::{Desk, until};

/// The parts of a record as rsyslog reads them, a line of JSON for each record.
const PARTS: [(&str, &str); 7] = [
    ("facility", "syslogfacility-text"),
    ("severity", "syslogseverity-text"),
    ("version", "protocol-version"),
    ("application", "app-name"),
    ("kind", "msgid"),
    ("at", "timereported"),
    ("text", "msg"),
];

fn rsyslog() -> Server {
    Server::start("rsyslogd", |folder, port| {
        let parts = PARTS.map(|(name, property)| {
            let date = if property == "timereported" { " dateFormat=\"rfc3339\"" } else { "" };
            format!("property(outname=\"{name}\" name=\"{property}\"{date} format=\"jsonf\")")
        });
        let parts = parts.join("\n    constant(value=\",\")\n    ");
        let configuration = format!(
            r#"
global(workDirectory="{folder}")
module(load="imudp")
module(load="imtcp")
input(type="imudp" address="127.0.0.1" port="{port}")
input(type="imtcp" address="127.0.0.1" port="{port}")
template(name="parts" type="list") {{
    constant(value="{{")
    {parts}
    constant(value="}}\n")
}}
action(type="omfile" file="{folder}/records" template="parts" asyncWriting="off")
"#,
            folder = folder.display(),
        );
        let file = folder.join("rsyslog.conf");
        fs::write(&file, configuration).unwrap();
        let pid = folder.join("pid");
        ["-n", "-f", file.to_str().unwrap(), "-i", pid.to_str().unwrap()]
            .map(str::to_owned)
            .to_vec()
    })
}

#[test]
fn a_real_rsyslog_reads_records_as_they_are_meant() {
    let server = rsyslog();
    let ways = [
        ("datagram", "protocol = 'udp'"),
        ("octets", "protocol = 'tcp'\nframing = 'octets'"),
        ("lines", "protocol = 'tcp'\nframing = 'newline'"),
    ];
    let channels = ways.map(|(name, way)| {
        format!(
            "[channels.{name}]\nkind = 'syslog_remote'\nhost = '127.0.0.1'\nport = {}\n\
             facility = 'local3'\n{way}\n",
            server.port
        )
    });
    let mut desk = Desk::with_config(&channels.concat());
    desk.serve();
    let records = || {
        let told = fs::read_to_string(server.folder.path().join("records")).unwrap_or_default();
        let lines = told.lines().filter(|line| line.ends_with('}'));
        lines.map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
    };
    for (count, (name, _)) in ways.iter().enumerate() {
        let told = json!({
            "kind": "push", "level": "error", "context": "workflow", "to": [name],
            "title": "Build failed", "text": "first\n<0>1 - forged - - - - second ü",
        });
        assert_eq!(desk.post("/v1/events", &told).status, 201);
        let record = until(&format!("the record of {name}"), || records().get(count).cloned());
        assert_eq!(record["facility"], "local3", "{record}");
        assert_eq!(record["severity"], "err", "{record}");
        assert_eq!(record["version"], "1", "{record}");
        assert_eq!(record["application"], "deskbell", "{record}");
        assert_eq!(record["kind"], "workflow", "{record}");
        let text = record["text"].as_str().unwrap();
        assert_eq!(text, "Build failed: first\\n<0>1 - forged - - - - second ü", "{record}");
        let at = record["at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        let away = SystemClock.now().duration_since(at);
        assert!(away.unsigned_abs().as_secs() < 120, "{record}");
    }
    assert_eq!(records().len(), ways.len());
}
