//! Channels that other programs' configurations describe: mcp-push's `config.sh` and variables, Apprise's files and
//! addresses. They are gathered, planned under names that are free, and written as TOML.
//!
//! Nothing is sent and nothing is run. Whatever cannot be taken is told with its place and never with its value.

mod apprise_text;
mod apprise_yaml;
mod gather;
mod page;
mod plan;
mod tags;
mod write;
pub(crate) mod yaml;

pub use self::{
    gather::{Gathered, Left},
    page::page,
    plan::{Plan, Planned, Secrets, TagGroup},
    write::{Written, append},
};
