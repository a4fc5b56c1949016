//! Code in colours, for mails: each token that stands out has its style at itself, because mail programs drop style
//! sheets.
//!
//! The lexer is that of an editor, without the editor (decision 5). It knows no grammar and goes through a text once, so
//! that no text can hold it up, and what it knows of a language is built when it is needed and not kept.

use egui_code_editor::{Syntax, Token, TokenType};

use super::marks::html;

/// The longest code that is coloured, in bytes: styles make it several times as long.
const LIMIT: usize = 32 * 1024;

/// The longest word of such code, in bytes: the lexer looks at all of a word with each of its letters.
const WORD: usize = 200;

/// `code`, escaped, with what stands out in colours. `None` where its language is not known, or it is no
/// code that people read.
pub(super) fn coloured(code: &str, language: &str) -> Option<String> {
    let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
    let is_readable = code.len() <= LIMIT && words.all(|word| word.len() <= WORD);
    let syntax = syntax(&language.to_ascii_lowercase()).filter(|_| is_readable)?;
    let mut written = String::new();
    let mut tokens = Token::default().tokens(&syntax, code).into_iter().peekable();
    while let Some(token) = tokens.next() {
        let colour = colour(token.ty());
        let mut text = token.buffer().to_owned();
        while let Some(next) = tokens.next_if(|next| self::colour(next.ty()) == colour) {
            text.push_str(next.buffer());
        }
        let text = html(&text);
        match colour {
            Some(colour) => {
                written.extend(["<span style=\"color:", colour, "\">", &text, "</span>"]);
            }
            None => written.push_str(&text),
        }
    }
    Some(written)
}

/// Colours that can be read on white and on black.
const fn colour(token: TokenType) -> Option<&'static str> {
    match token {
        TokenType::Comment(_) => Some("#6e7781"),
        TokenType::Keyword => Some("#8250df"),
        TokenType::Type | TokenType::Special => Some("#0a7ea4"),
        TokenType::Numeric(_) => Some("#0969da"),
        TokenType::Str(_) => Some("#1a7f37"),
        TokenType::Function => Some("#bc4c00"),
        TokenType::Literal
        | TokenType::Hyperlink
        | TokenType::Punctuation(_)
        | TokenType::Whitespace(_)
        | TokenType::Unknown => None,
    }
}

/// What is known of a language, by any of the names that stand before blocks of code.
fn syntax(language: &str) -> Option<Syntax> {
    Some(match language {
        // Its lifetimes would be taken for the beginning of a text.
        "rust" | "rs" => Syntax::rust().with_quotes(['"']),
        "python" | "py" => Syntax::python(),
        "bash" | "sh" | "shell" | "zsh" => Syntax::shell(),
        "sql" => Syntax::sql(),
        "lua" => Syntax::lua(),
        "javascript" | "js" | "jsx" | "typescript" | "ts" | "tsx" => {
            Syntax::new("javascript").with_keywords(SCRIPT).with_types(SCRIPT_TYPES)
        }
        "go" | "golang" => Syntax::new("go").with_keywords(GO).with_types(GO_TYPES),
        "java" | "kotlin" | "kt" | "csharp" | "cs" => {
            Syntax::new("java").with_keywords(CLASSES).with_types(C_TYPES)
        }
        "c" | "h" | "cpp" | "c++" | "cc" | "hpp" => {
            Syntax::new("c").with_keywords(C).with_types(C_TYPES)
        }
        "json" | "jsonc" | "json5" => Syntax::new("json").with_keywords(CONSTANTS),
        // An apostrophe may stand in a text without quotes.
        "toml" | "yaml" | "yml" | "ini" => {
            Syntax::simple("#").with_quotes(['"']).with_keywords(CONSTANTS_OF_ANY_CASE)
        }
        _ => return None,
    })
}

const CONSTANTS: [&str; 3] = ["false", "null", "true"];

/// As the lexer compares them where a language does not tell capital letters apart.
const CONSTANTS_OF_ANY_CASE: [&str; 7] = ["FALSE", "NO", "NULL", "OFF", "ON", "TRUE", "YES"];

const SCRIPT: [&str; 45] = [
    "as",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "from",
    "function",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "of",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "type",
    "typeof",
    "undefined",
    "var",
    "while",
    "yield",
];

const SCRIPT_TYPES: [&str; 12] = [
    "any", "Array", "boolean", "Error", "Map", "never", "number", "Promise", "Set", "string",
    "unknown", "void",
];

const GO: [&str; 28] = [
    "break",
    "case",
    "chan",
    "const",
    "continue",
    "default",
    "defer",
    "else",
    "fallthrough",
    "false",
    "for",
    "func",
    "go",
    "goto",
    "if",
    "import",
    "interface",
    "map",
    "nil",
    "package",
    "range",
    "return",
    "select",
    "struct",
    "switch",
    "true",
    "type",
    "var",
];

const GO_TYPES: [&str; 13] = [
    "any", "bool", "byte", "error", "float32", "float64", "int", "int32", "int64", "rune",
    "string", "uint", "uint64",
];

const CLASSES: [&str; 50] = [
    "abstract",
    "as",
    "async",
    "await",
    "base",
    "break",
    "case",
    "catch",
    "class",
    "continue",
    "default",
    "do",
    "else",
    "enum",
    "extends",
    "false",
    "final",
    "finally",
    "for",
    "foreach",
    "fun",
    "if",
    "implements",
    "import",
    "in",
    "interface",
    "internal",
    "is",
    "namespace",
    "new",
    "null",
    "override",
    "package",
    "private",
    "protected",
    "public",
    "readonly",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "throws",
    "true",
    "try",
    "using",
    "val",
    "var",
    "while",
];

const C: [&str; 43] = [
    "auto",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "constexpr",
    "continue",
    "default",
    "define",
    "delete",
    "do",
    "else",
    "enum",
    "extern",
    "false",
    "for",
    "goto",
    "if",
    "include",
    "inline",
    "namespace",
    "new",
    "nullptr",
    "private",
    "protected",
    "public",
    "return",
    "sizeof",
    "static",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "true",
    "try",
    "typedef",
    "typename",
    "union",
    "using",
    "virtual",
    "while",
];

const C_TYPES: [&str; 19] = [
    "bool", "boolean", "byte", "char", "double", "float", "int", "Int", "int32_t", "int64_t",
    "long", "object", "short", "size_t", "string", "String", "uint32_t", "uint64_t", "void",
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LANGUAGES: [&str; 12] =
        ["rust", "python", "sh", "sql", "lua", "ts", "go", "java", "c++", "json", "yaml", "toml"];

    /// What a reader sees, if nothing but our styles is a tag.
    fn seen(coloured: &str) -> Option<String> {
        let mut seen = String::new();
        for part in coloured.split("<span style=\"color:#") {
            let text = match part.split_once("\">") {
                Some((colour, text)) if colour.len() == 6 => text,
                _ => part,
            };
            seen.push_str(&text.replace("</span>", ""));
        }
        let is_escaped = !seen.contains(['<', '>', '"']);
        let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
        is_escaped.then(|| {
            entities.iter().fold(seen, |text, (entity, character)| text.replace(entity, character))
        })
    }

    #[test]
    fn what_stands_out_in_a_language_is_coloured() {
        #[track_caller]
        fn check(language: &str, code: &str, expected: &[&str]) {
            let coloured = coloured(code, language).unwrap();
            let words = coloured.split("<span").skip(1);
            let words = words.filter_map(|part| part.split_once("\">")?.1.split("</span>").next());
            assert_eq!(words.collect::<Vec<_>>(), expected, "{coloured}");
            assert_eq!(seen(&coloured).as_deref(), Some(code));
        }
        check("Rust", "let x: &'a u8 = y;", &["let", "u8"]);
        let json = ["&quot;a&quot;", "true", "&quot;b&quot;", "12"];
        check("json", "{\"a\": true, \"b\": 12}", &json);
        check("yaml", "on: don't # why", &["on", "# why"]);
        check("ts", "const a = 'x'; // <b>", &["const", "'x'", "// &lt;b&gt;"]);
        check("sh", "# a\nif x", &["# a", "if"]);
        assert_eq!(coloured("x", "brainfog"), None);
        assert_eq!(coloured(&"x ".repeat(LIMIT / 2 + 1), "rust"), None);
        assert_eq!(coloured(&"x".repeat(WORD + 1), "sql"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_all_there_and_escaped_row_115(
            code in r#"([a-z<>&"'`/*#\\.(){} \n\t0-9é漢]|https://|'{3}|--){0,60}"#,
            language in prop::sample::select(&LANGUAGES[..]),
        ) {
            let coloured = coloured(&code, language).unwrap();
            prop_assert_eq!(seen(&coloured), Some(code), "{}", coloured);
        }
    }
}
