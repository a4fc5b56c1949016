//! The built program, through its real doors, in an empty folder.

mod mcp_app;
mod support;
mod tree;

mod api;
mod attachments;
mod bad_input;
mod bridge;
mod channels;
mod cli;
mod clients;
mod config;
mod conformance;
mod contract;
mod crash;
mod delivery;
mod desktop;
mod doors;
mod lab;
mod mcp_http;
mod mcp_sessions;
mod mcp_stdio;
mod noise;
mod projects;
mod prompts;
mod storm;
mod stream;
mod tidy;
