//! One HTTP response that reads a stream.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::Stream;
use rmcp::{
    model::{RequestId, ServerJsonRpcMessage},
    transport::streamable_http_server::session::ServerSseMessage,
};

use super::{
    session::Session,
    streams::{Place, STANDALONE},
};

/// Reads one stream of a session until it ends, or until another reader takes its place.
pub(in crate::mcp) struct Reader {
    session: Arc<Session>,
    place: Place,
    /// The number of the event that comes first and has no message.
    primes: Option<u64>,
    /// The call whose stream it is, as far as it began with it.
    call: Option<RequestId>,
}

impl Reader {
    pub(super) const fn new(
        session: Arc<Session>,
        place: Place,
        primes: Option<u64>,
        call: Option<RequestId>,
    ) -> Self {
        Self { session, place, primes, call }
    }

    /// Stores the stream, so that its client can resume it even if the program is killed meanwhile.
    pub(in crate::mcp) async fn kept(mut self) -> Self {
        let call = self.call.take();
        if call.is_some() || self.place.stream() == STANDALONE {
            self.session.keep(self.place.stream(), call).await;
        }
        self
    }

    /// Waits for the first message of a call's stream, and gives it if it is the answer: then there is nothing more,
    /// and nothing is kept. `None` if there is something before the answer.
    pub(in crate::mcp) async fn sole_answer(&mut self) -> Option<Arc<ServerJsonRpcMessage>> {
        poll_fn(|context| self.session.poll_sole_answer(&self.place, context.waker())).await
    }
}

impl Stream for Reader {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Some(number) = this.primes.take() {
            return Poll::Ready(Some(this.session.priming(this.place.stream(), number)));
        }
        this.session.poll(&mut this.place, context.waker())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.session.leave(&self.place);
    }
}
