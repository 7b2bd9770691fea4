//! The word lists of reflection, by name. The words stand in `lexicon.txt`; what they mean is said where they are asked.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::sentences::{Word, lower, reads_at};

const TEXT: &str = include_str!("lexicon.txt");

/// The words and phrases of a group; phrases also by their first word, so that asking costs the same however many there are.
#[derive(Default)]
struct Group {
    all: HashSet<&'static str>,
    by_first: HashMap<&'static str, Vec<&'static str>>,
}

static GROUPS: LazyLock<HashMap<&'static str, Group>> = LazyLock::new(|| {
    let mut groups: HashMap<&str, Group> = HashMap::new();
    let mut name = "";
    for line in TEXT.lines().map(|line| line.split_once('#').map_or(line, |(before, _)| before).trim()) {
        if let Some(heading) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            name = heading;
            continue;
        }
        for entry in line.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let group = groups.entry(name).or_default();
            group.all.insert(entry);
            group.by_first.entry(entry.split(' ').next().unwrap_or(entry)).or_default().push(entry);
        }
    }
    groups
});

static IRREGULAR: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let pairs = GROUPS.get("irregular").into_iter().flat_map(|group| &group.all);
    pairs.filter_map(|pair| pair.split_once(' ')).collect()
});

pub(crate) fn has(group: &str, word: &str) -> bool {
    GROUPS.get(group).is_some_and(|group| group.all.contains(word))
}

/// How many words the longest phrase of the group has that stands here; nothing if none does.
pub(crate) fn phrase(group: &str, words: &[Word<'_>], at: usize) -> Option<usize> {
    let phrases = GROUPS.get(group)?.by_first.get(lower(words, at))?.iter();
    phrases.filter(|phrase| reads_at(words, at, phrase)).map(|phrase| phrase.split(' ').count()).max()
}

pub(crate) fn irregular(word: &str) -> Option<&'static str> {
    IRREGULAR.get(word).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reflect::sentences::{fold, sentences};

    #[test]
    fn words_are_written_as_they_are_compared() {
        assert!(!GROUPS.contains_key(""), "an entry stands before the first heading");
        for (name, group) in GROUPS.iter() {
            for word in &group.all {
                assert_eq!(fold(word), *word, "{name}");
            }
        }
    }

    #[test]
    fn the_longest_phrase_counts() {
        let said = sentences("Could you please stop");
        assert_eq!(phrase("courtesy", &said[0].words, 0), Some(3));
        assert_eq!(
            (irregular("sent"), has("empty", "the"), has("nothing", "the")),
            (Some("send"), true, false)
        );
    }
}
