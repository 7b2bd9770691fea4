//! What a sentence is about, as a set of words that can be compared: `I sent it to Bob` and `send it to Bob` are alike.
//!
//! Small endings are cut and irregular verbs brought home; words that say nothing, and words of time, are left out.

use std::collections::BTreeSet;

use super::lexicon::{has, irregular};
use super::sentences::{fold, sentences};

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
