//! Characters that pass for a plain Latin letter: styled forms of it, and letters of other scripts that look the same.
//! One table for the frames, which must not be imitated, the lint, which must not be fooled, and approvals, whose reader
//! must not be.

/// Full-width, circled, squared and mathematical Latin letters and digits.
#[must_use]
pub fn plain_letter(c: char) -> Option<char> {
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
        _ if c.is_ascii() => None,
        _ => SMALL_CAPITALS.chars().skip_while(|small| *small != c).nth(1),
    }
}

/// The Latin letter that a Cyrillic, Greek or other letter looks like.
#[must_use]
pub fn look_alike(c: char) -> Option<char> {
    let position = LOOK_ALIKES.iter().find(|(_, same)| same.contains(c));
    position.map(|(latin, _)| *latin)
}

/// The letters in an address that pass for Latin ones, with their places: those among Latin letters, and whole words of
/// nothing else in an address that also has Latin letters. A name that is all of one script has none.
#[must_use]
pub fn in_address(address: &str) -> Vec<(usize, char)> {
    let is_alike = |c: char| {
        !c.is_ascii() && (plain_letter(c).is_some() || c.to_lowercase().any(|c| look_alike(c).is_some()))
    };
    let has_latin = |text: &str| text.contains(|c: char| c.is_ascii_alphabetic());
    let is_latin = has_latin(address);
    let mut found = Vec::new();
    let mut start = 0;
    for word in address.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let letters = || word.char_indices().filter(|(_, c)| c.is_alphabetic());
        if is_latin && (has_latin(word) || letters().all(|(_, c)| is_alike(c))) {
            let alike = word.char_indices().filter(|(_, c)| is_alike(*c));
            found.extend(alike.map(|(at, c)| (start + at, c)));
        }
        start += word.len();
    }
    found
}

/// The text with every letter that passes for a plain Latin one as that letter, in lower case. Two names with the same skeleton can be
/// taken for each other.
#[must_use]
pub fn skeleton(text: &str) -> String {
    let plain = |c: char| plain_letter(c).or_else(|| look_alike(c)).unwrap_or(c);
    text.chars().flat_map(char::to_lowercase).flat_map(|c| plain(c).to_lowercase()).collect()
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

/// Each with the letter that it stands for.
const SMALL_CAPITALS: &str = "ᴀaʙbᴄcᴅdᴇeꜰfɢgʜhɪiᴊjᴋkʟlᴍmɴnᴏoᴘpʀrꜱsᴛtᴜuᴠvᴡwʏyᴢz";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_pass_for_others_in_an_address_are_found() {
        for (address, alike) in [
            ("bob@example.com", ""),
            ("b\u{43e}b@example.com", "\u{43e}"),
            ("bob@ex\u{430}mple.com", "\u{430}"),
            ("\u{430}\u{440}\u{440}\u{4cf}\u{435}.com", "\u{430}\u{440}\u{440}\u{4cf}\u{435}"),
            ("B\u{41e}B", "\u{41e}"),
            ("b\u{ff4f}b", "\u{ff4f}"),
            ("иван@почта.рф", ""),
            ("иван@mail.ru", ""),
            ("Анна Каренина", ""),
            ("müller@straße.de", ""),
            ("東京@example.jp", ""),
        ] {
            let found: String = in_address(address).into_iter().map(|(_, c)| c).collect();
            assert_eq!(found, alike, "{address}");
        }
        assert_eq!(in_address("x b\u{43e}b"), [(3, '\u{43e}')]);
    }

    #[test]
    fn names_that_pass_for_each_other_have_the_same_skeleton() {
        for name in ["ann", "\u{430}nn", "Ann", "\u{410}nn", "\u{ff41}nn", "a\u{578}n"] {
            assert_eq!(skeleton(name), "ann", "{name}");
        }
        assert_ne!(skeleton("Анна"), skeleton("Anna"));
        assert_ne!(skeleton("Ann"), skeleton("Anne"));
    }
}
