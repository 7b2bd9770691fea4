//! The protocol era that a server was found to use, so that only an unknown server is probed with `server/discover`:
//! some session-era servers exit when they read it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// The era of one server, shared by all connections to it. It may be backed by storage that outlives the process.
#[derive(Clone, Default)]
pub struct EraCache(Arc<Inner>);

#[derive(Default)]
struct Inner {
    era: AtomicU8,
    storage: Option<Storage>,
}

type Loading = Pin<Box<dyn Future<Output = bool> + Send>>;
type Saving = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Storage {
    load: Box<dyn Fn() -> Loading + Send + Sync>,
    save: Box<dyn Fn(bool) -> Saving + Send + Sync>,
    loaded: tokio::sync::OnceCell<()>,
    /// Whether the session era is stored, as far as this process knows.
    is_saved: AtomicBool,
}

const UNKNOWN: u8 = 0;
const SESSIONS: u8 = 1;
const STATELESS: u8 = 2;
const ALWAYS_SESSIONS: u8 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KnownEra {
    Unknown,
    Sessions,
    Stateless,
}

impl EraCache {
    /// A server that is always opened with `initialize`.
    #[must_use]
    pub fn sessions() -> Self {
        Self(Arc::new(Inner { era: AtomicU8::new(ALWAYS_SESSIONS), storage: None }))
    }

    /// A cache backed by storage. `load` returns whether the server is known to use the session era; `save` stores that
    /// it does, or (`false`) that the stored era was wrong. Both log their own failures.
    pub fn stored<L, S>(
        load: impl Fn() -> L + Send + Sync + 'static,
        save: impl Fn(bool) -> S + Send + Sync + 'static,
    ) -> Self
    where
        L: Future<Output = bool> + Send + 'static,
        S: Future<Output = ()> + Send + 'static,
    {
        let storage = Storage {
            load: Box::new(move || Box::pin(load())),
            save: Box::new(move |is_session_era| Box::pin(save(is_session_era))),
            loaded: tokio::sync::OnceCell::new(),
            is_saved: AtomicBool::default(),
        };
        Self(Arc::new(Inner { era: AtomicU8::default(), storage: Some(storage) }))
    }

    pub(super) async fn get(&self) -> KnownEra {
        if let Some(Storage { load, loaded, is_saved, .. }) = &self.0.storage {
            loaded
                .get_or_init(|| async {
                    if load().await {
                        is_saved.store(true, Ordering::Release);
                        self.set(KnownEra::Sessions);
                    }
                })
                .await;
        }
        match self.0.era.load(Ordering::Acquire) {
            SESSIONS | ALWAYS_SESSIONS => KnownEra::Sessions,
            STATELESS => KnownEra::Stateless,
            _ => KnownEra::Unknown,
        }
    }

    pub(super) fn set(&self, era: KnownEra) {
        let era = match era {
            KnownEra::Unknown => UNKNOWN,
            KnownEra::Sessions => SESSIONS,
            KnownEra::Stateless => STATELESS,
        };
        let keep_always = |old| (old != ALWAYS_SESSIONS).then_some(era);
        let _ = self.0.era.fetch_update(Ordering::AcqRel, Ordering::Acquire, keep_always);
    }

    /// Stores that the server uses the session era, or that the stored era was wrong.
    pub(super) async fn save(&self, is_session_era: bool) {
        if let Some(Storage { save, is_saved, .. }) = &self.0.storage
            && is_saved.swap(is_session_era, Ordering::AcqRel) != is_session_era
        {
            save(is_session_era).await;
        }
    }
}

impl fmt::Debug for EraCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EraCache").field(&self.0.era.load(Ordering::Relaxed)).finish()
    }
}
