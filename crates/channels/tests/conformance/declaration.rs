//! What a kind says of itself.

use std::path::Path;

use deskbell_channels::{ChannelKind, FromUrl, Transport, from_url, kinds, verdict::Success};

use crate::stand_in::example;

pub(crate) fn names_are_unique_and_in_order() {
    let names: Vec<_> = kinds().iter().map(|kind| kind.about.name).collect();
    assert!(names.is_sorted_by(|a, b| a < b), "catalog.rs lists kinds by name: {names:?}");
}

/// Row 109: what a far end of the user's own answers, only the user knows. All others are judged by what they say.
pub(crate) fn only_far_ends_of_ones_own_are_judged_by_their_status() {
    let by_status = |kind: &&ChannelKind| match kind.about.transport {
        Transport::Http { verdict, .. } => matches!(verdict.success, Success::Status),
        _ => false,
    };
    let names: Vec<_> = kinds().iter().filter(by_status).map(|kind| kind.about.name).collect();
    assert_eq!(names, ["apprise_webhook", "cloudevents", "webhook_json", "webhook_template"]);
}

pub(crate) fn example_builds(kind: &'static ChannelKind) {
    kind.build(example(kind)).map(drop).unwrap();
}

pub(crate) fn everything_is_documented(kind: &'static ChannelKind) {
    let guide = kind.guide();
    assert!(guide.len() > 40, "the struct's doc comment is the setup guide: {guide:?}");
    assert!(kind.about.docs.starts_with("https://"), "{}", kind.about.docs);
    for option in kind.options() {
        assert!(!option.doc.is_empty(), "`{}` has no doc comment", option.name);
        assert!(
            option.required || option.default.is_some() || !has_default(kind, &option.name),
            "the default of `{}` is not in the schema; add #[schemars(extend(\"default\" = …))]",
            option.name
        );
    }
}

/// Whether `name` is an option that is neither required nor absent nor a list or table, which are empty then.
fn has_default(kind: &ChannelKind, name: &str) -> bool {
    let schema = kind.schema();
    let option = schema.as_value().pointer(&format!("/properties/{name}")).unwrap();
    let shape = format!("{:?} {:?}", option.get("type"), option.get("anyOf"));
    !["null", "object", "array"].iter().any(|word| shape.contains(word))
}

pub(crate) fn the_file_has_its_name(kind: &'static ChannelKind) {
    let file = format!("src/catalog/{}.rs", kind.about.name);
    assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(&file).is_file(), "{file} is missing");
}

pub(crate) fn unknown_options_are_refused(kind: &'static ChannelKind) {
    let known = kind.options().first().map(|option| option.name.clone());
    let wrong = format!("{}x", known.as_deref().unwrap_or("option"));
    let mut options = example(kind);
    options.insert(wrong.clone(), toml::Value::from("planted-value"));
    let refusal = kind.build(options).map(drop).unwrap_err().to_string();
    assert!(refusal.contains(&format!("`{wrong}`")), "{refusal}");
    assert!(!refusal.contains("planted-value"), "{refusal}");
    if let Some(known) = known {
        assert!(refusal.contains(&format!("did you mean `{known}`?")), "{refusal}");
    }
}

/// Row 116: a password in the wrong place is still a password.
pub(crate) fn wrong_values_are_not_repeated(kind: &'static ChannelKind) {
    for option in kind.options() {
        for planted in [
            toml::Value::from("planted hunter2"),
            toml::Value::from(vec!["planted hunter2"]),
            toml::Value::from(toml::Table::from_iter([(
                "planted".to_owned(),
                (-7_777_777).into(),
            )])),
            toml::Value::from(-7_777_777),
        ] {
            let mut options = example(kind);
            options.insert(option.name.clone(), planted);
            let Err(refusal) = kind.build(options).map(drop) else { continue };
            let refusal = refusal.to_string();
            assert!(refusal.contains(&format!("`{}", option.name)), "{refusal}");
            assert!(!refusal.contains("hunter2") && !refusal.contains("777"), "{refusal}");
        }
    }
}

pub(crate) fn addresses_build(kind: &'static ChannelKind) {
    let urls = kind.urls.unwrap();
    for example in urls.examples {
        let FromUrl { kind: name, options, .. } = from_url(example).unwrap();
        assert_eq!(name, kind.about.name, "{example}");
        kind.build(options).map(drop).unwrap();
        let starts = |start: String| example.starts_with(&start);
        let ours = urls.schemes.iter().any(|scheme| starts(format!("{scheme}://")));
        let native = urls.native.iter().any(|start| starts(format!("https://{start}")));
        assert!(ours || native, "{example}");
    }
}

/// Row 116: every part of an address may be a token.
pub(crate) fn broken_addresses_are_not_repeated(kind: &'static ChannelKind) {
    for example in kind.urls.unwrap().examples {
        let options = from_url(example).unwrap().options;
        let secrets = kind.build(options).unwrap().secrets().to_vec();
        let sign = if example.contains('?') { '&' } else { '?' };
        let broken = format!("{example}{sign}nonsense=planted-value");
        let refusal = from_url(&broken).unwrap_err().to_string();
        assert!(refusal.contains("`nonsense`") && !refusal.contains("planted-value"), "{refusal}");
        assert!(secrets.iter().all(|secret| !refusal.contains(secret.as_str())), "{refusal}");
    }
}
