//! What a client wants to hear that belongs to none of its calls: `resources/subscribe` of the protocol, and
//! `notifications/subscribe`, which narrows it further.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::{declared::Declared, level::Level, outbox::Kind};

/// Most resources that one session may subscribe to, and most subscriptions by `notifications/subscribe`.
pub(crate) const SUBSCRIPTIONS: usize = 1_000;

/// Longest address of a resource that a client may subscribe to, and longest text in a filter, in bytes.
pub(crate) const ADDRESS_LIMIT: usize = 4_096;

/// Most entries of one filter.
const FILTER_LIMIT: usize = 100;

/// Something that is told to all who want to hear it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Broadcast<'a> {
    pub(crate) kind: Kind,
    /// The resource that has changed.
    pub(crate) uri: Option<&'a str>,
    /// How severe a message is.
    pub(crate) level: Option<Level>,
    /// The type of the event that a message is about.
    pub(crate) event_type: Option<&'a str>,
}

impl<'a> Broadcast<'a> {
    /// The change of a resource or of a list.
    pub(crate) const fn change(kind: Kind, uri: Option<&'a str>) -> Self {
        Self { kind, uri, level: None, event_type: None }
    }
}

/// What one client has subscribed to.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    resources: HashSet<String>,
    /// Those of `notifications/subscribe`; none as long as there was never one, and then everything is wanted.
    narrowed: Option<Vec<Subscription>>,
    counted: u64,
}

/// One subscription by `notifications/subscribe`.
#[derive(Debug)]
struct Subscription {
    id: String,
    kind: Kind,
    filters: Filters,
}

/// What a subscription wants of its kind; what is empty wants everything.
#[derive(Debug, Clone, Default)]
struct Filters {
    /// Beginnings of addresses of resources.
    uri: Vec<String>,
    /// The least severe level of messages.
    level: Option<Level>,
    /// Types of events that messages are about.
    event_types: Vec<String>,
}

/// Why a subscription is refused: the field, its value and what was expected.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {value}, expected {expected}")]
pub(crate) struct Refused {
    field: &'static str,
    value: String,
    expected: &'static str,
}

impl Refused {
    fn new(field: &'static str, value: Option<&Value>, expected: &'static str) -> Self {
        let value = value.map_or_else(|| "missing".to_owned(), Value::to_string);
        Self { field, value: value.chars().take(40).collect(), expected }
    }
}

/// Whether `uri` is `subscribed`, or lies within it.
pub(crate) fn contains(subscribed: &str, uri: &str) -> bool {
    uri.strip_prefix(subscribed)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || subscribed.ends_with('/'))
}

impl Subscriptions {
    /// Notes that the client wants to hear of changes of `uri`.
    ///
    /// # Errors
    /// The address is too long, or there are too many.
    pub(crate) fn follow(&mut self, uri: &str) -> Result<(), String> {
        if uri.len() > ADDRESS_LIMIT {
            return Err(format!("uri has {} bytes, expected {ADDRESS_LIMIT} at most", uri.len()));
        }
        if self.resources.len() >= SUBSCRIPTIONS && !self.resources.contains(uri) {
            return Err(format!("a session subscribes to {SUBSCRIPTIONS} resources at most"));
        }
        self.resources.insert(uri.to_owned());
        Ok(())
    }

    pub(crate) fn unfollow(&mut self, uri: &str) {
        self.resources.remove(uri);
    }

    /// Whether the client wants to hear of changes of `uri`.
    pub(crate) fn follows(&self, uri: &str) -> bool {
        self.resources.iter().any(|subscribed| contains(subscribed, uri))
    }

    /// Whether `broadcast` is wanted: everything before the first subscription, what one of them fits after it.
    pub(crate) fn want(&self, broadcast: Broadcast<'_>) -> bool {
        self.narrowed.as_ref().is_none_or(|subscriptions| {
            subscriptions.iter().any(|subscription| subscription.fits(broadcast))
        })
    }

    /// Carries out `notifications/subscribe`, and gives its result. What the client did not declare is `rejected`.
    ///
    /// # Errors
    /// Names the parameter that is wrong.
    pub(crate) fn subscribe(
        &mut self,
        params: Option<&Value>,
        declared: &Declared,
        now: f64,
    ) -> Result<Value, Refused> {
        let types = texts("types", params.and_then(|params| params.get("types")))?;
        let said = params.and_then(|params| params.get("filters")).filter(|said| !said.is_null());
        let filters = said.map(Filters::read).transpose()?.unwrap_or_default();
        let (mut made, mut rejected) = (Vec::new(), Vec::new());
        for name in types {
            let room = self.narrowed.as_ref().is_none_or(|all| all.len() < SUBSCRIPTIONS);
            match kind(&name) {
                None => rejected.push(json!({ "type": name, "reason": "unknown" })),
                Some(kind) if !declared.offers(kind) => rejected.push(
                    json!({ "type": name, "reason": "not in the client's capabilities.notifications" }),
                ),
                Some(_) if !room => {
                    rejected.push(json!({ "type": name, "reason": "too many subscriptions" }));
                }
                Some(kind) => {
                    self.counted += 1;
                    let id = format!("sub-{}", self.counted);
                    let mut one = Map::new();
                    one.insert("subscription_id".to_owned(), json!(id));
                    one.insert("method".to_owned(), json!(kind.method()));
                    one.insert("created_at".to_owned(), json!(now));
                    one.extend(said.map(|said| ("filters".to_owned(), said.clone())));
                    made.push(Value::from(one));
                    let filters = filters.clone();
                    self.narrowed.get_or_insert_default().push(Subscription { id, kind, filters });
                }
            }
        }
        let mut result = json!({ "subscriptions": made });
        if let (false, Some(result)) = (rejected.is_empty(), result.as_object_mut()) {
            result.insert("rejected".to_owned(), rejected.into());
        }
        Ok(result)
    }

    /// Carries out `notifications/unsubscribe`, and gives its result. Known ids are removed beside unknown ones.
    ///
    /// # Errors
    /// Names the parameter that is wrong.
    pub(crate) fn unsubscribe(&mut self, params: Option<&Value>) -> Result<Value, Refused> {
        let ids = params.and_then(|params| params.get("subscription_ids"));
        let ids = texts("subscription_ids", ids)?;
        let mut are_known = true;
        for id in ids {
            let all = self.narrowed.as_mut();
            let removed = all.is_some_and(|all| {
                let before = all.len();
                all.retain(|one| one.id != id);
                all.len() < before
            });
            are_known &= removed;
        }
        Ok(json!({ "success": are_known }))
    }
}

/// The kind that goes by `name`: its method, or the part of it after the first slash.
fn kind(name: &str) -> Option<Kind> {
    let short = |kind: &Kind| kind.method().strip_prefix("notifications/");
    Kind::ALL.into_iter().find(|kind| kind.method() == name || short(kind) == Some(name))
}

/// Reads a list of texts.
fn texts(field: &'static str, value: Option<&Value>) -> Result<Vec<String>, Refused> {
    let refused = || Refused::new(field, value, "a list of at most 100 texts");
    let items = value.and_then(Value::as_array).ok_or_else(refused)?;
    let text =
        |item: &Value| item.as_str().filter(|text| text.len() <= ADDRESS_LIMIT).map(str::to_owned);
    let texts: Option<Vec<_>> = items.iter().map(text).collect();
    texts.filter(|texts| texts.len() <= FILTER_LIMIT).ok_or_else(refused)
}

impl Filters {
    fn read(said: &Value) -> Result<Self, Refused> {
        let fields = said.as_object().ok_or_else(|| {
            Refused::new("filters", Some(said), "an object with uri, level or event_types")
        })?;
        let mut filters = Self::default();
        for (name, value) in fields {
            match name.as_str() {
                "uri" | "uri_prefix" => filters.uri = one_or_more("filters.uri", value)?,
                "event_types" => {
                    filters.event_types = one_or_more("filters.event_types", value)?;
                }
                "level" => {
                    let level = value.as_str().and_then(|level| level.parse().ok());
                    let expected = "one of the eight levels";
                    filters.level = Some(
                        level
                            .ok_or_else(|| Refused::new("filters.level", Some(value), expected))?,
                    );
                }
                _ => {
                    let name = Value::from(name.as_str());
                    let expected = "only uri, level and event_types";
                    return Err(Refused::new("a name in filters", Some(&name), expected));
                }
            }
        }
        Ok(filters)
    }
}

fn one_or_more(field: &'static str, value: &Value) -> Result<Vec<String>, Refused> {
    let list = Value::from_iter(value.is_string().then(|| value.clone()));
    texts(field, Some(if value.is_string() { &list } else { value }))
}

impl Subscription {
    fn fits(&self, broadcast: Broadcast<'_>) -> bool {
        let Filters { uri, level, event_types } = &self.filters;
        let begins = |uri: &[String], found: &str| uri.iter().any(|uri| found.starts_with(uri));
        let is_one = |types: &[String], found: &str| types.iter().any(|one| one == found);
        self.kind == broadcast.kind
            && broadcast.uri.is_none_or(|found| uri.is_empty() || begins(uri, found))
            && broadcast.level.is_none_or(|found| level.is_none_or(|least| found >= least))
            && (event_types.is_empty()
                || broadcast.kind != Kind::Message
                || broadcast.event_type.is_some_and(|found| is_one(event_types, found)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subscribe(subscriptions: &mut Subscriptions, params: &Value) -> Value {
        subscriptions.subscribe(Some(params), &Declared::default(), 7.5).unwrap()
    }

    #[test]
    fn a_subscription_is_answered_with_its_id_row_38() {
        let mut subscriptions = Subscriptions::default();
        let result = subscribe(
            &mut subscriptions,
            &json!({ "types": ["notifications/progress", "message", "notifications/ponies"] }),
        );
        let one = |id: &str, method: &str| json!({ "subscription_id": id, "method": method, "created_at": 7.5 });
        let expected = json!({
            "subscriptions": [one("sub-1", "notifications/progress"), one("sub-2", "notifications/message")],
            "rejected": [{ "type": "notifications/ponies", "reason": "unknown" }]
        });
        assert_eq!(result, expected);
    }

    #[test]
    fn what_was_not_declared_is_rejected_row_39() {
        let map = json!({ "notifications": { "notifications/message": true, "progress": false } });
        let declared = Declared::of(&map);
        let params = json!({ "types": ["message", "progress", "tools/list_changed"] });
        let result = Subscriptions::default().subscribe(Some(&params), &declared, 1.0).unwrap();
        assert_eq!(result["subscriptions"].as_array().unwrap().len(), 1);
        let rejected: Vec<_> = result["rejected"].as_array().unwrap().iter().collect();
        assert_eq!(
            (&rejected[0]["type"], &rejected[1]["type"]),
            (&json!("progress"), &json!("tools/list_changed"))
        );
    }

    #[test]
    fn broadcasts_are_narrowed_by_the_first_subscription_and_stay_so_row_40_c10() {
        let mut subscriptions = Subscriptions::default();
        let tools = Broadcast::change(Kind::ToolListChanged, None);
        let resources = Broadcast::change(Kind::ResourceListChanged, None);
        assert!(subscriptions.want(tools) && subscriptions.want(resources));
        subscribe(&mut subscriptions, &json!({ "types": ["tools/list_changed"] }));
        assert!(subscriptions.want(tools) && !subscriptions.want(resources));
        let unsubscribe = |subscriptions: &mut Subscriptions, ids: Value| {
            subscriptions.unsubscribe(Some(&json!({ "subscription_ids": ids }))).unwrap()
        };
        let result = unsubscribe(&mut subscriptions, json!(["sub-9", "sub-1"]));
        assert_eq!(result, json!({ "success": false }));
        assert!(!subscriptions.want(tools));
        subscribe(&mut subscriptions, &json!({ "types": ["tools/list_changed"] }));
        let result = unsubscribe(&mut subscriptions, json!(["sub-2"]));
        assert_eq!(result, json!({ "success": true }));
    }

    #[test]
    fn filters_choose_row_41() {
        let mut subscriptions = Subscriptions::default();
        let types = ["resources/updated", "message"];
        let filters =
            json!({ "uri": "runs://", "level": "error", "event_types": ["delivery_failed"] });
        subscribe(&mut subscriptions, &json!({ "types": types, "filters": filters }));
        let updated = |uri| Broadcast::change(Kind::ResourceUpdated, Some(uri));
        assert!(subscriptions.want(updated("runs://a")));
        assert!(!subscriptions.want(updated("delivery://a")));
        let message = |level, event_type| Broadcast {
            level: Some(level),
            event_type,
            ..Broadcast::change(Kind::Message, None)
        };
        assert!(subscriptions.want(message(Level::Alert, Some("delivery_failed"))));
        assert!(!subscriptions.want(message(Level::Warning, Some("delivery_failed"))));
        assert!(!subscriptions.want(message(Level::Alert, Some("other"))));
        assert!(!subscriptions.want(message(Level::Alert, None)));
    }

    #[test]
    fn what_is_wrong_is_named_row_41() {
        #[track_caller]
        fn check(params: &Value, expected: &str) {
            let refused = Subscriptions::default()
                .subscribe(Some(params), &Declared::default(), 0.0)
                .unwrap_err();
            assert_eq!(refused.to_string(), expected);
        }
        check(&json!({}), "types is missing, expected a list of at most 100 texts");
        check(
            &json!({ "types": "message" }),
            "types is \"message\", expected a list of at most 100 texts",
        );
        check(&json!({ "types": [1] }), "types is [1], expected a list of at most 100 texts");
        let filters = |filters: Value| json!({ "types": [], "filters": filters });
        check(
            &filters(json!([])),
            "filters is [], expected an object with uri, level or event_types",
        );
        check(
            &filters(json!({ "level": "loud" })),
            "filters.level is \"loud\", expected one of the eight levels",
        );
        check(
            &filters(json!({ "url": 1 })),
            "a name in filters is \"url\", expected only uri, level and event_types",
        );
    }

    #[test]
    fn a_resource_contains_what_lies_below_it() {
        for (subscribed, uri, expected) in [
            ("file:///data", "file:///data", true),
            ("file:///data", "file:///data/a", true),
            ("file:///data/", "file:///data/a", true),
            ("file:///data", "file:///database", false),
            ("file:///data/a", "file:///data", false),
            ("runs://", "runs://7", true),
        ] {
            assert_eq!(contains(subscribed, uri), expected, "{subscribed} {uri}");
        }
    }

    #[test]
    fn subscriptions_are_bounded() {
        let mut subscriptions = Subscriptions::default();
        for index in 0..SUBSCRIPTIONS {
            subscriptions.follow(&format!("file:///{index}")).unwrap();
        }
        assert!(subscriptions.follow("file:///more").unwrap_err().contains("1000"));
        assert_eq!(subscriptions.follow("file:///7"), Ok(()));
        assert!(subscriptions.follow(&"x".repeat(ADDRESS_LIMIT + 1)).unwrap_err().contains("4097"));
        let params = json!({ "types": vec!["message"; 100] });
        for _ in 0..10 {
            subscribe(&mut subscriptions, &params);
        }
        let result = subscribe(&mut subscriptions, &json!({ "types": ["message"] }));
        assert_eq!(result["rejected"][0]["reason"], "too many subscriptions");
    }
}
