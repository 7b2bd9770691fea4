//! The tools of all upstreams as a host sees them: names, pinned definitions, and whether a definition changed since it was
//! pinned. Owns names and pins; refuses to decide about calls, which is the gate's.
//!
//! - `catalogue_cache`: built catalogues, shared by sessions
//! - `definition`: one definition parsed: hash, hints, texts
//! - `definition_scan`: whether a definition is suspicious
//! - `scan_cache`: results of earlier scans
//! - `session_names`: names that one session has announced to its host
//! - `names`: assigns a unique name to each tool
//! - `search`: ranks tools for a query
//! - `listing_limit`: which tools are listed

mod catalogue_cache;
mod definition;
mod definition_scan;
mod listing_limit;
mod names;
mod scan_cache;
mod search;
mod session_names;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use embody_store::{Definition as Pinned, PinState, SeenTool, Store, ToolPin};
use embody_wire::off_runtime;
use serde_json::value::RawValue;

pub use self::catalogue_cache::CatalogueCache;
pub use self::definition::RejectReason;
pub(crate) use self::definition::Texts;
pub use self::definition_scan::{Finding, Part, Suspicion};
pub use self::listing_limit::{ListingLimit, MAX_LISTED, ToolListing};
pub(crate) use self::names::{NameRequest, assign_names};
use self::scan_cache::ScanCache;
use self::search::Index;
pub use self::search::SearchResult;
use self::session_names::SessionNames;
use crate::gate::Pin;
use crate::instructions;
use crate::policy::Annotations;
use crate::upstream::{RawTool, Role, Spec};

/// Every session looks at the same definitions, and again whenever something changes.
static SCAN_CACHE: ScanCache = ScanCache::new();

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

#[derive(Debug, Clone)]
pub struct Source<'a> {
    pub upstream: Arc<str>,
    pub role: &'a Role,
    /// Whether it is part of this program: its tools change with the program, and nobody has to accept them.
    pub is_embedded: bool,
    pub tools: Arc<[RawTool]>,
    /// Whether it shows this now. What is only remembered of it is compared, but is no sight of it.
    pub is_live: bool,
    pub first_listing: FirstListing,
}

/// When a server has listed its tools, if it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstListing {
    /// Before this session: its names are known to the operator and to earlier hosts.
    BeforeSession,
    /// For the first time in this session.
    InSession,
    /// Never: it is still starting, or its first start failed. Every name that it may expose can be one of its tools.
    Never,
}

impl Source<'_> {
    /// Bytes of all definitions.
    fn bytes(&self) -> usize {
        self.tools.iter().map(|tool| tool.definition.get().len()).sum()
    }
}

#[derive(Debug, Clone)]
pub struct CatalogTool {
    pub name: String,
    pub upstream: Arc<str>,
    pub tool: String,
    /// The definition as it is listed: the pinned text under the listed name.
    pub definition: Box<RawValue>,
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
pub enum QuarantineReason {
    #[error("{0}")]
    Suspicious(Finding),
    /// It is not the one that was accepted.
    #[error("its definition changed since the operator accepted it")]
    Changed,
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
pub fn quarantine_reason(pin: &ToolPin) -> Option<QuarantineReason> {
    let shown = pin.seen.as_ref().unwrap_or(&pin.pinned);
    let scan = || {
        if pin.tool == instructions::PIN {
            return definition_scan::scan([(Part::Instructions, shown.text.as_str())]);
        }
        let definition = RawValue::from_string(shown.text.clone()).ok()?;
        scan_cached(&definition::read(&pin.tool, &definition).ok()?)
    };
    match (pin.accepted, &pin.seen) {
        (true, None) if pin.is_new => Some(QuarantineReason::New),
        (true, None) => None,
        (true, Some(_)) => Some(QuarantineReason::changed(scan())),
        (false, _) => Some(QuarantineReason::never_accepted(scan())),
    }
}

impl QuarantineReason {
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
pub struct RejectedTool {
    pub upstream: Arc<str>,
    pub tool: String,
    pub why: RejectReason,
}

#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    tools: Arc<Tools>,
    session_names: Option<Arc<SessionNames>>,
}

#[derive(Debug, Default)]
struct Tools {
    /// Own names that no tool has because a body that has never listed its tools may have them: the name and that body.
    unsettled: BTreeMap<String, Arc<str>>,
    entries: Vec<CatalogTool>,
    positions: HashMap<String, usize>,
    rejected: Vec<RejectedTool>,
    /// Their words, once somebody has searched.
    index: OnceLock<Index>,
}

impl CatalogTool {
    /// How its definition stands to the pinned one, if it waits for the operator.
    #[must_use]
    pub fn quarantine_state(&self) -> Option<&'static str> {
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
    pub fn quarantine_reason(&self) -> Option<QuarantineReason> {
        match self.pin {
            Pin::Same => None,
            Pin::New => Some(QuarantineReason::New),
            Pin::Changed => Some(QuarantineReason::changed(self.finding.clone())),
            Pin::Suspicious => Some(QuarantineReason::never_accepted(self.finding.clone())),
        }
    }

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
                true => tools.entries.extend(usable.iter().map(|(tool, read)| new_entry(source, tool, read))),
                false => tools.entries.extend(compare_pins(store, source, &usable).await?),
            }
        }
        Ok(Self { tools: Arc::new(tools.assign_names(own, sources)), session_names: None })
    }

    /// The same of definitions that are known to hold, without asking anybody.
    #[must_use]
    pub fn without_pins(sources: &[Source<'_>]) -> Self {
        let mut tools = Tools::default();
        for source in sources {
            let usable = tools.usable(source);
            tools.entries.extend(usable.into_iter().map(|(tool, read)| new_entry(source, tool, &read)));
        }
        Self {
            tools: Arc::new(tools.assign_names(&crate::builtin_tools::NAMES, sources)),
            session_names: None,
        }
    }

    /// Whether it is the very same one.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let has_same_names = match (&self.session_names, &other.session_names) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        Arc::ptr_eq(&self.tools, &other.tools) && has_same_names
    }

    /// Every tool, in the order of the upstreams and of their listings.
    fn entries(&self) -> impl Iterator<Item = &CatalogTool> {
        let renamed =
            |position| self.session_names.as_ref().and_then(|session_names| session_names.renamed(position));
        let tools = self.tools.entries.iter().enumerate();
        tools.map(move |(position, entry)| renamed(position).unwrap_or(entry))
    }

    fn at(&self, position: usize) -> Option<&CatalogTool> {
        let renamed = self.session_names.as_ref().and_then(|session_names| session_names.renamed(position));
        renamed.or_else(|| self.tools.entries.get(position))
    }

    /// Whether the host was given this name for a tool that has another one now, or is gone: nothing else may answer to it.
    pub(crate) fn is_session_name(&self, name: &str) -> bool {
        self.session_names.as_ref().is_some_and(|session_names| session_names.position(name).is_some())
    }

    /// The tool of this listed name, or of one that it was listed under before; also one that is internal, or
    /// whose definition waits for the operator.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&CatalogTool> {
        let session_names =
            self.session_names.as_ref().and_then(|session_names| session_names.position(name));
        session_names
            .unwrap_or_else(|| self.tools.positions.get(name).copied())
            .and_then(|position| self.at(position))
    }

    /// The same; or, as `BODY__TOOL`, a body's tool that is listed under its own name. Which names collide can change when a
    /// server lists its tools, so that this form always works.
    pub(crate) fn by_name(&self, name: &str) -> Option<&CatalogTool> {
        let full = || name.split_once("__").and_then(|(body, tool)| self.find_in_body(Some(body), tool));
        let listed = self.get(name);
        if self.is_session_name(name) { listed } else { listed.or_else(full) }
    }

    /// A body's tool by its own name. Without a body: the one of this listed name, else the only one of this own name, unless a
    /// body that has never listed its tools may have one of the same name.
    #[must_use]
    pub fn find_in_body(&self, body: Option<&str>, tool: &str) -> Option<&CatalogTool> {
        let listed = self.get(tool).filter(|found| body.is_none() && !found.is_mind);
        let is_meant = |entry: &CatalogTool| match body {
            Some(body) => *entry.upstream == *body,
            None => !self.tools.unsettled.contains_key(tool),
        };
        listed.or_else(|| {
            let mut found =
                self.entries().filter(|entry| !entry.is_mind && entry.tool == tool && is_meant(entry));
            found.next().filter(|_| found.next().is_none())
        })
    }

    /// The body that may have a tool of this name, has never listed its tools, and keeps others from having the name.
    pub(crate) fn unsettled_body(&self, tool: &str) -> Option<&str> {
        self.tools.unsettled.get(tool).map(|body| &**body)
    }

    /// What is listed, in the order of the upstreams and of their listings.
    pub fn listed(&self) -> impl Iterator<Item = &CatalogTool> {
        self.entries().filter(|entry| entry.pin != Pin::Suspicious && !entry.is_internal)
    }

    /// What waits for the operator: changed definitions, and those that are not listed.
    pub fn quarantined(&self) -> impl Iterator<Item = &CatalogTool> {
        self.entries().filter(|entry| entry.pin != Pin::Same)
    }

    /// What cannot be offered.
    #[must_use]
    pub fn rejected(&self) -> &[RejectedTool] {
        &self.tools.rejected
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
fn new_entry(source: &Source<'_>, tool: &RawTool, read: &definition::Definition) -> CatalogTool {
    CatalogTool {
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
async fn compare_pins(
    store: &Store,
    source: &Source<'_>,
    usable: &[(&RawTool, definition::Definition)],
) -> Result<Vec<CatalogTool>, embody_store::Error> {
    let findings: Vec<Option<Finding>> =
        off_runtime(source.bytes(), || usable.iter().map(|(_, read)| scan_cached(read)).collect());
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
        .map(|(((tool, read), finding), state)| {
            apply_pin_state(new_entry(source, tool, read), finding, state)
        })
        .collect())
}

fn scan_cached(read: &definition::Definition) -> Option<Finding> {
    let texts = || read.texts.iter().map(|(part, text)| (*part, text.as_str()));
    SCAN_CACHE.finding(&read.hash, || definition_scan::scan(texts()))
}

fn apply_pin_state(mut entry: CatalogTool, finding: Option<Finding>, state: PinState) -> CatalogTool {
    match state {
        PinState::First | PinState::Same => {}
        PinState::New => {
            entry.pin = Pin::New;
            entry.annotations.is_new = true;
        }
        PinState::Held => (entry.pin, entry.finding) = (Pin::Suspicious, finding),
        PinState::Changed { pinned, .. } => {
            (entry.pin, entry.finding) = (Pin::Changed, finding);
            match RawValue::from_string(pinned.text) {
                Ok(text) => {
                    entry.annotations = definition::annotations(&text);
                    entry.definition = text;
                    entry.hash = pinned.hash;
                }
                // Nobody can say what was accepted.
                Err(_) => entry.pin = Pin::Suspicious,
            }
        }
    }
    entry
}

impl Tools {
    /// The tools of an upstream that are exposed and can be offered; the others are noted.
    fn usable<'a>(&mut self, source: &'a Source<'_>) -> Vec<(&'a RawTool, definition::Definition)> {
        let (mut usable, mut seen) = (Vec::new(), HashSet::new());
        for tool in source.tools.iter().filter(|tool| source.exposes(&tool.name)) {
            let read = definition::read(&tool.name, &tool.definition);
            match read.and_then(|read| seen.insert(&tool.name).then_some(read).ok_or(RejectReason::Twice)) {
                Ok(read) => usable.push((tool, read)),
                Err(why) => self.rejected.push(RejectedTool {
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
        is_among: impl Fn(&CatalogTool) -> bool,
    ) -> BTreeMap<String, Arc<str>> {
        let unknown: Vec<&Source<'_>> = sources
            .iter()
            .filter(|source| source.first_listing == FirstListing::Never && !source.is_embedded)
            .collect();
        let is_settled =
            |source: &&Source<'_>| source.first_listing == FirstListing::BeforeSession && !source.is_embedded;
        let settled: HashSet<&str> =
            sources.iter().filter(is_settled).map(|source| &*source.upstream).collect();
        let open = self.entries.iter().filter(|entry| is_among(entry) && !entry.is_mind);
        let open = open.filter(|entry| !settled.contains(&*entry.upstream));
        open.filter_map(|entry| {
            // A mind that is still starting takes names from the embedded body only: the others are the operator's choice.
            let is_rival = |source: &&&Source<'_>| entry.is_embedded || !source.role.is_mind();
            let may_contain = unknown.iter().filter(is_rival).find(|source| source.exposes(&entry.tool))?;
            Some((entry.tool.clone(), Arc::clone(&may_contain.upstream)))
        })
        .collect()
    }

    /// Gives every tool its name. The mind's names are part of the contract: a body that has one of them makes room. So
    /// does the embedded body for those that somebody has chosen.
    fn assign_names(mut self, own: &[&str], sources: &[Source<'_>]) -> Self {
        let upstreams: BTreeSet<&str> = sources.iter().map(|source| &*source.upstream).collect();
        let rank = |entry: &CatalogTool| match (entry.is_mind, entry.is_embedded) {
            (true, _) => 0,
            (false, false) => 1,
            (false, true) => 2,
        };
        let mut taken: HashSet<String> = own.iter().map(|name| (*name).to_owned()).collect();
        let mut ranks = Vec::new();
        for wanted in 0..3 {
            let unsettled = self.unsettled_among(sources, |entry| rank(entry) == wanted);
            taken.extend(unsettled.keys().cloned());
            self.unsettled.extend(unsettled);
            let requests: Vec<_> = (self.entries.iter().filter(|entry| rank(entry) == wanted))
                .map(|entry| NameRequest { upstream: &entry.upstream, tool: &entry.tool })
                .collect();
            let names = assign_names(&upstreams, &requests, &taken);
            taken.extend(names.iter().flatten().cloned());
            ranks.push(names.into_iter());
        }
        self.entries.retain_mut(|entry| {
            let name = ranks.get_mut(rank(entry)).and_then(Iterator::next);
            let renamed =
                name.flatten().and_then(|name| Some((definition::renamed(&entry.definition, &name)?, name)));
            match renamed {
                Some((definition, name)) => {
                    (entry.definition, entry.name) = (definition, name);
                    true
                }
                None => {
                    let (upstream, tool) = (Arc::clone(&entry.upstream), entry.tool.clone());
                    self.rejected.push(RejectedTool { upstream, tool, why: RejectReason::NoName });
                    false
                }
            }
        });
        self.positions =
            self.entries.iter().enumerate().map(|(at, entry)| (entry.name.clone(), at)).collect();
        self
    }
}

#[cfg(test)]
mod tests;
