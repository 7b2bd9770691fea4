//! The mind's handle: the store behind it, where its voice comes from, and who has read what the owner did not write.

use embody_store::Store;

use crate::contract::ContractSource;
use crate::error::Result;
use crate::{Caller, Moment, Trust};

const DAY_MICROS: i64 = 24 * 60 * 60 * 1_000_000;
/// A mark is not written again so soon after.
const FRESH_MICROS: i64 = 60 * 1_000_000;

/// The mind of one store's users. Handles are cheap to clone; each method is one tool.
#[derive(Clone, Debug)]
pub struct Mind {
    pub(crate) store: Store,
    pub(crate) contract: ContractSource,
}

impl Mind {
    /// A mind that keeps its state in this store and has its voice from there.
    #[must_use]
    pub fn new(store: Store, contract: ContractSource) -> Self {
        Self { store, contract }
    }

    /// Where its state is.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Remembers for a day that the caller has read what somebody other than the owner wrote. The mark is the writer's, not
    /// the connection's. The mind's own tools do it by themselves; whoever shows a model other content calls this.
    pub async fn mark_exposed(&self, caller: &Caller, now: &Moment) -> Result<()> {
        let fresh = now.micros().saturating_sub(FRESH_MICROS);
        let marked = self.store.exposed_at(&caller.scope, &caller.writer).await?;
        if marked.is_none_or(|at| at < fresh) {
            self.store.mark_exposed(&caller.scope, &caller.writer, now.micros()).await?;
        }
        Ok(())
    }

    /// Whether the caller has, within a day, read what somebody other than the owner wrote.
    pub async fn is_exposed(&self, caller: &Caller, now: &Moment) -> Result<bool> {
        let marked = self.store.exposed_at(&caller.scope, &caller.writer).await?;
        Ok(marked.is_some_and(|at| at > now.micros().saturating_sub(DAY_MICROS)))
    }

    /// Marks the caller if any of these was not written by the owner's own hand.
    pub(crate) async fn note_trust<'a>(
        &self,
        caller: &Caller,
        trusts: impl IntoIterator<Item = &'a str>,
        now: &Moment,
    ) -> Result<()> {
        if trusts.into_iter().any(|trust| trust != Trust::Owner.name()) {
            self.mark_exposed(caller, now).await?;
        }
        Ok(())
    }
}
