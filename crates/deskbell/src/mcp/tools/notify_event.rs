//! `notify.event`: reports a step of a run and pushes it to all configured channels (seed S4).

use deskbell_core::{
    Context, Invalid, RunId,
    event::{Content, Event, Kind},
    field::described,
    run::{Phase, Progress, RunStep},
};
use futures_util::{FutureExt as _, future::BoxFuture};
use rmcp::model::{CallToolResult, JsonObject};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Arguments, Call, Effects, Tool, attachments, attachments_schema, output_schema,
    push::{Pushed, Queued, answer, not_accepted},
};
use crate::intake::{Accepted, Report, timestamp};

pub(in crate::mcp) const NOTIFY_EVENT: Tool = Tool {
    name: "notify_event",
    dotted: "notify.event",
    aliases: &[],
    title: "Report a step of a run",
    description: "Report how a long job goes: `start` first, then any number of `update`, then one `end` or `error`, \
                  all with the same run_id. Each step is pushed to the user's channels; updates are best more than \
                  5 seconds apart. Use it for work that takes longer than 30 seconds. Returns at once.",
    input: unified_input,
    output: output_schema::<Reported<'static>>,
    effects: Effects::TELLS,
    call,
};

fn unified_input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "run_id": {
                "type": "string",
                "description": "Id of the run, the same in all of its steps, such as backup-20240101-001"
            },
            "event": {
                "type": "string",
                "enum": ["start", "update", "end", "error"],
                "description": "Which step this is"
            },
            "message": { "type": "string", "description": "How it stands, for a person" },
            "data": {
                "type": "object",
                "properties": {
                    "step": { "type": "string", "description": "What the run is doing" },
                    "progress": {
                        "type": "number", "minimum": 0, "maximum": 1,
                        "description": "How far it is, from 0 to 1; `end` means 1"
                    },
                    "artifact_url": { "type": "string", "description": "Address of what was made" }
                },
                "additionalProperties": true,
                "description": "Optional details; further fields are kept"
            },
            "attachments": attachments_schema(),
            "timestamp": {
                "type": "string",
                "description": "When it happened, in ISO 8601 (default: now)"
            }
        },
        "required": ["run_id", "event", "message"]
    })
}

/// The arguments of seed S4, in its own words.
pub(in crate::mcp) fn seed_input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "run_id": { "type": "string", "description": "任务唯一标识符" },
            "event": {
                "type": "string",
                "enum": ["start", "update", "end", "error"],
                "description": "事件类型，可选值：`start`: 任务开始；`update`: 任务进度更新；\
                                `end`: 任务成功完成；`error`: 任务失败"
            },
            "message": { "type": "string", "description": "人类可读的状态描述" },
            "data": {
                "type": "object",
                "properties": {
                    "step": { "type": "string", "description": "当前执行步骤" },
                    "progress": { "type": "number", "description": "进度百分比（0-1）" },
                    "artifact_url": { "type": "string", "description": "生成的产物地址" }
                },
                "additionalProperties": true,
                "description": "附加数据，支持以下字段：step、progress、artifact_url、其他自定义字段"
            },
            "timestamp": {
                "type": "string",
                "description": "ISO 8601 格式时间戳，默认为当前时间"
            }
        },
        "required": ["run_id", "event", "message"]
    })
}

/// What `notify.event` gives, as text and as structured content.
#[derive(Serialize, JsonSchema)]
struct Reported<'a> {
    /// Whether the step was accepted and goes to at least one channel.
    success: bool,
    /// The same in words.
    message: String,
    /// Which step it was: `start`, `update`, `end` or `error`.
    event_type: &'a str,
    /// The run.
    run_id: &'a str,
    /// How far the run is after this step, from 0 to 1.
    progress: Option<f64>,
    /// When the step happened, by the reporter's clock.
    timestamp: String,
    #[serde(flatten)]
    queued: Queued<'a>,
}

fn call<'a>(call: &'a Call<'a>, arguments: Arguments) -> BoxFuture<'a, CallToolResult> {
    report(call, arguments).boxed()
}

async fn report(call: &Call<'_>, mut arguments: Arguments) -> CallToolResult {
    let report = match read(call, &mut arguments) {
        Ok(report) => report,
        Err(invalid) => return not_accepted(&invalid.to_string()),
    };
    match call.report(report).await {
        Err(refused) => not_accepted(&refused.to_string()),
        Ok(accepted) => reported(&accepted, arguments.ignored()),
    }
}

fn read(call: &Call<'_>, arguments: &mut Arguments) -> Result<Report, Invalid> {
    let run: RunId = arguments.required_text("run_id")?.parse()?;
    let expected = "one of start, update, end, error";
    let phase =
        arguments.text("event")?.ok_or_else(|| Invalid::value("event", "missing", expected))?;
    let phase: Phase = phase.parse()?;
    let text = arguments.required_text("message")?;
    let data = arguments.object("data")?;
    let reported_at = match arguments.text("timestamp")? {
        Some(timestamp) => timestamp::read("timestamp", &timestamp)?,
        None => call.app.clock.now(),
    };
    let field = |name| {
        data.as_ref().and_then(|data: &JsonObject| data.get(name)).filter(|value| !value.is_null())
    };
    let step = read_text("data.step", field("step"))?;
    let _checked = read_text("data.artifact_url", field("artifact_url"))?;
    let progress = field("progress").map(read_progress).transpose()?;
    let attachments = attachments(arguments)?;
    Ok(Report {
        key: call.caller.key(),
        level: phase.level(),
        context: Context::default(),
        source: call.caller.source(),
        content: Content { text, data: data.map(Value::Object), attachments, ..Content::default() },
        text_field: "message",
        at_once: false,
        folder: call.caller.folder(),
        kind: Kind::Run(RunStep { run, phase, step, progress, reported_at }),
        to: Vec::new(),
    })
}

fn read_text(field: &str, value: Option<&Value>) -> Result<Option<String>, Invalid> {
    match value {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(Invalid::value(field, described(other), "a text")),
    }
}

fn read_progress(value: &Value) -> Result<Progress, Invalid> {
    match value.as_f64() {
        Some(fraction) => Progress::new("data.progress", fraction),
        None => Err(Invalid::value("data.progress", described(value), "a number from 0 to 1")),
    }
}

fn reported(accepted: &Accepted, ignored: Vec<String>) -> CallToolResult {
    let Event { kind: Kind::Run(step), .. } = &accepted.event else {
        return not_accepted("the step was accepted as something else; please report this");
    };
    let pushed = Pushed::of(accepted);
    answer(&Reported {
        success: pushed.is_success(),
        message: pushed.problem().unwrap_or_else(|| "事件已推送".to_owned()),
        event_type: step.phase.as_str(),
        run_id: step.run.as_str(),
        progress: step.progress.map(Progress::fraction),
        timestamp: step.reported_at.to_string(),
        queued: Queued::new(pushed, accepted, ignored),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_a_number_from_0_to_1_row_105() {
        assert!(read_progress(&json!(0.32)).is_ok());
        for bad in [json!(7), json!(-0.1), json!("0.5"), json!([])] {
            let sentence = read_progress(&bad).unwrap_err().to_string();
            assert!(sentence.contains("`data.progress` is ") && sentence.contains("0 to 1"));
        }
    }
}
