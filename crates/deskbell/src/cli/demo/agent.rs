//! An agent as the program meets it: an MCP client that launches `deskbell mcp` and speaks JSON-RPC with it.

use std::process::Stdio;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout},
};

use super::{PATIENCE, stage::Stage};

/// The revision of MCP that it speaks.
const REVISION: &str = "2025-11-25";

pub(super) struct Agent {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    next_id: u64,
}

impl Agent {
    /// Launches the server and shakes hands with it.
    pub(super) async fn launch(stage: &Stage) -> anyhow::Result<Self> {
        let mut child = stage
            .command()?
            .arg("mcp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // What it shows there is shown from the live stream.
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("failed to launch `deskbell mcp`")?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("`deskbell mcp` has no pipes");
        };
        let output = BufReader::new(output).lines();
        let mut agent = Self { child, input, output, next_id: 1 };
        let hello = json!({
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": { "name": "demo-agent", "version": crate::VERSION },
        });
        agent.request("initialize", hello).await?;
        agent.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await?;
        Ok(agent)
    }

    /// Calls a tool and gives its result.
    pub(super) async fn call(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Value> {
        let params = json!({ "name": tool, "arguments": arguments });
        let result = self.request("tools/call", params).await?;
        if result.get("isError") == Some(&Value::Bool(true)) {
            bail!("the tool {tool} refused: {result}");
        }
        Ok(result)
    }

    /// Ends the session as a client does: by closing its end.
    pub(super) async fn end(mut self) -> anyhow::Result<()> {
        drop(self.input);
        tokio::time::timeout(PATIENCE, self.child.wait()).await??;
        Ok(())
    }

    async fn request(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await?;
        let answer = tokio::time::timeout(PATIENCE, self.answer(id)).await;
        answer.with_context(|| format!("`deskbell mcp` does not answer {method}"))?
    }

    async fn answer(&mut self, id: u64) -> anyhow::Result<Value> {
        while let Some(line) = self.output.next_line().await? {
            let mut message: Value = serde_json::from_str(&line)?;
            // Notifications of the server come in between.
            if message.get("id") != Some(&json!(id)) {
                continue;
            }
            if let Some(error) = message.get("error") {
                bail!("`deskbell mcp` answered with an error: {error}");
            }
            return Ok(message.get_mut("result").map(Value::take).unwrap_or_default());
        }
        bail!("`deskbell mcp` ended")
    }

    async fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        self.input.write_all(format!("{message}\n").as_bytes()).await?;
        self.input.flush().await?;
        Ok(())
    }
}
