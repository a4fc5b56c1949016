//! The live stream: tells viewers of events once they are in the journal.
