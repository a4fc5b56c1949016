//! A far end that takes everything and keeps what it got.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Instant,
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use serde_json::Value;
use tokio::{net::TcpListener, runtime::Runtime};

/// A request that was read to its end, and is answered with yes.
#[derive(Clone)]
pub(super) struct Arrival {
    pub(super) at: Instant,
    pub(super) text: String,
}

/// Everything that arrived, by the delivery's id.
pub(super) type Arrivals = HashMap<String, Vec<Arrival>>;

pub(super) struct FarEnd {
    pub(super) port: u16,
    arrivals: Arc<Mutex<Arrivals>>,
}

impl FarEnd {
    pub(super) fn start(runtime: &Runtime) -> Self {
        let arrivals = Arc::<Mutex<Arrivals>>::default();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let app = Router::new().fallback(receive).with_state(Arc::clone(&arrivals));
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self { port, arrivals }
    }

    /// How many messages arrived, repeats not counted.
    pub(super) fn count(&self) -> usize {
        self.arrivals.lock().unwrap().len()
    }

    pub(super) fn arrivals(&self) -> Arrivals {
        self.arrivals.lock().unwrap().clone()
    }
}

async fn receive(
    State(arrivals): State<Arc<Mutex<Arrivals>>>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let delivery = headers.get("idempotency-key").unwrap().to_str().unwrap().to_owned();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let text = body.get("body").and_then(Value::as_str).unwrap().to_owned();
    let arrival = Arrival { at: Instant::now(), text };
    arrivals.lock().unwrap().entry(delivery).or_default().push(arrival);
    StatusCode::OK
}
