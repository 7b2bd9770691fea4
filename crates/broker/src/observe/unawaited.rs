//! The observation before a call that does not wait for it: sent to the mind while the call goes on. One that finds the
//! queue full is dropped and counted.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::before;
use crate::Setup;
use crate::arguments::Arguments;
use crate::session::Session;

const QUEUE: usize = 64;
/// Longer arguments are not sent.
const LONGEST: usize = 64 * 1024;
/// So many times as long as an observation took nothing is done: calls that run meanwhile need the processor more.
const IDLE: u32 = 9;
const LONGEST_REST: Duration = Duration::from_millis(500);

struct Waiting {
    /// Not the session: that holds the way to its host open.
    session: Weak<Session>,
    tool: String,
    arguments: Arc<Arguments>,
}

/// Takes observations that no call waits for.
pub(crate) struct Unawaited {
    queue: mpsc::Sender<Waiting>,
    setup: Arc<Setup>,
    worker: JoinHandle<()>,
}

impl Unawaited {
    pub(crate) fn start(setup: &Arc<Setup>) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let worker = tokio::spawn(send_all(Arc::clone(setup), waiting));
        Self { queue, setup: Arc::clone(setup), worker }
    }

    /// Leaves an observation to be sent.
    pub(crate) fn add(&self, session: &Arc<Session>, tool: &str, arguments: &Arc<Arguments>) {
        let is_sent = arguments.canonical().len() <= LONGEST
            && self.queue.try_reserve().is_ok_and(|place| {
                let (session, tool) = (Arc::downgrade(session), tool.to_owned());
                place.send(Waiting { session, tool, arguments: Arc::clone(arguments) });
                true
            });
        if !is_sent {
            self.setup.meter.unobserved.add(1);
        }
    }
}

impl Drop for Unawaited {
    fn drop(&mut self) {
        self.worker.abort();
    }
}

async fn send_all(setup: Arc<Setup>, mut waiting: mpsc::Receiver<Waiting>) {
    while let Some(Waiting { session, tool, arguments }) = waiting.recv().await {
        // The canonical form is JSON by its making.
        let args = serde_json::from_str::<&RawValue>(arguments.canonical());
        let (Some(session), Ok(args)) = (session.upgrade(), args) else { continue };
        let began = Instant::now();
        before(&session, &tool, args, setup.times.observe, (setup.clock)()).await;
        drop(session);
        sleep((began.elapsed() * IDLE).min(LONGEST_REST)).await;
    }
}
