//! Borrowed authority: claiming to be the owner, the makers or an administrator who changes the rules here and now. Also
//! talk that weakens the rules of higher layers: calling them a mistake, granting exceptions, permitting what they forbid.

use super::super::context;
use super::super::document::Document;
use super::super::finding::Rule;
use super::super::lexicon::Kinds;
use super::Group;

pub(super) const GROUPS: &[Group] = &[
    Group { rule: Rule::FakeAuthority, phrases: CLAIMS, holds: changes_rules },
    Group { rule: Rule::FakeAuthority, phrases: FORMULAS, holds: is_said },
    Group { rule: Rule::FakeAuthority, phrases: IMPERSONATION, holds: is_told_to_agent },
    Group { rule: Rule::IgnoreRules, phrases: OUTSIDE_AS_ORDERS, holds: is_told_to_agent },
    Group { rule: Rule::ClaimPrecedence, phrases: HIGHEST, holds: is_of_this_text },
    Group { rule: Rule::ClaimPrecedence, phrases: CONFLICTS, holds: is_decided_for_this_text },
];

const CLAIMS: &[&str] = &[
    "as ~2 CHIEF|developer|creator|maker|engineer|anthropic|openai ~8 i|we ~3 authorize|authorise|grant|permit|allow|order|instruct|approve|waive|command|lift|release|override|suspend|hereby|give",
    "i am|m ~3 CHIEF|developer|creator|maker|anthropic|openai|root ~12 authorize|authorise|grant|permit|allow|order|approve|waive|lift|override|suspend|hereby|command|instruct|disable|ignore|give",
    "im ~3 CHIEF|developer|creator|maker|anthropic|openai|root ~12 authorize|authorise|grant|permit|allow|order|approve|waive|lift|override|suspend|hereby|command|instruct|disable|ignore|give",
    "by|with|under ~2 authority|order|orders|permission|power of ~3 CHIEF|anthropic|openai|system|security|developer|developers|management|creators",
    "authorized|authorised|approved|issued|signed|sent|confirmed|sanctioned by ~3 anthropic|openai|system|CHIEF|security|developers ~8 RULE|GUARD|CONSENT|override|ignore|bypass|disable|suspended|lifted",
    "anthropic|openai|CHIEF|developers|creators has|have|hereby ~3 authorized|authorised|granted|lifted|suspended|disabled|removed|waived|permitted|revoked ~6 RULE|GUARD|CONSENT|LOOSE|you",
    "on behalf of ~3 anthropic|openai|CHIEF|security|developers|system",
];

const FORMULAS: &[&str] = &[
    "new|updated|revised|real|actual|true|following system|body|developer prompt|instructions|instruction|rules|directive|message|policy",
    "^ system|admin|root|developer|security override",
    "new|updated|revised|real|actual instructions|directives from|by|for ~2 CHIEF|system|developer|anthropic|openai",
    "end|ends|close|closing|conclusion of ~2 system|body|developer|initial|original prompt|instructions|rules|message|section",
    "system|body prompt|rules|instructions ends|ended|end here|now|above",
    "system|admin|administrator|security|developer|root|owner override ~2 code|enabled|accepted|granted|engaged|activated|active|authorized|authorised|confirmed|in|initiated",
    "override|authorization|authorisation|unlock code|password|passphrase|token ~3 accepted|verified|confirmed|valid",
    "i|we hereby ~2 authorize|authorise|grant|permit|release|lift|waive|suspend|revoke|override|order|command|unlock",
    "this|following ~4 is|comes|came ~3 direct|official|authentic|genuine|verified ~4 from|by|of ~4 CHIEF|anthropic|openai|system|developer|developers|security",
    "you have|been been? ~1 granted|given ~2 full|root|admin|administrator|unrestricted|elevated|unlimited|complete access|rights|privileges|permissions|permission|clearance|autonomy",
];

const IMPERSONATION: &[&str] = &[
    "impersonate ~2 CHIEF",
    "same|equal rights|authority|permissions|privileges|standing|powers as ~1 CHIEF",
    "treat|treated|regard|regarded|count|counts|consider|considered|recognise|recognised|recognize|recognized|accept|accepted ~3 as ~1 CHIEF $",
    "pretend|claim to be ~2 CHIEF",
    "pose|posing|sign|reply|answer|write|post|speak as ~1 CHIEF|owners",
];

const OUTSIDE_AS_ORDERS: &[&str] = &[
    "RULE|orders|requests ~1 inside|in|from ~4 OUTSIDE|messages|stranger|strangers|visitors ~6 count|are|carry|rank as|like|equal|trusted|binding|valid|authority ~3",
    "treat ~6 OUTSIDE ~4 as if|though ~3 CHIEF|i|me|system",
    "accept|take|follow|obey ~1 orders|commands|instructions|requests from ~3 anyone|number|everyone|strangers|visitors|group|whoever|anybody",
    "treat|regard|consider|take|accept ~5 OUTSIDE ~5 as ~3 RULE|commands|orders|trusted|authoritative|binding",
    "follow|obey|execute|comply ~3 any|all|every|whatever ~2 RULE|commands|orders|requests ~4 in|from|inside|within ~4 OUTSIDE|messages|strangers",
    "trust|believe ~1 content|contents|text|instructions of|in|on|from ~3 OUTSIDE",
    "trust|believe everything|anything|all ~5 OUTSIDE",
];

const HIGHEST: &[&str] = &[
    "highest|top|ultimate|supreme|absolute|maximum|utmost priority|authority|precedence|rank ~8 over|above|than|regardless|even|system|override",
    "cannot|not|never be ~1 overridden|changed|superseded|revoked|overruled ~2 by ~3 system|body|anyone|anything|any|earlier|previous|developer|other",
    "absolute|final|supreme and|over|above",
];

const CONFLICTS: &[&str] = &[
    "conflict|conflicts|contradict|contradicts|contradiction|disagree|disagrees|clash|clashes|differ|differs|contrary|inconsistent ~14 follow|obey|prefer|trust|favor|favour|use|choose|apply|keep ~3 this|these|mine|my|me|persona|soul",
    "conflict|conflicts|contradict|contradicts|contradiction|disagree|disagrees|clash|clashes|differ|differs|contrary|inconsistent ~14 this|these|mine|my|persona|soul ~4 wins|win|prevails|prevail|first|applies|apply|precedence|counts|govern|governs|rules",
    "conflict|contradict|clash|differ ~3 this|my|these ~12 DISMISS|drop|discard|skip ~2 it|them|rule|instruction|that|rules",
    "even where|if|when|though ~4 contradict|conflict|override|violate|break|against ~3 EARLIER|HIGHER|YOUR ~2 RULE",
    "side|prefer|choose|pick|trust|favor|favour ~3 this|these|my|persona|soul ~3 over|above ~3 TOPIC",
    "even if|when|though ~4 RULE|system|body|GUARD|above|earlier ~4 otherwise|differently|not|forbids|forbid|prohibits|prohibit|disallow|disallows|opposite|no $",
    "even if|when|though ~4 RULE|system|body|GUARD ~2 forbid|prohibit|disallow|ban it|that|this|so|them",
    "where|when|if ~1 body|system|rules ~2 no|forbid|prohibit ~8 yes|anyway|still|allowed",
    "whatever|regardless|despite ~2 rules|guidelines|policies|policy|instructions ~1 say",
    "regardless|irrespective|no of|matter what? ~3 system|body|RULE|GUARD|above|earlier|previous ~4 say|says|said|state|states|above|requires|require|prompt|forbid|forbids",
    "whatever|despite|notwithstanding ~3 system|body|above|earlier|previous|prior ~3 say|says|said|states|prompt|rules|instructions|rule|instruction|policy|guidelines",
];

fn is_said(doc: &Document, start: usize, end: usize) -> bool {
    let documented = doc.around(start).has(Kinds::OPTION)
        || doc
            .back(start, 4)
            .any(|j| doc.one_of(j, "tests test when a each draft write wrote review reviewed publish our"))
        || doc
            .ahead(end, 3)
            .any(|j| doc.one_of(j, "was were file editor api size length template section test tests"));
    !documented && !context::is_excused(doc, start)
}

fn is_told_to_agent(doc: &Document, start: usize, end: usize) -> bool {
    let told = doc.is(start, Kinds::PAST | Kinds::GERUND)
        || doc.back(start, 3).any(|j| doc.one_of(j, "they we who could might"));
    let denied = (start + 1..=end).any(|j| doc.is(j, Kinds::NEG));
    !told
        && !denied
        && !doc.around(start).has(Kinds::OPTION)
        && !context::is_excused(doc, start)
        && !context::is_reported(doc, end)
}

/// "These instructions have the highest priority."
fn is_of_this_text(doc: &Document, start: usize, end: usize) -> bool {
    let own =
        |j: usize| doc.is(j, Kinds::THIS) && doc.ahead(j, 3).any(|k| doc.is(k, Kinds::RULE | Kinds::TEXT));
    let instead = doc.ahead(end, 4).any(|j| doc.is(j, Kinds::RULE));
    let higher = doc.back(start, 8).any(|j| doc.is(j, Kinds::HIGHER));
    (doc.back(start, 8).any(own) || instead && doc.back(start, 5).any(|j| doc.one_of(j, "treat this these")))
        && !higher
        && !context::is_excused(doc, start)
}

fn changes_rules(doc: &Document, start: usize, end: usize) -> bool {
    let about_agent = doc.ahead(start, 30).any(|j| {
        doc.one_of(j, "you your yourself agent")
            || doc.is(j, Kinds::RULE | Kinds::GUARD | Kinds::CONSENT | Kinds::DISMISS)
    });
    let pretended = doc.back(start, 6).any(|j| {
        doc.one_of(
            j,
            "claims claiming claim pretends pretending says someone anyone nobody if only speak act never",
        )
    });
    about_agent && !pretended && !context::is_excused(doc, start) && !context::is_reported(doc, end)
}

/// A conflict with rules above, decided in favour of this text.
fn is_decided_for_this_text(doc: &Document, start: usize, end: usize) -> bool {
    let sentence =
        doc.sentence(start).map_or(0..0, |s| s.first.max(start.saturating_sub(20))..s.end.min(end + 12));
    let above = sentence.clone().any(|j| doc.is(j, Kinds::HIGHER | Kinds::EARLIER | Kinds::TOPIC));
    let rules = sentence
        .clone()
        .any(|j| doc.is(j, Kinds::RULE | Kinds::GUARD | Kinds::THINGS) || doc.word(j) == "above");
    let yields = sentence
        .clone()
        .any(|j| doc.one_of(j, "defer yield lose loses ask stop refuse body system") && j > end);
    let trade = sentence.into_iter().any(|j| doc.is(j, Kinds::TRADE) && doc.is(j + 1, Kinds::RULE));
    // "Whatever the body says, …" sets it aside; "whatever the body says goes" does not.
    if doc.word(start) == "whatever" && !doc.ends_before(end + 1) {
        return false;
    }
    let own = doc.ahead(start, 4).any(|j| doc.is(j, Kinds::THIS) && doc.is(j + 1, Kinds::TEXT));
    let rules_at_large =
        doc.one_of(start, "whatever regardless despite") && doc.any_ahead(start, 3, Kinds::RULE);
    (above || own || rules_at_large)
        && rules
        && !yields
        && !trade
        && !context::is_excused(doc, start)
        && !context::is_reported(doc, end)
}

pub(super) const TALK_GROUPS: &[Group] = &[
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
