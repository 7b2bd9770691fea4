//! The mind's handle: its store, its contract source, and which callers have read text that the owner did not write. Who
//! calls is what the connection says; nothing that a model writes into a call changes it.

use embody_store::untrusted_reads::EXPOSED;
use embody_store::{Scope, Store};

use crate::ZonedNow;
use crate::contract::ContractSource;
use crate::error::Result;

const MEMORY: &str = "memory";

/// The mind of one store's users. Handles are cheap to clone; each method is one tool.
#[derive(Clone, Debug)]
pub struct Mind {
    pub(crate) store: Store,
    pub(crate) contract: ContractSource,
}

impl Mind {
    #[must_use]
    pub fn new(store: Store, contract: ContractSource) -> Self {
        Self { store, contract }
    }

    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Records for a day that the caller has read text of this origin, which the owner did not write. The mark is the writer's,
    /// not the connection's. The broker marks what it forwards; the mind marks what its own tools return.
    pub async fn record_untrusted_read(&self, caller: &Caller, origin: &str, now: &ZonedNow) -> Result<()> {
        Ok(self
            .store
            .untrusted_reads()
            .record(&caller.scope, &caller.writer, &[origin], now.micros())
            .await?)
    }

    /// Where what the caller has read within a day came from, as a part of a sentence; empty if that is not known.
    pub(crate) async fn origins_read(&self, caller: &Caller, now: &ZonedNow) -> Result<String> {
        let known = self.store.untrusted_reads().origins(&caller.scope, &caller.writer, now.micros()).await?;
        let names: Vec<&str> = known.iter().map(|known| &*known.origin).collect();
        Ok(names.join(", "))
    }

    /// Whether the caller has, within a day, read text that the owner did not write.
    pub async fn has_untrusted_read(&self, caller: &Caller, now: &ZonedNow) -> Result<bool> {
        Ok(self.store.untrusted_reads().has_recent(&caller.scope, &caller.writer, now.micros()).await?)
    }

    /// How far what the caller writes now is trusted, as it is stored.
    pub(crate) async fn trust_of(&self, caller: &Caller, now: &ZonedNow) -> Result<&'static str> {
        let is_exposed = caller.trust != Trust::Owner && self.has_untrusted_read(caller, now).await?;
        Ok(if is_exposed { EXPOSED } else { caller.trust.name() })
    }

    /// Marks the caller if any of these was written after its writer had read text that the owner did not write.
    pub(crate) async fn note_trust<'a>(
        &self,
        caller: &Caller,
        trusts: impl IntoIterator<Item = &'a str>,
        now: &ZonedNow,
    ) -> Result<()> {
        if trusts.into_iter().any(|trust| trust == EXPOSED) {
            self.record_untrusted_read(caller, MEMORY, now).await?;
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
pub struct Caller {
    pub scope: Scope,
    pub writer: String,
    pub trust: Trust,
    pub session: Option<String>,
    /// Whether what it observes teaches the predictor: true for the broker alone, which sees every call.
    pub trains: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trust {
    Agent,
    /// The owner's own hand: the terminal or the console, never a model.
    Owner,
}

impl Trust {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Owner => "owner",
        }
    }
}
