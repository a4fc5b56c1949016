//! The fields of a request, as far ends want them.

use serde_json::Value;

/// `fields` without those that are null, for far ends that take a null for a value.
pub fn present(mut fields: Value) -> Value {
    if let Some(fields) = fields.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    fields
}
