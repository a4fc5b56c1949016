//! The layer of `DESKBELL_*` variables: `DESKBELL_SERVE__LISTEN` is `listen` in `[serve]`.

use std::collections::BTreeMap;

use super::tree::{Node, Place, Source, Value};

const PREFIX: &str = "DESKBELL_";

/// Options that stand outside of every section; other variables without `__` are none of the configuration's.
const TOP_LEVEL: &[&str] = &["keep_history", "skip_titles"];

/// What the variables say. An empty one says nothing, because containers set variables that way.
pub(super) fn layer(variables: &BTreeMap<String, String>) -> Node {
    let mut layer = Node::table(Place::of(Source::BuiltIn));
    for (variable, value) in variables {
        let Some(name) = variable.strip_prefix(PREFIX) else {
            continue;
        };
        let path: Vec<_> = name.split("__").map(str::to_ascii_lowercase).collect();
        let is_option = match path.as_slice() {
            [name] => TOP_LEVEL.contains(&name.as_str()),
            _ => true,
        };
        if is_option && !value.is_empty() {
            let place = Place::of(Source::Variable(variable.clone()));
            layer.put(&path, Node { value: Value::Text(value.clone()), place });
        }
    }
    layer
}
