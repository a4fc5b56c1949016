//! The recipe in CONTRIBUTING.md is a channel of the catalogue, so it compiles and passes the conformance suite.

const CONTRIBUTING: &str = include_str!("../../../../CONTRIBUTING.md");
const GOTIFY: &str = include_str!("../../src/catalog/gotify.rs");

#[test]
fn the_recipe_is_the_file_in_the_catalogue() {
    let recipe = CONTRIBUTING.split("## Add a channel").nth(1).expect("a recipe");
    let code = recipe.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next());
    assert_eq!(
        code.expect("a block of Rust"),
        GOTIFY,
        "put the text of crates/channels/src/catalog/gotify.rs into CONTRIBUTING.md"
    );
}
