//! The bridge and the daemon: start, hand-over, re-connection.
