//! The live stream.
