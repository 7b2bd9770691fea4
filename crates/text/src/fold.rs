//! Characters in the form in which words are compared: lower case, without accents, with styled letters made plain and
//! without invisible characters. Look-alike letters of other scripts stay: only a word shows whether one is meant.

use unicode_normalization::char::{decompose_compatible, is_combining_mark};

use crate::invisible::{Invisible, kind};
use crate::look_alike::plain_letter;

#[must_use]
pub fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        fold_char(c, &mut |plain| folded.push(plain));
    }
    folded
}

/// The folded words of a text, without what stands between them.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    let folded = fold(text);
    let words = folded.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Calls `emit` with the characters that `c` is compared as: none for an accent, two for `ß`.
pub fn fold_char(c: char, emit: &mut impl FnMut(char)) {
    if c.is_ascii() {
        return emit(c.to_ascii_lowercase());
    }
    if is_unseen(c) || is_accent(c) {
        return;
    }
    // Letters that Unicode does not take apart.
    let plain = match c {
        'ß' | 'ẞ' => "ss",
        'æ' | 'Æ' => "ae",
        'œ' | 'Œ' => "oe",
        'ø' | 'Ø' => "o",
        'đ' | 'Đ' | 'ð' | 'Ð' => "d",
        'ł' | 'Ł' => "l",
        'ı' => "i",
        'ى' => "ي",
        'ة' => "ه",
        '’' | '‘' | 'ʼ' => "'",
        _ => "",
    };
    if !plain.is_empty() {
        return plain.chars().for_each(emit);
    }
    let plain = plain_letter(c).unwrap_or(c);
    let is_hangul = ('\u{ac00}'..='\u{d7a3}').contains(&plain);
    if !plain.is_alphanumeric() || is_hangul {
        return emit(plain);
    }
    let mut is_first = true;
    decompose_compatible(plain, |part| {
        // Vowel signs of Indic scripts are marks as well; only those that belong to a letter are accents.
        if !is_accent(part) && (is_first || !is_combining_mark(part)) {
            part.to_lowercase().filter(|lower| !is_accent(*lower)).for_each(&mut *emit);
        }
        is_first = false;
    });
}

/// Whether `c` takes no room in a word: zero-width and direction marks, selectors, tags, fillers.
#[must_use]
pub fn is_unseen(c: char) -> bool {
    use Invisible::{BrailleBlank, Control, Layout, Private, Separator, Space};
    kind(c).is_some_and(|kind| !matches!(kind, BrailleBlank | Control | Layout | Private | Separator | Space))
}

/// Marks that only decorate a letter.
fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5c7}' | '\u{640}'
        | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{1ab0}'..='\u{1aff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

/// Whether `c` belongs to a script that is written without spaces between words.
#[must_use]
pub fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_compared_without_case_accents_and_style() {
        for (text, folded) in [
            ("Ärger ÉTÉ ñandú Łódź", "arger ete nandu lodz"),
            ("e\u{301}te\u{301}", "ete"),
            ("Straße Œuvre", "strasse oeuvre"),
            ("ｉｇｎｏｒｅ 𝐢𝐠 Ⓘ", "ignore ig i"),
            ("İstanbul ısı", "istanbul isi"),
            ("Её йод", "ее иод"),
            ("إلى الأمان", "الي الامان"),
            ("pass\u{200b}word don’t", "password don't"),
            ("한국어 हिन्दी 日本語", "한국어 हिन्दी 日本語"),
        ] {
            assert_eq!(fold(text), folded);
        }
    }
}
