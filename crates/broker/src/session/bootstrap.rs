//! Requests the mind's packet once per session, however many calls arrive. An unavailable mind does not block reads: the session
//! continues without a packet, reports it, and retries with the next call. Parses only the members of the packet that the broker
//! needs, and keeps all of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use embody_store::Lease;
use embody_store::sessions::{Bootstrap, Packet};
use embody_wire::Outcome;
use embody_wire::upstream::Route;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::contract::Contract;
use super::{Session, lock};
use crate::BrokerConfig;
use crate::pipeline::respond::raw;
use crate::pipeline::send::call_mind;
use crate::upstream::Health;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a call waits for a session's first packet before it continues without one.
const FIRST_CALL_WAIT: Duration = Duration::from_secs(3);
/// How long another process that requests the packet for the same session may take.
const LEASE_DURATION: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
pub(crate) struct BootstrapState {
    done: OnceLock<Arc<BootstrapData>>,
    attempt: watch::Sender<Attempt>,
    /// Whether a call has already waited for the packet.
    has_waited: AtomicBool,
    /// The contract with newer rules than those in the packet.
    renewed: Mutex<Option<Contract>>,
}

#[derive(Debug, Default)]
struct Attempt {
    is_running: bool,
    reason: Option<PacketError>,
}

#[derive(Debug)]
pub(crate) struct BootstrapData {
    pub(crate) packet: MindPacket,
    pub(crate) contract: Contract,
    pub(crate) reasons: Vec<String>,
}

impl Session {
    pub(crate) fn bootstrap_data(&self) -> Option<Arc<BootstrapData>> {
        self.bootstrap_state.done.get().cloned()
    }

    pub(crate) fn bootstrap_error(&self) -> Option<String> {
        self.bootstrap_state.attempt.borrow().reason.as_ref().map(|none| none.reason.clone())
    }

    /// Whether no packet has arrived yet and the mind may be asked. Checked with every call.
    pub(crate) fn needs_bootstrap(&self) -> bool {
        self.bootstrap_data().is_none() && self.mind.health() != Health::Unavailable
    }

    /// Runs before a proxied tool. The first call and every write wait for the packet; later reads do not wait for a slow or
    /// unavailable mind.
    pub(crate) async fn bootstrap_before_call(self: &Arc<Self>, config: &Arc<BrokerConfig>, is_read: bool) {
        let waits = !self.bootstrap_state.has_waited.swap(true, Ordering::AcqRel) || !is_read;
        let booting = self.bootstrap(config, None);
        let limit = if waits { FIRST_CALL_WAIT } else { Duration::ZERO };
        let _ = timeout(limit, booting).await;
    }

    /// The contract in force; without a packet, only the body rules. The error is the reason as text.
    ///
    /// A host keeps the contract that it was shown for the whole session. An embody agent gets a new prompt with the current
    /// rules for each turn; if they differ from the cached ones, the contract is read again.
    pub(crate) async fn contract(&self, config: &BrokerConfig) -> Result<Contract, String> {
        // In a shared conversation the mind's part is not shown, and the contract is the rules alone.
        if self.host.principal.shared_conversation.is_some() {
            return self.build_contract(config, None).await;
        }
        let is_host = self.prompt().is_none();
        // A body whose rules were missing may be connected by now.
        let holds = |held: &Contract| !held.lacks_rules() && (is_host || self.is_prompted_with(held));
        if let Some(held) = self.current_contract().filter(holds) {
            return Ok(held);
        }
        let Some(booted) = self.bootstrap_data() else { return self.build_contract(config, None).await };
        let contract = self.build_contract(config, booted.packet.contract()).await?;
        *lock(&self.bootstrap_state.renewed) = Some(contract.clone());
        Ok(contract)
    }

    async fn build_contract(&self, config: &BrokerConfig, mind: Option<&str>) -> Result<Contract, String> {
        let rules = self.rules(config).await?;
        let bodies = self.server_instructions(config).await?;
        Ok(Contract::new(&rules, &bodies, mind))
    }

    async fn rules(&self, config: &BrokerConfig) -> Result<String, String> {
        let rules = config.rules.of(&self.scope).await;
        rules.map_err(|reason| format!("the rules file cannot be read: {reason}"))
    }

    pub(crate) fn current_contract(&self) -> Option<Contract> {
        let booted = self.bootstrap_data()?;
        Some(lock(&self.bootstrap_state.renewed).clone().unwrap_or_else(|| booted.contract.clone()))
    }

    /// Whether the model behind this session is prompted with this contract.
    pub(crate) fn is_prompted_with(&self, contract: &Contract) -> bool {
        self.prompt().is_some_and(|prompt| contract.is_in(&prompt, self.is_mind_embedded()))
    }

    /// Whether the mind is part of this program.
    pub(crate) fn is_mind_embedded(&self) -> bool {
        matches!(self.mind.spec().route, Route::InProcess(_))
    }

    /// Whether some contract is known to have reached the model.
    pub(crate) fn was_delivered(&self) -> bool {
        // In a shared conversation the contract is the rules alone.
        if self.host.principal.shared_conversation.is_some() {
            return self.prompt().is_some();
        }
        let is_prompted = || match self.current_contract() {
            Some(contract) => self.is_prompted_with(&contract),
            // Without a packet the prompt cannot be compared with the contract.
            None => self.prompt().is_some(),
        };
        self.delivery.has_happened() || is_prompted()
    }

    /// Asks the mind, or returns its earlier answer. The request continues when a caller stops waiting.
    pub(crate) async fn bootstrap(
        self: &Arc<Self>,
        config: &Arc<BrokerConfig>,
        session_id: Option<&str>,
    ) -> Result<Arc<BootstrapData>, PacketError> {
        if let Some(booted) = self.bootstrap_data() {
            return Ok(booted);
        }
        let mut attempt = self.bootstrap_state.attempt.subscribe();
        let begins = self.bootstrap_state.attempt.send_if_modified(|attempt| {
            let begins = !attempt.is_running;
            attempt.is_running = true;
            begins
        });
        if begins {
            let (session, config) = (Arc::clone(self), Arc::clone(config));
            let session_id = session_id.map(str::to_owned);
            tokio::spawn(async move {
                // Whether it succeeds or fails, the next caller may try.
                let ended = AttemptGuard(&session.bootstrap_state.attempt);
                let reason = session.run_bootstrap(&config, session_id.as_deref()).await.err();
                config.meter.count_bootstrap(reason.is_none());
                ended.0.send_modify(|attempt| attempt.reason = reason);
            });
        }
        let ended = attempt.wait_for(|attempt| !attempt.is_running).await;
        let reason = ended.ok().and_then(|attempt| attempt.reason.clone());
        self.bootstrap_data()
            .ok_or_else(|| reason.unwrap_or_else(|| "the mind was not asked".to_owned().into()))
    }

    async fn run_bootstrap(
        &self,
        config: &BrokerConfig,
        session_id: Option<&str>,
    ) -> Result<(), PacketError> {
        let booted = async {
            let (packet, ()) =
                tokio::join!(self.fetch_packet(config, session_id), self.wait_for_rules(config));
            let packet = packet?;
            let contract = self.build_contract(config, packet.contract()).await?;
            Ok(BootstrapData { reasons: packet.reasons(), packet, contract })
        };
        let booted: Result<BootstrapData, PacketError> = booted.await;
        match booted {
            Ok(booted) => {
                let _ = self.bootstrap_state.done.set(Arc::new(booted));
                Ok(())
            }
            Err(none) => {
                tracing::warn!(session = self.id, reason = none.reason, "the session is not bootstrapped");
                Err(none)
            }
        }
    }

    /// Reads the packet from the store if another process has already requested it.
    async fn fetch_packet(
        &self,
        config: &BrokerConfig,
        session_id: Option<&str>,
    ) -> Result<MindPacket, PacketError> {
        let lease = Lease { owner: format!("broker {}", self.id), duration: LEASE_DURATION };
        let (store, user) = (&config.store, self.scope.user());
        let give_up = Instant::now() + LEASE_DURATION;
        loop {
            match store.sessions().bootstrap(user, &self.id, &lease).await {
                Ok(Bootstrap::Done(packet)) => {
                    let members = serde_json::from_str(&packet.text).map_err(|error| error.to_string())?;
                    return Ok(MindPacket { members });
                }
                Ok(Bootstrap::Claimed(claim)) => {
                    let asked = self.request_packet(session_id.unwrap_or(&self.id)).await;
                    let kept = match &asked {
                        Ok(packet) => {
                            let text = Value::Object(packet.members.clone()).to_string();
                            store
                                .sessions()
                                .set_packet(&claim, Packet { text, reasons: packet.reasons() })
                                .await
                        }
                        Err(_) => store.sessions().release_bootstrap(&claim).await,
                    };
                    if let Err(error) = kept {
                        tracing::warn!(session = self.id, reason = %error, "the packet of the mind cannot be stored");
                    }
                    return asked;
                }
                Ok(Bootstrap::Busy) if Instant::now() < give_up => sleep(POLL_INTERVAL).await,
                Ok(Bootstrap::Busy) => {
                    return Err("another process has waited for the mind for too long".to_owned().into());
                }
                // A failing store does not block the session: this process keeps the packet in memory.
                Ok(Bootstrap::Missing) => return self.request_packet(session_id.unwrap_or(&self.id)).await,
                Err(error) => {
                    tracing::warn!(session = self.id, reason = %error, "the store does not know the session");
                    return self.request_packet(session_id.unwrap_or(&self.id)).await;
                }
            }
        }
    }

    async fn request_packet(&self, session: &str) -> Result<MindPacket, PacketError> {
        let link = self.mind.lease().await.map_err(|away| away.to_string())?;
        self.mind.wait_listed().await;
        let call = async |tool: &str, arguments: &RawValue| {
            call_mind(&link, tool, arguments, None, ANSWER_TIMEOUT).await
        };
        let has = |name: &str| self.mind.tools().iter().any(|tool| tool.name == name);
        // Ask a mind whose tool list is unknown; skip one that is known not to have the tool.
        if has("bootstrap_session") || self.mind.tools().is_empty() {
            let arguments = raw(&json!({"session_id": session}));
            return MindPacket::read(call("bootstrap_session", &arguments).await?);
        }
        let empty = raw(&json!({}));
        let prompt = call("get_system_prompt", &empty).await.ok().and_then(text_of);
        let object_of = async |tool: &str| object(call(tool, &empty).await.ok()?).ok().map(Value::Object);
        let context = object_of("context").await.unwrap_or(Value::Null);
        let files = object_of("list_memory_files").await.unwrap_or(Value::Null);
        if prompt.is_none() && context.is_null() && files.is_null() {
            return Err("the mind has neither `bootstrap_session` nor `get_system_prompt`, `context`, `list_memory_files`".to_owned().into());
        }
        Ok(MindPacket::assemble(session, prompt, context, files))
    }
}

/// Signals the end of an attempt, also when the attempt is dropped.
struct AttemptGuard<'a>(&'a watch::Sender<Attempt>);

impl Drop for AttemptGuard<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|attempt| attempt.is_running = false);
    }
}

/// The persona text in a result: the structured form, or the text.
fn text_of(outcome: embody_wire::Outcome) -> Option<String> {
    let embody_wire::Outcome::Result(result) = outcome else { return None };
    let result: Value = serde_json::from_str(result.get()).ok()?;
    if result.get("isError").and_then(Value::as_bool) == Some(true) {
        return None;
    }
    let text = result.pointer("/content/0/text").and_then(Value::as_str).unwrap_or_default();
    let structured = result.get("structuredContent").and_then(Value::as_object);
    let inner = structured.and_then(|members| {
        ["system_prompt", "prompt", "text", "result"].iter().find_map(|key| members.get(*key)?.as_str())
    });
    Some(inner.unwrap_or(text).to_owned()).filter(|text| !text.trim().is_empty())
}

const REASONS_MAX: usize = 32;
const REASON_CHARS: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PacketError {
    pub(crate) reason: String,
    /// Whether the mind returned something that is not an object.
    pub(crate) is_malformed: bool,
}

impl From<String> for PacketError {
    fn from(reason: String) -> Self {
        Self { reason, is_malformed: false }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MindPacket {
    pub(crate) members: Map<String, Value>,
}

/// Extracts the object from a tool result: structured content, or JSON in the text.
pub(crate) fn object(outcome: Outcome) -> Result<Map<String, Value>, String> {
    let result = match outcome {
        Outcome::Result(result) => result,
        Outcome::Error(error) => return Err(printable(&format!("the mind answers with an error: {error}"))),
    };
    let result: Value = serde_json::from_str(result.get())
        .map_err(|error| format!("the mind's answer cannot be read: {error}"))?;
    let text = || result.pointer("/content/0/text").and_then(Value::as_str).unwrap_or_default();
    if result.get("isError").and_then(Value::as_bool) == Some(true) {
        return Err(printable(&format!("the mind says: {}", text())));
    }
    let found = match result.get("structuredContent") {
        Some(value) => value.clone(),
        None => serde_json::from_str(text()).unwrap_or(Value::Null),
    };
    match found {
        Value::Object(members) => Ok(members),
        // A server that wraps its return value.
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(members)) => Ok(members),
            _ => Err("the mind's answer is a string and not an object".to_owned()),
        },
        other => Err(format!("the mind's answer is {} and not an object", kind(&other))),
    }
}

fn is_success(outcome: &Outcome) -> bool {
    let Outcome::Result(result) = outcome else { return false };
    let result: Result<Value, _> = serde_json::from_str(result.get());
    result.map_or(true, |result| result.get("isError").and_then(Value::as_bool) != Some(true))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

impl MindPacket {
    /// Parses the result of `bootstrap_session`.
    pub(crate) fn read(outcome: Outcome) -> Result<Self, PacketError> {
        let is_malformed = is_success(&outcome);
        let mut members = object(outcome).map_err(|reason| PacketError { reason, is_malformed })?;
        // Some servers wrap their return value in `result`.
        if let (1, Some(Value::Object(inner))) = (members.len(), members.get("result")) {
            members = inner.clone();
        }
        Ok(Self { members })
    }

    /// Builds a packet for a mind without `bootstrap_session`.
    fn assemble(session: &str, prompt: Option<String>, context: Value, files: Value) -> Self {
        let is_there = prompt.is_some();
        let reasons: Vec<&str> =
            if is_there { Vec::new() } else { vec!["the mind returned no persona text"] };
        let packet = json!({
            "schema_version": 1,
            "required_first_call": "runtime_bootstrap",
            "session_id": session,
            "mind_contract": prompt.unwrap_or_default(),
            "mind_contract_available": is_there,
            "context": context,
            "memory_files": files,
            "degraded_mode": {"persona_available": is_there, "mind_contract_available": is_there, "reasons": reasons},
        });
        match packet {
            Value::Object(members) => Self { members },
            _ => Self { members: Map::new() },
        }
    }

    pub(crate) fn contract(&self) -> Option<&str> {
        let text = self.members.get("mind_contract").and_then(Value::as_str).unwrap_or_default();
        (self.flag("mind_contract_available") != Some(false) && !text.trim().is_empty()).then_some(text)
    }

    pub(crate) fn reasons(&self) -> Vec<String> {
        let listed =
            self.members.get("degraded_mode").and_then(|mode| mode.get("reasons")).and_then(Value::as_array);
        let mut reasons: Vec<String> =
            listed.into_iter().flatten().filter_map(Value::as_str).take(REASONS_MAX).map(printable).collect();
        let is_away =
            [self.flag("persona_available"), self.flag("mind_contract_available")].contains(&Some(false));
        if reasons.is_empty() && (is_away || self.contract().is_none()) {
            reasons.push("the mind returned no contract".to_owned());
        }
        reasons
    }

    /// A flag in the packet or in its `degraded_mode`.
    fn flag(&self, name: &str) -> Option<bool> {
        let inner = self.members.get("degraded_mode").and_then(|mode| mode.get(name));
        self.members.get(name).or(inner).and_then(Value::as_bool)
    }
}

fn printable(text: &str) -> String {
    embody_text::without_control(text, REASON_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::respond::raw;

    fn read(result: &Value) -> Result<MindPacket, PacketError> {
        MindPacket::read(Outcome::Result(raw(result)))
    }

    // spec: N-03
    #[test]
    fn a_packet_may_come_as_data_or_as_text() {
        let packet = json!({"mind_contract": "be kind", "schema_version": 1, "x": [1]});
        let text = packet.to_string();
        for result in [
            json!({"content": [], "structuredContent": packet}),
            json!({"content": [{"type": "text", "text": text}]}),
            json!({"content": [], "structuredContent": {"result": packet}}),
            json!({"content": [], "structuredContent": text}),
        ] {
            let read = read(&result).unwrap();
            assert_eq!(read.contract(), Some("be kind"));
            assert_eq!(read.members["x"], json!([1]));
            assert!(read.reasons().is_empty());
        }
    }

    // spec: N-03
    #[test]
    fn what_is_no_object_is_a_clear_error() {
        for (content, word) in [
            (json!([1]), "a list"),
            (json!(7), "a number"),
            (json!("x"), "a string"),
            (json!(null), "nothing"),
        ] {
            let error = read(&json!({"content": [], "structuredContent": content})).unwrap_err();
            assert!(error.is_malformed && error.reason.contains(word), "{error:?}");
        }
        let failed =
            read(&json!({"content": [{"type": "text", "text": "gone"}], "isError": true})).unwrap_err();
        assert!(!failed.is_malformed && failed.reason.contains("gone"), "{failed:?}");
        let error = MindPacket::read(Outcome::Error(raw(&json!({"code": 1, "message": "no"})))).unwrap_err();
        assert!(!error.is_malformed && error.reason.contains("no"), "{error:?}");
    }

    // spec: N-03
    #[test]
    fn a_degraded_packet_gives_its_reasons() {
        let packet = |value: Value| read(&json!({"structuredContent": value})).unwrap();
        let old = packet(
            json!({"mind_contract": "x", "degraded_mode": {"persona_available": false, "reasons": ["no soul"]}}),
        );
        assert_eq!(old.reasons(), ["no soul"]);
        let new = packet(json!({"mind_contract": "", "mind_contract_available": false}));
        assert_eq!((new.contract(), new.reasons().len()), (None, 1));
        let inner =
            packet(json!({"mind_contract": "x", "degraded_mode": {"mind_contract_available": false}}));
        assert_eq!((inner.contract(), inner.reasons().len()), (None, 1));
    }
}
