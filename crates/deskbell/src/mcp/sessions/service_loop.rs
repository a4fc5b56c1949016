//! The end of a session that rmcp's service loop holds.

use std::{convert::Infallible, sync::Arc};

use rmcp::{
    RoleServer,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::sync::mpsc;

use super::session::Session;

/// Carries messages between a session and its service loop.
pub(in crate::mcp) struct ServiceLoop {
    session: Arc<Session>,
    inbox: mpsc::Receiver<RxJsonRpcMessage<RoleServer>>,
}

impl ServiceLoop {
    pub(super) const fn new(
        session: Arc<Session>,
        inbox: mpsc::Receiver<RxJsonRpcMessage<RoleServer>>,
    ) -> Self {
        Self { session, inbox }
    }
}

impl Transport<RoleServer> for ServiceLoop {
    type Error = Infallible;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        // Here and not in the future, which rmcp spawns and which may come at any time.
        let congested = self.session.append(message);
        let session = congested.map(|stream| (Arc::clone(&self.session), stream));
        async move {
            if let Some((session, stream)) = session {
                session.wait_for_reader(stream).await;
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.inbox.recv().await
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        self.session.end();
        Ok(())
    }
}

impl Drop for ServiceLoop {
    fn drop(&mut self) {
        self.session.end();
    }
}
