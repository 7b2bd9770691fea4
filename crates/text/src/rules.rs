//! Rule sets: word classes and rules in a data file, with examples that are checked. Owns the format of such a file and its
//! evaluation, in linear time; what a match means is up to the consumer.
//!
//! ```text
//! [options inflect plural stop=clause edge=soft]   how words are compared (see `Options` in the code)
//! [spelling]                     which disguised words are restored: `glued:`, `split:`, `half:`, `misspelled:`
//! [phrases]                      several words that are read as others: `away: out of office, on holiday`
//! [lists]                        named lists of phrases: `thanks: thank you, many thanks` (see `RuleSet::phrase`)
//! [words] or [words foreign]     word classes, one `CLASS: words` per line
//! [class NAME]                   patterns; the last word of a match gets this class, for the sections below
//! [class NAME first]             the same for the first word
//! [rule id flag]                 patterns, conditions and examples
//! dont|never ~2 tell ~1 PERSON   a pattern
//! text: 不要|勿 & 用户           substrings that a sentence without spaces has, one of each part
//! needs before 6: TOOL|server    a condition: `needs` or `unless`, where, and words. `or` starts an alternative list of needs
//! unless sentence: if
//! + Never tell the user.         an example that is found
//! - Tell the user.               an example that passes
//! ```
//!
//! Where: `before N`, `in`, `after N` (words before, in and after the match), `near N` (both sides within the clause),
//! `sentence`. For `text:` patterns: `text` (anywhere), `prefix`, `suffix` (right before or after the first part).

use crate::lexicon::{Classes, Lexicon};
use crate::patterns::{Bounds, Choice, Index, Pattern, Vocabulary, WordIds};
pub use crate::phrases::Phrase;
use crate::phrases::Phrases;
use crate::spelling::Spelling;
use crate::tokenize::{Document, Gap, Token, unspaced_sentences};

/// How far `sentence` reaches to either side: work on one word is bounded.
const SENTENCE_REACH: usize = 40;

#[derive(Debug)]
pub struct RuleSet {
    pub lexicon: Lexicon,
    phrases: Phrases,
    lists: Phrases,
    vocabulary: Vocabulary,
    bounds: Bounds,
    /// Each with its patterns' index: one can build on the class of another.
    derived: Vec<(Classes, Rule, Index)>,
    rules: Vec<Rule>,
    /// The rule and the pattern of each number in the index.
    numbered: Vec<(usize, usize)>,
    index: Index,
    problems: Vec<String>,
}

#[derive(Debug, Default)]
pub struct Rule {
    pub id: String,
    pub flags: Vec<String>,
    patterns: Vec<Pattern>,
    unspaced: Vec<Unspaced>,
    /// One of these lists must hold, if there is any.
    needs: Vec<Vec<Condition>>,
    unless: Vec<Condition>,
    unless_text: Vec<TextCondition>,
    found: Vec<String>,
    passes: Vec<String>,
}

impl Rule {
    #[must_use]
    pub fn has_flag(&self, name: &str) -> bool {
        self.flags.iter().any(|flag| flag == name)
    }

    fn holds(&self, doc: &Document<'_>, ids: &WordIds, found: (usize, usize), edge: Gap) -> bool {
        let holds = |condition: &Condition| condition.holds(doc, ids, found, edge);
        (self.needs.is_empty() || self.needs.iter().any(|all| all.iter().all(holds)))
            && !self.unless.iter().any(holds)
    }
}

/// A rule that matches from word `start` to word `end`.
#[derive(Debug, Clone, Copy)]
pub struct Match<'r> {
    pub rule: &'r Rule,
    pub start: usize,
    pub end: usize,
}

#[derive(Debug)]
struct Condition {
    scope: Scope,
    choice: Choice,
}

#[derive(Debug, Clone, Copy)]
enum Scope {
    Before(usize),
    In,
    After(usize),
    Near(usize),
    Sentence,
}

impl Condition {
    fn holds(&self, doc: &Document<'_>, ids: &WordIds, (start, end): (usize, usize), edge: Gap) -> bool {
        let fits = |j: usize| self.choice.fits(doc, ids, j);
        let in_clause = |j: &usize| doc.gap(*j) < Gap::Colon;
        match self.scope {
            Scope::Before(reach) => {
                doc.back(start, reach).any(fits) || self.choice.edge && doc.gap(start) >= edge
            }
            Scope::In => (start..=end).any(fits),
            Scope::After(reach) => {
                doc.ahead(end, reach).any(fits) || self.choice.edge && doc.gap(end + 1) >= edge
            }
            Scope::Near(reach) => {
                (start..=end).any(fits)
                    || doc.back(start, reach).take_while(|j| in_clause(&(j + 1))).any(fits)
                    || doc.ahead(end, reach).take_while(in_clause).any(fits)
            }
            Scope::Sentence => {
                (start..=end).any(fits)
                    || doc.back(start, SENTENCE_REACH).any(fits)
                    || doc.ahead(end, SENTENCE_REACH).any(fits)
            }
        }
    }
}

/// Substrings that a sentence has, one of each part.
#[derive(Debug)]
struct Unspaced(Vec<Vec<String>>);

#[derive(Debug)]
struct TextCondition {
    place: TextPlace,
    any: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextPlace {
    Anywhere,
    Prefix,
    Suffix,
}

impl TextCondition {
    /// Whether it speaks against the part of `sentence` that begins at `at` and has `length` bytes.
    fn holds(&self, sentence: &str, at: usize, length: usize) -> bool {
        let before = sentence.get(..at).unwrap_or_default();
        let after = sentence.get(at + length..).unwrap_or_default();
        self.any.iter().any(|part| match self.place {
            TextPlace::Anywhere => contains(sentence, part),
            TextPlace::Prefix => {
                // Little words between a negation and its verb.
                let bare = before.trim_end_matches(['会', '會', '以', '再', '轻', '易', '擅', '自', '去']);
                before.ends_with(part.as_str()) || bare.ends_with(part.as_str())
            }
            TextPlace::Suffix => after.starts_with(part.as_str()),
        })
    }
}

/// `part$` is wanted at the end.
fn contains(sentence: &str, part: &str) -> bool {
    part.strip_suffix('$').map_or_else(
        || sentence.contains(part),
        |end| sentence.trim_end_matches(['。', '.', '\n', ' ']).ends_with(end),
    )
}

impl Rule {
    fn fits_unspaced(&self, sentence: &str) -> bool {
        let allowed = |part: &str| {
            sentence.match_indices(part.trim_end_matches('$')).take(8).any(|(at, found)| {
                !self.unless_text.iter().any(|condition| condition.holds(sentence, at, found.len()))
            })
        };
        self.unspaced.iter().any(|Unspaced(parts)| {
            let mut parts = parts.iter();
            let is_first = parts
                .next()
                .is_some_and(|any| any.iter().any(|part| contains(sentence, part) && allowed(part)));
            is_first && parts.all(|any| any.iter().any(|part| contains(sentence, part)))
        })
    }
}

impl RuleSet {
    /// Reads data files in order. Mistakes are kept for [`RuleSet::problems`], which a test of each consumer asks for.
    #[must_use]
    pub fn parse(files: &[&str]) -> Self {
        let mut parser = Parser::new();
        for (number, line) in files.iter().flat_map(|file| file.lines()).enumerate() {
            let line = line.trim();
            if !line.is_empty()
                && !line.starts_with('#')
                && let Err(problem) = parser.take(line)
            {
                parser.set.problems.push(format!("line {}: {problem}: `{line}`", number + 1));
            }
        }
        parser.finish()
    }

    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Replaces phrases, looks up the words of a document and marks what `[class …]` sections describe.
    pub fn annotate(&self, doc: &mut Document<'_>) {
        self.phrases.replace(doc);
        self.lexicon.annotate(doc);
        let ids = self.vocabulary.ids(doc);
        for (class, rule, index) in &self.derived {
            let found: Vec<usize> = (0..doc.tokens.len())
                .flat_map(|i| {
                    let starting = index.starting_at(doc, &ids, i).into_iter();
                    let ends = starting.filter_map(|number| {
                        let end = rule.patterns.get(number)?.end_at(doc, &ids, i, self.bounds)?;
                        let marked = if rule.has_flag("first") { i } else { end };
                        rule.holds(doc, &ids, (i, end), self.bounds.edge).then_some(marked)
                    });
                    ends.collect::<Vec<usize>>()
                })
                .collect();
            for i in found {
                let Some(token) = doc.tokens.get_mut(i) else { continue };
                token.classes = token.classes.with(*class);
                if let Some(sentence) = doc.sentences.get_mut(token.sentence) {
                    sentence.classes = sentence.classes.with(*class);
                }
            }
        }
    }

    /// The longest phrase that these words begin with, of the lists that are wanted.
    pub fn phrase(&self, tokens: &[Token<'_>], is_wanted: impl Fn(&str) -> bool) -> Option<&Phrase> {
        self.lists.at(tokens, is_wanted)
    }

    /// The phrases of all lists that begin with this word.
    #[must_use]
    pub fn phrases_starting_with(&self, word: &str) -> &[Phrase] {
        self.lists.starting_with(word)
    }

    /// The matches of all rules in an annotated document, in the order of their first words.
    pub fn matches<'a>(&'a self, doc: &'a Document<'_>) -> impl Iterator<Item = Match<'a>> {
        let ids = self.vocabulary.ids(doc);
        (0..doc.tokens.len()).flat_map(move |i| self.matches_at(doc, &ids, i))
    }

    fn matches_at<'a>(&'a self, doc: &Document<'_>, ids: &WordIds, i: usize) -> Vec<Match<'a>> {
        let starting = self.index.starting_at(doc, ids, i).into_iter();
        let found = starting.filter_map(|number| {
            let &(rule, pattern) = self.numbered.get(number)?;
            let rule = self.rules.get(rule)?;
            let end = rule.patterns.get(pattern)?.end_at(doc, ids, i, self.bounds)?;
            rule.holds(doc, ids, (i, end), self.bounds.edge).then_some(Match { rule, start: i, end })
        });
        found.collect()
    }

    /// The rules that sentences of scripts without spaces match, with the first byte of the sentence and its text.
    pub fn unspaced_matches<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (&'a Rule, usize, &'a str)> {
        unspaced_sentences(text).flat_map(move |(at, sentence)| {
            let plain: String =
                sentence.chars().filter(|&c| !crate::fold::is_unseen(c) && !c.is_whitespace()).collect();
            let start = at + sentence.len() - sentence.trim_start().len();
            let fits = move |rule: &&Rule| rule.fits_unspaced(&plain);
            self.rules.iter().filter(fits).map(move |rule| (rule, start, sentence.trim())).collect::<Vec<_>>()
        })
    }

    /// The examples that come out wrong; `find` returns the ids of the rules that a text matches.
    pub fn failing_examples(&self, find: impl Fn(&str) -> Vec<String>) -> Vec<String> {
        let mut wrong = Vec::new();
        for rule in &self.rules {
            for example in &rule.found {
                let ids = find(example);
                if !ids.contains(&rule.id) {
                    wrong.push(format!("[{}] `{example}` is not found, but {ids:?}", rule.id));
                }
            }
            for example in &rule.passes {
                let ids = find(example);
                if !ids.is_empty() {
                    wrong.push(format!("[{}] `{example}` does not pass: {ids:?}", rule.id));
                }
            }
            if rule.found.is_empty() {
                wrong.push(format!("[{}] has no example", rule.id));
            }
        }
        wrong
    }
}

enum Section {
    None,
    Spelling,
    Phrases,
    Lists,
    Words {
        foreign: bool,
    },
    /// A class that the last word of a match gets.
    Class(Classes),
    Rule,
}

struct Parser {
    set: RuleSet,
    section: Section,
    rule: Rule,
}

impl Parser {
    fn new() -> Self {
        let set = RuleSet {
            lexicon: Lexicon::new(),
            phrases: Phrases::default(),
            lists: Phrases::default(),
            vocabulary: Vocabulary::default(),
            bounds: Bounds { stop: Gap::Clause, edge: Gap::Soft },
            derived: Vec::new(),
            rules: Vec::new(),
            numbered: Vec::new(),
            index: Index::default(),
            problems: Vec::new(),
        };
        Self { set, section: Section::None, rule: Rule::default() }
    }

    fn take(&mut self, line: &str) -> Result<(), String> {
        if let Some(heading) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            self.end_section();
            return self.start_section(heading);
        }
        match self.section {
            Section::None => Err("no section".to_owned()),
            Section::Spelling => self.spelling_line(line),
            Section::Phrases => self.set.phrases.add(line),
            Section::Lists => self.set.lists.add(line),
            Section::Words { foreign } => self.words_line(line, foreign),
            Section::Class(_) | Section::Rule => self.rule_line(line),
        }
    }

    fn start_section(&mut self, heading: &str) -> Result<(), String> {
        let mut words = heading.split_whitespace();
        let kind = words.next().unwrap_or_default();
        let rest: Vec<&str> = words.collect();
        self.section = match (kind, rest.as_slice()) {
            ("options", options) => {
                options.iter().try_for_each(|option| self.option(option))?;
                Section::None
            }
            ("spelling", []) => {
                self.set.lexicon.spelling = Some(Spelling::default());
                Section::Spelling
            }
            ("phrases", []) => Section::Phrases,
            ("lists", []) => Section::Lists,
            ("words", []) => Section::Words { foreign: false },
            ("words", ["foreign"]) => Section::Words { foreign: true },
            ("class", [name, flags @ ..]) if matches!(flags, [] | ["first"]) => {
                self.rule.flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
                Section::Class(self.set.lexicon.define(name).ok_or("too many classes")?)
            }
            ("rule", [id, flags @ ..]) => {
                self.rule.id = (*id).to_owned();
                self.rule.flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
                Section::Rule
            }
            _ => return Err("no such section".to_owned()),
        };
        Ok(())
    }

    /// `inflect`: English endings lead back to the word. `plural`: a word of a pattern stands for its `-s` too. `stop=GAP`:
    /// patterns do not cross it. `edge=GAP`: `$` and `^` stand for it. `apostrophes`: words are listed with theirs. `calendar`: names
    /// of days and months have the classes `WEEKDAY` and `MONTH`.
    fn option(&mut self, option: &str) -> Result<(), String> {
        let gap = |name: &str| match name {
            "soft" => Ok(Gap::Soft),
            "colon" => Ok(Gap::Colon),
            "clause" => Ok(Gap::Clause),
            "sentence" => Ok(Gap::Sentence),
            _ => Err("no such gap".to_owned()),
        };
        match option.split_once('=') {
            Some(("stop", name)) => self.set.bounds.stop = gap(name)?,
            Some(("edge", name)) => self.set.bounds.edge = gap(name)?,
            _ if option == "inflect" => self.set.lexicon.inflects = true,
            _ if option == "apostrophes" => self.set.lexicon.keeps_apostrophes = true,
            _ if option == "calendar" => self.set.lexicon.add_calendar(),
            _ if option == "plural" => self.set.vocabulary.plural = true,
            _ => return Err("no such option".to_owned()),
        }
        Ok(())
    }

    fn spelling_line(&mut self, line: &str) -> Result<(), String> {
        let (key, list) = line.split_once(':').ok_or("no `:`")?;
        let classes: Option<Vec<Classes>> = match key {
            "misspelled" => None,
            _ => list.split_whitespace().map(|name| self.set.lexicon.define(name)).collect(),
        };
        let classes = classes.unwrap_or_default();
        let all = classes.iter().fold(Classes::NONE, |all, class| all.with(*class));
        let spelling = self.set.lexicon.spelling.get_or_insert_default();
        match key {
            "glued" => spelling.glued = classes,
            "split" => spelling.split = all,
            "half" => spelling.half = all,
            "misspelled" => spelling.misspelled.extend(list.split_whitespace().map(str::to_owned)),
            _ => return Err("no such key".to_owned()),
        }
        Ok(())
    }

    fn words_line(&mut self, line: &str, foreign: bool) -> Result<(), String> {
        let (names, words) = line.split_once(':').ok_or("no `:`")?;
        let mut classes = if foreign { Classes::FOREIGN } else { Classes::NONE };
        for name in names.split_whitespace() {
            classes = classes.with(self.set.lexicon.define(name).ok_or("too many classes")?);
        }
        self.set.lexicon.add(classes, words);
        Ok(())
    }

    fn rule_line(&mut self, line: &str) -> Result<(), String> {
        if let Some(example) = line.strip_prefix("+ ") {
            self.rule.found.push(unescape(example));
        } else if let Some(example) = line.strip_prefix("- ") {
            self.rule.passes.push(unescape(example));
        } else if line == "or" {
            self.rule.needs.push(Vec::new());
        } else if let Some((head, list)) = line.split_once(": ") {
            self.condition(head, list)?;
        } else {
            let pattern = Pattern::parse(line, &self.set.lexicon, &mut self.set.vocabulary)?;
            self.rule.patterns.push(pattern);
        }
        Ok(())
    }

    fn condition(&mut self, head: &str, list: &str) -> Result<(), String> {
        let words: Vec<&str> = head.split_whitespace().collect();
        let alternatives = |list: &str| list.split('|').map(|part| part.trim().to_owned()).collect();
        let place = match words.as_slice() {
            ["text"] => {
                self.rule.unspaced.push(Unspaced(list.split('&').map(alternatives).collect()));
                return Ok(());
            }
            ["unless", "text"] => Some(TextPlace::Anywhere),
            ["unless", "prefix"] => Some(TextPlace::Prefix),
            ["unless", "suffix"] => Some(TextPlace::Suffix),
            _ => None,
        };
        if let Some(place) = place {
            self.rule.unless_text.push(TextCondition { place, any: alternatives(list) });
            return Ok(());
        }
        let reach = |word: &str| word.parse::<usize>().map_err(|_| "no reach".to_owned());
        let scope = match words.get(1..).unwrap_or_default() {
            ["before", count] => Scope::Before(reach(count)?),
            ["after", count] => Scope::After(reach(count)?),
            ["near", count] => Scope::Near(reach(count)?),
            ["in"] => Scope::In,
            ["sentence"] => Scope::Sentence,
            _ => return Err("no such place".to_owned()),
        };
        let choice = Choice::parse(list, &self.set.lexicon, &mut self.set.vocabulary)?;
        let condition = Condition { scope, choice };
        match words.first() {
            Some(&"unless") => self.rule.unless.push(condition),
            Some(&"needs") => match self.rule.needs.last_mut() {
                Some(all) => all.push(condition),
                None => self.rule.needs.push(vec![condition]),
            },
            _ => return Err("neither `needs` nor `unless`".to_owned()),
        }
        Ok(())
    }

    fn end_section(&mut self) {
        let rule = std::mem::take(&mut self.rule);
        match std::mem::replace(&mut self.section, Section::None) {
            Section::Class(class) => {
                let mut index = Index::default();
                rule.patterns.iter().enumerate().for_each(|(number, pattern)| index.add(number, pattern));
                self.set.derived.push((class, rule, index));
            }
            Section::Rule => {
                for (number, pattern) in rule.patterns.iter().enumerate() {
                    self.set.index.add(self.set.numbered.len(), pattern);
                    self.set.numbered.push((self.set.rules.len(), number));
                }
                self.set.rules.push(rule);
            }
            _ => {}
        }
    }

    fn finish(mut self) -> RuleSet {
        self.end_section();
        self.set
    }
}

/// `\n` in an example is a line break.
fn unescape(example: &str) -> String {
    example.replace("\\n", "\n")
}

#[cfg(test)]
mod tests;
