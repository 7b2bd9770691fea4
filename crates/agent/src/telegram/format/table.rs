//! Renders a table as text of fixed width: columns padded to their widest cell.

use pulldown_cmark::Alignment;
use unicode_segmentation::UnicodeSegmentation;

/// A table that is being parsed.
#[derive(Debug, Default)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new() }
    }

    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn begin_cell(&mut self) {
        if let Some(row) = self.rows.last_mut() {
            row.push(String::new());
        }
    }

    /// Appends text to the current cell.
    pub(super) fn push(&mut self, text: &str) {
        if let Some(cell) = self.rows.last_mut().and_then(|row| row.last_mut()) {
            cell.extend(text.chars().map(|c| if c == '\n' { ' ' } else { c }));
        }
    }

    /// The table as lines; the first row is the header.
    pub(super) fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max().unwrap_or(0)
            })
            .collect();
        let mut lines: Vec<String> = self.rows.iter().map(|row| self.line(row, &widths)).collect();
        if lines.len() > 1 {
            let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
            lines.insert(1, rule.join("─┼─"));
        }
        lines.join("\n")
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let cells: Vec<String> = widths
            .iter()
            .enumerate()
            .map(|(column, wanted)| {
                let cell = row.get(column).map_or("", String::as_str);
                let missing = " ".repeat(wanted.saturating_sub(width(cell)));
                match self.alignments.get(column) {
                    Some(Alignment::Right) => format!("{missing}{cell}"),
                    _ => format!("{cell}{missing}"),
                }
            })
            .collect();
        cells.join(" │ ").trim_end().to_owned()
    }
}

fn width(text: &str) -> usize {
    text.graphemes(true).count()
}
