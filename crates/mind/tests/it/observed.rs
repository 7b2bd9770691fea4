//! A mind to observe with: a store in memory, a caller, moments.

use std::sync::atomic::{AtomicU64, Ordering};

use embody_mind::{Caller, Observation, ObservedCall, Trust, ZonedNow, observe};
use embody_store::instructions::InstructionsChange;
use embody_store::memories::{NewMemory, SaveResult};
use embody_store::{DatabaseUrl, Scope, Store};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::Value;

/// Somebody's mind.
pub(crate) struct Mind {
    pub(crate) store: Store,
    pub(crate) caller: Caller,
    pub(crate) zone: TimeZone,
    told: AtomicU64,
}

impl Mind {
    /// Of Ann, in Berlin, with the broker's connection.
    pub(crate) async fn new() -> Self {
        let store = Store::open(DatabaseUrl::Memory).await.unwrap();
        let caller = Caller {
            scope: Scope::new("ann", "assistant").unwrap(),
            writer: "broker".into(),
            trust: Trust::Agent,
            session: Some("s".into()),
            trains: true,
        };
        Self { store, caller, zone: TimeZone::get("Europe/Berlin").unwrap(), told: AtomicU64::new(0) }
    }

    /// Looks at a call before it happens.
    pub(crate) async fn before(&self, tool: &str, args: &Value, at: &str) -> Observation {
        let call = ObservedCall { tool_name: tool, args, result: None, key: None };
        observe(&self.store, &self.caller, call, &self.moment(at)).await.unwrap()
    }

    /// And after it.
    pub(crate) async fn after(&self, tool: &str, args: &Value, result: &Value, at: &str) -> Observation {
        let key = self.told.fetch_add(1, Ordering::Relaxed).to_string();
        self.told(tool, args, Some(&key), result, at).await
    }

    /// The same under a key, or none.
    pub(crate) async fn told(
        &self,
        tool: &str,
        args: &Value,
        key: Option<&str>,
        result: &Value,
        at: &str,
    ) -> Observation {
        let call = ObservedCall { tool_name: tool, args, result: Some(result), key };
        observe(&self.store, &self.caller, call, &self.moment(at)).await.unwrap()
    }

    pub(crate) async fn instruct(&self, text: &str) {
        let change = InstructionsChange { text: text.into(), writer: "ann".into(), expected_version: None };
        self.store.instructions().set(&self.caller.scope, change).await.unwrap();
    }

    /// Something that was said at a time.
    pub(crate) async fn remember(&self, text: &str, at: &str) -> SaveResult {
        let said = NewMemory {
            occurred_at: Some(self.moment(at).micros()),
            ..NewMemory::note(text, "ann", "owner")
        };
        self.store.memories().save(&self.caller.scope, said).await.unwrap()
    }

    /// Forgets every memory.
    pub(crate) async fn forget(&self, id: &str) {
        self.store.memories().forget(&self.caller.scope, id).await.unwrap();
    }

    pub(crate) fn moment(&self, at: &str) -> ZonedNow {
        let local: DateTime = at.parse().unwrap();
        ZonedNow::new(local.to_zoned(self.zone.clone()).unwrap().timestamp(), self.zone.clone())
    }
}

/// What the broker makes of it.
pub(crate) fn is_held(observation: &Observation) -> bool {
    observation.prediction_error > 0.7 || !observation.cautionary_flags.is_empty()
}
