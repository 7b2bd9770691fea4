//! Which instructions of the session's bodies are in force. They are pinned like tool definitions: the first text stays in
//! force until the operator accepts another, and a suspicious text is not used before that.

use embody_store::Store;
use embody_store::pins::{PinState, SeenTool};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::Session;
use crate::BrokerConfig;
use crate::instructions::{InForce, InstructionsMode, PIN, ServerInstructions, definition, is_acceptable};
use crate::upstream::{Health, Role, SentInstructions, Upstream};

impl Session {
    /// The bodies' instructions in force; the error is the reason as text.
    pub(crate) async fn server_instructions(
        &self,
        config: &BrokerConfig,
    ) -> Result<ServerInstructions, String> {
        let mut all = ServerInstructions::default();
        for body in &self.bodies {
            let mode = mode(body);
            if mode != InstructionsMode::Drop {
                let name = &body.spec().name;
                let found = in_force(&config.store, body).await.map_err(|error| {
                    format!("the instructions of `{name}` cannot be compared with their pin: {error}")
                })?;
                all.add(name, mode, found);
            }
        }
        Ok(all)
    }

    /// Waits for bodies whose rules belong to the contract and are not known yet, until they are connected or have failed,
    /// and at most as long as a session's first tool list waits.
    pub(super) async fn wait_for_rules(&self, config: &BrokerConfig) {
        let all = async {
            for body in self.bodies.iter().filter(|body| mode(body) == InstructionsMode::Rules) {
                if matches!(in_force(&config.store, body).await, Ok(InForce::Unknown)) {
                    body.wait_settled().await;
                }
            }
        };
        let _ = timeout(config.times.list.saturating_sub(self.opened_at.elapsed()), all).await;
    }

    /// Pins a body's instructions, or notes that they differ from the pin, once the body is connected.
    pub(super) async fn pin_instructions(&self, config: &BrokerConfig, body: &str) {
        let Some(body) = self.bodies.iter().find(|one| one.spec().name == body) else { return };
        if mode(body) == InstructionsMode::Drop || body.health() != Health::Connected {
            return;
        }
        if let Err(error) = in_force(&config.store, body).await {
            let body = &body.spec().name;
            tracing::warn!(session = self.id, body, reason = %error, "its instructions cannot be compared with their pin");
        }
    }
}

/// The part of `runtime_status` about a body's instructions; empty for a mind and for a body whose instructions are dropped.
pub(crate) async fn status(store: &Store, upstream: &Upstream) -> Value {
    let mode = mode(upstream);
    if mode == InstructionsMode::Drop {
        return Value::Null;
    }
    let pin = store.pins().get(&upstream.spec().name, PIN).await.ok().flatten();
    let state = match (&pin, upstream.instructions()) {
        (_, SentInstructions::TooLong(_)) => "too_long",
        (Some(pin), _) if !pin.accepted => "held",
        (Some(pin), _) if pin.seen.is_some() => "changed",
        (Some(_), _) => "pinned",
        (None, SentInstructions::Unknown | SentInstructions::Text(_)) => "unknown",
        (None, SentInstructions::Absent) => return Value::Null,
    };
    let characters = pin.map(|pin| pin.pinned.text.chars().count());
    json!({"mode": mode.name(), "state": state, "characters": characters})
}

fn mode(upstream: &Upstream) -> InstructionsMode {
    match &upstream.spec().role {
        Role::Mind => InstructionsMode::Drop,
        Role::Body(body) => body.instructions,
    }
}

/// Compares the instructions from a body's last connection with its pin.
async fn in_force(store: &Store, body: &Upstream) -> embody_store::Result<InForce> {
    let name = &body.spec().name;
    let text = match body.instructions() {
        SentInstructions::Text(text) => text,
        SentInstructions::TooLong(bytes) => return Ok(InForce::TooLong(bytes)),
        sent => match (store.pins().get(name, PIN).await?, sent) {
            (Some(pin), SentInstructions::Unknown) => return Ok(InForce::of_pin(pin)),
            (None, SentInstructions::Unknown) => return Ok(InForce::Unknown),
            (None, _) => return Ok(InForce::Absent),
            // Sending none after having sent some is a change like any other.
            (Some(_), _) => "".into(),
        },
    };
    let definition = definition(&text);
    let seen = SeenTool {
        body: name.clone(),
        tool: PIN.to_owned(),
        acceptable: is_acceptable(mode(body), &definition.text),
        definition: definition.clone(),
        rehash: |_, _| None,
    };
    Ok(match store.pins().record(seen).await? {
        PinState::First | PinState::Same | PinState::New => InForce::of_text(definition.text),
        PinState::Changed { pinned, .. } => InForce::of_text(pinned.text),
        PinState::Held => InForce::Quarantined,
    })
}
