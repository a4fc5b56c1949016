//! The window in which Deskbell will ask: it reads a request on stdin, writes one result line and exits.
//!
//! There is nothing here yet. The crate stands so that the GUI toolkit, when it comes, is known to nobody else.
