//! Which memories say the same: the same words in the same order when nobody minds case, accents, punctuation and
//! articles; of the same kind, by the same person, with the same tags, source, writer and trust.
//!
//! Word order, numbers and negations are kept: `Ann pays Bob` is not `Bob pays Ann`. Two of one conversation are never
//! alike, since each has its place in it.

use std::collections::BTreeMap;

use embody_store::{Memory, Merge, NumberedMemory};

use crate::reflect::fold;

/// What alike memories have in common, as one text.
pub(super) fn likeness(memory: &Memory) -> String {
    let words = normal(&memory.text);
    let tags = memory.tags.join("\u{1}");
    let parts = [
        words.as_str(),
        memory.kind.as_str(),
        memory.actor.as_deref().unwrap_or("\u{1}"),
        memory.source.as_deref().unwrap_or("\u{1}"),
        memory.writer.as_str(),
        memory.trust.as_str(),
        tags.as_str(),
    ];
    parts.join("\u{2}")
}

/// For each group of alike memories: the newest stays for those within the window before it.
pub(super) fn merges(memories: Vec<NumberedMemory>, window_us: i64) -> Vec<Merge> {
    let mut groups: BTreeMap<String, BTreeMap<i64, Memory>> = BTreeMap::new();
    for NumberedMemory { seq, memory } in memories {
        groups.entry(likeness(&memory)).or_default().insert(seq, memory);
    }
    groups.into_values().flat_map(|group| merged(group, window_us)).collect()
}

fn merged(group: BTreeMap<i64, Memory>, window_us: i64) -> Vec<Merge> {
    let mut merges = Vec::new();
    let mut newest_first = group.into_values().rev();
    let Some(mut kept) = newest_first.next() else { return merges };
    for memory in newest_first {
        let is_near = kept.occurred_at.abs_diff(memory.occurred_at) <= window_us.unsigned_abs();
        let is_same_talk = memory.session.is_some() && memory.session == kept.session;
        if is_near && !is_same_talk {
            merges.push(Merge { kept: kept.id.clone(), forgotten: memory.id, version: memory.version });
        } else {
            kept = memory;
        }
    }
    merges
}

/// A text's words, folded, without articles.
fn normal(text: &str) -> String {
    const ARTICLES: [&str; 17] = [
        "a", "an", "the", "der", "die", "das", "ein", "eine", "le", "la", "les", "un", "une", "el", "los",
        "las", "una",
    ];
    let folded = fold(text);
    // Marks between digits belong to the number: 1.5 is not 15.
    let mut words: Vec<&str> = folded
        .split(|letter: char| letter.is_whitespace())
        .map(trimmed)
        .filter(|word| !word.is_empty())
        .collect();
    let meaningful: Vec<&str> = words.iter().copied().filter(|word| !ARTICLES.contains(word)).collect();
    if !meaningful.is_empty() {
        words = meaningful;
    }
    if words.is_empty() { folded } else { words.join(" ") }
}

/// A word without the marks around it, but with the sign of a number.
fn trimmed(word: &str) -> &str {
    let begun = word.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    let sign = word.get(..word.len() - begun.len()).unwrap_or_default();
    let is_number = begun.starts_with(|letter: char| letter.is_ascii_digit());
    let kept = if is_number && sign.ends_with(['-', '+']) {
        word.get(sign.len() - 1..).unwrap_or(begun)
    } else {
        begun
    };
    kept.trim_end_matches(|letter: char| !letter.is_alphanumeric() && letter != '%')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_differences_are_none() {
        assert_eq!(normal("Ann likes the tea."), normal("ann LIKES tea!"));
        assert_eq!(normal("Café, please"), normal("cafe please"));
    }

    #[test]
    fn what_could_matter_is_kept() {
        for (one, other) in [
            ("Ann pays Bob", "Bob pays Ann"),
            ("costs 1.5", "costs 15"),
            ("he is in", "he is not in"),
            ("the", "a"),
            ("!!", "??"),
            ("-5 degrees", "5 degrees"),
        ] {
            assert_ne!(normal(one), normal(other), "{one} / {other}");
        }
    }
}
