//! The tools of all upstreams as a host sees them: names, pinned definitions, and whether a definition has changed since it
//! was pinned. Owns names and pins; leaves decisions about calls to the gate.
//!
//! - `catalogue_cache`: built catalogues, and findings of earlier scans
//! - `definition`: one definition parsed: hash, hints, texts
//! - `definition_scan`: whether a definition is suspicious
//! - `session_names`: names that one session has announced to its host
//! - `names`: assigns a unique name to each tool
//! - `search`: ranks tools for a query
//! - `listing_limit`: which tools are listed

mod catalogue_cache;
mod definition;
mod definition_scan;
mod listing_limit;
mod names;
mod search;
mod session_names;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use embody_store::Store;
use embody_store::pins::{Definition as Pinned, PinState, SeenTool, ToolPin};
use embody_wire::off_runtime;
use serde_json::value::RawValue;

use self::catalogue_cache::ScanCache;
use self::search::Index;
use self::session_names::SessionNames;
use crate::gate::Pin;
use crate::policy::Annotations;
use crate::session::instructions;
use crate::upstream::{RawTool, Role, Spec};

pub use self::catalogue_cache::CatalogueCache;
pub(crate) use self::definition::Texts;
pub use self::definition_scan::{Finding, Part, Suspicion};
pub(crate) use self::definition_scan::{has_hidden, without_hidden};
pub use self::listing_limit::{ListingLimit, MAX_LISTED, ToolListing};
pub(crate) use self::names::{NameRequest, assign_names};
pub use self::search::SearchResult;

/// Shared, because every session scans the same definitions, and again after every change.
static SCAN_CACHE: ScanCache = ScanCache::new();

/// Tools of every mind that the broker calls itself: `runtime_bootstrap` and the observation of calls replace them.
const INTERNAL: [&str; 2] = ["bootstrap_session", "observe"];
/// The same for the embedded mind: `reflect_user_message`, `read_memory` and the contract replace them.
const INTERNAL_OF_EMBEDDED: [&str; 3] = ["reflect", "recall", "get_system_prompt"];

/// Whether these texts contain nothing that the operator must review first.
pub(crate) fn is_plain<'a>(texts: impl IntoIterator<Item = &'a str>) -> bool {
    definition_scan::scan(texts.into_iter().map(|text| (Part::Description, text))).is_none()
}

#[derive(Debug, Clone)]
pub struct Source<'a> {
    pub upstream: Arc<str>,
    pub role: &'a Role,
    /// Whether it is part of this program: its tools change with the program and need no acceptance.
    pub is_embedded: bool,
    pub tools: Arc<[RawTool]>,
    /// Whether the server lists this now. A remembered listing is compared with the pins, but does not count as seen.
    pub is_live: bool,
    pub first_listing: FirstListing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstListing {
    BeforeSession,
    InSession,
    /// Never: it is still starting, or its first start failed. Any name that it may expose can be one of its tools.
    Never,
}

impl Source<'_> {
    fn bytes(&self) -> usize {
        self.tools.iter().map(|tool| tool.definition.get().len()).sum()
    }
}

#[derive(Debug, Clone)]
pub struct CatalogTool {
    pub name: String,
    pub upstream: Arc<str>,
    pub tool: String,
    /// The definition as listed: the pinned text with the listed name.
    pub definition: Box<RawValue>,
    pub annotations: Annotations,
    pub pin: Pin,
    pub hash: String,
    pub is_mind: bool,
    pub is_embedded: bool,
    /// Whether the broker itself calls it for the host. It is neither listed nor found, but can be called by name.
    pub is_internal: bool,
    pub finding: Option<Finding>,
}

/// Why a definition is quarantined: it waits for the operator, and its tool cannot be called, or only for reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuarantineReason {
    #[error("{0}")]
    Suspicious(Finding),
    #[error("its definition changed since the operator accepted it")]
    Changed,
    #[error("its definition changed since the operator accepted it, and now {0}")]
    ChangedSuspiciously(Finding),
    #[error(
        "it is a new tool of a known server, and the operator has not accepted it: it counts as a human-visible write"
    )]
    New,
    /// No definition of this tool was ever accepted, although the current one is not suspicious.
    #[error("it was quarantined when it was first seen and has not been accepted since")]
    NeverAccepted,
}

/// Why a stored definition is quarantined; `None` if it is not.
pub fn quarantine_reason(pin: &ToolPin) -> Option<QuarantineReason> {
    let shown = pin.seen.as_ref().unwrap_or(&pin.pinned);
    let scan = || {
        if pin.tool == instructions::PIN {
            return definition_scan::scan([(Part::Instructions, shown.text.as_str())]);
        }
        let definition = RawValue::from_string(shown.text.clone()).ok()?;
        scan_cached(&definition::read(&pin.tool, &definition)?)
    };
    match (pin.accepted, &pin.seen) {
        (true, None) if pin.is_new => Some(QuarantineReason::New),
        (true, None) => None,
        (true, Some(_)) => Some(QuarantineReason::changed(scan())),
        (false, _) => Some(QuarantineReason::never_accepted(scan())),
    }
}

impl QuarantineReason {
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

#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    tools: Arc<Tools>,
    session_names: Option<Arc<SessionNames>>,
}

#[derive(Debug, Default)]
struct Tools {
    /// Tool names that no tool gets, because a body that has never listed its tools may have them: the name and that body.
    unsettled: BTreeMap<String, Arc<str>>,
    entries: Vec<CatalogTool>,
    positions: HashMap<String, usize>,
    /// Built on the first search.
    index: OnceLock<Index>,
}

impl CatalogTool {
    /// How the definition compares with the pinned one, if it is quarantined.
    pub(crate) fn quarantine_state(&self) -> Option<&'static str> {
        match self.pin {
            Pin::Same => None,
            Pin::New => Some("new"),
            Pin::Changed => Some("changed"),
            Pin::Suspicious => Some("held"),
        }
    }

    /// The item that a request other than a tool call reads, in place of a tool: not listed, without a definition.
    pub(crate) fn without_definition(spec: &Spec, item: &str) -> Self {
        Self {
            name: item.to_owned(),
            upstream: Arc::from(spec.name.as_str()),
            tool: item.to_owned(),
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
    /// Compares every tool with its pin and assigns names. `own` are the broker's own names.
    pub async fn build(
        store: &Store,
        sources: &[Source<'_>],
        own: &[&str],
    ) -> Result<Self, embody_store::Error> {
        let mut tools = Tools::default();
        for source in sources {
            let usable = off_runtime(source.bytes(), || source.usable_tools());
            match source.is_embedded {
                true => tools.entries.extend(usable.iter().map(|(tool, read)| new_entry(source, tool, read))),
                false => tools.entries.extend(compare_pins(store, source, &usable).await?),
            }
        }
        Ok(Self { tools: Arc::new(tools.assign_names(own, sources)), session_names: None })
    }

    /// The same for definitions that are known to be in force, without the store.
    pub fn without_pins(sources: &[Source<'_>]) -> Self {
        let mut tools = Tools::default();
        for source in sources {
            let usable = source.usable_tools();
            tools.entries.extend(usable.into_iter().map(|(tool, read)| new_entry(source, tool, &read)));
        }
        Self {
            tools: Arc::new(tools.assign_names(&crate::builtin_tools::NAMES, sources)),
            session_names: None,
        }
    }

    /// Whether both share the same data.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let has_same_names = match (&self.session_names, &other.session_names) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        Arc::ptr_eq(&self.tools, &other.tools) && has_same_names
    }

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

    /// Whether the host received this name for a tool that has been renamed or removed: no other tool may use it.
    pub(crate) fn is_session_name(&self, name: &str) -> bool {
        self.session_names.as_ref().is_some_and(|session_names| session_names.position(name).is_some())
    }

    /// The tool with this name, current or earlier; includes internal and quarantined tools.
    pub fn get(&self, name: &str) -> Option<&CatalogTool> {
        let session_names =
            self.session_names.as_ref().and_then(|session_names| session_names.position(name));
        session_names
            .unwrap_or_else(|| self.tools.positions.get(name).copied())
            .and_then(|position| self.at(position))
    }

    /// The same, and `BODY__TOOL` for a body's tool that is listed under its own name. Names may start to collide when a
    /// server lists its tools, so this form always works.
    pub(crate) fn by_name(&self, name: &str) -> Option<&CatalogTool> {
        let full = || name.split_once("__").and_then(|(body, tool)| self.find_in_body(Some(body), tool));
        let listed = self.get(name);
        if self.is_session_name(name) { listed } else { listed.or_else(full) }
    }

    /// A body's tool by its own name. Without a body: the tool with this listed name, else the only one with this own name,
    /// unless a body that has never listed its tools may have one too.
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

    /// The body that has never listed its tools and may have a tool of this name, which blocks the name for others.
    pub(crate) fn unsettled_body(&self, tool: &str) -> Option<&str> {
        self.tools.unsettled.get(tool).map(|body| &**body)
    }

    pub fn listed(&self) -> impl Iterator<Item = &CatalogTool> {
        self.entries().filter(|entry| entry.pin != Pin::Suspicious && !entry.is_internal)
    }

    /// The quarantined tools: changed definitions, and those that are not listed.
    pub fn quarantined(&self) -> impl Iterator<Item = &CatalogTool> {
        self.entries().filter(|entry| entry.pin != Pin::Same)
    }
}

impl Source<'_> {
    /// The exposed and valid tools. Of two with the same name the first is used.
    fn usable_tools(&self) -> Vec<(&RawTool, definition::Definition)> {
        let mut seen = HashSet::new();
        let exposed = self.tools.iter().filter(|tool| self.exposes(&tool.name));
        let read = exposed.filter_map(|tool| Some((tool, definition::read(&tool.name, &tool.definition)?)));
        read.filter(|(tool, _)| seen.insert(&tool.name)).collect()
    }

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

/// A new entry; its name is not assigned yet.
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

/// Compares the tools of an upstream with their pins. Names are not assigned yet.
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
        true => store.pins().record_all(&source.upstream, seen.collect()).await?,
        false => store.pins().compare(&source.upstream, seen.collect()).await?,
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
                // The accepted definition is unknown.
                Err(_) => entry.pin = Pin::Suspicious,
            }
        }
    }
    entry
}

impl Tools {
    /// The tool names that none of these tools gets, with the body that blocks each. A name must never move to another body:
    /// while a body has never listed its tools, only bodies listed in an earlier session keep the names that it may have.
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
            // A mind that is still starting blocks names of the embedded body only: the operator chose the others.
            let is_rival = |source: &&&Source<'_>| entry.is_embedded || !source.role.is_mind();
            let may_contain = unknown.iter().filter(is_rival).find(|source| source.exposes(&entry.tool))?;
            Some((entry.tool.clone(), Arc::clone(&may_contain.upstream)))
        })
        .collect()
    }

    /// Assigns every tool its name. The mind's names are part of the contract: a body's tool with the same name is renamed.
    /// The embedded body's tools are renamed in favour of configured servers.
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
                None => false,
            }
        });
        self.positions =
            self.entries.iter().enumerate().map(|(at, entry)| (entry.name.clone(), at)).collect();
        self
    }
}

#[cfg(test)]
mod tests;
