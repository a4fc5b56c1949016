//! Who is connected and who calls, as far as the connection and the request tell.

use std::{
    path::PathBuf,
    sync::{Arc, LazyLock},
};

use deskbell_core::{Event, Source};
use deskbell_sdk::{Client, ToolContext};
use rmcp::{RoleServer, service::RequestContext};

use super::local::Outgoing;
use crate::{bridge::hello::Hello, config::Tracing, journal::IdempotencyKey, terminal};

/// The header that names a session of the Streamable HTTP transport.
const SESSION_HEADER: &str = "mcp-session-id";

/// What a connection knows of the far side before any request.
#[derive(Clone, Default)]
pub struct Connection {
    bridge: Option<Arc<Bridge>>,
}

/// The bridge at the other end of the local socket.
struct Bridge {
    hello: Hello,
    outgoing: Outgoing,
}

/// The number that a bridge gave to a request, the same when it is sent again to a new daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestKey {
    /// The bridge's own name.
    pub(super) bridge: Arc<str>,
    /// The number, counted from 1.
    pub(super) number: u64,
}

impl Connection {
    /// A connection over the local socket.
    pub(super) fn local(hello: Hello, outgoing: Outgoing) -> Self {
        Self { bridge: Some(Arc::new(Bridge { hello, outgoing })) }
    }
}

/// Who makes one request.
pub(super) struct Caller<'a> {
    connection: &'a Connection,
    context: &'a RequestContext<RoleServer>,
}

impl<'a> Caller<'a> {
    pub(super) const fn new(
        connection: &'a Connection,
        context: &'a RequestContext<RoleServer>,
    ) -> Self {
        Self { connection, context }
    }

    /// How the caller is told something while the call has no answer.
    pub(super) fn context(&self) -> ToolContext {
        ToolContext::of(self.context)
    }

    /// The client of the caller's session, if there is one.
    pub(super) fn client(&self) -> Option<Client> {
        Client::of(self.context)
    }

    /// The key under which the request is accepted once, if it may be sent again.
    pub(super) fn key(&self) -> Option<IdempotencyKey> {
        let RequestKey { bridge, number } = self.context.extensions.get()?;
        Some(IdempotencyKey { scope: format!("mcp:{bridge}"), key: number.to_string() })
    }

    /// The source of what the caller reports.
    pub(super) fn source(&self) -> Source {
        static HOST: LazyLock<String> =
            LazyLock::new(|| gethostname::gethostname().to_string_lossy().into_owned());
        let hello = self.connection.bridge.as_ref().map(|bridge| &bridge.hello);
        Source {
            client: self.context.client_info().map(|client| client.name),
            session: hello.map(|hello| hello.key.clone()).or_else(|| self.http_session()),
            project: hello.and_then(|hello| hello.folder.clone()),
            host: Some(HOST.clone()),
        }
    }

    /// The folder that the client works in, where it is one of the user's own on this machine.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        let bridge = self.connection.bridge.as_ref()?;
        bridge.hello.folder.as_ref().map(PathBuf::from)
    }

    fn http_session(&self) -> Option<String> {
        let parts = self.context.extensions.get::<http::request::Parts>()?;
        parts.headers.get(SESSION_HEADER)?.to_str().ok().map(str::to_owned)
    }

    /// Shows an accepted event at the caller's terminal, if there is one and the user wants it shown.
    pub(super) fn show(&self, event: &Event, tracing: &Tracing) {
        if let Some(bridge) = &self.connection.bridge
            && let Some(line) = terminal::line(event, tracing)
        {
            bridge.outgoing.show(&line);
        }
    }
}
