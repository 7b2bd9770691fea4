//! The state that a host of the stateless era is given with a question, and brings back with the answer: a ticket, and a
//! proof that it was made here, for this principal, this call, under this policy, and not too long ago.
//!
//! It is no secret, only unforgeable. The key is kept in the store, so that every process on it reads the same states; a
//! new one is made every day, and an older one is still good for what it has sealed. The ids of tasks and the cursors of lists
//! are sealed with the same keys.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use embody_store::{SigningKey, Store};
use embody_wire::server::{Host, code, failure};
use embody_wire::{Outcome, Request};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::arguments::Arguments;
use crate::session::lock;
use crate::{Broker, Principal};

/// How long a state is good. The call that it stands for does not wait longer.
const LIFE: Duration = Duration::from_secs(900);
/// How long a key seals.
const KEY_LIFE: Duration = Duration::from_secs(24 * 3600);
/// How long it is kept afterwards: a task may be asked for later than a call waits for its answers.
const KEY_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// How often it is looked whether another one has taken its place.
const LOOK_AGAIN: Duration = Duration::from_secs(600);
/// Keys that are kept here.
const MOST: usize = 16;
/// The longest state that is looked at.
const LONGEST: usize = 512;
const FORM: &str = "1";

/// The keys that are known, the one to seal with first, and when that one was last looked for.
#[derive(Default)]
pub(crate) struct Seals {
    known: Mutex<(Vec<SigningKey>, Option<Instant>)>,
    reading: tokio::sync::Mutex<()>,
}

impl Seals {
    /// The key to seal with now.
    pub(super) async fn current(&self, store: &Store) -> embody_store::Result<SigningKey> {
        let known = || {
            let known = lock(&self.known);
            let is_fresh = known.1.is_some_and(|at| at.elapsed() < LOOK_AGAIN);
            known.0.first().filter(|_| is_fresh).cloned()
        };
        if let Some(key) = known() {
            return Ok(key);
        }
        let _one_at_a_time = self.reading.lock().await;
        if let Some(key) = known() {
            return Ok(key);
        }
        let key = store.current_signing_key(KEY_LIFE, KEY_KEPT).await?;
        let mut known = lock(&self.known);
        known.0.retain(|other| other.id != key.id);
        known.0.insert(0, key.clone());
        known.0.truncate(MOST);
        known.1 = Some(Instant::now());
        Ok(key)
    }

    /// The key of this name.
    pub(super) async fn named(&self, store: &Store, id: &str) -> embody_store::Result<Option<SigningKey>> {
        // Of what no key can be called nobody needs to be asked.
        if !is_key_id(id) {
            return Ok(None);
        }
        let known = || lock(&self.known).0.iter().find(|key| key.id == id).cloned();
        if let Some(key) = known() {
            return Ok(Some(key));
        }
        // Another process has made it.
        let _one_at_a_time = self.reading.lock().await;
        if let Some(key) = known() {
            return Ok(Some(key));
        }
        let mut keys = store.signing_keys().await?;
        keys.truncate(MOST);
        let found = keys.iter().find(|key| key.id == id).cloned();
        let mut known = lock(&self.known);
        // Whichever is to be sealed with is looked for again if it may be another one.
        let is_same = keys.first().is_some_and(|key| known.0.first() == Some(key));
        let looked_at = known.1.filter(|_| is_same);
        *known = (keys, looked_at);
        Ok(found)
    }
}

/// Whether a key can be called so.
fn is_key_id(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// What only whoever has the key can say of these parts for this principal.
pub(super) fn proof_of(key: &SigningKey, whose: &Principal, form: &str, parts: &[&str]) -> String {
    let Principal { user, agent, channel, shared_conversation: room, .. } = whose;
    let mut hasher = blake3::Hasher::new_keyed(&key.key);
    // A room without a name is a room.
    let room = room.as_ref().map(|room| format!("#{room}")).unwrap_or_default();
    for part in [form, user, agent, channel, &room].into_iter().chain(parts.iter().copied()) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

impl Broker {
    /// Seals a ticket.
    pub(crate) async fn sealed(
        &self,
        host: &Host<Principal>,
        request: &Request,
        ticket: &str,
    ) -> Result<String, Outcome> {
        let now = (self.config.clock)();
        let key = self.seals.current(&self.config.store).await.map_err(|error| unavailable(&error))?;
        let until = now.saturating_add(i64::try_from(LIFE.as_micros()).unwrap_or(i64::MAX));
        let proof = self.proof(&key, host, request, ticket, until).ok_or_else(foreign)?;
        Ok(written(&key, ticket, until, &proof))
    }

    /// The ticket of a state that was sealed for this.
    pub(crate) async fn unsealed(
        &self,
        host: &Host<Principal>,
        request: &Request,
        state: &str,
    ) -> Result<String, Outcome> {
        if state.len() > LONGEST {
            return Err(foreign());
        }
        let parts: Vec<&str> = state.split('.').collect();
        let [FORM, key, ticket, until, proof] = *parts else { return Err(foreign()) };
        let until: i64 = until.parse().map_err(|_| foreign())?;
        let key = self.seals.named(&self.config.store, key).await.map_err(|error| unavailable(&error))?;
        let key = key.ok_or_else(foreign)?;
        let meant = self.proof(&key, host, request, ticket, until).ok_or_else(foreign)?;
        // A time or a proof can be written in other ways too, and none of those was given.
        if !is_same(proof, &meant) || state != written(&key, ticket, until, &meant) {
            return Err(foreign());
        }
        if until < (self.config.clock)() {
            let message = "this `requestState` is too old; make the call anew";
            return Err(failure(code::INVALID_PARAMS, message));
        }
        Ok(ticket.to_owned())
    }

    /// A keyed hash of these parts, for this principal, that only a process on this store can make, and the name of its key.
    pub(crate) async fn sign_parts(
        &self,
        whose: &Principal,
        form: &str,
        parts: &[&str],
    ) -> Result<String, Outcome> {
        let key = self.seals.current(&self.config.store).await.map_err(|error| unavailable(&error))?;
        Ok(format!("{}.{}", key.id, proof_of(&key, whose, form, parts)))
    }

    /// Whether [`Broker::sign_parts`] gives this signature for these parts and this principal.
    pub(crate) async fn verify_parts(
        &self,
        whose: &Principal,
        form: &str,
        parts: &[&str],
        signature: &str,
    ) -> Result<bool, Outcome> {
        let Some((key, proof)) = signature.split_once('.') else { return Ok(false) };
        let key = self.seals.named(&self.config.store, key).await.map_err(|error| unavailable(&error))?;
        Ok(key.is_some_and(|key| is_same(proof, &proof_of(&key, whose, form, parts))))
    }

    /// What only whoever has the key can say of this ticket; `None` if the request could be read in two ways.
    fn proof(
        &self,
        key: &SigningKey,
        host: &Host<Principal>,
        request: &Request,
        ticket: &str,
        until: i64,
    ) -> Option<String> {
        let (what, until) = (What::read(request)?, until.to_string());
        // An approval that was asked of a host with the right to give it is not answered by one without.
        let right = if host.principal.may_approve { "may approve" } else { "" };
        let parts = [
            &*request.method,
            &*what.name,
            &*what.uri,
            &*what.arguments,
            &*self.config.policy_version,
            &*until,
            ticket,
            right,
            host.principal.token.as_deref().unwrap_or_default(),
        ];
        Some(proof_of(key, &host.principal, FORM, &parts))
    }
}

/// A state as it is given.
fn written(key: &SigningKey, ticket: &str, until: i64, proof: &str) -> String {
    [FORM, &key.id, ticket, &until.to_string(), proof].join(".")
}

/// Whether two proofs say the same: compared as hashes, in constant time.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (blake3::Hash::from_hex(one).ok(), blake3::Hash::from_hex(other).ok());
    one.zip(other).is_some_and(|(one, other)| one == other)
}

/// What a request asks for: the same each time that it is sent.
struct What {
    name: String,
    uri: String,
    arguments: String,
}

impl What {
    fn read(request: &Request) -> Option<Self> {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(default)]
            name: String,
            #[serde(default)]
            uri: String,
            #[serde(borrow, default)]
            arguments: Option<&'a RawValue>,
        }
        let params = request.params.as_deref().map_or("{}", RawValue::get);
        // The items of a list could be taken for members.
        if !params.starts_with('{') {
            return None;
        }
        let Params { name, uri, arguments } = serde_json::from_str(params).ok()?;
        let arguments = Arguments::read(arguments.filter(|given| given.get() != "null")).ok()?;
        Some(Self { name, uri, arguments: arguments.canonical().to_owned() })
    }
}

fn foreign() -> Outcome {
    let message = "this `requestState` was not given for this call; make the call anew, without it";
    failure(code::INVALID_PARAMS, message)
}

pub(super) fn unavailable(error: &embody_store::Error) -> Outcome {
    tracing::error!(reason = %error, "the keys of states and tasks cannot be read");
    failure(
        code::INTERNAL_ERROR,
        "what belongs to this call, task or list cannot be read or sealed: the store does not answer; try again",
    )
}

#[cfg(test)]
mod tests {
    use embody_store::DatabaseUrl;

    use super::*;

    #[tokio::test]
    async fn whoever_names_keys_that_are_not_there_changes_nothing() {
        let store = Store::open(DatabaseUrl::Memory).await.unwrap();
        let seals = Seals::default();
        let key = seals.current(&store).await.unwrap();
        assert_eq!(seals.named(&store, &key.id).await.unwrap().as_ref(), Some(&key));
        let looked_at = lock(&seals.known).1;
        assert!(looked_at.is_some());
        let upper = key.id.to_uppercase();
        for id in ["", "x", &"0".repeat(32), &"g".repeat(32), &"0".repeat(33), &upper[..31]] {
            assert!(seals.named(&store, id).await.unwrap().is_none(), "{id}");
            assert_eq!(lock(&seals.known).1, looked_at, "{id}");
        }
        assert!(is_key_id(&key.id) && !is_key_id(&"g".repeat(32)) && !is_key_id("0"));
    }
}
