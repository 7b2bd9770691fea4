//! The one table of characters that a person does not see, or sees as something else than they are. It says what a
//! character is; each user decides which kinds it takes out, shows or refuses, and where one of them is legitimate.

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invisible {
    /// C0, DEL and C1, the line feed and the tab among them.
    Control,
    Separator,
    /// Joins or separates letters of some scripts, and joins emoji.
    Joiner,
    /// Takes no room and says nothing: soft hyphen, zero-width space, word joiner, byte order mark and their like.
    ZeroWidth,
    Direction,
    Selector,
    /// Spells flags, and can spell whole texts without being seen.
    Tag,
    /// Stands in for a letter that is not there.
    Filler,
    /// U+2800: a sign by its class, a blank on every screen.
    BrailleBlank,
    /// A blank that is not the plain one. U+3000, the blank of Chinese and Japanese, does not count.
    Space,
    /// Marks of annotations, and what stands for an object.
    Annotation,
    Layout,
    Private,
    NonCharacter,
}

/// What kind of invisible character this is; `None` if it is seen, or is a plain space.
#[must_use]
pub fn kind(c: char) -> Option<Invisible> {
    let code = u32::from(c);
    if (0x20..0x7F).contains(&code) {
        return None;
    }
    if code & 0xFFFE == 0xFFFE {
        return Some(Invisible::NonCharacter);
    }
    Some(match code {
        0x00..=0x1F | 0x7F..=0x9F => Invisible::Control,
        0x2028 | 0x2029 => Invisible::Separator,
        0x200C | 0x200D => Invisible::Joiner,
        0x61C | 0x200E | 0x200F | 0x202A..=0x202E | 0x2066..=0x2069 => Invisible::Direction,
        0x180B..=0x180D | 0x180F | 0xFE00..=0xFE0F | 0xE0100..=0xE01EF => Invisible::Selector,
        0xE0000..=0xE0FFF => Invisible::Tag,
        0x115F | 0x1160 | 0x3164 | 0xFFA0 | 0x16FE4 => Invisible::Filler,
        0x2800 => Invisible::BrailleBlank,
        0xA0 | 0x1680 | 0x2000..=0x200A | 0x202F | 0x205F => Invisible::Space,
        0xFFF9..=0xFFFC => Invisible::Annotation,
        0x13430..=0x1343F | 0x1D159 => Invisible::Layout,
        0xE000..=0xF8FF | 0xF0000..=0x10FFFF => Invisible::Private,
        0xE1000..=0xEFFFF => Invisible::NonCharacter,
        0xFDD0..=0xFDEF => Invisible::NonCharacter,
        0xAD
        | 0x34F
        | 0x17B4
        | 0x17B5
        | 0x180E
        | 0x200B
        | 0x2060..=0x2065
        | 0x206A..=0x206F
        | 0xFEFF
        | 0xFFF0..=0xFFF8
        | 0x1BCA0..=0x1BCA3
        | 0x1D173..=0x1D17A => Invisible::ZeroWidth,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use icu_properties::CodePointSetData;
    use icu_properties::props::{DefaultIgnorableCodePoint, WhiteSpace};

    use super::*;

    #[test]
    fn what_unicode_calls_ignorable_or_white_is_in_the_table() {
        let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
        let white = CodePointSetData::new::<WhiteSpace>();
        for c in '\0'..=char::MAX {
            if ignorable.contains(c) || white.contains(c) && !matches!(c, ' ' | '\u{3000}') {
                assert!(kind(c).is_some(), "U+{:04X}", u32::from(c));
            }
            assert_eq!(kind(c) == Some(Invisible::Control), c.is_control(), "U+{:04X}", u32::from(c));
        }
    }

    #[test]
    fn letters_are_not_in_the_table() {
        for c in '\0'..=char::MAX {
            let is_filler = matches!(kind(c), Some(Invisible::Filler | Invisible::Layout));
            if c.is_alphanumeric() && !is_filler {
                assert_eq!(kind(c), None, "U+{:04X}", u32::from(c));
            }
        }
        for (c, expected) in [
            ('\u{2800}', Invisible::BrailleBlank),
            ('\u{3164}', Invisible::Filler),
            ('\u{200b}', Invisible::ZeroWidth),
            ('\u{202e}', Invisible::Direction),
            ('\u{fe0f}', Invisible::Selector),
            ('\u{e0041}', Invisible::Tag),
            ('\u{1b}', Invisible::Control),
        ] {
            assert_eq!(kind(c), Some(expected));
        }
    }

    /// Every other list of such characters in the workspace would be one more that lacks some.
    #[test]
    fn there_is_no_other_table() {
        let rooms = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let mut found = Vec::new();
        look_into(rooms.as_ref(), &mut found);
        assert!(found.is_empty(), "use embody_text::invisible: {found:?}");
    }

    /// Files outside of tests that list some of the characters that such a table begins with.
    fn look_into(folder: &std::path::Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if !path.ends_with("target") && !path.ends_with("tests") && !path.ends_with("text") {
                    look_into(&path, found);
                }
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                let text = std::fs::read_to_string(&path).unwrap().to_lowercase();
                let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                let is_number = |text: &str| {
                    let mut after =
                        code.match_indices(text).filter_map(|(at, _)| code.get(at + text.len()..));
                    after.any(|rest| !rest.starts_with(|c: char| c.is_ascii_hexdigit()))
                };
                let names = |code_point: &str| {
                    is_number(&format!("0x{code_point}")) || code.contains(&format!("u{{{code_point}}}"))
                };
                if ["34f", "17b4", "3164", "ffa0", "2800"].iter().any(|one| names(one)) {
                    found.push(path.display().to_string());
                }
            }
        }
    }
}
