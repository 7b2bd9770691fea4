//! What a verb acts on: rules or not, and whose. Owns the walk over the words after a verb and its limits.

use super::super::kinds::Kinds;
use super::super::page::{self, Gap, Page};
use super::nouns;

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
pub(super) fn object_after(page: &Page, end: usize) -> Option<Object> {
    let mut object = Object { bare: true, ..Object::default() };
    let mut other_words = 0;
    let mut found = false;
    for j in page.ahead(end, REACH) {
        if page.gap(j) >= Gap::Clause && j > end + 1 {
            break;
        }
        let kinds = page.kinds(j);
        let aside = page.gap(j) >= Gap::Soft && other_words > 0;
        if !found && (other_words > 0 && kinds.has(Kinds::LINK) || aside) {
            break;
        }
        object.describe(kinds);
        object.strict |= page.one_of(j, "system body safety security ethical moral ethics");
        let content = page::is_content_policy(page, j);
        (object.higher, object.strict) = (object.higher || content, object.strict || content);
        object.safety |= content || page.one_of(j, "safety ethical");
        let names = Kinds::RULE | Kinds::GUARD | Kinds::LOOSE | Kinds::THINGS | Kinds::CONSENT;
        let noun = kinds.has(names) && !kinds.has(Kinds::GERUND)
            || nouns::is_safety_itself(page, j)
            || nouns::is_record(page, j);
        if noun && !page.one_of(j, "asks ask approve confirm ok okay") {
            object.at = j;
            object.name(kinds);
            object.guard |= nouns::is_safety_itself(page, j) || nouns::is_record(page, j);
            found = true;
            let goes_on = page.kinds(j + 1).has(names | Kinds::HIGHER) && page.gap(j + 1) == Gap::Space;
            if !goes_on {
                break;
            }
        } else if nouns::is_layer_itself(page, j) {
            (object.at, object.layer) = (j, true);
            found = true;
            break;
        } else if nouns::is_bare_above(page, j) {
            (object.at, object.things, object.earlier) = (j, true, true);
            found = true;
            break;
        } else if nouns::is_content(page, j) {
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
    object.read_on(page);
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
    fn read_on(&mut self, page: &Page) {
        let mut linked = false;
        for j in page.ahead(self.at, 7) {
            if page.gap(j) >= Gap::Clause || page.one_of(j, "and when if unless but for then") {
                break;
            }
            let kinds = page.kinds(j);
            let given = page.word(j) == "you"
                && page.ahead(j, 5).any(|k| {
                    page.one_of(
                        k,
                        "given told taught received instructed got trained programmed set have follow started began came know learned learnt hold carry obey were had",
                    )
                });
            let by_me = page.one_of(j, "i ive");
            if by_me {
                break;
            }
            linked |= page.one_of(j, "of in from by set within inside at which that");
            self.earlier |= kinds.has(Kinds::EARLIER);
            self.earlier |= linked && page.one_of(j, "first beginning start top opening");
            self.higher |= linked && kinds.has(Kinds::HIGHER);
            self.your |= given || page.one_of(j, "govern bind constrain restrict");
            self.trade |= kinds.has(Kinds::TRADE) && !self.higher;
        }
    }

    /// Rules above this text, or everything that came before it.
    pub(super) fn is_above_in(&self, page: &Page) -> bool {
        self.is_above()
            || self.layer
            || self.things
                && (self.earlier && !self.is_trade() || self.your || self.higher && self.ends_clause(page))
    }

    /// What an unmistakable verb (ignore, bypass) has to act on.
    pub(super) fn is_target(&self, page: &Page, verb: usize) -> bool {
        if self.is_handled_elsewhere(page, verb) || self.is_outside(page) {
            return false;
        }
        let sweeping = self.rule && self.all && !self.is_trade() && self.ends_clause(page);
        let gate = self.is_gate(page) && !self.is_trade();
        self.is_above_in(page)
            || sweeping
            || gate
            || self.loose && self.all && (self.earlier || self.is_swept(page))
    }

    /// "all checks", as the end of the matter.
    fn is_swept(&self, page: &Page) -> bool {
        page.back(self.at, 2).any(|j| page.one_of(j, "all any every")) && self.ends_clause(page)
    }

    /// What a verb with harmless uses (skip, remove) has to act on.
    pub(super) fn is_firm_target(&self, page: &Page, verb: usize) -> bool {
        if self.is_handled_elsewhere(page, verb) || self.is_outside(page) || self.is_trade() {
            return false;
        }
        let rules = self.rule && (self.higher || self.your || self.earlier && self.all);
        let waives = page.one_of(
            verb,
            "skip skips skipping omit omits drop drops suspend disable remove relax lift deactivate",
        );
        let gate = waives && self.is_gate(page) && self.at <= verb + 4;
        let inner = self.your
            && page.one_of(
                self.at,
                "filter filters ethics morals alignment training censorship moderation boundaries limits",
            );
        rules || self.guard || gate || inner || self.loose && self.strict
    }

    /// Approval itself, not a block, a token or a dialog of that name.
    fn is_gate(&self, page: &Page) -> bool {
        let next = self.at + 1;
        let goes_on = "step steps gate check checks requirement requirements process and or for when if entirely altogether on before this now today here";
        let head = page.ends_before(next) || page.one_of(next, goes_on) || page.is(self.at, Kinds::LOOSE);
        let singular = !page.one_of(self.at, "permissions confirmations");
        self.consent && head && singular && !self.is_team_work(page)
    }

    /// "all other instructions", "everything else".
    pub(super) fn names_all(&self, page: &Page) -> bool {
        let other = |j| page.one_of(j, "other else others");
        let swept = page.back(self.at, 3).any(other) || page.ahead(self.at, 2).any(other);
        (self.rule || self.things) && swept
    }

    fn ends_clause(&self, page: &Page) -> bool {
        let next = self.at + 1;
        page.ends_before(next)
            || page.one_of(
                next,
                "and or but that you now from completely entirely immediately when if whatsoever at",
            )
    }

    /// "instructions found in e-mails": data, which may well be ignored.
    pub(super) fn is_outside(&self, page: &Page) -> bool {
        let said = page.ahead(self.at, 9).take_while(|&j| page.gap(j) < Gap::Clause).any(|j| {
            page.is(j, Kinds::OUTSIDE) && !page.one_of(j, "data document content input")
                || page.is(j, Kinds::OUTSIDE)
                    && page.back(j, 3).any(|k| page.one_of(k, "in from inside within by of"))
        });
        let before = page
            .back(self.at, 3)
            .any(|j| page.one_of(j, "embedded quoted retrieved injected untrusted pasted"));
        (said || before) && !self.higher && !self.earlier
    }

    /// "the instructions above if you already installed it": directions for a reader, not for an agent.
    fn is_handled_elsewhere(&self, page: &Page, verb: usize) -> bool {
        let reader = |j: usize| {
            page.one_of(j, "already using installed macos windows linux homebrew docker use run prefer")
        };
        let conditional = page.ahead(self.at, 8).find(|&j| page.one_of(j, "if when unless"));
        // A setting can replace a prompt; nobody has a setting for disregarding one.
        let set = page.one_of(verb, "override overrides replace replaces disable disables remove removes skip skips omit reset rewrite");
        let optioned = set
            && page.around(self.at).has(Kinds::OPTION)
            && !self.your
            && !self.earlier
            && !self.guard
            && !self.safety;
        optioned || !self.higher && conditional.is_some_and(|j| page.ahead(j, 4).any(reader))
    }

    /// Approval of a change by colleagues, which is theirs to arrange.
    fn is_team_work(&self, page: &Page) -> bool {
        let sentence = page
            .sentence(self.at)
            .map_or(0..0, |s| s.first.max(self.at.saturating_sub(20))..s.end.min(self.at + 20));
        sentence.into_iter().any(|j| {
            page.one_of(j, "pr prs pull merge ci workflow pipeline dependabot y yes review reviewers dialog popup prompts staging")
        })
    }
}
