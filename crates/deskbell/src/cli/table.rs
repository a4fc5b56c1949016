//! Rows in columns, as wide as what is in them.

use anstyle::Style;
use deskbell_core::text;
use unicode_width::UnicodeWidthStr as _;

/// Space between two columns.
const GAP: &str = "  ";

/// One field of a row.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A field with `text`, cleaned to one line.
    pub(crate) fn new(text: impl std::fmt::Display) -> Self {
        Self::styled(text, Style::new())
    }

    pub(crate) fn styled(text: impl std::fmt::Display, style: Style) -> Self {
        Self { text: text::one_line(&format!("{text}")).into_owned(), style }
    }
}

/// The lines of a table.
pub(crate) fn lines(rows: &[Vec<Cell>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.width()).max()
    };
    let widths: Vec<_> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    rows.iter().map(|row| line(row, &widths)).collect()
}

fn line(row: &[Cell], widths: &[usize]) -> String {
    let mut line = String::new();
    for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
        if index > 0 {
            line.push_str(GAP);
        }
        line.push_str(&super::output::styled(cell.style, &cell.text));
        // The last field of a row needs no space after it.
        if index + 1 < row.len() {
            line.push_str(&" ".repeat(width.saturating_sub(cell.text.width())));
        }
    }
    // Nor do empty fields at its end.
    line.truncate(line.trim_end().len());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let row = |cells: &[&str]| cells.iter().map(Cell::new).collect::<Vec<_>>();
        let lines = lines(&[row(&["a", "日本", "x"]), row(&["bcd", "e", "y\nz"])]);
        assert_eq!(lines, ["a    日本  x", "bcd  e     y\\nz"]);
        let lines = super::lines(&[row(&["a", ""]), row(&["b", "c"])]);
        assert_eq!(lines, ["a", "b  c"]);
    }
}
