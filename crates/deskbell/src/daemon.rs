//! The one process per user that holds the journal: its socket, its lock, its start and its end.
