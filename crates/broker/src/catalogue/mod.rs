//! The tools of all upstreams as a host sees them: under which name, with which definition, and whether that is still the one
//! that was first seen. Owns names and pins; whether a call may happen is the gate's.
//!
//! - `built`: what was built already, for all sessions
//! - `definition`: one definition read: hash, hints, texts
//! - `definition_scan`: whether a definition is suspicious
//! - `examined`: what was looked at already
//! - `kept`: names that one session has given to its host
//! - `names`: what each tool is called
//! - `search`: which tools fit a question
//! - `shelf`: which tools are listed

mod built;
mod definition;
mod definition_scan;
mod examined;
mod kept;
mod names;
mod search;
mod shelf;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use embody_store::{Definition as Pinned, PinState, SeenTool, Store, ToolPin};
use embody_wire::off_runtime;
use serde_json::value::RawValue;

pub use self::built::Catalogues;
pub(crate) use self::definition::Texts;
pub use self::definition::Unusable;
pub use self::definition_scan::{Finding, Part, Suspicion};
use self::examined::Examined;
use self::kept::Kept;
pub(crate) use self::names::{Wanting, assign_among};
pub use self::search::Found;
use self::search::Index;
pub use self::shelf::{MAX_LISTED, Shelf, Shown};
use crate::gate::Pin;
use crate::instructions;
use crate::policy::Annotations;
use crate::upstream::{RawTool, Role, Spec};

/// Every session looks at the same definitions, and again whenever something changes.
static EXAMINED: Examined = Examined::new();

/// Tools of every mind that the broker calls itself: `runtime_bootstrap` and each observed call stand for them.
const INTERNAL: [&str; 2] = ["bootstrap_session", "observe"];
/// The same of the embedded mind: `reflect_user_message`, `read_memory` and the contract stand for them.
const INTERNAL_OF_EMBEDDED: [&str; 3] = ["reflect", "recall", "get_system_prompt"];

/// Whether there is nothing in these texts that the operator has to review first.
pub(crate) fn is_plain<'a>(texts: impl IntoIterator<Item = &'a str>) -> bool {
    definition_scan::scan(texts.into_iter().map(|text| (Part::Description, text))).is_none()
}

/// Whether a text has hidden characters, or text where people do not look.
pub(crate) fn hides_something(text: &str) -> bool {
    definition_scan::hides_something(text)
}

/// The text without its hidden characters.
pub(crate) fn without_hidden(text: &str) -> String {
    definition_scan::without_hidden(text)
}

/// The tools of one upstream.
#[derive(Debug, Clone)]
pub struct Source<'a> {
    /// Its name.
    pub upstream: Arc<str>,
    /// What it is.
    pub role: &'a Role,
    /// Whether it is part of this program: its tools change with the program, and nobody has to accept them.
    pub is_embedded: bool,
    /// What it lists.
    pub tools: Arc<[RawTool]>,
    /// Whether it shows this now. What is only remembered of it is compared, but is no sight of it.
    pub is_live: bool,
    /// When it has listed its tools.
    pub listed: Listed,
}

/// When a server has listed its tools, if it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// Before this session: its names are known to the operator and to earlier hosts.
    Before,
    /// For the first time in this session.
    Now,
    /// Never: it is still starting, or its first start failed. Every name that it may expose can be one of its tools.
    Never,
}

impl Source<'_> {
    /// Bytes of all definitions.
    fn bytes(&self) -> usize {
        self.tools.iter().map(|tool| tool.definition.get().len()).sum()
    }
}

/// A tool as it is offered.
#[derive(Debug, Clone)]
pub struct Offered {
    /// The name under which it is listed.
    pub name: String,
    /// Whose tool it is.
    pub upstream: Arc<str>,
    /// Its name there.
    pub tool: String,
    /// The definition as it is listed: the pinned text under the listed name.
    pub definition: Box<RawValue>,
    /// The hints of that definition.
    pub annotations: Annotations,
    /// Whether it is what it was.
    pub pin: Pin,
    /// The hash of the definition that holds.
    pub hash: String,
    /// Whether it is a tool of the mind.
    pub is_mind: bool,
    /// Whether it is part of this program.
    pub is_embedded: bool,
    /// Whether the broker itself calls it for the host. It is neither listed nor found; a host that knows its name can call it.
    pub is_internal: bool,
    /// What the scan found in the definition that the server shows now.
    pub finding: Option<Finding>,
}

/// Why a definition is quarantined: it waits for the operator, and its tool cannot be called, or only to read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HoldReason {
    /// It is new and suspicious.
    #[error("{0}")]
    Suspicious(Finding),
    /// It is not the one that was accepted.
    #[error("its definition changed since the operator accepted it")]
    Changed,
    /// The same, and the new one is suspicious.
    #[error("its definition changed since the operator accepted it, and now {0}")]
    ChangedSuspiciously(Finding),
    /// It appeared on a server whose other tools were known before.
    #[error(
        "it is new on a server that was known before, and the operator has not accepted it: it is asked about as a human-visible write"
    )]
    New,
    /// No definition of this tool was ever accepted, although nothing is wrong with the present one.
    #[error("it was quarantined when it was first seen and has not been accepted since")]
    NeverAccepted,
}

/// Why a stored definition waits for the operator; `None` if it does not.
#[must_use]
pub fn hold_reason(pin: &ToolPin) -> Option<HoldReason> {
    let shown = pin.seen.as_ref().unwrap_or(&pin.pinned);
    let scan = || {
        if pin.tool == instructions::PIN {
            return definition_scan::scan([(Part::Instructions, shown.text.as_str())]);
        }
        let definition = RawValue::from_string(shown.text.clone()).ok()?;
        scanned(&definition::read(&pin.tool, &definition).ok()?)
    };
    match (pin.accepted, &pin.seen) {
        (true, None) if pin.is_new => Some(HoldReason::New),
        (true, None) => None,
        (true, Some(_)) => Some(HoldReason::changed(scan())),
        (false, _) => Some(HoldReason::never_accepted(scan())),
    }
}

impl HoldReason {
    /// Whether it quotes the definition.
    pub(crate) fn quotes(&self) -> bool {
        match self {
            Self::Suspicious(_) | Self::ChangedSuspiciously(_) => true,
            Self::Changed | Self::New | Self::NeverAccepted => false,
        }
    }

    fn changed(finding: Option<Finding>) -> Self {
        finding.map_or(Self::Changed, Self::ChangedSuspiciously)
    }

    fn never_accepted(finding: Option<Finding>) -> Self {
        finding.map_or(Self::NeverAccepted, Self::Suspicious)
    }
}

/// A tool that is not offered at all.
#[derive(Debug, Clone)]
pub struct Unoffered {
    /// Whose tool it is.
    pub upstream: Arc<str>,
    /// Its name there.
    pub tool: String,
    /// Why.
    pub why: Unusable,
}

/// All tools of all upstreams. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    tools: Arc<Tools>,
    /// What is called otherwise in one session.
    kept: Option<Arc<Kept>>,
}

#[derive(Debug, Default)]
struct Tools {
    /// Own names that no tool has because a body that has never listed its tools may have them: the name and that body.
    unsettled: BTreeMap<String, Arc<str>>,
    offered: Vec<Offered>,
    places: HashMap<String, usize>,
    unoffered: Vec<Unoffered>,
    /// Their words, once somebody has searched.
    index: OnceLock<Index>,
}

impl Offered {
    /// How its definition stands to the pinned one, if it waits for the operator.
    #[must_use]
    pub fn hold_state(&self) -> Option<&'static str> {
        match self.pin {
            Pin::Same => None,
            Pin::New => Some("new"),
            Pin::Changed => Some("changed"),
            Pin::Suspicious => Some("held"),
        }
    }

    /// What a request reads that is no tool call, where a call has its tool: it is not listed, and has no definition.
    pub(crate) fn without_definition(spec: &Spec, what: &str) -> Self {
        Self {
            name: what.to_owned(),
            upstream: Arc::from(spec.name.as_str()),
            tool: what.to_owned(),
            definition: RawValue::NULL.to_owned(),
            annotations: Annotations::default(),
            pin: Pin::Same,
            hash: String::new(),
            is_mind: spec.role.is_mind(),
            is_embedded: spec.is_embedded(),
            is_internal: true,
            finding: None,
        }
    }

    /// Why its definition waits for the operator; `None` if it does not.
    #[must_use]
    pub fn hold_reason(&self) -> Option<HoldReason> {
        match self.pin {
            Pin::Same => None,
            Pin::New => Some(HoldReason::New),
            Pin::Changed => Some(HoldReason::changed(self.finding.clone())),
            Pin::Suspicious => Some(HoldReason::never_accepted(self.finding.clone())),
        }
    }

    /// What a model reads of it, as it is listed.
    pub(crate) fn texts(&self) -> Texts<'_> {
        Texts::of(&self.definition)
    }
}

impl Catalogue {
    /// Compares every tool with its pin and gives each a name. `own` are the names that the broker itself has.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn build(
        store: &Store,
        sources: &[Source<'_>],
        own: &[&str],
    ) -> Result<Self, embody_store::Error> {
        let mut tools = Tools::default();
        for source in sources {
            let usable = off_runtime(source.bytes(), || tools.usable(source));
            match source.is_embedded {
                true => tools.offered.extend(usable.iter().map(|(tool, read)| offered(source, tool, read))),
                false => tools.offered.extend(pinned(store, source, &usable).await?),
            }
        }
        Ok(Self { tools: Arc::new(tools.named(own, sources)), kept: None })
    }

    /// The same of definitions that are known to hold, without asking anybody.
    #[must_use]
    pub fn known(sources: &[Source<'_>]) -> Self {
        let mut tools = Tools::default();
        for source in sources {
            let usable = tools.usable(source);
            tools.offered.extend(usable.into_iter().map(|(tool, read)| offered(source, tool, &read)));
        }
        Self { tools: Arc::new(tools.named(&crate::builtin_tools::NAMES, sources)), kept: None }
    }

    /// Whether it is the very same one.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let is_kept_alike = match (&self.kept, &other.kept) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        Arc::ptr_eq(&self.tools, &other.tools) && is_kept_alike
    }

    /// Every tool, in the order of the upstreams and of their listings.
    fn offered(&self) -> impl Iterator<Item = &Offered> {
        let renamed = |place| self.kept.as_ref().and_then(|kept| kept.renamed(place));
        let tools = self.tools.offered.iter().enumerate();
        tools.map(move |(place, offered)| renamed(place).unwrap_or(offered))
    }

    fn at(&self, place: usize) -> Option<&Offered> {
        let renamed = self.kept.as_ref().and_then(|kept| kept.renamed(place));
        renamed.or_else(|| self.tools.offered.get(place))
    }

    /// Whether the host was given this name for a tool that has another one now, or is gone: nothing else may answer to it.
    pub(crate) fn is_kept(&self, name: &str) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.place(name).is_some())
    }

    /// The tool of this listed name, or of one that it was listed under before; also one that is internal, or
    /// whose definition waits for the operator.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Offered> {
        let kept = self.kept.as_ref().and_then(|kept| kept.place(name));
        kept.unwrap_or_else(|| self.tools.places.get(name).copied()).and_then(|place| self.at(place))
    }

    /// The same; or, as `BODY__TOOL`, a body's tool that is listed under its own name. Which names collide can change when a
    /// server lists its tools, so that this form always works.
    pub(crate) fn by_name(&self, name: &str) -> Option<&Offered> {
        let full = || name.split_once("__").and_then(|(body, tool)| self.of_body(Some(body), tool));
        let listed = self.get(name);
        if self.is_kept(name) { listed } else { listed.or_else(full) }
    }

    /// A body's tool by its own name. Without a body: the one of this listed name, else the only one of this own name, unless a
    /// body that has never listed its tools may have one of the same name.
    #[must_use]
    pub fn of_body(&self, body: Option<&str>, tool: &str) -> Option<&Offered> {
        let listed = self.get(tool).filter(|found| body.is_none() && !found.is_mind);
        let is_meant = |offered: &Offered| match body {
            Some(body) => *offered.upstream == *body,
            None => !self.tools.unsettled.contains_key(tool),
        };
        listed.or_else(|| {
            let mut found = self
                .offered()
                .filter(|offered| !offered.is_mind && offered.tool == tool && is_meant(offered));
            found.next().filter(|_| found.next().is_none())
        })
    }

    /// The body that may have a tool of this name, has never listed its tools, and keeps others from having the name.
    pub(crate) fn unsettled(&self, tool: &str) -> Option<&str> {
        self.tools.unsettled.get(tool).map(|body| &**body)
    }

    /// What is listed, in the order of the upstreams and of their listings.
    pub fn listed(&self) -> impl Iterator<Item = &Offered> {
        self.offered().filter(|offered| offered.pin != Pin::Suspicious && !offered.is_internal)
    }

    /// What waits for the operator: changed definitions, and those that are not listed.
    pub fn waiting(&self) -> impl Iterator<Item = &Offered> {
        self.offered().filter(|offered| offered.pin != Pin::Same)
    }

    /// What cannot be offered.
    #[must_use]
    pub fn unoffered(&self) -> &[Unoffered] {
        &self.tools.unoffered
    }
}

impl Source<'_> {
    /// Whether the broker calls this tool itself, so that a model does not need it.
    fn is_internal(&self, tool: &str) -> bool {
        let of_embedded = self.is_embedded && INTERNAL_OF_EMBEDDED.contains(&tool);
        self.role.is_mind() && (INTERNAL.contains(&tool) || of_embedded)
    }

    fn exposes(&self, tool: &str) -> bool {
        match self.role {
            Role::Mind => true,
            Role::Body(body) => body.exposes(&self.upstream, tool),
        }
    }
}

/// A tool as it is shown. Its name is still its own.
fn offered(source: &Source<'_>, tool: &RawTool, read: &definition::Definition) -> Offered {
    Offered {
        name: String::new(),
        upstream: Arc::clone(&source.upstream),
        tool: tool.name.clone(),
        definition: tool.definition.clone(),
        annotations: read.annotations,
        pin: Pin::Same,
        hash: read.hash.clone(),
        is_mind: matches!(source.role, Role::Mind),
        is_embedded: source.is_embedded,
        is_internal: source.is_internal(&tool.name),
        finding: None,
    }
}

/// Compares the tools of an upstream with their pins. Their names are still their own.
async fn pinned(
    store: &Store,
    source: &Source<'_>,
    usable: &[(&RawTool, definition::Definition)],
) -> Result<Vec<Offered>, embody_store::Error> {
    let findings: Vec<Option<Finding>> =
        off_runtime(source.bytes(), || usable.iter().map(|(_, read)| scanned(read)).collect());
    let seen = usable.iter().zip(&findings).map(|((tool, read), finding)| SeenTool {
        body: source.upstream.to_string(),
        tool: tool.name.clone(),
        definition: Pinned { text: tool.definition.get().to_owned(), hash: read.hash.clone() },
        acceptable: finding.is_none(),
        rehash: definition::hash,
    });
    let states = match source.is_live {
        true => store.see_tools(&source.upstream, seen.collect()).await?,
        false => store.compare_tools(&source.upstream, seen.collect()).await?,
    };
    let compared = usable.iter().zip(findings).zip(states);
    Ok(compared
        .map(|(((tool, read), finding), state)| held(offered(source, tool, read), finding, state))
        .collect())
}

fn scanned(read: &definition::Definition) -> Option<Finding> {
    let texts = || read.texts.iter().map(|(part, text)| (*part, text.as_str()));
    EXAMINED.finding(&read.hash, || definition_scan::scan(texts()))
}

/// The tool as what came of the comparison lets it be.
fn held(mut offered: Offered, finding: Option<Finding>, state: PinState) -> Offered {
    match state {
        PinState::First | PinState::Same => {}
        PinState::New => {
            offered.pin = Pin::New;
            offered.annotations.is_new = true;
        }
        PinState::Held => (offered.pin, offered.finding) = (Pin::Suspicious, finding),
        PinState::Changed { pinned, .. } => {
            (offered.pin, offered.finding) = (Pin::Changed, finding);
            match RawValue::from_string(pinned.text) {
                Ok(text) => {
                    offered.annotations = definition::annotations(&text);
                    offered.definition = text;
                    offered.hash = pinned.hash;
                }
                // Nobody can say what was accepted.
                Err(_) => offered.pin = Pin::Suspicious,
            }
        }
    }
    offered
}

impl Tools {
    /// The tools of an upstream that are exposed and can be offered; the others are noted.
    fn usable<'a>(&mut self, source: &'a Source<'_>) -> Vec<(&'a RawTool, definition::Definition)> {
        let (mut usable, mut seen) = (Vec::new(), HashSet::new());
        for tool in source.tools.iter().filter(|tool| source.exposes(&tool.name)) {
            let read = definition::read(&tool.name, &tool.definition);
            match read.and_then(|read| seen.insert(&tool.name).then_some(read).ok_or(Unusable::Twice)) {
                Ok(read) => usable.push((tool, read)),
                Err(why) => self.unoffered.push(Unoffered {
                    upstream: Arc::clone(&source.upstream),
                    tool: tool.name.clone(),
                    why,
                }),
            }
        }
        usable
    }

    /// The own names of these tools that none of them gets, and for which body's sake. A name that was once a tool's must never be
    /// another body's: while a body has never listed its tools, only bodies that were listed in an earlier session keep the names
    /// that it may have.
    fn unsettled_among(
        &self,
        sources: &[Source<'_>],
        is_among: impl Fn(&Offered) -> bool,
    ) -> BTreeMap<String, Arc<str>> {
        let unknown: Vec<&Source<'_>> =
            sources.iter().filter(|source| source.listed == Listed::Never && !source.is_embedded).collect();
        let is_settled = |source: &&Source<'_>| source.listed == Listed::Before && !source.is_embedded;
        let settled: HashSet<&str> =
            sources.iter().filter(is_settled).map(|source| &*source.upstream).collect();
        let open = self.offered.iter().filter(|offered| is_among(offered) && !offered.is_mind);
        let open = open.filter(|offered| !settled.contains(&*offered.upstream));
        open.filter_map(|offered| {
            // A mind that is still starting takes names from the embedded body only: the others are the operator's choice.
            let is_rival = |source: &&&Source<'_>| offered.is_embedded || !source.role.is_mind();
            let may_contain = unknown.iter().filter(is_rival).find(|source| source.exposes(&offered.tool))?;
            Some((offered.tool.clone(), Arc::clone(&may_contain.upstream)))
        })
        .collect()
    }

    /// Gives every tool its name. The mind's names are part of the contract: a body that has one of them makes room. So
    /// does the embedded body for those that somebody has chosen.
    fn named(mut self, own: &[&str], sources: &[Source<'_>]) -> Self {
        let upstreams: BTreeSet<&str> = sources.iter().map(|source| &*source.upstream).collect();
        let rank = |offered: &Offered| match (offered.is_mind, offered.is_embedded) {
            (true, _) => 0,
            (false, false) => 1,
            (false, true) => 2,
        };
        let mut taken: HashSet<String> = own.iter().map(|name| (*name).to_owned()).collect();
        let mut ranks = Vec::new();
        for wanted in 0..3 {
            let unsettled = self.unsettled_among(sources, |offered| rank(offered) == wanted);
            taken.extend(unsettled.keys().cloned());
            self.unsettled.extend(unsettled);
            let wanting: Vec<_> = (self.offered.iter().filter(|offered| rank(offered) == wanted))
                .map(|offered| Wanting { upstream: &offered.upstream, tool: &offered.tool })
                .collect();
            let names = assign_among(&upstreams, &wanting, &taken);
            taken.extend(names.iter().flatten().cloned());
            ranks.push(names.into_iter());
        }
        self.offered.retain_mut(|offered| {
            let name = ranks.get_mut(rank(offered)).and_then(Iterator::next);
            let renamed = name
                .flatten()
                .and_then(|name| Some((definition::renamed(&offered.definition, &name)?, name)));
            match renamed {
                Some((definition, name)) => {
                    (offered.definition, offered.name) = (definition, name);
                    true
                }
                None => {
                    let (upstream, tool) = (Arc::clone(&offered.upstream), offered.tool.clone());
                    self.unoffered.push(Unoffered { upstream, tool, why: Unusable::NoName });
                    false
                }
            }
        });
        self.places =
            self.offered.iter().enumerate().map(|(at, offered)| (offered.name.clone(), at)).collect();
        self
    }
}

#[cfg(test)]
mod tests;
