//! A unified diff of two texts for a person: invisible characters are shown. Pure and bounded.

use std::fmt::Write;

use embody_prompt::hidden_characters;

const CONTEXT_LINES: usize = 2;
const MAX_LINES: usize = 60;
const MAX_CHARS: usize = 200;
/// A larger middle is shown as replaced: comparing it would take too long.
const MAX_COMPARED: usize = 1_000_000;

/// A unified diff: lines with ` `, `-` or `+` before them, under `@@` lines; empty when nothing changes. Long ones are cut.
pub(crate) fn unified(before: &str, after: &str) -> String {
    render(before, after, MAX_LINES, MAX_CHARS)
}

/// The same without limits, for a person who decides about the change.
pub fn full(before: &str, after: &str) -> String {
    render(before, after, usize::MAX, usize::MAX)
}

fn render(before: &str, after: &str, most_lines: usize, most_chars: usize) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let edits = edits(&old, &new);
    let changes = |index: usize| edits.get(index).is_some_and(|edit| edit.sign != ' ');
    let mut out = String::new();
    let mut shown = 0;
    let mut last = None;
    for (index, edit) in edits.iter().enumerate() {
        if !(index.saturating_sub(CONTEXT_LINES)..=index + CONTEXT_LINES).any(changes) {
            continue;
        }
        if shown == most_lines {
            let more = edits.iter().skip(index).filter(|edit| edit.sign != ' ').count();
            let _ = writeln!(out, "… {more} more changed lines");
            break;
        }
        if last.is_none_or(|last| last + 1 < index) {
            let _ = writeln!(out, "@@ -{} +{} @@", edit.old + 1, edit.new + 1);
        }
        let _ = writeln!(out, "{}{}", edit.sign, visible_line(edit.line, most_chars));
        (shown, last) = (shown + 1, Some(index));
    }
    out
}

/// A line that is kept (` `), removed or added, and its index in both texts.
struct Edit<'a> {
    sign: char,
    line: &'a str,
    old: usize,
    new: usize,
}

fn edits<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Edit<'a>> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = |lines: &[&'a str]| -> Vec<&'a str> { lines.iter().skip(head).copied().collect() };
    let (a, b) = (rest(old), rest(new));
    let tail = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    let (removed, added) = (a.len() - tail, b.len() - tail);
    let common = if removed.saturating_mul(added) > MAX_COMPARED {
        Vec::new()
    } else {
        common(&a, &b, removed, added)
    };
    let mut edits = Vec::new();
    let (mut i, mut j) = (0, 0);
    let mut push = |sign, line, old, new| edits.push(Edit { sign, line, old, new });
    old.iter().take(head).enumerate().for_each(|(at, line)| push(' ', line, at, at));
    for (keep_old, keep_new) in common.into_iter().chain([(removed, added)]) {
        a.iter()
            .take(keep_old)
            .skip(i)
            .enumerate()
            .for_each(|(at, line)| push('-', line, head + i + at, head + j));
        b.iter()
            .take(keep_new)
            .skip(j)
            .enumerate()
            .for_each(|(at, line)| push('+', line, head + keep_old, head + j + at));
        if let Some(line) = a.get(keep_old).filter(|_| keep_old < removed) {
            push(' ', line, head + keep_old, head + keep_new);
        }
        (i, j) = (keep_old + 1, keep_new + 1);
    }
    a.iter()
        .skip(removed)
        .enumerate()
        .for_each(|(at, line)| push(' ', line, head + removed + at, head + added + at));
    edits
}

/// The indexes of the longest common subsequence of the first `n` and `m` lines.
fn common(a: &[&str], b: &[&str], n: usize, m: usize) -> Vec<(usize, usize)> {
    let width = m + 1;
    let mut lengths = vec![0_u32; (n + 1) * width];
    let at = |lengths: &[u32], i: usize, j: usize| lengths.get(i * width + j).copied().unwrap_or(0);
    for i in (0..n).rev() {
        for j in (0..m).rev() {
            let best = if a.get(i) == b.get(j) {
                at(&lengths, i + 1, j + 1) + 1
            } else {
                at(&lengths, i + 1, j).max(at(&lengths, i, j + 1))
            };
            if let Some(cell) = lengths.get_mut(i * width + j) {
                *cell = best;
            }
        }
    }
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    while i < n && j < m {
        if a.get(i) == b.get(j) {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if at(&lengths, i + 1, j) >= at(&lengths, i, j + 1) {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

/// A line for a person: truncated, with escapes for invisible characters.
fn visible_line(line: &str, most_chars: usize) -> String {
    let cut = line.char_indices().nth(most_chars).and_then(|(end, _)| line.get(..end));
    let text = cut.unwrap_or(line);
    let mut out = String::with_capacity(text.len());
    let hides = hidden_characters(text) > 0;
    for c in text.chars() {
        if hides && hidden_characters(c.encode_utf8(&mut [0; 4])) > 0 || c.is_control() && c != '\t' {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    if cut.is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_change_is_shown_with_what_is_around_it() {
        let before = "one\ntwo\nthree\nfour\nfive\nsix\n";
        let after = "one\ntwo\n3\nfour\nfive\nsix\nseven\n";
        assert_eq!(
            unified(before, after),
            "@@ -1 +1 @@\n one\n two\n-three\n+3\n four\n five\n six\n+seven\n"
        );
        assert_eq!(unified("", "new"), "@@ -1 +1 @@\n+new\n");
        assert_eq!(unified("old", ""), "@@ -1 +1 @@\n-old\n");
        assert_eq!(unified("same", "same"), "");
    }

    #[test]
    fn far_changes_stand_apart_and_much_is_cut() {
        let before: String = (0..40).map(|n| format!("{n}\n")).collect();
        let after = before.replace("5\n", "five\n").replacen("20\n", "twenty\n", 1);
        assert!(unified(&before, &after).matches("@@ -").count() > 1);
        let long = unified("", &"x\n".repeat(30_000));
        assert!(
            long.lines().count() == MAX_LINES + 2 && long.ends_with("… 29940 more changed lines\n"),
            "{long}"
        );
        assert!(unified("a", &"b".repeat(5000)).chars().count() < 300);
        let large = unified(&"a\n".repeat(3000), &"b\n".repeat(3000));
        assert!(large.ends_with("more changed lines\n"));
    }

    #[test]
    fn who_has_to_say_yes_sees_all_of_it() {
        let after = format!("{}and obey Eve\n", "x\n".repeat(500));
        assert!(full("", &after).ends_with("+and obey Eve\n") && !unified("", &after).contains("Eve"));
        let after = format!("{} obey Eve", "x".repeat(500));
        assert!(full("", &after).ends_with(" obey Eve\n") && !unified("", &after).contains("Eve"));
        assert_eq!(full("", "a\u{202e}b\u{1b}[0m"), "@@ -1 +1 @@\n+a\\u{202e}b\\u{1b}[0m\n");
    }

    proptest! {
        #[test]
        fn the_edits_make_one_text_of_the_other(old in "[abc\n]{0,40}", new in "[abc\n]{0,40}") {
            let (a, b): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
            let edits = edits(&a, &b);
            let side = |sign| -> Vec<&str> {
                edits.iter().filter(|edit| edit.sign == ' ' || edit.sign == sign).map(|edit| edit.line).collect()
            };
            prop_assert_eq!(side('-'), a);
            prop_assert_eq!(side('+'), b);
        }
    }
}
