//! What the API says of itself: an `OpenAPI` 3.1 document and a page of Markdown, both from the table of operations.

use std::fmt::Write as _;

use axum::response::{IntoResponse as _, Response};
use http::header;
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::operations::{ALL, Answer, Operation, Parameter};

/// Serves the document.
pub(super) async fn serve() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], document().to_string()).into_response()
}

/// The `OpenAPI` document.
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for operation in ALL {
        let described = describe(operation, &mut generator);
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        if let Some(methods) = path.as_object_mut() {
            methods.insert(operation.method.as_str().to_owned(), described);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Deskbell",
            "version": crate::VERSION,
            "description": "Carries messages between AI agents and people, both ways, and loses none.",
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
        "security": [{ "token": [] }],
    })
}

fn describe(operation: &Operation, generator: &mut SchemaGenerator) -> Value {
    let mut described = Map::new();
    let mut put = |name: &str, value: Value| {
        described.insert(name.to_owned(), value);
    };
    put("operationId", operation.id.into());
    put("summary", operation.summary.into());
    if !operation.text.is_empty() {
        put("description", operation.text.into());
    }
    let parameters: Vec<_> =
        operation.parameters.iter().copied().flatten().map(parameter).collect();
    if !parameters.is_empty() {
        put("parameters", parameters.into());
    }
    if let Some(schema) = operation.body {
        let schema = schema(generator);
        put(
            "requestBody",
            json!({ "required": true, "content": { "application/json": { "schema": schema } } }),
        );
    }
    if !operation.is_guarded {
        put("security", json!([]));
    }
    let answers: Map<_, _> = operation
        .answers
        .iter()
        .map(|given| (given.status.to_string(), answer(given, generator)))
        .collect();
    put("responses", answers.into());
    described.into()
}

fn parameter(parameter: &Parameter) -> Value {
    json!({
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.place == "path",
        "description": parameter.text,
        "schema": { "type": "string" },
    })
}

fn answer(answer: &Answer, generator: &mut SchemaGenerator) -> Value {
    let schema = answer.schema.map_or_else(|| json!({}), |schema| schema(generator).into());
    json!({
        "description": answer.text,
        "content": { answer.media_type: { "schema": schema } },
    })
}

/// The page of Markdown, for `docs/http.md`.
pub fn page() -> String {
    let mut page = String::from(HEAD);
    for operation in ALL {
        // Writing to a string cannot fail.
        let _infallible = section(&mut page, operation);
    }
    page
}

const HEAD: &str = "\
# The HTTP API

<!-- Generated from crates/deskbell/src/api/operations.rs; `UPDATE_DOCS=1 cargo test -p deskbell` writes it anew. -->

`deskbell serve` answers HTTP on a loopback address and on the local socket in its state folder.
The daemon's address is in `daemon.json` of the state folder, and its token in `token`; a daemon inside `deskbell mcp --in-process` listens on no address.

```sh
curl http://127.0.0.1:8377/v1/events \\
  -H \"Authorization: Bearer $(cat ~/.local/state/deskbell/token)\" \\
  -H 'Content-Type: application/json' -d '{\"text\": \"the build is green\"}'
```

On TCP a request needs a token (`Authorization: Bearer …`) for everything but `/healthz`, must name a host that the
server answers to, and, from a browser, must come from an allowed origin.
The local socket needs no token: only its user can open it.

A request that is not done is answered with a problem (RFC 9457, `application/problem+json`): `detail` says what is
wrong, and for a wrong value `field`, `value` and `expected` name it.
`429` means that the journal is busy, and `503` that it failed: nothing of the request was kept, and it can be sent
again.

The machine-readable form of this page is served at `/openapi.json`.
";

fn section(page: &mut String, operation: &Operation) -> std::fmt::Result {
    let method = operation.method.as_str().to_uppercase();
    write!(page, "\n## `{method} {}`\n\n{}.\n", operation.path, operation.summary)?;
    if !operation.text.is_empty() {
        writeln!(page, "{}", operation.text)?;
    }
    if !operation.is_guarded {
        writeln!(page, "Needs no token.")?;
    }
    let mut parameters = operation.parameters.iter().copied().flatten().peekable();
    if parameters.peek().is_some() {
        write!(page, "\n| parameter | in | meaning |\n|---|---|---|\n")?;
    }
    for parameter in parameters {
        writeln!(page, "| `{}` | {} | {} |", parameter.name, parameter.place, parameter.text)?;
    }
    write!(page, "\n| answer | meaning |\n|---|---|\n")?;
    for answer in operation.answers {
        writeln!(page, "| {} | {} |", answer.status, answer.text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_that_is_named_is_there() {
        fn check(value: &Value, document: &Value) {
            match value {
                Value::Object(fields) => {
                    if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                        let pointer = reference.strip_prefix('#').unwrap();
                        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
                    }
                    fields.values().for_each(|value| check(value, document));
                }
                Value::Array(items) => items.iter().for_each(|value| check(value, document)),
                _ => {}
            }
        }
        let document = document();
        check(&document, &document);
        assert!(document.pointer("/components/schemas/Event/properties/text").is_some());
        assert!(document.pointer("/components/schemas/Report/properties/run").is_some());
    }

    #[test]
    fn operations_have_names_of_their_own_and_describe_their_path() {
        let mut ids: Vec<_> = ALL.iter().map(|operation| operation.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), ALL.len());
        for operation in ALL {
            for parameter in operation.parameters.iter().copied().flatten() {
                let in_path = operation.path.contains(&format!("{{{}}}", parameter.name));
                assert_eq!(in_path, parameter.place == "path", "{}", operation.id);
            }
        }
    }
}
