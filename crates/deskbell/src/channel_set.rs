//! The configured channels, built and ready, by name.
