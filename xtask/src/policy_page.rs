//! `docs/policy.md`: an introduction, and the gate's whole table, as its snapshot has it, with lines joined that differ in
//! nothing that counts.

use std::collections::HashMap;

/// The gate's table, as its own test keeps it.
const SNAPSHOT: &str = include_str!(
    "../../crates/broker/src/pipeline/snapshots/embody_broker__pipeline__gate__tests__gate.snap"
);
const INTRODUCTION: &str = include_str!("policy_page.md");
const COLUMNS: usize = 6;

/// The page.
pub(crate) fn page() -> String {
    let mut out = INTRODUCTION.trim_end().to_owned();
    out.push_str("\n\n| class | gate | contract | mind | `mind_down` | a person | then |\n|---|---|---|---|---|---|---|\n");
    for line in joined(&lines()) {
        let cells: Vec<String> =
            line.cells.iter().map(|values| values.as_deref().map_or_else(dash, said)).collect();
        out.push_str(&format!("| {} | {} |\n", cells.join(" | "), line.then));
    }
    out
}

/// A line of the snapshot.
#[derive(Clone)]
struct Line {
    cells: Vec<String>,
    then: String,
}

/// Several lines joined. A cell has the values that it stands for; `None` is all of them.
#[derive(Clone, PartialEq)]
struct JoinedLine {
    cells: Vec<Option<Vec<String>>>,
    then: String,
}

fn lines() -> Vec<Line> {
    let rows = SNAPSHOT.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let read = |row: &str| {
        let mut cells: Vec<String> = row.split(" | ").map(str::to_lowercase).collect();
        let then = cells.pop().unwrap_or_default();
        Line { cells, then }
    };
    rows.skip(1).map(read).collect()
}

fn joined(lines: &[Line]) -> Vec<JoinedLine> {
    let all: Vec<&Line> = lines.iter().collect();
    fewest(&all, &(0..COLUMNS).collect::<Vec<_>>(), &mut Memo::new())
}

/// Earlier results, by the first of the lines and the columns in which they may differ.
type Memo = HashMap<(Vec<String>, Vec<usize>), Vec<JoinedLine>>;

/// Splits by whichever column leaves the fewest lines, and so on for what is left.
fn fewest(lines: &[&Line], columns: &[usize], memo: &mut Memo) -> Vec<JoinedLine> {
    let Some(first) = lines.first() else { return Vec::new() };
    if lines.iter().all(|line| line.then == first.then) {
        return vec![JoinedLine { cells: vec![None; COLUMNS], then: first.then.clone() }];
    }
    let key = (first.cells.clone(), columns.to_vec());
    if let Some(found) = memo.get(&key) {
        return found.clone();
    }
    let split = columns.iter().map(|column| by(*column, lines, columns, memo));
    let found = split.min_by_key(Vec::len).unwrap_or_default();
    memo.insert(key, found.clone());
    found
}

fn by(column: usize, lines: &[&Line], columns: &[usize], memo: &mut Memo) -> Vec<JoinedLine> {
    let rest: Vec<usize> = columns.iter().copied().filter(|other| *other != column).collect();
    let mut values: Vec<&str> = Vec::new();
    for value in lines.iter().filter_map(|line| line.cells.get(column)) {
        if !values.contains(&value.as_str()) {
            values.push(value);
        }
    }
    let mut groups: Vec<(Vec<String>, Vec<JoinedLine>)> = Vec::new();
    for value in &values {
        let of_it: Vec<&Line> = lines
            .iter()
            .copied()
            .filter(|line| line.cells.get(column).is_some_and(|cell| cell == value))
            .collect();
        let below = fewest(&of_it, &rest, memo);
        match groups.iter_mut().find(|(_, other)| *other == below) {
            Some((same, _)) => same.push((*value).to_owned()),
            None => groups.push((vec![(*value).to_owned()], below)),
        }
    }
    let all = values.len();
    let set = |(group, below): (Vec<String>, Vec<JoinedLine>)| {
        below.into_iter().map(move |mut line| {
            if let Some(cell) = line.cells.get_mut(column) {
                *cell = (group.len() < all).then(|| group.clone());
            }
            line
        })
    };
    groups.into_iter().flat_map(set).collect()
}

fn said(values: &[String]) -> String {
    values.iter().map(|value| value.replace('_', " ")).collect::<Vec<_>>().join(", ")
}

fn dash() -> String {
    "–".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_snapshot_is_said_once_and_rightly() {
        let lines = lines();
        let joined = joined(&lines);
        assert_eq!(lines.len(), 768);
        assert!(joined.len() < 60, "{}", joined.len());
        for line in &lines {
            let covers = |joined: &&JoinedLine| {
                let mut cells = joined.cells.iter().zip(&line.cells);
                cells.all(|(cell, value)| cell.as_ref().is_none_or(|values| values.contains(value)))
            };
            let found: Vec<&JoinedLine> = joined.iter().filter(covers).collect();
            assert_eq!(found.len(), 1, "{:?}", line.cells);
            assert_eq!(found[0].then, line.then, "{:?}", line.cells);
        }
    }

    #[test]
    fn the_page_is_fresh() {
        assert!(page() == include_str!("../../docs/policy.md"), "run `cargo xtask docs`");
    }
}
