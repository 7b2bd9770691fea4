//! One spelling for what people write in several ways: case, accents, compatibility forms, digits of other scripts.
//! Folds word by word, by script, because an accent that is decoration in one is a letter in another.

use std::borrow::Cow;

use icu_normalizer::properties::CanonicalCombiningClassMapBorrowed;
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

use embody_text::invisible::{Invisible, kind};

use super::script::Script;

const MARKS: CanonicalCombiningClassMapBorrowed<'static> = CanonicalCombiningClassMapBorrowed::new();

/// The whole text in compatibility composition, so that width, ligatures and composition do not matter.
pub(super) fn compose(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    ComposingNormalizerBorrowed::new_nfkc().normalize(text)
}

/// Whether this character only modifies the one before it.
pub(super) fn is_mark(c: char) -> bool {
    !c.is_ascii() && MARKS.get_u8(c) != 0
}

/// Whether this character is invisible and says nothing about where a word ends.
pub(super) fn is_invisible(c: char) -> bool {
    // A zero-width space is where a word ends.
    c != '\u{200b}' && matches!(kind(c), Some(Invisible::ZeroWidth | Invisible::Joiner | Invisible::Selector))
}

/// A composed word in the one spelling that is indexed and searched.
pub(super) fn fold(word: &str, script: Script) -> String {
    if word.is_ascii() {
        return word.to_ascii_lowercase();
    }
    let lower = word.to_lowercase();
    match script {
        Script::Latin | Script::Greek => {
            let bare = DecomposingNormalizerBorrowed::new_nfd().normalize_iter(lower.chars());
            bare.filter(|c| !is_mark(*c)).fold(String::new(), push_plain)
        }
        Script::Cyrillic | Script::Hebrew | Script::Arabic => {
            lower.chars().filter(|c| !is_mark(*c) && *c != '\u{640}').fold(String::new(), push_plain)
        }
        _ => lower.chars().fold(String::new(), push_plain),
    }
}

fn push_plain(mut folded: String, c: char) -> String {
    match c {
        'ß' => folded.push_str("ss"),
        'æ' => folded.push_str("ae"),
        'œ' => folded.push_str("oe"),
        'þ' => folded.push_str("th"),
        'ø' => folded.push('o'),
        'đ' | 'ð' => folded.push('d'),
        'ł' => folded.push('l'),
        'ħ' => folded.push('h'),
        'ı' => folded.push('i'),
        'ς' => folded.push('σ'),
        'ё' => folded.push('е'),
        _ => folded.push(ascii_digit(c).unwrap_or(c)),
    }
    folded
}

fn ascii_digit(c: char) -> Option<char> {
    let code = u32::from(c);
    let zero = [0x660, 0x6f0, 0x966].into_iter().find(|zero| (*zero..zero + 10).contains(&code))?;
    char::from_digit(code - zero, 10)
}
