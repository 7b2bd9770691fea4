//! Text: its characters, what a person sees of them, its words, and rules over words. Pure: no IO, no clock, no knowledge of
//! prompts, tools or terminals.
//!
//! | module | owns |
//! |---|---|
//! | [`tokenize`] | the one tokenizer: words in sentences, with what stands between them |
//! | [`fold`] | the form in which words are compared: without case, accents, style and invisible characters |
//! | [`lexicon`] | word classes, inflection, words in disguise |
//! | [`rules`] | the one pattern engine: rules in data files, with examples that are checked |
//! | [`calendar`] | names of months and weekdays |
//! | [`decode`] | text that is encoded in text |
//! | [`secrets`] | the one detector of credentials |
//! | [`invisible`] | the one table of characters that a person does not see, by kind |
//! | [`look_alike`] | the one table of characters that pass for a plain Latin letter |
//! | [`visible`] | text that hides nothing from a person who decides by it, or reads it on a terminal |

pub mod calendar;
pub mod decode;
mod document;
pub mod fold;
pub mod invisible;
pub mod lexicon;
pub mod look_alike;
mod patterns;
pub mod rules;
pub mod secrets;
mod spelling;
pub mod tokenize;
pub mod visible;

pub use spelling::without_digits;

/// At most `limit` characters, and `…` if the text is longer.
#[must_use]
pub fn truncate(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
    }
}

/// The first `limit` characters that are not control characters, for a name in a message.
#[must_use]
pub fn without_control(text: &str, limit: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_limited_by_characters() {
        assert_eq!((truncate("añb", 2), truncate("añ", 2)), ("añ…".into(), "añ".into()));
        assert_eq!(without_control("a\u{1b}\nñb", 2), "añ");
    }
}
