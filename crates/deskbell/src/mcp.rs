//! The MCP door: both eras of the protocol over the local socket and over HTTP.
