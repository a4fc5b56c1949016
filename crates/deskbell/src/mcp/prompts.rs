//! Prompts over MCP: listed a page at a time, completed and filled in. What they notify of is reported as the client's.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use deskbell_core::{
    Invalid,
    event::{Content, Kind},
    field::described,
};
use rmcp::{
    ErrorData,
    model::{
        CompleteRequestParams, CompleteResult, CompletionInfo, GetPromptResult, JsonObject,
        ListPromptsResult, Prompt as Listing, PromptArgument, PromptMessage, Reference, Role,
    },
};
use serde_json::{Value, json};
use tracing::warn;

use super::caller::Caller;
use crate::{
    app::App,
    intake::Report,
    journal::IdempotencyKey,
    prompts::{Found, Notice, Prompt, RenderError, Rendered},
};

/// How many prompts a page has.
const PAGE: usize = 50;

/// How long a client may keep a page: files change when their owner changes them.
pub(super) const LIST_TTL_MS: u64 = 5_000;

/// The prompts that a caller finds.
async fn found(app: &Arc<App>, folder: Option<PathBuf>) -> Result<Found, ErrorData> {
    let prompts = app.prompts.clone();
    let read = tokio::task::spawn_blocking(move || prompts.of(folder.as_deref())).await;
    read.map_err(|_| {
        ErrorData::internal_error("the prompts cannot be read; the log tells more", None)
    })
}

/// One page of the prompts; a cursor is the name of the last prompt of the page before.
pub(super) async fn list(
    app: &Arc<App>,
    caller: &Caller<'_>,
    cursor: Option<&str>,
) -> Result<ListPromptsResult, ErrorData> {
    let Found { prompts, flaws } = found(app, caller.folder()).await?;
    for flaw in flaws {
        warn!("a prompt is left out: {flaw}");
    }
    let after = match cursor {
        None => 0,
        Some(cursor) => {
            let last = prompts.iter().position(|prompt| prompt.name == cursor);
            last.map(|last| last + 1).ok_or_else(|| {
                let invalid = Invalid::text("cursor", cursor, "a cursor as `prompts/list` gave it");
                ErrorData::invalid_params(invalid.to_string(), None)
            })?
        }
    };
    let page: Vec<Listing> = prompts.iter().skip(after).take(PAGE).map(listing).collect();
    let is_last = after + page.len() >= prompts.len();
    let next_cursor = page.last().filter(|_| !is_last).map(|last| last.name.clone());
    Ok(ListPromptsResult { next_cursor, ..ListPromptsResult::with_all_items(page) })
}

fn listing(prompt: &Prompt) -> Listing {
    let arguments: Vec<_> = prompt
        .arguments
        .iter()
        .map(|argument| {
            let listed = PromptArgument::new(&argument.name).with_required(argument.required);
            match &argument.description {
                Some(description) => listed.with_description(description),
                None => listed,
            }
        })
        .collect();
    let arguments = (!arguments.is_empty()).then_some(arguments);
    let listing = Listing::new(&prompt.name, prompt.description.as_ref(), arguments);
    match &prompt.title {
        Some(title) => listing.with_title(title),
        None => listing,
    }
}

/// Fills a prompt in, and reports what it notifies of.
pub(super) async fn get(
    app: &Arc<App>,
    caller: &Caller<'_>,
    name: &str,
    arguments: JsonObject,
) -> Result<GetPromptResult, ErrorData> {
    let prompt = find(found(app, caller.folder()).await?, name)?;
    let arguments = texts(arguments)?;
    let description = prompt.description.clone();
    let rendered = tokio::task::spawn_blocking(move || prompt.render(&arguments)).await;
    let rendered = rendered.map_err(|_| {
        ErrorData::internal_error("the prompt cannot be rendered; the log tells more", None)
    })?;
    let Rendered { text, notices } = rendered.map_err(|error| match error {
        RenderError::Argument(invalid) => {
            let data = json!({ "name": name, "argument": invalid.field });
            ErrorData::invalid_params(invalid.to_string(), Some(data))
        }
        // Whose file it is knows its folder, and nobody else need.
        RenderError::Prompt(flaw) => ErrorData::internal_error(
            flaw.without_folder().to_string(),
            Some(json!({ "name": name })),
        ),
    })?;
    for (index, notice) in notices.into_iter().enumerate() {
        tell(app, caller, index, notice).await;
    }
    let result = GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]);
    Ok(match description {
        Some(description) => result.with_description(description),
        None => result,
    })
}

fn find(found: Found, name: &str) -> Result<Prompt, ErrorData> {
    let names: Vec<_> = found.prompts.iter().map(|prompt| prompt.name.clone()).collect();
    found.prompts.into_iter().find(|prompt| prompt.name == name).ok_or_else(|| {
        let text = format!("unknown prompt; this server has {}", names.join(", "));
        ErrorData::invalid_params(text, Some(json!({ "name": name })))
    })
}

/// The arguments as texts, which is what the protocol has; a number or a truth is taken as it is written.
fn texts(arguments: JsonObject) -> Result<BTreeMap<String, String>, ErrorData> {
    let text = |(name, value): (String, Value)| match value {
        Value::String(text) => Ok((name, text)),
        Value::Number(_) | Value::Bool(_) => Ok((name, value.to_string())),
        other => {
            let invalid = Invalid::value(&name, described(&other), "a text");
            Err(ErrorData::invalid_params(invalid.to_string(), Some(json!({ "argument": name }))))
        }
    };
    arguments.into_iter().map(text).collect()
}

/// Reports a notice of a prompt. The prompt is rendered whether or not it is accepted.
async fn tell(app: &App, caller: &Caller<'_>, index: usize, notice: Notice) {
    let Notice { message, level, context, title, link } = notice;
    let key = caller.key();
    let report = Report {
        // A request that is sent again gives the same notices in the same order.
        key: key.map(|key| IdempotencyKey { key: format!("{}/{index}", key.key), ..key }),
        level,
        context,
        source: caller.source(),
        content: Content { title, text: message, link, ..Content::default() },
        text_field: "message",
        at_once: false,
        folder: caller.folder(),
        kind: Kind::Notice,
        to: Vec::new(),
    };
    match app.intake.accept(report).await {
        Ok(accepted) if !accepted.duplicate => {
            let config = Arc::clone(&app.config.borrow());
            caller.show(&accepted.event, &config.tracing);
        }
        Ok(_) => {}
        Err(refusal) => warn!("a notice of a prompt is not accepted: {refusal}"),
    }
}

/// What completes the value of a prompt's argument.
pub(super) async fn complete(
    app: &Arc<App>,
    caller: &Caller<'_>,
    request: CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let Reference::Prompt(reference) = request.r#ref else {
        // What resources are called is not guessed at.
        return Ok(CompleteResult::default());
    };
    let prompt = find(found(app, caller.folder()).await?, &reference.name)?;
    let argument = &request.argument;
    let Some(values) = prompt.complete(&argument.name, &argument.value) else {
        let names: Vec<_> = prompt.arguments.iter().map(|known| known.name.as_str()).collect();
        let text = format!("unknown argument; the prompt has {}", names.join(", "));
        let data = json!({ "name": reference.name, "argument": argument.name });
        return Err(ErrorData::invalid_params(text, Some(data)));
    };
    let total = values.len();
    let page: Vec<_> =
        values.into_iter().take(CompletionInfo::MAX_VALUES).map(str::to_owned).collect();
    let has_more = total > page.len();
    let completion = CompletionInfo::with_pagination(page, u32::try_from(total).ok(), has_more);
    Ok(CompleteResult::new(completion.unwrap_or_default()))
}
