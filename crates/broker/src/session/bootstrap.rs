//! Requests the mind's packet once per session, however many calls arrive. An unavailable mind does not block reads: the
//! session continues without a packet, reports it, and retries with the next call.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use embody_store::{Bootstrap, Lease, Packet};
use embody_wire::upstream::Route;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::contract::Contract;
use super::packet::{MindPacket, PacketError, object};
use super::{Session, lock};
use crate::BrokerConfig;
use crate::pipeline::respond::raw;
use crate::upstream::Health;

/// Limit for one response of the mind.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a call waits for a session's first packet before it continues without one.
const FIRST_CALL_WAIT: Duration = Duration::from_secs(3);
/// How long another process that requests the packet for the same session may take.
const LEASE: Duration = Duration::from_secs(30);
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
    /// The packet, if it has arrived.
    pub(crate) fn bootstrap_data(&self) -> Option<Arc<BootstrapData>> {
        self.bootstrap_state.done.get().cloned()
    }

    /// Why the last attempt returned no packet.
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
        let patience = if waits { FIRST_CALL_WAIT } else { Duration::ZERO };
        let _ = timeout(patience, booting).await;
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
        let is_host = self.host.principal.prompt().is_none();
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
        rules.map_err(|reason| format!("the body's rules cannot be read: {reason}"))
    }

    /// The last contract, if a packet exists.
    pub(crate) fn current_contract(&self) -> Option<Contract> {
        let booted = self.bootstrap_data()?;
        Some(lock(&self.bootstrap_state.renewed).clone().unwrap_or_else(|| booted.contract.clone()))
    }

    /// Whether the model behind this session is prompted with this contract.
    pub(crate) fn is_prompted_with(&self, contract: &Contract) -> bool {
        self.host.principal.prompt().is_some_and(|prompt| contract.is_in(&prompt, self.is_mind_embedded()))
    }

    /// Whether the mind is part of this program.
    pub(crate) fn is_mind_embedded(&self) -> bool {
        matches!(self.mind.spec().route, Route::InProcess(_))
    }

    /// Whether some contract is known to have reached the model.
    pub(crate) fn was_delivered(&self) -> bool {
        // In a shared conversation the contract is the rules alone.
        if self.host.principal.shared_conversation.is_some() {
            return self.host.principal.prompt().is_some();
        }
        let is_prompted = || match self.current_contract() {
            Some(contract) => self.is_prompted_with(&contract),
            // Without a packet the prompt cannot be compared with the contract.
            None => self.host.principal.prompt().is_some(),
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
        let lease = Lease { owner: format!("broker {}", self.id), duration: LEASE };
        let (store, user) = (&config.store, self.scope.user());
        let give_up = Instant::now() + LEASE;
        loop {
            match store.bootstrap(user, &self.id, &lease).await {
                Ok(Bootstrap::Done(packet)) => {
                    let members = serde_json::from_str(&packet.text).map_err(|error| error.to_string())?;
                    return Ok(MindPacket { members });
                }
                Ok(Bootstrap::Claimed(claim)) => {
                    let asked = self.request_packet(session_id.unwrap_or(&self.id)).await;
                    let kept = match &asked {
                        Ok(packet) => {
                            let text = Value::Object(packet.members.clone()).to_string();
                            store.set_packet(&claim, Packet { text, reasons: packet.reasons() }).await
                        }
                        Err(_) => store.return_bootstrap(&claim).await,
                    };
                    if let Err(error) = kept {
                        tracing::warn!(session = self.id, reason = %error, "the packet cannot be kept");
                    }
                    return asked;
                }
                Ok(Bootstrap::Busy) if Instant::now() < give_up => sleep(POLL_INTERVAL).await,
                Ok(Bootstrap::Busy) => {
                    return Err("another process is asking the mind for too long".to_owned().into());
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
        let has = |name: &str| self.mind.tools().iter().any(|tool| tool.name == name);
        // Ask a mind whose tool list is unknown; skip one that is known not to have the tool.
        if has("bootstrap_session") || self.mind.tools().is_empty() {
            let arguments = raw(&json!({"session_id": session}));
            let outcome =
                crate::pipeline::send::call_mind(&link, "bootstrap_session", &arguments, ANSWER_TIMEOUT)
                    .await?;
            return MindPacket::read(outcome);
        }
        let empty = raw(&json!({}));
        let prompt = crate::pipeline::send::call_mind(&link, "get_system_prompt", &empty, ANSWER_TIMEOUT)
            .await
            .ok()
            .and_then(text_of);
        let object_of = async |tool: &str| {
            let outcome = crate::pipeline::send::call_mind(&link, tool, &empty, ANSWER_TIMEOUT).await.ok()?;
            object(outcome).ok().map(Value::Object)
        };
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
