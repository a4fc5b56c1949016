//! The official conformance suite against our MCP door, for both eras.
//!
//! The suite wants tools, resources and prompts of its own. [`fixture::Fixture`] puts them beside ours on the very
//! door and endpoints that the program serves.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod asking;
mod fixture;
mod offers;

use std::{fmt::Write as _, path::Path, process::Stdio, sync::Arc};

use deskbell::mcp;
use tokio::{net::TcpListener, process::Command};
use tokio_util::sync::CancellationToken;

use self::fixture::Fixture;
use crate::{clients::tool, mcp_app::Parts};

/// Serves the fixture and runs what `revision` requires of a server.
async fn check(revision: &str) {
    let node = tool("node/node_modules/node/bin/node");
    let suite = tool("node/node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let parts = Parts::with_channels(&["phone"]);
    let stop = CancellationToken::new();
    let router = mcp::http::router_of(Arc::clone(&parts.app), stop.clone(), Fixture::new);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    // The suite checks that names of this machine are let in, so it gets one and not an address.
    let url = format!("http://localhost:{}/mcp", listener.local_addr().unwrap().port());
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(node)
        .arg(suite)
        .args(["server", "--url", &url, "--requirements", revision, "-o"])
        .arg(folder.path())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    stop.cancel();
    serving.abort();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", failures(folder.path()));
    assert!(said.contains("tools-list"), "the suite ran: {said}");
}

/// The checks that did not succeed, from the files that the suite writes.
fn failures(folder: &Path) -> String {
    let mut failures = String::new();
    for scenario in std::fs::read_dir(folder).unwrap() {
        let file = scenario.unwrap().path().join("checks.json");
        let checks = std::fs::read_to_string(&file).unwrap_or_else(|_| "[]".to_owned());
        let checks: Vec<serde_json::Value> = serde_json::from_str(&checks).unwrap();
        for check in checks.iter().filter(|check| check["status"] == "FAILURE") {
            writeln!(failures, "\n{}: {check:#}", file.display()).unwrap();
        }
    }
    failures
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_conformance_suite_passes_with_sessions() {
    check("2025-11-25").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_conformance_suite_passes_without_sessions() {
    check("2026-07-28").await;
}
