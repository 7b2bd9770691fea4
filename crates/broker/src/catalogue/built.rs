//! Catalogues that were built, so that sessions whose servers show the same share one. Owns nothing but that: what is in
//! a catalogue follows from the listings and the pins, and both are compared.

use std::collections::VecDeque;
use std::sync::Arc;

use embody_store::{Store, Topic};
use tokio::sync::Mutex;

use super::{Catalogue, Source};
use crate::own;
use crate::upstream::RawTool;

/// Catalogues that are kept: sessions differ while their servers start, and hardly otherwise.
const MOST: usize = 16;

/// The catalogues of one broker.
#[derive(Debug, Default)]
pub struct Catalogues(Mutex<VecDeque<(Key, Catalogue)>>);

/// What a catalogue was built from.
#[derive(Debug)]
struct Key {
    pins: u64,
    listings: Vec<(Arc<str>, Arc<[RawTool]>)>,
}

impl Key {
    fn is_of(&self, pins: u64, sources: &[Source<'_>]) -> bool {
        self.pins == pins
            && self.listings.len() == sources.len()
            && self.listings.iter().zip(sources).all(|((upstream, tools), source)| {
                *upstream == source.upstream && is_same(tools, &source.tools)
            })
    }
}

/// Whether it is the same listing. They are shared, but for those that are empty.
fn is_same(one: &Arc<[RawTool]>, other: &Arc<[RawTool]>) -> bool {
    Arc::ptr_eq(one, other) || (one.is_empty() && other.is_empty())
}

impl Catalogues {
    /// The catalogue of these listings and of the pins as they are. One is built at a time: whoever waits finds it built.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub(crate) async fn of(
        &self,
        store: &Store,
        sources: &[Source<'_>],
    ) -> Result<Catalogue, embody_store::Error> {
        let mut built = self.0.lock().await;
        // Before the pins are read: what changes meanwhile makes this one old.
        let pins = store.change_number(Topic::Pins);
        if let Some((_, catalogue)) = built.iter().find(|(key, _)| key.is_of(pins, sources)) {
            return Ok(catalogue.clone());
        }
        let catalogue = Catalogue::build(store, sources, &own::NAMES).await?;
        let listings =
            sources.iter().map(|source| (Arc::clone(&source.upstream), Arc::clone(&source.tools))).collect();
        built.retain(|(key, _)| key.pins == pins);
        built.truncate(MOST - 1);
        built.push_front((Key { pins, listings }, catalogue.clone()));
        Ok(catalogue)
    }
}

#[cfg(test)]
mod tests {
    use embody_store::{AcceptPin, Place};
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
        let store = Store::open(Place::File(folder.path().join("embody.db"))).await.unwrap();
        let (role, catalogues) = (
            Role::Body(BodySpec { allow: vec![Glob::new("*")], ..BodySpec::default() }),
            Catalogues::default(),
        );
        let of = async |tools: &Arc<[RawTool]>| {
            let (upstream, tools) = (Arc::from("mail"), Arc::clone(tools));
            let source = Source { upstream, role: &role, is_embedded: false, tools };
            catalogues.of(&store, &[source]).await.unwrap()
        };
        let (first, second) = (tools("sends"), tools("sends more"));
        // The first sight is a pin of its own.
        of(&first).await;
        let (one, other) = (of(&first).await, of(&first).await);
        assert!(one.is(&other));
        let changed = of(&second).await;
        assert_eq!(changed.get("send").unwrap().pin, Pin::Changed);
        let hash = store.pins(("", ""), 10).await.unwrap().remove(0).seen.unwrap().hash;
        let (body, tool, by) = ("mail".into(), "send".into(), "ann".into());
        store.accept_pin(AcceptPin { body, tool, hash, by }).await.unwrap();
        assert_eq!(of(&second).await.get("send").unwrap().pin, Pin::Same);
        assert_eq!(of(&first).await.get("send").unwrap().pin, Pin::Changed, "the old one is old now");
    }
}
