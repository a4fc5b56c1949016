//! What a channel's file needs.

pub use async_trait::async_trait;
pub use deskbell_core::{
    Level, Message,
    delivery::{Mark, Receipt},
    event::Format,
    run::Phase,
    text::Unit,
};
pub use schemars::JsonSchema;
pub use serde::Deserialize;
pub use serde_json::{Value, json};

pub(crate) use crate::fields::check_headers;
pub use crate::{
    address::{Address, Proxy},
    channel::{
        About, Channel, ChannelKind, ConfigError, Limits, SendContext, SendError, Transport,
    },
    fields::present,
    files::Files,
    http::Request,
    lent::LentToken,
    render::{Dialect, mark},
    reply::{Reply, receipt},
    secret::Secret,
    targets::Targets,
    url::{self, ServiceUrl, Urls},
    variables::{Set, Variables, Wrong},
    verdict::{Passing, Refusal, Success, Verdict, Wait},
};
