//! A sentence into rules. Pure: the sentence, when it was said, and the lexicon are all it knows.
//!
//! Every pattern looks at one clause from its beginning, so that who does something decides: "never mail Bob" is a rule,
//! "Bob never mails" is not.

use std::ops::Range;

use jiff::civil::DateTime;

use super::lexicon::{Actions, Tag};
use super::objects::objects;
use super::patterns;
use super::rule::{Kind, Rule};
use super::times::times;
use super::tokenizer::{Token, tokenize};

const MAX_RULES: usize = 4;
const CUES: [Tag; 21] = [
    Tag::Forbidden,
    Tag::Not,
    Tag::Never,
    Tag::No,
    Tag::NoOf,
    Tag::Ne,
    Tag::Gneg,
    Tag::Nobody,
    Tag::Stop,
    Tag::Ask,
    Tag::Only,
    Tag::Secret,
    Tag::Away,
    Tag::Taboo,
    Tag::Nothing,
    Tag::Quiet,
    Tag::Outside,
    Tag::Before,
    Tag::Without,
    Tag::Keep,
    Tag::Pas,
];

const WORDS: [&str; 6] = ["leave", "lass", "laisse", "need", "needs", "requires"];

#[derive(Clone, Debug)]
pub(super) struct PatternMatch {
    pub(super) kind: Kind,
    pub(super) actions: Actions,
    /// A verb that the lexicon does not know.
    pub(super) verb: Option<String>,
    pub(super) verb_at: usize,
    pub(super) to_people: bool,
    pub(super) subject: Option<Range<usize>>,
    pub(super) subject_is_who: bool,
    pub(super) region: Range<usize>,
    /// It says nothing without an object or a time.
    pub(super) needs_more: bool,
}

pub(super) fn parse_rules(sentence: &str, said: DateTime) -> Vec<Rule> {
    let tokens = tokenize(sentence);
    let cue = |token: &Token| token.known.any(&CUES) || WORDS.contains(&token.fold.as_str());
    if !tokens.iter().any(cue) {
        return Vec::new();
    }
    let mut found: Vec<(usize, PatternMatch)> = Vec::new();
    let mut end = 0;
    for start in starts(&tokens, said) {
        if start < end || found.len() >= MAX_RULES {
            continue;
        }
        if let Some(one) = patterns::find(&tokens, start) {
            end = one.region.end.max(start + 1);
            found.push((start, one));
        }
    }
    let bounds: Vec<usize> = found.iter().skip(1).map(|(start, _)| *start).chain([tokens.len()]).collect();
    let mut from = 0;
    let mut rules = Vec::new();
    for ((_, one), to) in found.into_iter().zip(bounds) {
        rules.extend(rule(&tokens, one, from..to, said));
        from = to;
    }
    rules
}

/// Where a clause may begin: at the beginning, after a mark or a small word, and after a time.
fn starts(tokens: &[Token], said: DateTime) -> Vec<usize> {
    let opens = |token: &Token| {
        token.mark.is_some()
            || token.known.any(&[Tag::Or, Tag::Filler, Tag::Because])
            || ["that", "dass", "que", "to"].contains(&token.fold.as_str())
    };
    let timed = times(tokens, said, false).used;
    let after = tokens.iter().zip(timed).enumerate().filter(|(_, (token, timed))| *timed || opens(token));
    std::iter::once(0).chain(after.map(|(index, _)| index + 1)).collect()
}

/// Adds whom and when. A pattern that needs more than it has is no rule.
fn rule(tokens: &[Token], found: PatternMatch, span: Range<usize>, said: DateTime) -> Option<Rule> {
    let part = tokens.get(span.clone())?;
    let absent = part.iter().any(|token| token.known.is(Tag::Away));
    let times = times(part, said, absent);
    let mut used = vec![false; span.start];
    used.extend(times.used);
    let objects = objects(tokens, &found, &used);
    let mut when = times.when;
    let empty = objects.groups.is_empty() && objects.except.is_empty() && objects.over.is_none();
    let bare = empty && !when.has_hours();
    let aimless = bare && (objects.to_owner || objects.pronoun || found.needs_more && !when.has_dates());
    // Somebody who is away comes back; a memory that does not say when is of no use later.
    let endless = found.kind == Kind::Away && (when.until.is_none() || objects.groups.is_empty());
    if aimless || endless {
        return None;
    }
    let mut kind = if objects.asks && found.kind == Kind::Forbid { Kind::Ask } else { found.kind };
    if kind == Kind::Only && empty {
        // `only between 9 and 17` is a rule about the rest of the day.
        if !when.has_hours() {
            return None;
        }
        (kind, when.outside) = (Kind::Forbid, !when.outside);
    }
    let actions = objects.actions.filter(|_| found.actions != Actions::NONE).unwrap_or(found.actions);
    let (mut groups, mut except) = (objects.groups, objects.except);
    if kind == Kind::Only {
        except.extend(std::mem::take(&mut groups).into_iter().flat_map(|group| group.any));
    }
    if kind == Kind::Secret {
        groups.iter_mut().for_each(|group| group.who = false);
    }
    let (over, to_owner) = (objects.over, objects.to_owner);
    Some(Rule { kind, actions, verb: found.verb, groups, except, when, over, to_owner })
}
