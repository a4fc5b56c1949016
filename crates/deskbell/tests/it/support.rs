//! What the tests share: the program in a folder of its own, an MCP client on its stdin, and a far end that counts.

pub(crate) mod desk;
pub(crate) mod far_end;
pub(crate) mod lab;
pub(crate) mod mcp_client;

use std::time::{Duration, Instant};

pub(crate) use self::{
    desk::{Answer, Desk},
    far_end::{FarEnd, Reply},
    lab::Lab,
    mcp_client::McpClient,
};

/// How long a condition may take to come true. Long, because a loaded machine is no failure.
const DEADLINE: Duration = Duration::from_secs(30);

/// Waits until `look` gives something; `what` names it where it never does.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    #[expect(clippy::disallowed_methods, reason = "a test of real processes waits in real time")]
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < DEADLINE, "waited too long for {what}");
        #[expect(
            clippy::disallowed_methods,
            reason = "a test of real processes waits in real time"
        )]
        std::thread::sleep(Duration::from_millis(5));
    }
}
