//! The id of a request that is too long to be kept: its client would wait for the answer for ever.

use std::{fmt, io};

use serde::{
    Deserializer as _,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::Value;

/// How much of the end of a message is kept, in bytes.
const TAIL: usize = 512;

/// What is left of a message that is too long.
#[derive(Debug, Default)]
pub struct Cut {
    head: Head,
    tail: Vec<u8>,
}

impl Cut {
    /// A message that begins with `head`.
    pub fn new(head: &[u8]) -> Self {
        let mut cut = Self { head: Head::read(head), tail: Vec::new() };
        cut.skip(head);
        cut
    }

    /// Notes that `more` follows.
    pub fn skip(&mut self, more: &[u8]) {
        self.tail.extend_from_slice(more.get(more.len().saturating_sub(TAIL)..).unwrap_or(more));
        self.tail.drain(..self.tail.len().saturating_sub(TAIL));
    }

    /// The id, if the message is a request and its id can be told; `null` otherwise.
    pub fn id(&self) -> Value {
        // An answer of the client has an id as well, which may be that of another request of its own.
        if !self.head.is_request {
            return Value::Null;
        }
        self.head.id.clone().or_else(|| last_id(&self.tail)).unwrap_or_default()
    }
}

impl io::Write for Cut {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.skip(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

/// The id at the very end of a message, where many clients put it.
///
/// The last brace closes the message itself, so the member before it is the message's own: no string can hold
/// `,"id":` without a backslash in it.
fn last_id(tail: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(tail);
    let members = text.trim_ascii_end().strip_suffix('}')?;
    let (before, id) = members.rsplit_once("\"id\"")?;
    let id = serde_json::from_str(id.trim_ascii_start().strip_prefix(':')?).ok()?;
    (before.trim_ascii_end().ends_with(',') && is_id(&id)).then_some(id)
}

/// What the first part of a message tells.
#[derive(Debug, Default)]
struct Head {
    id: Option<Value>,
    is_request: bool,
}

impl Head {
    fn read(head: &[u8]) -> Self {
        let mut found = Self::default();
        // That it ends in the middle is known.
        let _cut = serde_json::Deserializer::from_slice(head).deserialize_map(&mut found);
        found
    }
}

impl<'de> Visitor<'de> for &mut Head {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut id = None;
        while let Some(name) = members.next_key::<String>()? {
            // Only what something follows is whole: a number may be cut.
            self.id = self.id.take().or_else(|| id.take());
            self.is_request |= name == "method" || name == "params";
            if name == "id" {
                id = Some(members.next_value::<Value>()?).filter(is_id);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        self.id = self.id.take().or(id);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(head: &str, rest: &str, expected: &Value) {
        let mut cut = Cut::new(head.as_bytes());
        cut.skip(rest.as_bytes());
        assert_eq!(cut.id(), *expected, "{head} … {rest}");
    }

    #[test]
    fn the_id_is_found_before_and_behind_what_is_long() {
        check(r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":"xx"#, "xx", &json!(7));
        check(r#"{"id":"a\"b","params":{"id":8,"#, "", &json!("a\"b"));
        check(r#"{"method":"m","params":{"id":8,"a":"xx"#, "x\"},\"id\":9}", &json!(9));
        check(r#"{"method":"m","params":["#, r#"], "jsonrpc": "2.0", "id" : "k" } "#, &json!("k"));
        let long = "x".repeat(3 * TAIL);
        check(r#"{"method":"m","params":"#, &format!("\"{long}\",\"id\":9}}"), &json!(9));
    }

    #[test]
    fn what_may_be_no_id_of_a_request_is_none() {
        for (head, rest) in [
            (r#"{"id":7,"result":"xx"#, "x\"}"),
            (r#"{"result":"xx"#, "x\",\"id\":7}"),
            (r#"{"method":"m","id":12"#, "34,\"params\":{}}"),
            (r#"{"method":"m","params":{"a":"xx"#, r#"\",\"id\":7}"#),
            (r#"{"method":"m","params":{"a":"xx"#, "x\"},\"id\":1.5}"),
            (r#"{"method":"m","params":{"a":"xx"#, "x\"},\"id\":{}}"),
            (r#"{"method":"m","params":{"a":"xx"#, "x\",\"id\":7}}"),
            (r#"[{"method":"m","id":7,"params":"#, "[]}]"),
            ("hello", "hello"),
            ("", ""),
        ] {
            check(head, rest, &Value::Null);
        }
    }
}
