//! Work between calls: scans new memories for rules, and consolidates when no call is active. No call waits for it.

use std::collections::HashMap;
use std::time::Duration;

use embody_store::{Scope, Store};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};

use super::Clock;
use crate::consolidate::{self, ConsolidationPolicy};
use crate::observe;

/// Scopes (user and agent) with background work; the one without a call for the longest time is dropped first.
const MAX_SCOPES: usize = 1024;
/// A full queue loses nothing: the next call of the scope queues the same work.
const QUEUE_LEN: usize = 256;
/// Memories that are read for rules in one go.
const REPLAY_LIMIT: u64 = 5000;
const TICK: Duration = Duration::from_secs(60);

pub(super) struct BackgroundTasks {
    calls: mpsc::Sender<(Scope, bool)>,
    task: JoinHandle<()>,
}

impl BackgroundTasks {
    pub(super) fn start(store: Store, clock: Clock) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE_LEN);
        Self { calls: sender, task: tokio::spawn(run(store, clock, receiver)) }
    }

    /// `has_new_memory`: there may be a memory to scan for rules.
    pub(super) fn record_call(&self, scope: &Scope, has_new_memory: bool) {
        let _ = self.calls.try_send((scope.clone(), has_new_memory));
    }
}

impl Drop for BackgroundTasks {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(store: Store, clock: Clock, mut calls: mpsc::Receiver<(Scope, bool)>) {
    let policy = ConsolidationPolicy::standard("mind");
    let mut known: HashMap<Scope, Instant> = HashMap::new();
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            call = calls.recv() => {
                let Some((scope, has_new_memory)) = call else { return };
                let is_new = known.insert(scope.clone(), Instant::now()).is_none();
                if is_new || has_new_memory {
                    replay_memories(&store, &scope).await;
                }
                if known.len() > MAX_SCOPES
                    && let Some(oldest) = known.iter().min_by_key(|(_, heard)| **heard).map(|(scope, _)| scope.clone())
                {
                    known.remove(&oldest);
                }
            }
            _ = ticks.tick() => {
                for scope in known.keys() {
                    replay_memories(&store, scope).await;
                    // What fails now is tried again: nothing is lost by it.
                    if let Err(error) = consolidate::consolidate(&store, scope, &clock(scope), &policy).await {
                        tracing::warn!(reason = %error, "consolidation failed; it is retried");
                    }
                }
            }
        }
    }
}

/// Scans one batch; the rest follows with the next call or tick.
async fn replay_memories(store: &Store, scope: &Scope) {
    if let Err(error) = observe::replay(store, scope, REPLAY_LIMIT).await {
        tracing::warn!(reason = %error, "scanning memories for rules failed");
    }
}
