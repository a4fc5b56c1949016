//! Channels against real far ends.
