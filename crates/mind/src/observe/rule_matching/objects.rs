//! Whom and what a rule is about: the words that are left when verb, times and small words are taken out of it.

use embody_text::tokenize::Token;

use super::rule::{Group, Object, PatternMatch};
use super::words::{Actions, Meaning, Tag, is_mark};

/// Somebody whose name stands elsewhere in the sentence.
const PERSONS: [&str; 13] =
    ["him", "her", "them", "ihm", "ihn", "ihr", "ihnen", "lui", "leur", "elle", "elles", "ella", "ellos"];
const MAX_OBJECTS: usize = 12;

#[derive(Clone, Debug, Default)]
pub(super) struct Objects {
    pub(super) groups: Vec<Group>,
    pub(super) except: Vec<Object>,
    /// What exactly is sent: mails, messages, invitations.
    pub(super) actions: Option<Actions>,
    pub(super) over: Option<u32>,
    pub(super) to_owner: bool,
    pub(super) pronoun: bool,
    /// It may be done when the owner is asked.
    pub(super) asks: bool,
    group: Vec<Object>,
    phrase: Vec<String>,
    named: bool,
    who: bool,
    after_det: bool,
    excepting: bool,
}

/// Reads the objects of a rule: its subject first, if it has one, then what follows the verb.
pub(super) fn objects(tokens: &[Token<'_>], found: &PatternMatch, used: &[bool]) -> Objects {
    let mut objects = Objects::default();
    if let Some(subject) = &found.subject {
        objects.who = found.subject_is_who;
        objects.read(tokens, subject.clone(), used, found);
        objects.close();
    }
    objects.who = found.to_people;
    objects.read(tokens, found.region.clone(), used, found);
    objects.close();
    if objects.pronoun && !objects.groups.iter().any(|group| group.who) {
        let named = tokens.iter().filter(|token| token.capital && token.classes.is_plain());
        let any: Vec<Object> = named.take(1).map(|token| Object::Words(vec![token.word.clone()])).collect();
        objects.groups.extend((!any.is_empty()).then_some(Group { any, who: true }));
    }
    objects
}

impl Objects {
    fn read(
        &mut self,
        tokens: &[Token<'_>],
        range: std::ops::Range<usize>,
        used: &[bool],
        found: &PatternMatch,
    ) {
        for index in range {
            let Some(token) = tokens.get(index) else { return };
            if used.get(index) == Some(&true) || index == found.verb_at {
                self.flush();
            } else if token.classes.any(&[Tag::Unless, Tag::Without]) && !token.capital {
                self.asks |= token.classes.is(Tag::Without);
                return;
            } else if let Some(amount) = amount(tokens, index) {
                self.over = Some(amount);
            } else if !self.mark(tokens, index) && !self.noun(token, found) {
                self.content(token);
            }
        }
    }

    /// Words that only part others.
    fn mark(&mut self, tokens: &[Token<'_>], index: usize) -> bool {
        let Some(token) = tokens.get(index) else { return false };
        let (known, next) = (token.classes, tokens.get(index + 1));
        let before = index.checked_sub(1).and_then(|before| tokens.get(before)).map(|token| token.classes);
        let spared =
            known.is(Tag::But) && before.is_some_and(|known| known.any(&[Tag::Generic, Tag::Nobody]));
        if token.word == ";" {
            self.close();
        } else if is_mark(token) || known.is(Tag::Or) && !token.capital {
            self.flush();
        } else if known.any(&[Tag::Except, Tag::Outside]) || spared {
            self.close();
            self.excepting = true;
        } else if known.is(Tag::To) && is_to(token, next) {
            self.close();
            // `to see the salaries`
            let verb = |next: &Token<'_>| next.classes.is(Tag::Get) || next.classes.is(Tag::Command);
            let sees = next.is_some_and(|next| verb(next) && !next.capital);
            // `bother Bob with invoices`
            self.who = !sees && !self.groups.iter().any(|group| group.who);
        } else if known.any(&[Tag::About, Tag::From]) && !known.is(Tag::Det) {
            // The rest of an exception belongs to it: `except people at …`.
            self.close();
            self.who = self.excepting;
        } else if known.is(Tag::Det) {
            if !self.phrase.is_empty() {
                self.close();
            }
            self.after_det = true;
        } else if known.is(Tag::NoOf) {
            self.close();
        } else if known.is(Tag::Me) {
            self.to_owner = true;
            self.flush();
        } else if !known.is_plain() && known.actions() == Actions::NONE {
            self.pronoun |= PERSONS.contains(&token.word.as_str());
            self.flush();
        } else {
            return false;
        }
        true
    }

    /// `mails` in `send mails to Bob` says what is sent; in `delete mails` it is what is deleted.
    fn noun(&mut self, token: &Token<'_>, found: &PatternMatch) -> bool {
        let known = token.classes;
        if known.actions() == Actions::NONE || token.capital && !known.is(Tag::Thing) {
            return false;
        }
        let sent = known.is(Tag::Thing) && known.actions().meets(found.actions);
        let handled = found.actions.meets(Actions::DELETE.and(Actions::CHANGE));
        let sent = found.actions == Actions::ANY || sent && !handled;
        if sent {
            self.flush();
            self.actions.get_or_insert(known.actions());
            return true;
        }
        // Another verb of the same sentence is nobody's name, but `my phone number` is something.
        if !known.is(Tag::Thing) && !self.after_det && self.phrase.is_empty() {
            self.flush();
            return true;
        }
        false
    }

    fn content(&mut self, token: &Token) {
        let named = token.capital && !self.after_det;
        if token.word.contains('@') {
            self.flush();
            let domain = token.word.strip_prefix('@').map(str::to_owned);
            let address = Object::Address(token.word.clone());
            self.push(domain.map_or(address, Object::Domain), true);
        } else if is_domain(&token.word) {
            self.flush();
            self.push(Object::Domain(token.word.clone()), true);
        } else {
            if named && !self.named {
                // `my colleague Jane` is Jane.
                self.phrase.clear();
            } else if !self.phrase.is_empty() && self.named != named && !self.after_det {
                // `Bob invoices`: somebody, and something.
                self.close();
            }
            self.named = named;
            self.phrase.push(token.word.clone());
            self.after_det &= token.capital;
        }
    }

    fn push(&mut self, object: Object, who: bool) {
        self.who |= who;
        if self.group.len() < MAX_OBJECTS {
            self.group.push(object);
        }
    }

    fn flush(&mut self) {
        let words = std::mem::take(&mut self.phrase);
        if words.iter().any(|word| word.chars().count() > 1) {
            let named = self.named;
            self.push(Object::Words(words), named);
        }
        (self.named, self.after_det) = (false, false);
    }

    fn close(&mut self) {
        self.flush();
        let (any, who) = (std::mem::take(&mut self.group), std::mem::take(&mut self.who));
        if self.excepting {
            self.except.extend(any);
        } else if !any.is_empty() {
            self.groups.push(Group { any, who });
        }
    }
}

/// The number in `more than 100`, `over 100`, `mehr als 100`.
fn amount(tokens: &[Token<'_>], index: usize) -> Option<u32> {
    let before = tokens.get(index.checked_sub(1)?)?;
    let beyond = ["than", "over", "above", "uber", "als"].contains(&before.word.as_str());
    tokens.get(index)?.word.parse().ok().filter(|_| beyond)
}

/// `a` and `an` are articles, or French, Spanish and German prepositions before somebody.
fn is_to(token: &Token<'_>, next: Option<&Token<'_>>) -> bool {
    let somebody = next.is_some_and(|next| {
        next.capital
            || next.word.contains('@')
            || next.classes.any(&[Tag::Det, Tag::Generic])
            || is_domain(&next.word)
    });
    !matches!(token.word.as_str(), "a" | "an") || somebody
}

fn is_domain(word: &str) -> bool {
    let Some((name, end)) = word.rsplit_once('.') else { return false };
    let letters = |part: &str| part.chars().all(|letter| letter.is_ascii_alphabetic());
    !name.is_empty() && (2..=24).contains(&end.len()) && letters(end) && !word.contains('/')
}
