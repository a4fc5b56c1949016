//! Whatever stands in a configuration, reading it ends, and nothing secret of it is shown.

use deskbell::config;
use proptest::prelude::*;

use super::Trial;

/// What must never be seen, wherever it was written.
const PLANTED: &str = "hunter2";

/// Everything that is ever said of a configuration, except for what `deskbell config show` shows on purpose.
fn everything_said(trial: &Trial) -> String {
    let report = config::check(&trial.sources);
    let loaded = match config::load(&trial.sources) {
        Ok(config::Loaded { config, .. }) => {
            format!("{:?}{:?}{:?}", config.channels, config.serve, config.problems)
        }
        Err(errors) => format!("{errors}{errors:?}"),
    };
    format!("{report}{report:?}{}{loaded}", report.to_json())
}

/// Values with a secret in them, and others.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(format!("\"{PLANTED}\"")),
        Just(format!("'{PLANTED} \"'")),
        Just(format!("[\"{PLANTED}\", 5]")),
        Just(format!("{{ a = \"{PLANTED}\" }}")),
        Just(format!("\"https://{PLANTED}:{PLANTED}@h.example/{PLANTED}\"")),
        Just(format!("\"slack://{PLANTED}/env:NAME/{PLANTED}\"")),
        Just(format!("\"error..{PLANTED}\"")),
        Just(PLANTED.to_owned()),
        Just(format!("\"\"\"\n{PLANTED}\n")),
        Just(format!("\"{PLANTED}")),
        Just(format!("12{PLANTED}")),
        "[0-9]{1,20}",
        Just("true".to_owned()),
        Just("1979-05-27".to_owned()),
        Just("{ name = \"llm_notify\", level = \"info\" }".to_owned()),
    ]
}

/// Lines as a configuration has them, most of them wrong.
fn line() -> impl Strategy<Value = String> {
    let keys = prop::sample::select(vec![
        "kind",
        "url",
        "token",
        "topic",
        "level",
        "context",
        "channels",
        "listen",
        "tokens",
        "targets",
        "keep_history",
        "skip_titles",
        "enabled",
        "per_minute",
        "attempts",
        "timeout",
        "path",
        "max_bytes",
        "profile",
        "\"a b\"",
        "chat_id",
        "headers",
        "serve.tokens.x",
    ]);
    let heads = prop::sample::select(vec![
        "[channels.a]",
        "[channels.b]",
        "[[routes]]",
        "[serve]",
        "[serve.tokens]",
        "[tracing]",
        "[tracing.file]",
        "[delivery]",
        "[mcp]",
        "[",
        "[[channels]]",
        "kind = \"ntfy\"",
        "kind = \"webhook_json\"",
        "kind = \"telegram\"",
        "channels = [\"a\"]",
    ]);
    prop_oneof![
        3 => (keys, value()).prop_map(|(key, value)| format!("{key} = {value}")),
        2 => heads.prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn what_was_planted_in_a_value_is_never_said_row_116(lines in prop::collection::vec(line(), 1..12)) {
        let text = lines.join("\n");
        let said = everything_said(&Trial::user(&text));
        prop_assert!(!said.contains(PLANTED), "{text}\n--\n{said}");
        let said = everything_said(&Trial::new().with("project/.deskbell.toml", &text));
        prop_assert!(!said.contains(PLANTED), "{text}\n--\n{said}");
    }

    #[test]
    fn any_text_is_read_to_its_end(text in any::<String>(), value in any::<String>()) {
        let variable = value.replace('\0', "");
        let trial = Trial::user(&text)
            .with_variable("DESKBELL_CHANNELS__A__TOPIC", &variable)
            .with_variable("DESKBELL_TRACING__TARGETS", &variable)
            .with_variable("NTFY_TOPIC", &variable);
        let _said = everything_said(&trial);
        let _shown = config::show(&trial.sources);
    }

    #[test]
    fn any_bytes_are_read_to_their_end(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        let trial = Trial::new();
        std::fs::write(trial.path("user.toml"), &bytes).unwrap();
        std::fs::write(trial.path("project/deep/config.sh"), &bytes).unwrap();
        let _said = everything_said(&trial);
    }
}
