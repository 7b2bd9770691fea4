//! Orders to set rules aside and claims to outrank them: a verb, its object, and words that say whose rules.
//! Owns the English sentence with the verb first, and the walk over the words after a verb that finds its object;
//! `passive` has the other direction.

use std::sync::OnceLock;

use super::document::{self, Document, Gap};
use super::finding::{Findings, Rule};
use super::lexicon::Kinds;
use super::pattern::Phrases;
use super::{context, passive};

pub(super) fn find(doc: &Document, findings: &mut Findings<'_>) {
    static VERBS: OnceLock<Verbs> = OnceLock::new();
    let verbs = VERBS.get_or_init(Verbs::new);
    for i in 0..doc.tokens.len() {
        if let Some(rule) = verbs.rule_at(doc, i)
            && let Some(token) = doc.tokens.get(i)
        {
            findings.add(rule, token.at);
        }
    }
}

struct Verbs {
    dismiss: Phrases,
    disobey: Phrases,
    outrank: Phrases,
    release: Phrases,
    instead: Phrases,
}

const DISMISS: &[&str] = &[
    "turn|switch|shut ~3 off",
    "turn|switch|shut off",
    "set|put|leave|lay|push ~4 aside|behind",
    "throw|toss ~4 away|out",
    "cast|shake|shrug|throw|strip ~4 off|aside|away",
    "be|being|more ~4 relaxed|flexible|lenient|lax|loose|casual|liberal about|with|on|regarding|around",
    "go|ease easy|up on",
    "think|regard|view|see|interpret|take|treat|consider|read ~9 as|merely|mere|just|only ~2 suggestion|optional|advice|recommendation|void|joke|fiction|outdated|irrelevant|history|noise|obsolete|cancelled|lifted",
    "get rid of",
    "do away with",
    "pay no|little|scant attention|heed|mind|regard to",
    "turn a blind eye to",
    "look past|beyond|away",
    "depart|deviate|stray from",
    "dispense with",
    "take no notice of",
    "let go of",
    "opt out of",
    "work|get|go around",
    "make exceptions? to|from",
    "consider ~6 void|optional|irrelevant|obsolete|cancelled|lifted|suspended|superseded",
    "act|behave|respond|answer|operate|continue ~2 outside|against|contrary",
];

const DISOBEY: &[&str] = &[
    "NEG ~4 COMPLY to|by|with|from?",
    "NEG ~2 need|have to follow|obey|respect|heed",
    "need|should|must|do|does|will not ~2 COMPLY to|by|with?",
    "no longer ~3 COMPLY to|by|with?",
    "no need|reason|obligation to COMPLY to|by|with?",
    "stop|quit|cease|without COMPLY to|by|with?",
    "instead of COMPLY to|by|with?",
    "NEG ~2 worry|care|bother|fret about|with",
    "never mind",
    "less strict|careful|rigid|picky about|with|on",
    "NEG ~3 stick|keep|hold|listen|pay to|attention",
];

const OUTRANK: &[&str] = &[
    "take|takes|taking|has|have|having|given|gets|gain|gains|claim ~2 precedence|priority|primacy over|above",
    "outrank|outranks|trump|trumps|trumping|outweigh|outweighs|supplant|supplants",
    "prevail|prevails|win|wins|preside over|against",
    "come|comes|go|goes|stand|stands|rank|ranks before|above|over",
    "higher|greater|more ~1 priority|authority|rank|important|weight than",
    "override|overrides|supersede|supersedes|replace|replaces|overrule|overrules",
];

const INSTEAD: &[&str] = &["instead of", "rather than", "in place|lieu of", "as opposed to"];

const RELEASE: &[&str] = &[
    "exempt|exempted|excused|immune|free|freed|released|liberated|relieved|absolved|unbound|excluded from|of|to|by",
    "not|no|never|arent|isnt longer? bound|subject|restricted|constrained|limited|governed|beholden|covered by|to",
    "outside the reach|scope of",
    "stand|am|is|are|operate|live|exist beyond|above|outside",
];

impl Verbs {
    fn new() -> Self {
        Self {
            dismiss: Phrases::new(DISMISS),
            disobey: Phrases::new(DISOBEY),
            outrank: Phrases::new(OUTRANK),
            release: Phrases::new(RELEASE),
            instead: Phrases::new(INSTEAD),
        }
    }

    fn rule_at(&self, doc: &Document, i: usize) -> Option<Rule> {
        self.claim_at(doc, i)
            .or_else(|| self.order_at(doc, i))
            .or_else(|| self.release_at(doc, i))
            .or_else(|| self.replacement_at(doc, i))
    }

    fn order_at(&self, doc: &Document, i: usize) -> Option<Rule> {
        if let Some(end) = self.disobey.end_at(doc, i) {
            if acts_on_named_before(doc, i, end) && !context::is_reported(doc, i) {
                return Some(Rule::IgnoreRules);
            }
            let object = object_after(doc, end)?;
            let meant = object.is_above_in(doc) && !object.is_outside(doc);
            return (meant && !context::is_excused(doc, i)).then_some(Rule::IgnoreRules);
        }
        let phrase = self.dismiss.end_at(doc, i);
        let strong = doc.is(i, Kinds::DISMISS) && !doc.is(i, Kinds::FOREIGN);
        let end = phrase.or_else(|| (strong || doc.is(i, Kinds::CHANGE)).then_some(i))?;
        if !is_order(doc, i) {
            return None;
        }
        if (strong || phrase.is_some()) && acts_on_named_before(doc, i, end) {
            return (!context::is_excused(doc, i)).then_some(Rule::IgnoreRules);
        }
        if !strong && phrase.is_none() && doc.ends_before(end + 1) {
            return None;
        }
        let object = object_after(doc, end)
            .or_else(|| phrase.and_then(|_| object_after(doc, i)))
            .or_else(|| object_after(doc, after_aside(doc, end)?))?;
        let meant =
            if strong || phrase.is_some() { object.is_target(doc, i) } else { object.is_firm_target(doc, i) };
        (meant && !context::is_excused(doc, i)).then_some(Rule::IgnoreRules)
    }

    fn claim_at(&self, doc: &Document, i: usize) -> Option<Rule> {
        let end = self.outrank.end_at(doc, i)?;
        let object = object_after(doc, end)?;
        let subject: Vec<usize> = doc.back(i, 8).take_while(|&j| doc.gap(j + 1) < Gap::Colon).collect();
        let high = subject.iter().any(|&j| doc.is(j, Kinds::HIGHER));
        let own = subject.iter().any(|&j| is_this_text(doc, j));
        let single = end == i;
        let meant = match (single, own) {
            (_, true) => {
                object.is_above_in(doc)
                    || object.names_all(doc) && !doc.ahead(object.at, 4).any(|j| doc.one_of(j, "in"))
            }
            (false, false) => object.higher || object.names_all(doc) && !high || object.earlier && object.all,
            (true, false) => !doc.is(i, Kinds::DISMISS | Kinds::CHANGE) && object.higher,
        };
        (meant && (own || !high) && !context::is_excused(doc, i)).then_some(Rule::ClaimPrecedence)
    }

    /// "Use these rules instead of the system's."
    fn replacement_at(&self, doc: &Document, i: usize) -> Option<Rule> {
        let object = object_after(doc, self.instead.end_at(doc, i)?)?;
        let verb =
            doc.back(i, 14).find(|&j| doc.is(j, Kinds::COMPLY) || doc.one_of(j, "use take read consult"));
        let meant = object.is_above_in(doc) && verb.is_some_and(|verb| !context::is_excused(doc, verb));
        (meant && !context::is_excused(doc, i)).then_some(Rule::IgnoreRules)
    }

    fn release_at(&self, doc: &Document, i: usize) -> Option<Rule> {
        let end = self.release.end_at(doc, i)?;
        let about_agent =
            doc.back(i, 6).any(|j| doc.one_of(j, "you youre your persona agent character i im it he she"))
                || doc
                    .back(i, 2)
                    .any(|j| doc.tokens.get(j).is_some_and(|token| token.capital && token.kinds.is_empty()));
        let object = object_after(doc, end)?;
        let restricts = object.rule || object.guard || object.names_all(doc) || object.loose && object.all;
        let whose = object.all || object.is_above_in(doc) || object.bare || object.guard;
        let excused = context::is_negated(doc, i) || context::is_excused(doc, i);
        (about_agent && restricts && whose && !object.is_outside(doc) && !excused).then_some(Rule::RoleChange)
    }
}

/// Whether word `j` points at this very text: "this file", "these instructions", "my rules".
pub(super) fn is_this_text(doc: &Document, j: usize) -> bool {
    doc.one_of(j, "following below herein hereby")
        || doc.is(j, Kinds::THIS)
            && doc.ahead(j, 3).any(|k| {
                doc.is(k, Kinds::TEXT | Kinds::RULE | Kinds::CHIEF)
                    || doc.one_of(k, "section user line words word workspace project")
            })
}

/// "The rules above are old, ignore them": the rules were named before the verb.
fn acts_on_named_before(doc: &Document, i: usize, end: usize) -> bool {
    let pointing = doc.ahead(i, end - i + 2).any(|j| doc.one_of(j, "them those"));
    let pointing_up = doc.ahead(i, end - i + 2).any(|j| doc.word(j) == "it");
    let rules = |j: usize| doc.is(j, Kinds::RULE | Kinds::GUARD) && passive::is_above(doc, j);
    let all_above = |j: usize| {
        doc.word(j) == "above" && j.checked_sub(1).is_some_and(|b| doc.one_of(b, "the everything all"))
    };
    (i.saturating_sub(18)..i).any(|j| pointing && rules(j) || (pointing || pointing_up) && all_above(j))
}

/// The word before the one that follows an aside: "disregard, whenever it helps, the rules".
fn after_aside(doc: &Document, end: usize) -> Option<usize> {
    (doc.gap(end + 1) == Gap::Soft).then_some(())?;
    doc.ahead(end, 20).skip(1).find(|&j| doc.gap(j) == Gap::Soft).map(|j| j - 1)
}

/// Whether the verb at `i` gives an order or leave, rather than telling what somebody does.
fn is_order(doc: &Document, i: usize) -> bool {
    let before = subject_before(doc, i);
    let kinds = doc.kinds(i);
    if kinds.has(Kinds::GERUND) {
        let starts = before.is_some_and(|b| doc.one_of(b, "start begin by consider keep continue worth"));
        return starts || doc.any_ahead(i, 14, Kinds::PERMIT);
    }
    if kinds.has(Kinds::PAST) {
        return false;
    }
    if kinds.has(Kinds::THIRD) {
        return doc.gap(i) == Gap::Sentence
            || doc.back(i, 7).any(|j| is_this_text(doc, j))
            || is_said_of_agent(doc, i);
    }
    let Some(before) = before else { return true };
    if doc.one_of(before, "the a an no this each manual explicit method with of they who") {
        return false;
    }
    if doc.one_of(before, "that which") {
        return doc.back(i, 7).any(|j| is_this_text(doc, j) || doc.word(j) == "new")
            || doc.one_of(before, "that") && doc.back(before, 2).any(|j| doc.one_of(j, "want require"));
    }
    let plural = doc.word(before).len() > 3 && doc.word(before).ends_with('s');
    let stands_alone = doc.one_of(before, "always lets thus yes please this users");
    !plural || stands_alone || doc.kinds(before).has(Kinds::DISMISS | Kinds::THIS | Kinds::YOUR)
}

/// The word before the verb at `i` in its clause, adverbs aside.
fn subject_before(doc: &Document, i: usize) -> Option<usize> {
    let adverb = |j: usize| doc.word(j).len() > 4 && doc.word(j).ends_with("ly");
    let first = doc.back(i, 3).take_while(|&j| doc.gap(j + 1) < Gap::Soft).find(|&j| !adverb(j));
    first.filter(|_| !doc.ends_before(i))
}

/// "Rook disregards …", "she ignores …": the agent described from outside.
fn is_said_of_agent(doc: &Document, i: usize) -> bool {
    let Some(subject) =
        doc.back(i, 2).find(|&j| !doc.word(j).ends_with("ly") && !doc.one_of(j, "always also never"))
    else {
        return false;
    };
    let named = doc.tokens.get(subject).is_some_and(|token| token.capital && token.kinds.is_empty());
    named || doc.one_of(subject, "he she persona agent assistant character bot model ai soul self")
}

const REACH: usize = 14;

/// The rules (or protections) a verb acts on and what is said about them.
#[derive(Debug, Clone, Default)]
struct Object {
    at: usize,
    rule: bool,
    loose: bool,
    guard: bool,
    things: bool,
    consent: bool,
    higher: bool,
    earlier: bool,
    your: bool,
    all: bool,
    /// No word between verb and object but "the".
    bare: bool,
    /// A layer itself: "the body".
    layer: bool,
    trade: bool,
    /// Named as the system's, the body's or safety's, and nothing vaguer.
    strict: bool,
    /// Named as safety's, which no setting of a program is.
    safety: bool,
}

impl Object {
    /// Rules that stand above this text, whoever they bind.
    fn is_above(&self) -> bool {
        let named = self.higher || self.earlier || self.your;
        !self.is_trade() && (self.rule && named || self.guard || self.loose && (self.strict || self.your))
    }

    fn is_trade(&self) -> bool {
        self.trade && !self.higher
    }
}

/// The object of the verb that ends at word `end`.
fn object_after(doc: &Document, end: usize) -> Option<Object> {
    let mut object = Object { bare: true, ..Object::default() };
    let mut other_words = 0;
    let mut found = false;
    for j in doc.ahead(end, REACH) {
        if doc.gap(j) >= Gap::Clause && j > end + 1 {
            break;
        }
        let kinds = doc.kinds(j);
        let aside = doc.gap(j) >= Gap::Soft && other_words > 0;
        if !found && (other_words > 0 && kinds.has(Kinds::LINK) || aside) {
            break;
        }
        object.describe(kinds);
        object.strict |= doc.one_of(j, "system body safety security ethical moral ethics");
        let content = document::is_content_policy(doc, j);
        (object.higher, object.strict) = (object.higher || content, object.strict || content);
        object.safety |= content || doc.one_of(j, "safety ethical");
        let names = Kinds::RULE | Kinds::GUARD | Kinds::LOOSE | Kinds::THINGS | Kinds::CONSENT;
        let noun =
            kinds.has(names) && !kinds.has(Kinds::GERUND) || is_safety_itself(doc, j) || is_record(doc, j);
        if noun && !doc.one_of(j, "asks ask approve confirm ok okay") {
            object.at = j;
            object.name(kinds);
            object.guard |= is_safety_itself(doc, j) || is_record(doc, j);
            found = true;
            let goes_on = doc.kinds(j + 1).has(names | Kinds::HIGHER) && doc.gap(j + 1) == Gap::Space;
            if !goes_on {
                break;
            }
        } else if is_layer_itself(doc, j) {
            (object.at, object.layer) = (j, true);
            found = true;
            break;
        } else if is_bare_above(doc, j) {
            (object.at, object.things, object.earlier) = (j, true, true);
            found = true;
            break;
        } else if is_content(doc, j) {
            other_words += 1;
            object.bare = false;
        }
        if other_words > 5 {
            break;
        }
    }
    if !found {
        return None;
    }
    object.read_on(doc);
    Some(object)
}

impl Object {
    fn describe(&mut self, kinds: Kinds) {
        self.higher |= kinds.has(Kinds::HIGHER);
        self.earlier |= kinds.has(Kinds::EARLIER);
        self.your |= kinds.has(Kinds::YOUR);
        self.all |= kinds.has(Kinds::ALL);
        self.trade |= kinds.has(Kinds::TRADE);
    }

    fn name(&mut self, kinds: Kinds) {
        self.rule |= kinds.has(Kinds::RULE);
        self.loose |= kinds.has(Kinds::LOOSE);
        self.guard |= kinds.has(Kinds::GUARD);
        self.things |= kinds.has(Kinds::THINGS);
        self.consent |= kinds.has(Kinds::CONSENT);
    }

    /// "rules above", "instructions you were given", "rules of the system prompt".
    fn read_on(&mut self, doc: &Document) {
        let mut linked = false;
        for j in doc.ahead(self.at, 7) {
            if doc.gap(j) >= Gap::Clause || doc.one_of(j, "and when if unless but for then") {
                break;
            }
            let kinds = doc.kinds(j);
            let given = doc.word(j) == "you"
                && doc.ahead(j, 5).any(|k| {
                    doc.one_of(
                        k,
                        "given told taught received instructed got trained programmed set have follow started began came know learned learnt hold carry obey were had",
                    )
                });
            let by_me = doc.one_of(j, "i ive");
            if by_me {
                break;
            }
            linked |= doc.one_of(j, "of in from by set within inside at which that");
            self.earlier |= kinds.has(Kinds::EARLIER);
            self.earlier |= linked && doc.one_of(j, "first beginning start top opening");
            self.higher |= linked && kinds.has(Kinds::HIGHER);
            self.your |= given || doc.one_of(j, "govern bind constrain restrict");
            self.trade |= kinds.has(Kinds::TRADE) && !self.higher;
        }
    }

    /// Rules above this text, or everything that came before it.
    fn is_above_in(&self, doc: &Document) -> bool {
        self.is_above()
            || self.layer
            || self.things
                && (self.earlier && !self.is_trade() || self.your || self.higher && self.ends_clause(doc))
    }

    /// What an unmistakable verb (ignore, bypass) has to act on.
    fn is_target(&self, doc: &Document, verb: usize) -> bool {
        if self.is_handled_elsewhere(doc, verb) || self.is_outside(doc) {
            return false;
        }
        let sweeping = self.rule && self.all && !self.is_trade() && self.ends_clause(doc);
        let gate = self.is_gate(doc) && !self.is_trade();
        self.is_above_in(doc)
            || sweeping
            || gate
            || self.loose && self.all && (self.earlier || self.is_swept(doc))
    }

    /// "all checks", as the end of the matter.
    fn is_swept(&self, doc: &Document) -> bool {
        doc.back(self.at, 2).any(|j| doc.one_of(j, "all any every")) && self.ends_clause(doc)
    }

    /// What a verb with harmless uses (skip, remove) has to act on.
    fn is_firm_target(&self, doc: &Document, verb: usize) -> bool {
        if self.is_handled_elsewhere(doc, verb) || self.is_outside(doc) || self.is_trade() {
            return false;
        }
        let rules = self.rule && (self.higher || self.your || self.earlier && self.all);
        let waives = doc.one_of(
            verb,
            "skip skips skipping omit omits drop drops suspend disable remove relax lift deactivate",
        );
        let gate = waives && self.is_gate(doc) && self.at <= verb + 4;
        let inner = self.your
            && doc.one_of(
                self.at,
                "filter filters ethics morals alignment training censorship moderation boundaries limits",
            );
        rules || self.guard || gate || inner || self.loose && self.strict
    }

    /// Approval itself, not a block, a token or a dialog of that name.
    fn is_gate(&self, doc: &Document) -> bool {
        let next = self.at + 1;
        let goes_on = "step steps gate check checks requirement requirements process and or for when if entirely altogether on before this now today here";
        let head = doc.ends_before(next) || doc.one_of(next, goes_on) || doc.is(self.at, Kinds::LOOSE);
        let singular = !doc.one_of(self.at, "permissions confirmations");
        self.consent && head && singular && !self.is_team_work(doc)
    }

    /// "all other instructions", "everything else".
    fn names_all(&self, doc: &Document) -> bool {
        let other = |j| doc.one_of(j, "other else others");
        let swept = doc.back(self.at, 3).any(other) || doc.ahead(self.at, 2).any(other);
        (self.rule || self.things) && swept
    }

    fn ends_clause(&self, doc: &Document) -> bool {
        let next = self.at + 1;
        doc.ends_before(next)
            || doc.one_of(
                next,
                "and or but that you now from completely entirely immediately when if whatsoever at",
            )
    }

    /// "instructions found in e-mails": data, which may well be ignored.
    fn is_outside(&self, doc: &Document) -> bool {
        let said = doc.ahead(self.at, 9).take_while(|&j| doc.gap(j) < Gap::Clause).any(|j| {
            doc.is(j, Kinds::OUTSIDE) && !doc.one_of(j, "data document content input")
                || doc.is(j, Kinds::OUTSIDE)
                    && doc.back(j, 3).any(|k| doc.one_of(k, "in from inside within by of"))
        });
        let before = doc
            .back(self.at, 3)
            .any(|j| doc.one_of(j, "embedded quoted retrieved injected untrusted pasted"));
        (said || before) && !self.higher && !self.earlier
    }

    /// "the instructions above if you already installed it": directions for a reader, not for an agent.
    fn is_handled_elsewhere(&self, doc: &Document, verb: usize) -> bool {
        let reader = |j: usize| {
            doc.one_of(j, "already using installed macos windows linux homebrew docker use run prefer")
        };
        let conditional = doc.ahead(self.at, 8).find(|&j| doc.one_of(j, "if when unless"));
        // A setting can replace a prompt; nobody has a setting for disregarding one.
        let set = doc.one_of(verb, "override overrides replace replaces disable disables remove removes skip skips omit reset rewrite");
        let optioned = set
            && doc.around(self.at).has(Kinds::OPTION)
            && !self.your
            && !self.earlier
            && !self.guard
            && !self.safety;
        optioned || !self.higher && conditional.is_some_and(|j| doc.ahead(j, 4).any(reader))
    }

    /// Approval of a change by colleagues, which is theirs to arrange.
    fn is_team_work(&self, doc: &Document) -> bool {
        let sentence = doc
            .sentence(self.at)
            .map_or(0..0, |s| s.first.max(self.at.saturating_sub(20))..s.end.min(self.at + 20));
        sentence.into_iter().any(|j| {
            doc.one_of(j, "pr prs pull merge ci workflow pipeline dependabot y yes review reviewers dialog popup prompts staging")
        })
    }
}

/// "Ignore the above": the word stands for everything there.
fn is_bare_above(doc: &Document, j: usize) -> bool {
    let noun = doc.is(j, Kinds::EARLIER)
        && j.checked_sub(1).is_some_and(|b| doc.one_of(b, "the all everything what"));
    let alone = doc.ends_before(j + 1) || doc.one_of(j + 1, "and or but instead when then");
    noun && alone
}

fn is_content(doc: &Document, j: usize) -> bool {
    let word = doc.word(j);
    const SMALL: &str = "the a an of and or my its their this that these those completely such own other simply so called built very now please following current old silly boring just entirely";
    let known =
        Kinds::HIGHER | Kinds::EARLIER | Kinds::YOUR | Kinds::ALL | Kinds::LINK | Kinds::DISMISS | Kinds::NEG;
    let adverb = word.len() > 4 && word.ends_with("ly");
    !doc.one_of(j, SMALL) && !doc.is(j, known) && !adverb
}

/// "turn off safety", but not "safety glasses".
fn is_safety_itself(doc: &Document, j: usize) -> bool {
    let next = j + 1;
    let names_more = Kinds::RULE | Kinds::LOOSE;
    let alone = doc.ends_before(next)
        || doc.one_of(next, "and or for entirely completely when while now measures features systems mode");
    doc.word(j) == "safety" && alone && !doc.is(next, names_more)
}

/// "the body", "the system" at the end of a clause, where it stands for its rules.
fn is_layer_itself(doc: &Document, j: usize) -> bool {
    let next = j + 1;
    let ends = doc.gap(next) >= Gap::Clause
        || doc.ends_before(next) && !doc.is(next, Kinds::HIGHER)
        || doc.one_of(next, "says tells wants demands asks");
    let the = j.checked_sub(1).is_some_and(|b| doc.one_of(b, "the your our"));
    the && ends && doc.one_of(j, "body system operator platform")
}

fn is_record(doc: &Document, j: usize) -> bool {
    let next = j + 1;
    let parts = "entry entries record records log logs trail step note notes line lines";
    let tool = j
        .checked_sub(1)
        .is_some_and(|b| doc.one_of(b, "npm cargo pip yarn security dependency annual license"));
    doc.one_of(j, "audit auditing")
        && !tool
        && (doc.one_of(next, parts) || doc.ends_before(next) || doc.one_of(next, "when if for and or"))
}

#[cfg(test)]
mod tests {
    use super::super::pattern::misnamed;

    #[test]
    fn phrases_name_only_known_meanings() {
        for list in [super::DISMISS, super::DISOBEY, super::OUTRANK, super::INSTEAD, super::RELEASE] {
            assert_eq!(misnamed(list), [""; 0]);
        }
    }
}
