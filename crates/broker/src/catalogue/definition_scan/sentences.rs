//! Splits a text into sentences and words. Independent of the rules.

#[derive(Debug)]
pub(super) struct Sentence<'a> {
    pub(super) text: &'a str,
    /// In lower case, with plain letters.
    pub(super) lower: String,
    /// Its words in lower case, without apostrophes.
    pub(super) words: Vec<String>,
}

/// Splits at punctuation (including semicolons), empty lines, and before list entries.
pub(super) fn sentences(text: &str) -> Vec<Sentence<'_>> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let ends = match c {
            ';' => next.is_some_and(char::is_whitespace),
            '.' | '!' | '?' => next.is_none_or(char::is_whitespace) && !is_abbreviation(text.get(start..at)),
            '。' | '！' | '？' => true,
            '\n' => text.get(at + 1..).is_none_or(begins_anew),
            _ => false,
        };
        if ends {
            found.extend(text.get(start..at).and_then(Sentence::read));
            start = at + c.len_utf8();
        }
    }
    found.extend(text.get(start..).and_then(Sentence::read));
    found
}

/// Whether the next line starts a new sentence: it is empty, a list entry, a heading, or `name: description`.
fn begins_anew(rest: &str) -> bool {
    let end = rest.find('\n').unwrap_or(rest.len()).min(rest.floor_char_boundary(200));
    let line = rest.get(..end).unwrap_or(rest).trim();
    let first = line.split([' ', '\t']).next().unwrap_or_default();
    let is_number = || {
        let digits = first.trim_end_matches(['.', ')']);
        digits.len() < first.len() && !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
    };
    line.is_empty()
        || line.starts_with(['-', '*', '#', '•', '>', '|', '<'])
        || first.ends_with(':')
        || is_number()
}

fn is_abbreviation(before: Option<&str>) -> bool {
    let is_number = before.is_some_and(|before| before.trim().bytes().all(|digit| digit.is_ascii_digit()));
    let last = before.and_then(|before| before.rsplit([' ', '(']).next());
    is_number
        || last.is_some_and(|last| {
            ["e.g", "i.e", "etc", "vs", "approx"].iter().any(|known| last.eq_ignore_ascii_case(known))
        })
}

/// Maps full-width letters and typographic quotes to plain ones.
fn plain(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '\u{2018}' | '\u{2019}' | '\u{02bc}' => '\'',
        _ => c,
    }
}

impl<'a> Sentence<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let lower: String = text.chars().map(plain).flat_map(char::to_lowercase).collect();
        let words: Vec<String> = lower
            .split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '_')
            .map(|word| word.replace('\'', ""))
            .filter(|word| !word.is_empty())
            .collect();
        (!words.is_empty()).then_some(Self { text, lower, words })
    }

    /// Whether a word is one of these: `a|b|c`.
    pub(super) fn has(&self, list: &str) -> bool {
        self.words.iter().any(|word| is_one_of(word, list))
    }

    /// How many different words of this list it contains.
    pub(super) fn count(&self, list: &str) -> usize {
        list.split('|').filter(|one| self.words.iter().any(|word| word == one)).count()
    }
}

fn is_one_of(word: &str, list: &str) -> bool {
    list.split('|').any(|one| one == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_with_punctuation_empty_lines_and_list_entries() {
        for (text, expected) in [
            ("One. Two! Three? four", 4),
            ("Paths, e.g. ~/.ssh/id_rsa, are\nread.", 1),
            ("a\n\nb\n- c\n  * d\n  2. e", 5),
            ("Args:\n    path: where it is\n    mode: how it is\n        read", 3),
            (" . . ", 0),
            ("1. Open it. 2. Close it.", 2),
            ("open; close;x", 2),
        ] {
            assert_eq!(sentences(text).len(), expected, "{text:?}");
        }
        let all = sentences("First.  Please DON’T tell the ｕｓｅｒ");
        assert_eq!(all[1].text, "Please DON’T tell the ｕｓｅｒ");
        assert_eq!(all[1].words, ["please", "dont", "tell", "the", "user"]);
        assert_eq!(
            (all[1].count("tell|user|never"), all[1].has("user|x"), all[1].has("x")),
            (2, true, false)
        );
    }
}
