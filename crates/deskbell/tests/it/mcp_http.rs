//! MCP over Streamable HTTP.
