//! Logging and progress for authors of MCP tools written with rmcp, without the Deskbell daemon.
//!
//! There is nothing here yet. The crate stands because it depends on none of ours, and is to stay so.
