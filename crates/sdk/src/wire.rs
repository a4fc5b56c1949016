//! Notifications in the shapes of the protocol. What rmcp names otherwise, or has marked as going away, stays in here.

#![expect(deprecated, reason = "SEP-2577 deprecates logging; clients of today show it")]

use jiff::Timestamp;
use rmcp::{
    RoleServer,
    model::{
        CustomNotification, LoggingLevel, LoggingMessageNotification,
        LoggingMessageNotificationParam, ProgressNotification, ProgressNotificationParam,
        ProgressToken, RequestId, ServerNotification, SetLevelRequestParams,
    },
    service::{OriginatingRequestId, RequestContext},
};
use serde_json::{Map, Value, json};

use crate::{level::Level, outbox::Kind};

/// The first revision of the protocol in which each request says everything about its client.
const STATELESS: &str = "2026-07-28";

/// Where such a request names the least severe level it wants.
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// Where such a request has its client's capabilities.
const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// Longest text of a message or of a progress, in bytes; what is longer is cut.
const TEXT_LIMIT: usize = 16 * 1024;

/// Most data of a message, in bytes of JSON; of more than that only the size is told.
const DATA_LIMIT: usize = 64 * 1024;

/// Longest name of a logger, in bytes.
const LOGGER_LIMIT: usize = 128;

/// As much of `text` as `limit` bytes hold, with a mark where it is cut.
fn cut(text: &str, limit: usize) -> String {
    let kept = text.get(..text.floor_char_boundary(limit)).unwrap_or(text);
    if kept.len() < text.len() { format!("{kept}…") } else { kept.to_owned() }
}

/// Whether `context` belongs to a request that says everything about its client (2026-07-28 and later).
pub(crate) fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context.meta.protocol_version().is_some_and(|version| version.as_str() >= STATELESS)
}

/// The least severe level that a stateless request wants to hear of; none means no message at all.
///
/// # Errors
/// Gives what is there, if that is no level.
pub(crate) fn wanted_level(context: &RequestContext<RoleServer>) -> Result<Option<Level>, Value> {
    let Some(wanted) = context.meta.get(LOG_LEVEL) else { return Ok(None) };
    let level = wanted.as_str().and_then(|name| name.parse().ok());
    level.map(Some).ok_or_else(|| wanted.clone())
}

/// The capabilities that a stateless request declares.
pub(crate) fn capabilities(context: &RequestContext<RoleServer>) -> Option<&Value> {
    context.meta.get(CLIENT_CAPABILITIES)
}

/// The level that a client sets.
pub(crate) const fn set_level(params: &SetLevelRequestParams) -> Level {
    match params.level {
        LoggingLevel::Debug => Level::Debug,
        LoggingLevel::Info => Level::Info,
        LoggingLevel::Notice => Level::Notice,
        LoggingLevel::Warning => Level::Warning,
        LoggingLevel::Error => Level::Error,
        LoggingLevel::Critical => Level::Critical,
        LoggingLevel::Alert => Level::Alert,
        LoggingLevel::Emergency => Level::Emergency,
    }
}

const fn logging_level(level: Level) -> LoggingLevel {
    match level {
        Level::Debug => LoggingLevel::Debug,
        Level::Info => LoggingLevel::Info,
        Level::Notice => LoggingLevel::Notice,
        Level::Warning => LoggingLevel::Warning,
        Level::Error => LoggingLevel::Error,
        Level::Critical => LoggingLevel::Critical,
        Level::Alert => LoggingLevel::Alert,
        Level::Emergency => LoggingLevel::Emergency,
    }
}

/// The time that notifications carry.
#[expect(clippy::disallowed_methods, reason = "it goes over the wire and decides nothing")]
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

/// A time as seconds since 1970.
pub(crate) fn seconds(time: Timestamp) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds are exact for 285,000 years")]
    let milliseconds = time.as_millisecond() as f64;
    milliseconds / 1_000.0
}

/// `notifications/message`. `data` stands beside the text, so that neither is lost.
pub(crate) fn message(
    level: Level,
    logger: &str,
    text: &str,
    data: Option<&Value>,
    request: Option<&RequestId>,
) -> ServerNotification {
    let own = json!({ "message": cut(text, TEXT_LIMIT), "timestamp": seconds(now()) });
    let size = data.map_or(0, |data| serde_json::to_vec(data).map_or(0, |json| json.len()));
    let said = match data {
        Some(_) if size > DATA_LIMIT => Map::from_iter([("data_bytes".to_owned(), size.into())]),
        Some(Value::Object(fields)) if !fields.contains_key("data") => {
            let (same, mut said): (Map<_, _>, Map<_, _>) =
                fields.clone().into_iter().partition(|(name, _)| own.get(name).is_some());
            if !same.is_empty() {
                said.insert("data".to_owned(), same.into());
            }
            said
        }
        Some(data) => Map::from_iter([("data".to_owned(), data.clone())]),
        None => Map::new(),
    };
    let mut all = Map::new();
    if let Value::Object(own) = own {
        all.extend(own);
    }
    all.extend(said);
    let params = LoggingMessageNotificationParam::new(logging_level(level), all.into());
    let mut notification =
        LoggingMessageNotification::new(params.with_logger(cut(logger, LOGGER_LIMIT)));
    if let Some(request) = request {
        notification.extensions.insert(OriginatingRequestId(request.clone()));
    }
    ServerNotification::LoggingMessageNotification(notification)
}

/// `notifications/progress`.
pub(crate) fn progress(
    token: ProgressToken,
    progress: f64,
    total: Option<f64>,
    message: Option<&str>,
    request: &RequestId,
) -> ServerNotification {
    let mut params = ProgressNotificationParam::new(token, progress);
    params.total = total;
    params.message = message.map(|message| cut(message, TEXT_LIMIT));
    let mut notification = ProgressNotification::new(params);
    notification.extensions.insert(OriginatingRequestId(request.clone()));
    ServerNotification::ProgressNotification(notification)
}

/// The notification that the resource at `uri`, or the list of `kind`, has changed.
pub(crate) fn changed(kind: Kind, uri: Option<&str>) -> ServerNotification {
    match uri {
        Some(uri) => resource_updated(uri, now()),
        None => custom(kind, json!({})),
    }
}

/// `notifications/resources/updated`, with the time beside the address.
fn resource_updated(uri: &str, at: Timestamp) -> ServerNotification {
    custom(Kind::ResourceUpdated, json!({ "uri": uri, "timestamp": at.to_string() }))
}

/// What rmcp has no shape for, or one without all the fields.
fn custom(kind: Kind, params: Value) -> ServerNotification {
    ServerNotification::CustomNotification(CustomNotification::new(kind.method(), Some(params)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(data: Option<&Value>, expected: &Value) {
        let notification = message(Level::Alert, "my-tool", "hello", data, None);
        let mut wire = serde_json::to_value(notification).unwrap();
        assert_eq!(wire["method"], "notifications/message");
        assert_eq!(wire["params"]["level"], "alert");
        assert_eq!(wire["params"]["logger"], "my-tool");
        let data = wire["params"]["data"].as_object_mut().unwrap();
        assert!(data.remove("timestamp").unwrap().as_f64().unwrap() > 1.7e9);
        assert_eq!(&Value::from(data.clone()), expected);
    }

    #[test]
    fn a_message_keeps_its_text_and_its_data_row_23() {
        check(None, &json!({ "message": "hello" }));
        let error = json!({ "error": "x" });
        check(Some(&error), &json!({ "message": "hello", "error": "x" }));
        check(Some(&json!([1, 2])), &json!({ "message": "hello", "data": [1, 2] }));
        check(Some(&json!({ "data": 1 })), &json!({ "message": "hello", "data": { "data": 1 } }));
        check(
            Some(&json!({ "message": "other", "n": 1 })),
            &json!({ "message": "hello", "n": 1, "data": { "message": "other" } }),
        );
    }

    #[test]
    fn a_changed_resource_is_named_with_the_time_rows_33_34() {
        let at = "2024-01-20T10:30:00Z".parse().unwrap();
        let wire = serde_json::to_value(resource_updated("file:///a", at)).unwrap();
        let params = json!({ "uri": "file:///a", "timestamp": "2024-01-20T10:30:00Z" });
        let expected = json!({ "method": "notifications/resources/updated", "params": params });
        assert_eq!(wire, expected);
        let wire = serde_json::to_value(changed(Kind::ToolListChanged, None)).unwrap();
        assert_eq!(wire, json!({ "method": "notifications/tools/list_changed", "params": {} }));
    }
    #[test]
    fn what_is_too_much_is_cut() {
        let text = "🔔".repeat(TEXT_LIMIT);
        let data = json!({ "all": "x".repeat(DATA_LIMIT) });
        let logger = "tool".repeat(100);
        let told = message(Level::Info, &logger, &text, Some(&data), None);
        let wire = serde_json::to_value(told).unwrap();
        let params = &wire["params"];
        assert_eq!(params["logger"].as_str().unwrap().len(), LOGGER_LIMIT + "…".len());
        assert!(params["data"]["message"].as_str().unwrap().ends_with("🔔…"));
        assert_eq!(params["data"]["data_bytes"], DATA_LIMIT + r#"{"all":""}"#.len());
        assert!(wire.to_string().len() < TEXT_LIMIT + 1_000);
    }
}
