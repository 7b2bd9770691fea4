//! Which memories say the same: the same words in the same order when nobody minds case, accents, stops, quotation marks
//! and articles; of the same kind, by the same person, with the same tags, source, writer and trust.
//!
//! Word order, numbers, negations and signs are kept: `Ann pays Bob` is not `Bob pays Ann`. Two of one conversation are never
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

/// A text's words, folded, without the articles between them. A large `A` or `LA` may be a name, and so may the last word.
fn normal(text: &str) -> String {
    const ARTICLES: [&str; 17] = [
        "a", "an", "the", "der", "die", "das", "ein", "eine", "le", "la", "les", "un", "une", "el", "los",
        "las", "una",
    ];
    let words: Vec<&str> = text.split_whitespace().map(trimmed).filter(|word| !word.is_empty()).collect();
    let Some((last, before)) = words.split_last() else { return fold(text) };
    let before = before.iter().filter(|word| !ARTICLES.contains(word));
    before.chain([last]).map(|word| fold(word)).collect::<Vec<_>>().join(" ")
}

/// A word without the stops and quotation marks around it. Other marks say something: `C++`, `$500`, `called?`, `-5`.
fn trimmed(word: &str) -> &str {
    let end = word.trim_end_matches(is_stop_or_quote).len();
    // Marks at a number belong to it: .5 is not 5, and 5' is not 5".
    let is_measure = word.get(..end).is_some_and(|kept| kept.ends_with(|last: char| last.is_ascii_digit()))
        && word.get(end..).is_some_and(|marks| marks.starts_with(['\'', '"', '’']));
    let kept = word.get(..if is_measure { word.len() } else { end }).unwrap_or(word);
    let begun = kept.trim_start_matches(is_stop_or_quote);
    let is_fraction = begun.starts_with(|first: char| first.is_ascii_digit())
        && kept.strip_suffix(begun).is_some_and(|marks| marks.ends_with(['.', ',']));
    if is_fraction { kept } else { begun }
}

fn is_stop_or_quote(letter: char) -> bool {
    matches!(
        letter,
        '.' | ',' | ';' | ':' | '!' | '"' | '\'' | '`' | '‘' | '’' | '‚' | '“' | '”' | '„' | '«' | '»'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_differences_are_none() {
        assert_eq!(normal("Ann likes the tea."), normal("ann LIKES tea!"));
        assert_eq!(normal("Café, please"), normal("cafe please"));
        assert_eq!(normal("He said: \"yes\"; then he left"), normal("he said yes, then he left."));
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
            (".5 degrees", "5 degrees"),
            ("5' long", "5\" long"),
            ("knows C++", "knows C"),
            ("knows C#", "knows C"),
            ("knows C++", "knows C#"),
            ("pays $500", "pays €500"),
            ("pays £500", "pays 500"),
            ("5% of it", "5 of it"),
            ("R&D", "R D"),
            ("ask @ann", "ask ann"),
            ("vitamin A", "vitamin"),
            ("vitamin A helps", "vitamin helps"),
            ("vitamin a", "vitamin"),
            ("moved to LA", "moved to"),
            ("moved to LA in May", "moved to in May"),
            ("Bob called?", "Bob called."),
        ] {
            assert_ne!(normal(one), normal(other), "{one} / {other}");
        }
    }
}
