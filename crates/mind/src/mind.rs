//! The mind's handle: the store behind it, where its voice comes from, and what it knows of the sessions it talks to.

use std::sync::Arc;

use embody_store::Store;

use crate::contract::ContractSource;
use crate::exposure::Exposure;
use crate::{Caller, Trust};

/// The mind of one store's users. Handles are cheap to clone; each method is one tool.
#[derive(Clone, Debug)]
pub struct Mind {
    pub(crate) store: Store,
    pub(crate) contract: ContractSource,
    exposure: Arc<Exposure>,
}

impl Mind {
    /// A mind that keeps its state in this store and has its voice from there.
    #[must_use]
    pub fn new(store: Store, contract: ContractSource) -> Self {
        Self { store, contract, exposure: Arc::new(Exposure::default()) }
    }

    /// Where its state is.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Remembers, while the process lives, that the caller's session has read what somebody other than the owner wrote.
    /// Reading memories does it by itself; whoever shows a session other content calls this.
    pub fn mark_exposed(&self, caller: &Caller) {
        self.exposure.mark(caller);
    }

    /// Whether the caller's session has read what somebody other than the owner wrote.
    #[must_use]
    pub fn is_exposed(&self, caller: &Caller) -> bool {
        self.exposure.is_marked(caller)
    }

    /// Marks the session if any of these was not written by the owner's own hand.
    pub(crate) fn note_trust<'a>(&self, caller: &Caller, trusts: impl IntoIterator<Item = &'a str>) {
        if trusts.into_iter().any(|trust| trust != Trust::Owner.name()) {
            self.mark_exposed(caller);
        }
    }
}
