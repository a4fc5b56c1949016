//! Whatever stands in a configuration file, it is read or explained, and a secret is in no explanation.
#![no_main]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use deskbell::{
    config::load::{self, Sources},
    paths::Paths,
};
use libfuzzer_sys::fuzz_target;

const SECRET: &str = "kQ7-never-shown-9fX";

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("deskbell-fuzz-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
});

fn sources(folder: &Path) -> Sources {
    Sources {
        paths: Paths {
            state: folder.to_owned(),
            config_user: folder.join("config.toml"),
            config_machine: folder.join("machine.toml"),
        },
        folder: None,
        variables: BTreeMap::from([("SECRET".to_owned(), SECRET.to_owned())]),
        overrides: Vec::new(),
        config_sh: None,
    }
}

fuzz_target!(|text: &[u8]| {
    fs::write(FOLDER.join("config.toml"), text).unwrap();
    let said = match load::load(&sources(&FOLDER)) {
        Ok(loaded) => {
            let findings: String = loaded.findings.iter().map(|finding| format!("{finding:?}\n")).collect();
            format!("{findings}{:?}", loaded.config)
        }
        Err(errors) => format!("{errors}\n{errors:?}"),
    };
    assert!(!said.contains(SECRET), "a secret is shown:\n{said}");
});
