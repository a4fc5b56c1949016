//! Four ways to use it: files with progress, a long analysis in phases, monitoring with severities, and what is only
//! done when somebody listens. `cargo run --example patterns`.

use std::time::Duration;

use deskbell_sdk::{Level, Notifying, ToolContext};
use rmcp::{
    ErrorData, ServerHandler, ServiceExt as _, handler::server::wrapper::Parameters, tool,
    tool_handler, tool_router, transport::stdio,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

struct Patterns;

#[derive(Deserialize, JsonSchema)]
struct Files {
    /// Paths of the files.
    paths: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Usage {
    /// Share of the disk that is used, from 0 to 1.
    disk: f64,
}

#[tool_router]
impl Patterns {
    /// Progress towards a known total. An error on the way leaves it unfinished, and the caller sees that.
    #[tool(description = "Counts the lines of files")]
    async fn count_lines(
        &self,
        Parameters(Files { paths }): Parameters<Files>,
        cx: ToolContext,
    ) -> Result<String, ErrorData> {
        let total = u32::try_from(paths.len()).unwrap_or(u32::MAX);
        let mut progress = cx.notify.progress("Counting", f64::from(total));
        let mut lines = 0;
        for path in paths {
            let read = std::fs::read_to_string(&path);
            let text = read.map_err(|e| ErrorData::invalid_params(format!("{path}: {e}"), None))?;
            lines += text.lines().count();
            progress.increment_with(1.0, path);
        }
        Ok(format!("{lines} lines"))
    }

    /// One progress for each phase; the caller sees one that grows.
    #[tool(description = "Analyses a project, in three phases")]
    async fn analyse(&self, cx: ToolContext) -> String {
        for (phase, steps) in [("Reading", 3_u32), ("Resolving", 5), ("Checking", 2)] {
            let mut progress = cx.notify.progress(phase, f64::from(steps));
            for _ in 0..steps {
                tokio::time::sleep(Duration::from_millis(150)).await;
                progress.increment(1.0);
            }
            progress.complete(format!("{phase} done"));
        }
        "no findings".to_owned()
    }

    /// The level says how severe it is; the data is for whoever wants to look closer.
    #[tool(description = "Looks at the use of the disk")]
    async fn watch_disk(
        &self,
        Parameters(Usage { disk }): Parameters<Usage>,
        cx: ToolContext,
    ) -> String {
        let log = cx.log.data(json!({ "disk": disk }));
        match disk {
            disk if disk > 0.99 => log.emergency("the disk is full"),
            disk if disk > 0.95 => log.alert("the disk is nearly full"),
            disk if disk > 0.8 => log.warning("the disk fills up"),
            _ => log.debug("the disk has room"),
        }
        format!("{:.0} %", disk * 100.0)
    }

    /// What is dear to compute is computed only if somebody hears it.
    #[tool(description = "Does something, and explains it to whoever listens")]
    async fn explain(&self, cx: ToolContext) -> String {
        if cx.log.is_enabled(Level::Debug) {
            cx.log.data(json!({ "trace": (0..100).collect::<Vec<_>>() })).debug("how it went");
        }
        if cx.notify.is_noop() { "done, unseen" } else { "done" }.to_owned()
    }
}

#[tool_handler]
impl ServerHandler for Patterns {}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    Notifying::new(Patterns).serve(stdio()).await?.waiting().await?;
    Ok(())
}
