//! A whole MCP server on stdin and stdout whose tools tell what they do: `cargo run --example server`.

use std::time::Duration;

use deskbell_sdk::{Notifying, ToolContext};
use rmcp::{ServerHandler, ServiceExt as _, tool, tool_handler, tool_router, transport::stdio};
use serde_json::json;

struct Files;

#[tool_router]
impl Files {
    #[tool(description = "Indexes the files of a project")]
    async fn index(&self, cx: ToolContext) -> String {
        let files = ["Cargo.toml", "src/lib.rs", "src/main.rs"];
        cx.log.info("indexing");
        let mut progress = cx.notify.progress("Indexing", 3.0);
        for file in files {
            tokio::time::sleep(Duration::from_millis(300)).await;
            progress.increment_with(1.0, format!("indexed {file}"));
        }
        cx.log.data(json!({ "files": files.len() })).notice("indexed");
        format!("indexed {} files", files.len())
    }
}

#[tool_handler]
impl ServerHandler for Files {}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    Notifying::new(Files).serve(stdio()).await?.waiting().await?;
    Ok(())
}
