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
//! | [`dates`] | the one reader of dates and times |
//! | [`lists`] | named lists in a data file |
//! | [`decode`] | text that is encoded in text |
//! | [`secrets`] | the one detector of credentials |
//! | [`invisible`] | the one table of characters that a person does not see, by kind |
//! | [`look_alike`] | the one table of characters that pass for a plain Latin letter |
//! | [`visible`] | text that hides nothing from a person who decides by it, or reads it on a terminal |

pub mod calendar;
pub mod dates;
pub mod decode;
mod document;
pub mod fold;
pub mod invisible;
pub mod lexicon;
pub mod lists;
pub mod look_alike;
mod patterns;
mod phrases;
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

    /// Source that a second tokenizer, pattern engine, accent table, decoder, calendar or detector of credentials would have.
    const COPIES: [&str; 10] = [
        "fn tokenize",
        "fn sentences(",
        "struct Pattern {",
        "'ñ' =>",
        "b'A'..=b'Z' =>",
        "\"ghp_",
        "BEGIN OPENSSH",
        "january",
        "montag",
        "\"fortnight",
    ];

    #[test]
    fn there_is_one_of_each() {
        let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut found = Vec::new();
        for entry in std::fs::read_dir(crates).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("text") {
                find_copies(&path.join("src"), &mut found);
            }
        }
        assert!(found.is_empty(), "use embody_text: {found:?}");
    }

    fn find_copies(folder: &std::path::Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                find_copies(&path, found);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                let copies = COPIES.iter().filter(|copy| code.contains(**copy));
                found.extend(copies.map(|copy| format!("{}: {copy}", path.display())));
            }
        }
    }

    #[test]
    fn texts_are_limited_by_characters() {
        assert_eq!((truncate("añb", 2), truncate("añ", 2)), ("añ…".into(), "añ".into()));
        assert_eq!(without_control("a\u{1b}\nñb", 2), "añ");
    }
}
