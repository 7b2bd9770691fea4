//! Turns of the web channel: they continue when the page that started them closes, and a page can reconnect. Enforces
//! the limits (one turn per thread, some per user, some in total) and keeps the last finished turns. Independent of
//! HTTP and the model: the caller supplies the work.

mod log;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::Notify;

use self::log::Log;
use crate::event::{End, TurnEvent};

pub use self::log::Reader;

#[derive(Debug, Clone, Copy)]
pub struct TurnLimits {
    pub running: usize,
    pub running_of_user: usize,
    /// Finished turns that can be read again.
    pub kept: usize,
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self { running: 2_000, running_of_user: 16, kept: 256 }
    }
}

/// Why a turn cannot start now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Busy {
    #[error("the agent is still answering in this conversation")]
    Thread { turn: String },
    #[error("{most} of your turns are in progress; wait for one to end")]
    User { most: usize },
    #[error("too many turns are in progress; try again later")]
    All,
    #[error("embody is shutting down; try again after the restart")]
    Ending,
}

/// Counters since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    pub running: u64,
    /// Turns that ended with a reply or in silence.
    pub done: u64,
    /// Turns that ended without a reply.
    pub failed: u64,
    pub cancelled: u64,
}

/// All running turns, and the last finished ones.
#[derive(Debug, Clone, Default)]
pub struct Turns(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    bounds: TurnLimits,
    state: Mutex<State>,
    over: Notify,
}

#[derive(Debug, Default)]
struct State {
    running: Vec<Arc<Turn>>,
    kept: VecDeque<Arc<Turn>>,
    counters: Counters,
    is_ending: bool,
}

#[derive(Debug)]
pub struct Turn {
    id: String,
    user: String,
    thread: String,
    log: Arc<Log>,
    cancel: Notify,
}

impl Turn {
    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn thread(&self) -> &str {
        &self.thread
    }

    /// Reads the events after this position (0 is the beginning), and waits for more.
    pub fn read(&self, after: u64) -> Reader {
        Reader::new(Arc::clone(&self.log), after)
    }
}

#[derive(Debug, Clone)]
pub struct EventSender(Arc<Log>);

impl EventSender {
    /// Appends an event for current and later readers.
    pub fn send(&self, event: TurnEvent) {
        self.0.send(event);
    }
}

impl Turns {
    pub fn new(bounds: TurnLimits) -> Self {
        Self(Arc::new(Inner { bounds, ..Inner::default() }))
    }

    /// Starts a turn. It runs whether or not a page listens; cancelling drops its future. However it ends, `close` runs
    /// last, before readers see the end.
    pub fn begin<F, G>(
        &self,
        id: String,
        (user, thread): (&str, &str),
        work: impl FnOnce(EventSender) -> F,
        close: impl FnOnce(End) -> G + Send + 'static,
    ) -> Result<Arc<Turn>, Busy>
    where
        F: Future<Output = End> + Send + 'static,
        G: Future<Output = End> + Send + 'static,
    {
        let (user, thread) = (user.to_owned(), thread.to_owned());
        let log = Arc::new(Log::new(TurnEvent::Started { turn: id.clone(), thread: thread.clone() }));
        let turn = Arc::new(Turn { id, user, thread, log: Arc::clone(&log), cancel: Notify::new() });
        self.0.register(&turn)?;
        let work = work(EventSender(log));
        // Also when the work panics or the runtime shuts down.
        let mut guard = FinishGuard { inner: Arc::clone(&self.0), turn: Arc::clone(&turn), end: None };
        tokio::spawn(async move {
            let end = tokio::select! {
                end = work => end,
                () = guard.turn.cancel.notified() => End::Cancelled,
            };
            guard.ended(close(end).await);
        });
        Ok(turn)
    }

    /// Whether this user may start another turn, in an idle thread.
    pub fn check_capacity(&self, user: &str) -> Result<(), Busy> {
        self.0.check_capacity(&self.0.lock(), user)
    }

    /// The user's turn with this id, if it is running or still kept.
    pub fn find(&self, user: &str, id: &str) -> Option<Arc<Turn>> {
        let state = self.0.lock();
        let mut all = state.running.iter().chain(&state.kept);
        all.find(|turn| turn.user == user && turn.id == id).cloned()
    }

    pub fn running_in(&self, user: &str, thread: &str) -> Option<Arc<Turn>> {
        let state = self.0.lock();
        state.running.iter().find(|turn| turn.user == user && turn.thread == thread).cloned()
    }

    /// Cancels a turn. Returns whether it was running.
    pub fn cancel(&self, user: &str, id: &str) -> bool {
        let found = self.find(user, id).filter(|turn| !turn.log.has_ended());
        found.inspect(|turn| turn.cancel.notify_one()).is_some()
    }

    pub fn counters(&self) -> Counters {
        let state = self.0.lock();
        Counters { running: state.running.len() as u64, ..state.counters }
    }

    /// Rejects new turns, waits for the running ones, and cancels those that exceed `patience`.
    pub async fn shutdown(&self, patience: Duration) {
        self.0.lock().is_ending = true;
        if tokio::time::timeout(patience, self.0.wait_idle()).await.is_err() {
            for turn in &self.0.lock().running {
                turn.cancel.notify_one();
            }
            self.0.wait_idle().await;
        }
    }
}

impl Inner {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(&self, turn: &Arc<Turn>) -> Result<(), Busy> {
        let mut state = self.lock();
        let Turn { user, thread, .. } = &**turn;
        let mut of_user = state.running.iter().filter(|other| other.user == *user);
        if let Some(other) = of_user.find(|other| other.thread == *thread) {
            return Err(Busy::Thread { turn: other.id.clone() });
        }
        self.check_capacity(&state, user)?;
        state.running.push(Arc::clone(turn));
        Ok(())
    }

    fn check_capacity(&self, state: &State, user: &str) -> Result<(), Busy> {
        let TurnLimits { running, running_of_user, .. } = self.bounds;
        if state.is_ending {
            return Err(Busy::Ending);
        }
        if state.running.iter().filter(|other| other.user == user).count() >= running_of_user {
            return Err(Busy::User { most: running_of_user });
        }
        if state.running.len() >= running {
            return Err(Busy::All);
        }
        Ok(())
    }

    async fn wait_idle(&self) {
        loop {
            let mut over = std::pin::pin!(self.over.notified());
            over.as_mut().enable();
            if self.lock().running.is_empty() {
                return;
            }
            over.await;
        }
    }
}

/// Moves a turn to the finished ones, however it ended.
struct FinishGuard {
    inner: Arc<Inner>,
    turn: Arc<Turn>,
    end: Option<End>,
}

impl FinishGuard {
    fn ended(&mut self, end: End) {
        self.end = Some(end);
    }
}

impl Drop for FinishGuard {
    fn drop(&mut self) {
        let end = self.end.take().unwrap_or_else(|| End::Failed {
            message: "internal error: the turn was stopped".to_owned(),
            hint: Some("see the log of embody".to_owned()),
        });
        let mut state = self.inner.lock();
        match &end {
            End::Done(_) => state.counters.done += 1,
            End::Failed { .. } => state.counters.failed += 1,
            End::Cancelled => state.counters.cancelled += 1,
        }
        state.running.retain(|other| !Arc::ptr_eq(other, &self.turn));
        state.kept.push_back(Arc::clone(&self.turn));
        while state.kept.len() > self.inner.bounds.kept {
            state.kept.pop_front();
        }
        drop(state);
        // A reader that sees the end may start the next turn at once.
        self.turn.log.end(end);
        self.inner.over.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
