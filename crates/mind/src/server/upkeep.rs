//! What the mind does between calls: reads new memories for rules, and tidies up when it is quiet. Nobody waits for it.

use std::collections::HashMap;
use std::time::Duration;

use embody_store::{Scope, Store};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};

use super::Clock;
use crate::consolidate::{self, Policy};
use crate::observe;

/// Users and agents that are looked after; whoever was heard of longest ago is let go first.
const MOST: usize = 1024;
/// Calls that may wait to be heard of. A full queue is no loss: the next call says the same.
const QUEUE: usize = 256;
/// Memories that are read for rules in one go.
const AT_A_TIME: u64 = 5000;
const TICK: Duration = Duration::from_secs(60);

/// The task that does it, while this lives.
pub(super) struct Upkeep {
    heard: mpsc::Sender<(Scope, bool)>,
    task: JoinHandle<()>,
}

impl Upkeep {
    /// Starts it.
    pub(super) fn start(store: Store, clock: Clock) -> Self {
        let (heard, calls) = mpsc::channel(QUEUE);
        Self { heard, task: tokio::spawn(run(store, clock, calls)) }
    }

    /// A call came for this user and agent; whether it may have brought something to read.
    pub(super) fn hear_of(&self, scope: &Scope, is_news: bool) {
        let _ = self.heard.try_send((scope.clone(), is_news));
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(store: Store, clock: Clock, mut calls: mpsc::Receiver<(Scope, bool)>) {
    let policy = Policy::usual("mind");
    let mut known: HashMap<Scope, Instant> = HashMap::new();
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            call = calls.recv() => {
                let Some((scope, is_news)) = call else { return };
                let is_new = known.insert(scope.clone(), Instant::now()).is_none();
                if is_new || is_news {
                    read_up(&store, &scope).await;
                }
                if known.len() > MOST
                    && let Some(oldest) = known.iter().min_by_key(|(_, heard)| **heard).map(|(scope, _)| scope.clone())
                {
                    known.remove(&oldest);
                }
            }
            _ = ticks.tick() => {
                for scope in known.keys() {
                    read_up(&store, scope).await;
                    // What fails now is tried again: nothing is lost by it.
                    if let Err(error) = consolidate::consolidate(&store, scope, &clock(scope), &policy).await {
                        tracing::warn!(reason = %error, "memories could not be tidied up");
                    }
                }
            }
        }
    }
}

/// Reads a part at a time; what is left comes with the next call or the next minute.
async fn read_up(store: &Store, scope: &Scope) {
    if let Err(error) = observe::catch_up(store, scope, AT_A_TIME).await {
        tracing::warn!(reason = %error, "memories could not be read for rules");
    }
}
