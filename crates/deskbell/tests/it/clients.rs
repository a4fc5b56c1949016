//! Clients of the official SDKs.
