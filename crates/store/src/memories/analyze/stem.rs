//! Reduces a word to what it shares with its other forms: stop words vanish, irregular forms become regular, Snowball
//! takes off the ending. The language follows from the script alone, so that a question and a memory always agree.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};

use super::script::Script;
use super::words::Word;

/// The stem of a word. Stop words have one too; see [`is_stop`].
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

/// Whether the word says nothing about what a text is about.
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
