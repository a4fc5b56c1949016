//! Promises about the tree that a program can check.

use std::{collections::BTreeSet, process::Command};

use crate::tree::{self, TextFile};

/// Which module may know which library: the start of a path in the code, and the files that may name it.
const OWNERS: &[(&str, &[&str])] = &[
    (
        "rmcp",
        &[
            "crates/deskbell/src/mcp",
            "crates/sdk",
            "crates/deskbell/tests",
            "crates/deskbell/examples",
        ],
    ),
    ("rusqlite", &["crates/deskbell/src/journal/sqlite"]),
    ("tokio_postgres", &["crates/deskbell/src/journal/postgres"]),
    ("reqwest", &["crates/channels/src/http"]),
    ("lettre", &["crates/channels/src/mail", "crates/channels/src/catalog/smtp"]),
    ("rumqttc", &["crates/channels/src/catalog/mqtt"]),
    (
        "async_tungstenite",
        &["crates/channels/src/catalog/wecom_aibot", "crates/channels/tests/it/wecom_aibot"],
    ),
    ("zbus", &["crates/channels/src/desktop"]),
    ("clap", &["crates/deskbell/src/cli"]),
    ("clap_complete", &["crates/deskbell/src/cli"]),
    ("indicatif", &["crates/deskbell/src/cli"]),
    ("serde_saphyr", &["crates/deskbell/src/config/import/yaml"]),
    ("liquid_core", &["crates/deskbell/src/prompts"]),
    ("liquid_lib", &["crates/deskbell/src/prompts"]),
    (
        "axum",
        &[
            "crates/deskbell/src/api",
            "crates/deskbell/src/auth",
            "crates/deskbell/src/daemon",
            "crates/deskbell/src/mcp/http",
            "crates/deskbell/src/cli/demo",
            "crates/deskbell/src/cli/lab",
        ],
    ),
    (
        "hyper",
        &[
            "crates/deskbell/src/api",
            "crates/deskbell/src/auth",
            "crates/deskbell/src/daemon",
            "crates/deskbell/src/mcp/http",
            "crates/deskbell/src/cli/client",
        ],
    ),
    ("tracing_subscriber", &["crates/deskbell/src/telemetry", "crates/deskbell/src/terminal"]),
];

/// Files that may be longer than [`LONGEST_FILE`] lines, each with the reason.
const LONG_FILES: &[(&str, &str)] = &[];

/// A longer file is usually several files.
const LONGEST_FILE: usize = 600;

#[test]
fn each_big_library_is_known_to_one_module() {
    let strangers = |file: &TextFile| {
        let strange = OWNERS.iter().filter(|(library, owners)| {
            !owners.iter().any(|owner| belongs(&file.path, owner))
                && names_library(&file.text, library)
        });
        strange.map(|(library, _)| format!("{} names {library}", file.path)).collect::<Vec<_>>()
    };
    none(
        "a library outside its module (see ARCHITECTURE.md)",
        sources().iter().flat_map(strangers),
    );
}

#[test]
fn core_knows_no_clock_no_files_and_no_runtime() {
    const FOREIGN: &[&str] =
        &["tokio", "std::fs", "std::net", "std::thread", "std::process", "std::env"];
    let core = tree::files("crates/core/src");
    let strangers = core.iter().flat_map(|file| {
        FOREIGN
            .iter()
            .filter(|name| names_library(&file.text, name))
            .map(|name| format!("{} names {name}", file.path))
    });
    none("something that core leaves to others", strangers);
}

#[test]
fn every_dependency_is_used() {
    let members = ["bridge", "channels", "core", "deskbell", "popup", "sdk"];
    let unused = members.into_iter().flat_map(|member| {
        let folder = format!("crates/{member}");
        let own: Vec<TextFile> =
            tree::files(&folder).into_iter().filter(TextFile::is_rust).collect();
        // A test may compile the far ends of another crate's tests.
        let shared = own.iter().flat_map(|file| file.text.lines()).filter_map(|line| {
            let path = line.strip_prefix("#[path = \"../../../")?.strip_suffix("\"]")?;
            Some(tree::read(&format!("crates/{path}")))
        });
        let code: Vec<String> = shared.chain(own.iter().map(|file| file.text.clone())).collect();
        let manifest = tree::read(&format!("{folder}/Cargo.toml"));
        let sections = manifest.split("\n[").filter(|section| section.contains("dependencies]\n"));
        let lines = sections
            .flat_map(|section| section.lines().skip(1))
            .filter(|line| !line.starts_with('#'));
        let names = lines
            .filter_map(|line| line.split(['.', ' ', '=']).next())
            .filter(|name| !name.is_empty());
        let unused = names.filter(|name| {
            let library = name.trim_end_matches("-next").replace('-', "_");
            !code.iter().any(|text| names_library(text, &library) || uses_library(text, &library))
        });
        unused.map(|name| format!("{folder} depends on {name}")).collect::<Vec<_>>()
    });
    none("a dependency that the code does not name", unused);
}

#[test]
fn only_the_command_line_prints() {
    const PRINTERS: &[&str] =
        &["println!", "eprintln!", "print!", "eprint!", "stdout()", "stderr()"];
    // Beside the command line: what stderr shows of events and logs, the protocol itself, the daemon's one line to
    // the process that waits for it, and the names of the promises that a suite of tests runs through.
    const ALLOWED: &[&str] = &[
        "crates/deskbell/src/cli",
        "crates/deskbell/src/telemetry",
        "crates/deskbell/src/bin",
        "crates/bridge/src/program",
        "crates/bridge/src/sink",
        "crates/deskbell/src/daemon",
        "crates/deskbell/src/journal/suite",
        "crates/channels/src/catalog/console",
    ];
    let (mut strangers, mut idle) = (Vec::new(), ALLOWED.to_vec());
    for file in sources() {
        let lines = code_lines(&file.text);
        for (number, line) in
            lines.filter(|(_, line)| PRINTERS.iter().any(|printer| line.contains(printer)))
        {
            if ALLOWED.iter().any(|owner| belongs(&file.path, owner)) {
                idle.retain(|owner| !belongs(&file.path, owner));
            } else {
                strangers.push(format!("{}:{number}: {}", file.path, line.trim()));
            }
        }
    }
    none("printing outside cli: use tracing", strangers);
    none("a leave to print that nobody needs", idle.into_iter().map(str::to_owned));
}

#[test]
fn modules_stand_beside_their_folders() {
    let found = tree::files("crates").into_iter().map(|file| file.path);
    none("mod.rs: write foo.rs beside foo/", found.filter(|path| path.ends_with("/mod.rs")));
}

#[test]
fn nothing_is_left_for_later() {
    let needles = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:")];
    none("a note to do it later: do it, or write an issue", lines_with(&needles));
}

#[test]
fn the_tree_names_no_folder_of_somebodys_machine() {
    let needles = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/fa", "rm/"),
        concat!("/home/", "user"),
    ];
    none("a path of one machine", lines_with(&needles));
}

#[test]
fn files_stay_readable_in_one_sitting() {
    let long = tree::files("crates").into_iter().filter(TextFile::is_rust).filter_map(|file| {
        let lines = file.text.lines().count();
        let excused = LONG_FILES.iter().any(|(path, _)| *path == file.path);
        (lines > LONGEST_FILE && !excused).then(|| format!("{}: {lines} lines", file.path))
    });
    none("a file of more than 600 lines: split it, or say in LONG_FILES why not", long);
}

#[test]
fn every_channel_kind_is_in_the_catalogue() {
    let catalogue = tree::read("crates/channels/src/catalog.rs");
    let files = tree::files("crates/channels/src/catalog");
    let kinds = files.iter().filter(|file| file.text.contains("const KIND: ChannelKind"));
    let missing = kinds.filter_map(|file| {
        let module = file.path.rsplit('/').next()?.strip_suffix(".rs")?;
        (!catalogue.contains(&format!("{module}::KIND"))).then(|| file.path.clone())
    });
    none("a channel kind that catalog.rs does not list", missing);
}

#[test]
fn the_scripts_in_the_documents_exist() {
    let missing = documents().into_iter().flat_map(|file| {
        let words =
            shell_lines(&file.text).flat_map(|line| line.split_whitespace().collect::<Vec<_>>());
        let scripts = words.filter(|word| word.starts_with("scripts/") || *word == ".ci/run");
        let missing = scripts.filter(|script| !tree::root().join(script).is_file());
        missing.map(|script| format!("{} names {script}", file.path)).collect::<Vec<_>>()
    });
    none("a script that does not exist", missing);
}

#[test]
fn the_commands_in_the_documents_exist() {
    let mut commands = BTreeSet::new();
    for file in documents() {
        for line in shell_lines(&file.text) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let after = match words.as_slice() {
                ["cargo", "run", rest @ ..] => rest.iter().skip_while(|word| **word != "--").nth(1),
                ["deskbell", rest @ ..] => rest.first(),
                _ => None,
            };
            let is_command = |word: &&&str| word.chars().all(|c| c.is_ascii_lowercase());
            commands.extend(after.filter(is_command).map(|word| (*word).to_owned()));
        }
    }
    assert!(commands.contains("doctor"), "README shows how to check it; found {commands:?}");
    let unknown = commands.into_iter().filter(|command| {
        let program =
            Command::new(env!("CARGO_BIN_EXE_deskbell")).args([command, "--help"]).output();
        let output = program.expect("the program starts");
        !output.status.success() || output.stdout.is_empty()
    });
    none("a command that the program does not know", unknown);
}

#[test]
fn links_between_documents_lead_somewhere() {
    let broken = documents().into_iter().flat_map(|file| {
        let folder =
            file.path.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
        let targets = file.text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let local = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
        let broken = local.filter(|target| {
            let path = target.split('#').next().unwrap_or_default();
            !tree::root().join(format!("{folder}{path}")).exists()
        });
        broken.map(|target| format!("{} links to {target}", file.path)).collect::<Vec<_>>()
    });
    none("a broken link", broken);
}

#[test]
fn the_changelog_has_a_place_for_what_is_not_released() {
    let changelog = tree::read("CHANGELOG.md");
    assert!(
        changelog.lines().any(|line| line == "## Unreleased"),
        "CHANGELOG.md has no `## Unreleased`"
    );
}

#[test]
fn the_architecture_can_be_read_at_once() {
    let lines = tree::read("ARCHITECTURE.md").lines().count();
    assert!(lines <= 200, "ARCHITECTURE.md has {lines} lines, 200 at most");
}

#[test]
fn the_code_map_names_every_module_at_the_top() {
    let map = tree::read("ARCHITECTURE.md");
    let missing = sources().into_iter().filter_map(|file| {
        let (_, module) = file.path.split_once("/src/")?;
        let module = module.strip_suffix(".rs")?;
        let is_named = module.contains('/') || matches!(module, "lib" | "main");
        let in_map = is_named || map.contains(&format!("`{module}`"));
        (!in_map).then(|| file.path.clone())
    });
    none("a module that the code map in ARCHITECTURE.md does not name", missing);
}

/// Fails with all that was found.
fn none(what: &str, found: impl IntoIterator<Item = String>) {
    let found: Vec<String> = found.into_iter().collect();
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

/// The code that is compiled into the program: tests and benchmarks are free to look deeper.
fn sources() -> Vec<TextFile> {
    let is_test = |path: &str| path.contains("/tests/") || path.ends_with("/tests.rs");
    let ours =
        |file: &TextFile| file.is_rust() && file.path.contains("/src/") && !is_test(&file.path);
    tree::files("crates").into_iter().filter(ours).collect()
}

fn documents() -> Vec<TextFile> {
    let all = tree::files("").into_iter();
    all.filter(|file| file.path.ends_with(".md") && !file.path.starts_with("fuzz/")).collect()
}

/// Whether `path` is `owner`, its file or lies below it.
fn belongs(path: &str, owner: &str) -> bool {
    path.strip_prefix(owner)
        .is_some_and(|rest| rest.is_empty() || rest == ".rs" || rest.starts_with('/'))
}

/// Whether the code, comments left out, has a path that starts with `library`.
fn names_library(text: &str, library: &str) -> bool {
    code_lines(text).any(|(_, line)| {
        line.match_indices(&format!("{library}::")).any(|(place, _)| {
            let before = line.get(..place).and_then(|before| before.chars().next_back());
            !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '"'))
        })
    })
}

/// Whether the code brings `library` in as a whole.
fn uses_library(text: &str, library: &str) -> bool {
    let after = |line: &str| {
        let rest = line.trim_start().trim_start_matches("pub ").strip_prefix("use ")?;
        rest.trim_start_matches("::").strip_prefix(library)?.chars().next()
    };
    code_lines(text).any(|(_, line)| after(line).is_some_and(|next| matches!(next, ';' | ' ')))
}

fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// Where one of `needles` stands in the tree.
fn lines_with(needles: &[&str]) -> Vec<String> {
    let written = |file: &TextFile| file.path != "Cargo.lock" && !file.path.starts_with("LICENSE");
    let mut found = Vec::new();
    for file in tree::files("").into_iter().filter(written) {
        for (index, line) in file.text.lines().enumerate() {
            // A place in somebody's home is nobody's machine.
            let line = line.replace("~/", "~ ");
            if needles.iter().any(|needle| line.contains(needle)) {
                found.push(format!("{}:{}: {}", file.path, index + 1, line.trim()));
            }
        }
    }
    found
}

/// The lines of the shell blocks of a document.
fn shell_lines(text: &str) -> impl Iterator<Item = &str> {
    let blocks = text.split("\n```").collect::<Vec<_>>();
    let shell = blocks.into_iter().filter_map(|block| block.strip_prefix("sh\n"));
    shell.flat_map(str::lines).map(|line| line.trim().trim_start_matches("$ "))
}
