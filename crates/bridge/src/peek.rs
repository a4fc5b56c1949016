//! As much of a JSON-RPC message as the bridge needs: what sort it is, and its id.

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

/// What the bridge knows of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    /// What sort of message it is.
    pub sort: Sort,
}

/// The sorts of message. Ids are in their normal JSON form, so that `1` and `"1"` differ and `"\u0061"` is `"a"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sort {
    /// A request that wants an answer.
    Request {
        /// Its id.
        id: String,
        /// Its method.
        method: String,
        /// What of its parameters the replay needs: the uri of a resource.
        uri: Option<String>,
    },
    /// A notification.
    Notification {
        /// Its method.
        method: String,
        /// The id of the request that a `notifications/cancelled` names.
        cancels: Option<String>,
    },
    /// An answer.
    Response {
        /// The id of the request that it answers.
        id: String,
    },
}

impl Sort {
    /// The id, if this is a request.
    pub(crate) fn request_id(&self) -> Option<&str> {
        match self {
            Self::Request { id, .. } => Some(id),
            Self::Notification { .. } | Self::Response { .. } => None,
        }
    }
}

#[derive(Deserialize)]
struct Peek<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct Params {
    #[serde(rename = "requestId")]
    request_id: Option<Value>,
    uri: Option<Value>,
}

/// Reads what sort of message `bytes` is.
///
/// # Errors
/// The JSON-RPC answer to what is not a message.
pub(crate) fn read(bytes: &[u8]) -> Result<Message, Vec<u8>> {
    let text = str::from_utf8(bytes).map_err(|error| {
        error_answer(
            None,
            -32700,
            &format!("Parse error: invalid UTF-8 after byte {}", error.valid_up_to()),
        )
    })?;
    let peek: Peek<'_> = serde_json::from_str(text).map_err(|error| {
        // The text of an error of syntax names line and column, and never shows the message itself.
        match serde_json::from_str::<serde::de::IgnoredAny>(text) {
            Err(syntax) => error_answer(None, -32700, &format!("Parse error: {syntax}")),
            Ok(_) => {
                error_answer(None, -32600, &format!("Invalid Request: {}", wrong(text, &error)))
            }
        }
    })?;
    let id = peek.id.filter(|id| id.get() != "null").map(normal_id).transpose()?;
    let params = || {
        peek.params
            .and_then(|params| serde_json::from_str::<Params>(params.get()).ok())
            .unwrap_or_default()
    };
    let sort = match (id, peek.method) {
        (Some(id), Some(method)) => {
            let uri = method.starts_with("resources/").then(|| params().uri).flatten();
            Sort::Request { id, method, uri: uri.and_then(|uri| uri.as_str().map(str::to_owned)) }
        }
        (None, Some(method)) => {
            let cancels =
                (method == "notifications/cancelled").then(|| params().request_id).flatten();
            Sort::Notification { method, cancels: cancels.map(|id| id.to_string()) }
        }
        (Some(id), None) => Sort::Response { id },
        (None, None) => {
            return Err(error_answer(None, -32600, "Invalid Request: neither `method` nor `id`"));
        }
    };
    Ok(Message { sort })
}

/// What is wrong with JSON that is no message.
fn wrong(text: &str, error: &serde_json::Error) -> &'static str {
    if !text.trim_ascii_start().starts_with('{') {
        "a message is an object"
    } else if error.to_string().starts_with("duplicate field") {
        "`id`, `method` or `params` is given twice"
    } else {
        "`method` must be a text"
    }
}

fn normal_id(id: &RawValue) -> Result<String, Vec<u8>> {
    match serde_json::from_str::<Value>(id.get()) {
        Ok(Value::String(id)) => Ok(Value::String(id).to_string()),
        Ok(Value::Number(id)) if id.is_i64() || id.is_u64() => Ok(id.to_string()),
        _ => {
            Err(error_answer(None, -32600, "Invalid Request: `id` must be a string or an integer"))
        }
    }
}

/// A JSON-RPC error; `id` is the request's id in JSON form.
pub(crate) fn error_answer(id: Option<&str>, code: i32, message: &str) -> Vec<u8> {
    let id = id.and_then(|id| serde_json::from_str::<Value>(id).ok()).unwrap_or(Value::Null);
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
        .to_string()
        .into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &Sort) {
        assert_eq!(read(text.as_bytes()).map(|message| message.sort).as_ref(), Ok(expected));
    }

    #[track_caller]
    fn check_refused(bytes: &[u8], code: i32) {
        let answer: Value = serde_json::from_slice(&read(bytes).unwrap_err()).unwrap();
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert_eq!(answer["id"], Value::Null);
    }

    #[test]
    fn sorts_are_told_apart() {
        let request = |id: &str, method: &str| Sort::Request {
            id: id.to_owned(),
            method: method.to_owned(),
            uri: None,
        };
        check(r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#, &request("0", "ping"));
        check(r#"{"id":"\u0061","method":"ping"}"#, &request("\"a\"", "ping"));
        check(r#"{"id":1,"result":{}}"#, &Sort::Response { id: "1".to_owned() });
        check(
            r#"{"method":"notifications/cancelled","params":{"requestId":"x"}}"#,
            &Sort::Notification {
                method: "notifications/cancelled".to_owned(),
                cancels: Some("\"x\"".to_owned()),
            },
        );
        check(
            r#"{"method":"notifications/initialized"}"#,
            &Sort::Notification { method: "notifications/initialized".to_owned(), cancels: None },
        );
    }

    #[test]
    fn what_is_no_message_gets_an_answer() {
        check_refused(b"{\"id\":1,", -32700);
        check_refused(b"hello", -32700);
        check_refused(b"{\"method\":\"a\xff\"}", -32700);
        check_refused(b"{\"method\":\"a\0\"}", -32700);
        check_refused(b"42", -32600);
        check_refused(b"{}", -32600);
        check_refused(b"{\"id\":{},\"method\":\"ping\"}", -32600);
        check_refused(b"{\"id\":1.5,\"method\":\"ping\"}", -32600);
        check_refused(b"{\"id\":1,\"method\":7}", -32600);
    }

    #[test]
    fn what_is_wrong_is_said_without_names_of_rust() {
        for (text, expected) in [
            ("42", "Invalid Request: a message is an object"),
            ("[1]", "Invalid Request: a message is an object"),
            (r#"{"method":7}"#, "Invalid Request: `method` must be a text"),
            (
                r#"{"id":1,"id":2,"method":"m"}"#,
                "Invalid Request: `id`, `method` or `params` is given twice",
            ),
            (r#"{"method":7,"#, "Parse error: EOF while parsing an object at line 1 column 12"),
        ] {
            let answer: Value =
                serde_json::from_slice(&read(text.as_bytes()).unwrap_err()).unwrap();
            assert_eq!(answer["error"]["message"], expected);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Err(answer) = read(&bytes) {
                prop_assert!(serde_json::from_slice::<Value>(&answer).is_ok());
            }
        }
    }
}
