//! Channels against far ends that behave as their documentation says, and against real ones.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
#![expect(clippy::string_slice, reason = "a test that cannot go on should say where")]

#[path = "../fakes/dingtalk.rs"]
mod fake_dingtalk;
#[path = "../fakes/telegram.rs"]
mod fake_telegram;
mod mail_server;
mod real;
#[path = "../sample.rs"]
mod sample;
mod session_bus;

mod addresses;
mod desktop;
mod dingtalk;
mod docs;
mod exec;
mod http;
mod mail;
mod mqtt;
mod recipe;
mod syslog;
mod telegram;
mod wecom_aibot;
mod wecom_app;

use deskbell_channels::{Channel, ChannelKind, SendContext, SendError, deliver, kind};
use deskbell_core::{
    Message,
    delivery::{Arrived, Receipt},
};

/// A channel with its kind.
struct Configured {
    kind: &'static ChannelKind,
    channel: Box<dyn Channel>,
}

/// The channel of `kind` with `options`, which are TOML.
#[track_caller]
fn configured(name: &str, options: &str) -> Configured {
    let kind = kind(name).unwrap();
    let channel = kind.build(toml::from_str(options).unwrap()).map_err(|error| error.to_string());
    Configured { kind, channel: channel.unwrap() }
}

impl Configured {
    async fn deliver(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        deliver(self.kind, &*self.channel, message, cx).await.first()
    }

    /// What a step that gave `receipt` leaves for the next one.
    fn earlier(&self, receipt: &Receipt) -> Vec<Arrived> {
        let places = self.channel.targets().into_iter();
        places
            .map(|place| Arrived { place, receipt: receipt.clone(), ..Arrived::default() })
            .collect()
    }
}
