//! The body of a report: read once into what intake takes, and explained field by field when it is wrong.

use std::path::PathBuf;

use deskbell_core::{
    Context, Invalid, Source,
    attachment::Place,
    event::{Content, Kind},
    run::{Phase, Progress, RunStep},
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{
    explain::{REPORT, explain},
    problem::Problem,
    wire::{AttachmentBody, LevelName, SourceBody, attachments},
};
use crate::{
    auth::Identity,
    intake::{Report, timestamp},
    journal::IdempotencyKey,
};

/// Longest idempotency key, in bytes.
pub(crate) const KEY_LIMIT: usize = 200;

/// What is reported: a notice, a push or a step of a run.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Report")]
pub(crate) struct ReportBody<'a> {
    /// `notice` (shown, pushed when the routes say so), `push` (meant for the channels) or `run`. Without it, `run`
    /// where `run` is given, else `notice`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Another name for `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Headline, one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How serious it is; `info` without it, and for a step of a run what the step says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<LevelName>")]
    pub level: Option<String>,
    /// Its category.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// `text` or `markdown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Structured data beside the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// A web address that belongs to it. Without it, `artifact_url`, `url` or `link` of `data` is taken for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Files that belong to it. Channels that take files get them; the others say what they are called and where they
    /// are.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_none")]
    pub attachments: Vec<AttachmentBody<'a>>,
    /// Channels to push to, whatever the routes say.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_none")]
    pub to: Vec<String>,
    /// The step, for kind `run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<StepReport>,
    /// Who reports.
    #[serde(default, skip_serializing_if = "Option::is_none", borrow)]
    pub source: Option<SourceBody<'a>>,
    /// The caller's own name for the report, under which it is accepted once; the header `Idempotency-Key` does the
    /// same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// A list; `null` is none of it, as in every other field.
fn or_none<'de, D: Deserializer<'de>, T: Deserialize<'de>>(list: D) -> Result<Vec<T>, D::Error> {
    Option::deserialize(list).map(Option::unwrap_or_default)
}

/// A step of a run.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepReport {
    /// The run's id, the same in each of its steps.
    pub id: String,
    /// `start`, `update`, `end` or `error`.
    pub phase: String,
    /// What the run is doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// How far it is, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// When it happened, ISO 8601; now without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
}

/// What a request says of its reporter beside the body.
#[derive(Debug, Clone)]
pub(crate) struct Reporter<'a> {
    /// Whose keys these are.
    pub(crate) identity: &'a str,
    /// The key in the header.
    pub(crate) key: Option<&'a str>,
    /// Whether it may attach files of this machine.
    pub(crate) may_attach_files: bool,
    /// The client, where the body names none.
    pub(crate) client: Option<&'a str>,
    /// The time now.
    pub(crate) now: Timestamp,
}

/// Reads a report.
///
/// # Errors
/// Names the first field that is wrong, its value and what was expected.
pub(crate) fn read(body: &[u8], reporter: &Reporter<'_>) -> Result<Report, Problem> {
    // serde would take a list for an object, its items as the fields in order.
    let is_list = body.trim_ascii_start().first() == Some(&b'[');
    match serde_json::from_slice::<ReportBody<'_>>(body) {
        Ok(body) if !is_list => Ok(report(body, reporter)?),
        Ok(_) => Err(Invalid::value("body", "a list", "a JSON object").into()),
        Err(error) => Err(explain(body, &error, &REPORT)),
    }
}

fn report(body: ReportBody<'_>, reporter: &Reporter<'_>) -> Result<Report, Invalid> {
    let (text, text_field) = match (body.text, body.message) {
        (Some(_), Some(_)) => {
            return Err(Invalid::value("message", "given beside `text`", "only one of both"));
        }
        (Some(text), None) => (text, "text"),
        (None, Some(text)) => (text, "message"),
        (None, None) => return Err(Invalid::value("text", "missing", "what to tell")),
    };
    let kind = match (body.kind.as_deref(), body.run) {
        (None | Some("run"), Some(step)) => Kind::Run(run_step(step, reporter.now)?),
        (Some("run"), None) => return Err(Invalid::value("run", "missing", "the step of a run")),
        (None | Some("notice"), None) => Kind::Notice,
        (Some("push"), None) => Kind::Push,
        (Some("notice" | "push"), Some(_)) => {
            return Err(Invalid::value("run", "given", "no step, or the kind `run`"));
        }
        (Some(other), _) => {
            return Err(Invalid::text("kind", other, Kind::EXPECTED));
        }
    };
    let level = body.level.as_deref().map_or(Ok(kind.level()), str::parse)?;
    let source = body.source.map(Source::from).unwrap_or_default();
    let is_own = reporter.identity == Identity::LOCAL;
    let attachments = attachments(&body.attachments)?;
    let path = attachments.iter().position(|attachment| matches!(attachment.place, Place::Path(_)));
    if let Some(index) = path.filter(|_| !reporter.may_attach_files) {
        let expected = if is_own {
            "`url`; files of this machine are attached over the local socket, or where `serve.attach_files` is set"
        } else {
            "`url`; files of this machine are for its own user, over the local socket"
        };
        return Err(Invalid::value(&format!("attachments[{index}].path"), "given", expected));
    }
    let folder = source.project.as_ref().filter(|_| is_own).map(PathBuf::from);
    Ok(Report {
        key: key(body.key, reporter)?,
        level,
        context: body.context.as_deref().map_or(Ok(Context::default()), str::parse)?,
        source: Source {
            client: source.client.or_else(|| reporter.client.map(str::to_owned)),
            ..source
        },
        content: Content {
            title: body.title,
            text,
            format: body.format.as_deref().map(str::parse).transpose()?.unwrap_or_default(),
            data: body.data,
            link: body.link,
            attachments,
        },
        text_field,
        at_once: false,
        folder,
        kind,
        to: body.to.iter().map(|name| name.parse()).collect::<Result<_, _>>()?,
    })
}

fn run_step(step: StepReport, now: Timestamp) -> Result<RunStep, Invalid> {
    let field =
        |name: &'static str| move |refusal: Invalid| Invalid { field: name.to_owned(), ..refusal };
    Ok(RunStep {
        run: step.id.parse().map_err(field("run.id"))?,
        phase: step.phase.parse::<Phase>().map_err(field("run.phase"))?,
        step: step.step,
        progress: step
            .progress
            .map(|fraction| Progress::new("run.progress", fraction))
            .transpose()?,
        reported_at: match &step.timestamp {
            Some(text) => timestamp::read("run.timestamp", text)?,
            None => now,
        },
    })
}

fn key(
    in_body: Option<String>,
    reporter: &Reporter<'_>,
) -> Result<Option<IdempotencyKey>, Invalid> {
    let (key, field) = match (in_body, reporter.key) {
        (Some(key), _) => (key, "key"),
        (None, Some(key)) => (key.to_owned(), "Idempotency-Key"),
        (None, None) => return Ok(None),
    };
    if key.trim().is_empty() {
        return Err(Invalid::text(field, &key, "a key that is not blank"));
    }
    if key.len() > KEY_LIMIT {
        return Err(Invalid::too_long(field, key.len(), KEY_LIMIT, "bytes"));
    }
    Ok(Some(IdempotencyKey { scope: format!("api:{}", reporter.identity), key }))
}

#[cfg(test)]
mod tests {
    use deskbell_core::Level;
    use serde_json::json;

    use super::*;

    fn reporter() -> Reporter<'static> {
        Reporter {
            identity: "local",
            key: None,
            may_attach_files: true,
            client: Some("curl"),
            now: Timestamp::UNIX_EPOCH,
        }
    }

    fn accepted(body: &Value) -> Report {
        read(body.to_string().as_bytes(), &reporter()).unwrap()
    }

    #[track_caller]
    fn refused(body: &Value, status: u16, field: Option<&str>, detail: &str) {
        let problem = read(body.to_string().as_bytes(), &reporter()).unwrap_err();
        let problem = problem.body();
        assert_eq!((problem.status, problem.field.as_deref()), (status, field), "{problem:?}");
        assert_eq!(problem.detail, detail);
    }

    #[test]
    fn a_text_alone_is_a_notice() {
        let report = accepted(&json!({ "text": "hello" }));
        assert_eq!(report.kind, Kind::Notice);
        assert_eq!((report.level, report.context.as_str()), (Level::Info, "llm"));
        assert_eq!(report.source.client.as_deref(), Some("curl"));
        assert_eq!(accepted(&json!({ "message": "hello" })).text_field, "message");
    }

    #[test]
    fn only_the_daemons_own_user_names_files_of_its_machine_row_116() {
        let report = |attachments| json!({ "text": "a", "attachments": attachments });
        let path = report(json!([{ "path": "/home/a/shot.png" }]));
        let given = accepted(&path).content.attachments;
        assert_eq!(
            (given[0].name.as_str(), given[0].media_type.as_deref()),
            ("shot.png", Some("image/png"))
        );
        let foreign = |body: &Value| {
            let somebody = Reporter { identity: "ci", may_attach_files: false, ..reporter() };
            read(body.to_string().as_bytes(), &somebody)
                .map_err(|problem| problem.body().field.clone())
        };
        assert_eq!(foreign(&path).unwrap_err().as_deref(), Some("attachments[0].path"));
        assert!(foreign(&report(json!([{ "url": "https://h/shot.png" }]))).is_ok());
        let neither = report(json!([{ "name": "a" }]));
        let detail =
            "`attachments[0]` is an object with neither of `path` and `url`; expected one of them";
        refused(&neither, 422, Some("attachments[0]"), detail);
        for (item, field, detail) in [
            (
                json!("a"),
                "attachments[1]",
                "`attachments[1]` is a text; expected an object with `path` or `url`",
            ),
            (
                json!({ "url": 7 }),
                "attachments[1].url",
                "`attachments[1].url` is 7; expected a web address",
            ),
            (
                json!({ "uri": "x" }),
                "attachments[1].uri",
                "`attachments[1].uri` is an unknown field; expected `url`?",
            ),
        ] {
            let wrong = report(json!([{ "path": "/a" }, item]));
            refused(&wrong, 422, Some(field), detail);
        }
    }

    #[test]
    fn a_step_brings_its_level_and_time() {
        let report = accepted(&json!({
            "text": "failed",
            "run": { "id": "r", "phase": "error", "progress": 0.5, "timestamp": "1970-01-01T00:00:01Z" },
        }));
        assert_eq!(report.level, Level::Error);
        let Kind::Run(step) = report.kind else { panic!("not a step") };
        assert_eq!(step.reported_at.as_second(), 1);
        assert_eq!(step.progress.map(Progress::fraction), Some(0.5));
    }

    #[test]
    fn refusals_name_field_value_and_expectation() {
        refused(&json!({}), 422, Some("text"), "`text` is missing; expected what to tell");
        refused(&json!({ "text": 5 }), 422, Some("text"), "`text` is 5; expected a text");
        refused(
            &json!({ "text": "a", "levle": "info" }),
            422,
            Some("levle"),
            "`levle` is an unknown field; expected `level`?",
        );
        refused(
            &json!({ "text": "a", "level": "loud" }),
            422,
            Some("level"),
            "`level` is \"loud\"; expected one of debug, info, notice, warning, error, critical, alert, emergency",
        );
        refused(
            &json!({ "text": "a", "run": { "id": "r" } }),
            422,
            Some("run.phase"),
            "`run.phase` is missing; expected one of start, update, end, error",
        );
        refused(
            &json!({ "text": "a", "run": { "id": "r", "phase": "start", "progress": 7 } }),
            422,
            Some("run.progress"),
            "`run.progress` is 7; expected a number from 0 to 1",
        );
        refused(
            &json!({ "text": "a", "run": { "id": "r", "phase": "start", "timestamp": "now" } }),
            422,
            Some("run.timestamp"),
            "`run.timestamp` is \"now\"; expected a time in ISO 8601, such as 2026-01-17T12:00:00Z",
        );
        refused(
            &json!({ "text": "a", "to": "phone" }),
            422,
            Some("to"),
            "`to` is a text; expected a list of channel names",
        );
        refused(&json!(["a"]), 422, Some("body"), "`body` is a list; expected a JSON object");
    }

    #[test]
    fn what_is_not_json_is_refused() {
        assert_eq!(read(b"{\"text\": ", &reporter()).unwrap_err().body().status, 400);
        assert_eq!(read(b"\xff", &reporter()).unwrap_err().body().status, 400);
    }

    #[test]
    fn the_body_s_key_goes_before_the_header_s() {
        let reporter = Reporter { key: Some("header"), ..reporter() };
        let read =
            |body: &str| read(body.as_bytes(), &reporter).map(|report| report.key.unwrap().key);
        assert_eq!(read(r#"{"text":"a"}"#).unwrap(), "header");
        assert_eq!(read(r#"{"text":"a","key":"body"}"#).unwrap(), "body");
        assert_eq!(
            read(r#"{"text":"a","key":" "}"#).unwrap_err().body().field.as_deref(),
            Some("key")
        );
    }
}
