//! From an accepted event to a far end.
