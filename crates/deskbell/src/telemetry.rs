//! Where log lines go: stderr, and a file that is rotated.
