//! The mind's contract: who the agent is and how it speaks, as one text. Owns how it is made of what a workspace holds, and
//! the way in which somebody else provides it; reads nothing itself and never passes off an empty text as a contract.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use embody_prompt::{Layout, NoteKind, PromptInput, assemble, render};
use embody_store::Scope;

use crate::ZonedNow;

/// However it is made, it is there by then or not at all.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// A longer one would not fit into any prompt.
const BYTES_LIMIT: usize = 512 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    pub text: String,
    /// Whether the persona that was configured is in it.
    pub persona_available: bool,
    pub reasons: Vec<String>,
}

impl Contract {
    /// The contract that these values make: identity, soul, user and standing instructions; no body, no tools.
    #[must_use]
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

/// Where the contract comes from: the workspace and the store, read by somebody who may read them.
#[derive(Clone)]
pub struct ContractSource {
    assemble: Arc<dyn Fn(Scope, ZonedNow) -> AssembleFuture + Send + Sync>,
}

impl ContractSource {
    /// Asks this function each time. Its error says in plain words why there is no contract.
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
            .map_err(|_| format!("the contract was not there within {} seconds", TIME_LIMIT.as_secs()))??;
        if contract.text.trim().is_empty() {
            return Err("the contract is empty".to_owned());
        }
        if contract.text.len() > BYTES_LIMIT {
            return Err(format!("the contract has {} bytes; {BYTES_LIMIT} are allowed", contract.text.len()));
        }
        Ok(contract)
    }
}

impl fmt::Debug for ContractSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContractSource")
    }
}
