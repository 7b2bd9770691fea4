//! Sentences and words: splitting, folding, and what the lexicon knows of each word. It judges nothing.

use super::lexicon::{WordInfo, lookup, phrases};

/// A sentence longer than this is cut: a rule is a short thing.
const MAX_WORDS: usize = 80;
const MAX_SENTENCES: usize = 400;

#[derive(Clone, Debug)]
pub(super) struct Token {
    /// Folded, contractions written out.
    pub(super) fold: String,
    pub(super) known: WordInfo,
    pub(super) capital: bool,
    pub(super) mark: Option<char>,
}

/// The sentences of a text that could be a rule. Questions are none.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut rest = line;
        while let Some(end) = sentence_end(rest) {
            let (sentence, after) = rest.split_at(end);
            found.push(sentence);
            rest = after;
        }
        found.push(rest);
        if found.len() > MAX_SENTENCES {
            break;
        }
    }
    let bullets: &[char] = &['-', '*', '•', '–', '—', '#', '>', ' ', '\t'];
    let trimmed = found.into_iter().map(|sentence| sentence.trim().trim_start_matches(bullets).trim());
    trimmed.filter(|sentence| !sentence.is_empty() && !sentence.ends_with('?')).take(MAX_SENTENCES).collect()
}

/// Just behind the first mark that ends a sentence. The dot of `3. Dezember` does not, nor one inside of a word.
fn sentence_end(text: &str) -> Option<usize> {
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let end = at + letter.len_utf8();
        let open = letters.peek().is_some_and(|(_, next)| !next.is_whitespace() && !"\"')”’".contains(*next));
        match letter {
            '!' | '?' | ';' if !open => return Some(end),
            '.' if !open && !is_ordinal(text.get(..at)?, text.get(end..)?) => return Some(end),
            _ => {}
        }
    }
    None
}

fn is_ordinal(before: &str, after: &str) -> bool {
    let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
    let digits = !word.is_empty() && word.len() <= 2 && word.bytes().all(|byte| byte.is_ascii_digit());
    let next = after.split_whitespace().next().unwrap_or_default();
    digits && lookup(&fold(next)).month.is_some()
}

pub(super) fn tokenize(sentence: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut parts = sentence.split_whitespace().take(MAX_WORDS).peekable();
    while let Some(part) = parts.next() {
        let core = part.trim_matches(|letter: char| !letter.is_alphanumeric());
        let (lead, trail) = part.split_once(core).unwrap_or((part, ""));
        marks(&mut tokens, lead);
        if !core.is_empty() {
            word(&mut tokens, core);
        }
        // `Frank's on holiday`, not `Frank's mails`.
        let state = parts.peek().is_some_and(|next| ["on", "away", "off", "out", "sick"].contains(next));
        if state && core.ends_with(['s']) && core.contains(['\'', '’']) {
            word(&mut tokens, "is");
        }
        marks(&mut tokens, trail);
    }
    join_phrases(tokens)
}

fn marks(tokens: &mut Vec<Token>, text: &str) {
    let strong = text.chars().find(|letter| ",;:()–—-".contains(*letter));
    if let Some(mark) = strong {
        let mark = if mark == ',' { ',' } else { ';' };
        tokens.push(Token {
            fold: String::new(),
            known: WordInfo::default(),
            capital: false,
            mark: Some(mark),
        });
    }
}

fn word(tokens: &mut Vec<Token>, text: &str) {
    let capital = text.chars().next().is_some_and(char::is_uppercase);
    let folded = fold(text);
    let mut push = |part: &str, capital: bool| {
        tokens.push(Token { fold: part.to_owned(), known: lookup(part), capital, mark: None });
    };
    if folded.contains('@') || folded.starts_with(|first: char| first.is_ascii_digit()) {
        return push(&folded, capital);
    }
    for (index, part) in folded.split(['-', '/']).filter(|part| !part.is_empty()).enumerate() {
        let capital = capital && index == 0;
        if let Some(verb) = part.strip_suffix("n't").or_else(|| (part == "dont").then_some("do")) {
            push(
                match verb {
                    "ca" => "can",
                    "wo" => "will",
                    verb => verb,
                },
                capital,
            );
            push("not", false);
        } else if part == "cannot" {
            push("can", capital);
            push("not", false);
        } else if let Some((head, tail)) = part.split_once('\'') {
            // Elision before, possession or a short verb behind.
            match (head.len() <= 2 || head == "jusqu" || head == "aujourd", tail) {
                (_, "s" | "re" | "ve" | "ll" | "m") => {
                    push(head, capital);
                    if tail == "re" {
                        push("is", false);
                    }
                }
                (true, tail) => {
                    push(head, false);
                    push(
                        tail,
                        text.split(['\'', '’'])
                            .nth(1)
                            .is_some_and(|tail| tail.starts_with(char::is_uppercase)),
                    );
                }
                (false, _) => push(part, capital),
            }
        } else {
            push(part, capital);
        }
    }
}

fn join_phrases(tokens: Vec<Token>) -> Vec<Token> {
    let mut joined: Vec<Token> = Vec::with_capacity(tokens.len());
    let mut rest = tokens.as_slice();
    while let Some((first, after)) = rest.split_first() {
        let found = phrases(&first.fold).iter().find(|phrase| {
            rest.len() >= phrase.words.len()
                && phrase
                    .words
                    .iter()
                    .zip(rest)
                    .all(|(word, token)| token.mark.is_none() && *word == token.fold)
        });
        match found {
            Some(phrase) => {
                for part in phrase.means.split(' ') {
                    joined.push(Token {
                        fold: part.to_owned(),
                        known: lookup(part),
                        capital: false,
                        mark: None,
                    });
                }
                rest = rest.get(phrase.words.len()..).unwrap_or_default();
            }
            None => {
                joined.push(first.clone());
                rest = after;
            }
        }
    }
    joined
}

/// Lower case, without accents, with straight apostrophes.
pub(in crate::observe) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for letter in text.chars().flat_map(char::to_lowercase) {
        match letter {
            'á' | 'à' | 'â' | 'ä' | 'ã' | 'å' => folded.push('a'),
            'é' | 'è' | 'ê' | 'ë' => folded.push('e'),
            'í' | 'ì' | 'î' | 'ï' => folded.push('i'),
            'ó' | 'ò' | 'ô' | 'ö' | 'õ' | 'ø' => folded.push('o'),
            'ú' | 'ù' | 'û' | 'ü' => folded.push('u'),
            'ñ' => folded.push('n'),
            'ç' => folded.push('c'),
            'ß' => folded.push_str("ss"),
            'œ' => folded.push_str("oe"),
            'æ' => folded.push_str("ae"),
            '’' | '‘' | 'ʼ' | '`' => folded.push('\''),
            // What is left of a letter that was taken apart.
            '\u{300}'..='\u{36f}' => {}
            letter => folded.push(letter),
        }
    }
    folded
}

pub(in crate::observe) fn words(text: &str) -> Vec<String> {
    let split = fold(text);
    let parts = split.split(|letter: char| !letter.is_alphanumeric());
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

pub(in crate::observe) fn stem(word: &str) -> &str {
    let plural = word.strip_suffix('s').filter(|one| one.chars().count() >= 3 && !one.ends_with('s'));
    plural.unwrap_or(word)
}
