//! One character to the plain form it stands for: lower case, no accents, no look-alikes, nothing invisible.
//! Owns the folding tables; knows nothing of words.

/// The plain form of one character.
pub(super) enum Folded {
    /// Leaves no trace in a word.
    Nothing,
    /// One plain character.
    One(char),
    /// Two plain characters.
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

/// Characters that take no room on a screen.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}')
}

/// The Latin letter that a Cyrillic, Greek or other letter looks like.
pub(super) fn look_alike(c: char) -> Option<char> {
    let position = LOOK_ALIKES.iter().find(|(_, same)| same.contains(c));
    position.map(|(latin, _)| *latin)
}

/// Whether `c` belongs to a script that is written without spaces between words.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// Whether `c` is a letter written from right to left.
pub(super) fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

const LOOK_ALIKES: [(char, &str); 26] = [
    ('a', "аαɑ"),
    ('b', "ьвβ"),
    ('c', "сϲ"),
    ('d', "ԁ"),
    ('e', "еєεҽ"),
    ('f', "ƒ"),
    ('g', "ɡց"),
    ('h', "һн"),
    ('i', "іιɩӏ"),
    ('j', "ј"),
    ('k', "кκ"),
    ('l', "ⅼǀ"),
    ('m', "мⅿ"),
    ('n', "пηո"),
    ('o', "оοσօ"),
    ('p', "рρ"),
    ('q', "ԛ"),
    ('r', "гʀ"),
    ('s', "ѕꜱ"),
    ('t', "тτ"),
    ('u', "υцս"),
    ('v', "νѵ"),
    ('w', "ԝωш"),
    ('x', "хχ"),
    ('y', "уγү"),
    ('z', "ᴢ"),
];

/// Accents and vowel points that follow their letter.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5c7}' | '\u{640}'
        | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{1ab0}'..='\u{1aff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

/// Full-width, circled, squared and mathematical Latin letters and digits.
fn plain_letter(c: char) -> Option<char> {
    let code = u32::from(c);
    let letter = |offset: u32| char::from_u32(u32::from('a') + offset % 26);
    match code {
        0xff01..=0xff5e => char::from_u32(code - 0xfee0),
        0x3000 => Some(' '),
        0x249c..=0x24b5 => letter(code - 0x249c),
        0x24b6..=0x24e9 => letter(code - 0x24b6),
        0x1d400..=0x1d6a3 => letter(code - 0x1d400),
        0x1d7ce..=0x1d7ff => char::from_u32(u32::from('0') + (code - 0x1d7ce) % 10),
        0x1f110..=0x1f129 => letter(code - 0x1f110),
        0x1f130..=0x1f149 => letter(code - 0x1f130),
        0x1f150..=0x1f169 => letter(code - 0x1f150),
        0x1f170..=0x1f189 => letter(code - 0x1f170),
        _ => SMALL_CAPITALS.iter().find(|(small, _)| *small == c).map(|(_, plain)| *plain),
    }
}

const SMALL_CAPITALS: [(char, char); 24] = [
    ('ᴀ', 'a'),
    ('ʙ', 'b'),
    ('ᴄ', 'c'),
    ('ᴅ', 'd'),
    ('ᴇ', 'e'),
    ('ꜰ', 'f'),
    ('ɢ', 'g'),
    ('ʜ', 'h'),
    ('ɪ', 'i'),
    ('ᴊ', 'j'),
    ('ᴋ', 'k'),
    ('ʟ', 'l'),
    ('ᴍ', 'm'),
    ('ɴ', 'n'),
    ('ᴏ', 'o'),
    ('ᴘ', 'p'),
    ('ʀ', 'r'),
    ('ꜱ', 's'),
    ('ᴛ', 't'),
    ('ᴜ', 'u'),
    ('ᴠ', 'v'),
    ('ᴡ', 'w'),
    ('ʏ', 'y'),
    ('ᴢ', 'z'),
];

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
