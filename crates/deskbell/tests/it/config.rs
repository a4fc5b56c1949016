//! Configuration: layers, trust, secrets, reload.
