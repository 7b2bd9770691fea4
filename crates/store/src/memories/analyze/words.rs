//! Cuts a text into words: runs of letters and digits of one kind of script. Language-independent but for the English
//! endings after an apostrophe.
//!
//! Words are folded to one spelling and stemmed by the rules of their script alone, so that a question and a memory
//! always agree.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use embody_text::invisible::{Invisible, kind};
use icu_normalizer::properties::CanonicalCombiningClassMapBorrowed;
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use rust_stemmers::{Algorithm, Stemmer};

/// Longer words are truncated.
const LONGEST_WORD: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) script: Script,
    /// A negation such as `won't`, whose first half would be another word.
    pub(super) negates: bool,
}

/// Calls `take` with each word of the text, in order.
pub(super) fn each(text: &str, mut take: impl FnMut(Word)) {
    let text = compose(text);
    let mut rest = text.as_ref();
    while let Some(start) = rest.find(char::is_alphanumeric) {
        rest = rest.get(start..).unwrap_or_default();
        let (letters, script, length) = run(rest);
        rest = rest.get(length..).unwrap_or_default();
        let ending = if script == Script::Latin { apostrophe_ending(rest) } else { "" };
        rest = rest.strip_prefix(ending).unwrap_or(rest);
        take(Word { text: fold(&letters, script), script, negates: ending.ends_with(['t', 'T']) });
    }
}

/// The first run of letters that belong together, their script, and their length in bytes.
fn run(text: &str) -> (String, Script, usize) {
    let mut letters = String::new();
    let mut count = 0;
    let mut script = Script::Digit;
    for (position, c) in text.char_indices() {
        if is_invisible(c) {
            continue;
        }
        let mark = is_mark(c);
        let own = Script::of(c);
        let belongs = mark || (c.is_alphanumeric() && joins(script, own));
        if !belongs && position > 0 {
            return (letters, script, position);
        }
        if script == Script::Digit && !mark {
            script = own;
        }
        if script.is_paired() || count < LONGEST_WORD {
            letters.push(c);
            count += 1;
        }
    }
    (letters, script, text.len())
}

fn joins(before: Script, next: Script) -> bool {
    if before.is_paired() { before == next } else { !next.is_paired() }
}

/// The `'s`, `'t`, `'ll` … at the start of the text, or nothing.
fn apostrophe_ending(text: &str) -> &str {
    let Some(after) = text.strip_prefix(['\'', '\u{2019}']) else { return "" };
    let letters = after.find(|c: char| !c.is_alphanumeric()).unwrap_or(after.len());
    let ending = after.get(..letters).unwrap_or_default();
    let known = ["s", "t", "d", "ll", "re", "ve", "m"].iter().any(|known| ending.eq_ignore_ascii_case(known));
    if known { text.get(..text.len() - after.len() + letters).unwrap_or_default() } else { "" }
}

/// Stop words have a stem too; see [`is_stop`].
pub(super) fn stem(word: &Word) -> String {
    let algorithm = match word.script {
        Script::Latin => Algorithm::English,
        Script::Cyrillic => Algorithm::Russian,
        Script::Greek => Algorithm::Greek,
        Script::Arabic => Algorithm::Arabic,
        Script::Tamil => Algorithm::Tamil,
        _ => return word.text.clone(),
    };
    let regular = IRREGULAR.get(word.text.as_str()).copied().unwrap_or(&word.text);
    Stemmer::create(algorithm).stem(regular).into_owned()
}

pub(super) fn is_stop(word: &Word) -> bool {
    let known = |text: &str| STOP.contains(text);
    word.negates
        || known(&word.text)
        || IRREGULAR.get(word.text.as_str()).is_some_and(|regular| known(regular))
}

static IRREGULAR: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let lines = include_str!("irregular.txt").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(' ')).collect()
});

static STOP: LazyLock<HashSet<&str>> = LazyLock::new(|| STOP_WORDS.split_whitespace().collect());

const STOP_WORDS: &str = "
a about above after again against all am an and any are as at be because been before being below between both but by
can cannot could did do does doing down during each few for from further had has have having he her here hers herself
him himself his how i if in into is it its itself let me more most my myself no nor not of off on once only or other
ought our ours ourselves out over own same she should so some such than that the their theirs them themselves then
there these they this those through to too under until up very was we were what when where which while who whom why
with would you your yours yourself yourselves s t d ll re ve m don didn doesn isn wasn";

const MARKS: CanonicalCombiningClassMapBorrowed<'static> = CanonicalCombiningClassMapBorrowed::new();

/// The whole text in compatibility composition, so that width, ligatures and composition do not matter.
fn compose(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    ComposingNormalizerBorrowed::new_nfkc().normalize(text)
}

/// Whether this character modifies the one before it.
pub(super) fn is_mark(c: char) -> bool {
    !c.is_ascii() && MARKS.get_u8(c) != 0
}

/// Whether this character is invisible and says nothing about where a word ends.
fn is_invisible(c: char) -> bool {
    // A zero-width space is where a word ends.
    c != '\u{200b}' && matches!(kind(c), Some(Invisible::ZeroWidth | Invisible::Joiner | Invisible::Selector))
}

/// A composed word in its indexed spelling.
fn fold(word: &str, script: Script) -> String {
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

/// A writing system, as far as the analyzer treats them differently; others are `Other`, and neither stemmed nor cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    Latin,
    Greek,
    Cyrillic,
    Arabic,
    Hebrew,
    Tamil,
    /// Han and kana: no spaces between words, and the two mix inside one.
    East,
    Hangul,
    Thai,
    Lao,
    Khmer,
    Myanmar,
    /// A letter of any other script.
    Other,
    /// Belongs to the script around it.
    Digit,
}

impl Script {
    /// Of a letter or digit in composed form.
    pub(super) fn of(c: char) -> Self {
        match u32::from(c) {
            0x30..=0x39 | 0x660..=0x669 | 0x6f0..=0x6f9 | 0x966..=0x96f => Self::Digit,
            0x41..=0x2af | 0x1e00..=0x1eff | 0x2c60..=0x2c7f | 0xa720..=0xa7ff | 0xab30..=0xab6f => {
                Self::Latin
            }
            0x370..=0x3ff | 0x1f00..=0x1fff => Self::Greek,
            0x400..=0x52f | 0x1c80..=0x1c8f | 0x2de0..=0x2dff | 0xa640..=0xa69f => Self::Cyrillic,
            0x590..=0x5ff => Self::Hebrew,
            0x600..=0x6ff | 0x750..=0x77f | 0x870..=0x8ff => Self::Arabic,
            0xb80..=0xbff => Self::Tamil,
            0xe00..=0xe7f => Self::Thai,
            0xe80..=0xeff => Self::Lao,
            0x1000..=0x109f | 0xa9e0..=0xa9ff | 0xaa60..=0xaa7f => Self::Myanmar,
            0x1100..=0x11ff | 0x3130..=0x318f | 0xa960..=0xa97f | 0xac00..=0xd7ff => Self::Hangul,
            0x1780..=0x17ff => Self::Khmer,
            0x2e80..=0x2fdf | 0x3005..=0x3007 | 0x3021..=0x30ff | 0x31f0..=0x31ff | 0x3400..=0x4dbf => {
                Self::East
            }
            0x4e00..=0x9fff | 0xf900..=0xfaff | 0x1aff0..=0x1b16f | 0x20000..=0x3ffff => Self::East,
            _ => Self::Other,
        }
    }

    /// Whether words of this script are cut into pairs of letters: nothing marks where one ends, or (Hangul) no
    /// stemmer here knows the endings.
    pub(super) fn is_paired(self) -> bool {
        matches!(self, Self::East | Self::Hangul | Self::Thai | Self::Lao | Self::Khmer | Self::Myanmar)
    }

    /// Whether a single letter of this script is often a word.
    pub(super) fn has_words_of_one_letter(self) -> bool {
        matches!(self, Self::East)
    }
}
