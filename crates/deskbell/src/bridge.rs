//! `deskbell mcp`: copies messages between an MCP client and the daemon, and survives the daemon.

pub mod hello;
