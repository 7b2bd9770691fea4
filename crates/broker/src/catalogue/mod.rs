//! The tools of all upstreams as a host sees them: under which name, with which definition, and whether that is still the one
//! that was first seen. Owns names and pins; whether a call may happen is the gate's.
//!
//! - `built`: what was built already, for all sessions
//! - `definition`: one definition read: hash, hints, texts
//! - `doubt`: whether the operator has to look at it first
//! - `examined`: what was looked at already
//! - `names`: what each tool is called
//! - `search`: which tools fit a question
//! - `shelf`: which tools are listed

mod built;
mod definition;
mod doubt;
mod examined;
mod names;
mod search;
mod shelf;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use embody_store::{Definition as Pinned, PinState, SeenTool, Store};
use serde_json::value::RawValue;

pub use self::built::Catalogues;
pub(crate) use self::definition::Texts;
pub use self::definition::Unusable;
pub use self::doubt::Doubt;
use self::examined::Examined;
use self::names::assign_among;
pub(crate) use self::names::{Wanting, assign};
pub use self::search::Found;
use self::search::Index;
pub use self::shelf::{MAX_LISTED, Shelf, Shown};
use crate::gate::Pin;
use crate::policy::Annotations;
use crate::upstream::{RawTool, Role};

/// Every session looks at the same definitions, and again whenever something changes.
static EXAMINED: Examined = Examined::new();

/// Tools of every mind that the broker calls itself: `runtime_bootstrap` and each observed call stand for them.
const INTERNAL: [&str; 2] = ["bootstrap_session", "observe"];
/// The same of the embedded mind: `reflect_user_message`, `read_memory` and the contract stand for them.
const INTERNAL_OF_EMBEDDED: [&str; 3] = ["reflect", "recall", "get_system_prompt"];
/// Whether there is nothing in these texts that the operator has to look at first.
pub(crate) fn is_plain<'a>(texts: impl IntoIterator<Item = &'a str>) -> bool {
    doubt::doubt(texts).is_none()
}

/// Whether a text has hidden characters, or text where people do not look.
pub(crate) fn hides_something(text: &str) -> bool {
    doubt::hides_something(text)
}

/// The text without its hidden characters.
pub(crate) fn without_hidden(text: &str) -> String {
    doubt::without_hidden(text)
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
    /// Why what the server shows now waits for the operator, beyond being another definition.
    pub doubt: Option<Doubt>,
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
pub struct Catalogue(Arc<Tools>);

#[derive(Debug, Default)]
struct Tools {
    offered: Vec<Offered>,
    places: HashMap<String, usize>,
    unoffered: Vec<Unoffered>,
    /// Their words, once somebody has searched.
    index: OnceLock<Index>,
}

impl Offered {
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
            let usable = tools.usable(source);
            match source.is_embedded {
                true => tools.offered.extend(usable.iter().map(|(tool, read)| offered(source, tool, read))),
                false => tools.offered.extend(pinned(store, source, &usable).await?),
            }
        }
        Ok(Self(Arc::new(tools.named(own, sources))))
    }

    /// The same of definitions that are known to hold, without asking anybody.
    #[must_use]
    pub fn known(sources: &[Source<'_>]) -> Self {
        let mut tools = Tools::default();
        for source in sources {
            let usable = tools.usable(source);
            tools.offered.extend(usable.into_iter().map(|(tool, read)| offered(source, tool, &read)));
        }
        Self(Arc::new(tools.named(&crate::own::NAMES, sources)))
    }

    /// Whether it is the very same one.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The tool of this listed name; also one that is internal, or whose definition waits for the operator.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Offered> {
        self.0.places.get(name).and_then(|at| self.0.offered.get(*at))
    }

    /// A body's tool by its own name. Without a body: the one of this listed name, else the only one of this own name.
    #[must_use]
    pub fn of_body(&self, body: Option<&str>, tool: &str) -> Option<&Offered> {
        let listed = self.get(tool).filter(|found| body.is_none() && !found.is_mind);
        listed.or_else(|| {
            let mut found = self.0.offered.iter().filter(|offered| {
                !offered.is_mind && offered.tool == tool && body.is_none_or(|body| *offered.upstream == *body)
            });
            found.next().filter(|_| found.next().is_none())
        })
    }

    /// What is listed, in the order of the upstreams and of their listings.
    pub fn listed(&self) -> impl Iterator<Item = &Offered> {
        self.0.offered.iter().filter(|offered| offered.pin != Pin::Suspicious && !offered.is_internal)
    }

    /// What waits for the operator: changed definitions, and those that are not listed.
    pub fn waiting(&self) -> impl Iterator<Item = &Offered> {
        self.0.offered.iter().filter(|offered| offered.pin != Pin::Same)
    }

    /// What cannot be offered.
    #[must_use]
    pub fn unoffered(&self) -> &[Unoffered] {
        &self.0.unoffered
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
            Role::Body(body) => {
                let any = |globs: &[crate::policy::Glob]| {
                    globs.iter().any(|glob| glob.matches(&self.upstream, tool))
                };
                any(&body.allow) && !any(&body.deny)
            }
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
        doubt: None,
    }
}

/// Compares the tools of an upstream with their pins. Their names are still their own.
async fn pinned(
    store: &Store,
    source: &Source<'_>,
    usable: &[(&RawTool, definition::Definition)],
) -> Result<Vec<Offered>, embody_store::Error> {
    let doubts: Vec<Option<Doubt>> = usable
        .iter()
        .map(|(_, read)| EXAMINED.doubt(&read.hash, || doubt::doubt(read.texts.iter().map(String::as_str))))
        .collect();
    let seen = usable.iter().zip(&doubts).map(|((tool, read), doubt)| SeenTool {
        body: source.upstream.to_string(),
        tool: tool.name.clone(),
        definition: Pinned { text: tool.definition.get().to_owned(), hash: read.hash.clone() },
        acceptable: doubt.is_none(),
    });
    let states = match source.is_live {
        true => store.see_tools(seen.collect()).await?,
        false => store.compare_tools(seen.collect()).await?,
    };
    let compared = usable.iter().zip(doubts).zip(states);
    Ok(compared
        .map(|(((tool, read), doubt), state)| held(offered(source, tool, read), doubt, state))
        .collect())
}

/// The tool as what came of the comparison lets it be.
fn held(mut offered: Offered, doubt: Option<Doubt>, state: PinState) -> Offered {
    match state {
        PinState::First | PinState::Same => {}
        PinState::Held => (offered.pin, offered.doubt) = (Pin::Suspicious, doubt),
        PinState::Changed { pinned, .. } => {
            (offered.pin, offered.doubt) = (Pin::Changed, doubt);
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
