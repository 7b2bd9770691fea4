//! Characters that pass for a plain Latin letter: styled forms of it, and letters of other scripts that look the same.
//! One table for the frames, which must not be imitated, and the lint, which must not be fooled.

/// Full-width, circled, squared and mathematical Latin letters and digits.
pub(crate) fn plain_letter(c: char) -> Option<char> {
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

/// The Latin letter that a Cyrillic, Greek or other letter looks like.
pub(crate) fn look_alike(c: char) -> Option<char> {
    let position = LOOK_ALIKES.iter().find(|(_, same)| same.contains(c));
    position.map(|(latin, _)| *latin)
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
