//! Where files are: the state folder, the user's and the machine's configuration.
