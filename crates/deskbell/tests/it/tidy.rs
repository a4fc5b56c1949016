//! Promises about the tree that a program can check.
