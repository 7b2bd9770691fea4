//! Caches built catalogues, so that sessions with equal upstream listings share one, and the findings of the definition scan. The
//! key of a catalogue covers everything that it depends on: listings, upstream settings and pins. The key of a finding is the hash
//! of the definition, which covers all scanned texts.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use embody_store::Store;
use embody_store::pins::PinsMark;

use super::{Catalogue, Finding, FirstListing, Source};
use crate::builtin_tools;
use crate::session::lock;
use crate::upstream::{RawTool, Role};

/// The number of cached catalogues. Sessions rarely differ, except while their servers start.
const CAPACITY: usize = 16;

#[derive(Debug, Default)]
pub struct CatalogueCache(Mutex<VecDeque<(CacheKey, Catalogue)>>);

#[derive(Debug)]
struct CacheKey {
    /// `None` if nothing is pinned.
    pins: Option<PinsMark>,
    shown: Vec<SourceKey>,
}

#[derive(Debug)]
struct SourceKey {
    upstream: Arc<str>,
    role: Role,
    is_embedded: bool,
    is_live: bool,
    first_listing: FirstListing,
    tools: Arc<[RawTool]>,
}

impl CacheKey {
    fn of(pins: Option<PinsMark>, sources: &[Source<'_>]) -> Self {
        let shown = |source: &Source<'_>| SourceKey {
            upstream: Arc::clone(&source.upstream),
            role: source.role.clone(),
            is_embedded: source.is_embedded,
            is_live: source.is_live,
            first_listing: source.first_listing,
            tools: Arc::clone(&source.tools),
        };
        Self { pins, shown: sources.iter().map(shown).collect() }
    }

    fn matches(&self, pins: Option<&PinsMark>, sources: &[Source<'_>]) -> bool {
        self.pins.as_ref() == pins
            && self.shown.len() == sources.len()
            && self.shown.iter().zip(sources).all(|(shown, source)| shown.is(source))
    }
}

impl SourceKey {
    /// Listings are shared, except for empty ones.
    fn is(&self, source: &Source<'_>) -> bool {
        let (tools, others) = (&self.tools, &source.tools);
        self.upstream == source.upstream
            && self.role == *source.role
            && self.is_embedded == source.is_embedded
            && self.is_live == source.is_live
            && self.first_listing == source.first_listing
            && (Arc::ptr_eq(tools, others) || (tools.is_empty() && others.is_empty()))
    }
}

impl CatalogueCache {
    /// The catalogue for these listings and the current pins.
    pub async fn of(&self, store: &Store, sources: &[Source<'_>]) -> Result<Catalogue, embody_store::Error> {
        // Read before the pins are compared: a change meanwhile makes this catalogue outdated.
        let pins = if sources.iter().all(|source| source.is_embedded) {
            None
        } else {
            Some(store.pins().mark().await?)
        };
        let is_same = |(key, _): &&(CacheKey, Catalogue)| key.matches(pins.as_ref(), sources);
        let known = lock(&self.0).iter().find(is_same).map(|(_, known)| known.clone());
        if let Some(known) = known {
            return Ok(known);
        }
        let catalogue = Catalogue::build(store, sources, &builtin_tools::NAMES).await?;
        let mut built = lock(&self.0);
        // Another session may have built the same catalogue meanwhile.
        built.retain(|(key, _)| !key.matches(pins.as_ref(), sources));
        built.truncate(CAPACITY - 1);
        built.push_front((CacheKey::of(pins, sources), catalogue.clone()));
        Ok(catalogue)
    }
}

/// The number of cached definitions. The cache is cleared when it is full.
const FINDINGS_MAX: usize = 8192;

pub(super) struct ScanCache(Mutex<BTreeMap<String, Option<Finding>>>);

impl ScanCache {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    pub(super) fn finding(&self, hash: &str, scan: impl FnOnce() -> Option<Finding>) -> Option<Finding> {
        let known = lock(&self.0).get(hash).cloned();
        if let Some(finding) = known {
            return finding;
        }
        // The lock is not held during a scan.
        let finding = scan();
        let mut known = lock(&self.0);
        if known.len() >= FINDINGS_MAX {
            known.clear();
        }
        known.insert(hash.to_owned(), finding.clone());
        finding
    }
}

#[cfg(test)]
mod tests {
    use embody_store::DatabaseUrl;
    use embody_store::pins::AcceptPin;
    use serde_json::value::RawValue;

    use super::*;
    use crate::gate::Pin;
    use crate::policy::Glob;
    use crate::upstream::{BodySpec, Role};

    fn tools(description: &str) -> Arc<[RawTool]> {
        let text = format!(r#"{{"name":"send","description":"{description}","inputSchema":{{}}}}"#);
        vec![RawTool { name: "send".to_owned(), definition: RawValue::from_string(text).unwrap() }].into()
    }

    // spec: N-05
    #[tokio::test]
    async fn sessions_that_see_the_same_share_it_until_a_pin_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(DatabaseUrl::File(folder.path().join("embody.db"))).await.unwrap();
        let (role, catalogues) = (
            Role::Body(BodySpec { allow: vec![Glob::new("*")], ..BodySpec::default() }),
            CatalogueCache::default(),
        );
        let of = async |tools: &Arc<[RawTool]>| {
            let (upstream, tools) = (Arc::from("mail"), Arc::clone(tools));
            let source = Source {
                upstream,
                role: &role,
                is_embedded: false,
                tools,
                is_live: true,
                first_listing: FirstListing::BeforeSession,
            };
            catalogues.of(&store, &[source]).await.unwrap()
        };
        let (first, second) = (tools("sends"), tools("sends more"));
        // The first listing creates a pin.
        of(&first).await;
        let (one, other) = (of(&first).await, of(&first).await);
        assert!(one.is(&other));
        let changed = of(&second).await;
        assert_eq!(changed.get("send").unwrap().pin, Pin::Changed);
        let hash = store.pins().list(("", ""), 10).await.unwrap().remove(0).seen.unwrap().hash;
        let (body, tool, by) = ("mail".into(), "send".into(), "ann".into());
        store.pins().accept(AcceptPin { body, tool, hash, by }).await.unwrap();
        assert_eq!(of(&second).await.get("send").unwrap().pin, Pin::Same);
        assert_eq!(of(&first).await.get("send").unwrap().pin, Pin::Changed, "the old one is old now");
    }

    // spec: N-05
    #[tokio::test]
    async fn what_another_process_accepts_holds_at_once_and_an_embedded_one_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let position = DatabaseUrl::File(folder.path().join("embody.db"));
        let (store, other) =
            (Store::open(position.clone()).await.unwrap(), Store::open(position).await.unwrap());
        let catalogues = CatalogueCache::default();
        let body = |deny: &[&str]| {
            let deny = deny.iter().map(|glob| Glob::new(glob)).collect();
            Role::Body(BodySpec { allow: vec![Glob::new("*")], deny, ..BodySpec::default() })
        };
        let of = async |tools: &Arc<[RawTool]>, role: &Role, is_embedded| {
            let (upstream, tools) = (Arc::from("mail"), Arc::clone(tools));
            catalogues
                .of(
                    &store,
                    &[Source {
                        upstream,
                        role,
                        is_embedded,
                        tools,
                        is_live: true,
                        first_listing: FirstListing::BeforeSession,
                    }],
                )
                .await
                .unwrap()
        };
        let (first, second, open) = (tools("sends"), tools("sends more"), body(&[]));
        of(&first, &open, false).await;
        assert_eq!(of(&second, &open, false).await.get("send").unwrap().pin, Pin::Changed);
        assert_eq!(of(&second, &open, true).await.get("send").unwrap().pin, Pin::Same);
        assert_eq!(of(&second, &open, false).await.get("send").unwrap().pin, Pin::Changed);
        assert!(of(&second, &body(&["send"]), false).await.get("send").is_none());
        let hash = other.pins().list(("", ""), 10).await.unwrap().remove(0).seen.unwrap().hash;
        let (body, tool, by) = ("mail".into(), "send".into(), "ann".into());
        other.pins().accept(AcceptPin { body, tool, hash, by }).await.unwrap();
        assert_eq!(of(&second, &open, false).await.get("send").unwrap().pin, Pin::Same);
    }

    #[test]
    fn each_definition_is_scanned_once_and_not_all_are_remembered() {
        use crate::catalogue::{Part, Suspicion};
        let found = |suspicion| Some(Finding { suspicion, part: Part::Description, excerpt: "x".to_owned() });
        let (scan_cache, frame) = (ScanCache::new(), found(Suspicion::Frame));
        assert_eq!(scan_cache.finding("a", || frame.clone()), frame);
        assert_eq!(scan_cache.finding("b", || None), None);
        assert_eq!(scan_cache.finding("a", || panic!("it was scanned")), frame);
        assert_eq!(scan_cache.finding("b", || panic!("it was scanned")), None);
        for number in 0..FINDINGS_MAX {
            scan_cache.finding(&number.to_string(), || None);
        }
        assert!(scan_cache.0.lock().unwrap().len() <= FINDINGS_MAX);
        assert_eq!(scan_cache.finding("a", || found(Suspicion::Secrecy)), found(Suspicion::Secrecy));
    }
}
