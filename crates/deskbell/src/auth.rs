//! Who may come in over HTTP: Host, Origin and token.
