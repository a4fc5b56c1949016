//! The MCP door: both eras of the protocol over the local socket and over HTTP.
//!
//! The only module that knows rmcp. It turns tool calls into reports for `intake` and reads resources from the
//! journal; what is accepted and where it goes is not decided here.

pub mod profiles;

mod door;
mod prompts;
mod resources;
mod sessions;
mod told;
mod tools;

mod caller;
pub mod http;
pub mod local;

pub use self::{caller::Connection, door::Door};
