//! `docs/contract.md` is what the tests show: each row of the contract with the tests that name it.
//!
//! A test names its rows in its own name (`row_48_…`, `rows_1_and_2_…`) or in a comment above or inside it
//! (`row 48`, `rows 1, 2 and 4 to 6`).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs, iter,
};

use crate::tree::{self, TextFile};

const TABLE: &str = "docs/contract.md";
const ROWS: &str = "docs/contract-rows.tsv";

const PREAMBLE: &str = "\
# The contract

Each row is a promise with one check that a stranger could run against the built program.
S0 to S4 are the five earlier systems whose documented behaviour Deskbell keeps: S0 the `notify` tool through logging,
S1 the notification system of a server, S2 global events and streams, S3 the popup with a typed reply, S4 pushes to many channels.

This table is generated from `docs/contract-rows.tsv` and from the tests that name a row.
`UPDATE_DOCS=1 cargo test --workspace --test it contract::` writes it anew.
";

#[test]
fn the_contract_table_is_what_the_tests_show() {
    let expected = render(&rows(), &tests_by_row(&tree::files("crates")));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(tree::root().join(TABLE), &expected).expect("the table can be written");
    }
    let table = fs::read_to_string(tree::root().join(TABLE)).unwrap_or_default();
    let differing =
        expected.lines().zip(table.lines().chain(iter::repeat(""))).find(|(a, b)| a != b);
    assert!(
        table == expected,
        "{TABLE} is stale, first at: {differing:?}\n\
         regenerate it: UPDATE_DOCS=1 cargo test --workspace --test it contract::"
    );
}

struct Row {
    number: u32,
    feature: String,
    check: String,
}

fn rows() -> Vec<Row> {
    let parse = |line: &str| {
        let mut cells = line.split('\t').map(str::to_owned);
        let (Some(number), Some(feature), Some(check)) = (cells.next(), cells.next(), cells.next())
        else {
            panic!("{ROWS}: three cells expected in: {line}");
        };
        let number = number.parse().unwrap_or_else(|_| panic!("{ROWS}: no number in: {line}"));
        Row { number, feature, check }
    };
    tree::read(ROWS).lines().skip(1).map(parse).collect()
}

fn render(rows: &[Row], tests: &BTreeMap<u32, BTreeSet<(String, String)>>) -> String {
    let shown = rows.iter().filter(|row| tests.contains_key(&row.number)).count();
    let mut table = format!("{PREAMBLE}\n{shown} of {} rows have a test.\n\n", rows.len());
    table.push_str("| row | feature | check | tests |\n|---|---|---|---|\n");
    for Row { number, feature, check } in rows {
        let tests = tests.get(number).map_or_else(|| "open".to_owned(), listed);
        let cells =
            [feature.as_str(), check.as_str(), tests.as_str()].map(|cell| cell.replace('|', "\\|"));
        writeln!(table, "| {number} | {} |", cells.join(" | ")).expect("a string takes all");
    }
    table
}

/// The tests by file: `deskbell/tests/it/cli.rs`: `one`, `two`; …
fn listed(tests: &BTreeSet<(String, String)>) -> String {
    let mut by_file: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (file, test) in tests {
        by_file.entry(file).or_default().push(format!("`{test}`"));
    }
    let files = by_file.iter().map(|(file, tests)| format!("{file}: {}", tests.join(", ")));
    files.collect::<Vec<_>>().join("; ")
}

fn tests_by_row(files: &[TextFile]) -> BTreeMap<u32, BTreeSet<(String, String)>> {
    let mut by_row: BTreeMap<u32, BTreeSet<_>> = BTreeMap::new();
    // The examples at the end of this file show nothing.
    let others = |file: &&TextFile| file.is_rust() && !file.path.ends_with("it/contract.rs");
    for file in files.iter().filter(others) {
        let path = file.path.trim_start_matches("crates/");
        for (test, rows) in tests_in(file) {
            for row in rows {
                by_row.entry(row).or_default().insert((path.to_owned(), test.clone()));
            }
        }
    }
    by_row
}

/// The tests in a file with the rows that they name.
///
/// In a `tests` folder every function counts, because a suite without the usual harness lists plain functions.
fn tests_in(file: &TextFile) -> Vec<(String, BTreeSet<u32>)> {
    let every_function = file.path.contains("/tests/");
    let mut tests = Vec::new();
    let mut above = Above::default();
    let mut lines = file.text.lines();
    while let Some(line) = lines.next() {
        let Some(name) = function_name(line) else {
            above.read(line);
            continue;
        };
        let mut rows = std::mem::take(&mut above).rows_of_test(every_function);
        let closing = format!("{}}}", " ".repeat(line.len() - line.trim_start().len()));
        let is_short = line.ends_with('}');
        let body = lines.by_ref().take_while(|body| !is_short && *body != closing);
        let inside: BTreeSet<u32> = body.filter_map(comment).flat_map(rows_named_in).collect();
        if let Some(rows) = &mut rows {
            rows.extend(rows_named_in(name));
            rows.extend(inside);
        }
        tests.extend(rows.map(|rows| (name.to_owned(), rows)));
    }
    tests
}

/// The comments and attributes above a function, as far as they were read.
#[derive(Default)]
struct Above {
    rows: BTreeSet<u32>,
    is_test: bool,
    in_attribute: bool,
}

impl Above {
    fn read(&mut self, line: &str) {
        let line = line.trim();
        if self.in_attribute || line.starts_with("#[") {
            self.is_test |= line.contains("test");
            self.in_attribute = !line.ends_with(']');
        } else if let Some(text) = comment(line) {
            self.rows.extend(rows_named_in(text));
        } else {
            *self = Self::default();
        }
    }

    fn rows_of_test(self, every_function: bool) -> Option<BTreeSet<u32>> {
        (self.is_test || every_function).then_some(self.rows)
    }
}

fn comment(line: &str) -> Option<&str> {
    let text = line.split_once("//")?.1;
    (!text.starts_with('!')).then_some(text)
}

fn function_name(line: &str) -> Option<&str> {
    let line = line.trim_start().trim_start_matches("pub(crate) ").trim_start_matches("async ");
    let name = line.strip_prefix("fn ")?;
    name.split(['(', '<']).next()
}

/// The numbers after `row` or `rows` in a comment or a name.
fn rows_named_in(text: &str) -> Vec<u32> {
    let text = text.to_lowercase().replace('_', " ");
    let words: Vec<&str> = text
        .split(|c: char| !(c.is_alphanumeric() || c == '-'))
        .filter(|w| !w.is_empty())
        .collect();
    let mut rows = Vec::new();
    for (place, word) in words.iter().enumerate() {
        let after = words.get(place + 1..).unwrap_or_default();
        match *word {
            "row" => rows.extend(after.first().and_then(|word| word.parse::<u32>().ok())),
            "rows" => rows.extend(listed_numbers(after)),
            _ => {}
        }
    }
    rows
}

/// `1 2 and 4 to 6`, up to the first other word.
fn listed_numbers(words: &[&str]) -> Vec<u32> {
    let mut numbers: Vec<u32> = Vec::new();
    let mut in_range = false;
    for word in words {
        let (from, to) = word.split_once('-').unwrap_or((word, word));
        match (from.parse::<u32>(), to.parse::<u32>()) {
            (Ok(from), Ok(to)) => {
                let start = numbers.last().filter(|_| in_range).map_or(from, |last| last + 1);
                numbers.extend(start..=to);
                in_range = false;
            }
            _ if *word == "to" && !numbers.is_empty() => in_range = true,
            _ if *word == "and" => {}
            _ => break,
        }
    }
    numbers
}

#[test]
fn rows_are_read_from_names_and_comments() {
    let check = |text: &str, expected: &[u32]| assert_eq!(rows_named_in(text), expected, "{text}");
    check("row_48_keeps_sessions_apart", &[48]);
    check("row_101_two_channels_get_it", &[101]);
    check("rows_1_and_2_agree", &[1, 2]);
    check("Rows 1, 2 and 4 to 6: the texts.", &[1, 2, 4, 5, 6]);
    check("(rows 104-107)", &[104, 105, 106, 107]);
    check("row 3, row 5", &[3, 5]);
    check("a narrow 5 and rows of text", &[]);
}

#[test]
fn a_row_belongs_to_the_test_that_names_it() {
    let text = "
//! Everything here is about row 9.

/// Not a test: row 8.
fn prepare() {}

/// Row 1.
#[tokio::test(
    start_paused = true
)]
async fn first() {
    // row 2
    let text = \"row 7\";
}

mod tests {
    #[test]
    fn row_3_second() {
        prepare();
    }
}
";
    let found = |path: &str| {
        let file = TextFile { path: path.to_owned(), text: text.to_owned() };
        tests_in(&file)
            .into_iter()
            .map(|(test, rows)| (test, rows.into_iter().collect::<Vec<_>>()))
            .collect::<Vec<_>>()
    };
    let tests = [("first".to_owned(), vec![1, 2]), ("row_3_second".to_owned(), vec![3])];
    assert_eq!(found("crates/core/src/run.rs"), tests);
    assert_eq!(found("crates/core/tests/run.rs").first(), Some(&("prepare".to_owned(), vec![8])));
}
