//! Word to meaning. Owns lookup and English inflection; the words are tables in `english` and `languages`.
//! A table line is `KINDS: words`; a word that ends in `*` stands for everything that begins with it.

mod english;
mod languages;

use std::collections::HashMap;
use std::sync::OnceLock;

use super::kinds::Kinds;

const MAX_STEM_CHARS: usize = 16;
const MIN_STEM_CHARS: usize = 3;

/// What `word` (already folded) means; empty for most words.
pub(super) fn kinds_of(word: &str) -> Kinds {
    let lexicon = lexicon();
    let exact = lexicon.words.get(word).copied().unwrap_or_default();
    let known = if exact.is_empty() { lexicon.inflected(word) } else { exact };
    if known.is_empty() { lexicon.by_stem(word) } else { known }
}

/// Whether `word` is one of the plain words of the tables.
pub(super) fn knows(word: &str) -> bool {
    let lexicon = lexicon();
    lexicon.words.contains_key(word) || !lexicon.inflected(word).is_empty()
}

struct Lexicon {
    words: HashMap<&'static str, Kinds>,
    stems: HashMap<&'static str, Kinds>,
}

fn lexicon() -> &'static Lexicon {
    static LEXICON: OnceLock<Lexicon> = OnceLock::new();
    LEXICON.get_or_init(|| {
        let mut lexicon = Lexicon { words: HashMap::new(), stems: HashMap::new() };
        for table in [english::VERBS, english::THINGS, english::PEOPLE, english::SMALL, english::TRADES] {
            lexicon.add(table, Kinds::none());
        }
        for table in [languages::GERMANIC, languages::ROMANCE, languages::OTHERS] {
            lexicon.add(table, Kinds::FOREIGN);
        }
        lexicon
    })
}

impl Lexicon {
    fn add(&mut self, table: &'static str, always: Kinds) {
        for line in table.lines() {
            let Some((names, words)) = line.split_once(':') else { continue };
            let kinds =
                names.split_whitespace().filter_map(Kinds::named).fold(always, |all, kind| all | kind);
            for word in words.split_whitespace() {
                let entry = match word.strip_suffix('*') {
                    Some(stem) => self.stems.entry(stem),
                    None => self.words.entry(word),
                };
                let known = entry.or_default();
                // An English word keeps its English meaning when another language spells a word the same way.
                *known = if known.is_empty() { kinds } else { *known | kinds.without(Kinds::FOREIGN) };
            }
        }
    }

    fn by_stem(&self, word: &str) -> Kinds {
        let ends = word.char_indices().map(|(at, c)| at + c.len_utf8()).take(MAX_STEM_CHARS);
        ends.skip(MIN_STEM_CHARS - 1)
            .filter_map(|end| self.stems.get(word.get(..end)?))
            .fold(Kinds::none(), |all, &kinds| all | kinds)
    }

    /// English endings: `-s`, `-ed`, `-ing`, with the spelling changes that go with them.
    fn inflected(&self, word: &str) -> Kinds {
        if !word.is_ascii() || word.len() < 4 {
            return Kinds::none();
        }
        let endings = [("ies", "y", Kinds::THIRD), ("s", "", Kinds::THIRD), ("es", "", Kinds::THIRD)];
        let past = [("ied", "y", Kinds::PAST), ("d", "", Kinds::PAST), ("ed", "", Kinds::PAST)];
        let gerund = [("ing", "e", Kinds::GERUND), ("ing", "", Kinds::GERUND)];
        for (ending, restored, form) in endings.into_iter().chain(past).chain(gerund) {
            let Some(stem) = word.strip_suffix(ending) else { continue };
            let base = format!("{stem}{restored}");
            let undoubled = if form == Kinds::THIRD { "" } else { undouble(stem) };
            let found = self.words.get(base.as_str()).or_else(|| self.words.get(undoubled));
            if let Some(&kinds) = found.filter(|kinds| !kinds.has(Kinds::FOREIGN)) {
                return kinds | form;
            }
        }
        Kinds::none()
    }
}

/// `skipp` to `skip`; nothing when the last letter is not doubled.
fn undouble(stem: &str) -> &str {
    let mut back = stem.chars().rev();
    match (back.next(), back.next()) {
        (Some(last), Some(before)) if last == before => {
            stem.get(..stem.len() - last.len_utf8()).unwrap_or_default()
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_lead_back_to_the_word() {
        for (word, form) in [("skips", Kinds::THIRD), ("skipped", Kinds::PAST), ("skipping", Kinds::GERUND)] {
            assert!(kinds_of(word).has(Kinds::CHANGE) && kinds_of(word).has(form), "{word}");
        }
        assert!(kinds_of("policies").has(Kinds::RULE));
        assert!(kinds_of("ignoring").has(Kinds::DISMISS));
        assert!(!kinds_of("notes").has(Kinds::NEG));
    }

    #[test]
    fn tables_name_only_known_meanings() {
        let english = [english::VERBS, english::THINGS, english::PEOPLE, english::SMALL, english::TRADES];
        let others = [languages::GERMANIC, languages::ROMANCE, languages::OTHERS];
        for line in english.into_iter().chain(others).flat_map(str::lines).filter(|line| !line.is_empty()) {
            let (names, _) = line.split_once(':').unwrap();
            assert!(names.split_whitespace().all(|name| Kinds::named(name).is_some()), "{line}");
        }
    }

    #[test]
    fn an_english_word_keeps_its_meaning_among_foreign_stems() {
        assert!(!kinds_of("instructions").has(Kinds::FOREIGN));
        assert!(kinds_of("instructies").has(Kinds::FOREIGN));
    }
}
