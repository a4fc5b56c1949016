//! What the tests share: the program in a folder of its own, and far ends.
