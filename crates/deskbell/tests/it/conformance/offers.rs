//! The suite's tools, resources and prompts that answer at once.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should say where"
)]

use std::time::Duration;

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
        GetPromptResult, InputRequiredResult, JsonObject, ProgressNotificationParam, Prompt,
        ReadResourceResult, Resource, ResourceTemplate, Tool,
    },
    service::{RequestContext, ServiceError},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A red pixel.
const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// Two samples of silence.
const AUDIO: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

/// The tools without arguments.
const PLAIN: &[&str] = &[
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_tool_with_progress",
    "test_error_handling",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_logging_tool",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_tampered_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_capabilities",
];

fn of<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

pub(super) fn tools() -> Vec<Tool> {
    let plain = PLAIN.iter().map(|name| (*name, json!({ "type": "object", "properties": {} })));
    let asking = |field: &str| json!({ "type": "object", "properties": { field: { "type": "string" } }, "required": [field] });
    let others = [
        ("test_sampling", asking("prompt")),
        ("test_elicitation", asking("message")),
        ("json_schema_2020_12_tool", full_schema()),
        ("test_custom_headers", schema_with_headers()),
    ];
    plain
        .chain(others)
        .map(|(name, schema)| {
            Tool::new(name, "For the conformance suite", of::<JsonObject>(schema))
        })
        .collect()
}

/// A schema whose argument is also in a header.
fn schema_with_headers() -> Value {
    json!({
        "type": "object",
        "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
        "required": ["region"]
    })
}

/// A schema with the vocabulary that a server must not strip.
fn full_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } }
            }
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" }
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"]
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false
    })
}

fn image() -> Value {
    json!({ "type": "image", "data": IMAGE, "mimeType": "image/png" })
}

fn embedded(uri: &str, mime_type: &str, text: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": mime_type, "text": text } })
}

fn content(blocks: &Value) -> Result<CallToolResponse, ErrorData> {
    Ok(of::<CallToolResult>(
        json!({ "resultType": "complete", "content": blocks, "isError": false }),
    )
    .into())
}

fn text(text: impl Into<String>) -> Result<CallToolResponse, ErrorData> {
    Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
}

/// The answer of one of the suite's tools; `None` for a tool that is not among them.
pub(super) async fn call(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let argument = |name: &str| {
        let arguments = request.arguments.as_ref();
        arguments.and_then(|arguments| arguments.get(name)?.as_str()).unwrap_or_default()
    };
    Some(match request.name.as_ref() {
        "test_simple_text" => text("This is a simple text response for testing."),
        "test_image_content" => content(&json!([image()])),
        "test_audio_content" => {
            content(&json!([{ "type": "audio", "data": AUDIO, "mimeType": "audio/wav" }]))
        }
        "test_embedded_resource" => content(&json!([embedded(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content."
        )])),
        "test_multiple_content_types" => content(&json!([
            { "type": "text", "text": "Multiple content types test:" },
            image(),
            embedded(
                "test://mixed-content-resource",
                "application/json",
                "{\"test\":\"data\",\"value\":123}"
            )
        ])),
        "test_tool_with_logging" => log(context).await,
        "test_tool_with_progress" => progress(context).await,
        "test_error_handling" => Ok(CallToolResult::error(vec![ContentBlock::text(
            "This tool intentionally returns an error for testing",
        )])
        .into()),
        "test_sampling" => sample(context, argument("prompt")).await,
        "test_elicitation" => {
            let schema = json!({
                "type": "object",
                "properties": { "response": { "type": "string", "description": "User's response" } },
                "required": ["response"]
            });
            elicit(context, "User response", argument("message"), &schema).await
        }
        "test_elicitation_sep1034_defaults" => {
            elicit(context, "Elicitation completed", "Please review", &form_with_defaults()).await
        }
        "test_elicitation_sep1330_enums" => {
            elicit(context, "Elicitation completed", "Please select", &form_with_choices()).await
        }
        "test_missing_capability" => needs_sampling(context),
        "test_streaming_elicitation" => streaming(context),
        "test_logging_tool" => text("nothing was asked to be logged"),
        "json_schema_2020_12_tool" | "test_custom_headers" => text("called"),
        _ => return None,
    })
}

#[expect(deprecated, reason = "the suite still checks logging where it exists")]
async fn log(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
    for said in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, said.into());
        context.peer.notify_logging_message(message).await.map_err(internal)?;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    text("Tool with logging executed successfully")
}

async fn progress(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    if let Some(token) = context.meta.get_progress_token() {
        for done in [0.0, 50.0, 100.0] {
            let param = ProgressNotificationParam::new(token.clone(), done)
                .with_total(100.0)
                .with_message(format!("Completed step {done} of 100"));
            context.peer.notify_progress(param).await.map_err(internal)?;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    text("progress was told")
}

#[expect(deprecated, reason = "the suite still checks sampling where it exists")]
async fn sample(
    context: &RequestContext<RoleServer>,
    prompt: &str,
) -> Result<CallToolResponse, ErrorData> {
    let params = of(json!({
        "messages": [{ "role": "user", "content": { "type": "text", "text": prompt } }],
        "maxTokens": 100
    }));
    let result = context.peer.create_message(params).await.map_err(internal)?;
    let answer = serde_json::to_value(&result).unwrap_or_default();
    text(format!("LLM response: {}", answer["content"]["text"].as_str().unwrap_or_default()))
}

async fn elicit(
    context: &RequestContext<RoleServer>,
    heading: &str,
    message: &str,
    schema: &Value,
) -> Result<CallToolResponse, ErrorData> {
    let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
    let result = context.peer.create_elicitation(of(params)).await.map_err(internal)?;
    let answer = serde_json::to_value(&result).unwrap_or_default();
    let action = answer["action"].as_str().unwrap_or_default();
    text(format!("{heading}: action={action}, content={}", answer["content"]))
}

#[expect(clippy::needless_pass_by_value, reason = "it maps errors")]
fn internal(error: ServiceError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn form_with_defaults() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "User name", "default": "John Doe" },
            "age": { "type": "integer", "description": "User age", "default": 30 },
            "score": { "type": "number", "description": "User score", "default": 95.5 },
            "status": {
                "type": "string", "description": "User status",
                "enum": ["active", "inactive", "pending"], "default": "active"
            },
            "verified": { "type": "boolean", "description": "Verification status", "default": true }
        },
        "required": []
    })
}

fn form_with_choices() -> Value {
    let options = json!(["option1", "option2", "option3"]);
    let titled = json!([
        { "const": "value1", "title": "First" },
        { "const": "value2", "title": "Second" },
        { "const": "value3", "title": "Third" }
    ]);
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": options },
            "titledSingle": { "type": "string", "oneOf": titled },
            "legacyEnum": {
                "type": "string", "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"]
            },
            "untitledMulti": {
                "type": "array", "minItems": 1, "maxItems": 3,
                "items": { "type": "string", "enum": options }
            },
            "titledMulti": {
                "type": "array", "minItems": 1, "maxItems": 3, "items": { "anyOf": titled }
            }
        },
        "required": []
    })
}

fn needs_sampling(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let declared =
        context.client_capabilities().is_some_and(|declared| declared.sampling.is_some());
    if declared {
        return text("sampling is there");
    }
    let needed: ClientCapabilities = of(json!({ "sampling": {} }));
    Err(ErrorData::missing_required_client_capability(needed))
}

fn streaming(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let declared =
        context.client_capabilities().is_some_and(|declared| declared.elicitation.is_some());
    if !declared {
        let needed: ClientCapabilities = of(json!({ "elicitation": {} }));
        return Err(ErrorData::missing_required_client_capability(needed));
    }
    let question = json!({
        "method": "elicitation/create",
        "params": {
            "mode": "form", "message": "Go on?",
            "requestedSchema": { "type": "object", "properties": { "ok": { "type": "boolean" } } }
        }
    });
    let ask = json!({ "resultType": "input_required", "inputRequests": { "go_on": question } });
    Ok(of::<InputRequiredResult>(ask).into())
}

pub(super) fn resources() -> Vec<Resource> {
    [
        ("test://static-text", "static-text", "text/plain"),
        ("test://static-binary", "static-binary", "image/png"),
        ("test://watched-resource", "watched-resource", "text/plain"),
    ]
    .into_iter()
    .map(|(uri, name, mime_type)| {
        Resource::new(uri, name)
            .with_description("For the conformance suite")
            .with_mime_type(mime_type)
    })
    .collect()
}

pub(super) fn resource_templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new("test://template/{id}/data", "template")
            .with_description("For the conformance suite")
            .with_mime_type("application/json"),
    ]
}

pub(super) fn read(uri: &str) -> Option<ReadResourceResult> {
    let contents = match uri {
        "test://static-text" => {
            let text = "This is the content of the static text resource.";
            json!({ "uri": uri, "mimeType": "text/plain", "text": text })
        }
        "test://static-binary" => json!({ "uri": uri, "mimeType": "image/png", "blob": IMAGE }),
        "test://watched-resource" => {
            json!({ "uri": uri, "mimeType": "text/plain", "text": "Watched resource content" })
        }
        _ => {
            let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
            let data =
                json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            json!({ "uri": uri, "mimeType": "application/json", "text": data.to_string() })
        }
    };
    Some(of(json!({ "resultType": "complete", "contents": [contents] })))
}

pub(super) fn prompts() -> Vec<Prompt> {
    let argument =
        |name: &str| json!({ "name": name, "description": "An argument", "required": true });
    of(json!([
        { "name": "test_simple_prompt", "description": "A simple prompt" },
        {
            "name": "test_prompt_with_arguments", "description": "A prompt with arguments",
            "arguments": [argument("arg1"), argument("arg2")]
        },
        {
            "name": "test_prompt_with_embedded_resource", "description": "A prompt with a resource",
            "arguments": [argument("resourceUri")]
        },
        { "name": "test_prompt_with_image", "description": "A prompt with an image" },
        { "name": "test_input_required_result_prompt", "description": "A prompt that asks" }
    ]))
}

pub(super) fn prompt(name: &str, arguments: &JsonObject) -> Option<GetPromptResult> {
    let argument = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    let text = |text: String| json!({ "type": "text", "text": text });
    let contents = match name {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.".to_owned())],
        "test_prompt_with_arguments" => {
            let (one, two) = (argument("arg1"), argument("arg2"));
            vec![text(format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))]
        }
        "test_prompt_with_embedded_resource" => vec![
            embedded(
                argument("resourceUri"),
                "text/plain",
                "Embedded resource content for testing.",
            ),
            text("Please process the embedded resource above.".to_owned()),
        ],
        "test_prompt_with_image" => {
            vec![image(), text("Please analyze the image above.".to_owned())]
        }
        _ => return None,
    };
    let messages: Vec<_> =
        contents.iter().map(|content| json!({ "role": "user", "content": content })).collect();
    Some(of(json!({ "resultType": "complete", "messages": messages })))
}
