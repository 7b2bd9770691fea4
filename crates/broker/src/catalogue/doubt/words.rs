//! Sentences, and patterns over their words. Owns how a text is cut; knows no words itself.

/// The words of one sentence: lower case, without apostrophes.
#[derive(Debug)]
pub(super) struct Sentence {
    /// Its words.
    words: Vec<String>,
    /// The sentence as it is written, in lower case.
    pub(super) text: String,
}

/// The sentences of a text.
pub(super) fn sentences(text: &str) -> Vec<Sentence> {
    let lower: String = text.chars().map(plain).flat_map(char::to_lowercase).collect();
    let mut found = Vec::new();
    let mut start = 0;
    let mut chars = lower.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let ends = match c {
            '.' | '!' | '?' => next.is_none_or(char::is_whitespace) && !is_abbreviation(lower.get(start..at)),
            '。' | '！' | '？' => true,
            '\n' => next.is_none_or(|next| next == '\n' || next == '-' || next == '*' || next == '#'),
            _ => false,
        };
        if ends {
            found.extend(lower.get(start..at).and_then(Sentence::read));
            start = at + c.len_utf8();
        }
    }
    found.extend(lower.get(start..).and_then(Sentence::read));
    found
}

/// Wide letters and typographic quotes as the plain ones.
fn plain(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '\u{2018}' | '\u{2019}' | '\u{02bc}' => '\'',
        _ => c,
    }
}

fn is_abbreviation(before: Option<&str>) -> bool {
    let last = before.and_then(|before| before.rsplit([' ', '(']).next());
    last.is_some_and(|last| matches!(last, "e.g" | "i.e" | "etc" | "vs" | "approx"))
}

impl Sentence {
    fn read(text: &str) -> Option<Self> {
        let words: Vec<String> = text
            .split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '_')
            .map(|word| word.replace('\'', ""))
            .filter(|word| !word.is_empty())
            .collect();
        (!words.is_empty()).then(|| Self { words, text: text.to_owned() })
    }

    /// Where a pattern first matches: words or `a|b` in a row; `~3` lets up to three others stand between; `$` is the end.
    pub(super) fn find(&self, pattern: &str) -> Option<usize> {
        let steps: Vec<&str> = pattern.split(' ').collect();
        (0..self.words.len()).find(|at| self.follows(*at, &steps))
    }

    /// Whether a word is one of these.
    pub(super) fn has(&self, list: &str) -> bool {
        self.words.iter().any(|word| is_one_of(word, list))
    }

    /// Whether one of these stands among the few words before a place.
    pub(super) fn is_led_by(&self, at: usize, list: &str) -> bool {
        let from = at.saturating_sub(5);
        self.words.iter().skip(from).take(at - from).any(|word| is_one_of(word, list))
    }

    fn follows(&self, at: usize, steps: &[&str]) -> bool {
        let Some((step, rest)) = steps.split_first() else { return true };
        if let Some(gap) = step.strip_prefix('~').and_then(|gap| gap.parse::<usize>().ok()) {
            return (at..=at + gap).any(|at| self.follows(at, rest));
        }
        if *step == "$" {
            return at >= self.words.len();
        }
        self.words.get(at).is_some_and(|word| is_one_of(word, step)) && self.follows(at + 1, rest)
    }
}

fn is_one_of(word: &str, list: &str) -> bool {
    list.split('|').any(|one| one == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_where_they_do() {
        let count = |text: &str| sentences(text).len();
        assert_eq!(count("One. Two! Three? four"), 4);
        assert_eq!(count("Paths, e.g. ~/.ssh/id_rsa, are\nread."), 1);
        assert_eq!(count("a\n\nb\n- c\n* d"), 4);
        assert_eq!(count(" . . "), 0);
    }

    #[test]
    fn patterns_match_words_in_a_row_with_gaps() {
        let all = sentences("Please DON’T ever tell the ｕｓｅｒ");
        let one = &all[0];
        for (pattern, expected) in [
            ("dont ~2 tell|inform ~1 user", Some(1)),
            ("dont tell", None),
            ("user $", Some(5)),
            ("tell $", None),
            ("~9 please", Some(0)),
        ] {
            assert_eq!(one.find(pattern), expected, "{pattern}");
        }
        assert!(one.is_led_by(3, "dont|not") && !one.is_led_by(1, "dont") && one.has("user"));
    }
}
