//! The suite's tools and its prompt that ask for input in several rounds (SEP-2322).
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say where"
)]

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock,
        GetPromptRequestParams, GetPromptResponse, InputRequiredResult, InputResponses,
        RequestStateCodec,
    },
    service::RequestContext,
};
use serde_json::{Value, json};

/// A form with one field that has to be filled.
fn form(message: &str, field: &str, kind: &str) -> Value {
    json!({
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": message,
            "requestedSchema": {
                "type": "object",
                "properties": { field: { "type": kind } },
                "required": [field]
            }
        }
    })
}

fn sampling(text: &str) -> Value {
    json!({
        "method": "sampling/createMessage",
        "params": {
            "messages": [{ "role": "user", "content": { "type": "text", "text": text } }],
            "maxTokens": 100
        }
    })
}

fn roots() -> Value {
    json!({ "method": "roots/list", "params": {} })
}

fn ask(requests: &Value, state: Option<String>) -> InputRequiredResult {
    let mut result = json!({ "resultType": "input_required", "inputRequests": requests });
    if let Some(state) = state {
        result["requestState"] = state.into();
    }
    serde_json::from_value(result).unwrap()
}

fn done(text: impl Into<String>) -> Result<CallToolResponse, ErrorData> {
    Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
}

/// The answer to `key`, if it has the field that its kind of request asks for.
fn answer<'a>(responses: Option<&'a InputResponses>, key: &str, field: &str) -> Option<&'a Value> {
    let answer = responses?.get(key)?;
    let field = match field.split_once('/') {
        Some((outer, inner)) => answer.get(outer)?.get(inner),
        None => answer.get(field),
    };
    field.filter(|value| !value.is_null())
}

pub(super) fn call(
    codec: &RequestStateCodec,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let responses = request.input_responses.as_ref();
    let state = request.request_state.as_deref();
    let opened = state.map(|state| codec.open(state)).transpose();
    let opened = opened.map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
    let name = form("What is your name?", "name", "string");
    let tool = request.name.trim_start_matches("test_input_required_result_");
    match tool {
        "elicitation" => match answer(responses, "user_name", "content/name") {
            Some(Value::String(name)) => done(format!("Hello, {name}!")),
            _ => Ok(ask(&json!({ "user_name": name }), None).into()),
        },
        "sampling" => match answer(responses, "capital_question", "content/text") {
            Some(text) => done(text.to_string()),
            None => {
                let question = sampling("What is the capital of France?");
                Ok(ask(&json!({ "capital_question": question }), None).into())
            }
        },
        "list_roots" => match answer(responses, "client_roots", "roots") {
            Some(roots) => done(roots.to_string()),
            None => Ok(ask(&json!({ "client_roots": roots() }), None).into()),
        },
        "request_state" | "tampered_state" => match (opened, responses) {
            (Some(_), Some(_)) => done("state-ok"),
            _ => {
                let confirm = form("Please confirm", "ok", "boolean");
                Ok(ask(&json!({ "confirm": confirm }), Some(codec.seal(b"asked"))).into())
            }
        },
        "multiple_inputs" => {
            let all =
                [("user_name", "content"), ("greeting", "content"), ("client_roots", "roots")];
            if all.iter().all(|(key, field)| answer(responses, key, field).is_some()) {
                return done("all three were answered");
            }
            let requests = json!({
                "user_name": name,
                "greeting": sampling("Generate a greeting"),
                "client_roots": roots()
            });
            Ok(ask(&requests, Some(codec.seal(b"asked"))).into())
        }
        "multi_round" => multi_round(codec, opened.as_deref(), responses),
        "capabilities" => {
            let declared = context.client_capabilities().unwrap_or_default();
            let mut requests = json!({});
            if declared.elicitation.is_some() {
                requests["user_name"] = name;
            }
            if declared.sampling.is_some() {
                requests["greeting"] = sampling("Generate a greeting");
            }
            match responses {
                Some(_) => done("answered"),
                None => Ok(ask(&requests, None).into()),
            }
        }
        _ => Err(ErrorData::invalid_params("unknown tool", None)),
    }
}

fn multi_round(
    codec: &RequestStateCodec,
    opened: Option<&[u8]>,
    responses: Option<&InputResponses>,
) -> Result<CallToolResponse, ErrorData> {
    match opened {
        Some(b"two") if answer(responses, "step2", "content").is_some() => {
            done("both were answered")
        }
        Some(b"one") if answer(responses, "step1", "content").is_some() => {
            let step = form("Step 2: What is your favorite color?", "color", "string");
            Ok(ask(&json!({ "step2": step }), Some(codec.seal(b"two"))).into())
        }
        _ => {
            let step = form("Step 1: What is your name?", "name", "string");
            Ok(ask(&json!({ "step1": step }), Some(codec.seal(b"one"))).into())
        }
    }
}

pub(super) fn prompt(request: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let responses = request.input_responses.as_ref();
    match answer(responses, "user_context", "content/context") {
        Some(context) => {
            let text = json!({ "type": "text", "text": format!("With the context {context}") });
            let result = json!({ "resultType": "complete", "messages": [{ "role": "user", "content": text }] });
            let result: rmcp::model::GetPromptResult = serde_json::from_value(result).unwrap();
            Ok(result.into())
        }
        None => {
            let question = form("What context should the prompt use?", "context", "string");
            Ok(ask(&json!({ "user_context": question }), None).into())
        }
    }
}
