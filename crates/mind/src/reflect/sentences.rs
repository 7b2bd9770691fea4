//! A text as sentences of words, without quotations, quoted lines and code. Also the word lists (`lexicon.txt`) and the
//! keywords of a sentence, by which `I sent it to Bob` and `send it to Bob` are alike.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;

use super::due_time::names_day;

const MAX_SENTENCES: usize = 1000;
const MAX_WORDS: usize = 120;

#[derive(Clone, Debug)]
pub(crate) struct Sentence<'t> {
    pub(crate) text: &'t str,
    pub(crate) words: Vec<Word<'t>>,
    pub(crate) is_question: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Word<'t> {
    pub(crate) text: &'t str,
    /// In small letters without accents, with a straight apostrophe.
    pub(crate) lower: String,
    /// Where it begins and ends in its sentence, in bytes.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Whether a comma, a dash or the like stands before it.
    pub(crate) after_break: bool,
}

/// The sentences of a text, those of others left out.
pub(crate) fn sentences(text: &str) -> Vec<Sentence<'_>> {
    let mut fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        if fenced || line.trim_start().starts_with('>') {
            continue;
        }
        for part in split(line) {
            if found.len() == MAX_SENTENCES {
                return found;
            }
            let text = part.trim();
            let words = words(text);
            if !words.is_empty() {
                let is_question = text.trim_end_matches(['"', ')', ' ', '!']).ends_with('?');
                found.push(Sentence { text, words, is_question });
            }
        }
    }
    found
}

/// The small form of the word at this place; empty beyond the end.
pub(crate) fn lower<'w>(words: &'w [Word<'_>], index: usize) -> &'w str {
    words.get(index).map_or("", |word| word.lower.as_str())
}

pub(crate) fn reads_at(words: &[Word<'_>], index: usize, phrase: &str) -> bool {
    phrase.split(' ').enumerate().all(|(offset, word)| lower(words, index + offset) == word)
}

pub(crate) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for letter in text.chars().flat_map(char::to_lowercase) {
        match letter {
            'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' => folded.push('a'),
            'è' | 'é' | 'ê' | 'ë' => folded.push('e'),
            'ì' | 'í' | 'î' | 'ï' => folded.push('i'),
            'ò' | 'ó' | 'ô' | 'õ' | 'ö' => folded.push('o'),
            'ù' | 'ú' | 'û' | 'ü' => folded.push('u'),
            'ç' => folded.push('c'),
            'ñ' => folded.push('n'),
            'œ' => folded.push_str("oe"),
            'ß' => folded.push_str("ss"),
            '’' | '‘' | '`' => folded.push('\''),
            // Combining accents: a text that is not composed is folded alike.
            '\u{300}'..='\u{36f}' => {}
            other => folded.push(other),
        }
    }
    folded
}

fn split(line: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut begin = 0;
    for (at, mark) in line.char_indices().filter(|(_, mark)| matches!(mark, '.' | '!' | '?' | '…')) {
        let end = at + mark.len_utf8();
        let after = line.get(end..).unwrap_or_default();
        let ends_here = after.is_empty() || after.starts_with(char::is_whitespace) || mark == '…';
        let before = line.get(begin..at).unwrap_or_default();
        if !ends_here || (mark == '.' && is_abbreviated(before, after)) {
            continue;
        }
        parts.extend(line.get(begin..end));
        begin = end;
    }
    parts.extend(line.get(begin..));
    parts
}

/// Whether a full stop belongs to the word before it: `Dr. Weiss`, `e.g. this`, `3. Dezember`.
fn is_abbreviated(before: &str, after: &str) -> bool {
    let mut words = before.rsplit(|letter: char| letter.is_whitespace() || letter == '(');
    let last = words.next().unwrap_or_default();
    if !last.is_empty() && last.len() <= 2 && last.bytes().all(|byte| byte.is_ascii_digit()) {
        return after.trim_start().starts_with(char::is_alphabetic)
            && (!begins_sentence(after) || words.next().is_none_or(leads_to_ordinal));
    }
    if matches!(last.to_lowercase().as_str(), "a.m" | "p.m") && begins_sentence(after) {
        return false;
    }
    let is_title = matches!(
        last.to_lowercase().as_str(),
        "dr" | "mr"
            | "mrs"
            | "ms"
            | "prof"
            | "st"
            | "hr"
            | "fr"
            | "sr"
            | "sra"
            | "mme"
            | "vs"
            | "etc"
            | "approx"
            | "no"
    );
    is_title || last.contains('.') || (last.len() == 1 && last != "I" && last.chars().all(char::is_uppercase))
}

/// Whether what comes looks like a new sentence: a capital letter, but no name of a month or a day, and no `CET`.
fn begins_sentence(after: &str) -> bool {
    let first = after.split_whitespace().next().unwrap_or_default();
    let is_acronym = first.chars().filter(|letter| letter.is_uppercase()).count() > 1;
    first.starts_with(char::is_uppercase) && !is_acronym && !names_day(first)
}

/// Whether a number after this word counts what follows: `der 2. Entwurf`; at the beginning of a line it counts the line.
fn leads_to_ordinal(word: &str) -> bool {
    const LEADING: [&str; 14] =
        ["", "am", "beim", "das", "dem", "den", "der", "des", "die", "im", "ins", "jeden", "vom", "zum"];
    LEADING.contains(&fold(word).as_str())
}

fn words(text: &str) -> Vec<Word<'_>> {
    let mut found: Vec<Word<'_>> = Vec::new();
    let mut quoted: Option<char> = None;
    let mut after_break = false;
    let mut letters = text.char_indices().peekable();
    while let Some((start, letter)) = letters.next() {
        if quoted == Some(letter) {
            quoted = None;
            after_break = true;
            continue;
        }
        if quoted.is_none() {
            quoted = closing_mark(letter, text.get(start + letter.len_utf8()..).unwrap_or_default());
        }
        if !letter.is_alphanumeric() {
            after_break |= matches!(letter, ',' | ';' | ':' | '(' | ')' | '–' | '—' | '-' | '.' | '¿' | '¡');
            continue;
        }
        let mut end = start + letter.len_utf8();
        while let Some(&(at, next)) = letters.peek() {
            let follows = text.get(at + next.len_utf8()..).and_then(|rest| rest.chars().next());
            let so_far = text.get(start..end).unwrap_or_default();
            if !continues(so_far, next, follows) {
                break;
            }
            end = at + next.len_utf8();
            letters.next();
        }
        if quoted.is_none() && found.len() < MAX_WORDS {
            push(&mut found, text, start..end, after_break);
        }
        after_break = false;
    }
    found
}

/// What ends a quotation that begins here. A mark that nobody closes quotes nothing.
fn closing_mark(mark: char, rest: &str) -> Option<char> {
    let closing = match mark {
        '"' => '"',
        '“' => '”',
        '„' => '“',
        '«' => '»',
        _ => return None,
    };
    rest.contains(closing).then_some(closing)
}

fn continues(so_far: &str, next: char, follows: Option<char>) -> bool {
    if next.is_alphanumeric() || ('\u{300}'..='\u{36f}').contains(&next) {
        return true;
    }
    let follows_letter = follows.is_some_and(char::is_alphanumeric);
    let after_digit = so_far.ends_with(|letter: char| letter.is_ascii_digit());
    match next {
        '\'' | '’' => follows_letter,
        // Clock times and dates stay whole.
        ':' | '-' | '/' => after_digit && follows.is_some_and(|next| next.is_ascii_digit()),
        '.' => after_digit && follows.is_some_and(|next| next.is_ascii_digit()),
        '+' => false,
        _ => false,
    }
}

/// French joins little words by an apostrophe: `j'appellerai` is two words, `aujourd'hui` and `I'll` are one.
fn push<'t>(found: &mut Vec<Word<'t>>, text: &'t str, range: std::ops::Range<usize>, after_break: bool) {
    const ELIDED: [&str; 9] = ["j", "t", "d", "l", "m", "s", "n", "c", "qu"];
    let Some(whole) = text.get(range.clone()) else { return };
    let word = |part: &'t str, start: usize, after_break: bool| Word {
        text: part,
        lower: fold(part),
        start,
        end: start + part.len(),
        after_break,
    };
    if let Some((before, after)) = whole.split_once(['\'', '’'])
        && ELIDED.contains(&fold(before).as_str())
    {
        found.push(word(before, range.start, after_break));
        found.push(word(after, range.end - after.len(), false));
        return;
    }
    found.push(word(whole, range.start, after_break));
}

const TEXT: &str = include_str!("lexicon.txt");

/// The words and phrases of a group; phrases also by their first word, so that asking costs the same however many there are.
#[derive(Default)]
struct Group {
    all: HashSet<&'static str>,
    by_first: HashMap<&'static str, Vec<&'static str>>,
}

static GROUPS: LazyLock<HashMap<&'static str, Group>> = LazyLock::new(|| {
    let mut groups: HashMap<&str, Group> = HashMap::new();
    let mut name = "";
    for line in TEXT.lines().map(|line| line.split_once('#').map_or(line, |(before, _)| before).trim()) {
        if let Some(heading) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            name = heading;
            continue;
        }
        for entry in line.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let group = groups.entry(name).or_default();
            group.all.insert(entry);
            group.by_first.entry(entry.split(' ').next().unwrap_or(entry)).or_default().push(entry);
        }
    }
    groups
});

static IRREGULAR: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let pairs = GROUPS.get("irregular").into_iter().flat_map(|group| &group.all);
    pairs.filter_map(|pair| pair.split_once(' ')).collect()
});

pub(crate) fn has(group: &str, word: &str) -> bool {
    GROUPS.get(group).is_some_and(|group| group.all.contains(word))
}

/// How many words the longest phrase of the group has that stands here; nothing if none does.
pub(crate) fn phrase(group: &str, words: &[Word<'_>], at: usize) -> Option<usize> {
    let phrases = GROUPS.get(group)?.by_first.get(lower(words, at))?.iter();
    phrases.filter(|phrase| reads_at(words, at, phrase)).map(|phrase| phrase.split(' ').count()).max()
}

pub(crate) fn irregular(word: &str) -> Option<&'static str> {
    IRREGULAR.get(word).copied()
}

/// The words that matter in a text, as they are compared.
pub(crate) fn keywords(text: &str) -> BTreeSet<String> {
    let sentences = sentences(text);
    sentences
        .iter()
        .flat_map(|sentence| &sentence.words)
        .filter_map(|word| normalize_word(&word.lower))
        .collect()
}

/// The form in which a word is compared; nothing if it says nothing.
pub(crate) fn normalize_word(word: &str) -> Option<String> {
    let word = word.strip_suffix("'s").unwrap_or(word);
    (!has("empty", word) && !word.is_empty()).then(|| stem(word))
}

/// The base form of a past tense, if this is one of English or a German participle.
pub(crate) fn base_of_past(word: &str) -> Option<String> {
    let is_past = word.len() > 4 && word.ends_with("ed") && !word.ends_with("eed");
    (is_past || irregular(word).is_some()).then(|| stem(word))
}

/// One word for all forms of a word, roughly.
pub(crate) fn stem(word: &str) -> String {
    let word = fold(word);
    let word = irregular(&word).unwrap_or(&word);
    if word.len() < 4 || word.bytes().any(|byte| byte.is_ascii_digit()) {
        return word.to_owned();
    }
    for ending in ["ing", "ied", "ies", "ed", "en", "es", "s", "e", "y"] {
        let Some(base) = word.strip_suffix(ending) else { continue };
        if base.len() < 3 || (ending == "s" && base.ends_with('s')) {
            continue;
        }
        // `Stopped` is `stop`.
        let mut letters = base.chars().rev();
        let (last, before) = (letters.next(), letters.next());
        let doubled = matches!(ending, "ing" | "ed") && last == before && !matches!(last, Some('l' | 's'));
        let base = if doubled { base.get(..base.len() - 1).unwrap_or(base) } else { base };
        return base.trim_end_matches(['e', 'i', 'y']).to_owned();
    }
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reflect::sentences::{fold, sentences};

    fn lows(text: &str) -> Vec<Vec<String>> {
        sentences(text).iter().map(|s| s.words.iter().map(|word| word.lower.clone()).collect()).collect()
    }

    #[test]
    fn sentences_end_where_people_end_them() {
        assert_eq!(lows("I'll call Dr. Weiss. Bis 3. Dezember!").len(), 2);
        assert_eq!(lows("At 9:30 on 2026-11-03. Ok?"), [vec!["at", "9:30", "on", "2026-11-03"], vec!["ok"]]);
        for two in [
            "Tomorrow at 9. And call.",
            "At 9 a.m. Please call.",
            "Um 9. Dann kommt Bob.",
            "It costs 12. I pay.",
        ] {
            assert_eq!(lows(two).len(), 2, "{two}");
        }
        for one in
            ["1. Call Bob", "der 2. Entwurf", "at 9. then", "5 p.m. CET", "3 p.m. Friday", "am 3. März"]
        {
            assert_eq!(lows(one).len(), 1, "{one}");
        }
        assert!(sentences("Ok? Yes.")[0].is_question && !sentences("Ok? Yes.")[1].is_question);
    }

    #[test]
    fn the_words_of_others_are_left_out() {
        assert_eq!(
            lows("> I'll come\n```\nI'll run\n```\nHe said \"I'll go\" twice"),
            [["he", "said", "twice"]]
        );
        assert_eq!(lows("5\" is short").len(), 1);
    }

    #[test]
    fn little_french_words_stand_alone() {
        assert_eq!(lows("J’appellerai aujourd'hui, I’ll"), [["j", "appellerai", "aujourd'hui", "i'll"]]);
    }

    #[test]
    fn words_are_written_as_they_are_compared() {
        assert!(!GROUPS.contains_key(""), "an entry stands before the first heading");
        for (name, group) in GROUPS.iter() {
            for word in &group.all {
                assert_eq!(fold(word), *word, "{name}");
            }
        }
    }

    #[test]
    fn the_longest_phrase_counts() {
        let said = sentences("Could you please stop");
        assert_eq!(phrase("courtesy", &said[0].words, 0), Some(3));
        assert_eq!(
            (irregular("sent"), has("empty", "the"), has("nothing", "the")),
            (Some("send"), true, false)
        );
    }

    #[test]
    fn forms_of_a_word_are_one_word() {
        for (one, other) in [
            ("sent", "send"),
            ("called", "calling"),
            ("invoices", "invoice"),
            ("reviewing", "review"),
            ("paid", "pay"),
            ("flights", "flight"),
            ("stopped", "stop"),
            ("fixed", "fix"),
            ("bezahlt", "bezahlen"),
            ("replied", "reply"),
            ("wrote", "write"),
            ("cancelled", "cancel"),
            ("put", "put"),
        ] {
            assert_eq!(stem(one), stem(other), "{one} {other}");
        }
        assert_ne!(stem("report"), stem("rent"));
        assert_eq!(keywords("I'll send it to Bob tomorrow"), keywords("Sent to Bob"));
    }
}
