//! Hostile and broken input at every door.
