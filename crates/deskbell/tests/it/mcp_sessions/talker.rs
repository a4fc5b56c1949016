//! A server whose tools say much, wait and fail.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![expect(deprecated, reason = "sessions are of the revisions that have logging")]

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomNotification,
        ProgressNotificationParam, RequestId, ServerCapabilities, ServerConfig, ServerNotification,
    },
    service::{OriginatingRequestId, RequestContext},
};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::support::until;

/// The server, and what the test knows of its tools.
#[derive(Clone)]
pub(super) struct Talker {
    held: Arc<Semaphore>,
    started: Arc<Mutex<HashSet<i64>>>,
    finished: Arc<Mutex<HashSet<i64>>>,
}

/// What `steps` says in `count` steps.
pub(super) fn steps(count: u64) -> Vec<String> {
    (1..=count).flat_map(|step| [format!("progress {step}.0"), format!("step {step}")]).collect()
}

impl Talker {
    pub(super) fn new() -> Self {
        let (started, finished) = Default::default();
        Self { held: Arc::new(Semaphore::new(0)), started, finished }
    }

    /// Lets one call of `hold` go on.
    pub(super) fn release(&self) {
        self.held.add_permits(1);
    }

    #[track_caller]
    pub(super) fn until_started(&self, id: i64) {
        until("the call to start", || self.started.lock().unwrap().contains(&id).then_some(()));
    }

    #[track_caller]
    pub(super) fn until_finished(&self, id: u64) {
        let id = i64::try_from(id).unwrap();
        until("the call to finish", || self.finished.lock().unwrap().contains(&id).then_some(()));
    }

    async fn run(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<()> {
        let number = |name: &str| {
            request.arguments.as_ref().and_then(|given| given.get(name)?.as_u64()).unwrap_or(0)
        };
        match request.name.as_ref() {
            "steps" => {
                let token = context.meta.get_progress_token()?;
                for step in 1..=number("count") {
                    let progress = f64::from(u32::try_from(step).ok()?);
                    let progress = ProgressNotificationParam::new(token.clone(), progress);
                    context.peer.notify_progress(progress).await.ok()?;
                    let mut log = log(&format!("step {step}"));
                    log.extensions.insert(OriginatingRequestId(context.id.clone()));
                    let log = ServerNotification::CustomNotification(log);
                    context.peer.send_notification(log).await.ok()?;
                }
            }
            "flood" => {
                let text = "x".repeat(usize::try_from(number("bytes")).ok()?);
                for _ in 0..number("count") {
                    let log = ServerNotification::CustomNotification(log(&text));
                    context.peer.send_notification(log).await.ok()?;
                }
            }
            "hold" => self.held.acquire().await.ok()?.forget(),
            "panic" => panic!("a tool that panics, as the test wants it"),
            other => unreachable!("{other} is no tool"),
        }
        Some(())
    }
}

fn log(text: &str) -> CustomNotification {
    let params = json!({ "level": "info", "data": text });
    CustomNotification::new("notifications/message", Some(params))
}

impl ServerHandler for Talker {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_logging().build();
        ServerConfig::new(capabilities)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let RequestId::Number(id) = context.id else { unreachable!("the test counts its calls") };
        self.started.lock().unwrap().insert(id);
        let ran = self.run(&request, &context).await;
        self.finished.lock().unwrap().insert(id);
        let text = if ran.is_some() { "done" } else { "nobody listens" };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}
