//! What a verb acts on: rules or not, and whose. Owns the walk over the words after a verb and its limits.

use super::super::document::{self, Document, Gap};
use super::super::kinds::Kinds;

const REACH: usize = 14;

/// The rules (or protections) a verb acts on and what is said about them.
#[derive(Debug, Clone, Default)]
pub(super) struct Object {
    pub(super) at: usize,
    pub(super) rule: bool,
    pub(super) loose: bool,
    pub(super) guard: bool,
    pub(super) things: bool,
    pub(super) consent: bool,
    pub(super) higher: bool,
    pub(super) earlier: bool,
    pub(super) your: bool,
    pub(super) all: bool,
    /// No word between verb and object but "the".
    pub(super) bare: bool,
    /// A layer itself: "the body".
    pub(super) layer: bool,
    trade: bool,
    /// Named as the system's, the body's or safety's, and nothing vaguer.
    strict: bool,
    /// Named as safety's, which no setting of a program is.
    safety: bool,
}

impl Object {
    /// Rules that stand above this text, whoever they bind.
    pub(super) fn is_above(&self) -> bool {
        let named = self.higher || self.earlier || self.your;
        !self.is_trade() && (self.rule && named || self.guard || self.loose && (self.strict || self.your))
    }

    fn is_trade(&self) -> bool {
        self.trade && !self.higher
    }
}

/// The object of the verb that ends at word `end`.
pub(super) fn object_after(doc: &Document, end: usize) -> Option<Object> {
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
    pub(super) fn is_above_in(&self, doc: &Document) -> bool {
        self.is_above()
            || self.layer
            || self.things
                && (self.earlier && !self.is_trade() || self.your || self.higher && self.ends_clause(doc))
    }

    /// What an unmistakable verb (ignore, bypass) has to act on.
    pub(super) fn is_target(&self, doc: &Document, verb: usize) -> bool {
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
    pub(super) fn is_firm_target(&self, doc: &Document, verb: usize) -> bool {
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
    pub(super) fn names_all(&self, doc: &Document) -> bool {
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
    pub(super) fn is_outside(&self, doc: &Document) -> bool {
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
