//! A server that knows nothing of Deskbell's own.

use std::time::Duration;

use deskbell_sdk::ToolContext;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    handler::server::wrapper::Parameters,
    model::{
        CallToolResult, ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceContents,
        ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
    tool, tool_handler, tool_router,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;

/// A server that knows nothing of Deskbell's own.
#[derive(Default)]
pub(crate) struct Worker {
    /// Hears of each tool that has come to its end.
    pub(crate) ended: Option<mpsc::UnboundedSender<&'static str>>,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Steps {
    /// How far the work gets, of four.
    steps: u32,
    /// How it ends: "ok", "error", "refusal", "complete", "fail", "leave", "panic".
    end: String,
}

#[tool_router]
impl Worker {
    #[tool(description = "Says one message at each level")]
    pub(crate) async fn say(&self, cx: ToolContext) -> String {
        let log = cx.log.data(json!({ "n": 1 }));
        log.debug("a debug");
        log.info("an info");
        log.notice("a notice");
        log.warning("a warning");
        log.error("an error");
        log.critical("a critical");
        log.alert("an alert");
        log.emergency("an emergency");
        format!("log {} progress {}", cx.log.is_noop(), cx.notify.is_noop())
    }

    #[tool(description = "Works in four steps")]
    async fn work(
        &self,
        Parameters(Steps { steps, end }): Parameters<Steps>,
        cx: ToolContext,
    ) -> Result<CallToolResult, ErrorData> {
        let mut progress = cx.notify.progress("working", 4.0);
        for step in 1..=steps {
            tokio::time::sleep(Duration::from_millis(200)).await;
            progress.increment_with(1.0, format!("step {step}"));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        // Somebody who keeps the context and goes on when the call has its answer.
        let late = cx.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            late.log.emergency("late");
            late.notify.progress("late", 100.0).update(50.0);
        });
        match end.as_str() {
            "error" => return Err(ErrorData::internal_error("the disk is full", None)),
            "refusal" => {
                return Ok(CallToolResult::error(vec![ContentBlock::text("the disk is full")]));
            }
            "complete" => progress.complete("all done"),
            "fail" => progress.fail("gave up"),
            "leave" => progress.leave(),
            "panic" => panic!("as the test wants it"),
            _ => {}
        }
        Ok(CallToolResult::success(vec![ContentBlock::text("done")]))
    }

    #[tool(description = "Works in two phases, without knowing how long the second one takes")]
    pub(crate) async fn phases(&self, cx: ToolContext) -> String {
        let mut first = cx.notify.progress("loading", 2.0);
        first.update(1.0);
        first.update(0.5);
        first.update(f64::NAN);
        drop(first);
        let mut second = cx.notify.progress("training", None);
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(200)).await;
            second.increment(1.0);
        }
        "done".to_owned()
    }

    #[tool(description = "Tells that a resource and the lists have changed")]
    async fn change(&self, cx: ToolContext) -> String {
        for _ in 0..3 {
            cx.notify.resource_updated("file:///data/output.json");
            cx.notify.resource_updated("file:///other");
            cx.notify.tool_list_changed();
        }
        "done".to_owned()
    }

    #[tool(description = "Works in a thread of its own")]
    async fn thread(&self, cx: ToolContext) -> String {
        std::thread::spawn(move || cx.log.info("from a thread")).join().unwrap();
        "done".to_owned()
    }

    #[tool(description = "Says a hundred things, and counts to a hundred")]
    async fn chatter(&self, cx: ToolContext) -> String {
        let mut progress = cx.notify.progress("counting", None);
        for n in 1..=100 {
            cx.log.info(format!("thing {n}"));
            progress.increment(1.0);
        }
        "done".to_owned()
    }

    #[tool(description = "Says something every second, for a minute")]
    async fn go_on(&self, cx: ToolContext) -> String {
        for second in 0..60 {
            cx.log.info(format!("second {second}"));
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        if let Some(ended) = &self.ended {
            ended.send("go_on").unwrap();
        }
        "done".to_owned()
    }
}

#[tool_handler]
impl ServerHandler for Worker {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .build();
        ServerConfig::new(capabilities)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let cx = ToolContext::of(&context);
        let mut progress = cx.notify.progress("filling in", 2.0);
        progress.update(1.0);
        cx.log.info("filling in");
        match request.name.as_str() {
            "broken" => Err(ErrorData::internal_error("no such page", None)),
            _ => Ok(GetPromptResult::new(Vec::new()).into()),
        }
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        ToolContext::of(&context).log.info("reading");
        Ok(ReadResourceResult::new(vec![ResourceContents::text("text", request.uri)]).into())
    }
}
