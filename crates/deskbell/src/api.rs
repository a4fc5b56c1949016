//! The HTTP API behind the commands: `/v1/…`, `/events`, `/healthz`, `/readyz`.
