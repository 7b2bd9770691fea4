//! Signs and verifies `requestState`: a ticket with a keyed hash over principal, call, policy and expiry. It is not secret,
//! only unforgeable. Keys are stored, so that every process verifies the same states, and rotated daily. Task ids and list
//! cursors use the same keys.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use embody_store::{Principal, SigningKey, Store};
use embody_wire::server::{Host, code, failure};
use embody_wire::{Outcome, Request};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Broker;
use crate::arguments::Arguments;
use crate::session::lock;

/// How long a state is valid; its call waits no longer.
const STATE_LIFETIME: Duration = Duration::from_secs(900);
const KEY_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// How long a key is kept for verification after its lifetime: task ids are used longer than states.
const KEY_RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);
/// How often to check for a newer key.
const KEY_REFRESH: Duration = Duration::from_secs(600);
const MOST: usize = 16;
/// The longest state that is parsed.
const LONGEST: usize = 512;
const FORM: &str = "1";

/// The known keys, the signing key first, and when that was last refreshed.
#[derive(Default)]
pub(crate) struct RequestStateSigner {
    known: Mutex<(Vec<SigningKey>, Option<Instant>)>,
    reading: tokio::sync::Mutex<()>,
}

impl RequestStateSigner {
    pub(super) async fn current_key(&self, store: &Store) -> embody_store::Result<SigningKey> {
        let known = || {
            let known = lock(&self.known);
            let is_fresh = known.1.is_some_and(|at| at.elapsed() < KEY_REFRESH);
            known.0.first().filter(|_| is_fresh).cloned()
        };
        if let Some(key) = known() {
            return Ok(key);
        }
        let _one_at_a_time = self.reading.lock().await;
        if let Some(key) = known() {
            return Ok(key);
        }
        let key = store.signing_keys().current(KEY_LIFETIME, KEY_RETENTION).await?;
        let mut known = lock(&self.known);
        known.0.retain(|other| other.id != key.id);
        known.0.insert(0, key.clone());
        known.0.truncate(MOST);
        known.1 = Some(Instant::now());
        Ok(key)
    }

    pub(super) async fn key(&self, store: &Store, id: &str) -> embody_store::Result<Option<SigningKey>> {
        // An invalid key id needs no lookup.
        if !is_key_id(id) {
            return Ok(None);
        }
        let known = || lock(&self.known).0.iter().find(|key| key.id == id).cloned();
        if let Some(key) = known() {
            return Ok(Some(key));
        }
        // Another process has created the key.
        let _one_at_a_time = self.reading.lock().await;
        if let Some(key) = known() {
            return Ok(Some(key));
        }
        let mut keys = store.signing_keys().list().await?;
        keys.truncate(MOST);
        let found = keys.iter().find(|key| key.id == id).cloned();
        let mut known = lock(&self.known);
        // Refresh the signing key if it may have been replaced.
        let is_same_hash = keys.first().is_some_and(|key| known.0.first() == Some(key));
        let looked_at = known.1.filter(|_| is_same_hash);
        *known = (keys, looked_at);
        Ok(found)
    }
}

fn is_key_id(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The hash of these parts for this principal; only a holder of the key can compute it.
pub(super) fn keyed_hash(key: &SigningKey, whose: &Principal, form: &str, parts: &[&str]) -> String {
    let Principal { scope, channel, shared_conversation: conversation, .. } = whose;
    let mut hasher = blake3::Hasher::new_keyed(&key.key);
    // A shared conversation without a name differs from none.
    let conversation =
        conversation.as_ref().map(|conversation| format!("#{conversation}")).unwrap_or_default();
    for part in
        [form, scope.user(), scope.agent(), channel, &conversation].into_iter().chain(parts.iter().copied())
    {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

pub(super) async fn sign_request_state(
    broker: &Broker,
    host: &Host<Principal>,
    request: &Request,
    ticket: &str,
) -> Result<String, Outcome> {
    let now = (broker.config.clock)();
    let key = broker.signer.current_key(&broker.config.store).await.map_err(|error| unavailable(&error))?;
    let until = now.saturating_add(i64::try_from(STATE_LIFETIME.as_micros()).unwrap_or(i64::MAX));
    let proof = ticket_proof(broker, &key, host, request, ticket, until).ok_or_else(invalid_state)?;
    Ok(written(&key, ticket, until, &proof))
}

pub(super) async fn verify_request_state(
    broker: &Broker,
    host: &Host<Principal>,
    request: &Request,
    state: &str,
) -> Result<String, Outcome> {
    if state.len() > LONGEST {
        return Err(invalid_state());
    }
    let parts: Vec<&str> = state.split('.').collect();
    let [FORM, key, ticket, until, proof] = *parts else { return Err(invalid_state()) };
    let until: i64 = until.parse().map_err(|_| invalid_state())?;
    let key = broker.signer.key(&broker.config.store, key).await.map_err(|error| unavailable(&error))?;
    let key = key.ok_or_else(invalid_state)?;
    let meant = ticket_proof(broker, &key, host, request, ticket, until).ok_or_else(invalid_state)?;
    // Reject other encodings of a valid time or proof: only the canonical one was issued.
    if !is_same_hash(proof, &meant) || state != written(&key, ticket, until, &meant) {
        return Err(invalid_state());
    }
    if until < (broker.config.clock)() {
        let message = "this `requestState` has expired; make the call again without it";
        return Err(failure(code::INVALID_PARAMS, message));
    }
    Ok(ticket.to_owned())
}

/// Signs these parts for this principal; returns the hash and the key id. Only a process on this store can compute it.
pub(crate) async fn sign_parts(
    broker: &Broker,
    whose: &Principal,
    form: &str,
    parts: &[&str],
) -> Result<String, Outcome> {
    let key = broker.signer.current_key(&broker.config.store).await.map_err(|error| unavailable(&error))?;
    Ok(format!("{}.{}", key.id, keyed_hash(&key, whose, form, parts)))
}

/// Verifies a signature of [`sign_parts`] for these parts and this principal.
pub(crate) async fn verify_parts(
    broker: &Broker,
    whose: &Principal,
    form: &str,
    parts: &[&str],
    signature: &str,
) -> Result<bool, Outcome> {
    let Some((key, proof)) = signature.split_once('.') else { return Ok(false) };
    let key = broker.signer.key(&broker.config.store, key).await.map_err(|error| unavailable(&error))?;
    Ok(key.is_some_and(|key| is_same_hash(proof, &keyed_hash(&key, whose, form, parts))))
}

/// The hash of this ticket; `None` if two parsers could read the request differently.
fn ticket_proof(
    broker: &Broker,
    key: &SigningKey,
    host: &Host<Principal>,
    request: &Request,
    ticket: &str,
    until: i64,
) -> Option<String> {
    let (what, until) = (CallSubject::read(request)?, until.to_string());
    // A host without the right to approve must not answer an approval request for one that has it.
    let right = if host.principal.may_approve { "may approve" } else { "" };
    let parts = [
        &*request.method,
        &*what.name,
        &*what.uri,
        &*what.arguments,
        &*broker.config.settings().policy_version,
        &*until,
        ticket,
        right,
        host.principal.token.as_deref().unwrap_or_default(),
    ];
    Some(keyed_hash(key, &host.principal, FORM, &parts))
}

fn written(key: &SigningKey, ticket: &str, until: i64, proof: &str) -> String {
    [FORM, &key.id, ticket, &until.to_string(), proof].join(".")
}

/// Compares two hashes in constant time.
pub(super) fn is_same_hash(one: &str, other: &str) -> bool {
    let (one, other) = (blake3::Hash::from_hex(one).ok(), blake3::Hash::from_hex(other).ok());
    one.zip(other).is_some_and(|(one, other)| one == other)
}

/// The content of a request that is the same each time it is sent.
struct CallSubject {
    name: String,
    uri: String,
    arguments: String,
}

impl CallSubject {
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
        // The items of an array could pass for members.
        if !params.starts_with('{') {
            return None;
        }
        let Params { name, uri, arguments } = serde_json::from_str(params).ok()?;
        let arguments = Arguments::read(arguments.filter(|given| given.get() != "null")).ok()?;
        Some(Self { name, uri, arguments: arguments.canonical().to_owned() })
    }
}

fn invalid_state() -> Outcome {
    let message = "this `requestState` belongs to another call, or the rules have changed since; make the call again without it";
    failure(code::INVALID_PARAMS, message)
}

pub(super) fn unavailable(error: &embody_store::Error) -> Outcome {
    tracing::error!(reason = %error, "the signing keys cannot be read");
    failure(
        code::INTERNAL_ERROR,
        "the state of this call, task or list cannot be read or signed: the store does not answer; try again",
    )
}

#[cfg(test)]
mod tests {
    use embody_store::DatabaseUrl;

    use super::*;

    #[tokio::test]
    async fn unknown_keys_change_nothing() {
        let store = Store::open(DatabaseUrl::Memory).await.unwrap();
        let signer = RequestStateSigner::default();
        let key = signer.current_key(&store).await.unwrap();
        assert_eq!(signer.key(&store, &key.id).await.unwrap().as_ref(), Some(&key));
        let looked_at = lock(&signer.known).1;
        assert!(looked_at.is_some());
        let upper = key.id.to_uppercase();
        for id in ["", "x", &"0".repeat(32), &"g".repeat(32), &"0".repeat(33), &upper[..31]] {
            assert!(signer.key(&store, id).await.unwrap().is_none(), "{id}");
            assert_eq!(lock(&signer.known).1, looked_at, "{id}");
        }
        assert!(is_key_id(&key.id) && !is_key_id(&"g".repeat(32)) && !is_key_id("0"));
    }
}
