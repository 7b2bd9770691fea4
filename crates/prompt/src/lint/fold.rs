//! One character to the plain form it stands for: lower case, no accents, no look-alikes, nothing invisible.
//! Owns the folding of accents; knows nothing of words.

use embody_text::invisible::{Invisible, kind};
use embody_text::look_alike::plain_letter;

use crate::escape::is_suspect;

pub(super) enum Folded {
    Nothing,
    One(char),
    Two(char, char),
}

/// Lower case, without accents, with styled Latin letters made plain.
pub(super) fn fold(c: char) -> Folded {
    if c.is_ascii() {
        return Folded::One(c.to_ascii_lowercase());
    }
    if is_invisible(c) || is_mark(c) {
        return Folded::Nothing;
    }
    match c {
        'ß' => return Folded::Two('s', 's'),
        'æ' | 'Æ' => return Folded::Two('a', 'e'),
        'œ' | 'Œ' => return Folded::Two('o', 'e'),
        'İ' => return Folded::One('i'),
        _ => {}
    }
    let styled = plain_letter(c).unwrap_or(c);
    let lower = styled.to_lowercase().next().unwrap_or(styled);
    Folded::One(without_accent(lower))
}

pub(super) fn is_invisible(c: char) -> bool {
    !c.is_control() && is_suspect(c) && kind(c) != Some(Invisible::BrailleBlank)
}

/// Whether `c` belongs to a script that is written without spaces between words.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

pub(super) fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5c7}' | '\u{640}'
        | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{1ab0}'..='\u{1aff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

fn without_accent(c: char) -> char {
    match c {
        'à'..='å' | 'ā' | 'ă' | 'ą' | 'ạ'..='ặ' => 'a',
        'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' => 'c',
        'ď' | 'đ' | 'ð' => 'd',
        'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' => 'e',
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => 'g',
        'ì'..='ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ı' => 'i',
        'ĺ' | 'ļ' | 'ľ' | 'ł' => 'l',
        'ñ' | 'ń' | 'ņ' | 'ň' => 'n',
        'ò'..='ö' | 'ø' | 'ō' | 'ŏ' | 'ő' => 'o',
        'ŕ' | 'ŗ' | 'ř' => 'r',
        'ś' | 'ŝ' | 'ş' | 'š' | 'ș' => 's',
        'ţ' | 'ť' | 'ț' => 't',
        'ù'..='ü' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' => 'u',
        'ý' | 'ÿ' => 'y',
        'ź' | 'ż' | 'ž' => 'z',
        'ё' => 'е',
        'й' => 'и',
        'أ' | 'إ' | 'آ' | 'ٱ' => 'ا',
        'ى' => 'ي',
        'ة' => 'ه',
        _ => c,
    }
}
