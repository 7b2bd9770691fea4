//! The mind's handle: its store, its contract source, and which callers have read text that the owner did not write. The
//! caller comes from the connection; nothing that a model writes into a call changes it. An empty text is never a contract.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use embody_prompt::{Layout, NoteKind, PromptInput, assemble, render};
use embody_store::untrusted_reads::EXPOSED;
use embody_store::{Scope, Store};

use crate::ZonedNow;
use crate::error::Result;

const MEMORY: &str = "memory";

/// The mind of one store's users. Handles are cheap to clone; each method is one tool.
#[derive(Clone)]
pub struct Mind {
    pub(crate) store: Store,
    pub(crate) contract: ContractSource,
}

impl Mind {
    pub fn new(store: Store, contract: ContractSource) -> Self {
        Self { store, contract }
    }

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

    /// The origins of untrusted text that the caller has read within a day, as part of a sentence; empty if unknown.
    pub(crate) async fn origins_read(&self, caller: &Caller, now: &ZonedNow) -> Result<String> {
        let known = self.store.untrusted_reads().origins(&caller.scope, &caller.writer, now.micros()).await?;
        let names: Vec<&str> = known.iter().map(|known| &*known.origin).collect();
        Ok(names.join(", "))
    }

    /// Whether the caller has, within a day, read text that the owner did not write.
    pub async fn has_untrusted_read(&self, caller: &Caller, now: &ZonedNow) -> Result<bool> {
        Ok(self.store.untrusted_reads().has_recent(&caller.scope, &caller.writer, now.micros()).await?)
    }

    /// The trust that is stored with what the caller writes now.
    pub(crate) async fn trust_of(&self, caller: &Caller, now: &ZonedNow) -> Result<&'static str> {
        let is_exposed = caller.trust != Trust::Owner && self.has_untrusted_read(caller, now).await?;
        Ok(if is_exposed { EXPOSED } else { caller.trust.name() })
    }

    /// Marks the caller if any of these was written by an agent that had read untrusted text.
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
    /// Whether its observations train the predictor: only the broker's, which sees every call.
    pub trains: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trust {
    Agent,
    /// The terminal or the console, never a model.
    Owner,
}

impl Trust {
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Owner => "owner",
        }
    }
}

const TIME_LIMIT: Duration = Duration::from_secs(10);
/// A longer contract would not fit into any prompt.
const BYTES_LIMIT: usize = 512 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    pub text: String,
    /// Whether it contains the configured persona.
    pub persona_available: bool,
    pub reasons: Vec<String>,
}

impl Contract {
    /// Identity, soul, user and standing instructions; no body, no tools.
    pub fn assemble(input: &PromptInput) -> Self {
        let prompt = assemble(input, &Layout::CONTRACT.with_body(false));
        let missing =
            |kind| matches!(kind, NoteKind::PersonaUnavailable | NoteKind::Cut | NoteKind::OverBudget);
        let notes = prompt.notes.iter().filter(|note| missing(note.kind));
        Self {
            text: render(&prompt).text,
            persona_available: !prompt.notes.iter().any(|note| note.kind == NoteKind::PersonaUnavailable),
            reasons: notes.map(|note| note.message.clone()).collect(),
        }
    }
}

type AssembleFuture = Pin<Box<dyn Future<Output = Result<Contract, String>> + Send>>;

/// Builds the contract from workspace and store: the caller supplies the function that may read them.
#[derive(Clone)]
pub struct ContractSource {
    assemble: Arc<dyn Fn(Scope, ZonedNow) -> AssembleFuture + Send + Sync>,
}

impl ContractSource {
    /// Calls this function each time. Its error is a text that says why there is no contract.
    pub fn new<F, A>(assemble: F) -> Self
    where
        F: Fn(Scope, ZonedNow) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Contract, String>> + Send + 'static,
    {
        Self { assemble: Arc::new(move |scope, now| Box::pin(assemble(scope, now))) }
    }

    pub(crate) async fn contract(&self, scope: &Scope, now: &ZonedNow) -> Result<Contract, String> {
        let assembling = (self.assemble)(scope.clone(), now.clone());
        let contract = tokio::time::timeout(TIME_LIMIT, assembling)
            .await
            .map_err(|_| format!("the contract was not available within {} s", TIME_LIMIT.as_secs()))??;
        if contract.text.trim().is_empty() {
            return Err("the contract is empty".to_owned());
        }
        if contract.text.len() > BYTES_LIMIT {
            return Err(format!("the contract has {} bytes; {BYTES_LIMIT} are allowed", contract.text.len()));
        }
        Ok(contract)
    }
}
