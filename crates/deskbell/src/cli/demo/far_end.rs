//! A far end on this machine, which stands for a phone or a chat: it takes what is posted to it.

use anyhow::Context as _;
use axum::{Json, Router, extract::State, routing::post};
use deskbell_core::EventId;
use serde_json::Value;
use tokio::{
    net::TcpListener,
    sync::mpsc::{Receiver, Sender, channel},
    task::JoinHandle,
};

use super::PATIENCE;

/// How many messages wait to be looked at.
const QUEUE: usize = 64;

pub(super) struct FarEnd {
    url: String,
    told: Receiver<Value>,
    server: JoinHandle<()>,
}

impl FarEnd {
    pub(super) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}/", listener.local_addr()?);
        let (sender, told) = channel(QUEUE);
        let router = Router::new().route("/", post(take)).with_state(sender);
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::warn!("the far end of the demonstration ended: {error}");
            }
        });
        Ok(Self { url, told, server })
    }

    pub(super) fn url(&self) -> String {
        self.url.clone()
    }

    /// The next message that tells the event `id`.
    pub(super) async fn next_of(&mut self, id: EventId) -> anyhow::Result<Value> {
        let id = id.to_string();
        self.next(|told| told.get("event_id").is_some_and(|told| *told == id)).await
    }

    /// The next message that tells the end of a run.
    pub(super) async fn next_end(&mut self) -> anyhow::Result<Value> {
        self.next(|told| told.pointer("/run/event").is_some_and(|event| event == "end")).await
    }

    async fn next(&mut self, fits: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        let search = async {
            loop {
                let told = self.told.recv().await.context("the far end ended")?;
                if fits(&told) {
                    return Ok(told);
                }
            }
        };
        tokio::time::timeout(PATIENCE, search).await.context("nothing arrived at the far end")?
    }
}

impl Drop for FarEnd {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn take(State(sender): State<Sender<Value>>, Json(told): Json<Value>) {
    // Nobody looks any more when the demonstration is over.
    drop(sender.send(told).await);
}
