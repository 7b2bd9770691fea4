//! The word lists of reflection, by name. The words stand in `lexicon.txt`; what they mean is said where they are asked.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::sentences::{Word, stands};

const TEXT: &str = include_str!("lexicon.txt");

/// Every group of words, by its name.
static GROUPS: LazyLock<HashMap<&'static str, HashSet<&'static str>>> = LazyLock::new(|| {
    let mut groups: HashMap<&str, HashSet<&str>> = HashMap::new();
    let mut name = "";
    for line in TEXT.lines().map(|line| line.split_once('#').map_or(line, |(before, _)| before).trim()) {
        match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(heading) => name = heading,
            None => {
                let words = line.split(',').map(str::trim).filter(|word| !word.is_empty());
                groups.entry(name).or_default().extend(words);
            }
        }
    }
    groups
});

static IRREGULAR: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let pairs = GROUPS.get("irregular").into_iter().flatten();
    pairs.filter_map(|pair| pair.split_once(' ')).collect()
});

/// Whether the word is in the group.
pub(crate) fn has(group: &str, word: &str) -> bool {
    GROUPS.get(group).is_some_and(|words| words.contains(word))
}

/// How many words the longest phrase of the group has that stands here; nothing if none does.
pub(crate) fn phrase(group: &str, words: &[Word<'_>], at: usize) -> Option<usize> {
    let phrases = GROUPS.get(group)?.iter();
    phrases.filter(|phrase| stands(words, at, phrase)).map(|phrase| phrase.split(' ').count()).max()
}

/// The verb of an irregular past form.
pub(crate) fn irregular(word: &str) -> Option<&'static str> {
    IRREGULAR.get(word).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reflect::sentences::{fold, sentences};

    #[test]
    fn words_are_written_as_they_are_compared() {
        for (group, words) in GROUPS.iter().filter(|(group, _)| !group.is_empty()) {
            assert!(!words.is_empty(), "{group}");
            for word in words {
                assert_eq!(fold(word), **word, "{group}");
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
