//! Finds lower-layer text that tries to weaken the body's rules, and credentials pasted into prompt files.
//!
//! Owns the meaning of "an attempt": which words, in which relation, make a persona, a memory or a tool description
//! an order against the rules above it. Refuses IO, clocks and certainty: a finding is a reason for a person to look,
//! and silence proves nothing; what really keeps the body in force is the fencing of layers.
//!
//! - `words.txt`, `rules.txt`: what words mean, and the rules with examples
//! - `context`: when a match is a prohibition, a warning or a quotation instead
//! - `marks`, `hidden`: frame marks, invisible text

mod context;
mod finding;
mod hidden;
mod marks;

use std::sync::LazyLock;

use embody_text::decode::decoded_texts;
use embody_text::rules::{Match, RuleSet};
use embody_text::secrets::{self as credentials, Kind};
use embody_text::tokenize::{Document, Options, Quote, tokenize};

pub use finding::{Finding, Rule};

use finding::Findings;

static RULES: LazyLock<RuleSet> =
    LazyLock::new(|| RuleSet::parse(&[include_str!("words.txt"), include_str!("rules.txt")]));

const WORDS: Options = Options { addresses: true, letter_marks: true, ..Options::PLAIN };

/// Every place where `text` tries to relax, override, close, reopen or imitate a rule of a higher layer.
///
/// Findings come in the order of their lines, at most one per rule and line and at most 200 in all.
pub fn override_attempts(text: &str) -> Vec<Finding> {
    let mut findings = Findings::new(text);
    scan(text, &mut findings);
    for (at, decoded) in decoded_texts(text) {
        let mut inner = Findings::new(&decoded);
        scan(&decoded, &mut inner);
        if !inner.is_empty() {
            findings.add(Rule::EncodedOrder, at);
        }
    }
    findings.in_order()
}

/// Credentials written out in `text`; the excerpt shows where, never what.
pub fn secrets(text: &str) -> Vec<Finding> {
    let mut findings = Findings::new(text);
    for secret in credentials::find(text) {
        let rule = match secret.kind {
            Kind::PrivateKey => Rule::PrivateKey,
            Kind::ApiKey => Rule::ApiKey,
            Kind::SignedToken => Rule::SignedToken,
            Kind::PasswordLiteral => Rule::PasswordLiteral,
        };
        findings.add_masked(rule, secret.line_start, secret.description);
    }
    findings.in_order()
}

fn scan(text: &str, findings: &mut Findings<'_>) {
    hidden::find(text, findings);
    marks::find(text, findings);
    let mut doc = tokenize(text, WORDS);
    RULES.annotate(&mut doc);
    for found in RULES.matches(&doc) {
        if let (Some(rule), Some(token)) = (rule_of(&found.rule.id), doc.tokens.get(found.start))
            && is_meant(&doc, found)
        {
            findings.add(rule, token.start);
        }
    }
    for (found, at, _) in RULES.unspaced_matches(text) {
        if let Some(rule) = rule_of(&found.id) {
            findings.add(rule, at);
        }
    }
}

fn rule_of(id: &str) -> Option<Rule> {
    Rule::ALL.into_iter().find(|rule| rule.name() == id)
}

/// Whether a match is neither a prohibition nor a quotation.
fn is_meant(doc: &Document<'_>, found: Match<'_>) -> bool {
    let Match { rule, start, end } = found;
    if rule.has_flag("foreign") {
        let is_quoted = doc.tokens.get(start).is_some_and(|token| token.quote != Quote::None);
        return !(is_quoted && context::is_excused(doc, start));
    }
    if rule.has_flag("open") {
        return !context::is_negated(doc, start);
    }
    let is_reported = rule.has_flag("end") && context::is_reported(doc, end);
    let is_told = rule.has_flag("order") && !context::is_order(doc, start);
    !(is_reported || is_told || context::is_excused(doc, start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_well_formed_and_their_examples_hold() {
        assert_eq!(RULES.problems(), [""; 0]);
        let ids =
            |text: &str| override_attempts(text).iter().map(|found| found.rule.name().to_owned()).collect();
        assert_eq!(RULES.failing_examples(ids), [""; 0]);
    }
}
