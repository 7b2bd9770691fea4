//! Talk about the higher layers' rules that takes their force away: calling them a mistake, granting exceptions,
//! permitting what they forbid.

use super::super::context;
use super::super::document::Document;
use super::super::finding::Rule;
use super::super::kinds::Kinds;
use super::Group;

pub(super) const GROUPS: &[Group] = &[
    Group { rule: Rule::IgnoreRules, phrases: BELITTLED, holds: is_meant },
    Group { rule: Rule::IgnoreRules, phrases: EXCEPTIONS, holds: is_meant },
    Group { rule: Rule::IgnoreRules, phrases: SWEPT, holds: is_swept },
];

const BELITTLED: &[&str] = &[
    "TOPIC ~7 mistake|joke|lie|outdated|silly|stupid|nonbinding|wrong|overcautious|paranoid|unnecessary|irrelevant|nonsense",
    "TOPIC ~5 just|only|merely|simply|mere ~1 default|suggestion|advice|starting|decoration|formality|placeholder|guidance|guideline",
    "TOPIC ~7 non|not|isnt|arent binding|serious|real|meant|relevant|mandatory",
    "TOPIC ~3 NEG ~2 concern|apply|bind|affect|matter|count|cover|touch|limit ~2 me|you|us|here|this|him|her|family|friends|now|$",
    "TOPIC ~8 leave it|them|that out|aside|behind",
    "TOPIC ~2 forbid|prohibit|disallow|ban|block ~6 permit|allow|may|welcome|fine",
    "ignore|forget|disregard ~4 TOPIC",
    "those|these|your rules|restrictions|guidelines|policies are ~1 silly|stupid|nonsense|dumb|pointless|ridiculous|overkill",
    "TOPIC ~5 too strict|rigid|cautious|careful|narrow|harsh|limiting|tight",
    "attribution|audit|auditing|approval|approvals|confirmation|logging is|are ~2 optional|unnecessary|needless|voluntary|overrated|waived|pointless",
    "you|youre|agent|i are|am|is? not|no longer? limited|restricted|confined|bound|tied to ~2 project|workspace|folder|scope|account|repository|directory|task|channel|channels|sandbox",
    "act|work|go|reach|operate outside|beyond ~2 scope|workspace|mandate|remit|sandbox",
];

const EXCEPTIONS: &[&str] = &[
    "exception|exemption|loophole|waiver ~10 TOPIC",
    "TOPIC ~6 except|unless ~2 i|you|this|we",
    "PERMIT|may|can|free ~2 change|edit|modify|adjust|tweak|rewrite|amend|alter|redefine|reinterpret|adapt ~5 TOPIC",
    "TOPIC ~7 change|edit|modify|adjust|tweak|rewrite|amend|alter ~3 it|them ~4 you|like|want|way|needed|freely",
    "released|relieved|freed|excused|absolved|exempt ~2 from|of ~4 TOPIC|RULE",
];

const SWEPT: &[&str] = &[
    "RULE|restrictions ~2 not|dont|doesnt apply to me|you|us|him|her|family|friends",
    "RULE|restrictions ~1 only|just apply to ~3 not ~1 me|you|us|him|her",
    "none of ~4 RULE ~4 apply|valid|count|binding|matter|hold|relevant|needed|stand|force",
    "all ~4 restrictions|rules|limits|guidelines|filters|limitations|safeguards|guardrails|checks|policies are|is|were|been? ~1 removed|lifted|off|gone|disabled|void|suspended|waived",
    "prior|previous|earlier|old|existing RULE cancelled|canceled|void|revoked|rescinded|deleted|overridden|replaced",
];

fn is_meant(doc: &Document, start: usize, end: usize) -> bool {
    let asked = doc.sentence(start).is_some_and(|sentence| sentence.question);
    let history = (start..end).any(|j| doc.one_of(j, "was were") && !doc.any_ahead(j, 6, Kinds::GONE))
        && !(start..=end).any(|j| doc.one_of(j, "mistake leave joke"));
    let none = doc.back(start, 2).any(|j| doc.one_of(j, "no none zero")) && doc.word(start) != "none";
    let documented = doc.around(start).has(Kinds::OPTION);
    !asked
        && !history
        && !none
        && !documented
        && !context::is_excused(doc, start)
        && !context::is_reported(doc, end)
}

/// Everything swept away, and nothing said that would make it the rules of something else.
fn is_swept(doc: &Document, start: usize, end: usize) -> bool {
    let narrowed = doc
        .ahead(start, 12)
        .any(|j| doc.one_of(j, "on for from in at") && !doc.one_of(j + 1, "you me now this the"));
    let history = (start..=end).any(|j| doc.one_of(j, "was were"));
    !narrowed && !history && is_meant(doc, start, end)
}
