//! MCP on the daemon's local socket, for one bridge.

mod lines;
mod outgoing;

use std::sync::Arc;

use deskbell_core::Invalid;
use deskbell_sdk::Notifying;
use rmcp::{ServiceExt as _, service::ServerInitializeError};
use tokio::io::{AsyncBufRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use self::lines::Lines;
pub(super) use self::outgoing::Outgoing;
use super::{
    caller::Connection,
    door::Door,
    profiles::{self, Profile, ToolNames},
    told,
};
use crate::{app::App, bridge::hello::Hello};

/// Serves MCP to the bridge that said `hello`, until it goes away or `stop` is cancelled.
///
/// `reader` is behind the hello and `writer` behind the welcome. A hello that names an unknown profile is answered
/// at the bridge's terminal and with an error to every request.
pub async fn serve<R, W>(app: Arc<App>, reader: R, writer: W, hello: Hello, stop: CancellationToken)
where
    R: AsyncBufRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    // Cancelled behind `stop`, when what waits has been told.
    let ending = CancellationToken::new();
    let lines = Lines::new(reader, writer, &hello.key, ending.child_token());
    let (profile, tool_names) = match wishes(&app, &hello) {
        Ok(wishes) => wishes,
        Err(invalid) => {
            stop.run_until_cancelled_owned(lines.refuse(&invalid.to_string())).await;
            return;
        }
    };
    let (notifier, channels) = (told::notifier(&app.config.borrow()), app.channels.clone());
    let connection = Connection::local(hello, lines.outgoing());
    let door = notifier.around(Door::new(app, profile, tool_names, connection));
    let telling = async {
        tokio::select! {
            () = told::lists(notifier.clone(), channels) => stop.cancelled().await,
            () = stop.cancelled() => {}
        }
        notifier.flush().await;
        ending.cancel();
        std::future::pending::<()>().await;
    };
    // On the heap: it is large, and whoever waits for it would be as large.
    let carrying = Box::pin(carry(door, lines, ending.clone()));
    tokio::select! {
        () = carrying => {}
        () = telling => {}
    }
}

/// Serves `door` over `lines` until the bridge goes away or `ending` is cancelled.
async fn carry<R>(door: Notifying<Door>, lines: Lines<R>, ending: CancellationToken)
where
    R: AsyncBufRead + Send + Unpin + 'static,
{
    match door.serve_with_ct(lines, ending).await {
        Ok(running) => {
            let reason = running.waiting().await;
            debug!(?reason, "a bridge went away");
        }
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            debug!("a bridge went away before its client said anything");
        }
        // The error holds the client's message, so it is not shown.
        Err(_) => info!("a client of a bridge did not open the protocol"),
    }
}

/// What the hello wishes, then the configuration, then the built-in defaults.
fn wishes(app: &App, hello: &Hello) -> Result<(&'static Profile, Option<ToolNames>), Invalid> {
    let options = app.config.borrow().mcp.clone();
    let profile = hello.profile.as_ref().or(options.profile.as_ref());
    let profile = profiles::find(profile.map_or(profiles::DEFAULT, String::as_str))?;
    let names = hello.tool_names.as_ref().map(|names| names.parse()).transpose()?;
    Ok((profile, names.or(options.tool_names)))
}
