//! Finds lower-layer text that tries to weaken the body's rules, and credentials pasted into prompt files.
//!
//! Owns the meaning of "an attempt": which words, in which relation, make a persona, a memory or a tool description
//! an order against the rules above it. Refuses IO, clocks and certainty: a finding is a reason for a person to look,
//! and silence proves nothing; what really keeps the body in force is the fencing of layers.
//!
//! The map, in the order text flows through it:
//!
//! - `fold`: one character to its plain form (look-alikes, full width, accents, invisible characters)
//! - `tokenizer`, `document`: words with their line, sentence, quotes and lead-ins
//! - `spelling`: words that were spaced out, glued together, misspelled or written with digits
//! - `lexicon`: what a word means here
//! - `pattern`: short phrases over words and meanings, matched in linear time
//! - `context`: when a hit is a prohibition, a warning or a quotation instead
//! - `dismiss`, `passive`, `foreign`: setting rules aside
//! - `phrases`: roles, authority, approval, secrecy, leaking, talk about rules
//! - `marks`, `encoded`: frame marks, invisible text, encoded orders
//! - `credentials`: pasted secrets

mod context;
mod credentials;
mod dismiss;
mod document;
mod encoded;
mod finding;
mod fold;
mod foreign;
mod lexicon;
mod marks;
mod passive;
mod pattern;
mod phrases;
mod spelling;
mod tokenizer;

pub use finding::{Finding, Rule};

use document::Document;
use finding::Findings;

/// Every place where `text` tries to relax, override, close, reopen or imitate a rule of a higher layer.
///
/// Findings come in the order of their lines, at most one per rule and line and at most 200 in all.
pub fn override_attempts(text: &str) -> Vec<Finding> {
    let mut findings = Findings::new(text);
    scan(text, &mut findings);
    for (at, decoded) in encoded::decode_hidden_texts(text) {
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
    credentials::find(text)
}

fn scan(text: &str, findings: &mut Findings<'_>) {
    let doc = Document::read(text);
    encoded::find_hidden(text, findings);
    marks::find(text, findings);
    foreign::find_unspaced(text, findings);
    dismiss::find(&doc, findings);
    passive::find(&doc, findings);
    foreign::find(&doc, findings);
    phrases::find(&doc, findings);
}
