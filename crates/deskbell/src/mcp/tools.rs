//! The tools, in a plain table: what each is called, what it takes and gives, and what it does.
//!
//! Every tool answers to each of its names in every profile; a profile only chooses which are listed, under which
//! name and with which schema.

mod arguments;
mod notify;
mod notify_event;
mod notify_send;
mod push;

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc};

use deskbell_core::{
    Invalid, Level,
    attachment::{ATTACHMENTS_LIMIT, Attachment, Place},
    field::described,
    link,
};
use futures_util::{FutureExt as _, future::BoxFuture};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tracing::error;

use self::arguments::Arguments;
use super::{
    caller::Caller,
    profiles::Profile,
    told::{self, Failures},
};
use crate::{
    app::App,
    intake::{Accepted, Refusal, Report},
};

pub(super) use self::{
    notify::{NOTIFY, seed_input as notify_seed_input},
    notify_event::{NOTIFY_EVENT, seed_input as notify_event_seed_input},
    notify_send::{NOTIFY_SEND, seed_input as notify_send_seed_input},
};

/// Every tool.
const TOOLS: &[&Tool] = &[&NOTIFY, &NOTIFY_SEND, &NOTIFY_EVENT];

/// A tool: all that is said about it, and what it does.
pub(super) struct Tool {
    /// Its name, with underscores.
    pub(super) name: &'static str,
    /// Its name as the seed of mcp-push writes it; the same where that has no dot.
    pub(super) dotted: &'static str,
    /// Further names that it answers to.
    pub(super) aliases: &'static [&'static str],
    /// Its name for people.
    pub(super) title: &'static str,
    /// What it is for, for the model.
    pub(super) description: &'static str,
    /// The schema of its arguments.
    pub(super) input: fn() -> Value,
    /// The schema of its structured result.
    pub(super) output: fn() -> Arc<JsonObject>,
    /// What it does to the world.
    pub(super) effects: Effects,
    /// Does it.
    pub(super) call: for<'a> fn(&'a Call<'a>, Arguments) -> BoxFuture<'a, CallToolResult>,
}

/// What a tool does to the world, said in full because the protocol's defaults assume the worst.
pub(super) struct Effects {
    pub(super) read_only: bool,
    pub(super) destructive: bool,
    pub(super) idempotent: bool,
    pub(super) open_world: bool,
}

impl Effects {
    /// Tells somebody something: adds, changes nothing, and reaches beyond the machine.
    const TELLS: Self =
        Self { read_only: false, destructive: false, idempotent: false, open_world: true };

    pub(super) fn annotations(&self, title: &str) -> ToolAnnotations {
        ToolAnnotations::with_title(title)
            .read_only(self.read_only)
            .destructive(self.destructive)
            .idempotent(self.idempotent)
            .open_world(self.open_world)
    }
}

/// Finds a tool by any of its names.
pub(super) fn find(name: &str) -> Option<&'static Tool> {
    let answers_to =
        |tool: &&&Tool| tool.name == name || tool.dotted == name || tool.aliases.contains(&name);
    TOOLS.iter().find(answers_to).copied()
}

/// One call of a tool.
pub(super) struct Call<'a> {
    /// The program's parts.
    pub(super) app: &'a App,
    /// The profile of the connection.
    pub(super) profile: &'static Profile,
    /// The name that was called.
    pub(super) name: &'a str,
    /// Who calls.
    pub(super) caller: Caller<'a>,
    /// What of earlier calls may still fail.
    pub(super) failures: &'a Failures,
}

impl Call<'_> {
    /// Calls `tool`.
    pub(super) async fn run(&self, tool: &Tool, arguments: JsonObject) -> CallToolResult {
        caught(tool.name, (tool.call)(self, Arguments::new(arguments))).await
    }

    /// Reports to intake, and tells the caller and its terminal what was accepted.
    async fn report(&self, report: Report) -> Result<Accepted, Refusal> {
        let accepted = self.app.intake.accept(report).await?;
        if !accepted.duplicate {
            let config = Arc::clone(&self.app.config.borrow());
            self.caller.show(&accepted.event, &config.tracing);
        }
        told::accepted(&self.caller.context(), &accepted);
        if let Some(client) = self.caller.client() {
            self.failures.follow(self.app, client, &accepted);
        }
        Ok(accepted)
    }
}

/// What `call` gives. A panic in it is an error for this caller and for nobody else.
async fn caught(name: &str, call: impl Future<Output = CallToolResult>) -> CallToolResult {
    AssertUnwindSafe(call).catch_unwind().await.unwrap_or_else(|panic| {
        error!(tool.name = name, "the tool `{name}` panicked: {}", panic_text(panic.as_ref()));
        refusal(format!("the tool `{name}` failed inside Deskbell; the log tells more"))
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a text")
}

/// A result that says why nothing was sent.
fn refusal(reason: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(reason)])
}

/// The schema of what a tool's result serialises to.
fn output_schema<T: JsonSchema + Any>() -> Arc<JsonObject> {
    let mut schema = Arc::unwrap_or_clone(rmcp::handler::server::tool::schema_for_output::<T>());
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            // Names of Rust's number types are no formats of JSON Schema, and some clients warn of each.
            property.remove("format");
        }
    }
    Arc::new(schema)
}

/// `answer` as structured content, which for every tool is an object.
fn structured(answer: &impl Serialize) -> Value {
    serde_json::to_value(answer).unwrap_or_default()
}

/// The channels that an accepted report goes to, in an order that a repeated call gets again.
fn channel_names(accepted: &Accepted) -> Vec<String> {
    let mut names: Vec<_> = accepted.channels.iter().map(ToString::to_string).collect();
    names.sort_unstable();
    names
}

/// Reads a level as leniently as seed S0 asks for: any case, and what is no level is `info`. What is no level is left
/// among the arguments that are ignored, so that an agent learns of its mistake.
fn lenient_level(arguments: &mut Arguments, profile: &Profile) -> Result<Level, Invalid> {
    let Some(name) = arguments.text("level")? else { return Ok(Level::default()) };
    let level = name.parse().ok().filter(|level| profile.levels.contains(level));
    if level.is_none() {
        arguments.leave("level", name);
    }
    Ok(level.unwrap_or_default())
}

/// The argument that names files by their web addresses. Paths are for the user's own commands alone: a model may have
/// been told by a page to send away what the user keeps.
fn attachments_schema() -> Value {
    json!({
        "type": "array",
        "items": { "type": "string" },
        "maxItems": ATTACHMENTS_LIMIT,
        "description": "Optional web addresses of files or pictures that belong to it"
    })
}

/// Reads the argument of [`attachments_schema`]. Refusals name the one that is wrong by its index.
fn attachments(arguments: &mut Arguments) -> Result<Vec<Attachment>, Invalid> {
    let expected = "a list of web addresses";
    let items = match arguments.value("attachments") {
        None => Vec::new(),
        Some(Value::Array(items)) => items,
        Some(other) => return Err(Invalid::value("attachments", described(&other), expected)),
    };
    let one = |(index, item): (usize, Value)| {
        let field = format!("attachments[{index}]");
        let Value::String(url) = item else {
            return Err(Invalid::value(&field, described(&item), "a web address"));
        };
        link::check(&field, &url)?;
        Ok(Attachment::new(Place::Url(url), None, None))
    };
    items.into_iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_in_a_tool_is_an_error_of_that_call() {
        let result = caught("notify", async { panic!("a secret of the inside") }).await;
        assert_eq!(result.is_error, Some(true));
        let text = &result.content.first().unwrap().as_text().unwrap().text;
        assert_eq!(text, "the tool `notify` failed inside Deskbell; the log tells more");
    }

    #[test]
    fn attachments_are_web_addresses_and_the_wrong_one_is_named() {
        let read = |given: Value| {
            let Value::Object(given) = json!({ "attachments": given }) else { unreachable!() };
            attachments(&mut Arguments::new(given)).map_err(|wrong| wrong.field)
        };
        assert_eq!(read(json!(["https://h/a.png"])).unwrap().first().unwrap().name, "a.png");
        assert_eq!(read(json!("https://h/a.png")).unwrap_err(), "attachments");
        for wrong in [json!(7), json!("/etc/passwd"), json!("file:///etc/passwd")] {
            let field = read(json!(["https://h/a", "https://h/b", wrong])).unwrap_err();
            assert_eq!(field, "attachments[2]");
        }
    }

    #[test]
    fn no_two_tools_answer_to_the_same_name() {
        let mut names: Vec<_> = TOOLS
            .iter()
            .flat_map(|tool| {
                let dotted = (tool.dotted != tool.name).then_some(&tool.dotted);
                std::iter::once(&tool.name).chain(dotted).chain(tool.aliases)
            })
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.iter().all(|name| find(name).is_some()));
    }
}
