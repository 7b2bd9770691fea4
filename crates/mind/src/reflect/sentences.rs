//! A text as sentences of words. Also the word lists (`lexicon.txt`) and the
//! keywords of a sentence, by which `I sent it to Bob` and `send it to Bob` are alike.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;

pub(crate) use embody_text::fold::fold;
use embody_text::tokenize::{Gap, Options, Quote, tokenize};

const MAX_SENTENCES: usize = 1000;
const MAX_WORDS: usize = 120;

#[derive(Clone, Debug)]
pub(crate) struct Sentence<'t> {
    pub(crate) text: &'t str,
    pub(crate) words: Vec<Word<'t>>,
    pub(crate) is_question: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Word<'t> {
    pub(crate) text: &'t str,
    /// In small letters without accents, with a straight apostrophe.
    pub(crate) lower: String,
    /// Where it begins and ends in its sentence, in bytes.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Whether a comma, a dash or the like stands before it.
    pub(crate) after_break: bool,
}

/// The sentences of a text, without quotations, quoted lines and code.
pub(crate) fn sentences(text: &str) -> Vec<Sentence<'_>> {
    let options = Options { apostrophes: true, numbers: true, lines: true, ..Options::default() };
    let doc = tokenize(text, options);
    let read = |sentence: &embody_text::tokenize::Sentence| {
        let begin = sentence.bytes.start;
        let mut words: Vec<Word<'_>> = Vec::new();
        let mut after_quotation = false;
        for token in doc.tokens.get(sentence.tokens.clone())?.iter().take(MAX_WORDS) {
            if token.quote != Quote::None {
                after_quotation = true;
                continue;
            }
            words.push(Word {
                text: token.text,
                lower: token.word.clone(),
                start: token.start - begin,
                end: token.end() - begin,
                after_break: !words.is_empty() && token.gap >= Gap::Soft || after_quotation,
            });
            after_quotation = false;
        }
        let text = text.get(sentence.bytes.clone())?;
        let is_question = sentence.ending == Some('?');
        (!words.is_empty()).then_some(Sentence { text, words, is_question })
    };
    doc.sentences.iter().take(MAX_SENTENCES).filter_map(read).collect()
}

/// The small form of the word at this place; empty beyond the end.
pub(crate) fn lower<'w>(words: &'w [Word<'_>], index: usize) -> &'w str {
    words.get(index).map_or("", |word| word.lower.as_str())
}

pub(crate) fn reads_at(words: &[Word<'_>], index: usize, phrase: &str) -> bool {
    phrase.split(' ').enumerate().all(|(offset, word)| lower(words, index + offset) == word)
}

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

/// The words that matter in a text, as they are compared.
pub(crate) fn keywords(text: &str) -> BTreeSet<String> {
    let sentences = sentences(text);
    sentences
        .iter()
        .flat_map(|sentence| &sentence.words)
        .filter_map(|word| normalize_word(&word.lower))
        .collect()
}

/// The form in which a word is compared; nothing if it says nothing.
pub(crate) fn normalize_word(word: &str) -> Option<String> {
    let word = word.strip_suffix("'s").unwrap_or(word);
    (!has("empty", word) && !word.is_empty()).then(|| stem(word))
}

/// The base form of a past tense, if this is one of English or a German participle.
pub(crate) fn base_of_past(word: &str) -> Option<String> {
    let is_past = word.len() > 4 && word.ends_with("ed") && !word.ends_with("eed");
    (is_past || irregular(word).is_some()).then(|| stem(word))
}

/// One word for all forms of a word, roughly.
pub(crate) fn stem(word: &str) -> String {
    let word = fold(word);
    let word = irregular(&word).unwrap_or(&word);
    if word.len() < 4 || word.bytes().any(|byte| byte.is_ascii_digit()) {
        return word.to_owned();
    }
    for ending in ["ing", "ied", "ies", "ed", "en", "es", "s", "e", "y"] {
        let Some(base) = word.strip_suffix(ending) else { continue };
        if base.len() < 3 || (ending == "s" && base.ends_with('s')) {
            continue;
        }
        // `Stopped` is `stop`.
        let mut letters = base.chars().rev();
        let (last, before) = (letters.next(), letters.next());
        let doubled = matches!(ending, "ing" | "ed") && last == before && !matches!(last, Some('l' | 's'));
        let base = if doubled { base.get(..base.len() - 1).unwrap_or(base) } else { base };
        return base.trim_end_matches(['e', 'i', 'y']).to_owned();
    }
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reflect::sentences::{fold, sentences};

    fn lows(text: &str) -> Vec<Vec<String>> {
        sentences(text).iter().map(|s| s.words.iter().map(|word| word.lower.clone()).collect()).collect()
    }

    #[test]
    fn sentences_end_where_people_end_them() {
        assert_eq!(lows("I'll call Dr. Weiss. Bis 3. Dezember!").len(), 2);
        assert_eq!(lows("At 9:30 on 2026-11-03. Ok?"), [vec!["at", "9:30", "on", "2026-11-03"], vec!["ok"]]);
        for two in [
            "Tomorrow at 9. And call.",
            "At 9 a.m. Please call.",
            "Um 9. Dann kommt Bob.",
            "It costs 12. I pay.",
        ] {
            assert_eq!(lows(two).len(), 2, "{two}");
        }
        for one in
            ["1. Call Bob", "der 2. Entwurf", "at 9. then", "5 p.m. CET", "3 p.m. Friday", "am 3. März"]
        {
            assert_eq!(lows(one).len(), 1, "{one}");
        }
        assert!(sentences("Ok? Yes.")[0].is_question && !sentences("Ok? Yes.")[1].is_question);
    }

    #[test]
    fn the_words_of_others_are_left_out() {
        assert_eq!(
            lows("> I'll come\n```\nI'll run\n```\nHe said \"I'll go\" twice"),
            [["he", "said", "twice"]]
        );
        assert_eq!(lows("5\" is short").len(), 1);
    }

    #[test]
    fn little_french_words_stand_alone() {
        assert_eq!(lows("J’appellerai aujourd'hui, I’ll"), [["j", "appellerai", "aujourd'hui", "i'll"]]);
    }

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

    #[test]
    fn forms_of_a_word_are_one_word() {
        for (one, other) in [
            ("sent", "send"),
            ("called", "calling"),
            ("invoices", "invoice"),
            ("reviewing", "review"),
            ("paid", "pay"),
            ("flights", "flight"),
            ("stopped", "stop"),
            ("fixed", "fix"),
            ("bezahlt", "bezahlen"),
            ("replied", "reply"),
            ("wrote", "write"),
            ("cancelled", "cancel"),
            ("put", "put"),
        ] {
            assert_eq!(stem(one), stem(other), "{one} {other}");
        }
        assert_ne!(stem("report"), stem("rent"));
        assert_eq!(keywords("I'll send it to Bob tomorrow"), keywords("Sent to Bob"));
    }
}
