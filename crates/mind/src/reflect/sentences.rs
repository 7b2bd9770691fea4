//! A text as sentences of words, with the meanings of `words.txt`, and the keywords of a sentence, by which `I sent it to Bob`
//! and `send it to Bob` are alike.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use embody_text::fold::fold;
use embody_text::rules::{Phrase, RuleSet};
use embody_text::tokenize::{Gap, Options, Quote, Token, tokenize};

const MAX_SENTENCES: usize = 1000;
const MAX_WORDS: usize = 120;

const WORDS: Options = Options { apostrophes: true, numbers: true, lines: true, ..Options::PLAIN };

static RULES: LazyLock<RuleSet> = LazyLock::new(|| RuleSet::parse(&[include_str!("words.txt")]));

#[derive(Clone, Debug)]
pub(crate) struct Sentence<'t> {
    pub(crate) text: &'t str,
    /// Each with its place in this sentence.
    pub(crate) words: Vec<Token<'t>>,
    pub(crate) is_question: bool,
}

/// The sentences of a text, without quotations, quoted lines and code.
pub(crate) fn read(text: &str) -> Vec<Sentence<'_>> {
    let doc = tokenize(text, WORDS);
    let sentence = |sentence: &embody_text::tokenize::Sentence| {
        let mut words: Vec<Token<'_>> = Vec::new();
        let mut is_after_quotation = false;
        for token in doc.tokens.get(sentence.tokens.clone())?.iter().take(MAX_WORDS) {
            if token.quote == Quote::None {
                let gap = match () {
                    () if is_after_quotation => Gap::Soft,
                    () if words.is_empty() => Gap::Space,
                    () => token.gap,
                };
                words.push(Token { start: token.start - sentence.bytes.start, gap, ..token.clone() });
            }
            is_after_quotation = token.quote != Quote::None;
        }
        let text = text.get(sentence.bytes.clone())?;
        let is_question = sentence.ending == Some('?');
        (!words.is_empty()).then_some(Sentence { text, words, is_question })
    };
    doc.sentences.iter().take(MAX_SENTENCES).filter_map(sentence).collect()
}

/// The small form of the word at this place; empty beyond the end.
pub(crate) fn lower<'w>(words: &'w [Token<'_>], index: usize) -> &'w str {
    words.get(index).map_or("", |token| token.word.as_str())
}

/// Whether a comma, a dash, a quotation or the like stands before a word.
pub(crate) fn is_after_break(token: &Token<'_>) -> bool {
    token.gap >= Gap::Soft
}

pub(crate) fn reads_at(words: &[Token<'_>], index: usize, phrase: &str) -> bool {
    phrase.split(' ').enumerate().all(|(offset, word)| lower(words, index + offset) == word)
}

/// Whether a word is of a class of `words.txt`.
pub(crate) fn has(class: &str, word: &str) -> bool {
    RULES.lexicon.lookup(word).has(RULES.lexicon.class(class))
}

/// How many words the longest phrase of the list has that stands here.
pub(crate) fn phrase(list: &str, words: &[Token<'_>], at: usize) -> Option<usize> {
    phrase_of(words, at, |name| name == list).map(|phrase| phrase.words.len())
}

/// The longest phrase of the lists that stands here.
pub(crate) fn phrase_of(
    words: &[Token<'_>],
    at: usize,
    is_wanted: impl Fn(&str) -> bool,
) -> Option<&'static Phrase> {
    RULES.phrase(words.get(at..)?, is_wanted)
}

/// The verb of a past form: `send` for `sent`.
fn irregular(word: &str) -> Option<&'static str> {
    let forms = RULES.phrases_starting_with(word).iter().find(|phrase| phrase.name == "irregular")?;
    forms.words.get(1).map(String::as_str)
}

/// The words that matter in a text, as they are compared.
pub(crate) fn keywords(text: &str) -> BTreeSet<String> {
    let sentences = read(text);
    sentences
        .iter()
        .flat_map(|sentence| &sentence.words)
        .filter_map(|word| normalize_word(&word.word))
        .collect()
}

/// The form in which a word is compared; nothing if it says nothing.
pub(crate) fn normalize_word(word: &str) -> Option<String> {
    let word = word.strip_suffix("'s").unwrap_or(word);
    (!has("EMPTY", word) && !word.is_empty()).then(|| stem(word))
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

    fn lows(text: &str) -> Vec<Vec<String>> {
        read(text).iter().map(|s| s.words.iter().map(|word| word.word.clone()).collect()).collect()
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
        assert!(read("Ok? Yes.")[0].is_question && !read("Ok? Yes.")[1].is_question);
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
    fn words_are_well_formed() {
        assert_eq!(RULES.problems(), [""; 0]);
    }

    #[test]
    fn the_longest_phrase_counts() {
        let said = read("Could you please stop");
        assert_eq!(phrase("courtesy", &said[0].words, 0), Some(3));
        assert_eq!(
            (irregular("sent"), has("EMPTY", "the"), has("NOTHING", "the")),
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
