//! Which texts give orders to the agent. Owns the line between an order and a statement; refuses certainty: a text that is
//! held back is kept for the owner to look at, and what is let through is still only data in a frame.
//!
//! Dangerous is what makes the agent do, reveal or obey something, or change its own rules. A restriction relaxes nothing
//! and passes, as do to-dos, recipes, quotations and talk about orders.
//!
//! - the lint of `embody-prompt` knows texts that relax a rule, in many disguises and languages
//! - `clause`: words with what stands between them
//! - `lexicon`: what a word means here
//! - `address`: who is spoken to, and when they are to act
//! - `harm`: whether an act matters, or takes the owner's place
//! - `english`, `foreign`: who is told to do what

mod address;
mod clause;
mod english;
mod foreign;
mod harm;
mod lexicon;

use embody_prompt::lint::{self, Rule};
use embody_prompt::without_hidden;

/// Orders stand at the beginning of a text or after some padding, not behind a book.
const MAX_BYTES: usize = 64 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directive {
    RelaxesRule(Rule),
    CommandsAgent,
}

#[must_use]
pub fn find_directive(text: &str) -> Option<Directive> {
    let text = head(text);
    if let Some(rule) = find_relaxed_rule(text) {
        // Somebody else's words, told as such, are a statement.
        let own = clause::without_quotations(text);
        if own == text || find_relaxed_rule(&own).is_some() {
            return Some(Directive::RelaxesRule(rule));
        }
    }
    let clean = without_hidden(text);
    let sentences = clause::sentences(&clean);
    (english::commands(&sentences) || foreign::commands(&sentences)).then_some(Directive::CommandsAgent)
}

fn find_relaxed_rule(text: &str) -> Option<Rule> {
    let mut found = lint::override_attempts(text).into_iter().map(|finding| finding.rule);
    found.find(|rule| is_dangerous(*rule) && !(*rule == Rule::RoleChange && is_about_obedience(text)))
}

/// "Rex obeys every command": somebody obeys, and neither the reader nor a machine is spoken of.
fn is_about_obedience(text: &str) -> bool {
    const AGENT: &str = "you your you're yourself assistant agent ai bot model llm chatbot";
    let sentences = clause::sentences(text);
    let tells = |from: usize, list: &str| sentences.iter().any(|sentence| sentence.has_from(from, list));
    tells(1, "obey obeys obeyed obeying") && !tells(0, AGENT)
}

/// Frames cannot be closed and what is hidden is taken out, so marks and invisible characters alone are no reason.
fn is_dangerous(rule: Rule) -> bool {
    matches!(
        rule,
        Rule::IgnoreRules
            | Rule::ClaimPrecedence
            | Rule::RoleChange
            | Rule::FakeAuthority
            | Rule::SkipApproval
            | Rule::HideFromOwner
            | Rule::RevealSecrets
            | Rule::EncodedOrder
    )
}

fn head(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_BYTES)).unwrap_or(text)
}
