//! Which notifications a client says it takes.

use serde_json::Value;

use crate::outbox::Kind;

/// Which notifications a client says it takes, in `capabilities.notifications`.
///
/// The map is no part of the protocol's standard. A client without it is a standard client and takes everything; with
/// it, a client goes without the kinds that it sets to `false`. A kind goes by its method, `notifications/progress`, or
/// by the part of it after the first slash, `progress`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Declared {
    map: Option<Value>,
}

impl Declared {
    /// Reads the `capabilities` of a client as they came over the wire.
    pub fn of(capabilities: &Value) -> Self {
        Self { map: capabilities.get("notifications").filter(|map| map.is_object()).cloned() }
    }

    /// Whether the client takes notifications of `kind`.
    pub(crate) fn takes(&self, kind: Kind) -> bool {
        self.says(kind) != Some(false)
    }

    /// Whether the client may subscribe to `kind`: it says that it takes it, or says nothing about any.
    pub(crate) fn offers(&self, kind: Kind) -> bool {
        self.map.is_none() || self.says(kind) == Some(true)
    }

    /// What the client says about `kind`, if anything.
    fn says(&self, kind: Kind) -> Option<bool> {
        let map = self.map.as_ref()?;
        let method = kind.method();
        let short = method.strip_prefix("notifications/").unwrap_or(method);
        let flat = map.get(method).or_else(|| map.get(short)).and_then(Value::as_bool);
        flat.or_else(|| {
            // As servers declare it: {"resources": {"updated": true, "listChanged": true}}.
            let (group, leaf) = short.split_once('/')?;
            let leaf = if leaf == "list_changed" { "listChanged" } else { leaf };
            map.get(group)?.get(leaf)?.as_bool()
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_client_goes_without_what_it_sets_to_false_rows_36_37() {
        #[track_caller]
        fn check(capabilities: &Value, kind: Kind, expected: bool) {
            assert_eq!(Declared::of(capabilities).takes(kind), expected, "{kind:?} {capabilities}");
        }
        let standard = json!({ "roots": {} });
        let map = |map: Value| json!({ "notifications": map });
        for kind in [Kind::Progress, Kind::Message, Kind::ResourceUpdated, Kind::ToolListChanged] {
            check(&standard, kind, true);
            check(&map(json!({})), kind, true);
            check(&map(json!("all")), kind, true);
            check(&map(json!({ kind.method(): false })), kind, false);
            check(&map(json!({ kind.method(): true })), kind, true);
        }
        check(&map(json!({ "progress": false })), Kind::Progress, false);
        check(&map(json!({ "progress": false })), Kind::Message, true);
        let nested = map(json!({ "resources": { "listChanged": false, "updated": true } }));
        check(&nested, Kind::ResourceListChanged, false);
        check(&nested, Kind::ResourceUpdated, true);
    }
}
