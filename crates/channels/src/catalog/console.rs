use std::{fmt::Write as _, io::Write as _};

use deskbell_core::text::{clean, one_line};

use crate::prelude::*;

pub(crate) const KIND: ChannelKind = ChannelKind::of::<Console>(About {
    name: "console",
    title: "Console",
    docs: "https://pubs.opengroup.org/onlinepubs/9799919799/functions/stdin.html",
    transport: Transport::Local,
    dialect: Dialect::Plain,
    limits: Limits::NONE,
    edits: false,
    example: "",
})
.with_variables(Variables {
    name: "console",
    needs: &["CONSOLE"],
    takes: &[],
    read: |_| Ok(toml::Table::new()),
});

/// Writes each message to the standard error of `deskbell serve`: to the terminal it runs in, or to the service's log.
///
/// There is nothing to set up.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Console {}

#[async_trait]
impl Channel for Console {
    async fn send(&self, message: &Message, cx: &SendContext) -> Result<Receipt, SendError> {
        let block = block(message);
        if let Some(preview) = &cx.preview {
            preview.note(json!({ "transport": "console", "body": block }));
            return Ok(Receipt::default());
        }
        // A terminal that is paused blocks whoever writes to it.
        let written = tokio::task::spawn_blocking(move || {
            std::io::stderr().lock().write_all(block.as_bytes())
        });
        match written.await {
            Ok(Ok(())) => Ok(Receipt::default()),
            Ok(Err(error)) => Err(SendError::temporary(format!("cannot write: {error}"))),
            Err(_) => Err(SendError::temporary("writing was broken off")),
        }
    }
}

/// One line of facts and title, then the body, indented so that it cannot pass for another message.
fn block(message: &Message) -> String {
    let title = message.title.as_deref().unwrap_or_default();
    let mut block = format!(
        "{:.0} {} {} {}",
        message.at,
        message.level.as_str().to_uppercase(),
        message.context,
        one_line(title)
    );
    block.truncate(block.trim_end().len());
    block.push('\n');
    for line in clean(&Dialect::Plain.body(message)).lines() {
        // Writing to a string cannot fail.
        let _infallible = writeln!(block, "    {line}");
    }
    block
}
