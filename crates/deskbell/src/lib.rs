//! The program behind `deskbell`: doors, intake, journal, dispatch, live streams and the command line.
//!
//! It is a library so that the tests, the benchmarks and the conformance fixture are built from the same modules.
//! Only `main.rs` and the fixtures use it; it promises no stability.

pub mod app;
pub mod config;
pub mod crash_point;
pub mod disk;
pub mod telemetry;
pub mod terminal;

pub mod api;
pub mod auth;
pub mod mcp;

pub mod intake;
pub mod journal;
pub mod projects;
pub mod prompts;
pub mod snoozes;

pub mod channel_set;
pub mod dispatch;
pub mod live;
pub mod retention;

pub mod daemon;

pub mod cli;

pub use deskbell_bridge::{self as bridge, VERSION, paths};
