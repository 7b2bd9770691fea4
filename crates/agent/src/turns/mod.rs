//! Turns of the web channel: they go on when the page that began them goes away, and a page finds them again. Owns who may
//! begin one (one at a time in a thread, so many of a user, so many in all) and what is kept of those that are over. Knows no
//! HTTP and no model: what a turn does is handed in.

mod event;
mod log;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::Notify;

pub use self::event::{Done, End, Event, SseEvent};
use self::log::Log;
pub use self::log::Reader;

/// How many there may be.
#[derive(Debug, Clone, Copy)]
pub struct TurnLimits {
    /// That go on, in all.
    pub running: usize,
    /// That go on, of one user.
    pub running_of_user: usize,
    /// That are over and can be read again.
    pub kept: usize,
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self { running: 2_000, running_of_user: 16, kept: 256 }
    }
}

/// Which turn is to begin.
#[derive(Debug, Clone)]
pub struct NewTurn {
    /// Its id, which nobody used before.
    pub id: String,
    /// Whose.
    pub user: String,
    /// The thread that it is a part of.
    pub thread: String,
}

/// Why a turn cannot begin now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Busy {
    /// Another turn of the thread goes on.
    #[error("the agent still answers in this conversation")]
    Thread {
        /// Which one.
        turn: String,
    },
    /// The user has too many.
    #[error("{most} of your conversations are being answered; wait for one of them")]
    User {
        /// The most.
        most: usize,
    },
    /// There are too many.
    #[error("too many conversations are being answered now; try again in a moment")]
    All,
    /// Nothing begins any more.
    #[error("embody is about to end; try again when it is back")]
    Ending,
}

/// What has happened since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Turns that go on.
    pub running: u64,
    /// Turns that ended with a reply or in silence.
    pub done: u64,
    /// Turns that ended without a reply.
    pub failed: u64,
    /// Turns that somebody broke off.
    pub cancelled: u64,
}

/// All turns that go on, and the last ones that are over.
#[derive(Debug, Clone, Default)]
pub struct Turns(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    bounds: TurnLimits,
    state: Mutex<State>,
    /// Told when a turn is over.
    over: Notify,
}

#[derive(Debug, Default)]
struct State {
    running: Vec<Arc<Turn>>,
    kept: VecDeque<Arc<Turn>>,
    counters: Counters,
    is_ending: bool,
}

/// One turn.
#[derive(Debug)]
pub struct Turn {
    new: NewTurn,
    log: Arc<Log>,
    cancel: Notify,
}

impl Turn {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.new.id
    }

    /// Its thread.
    #[must_use]
    pub fn thread(&self) -> &str {
        &self.new.thread
    }

    /// What was said after this place (0 is the beginning), and what will be.
    #[must_use]
    pub fn read(&self, after: u64) -> Reader {
        Reader::new(Arc::clone(&self.log), after)
    }
}

/// Where a turn says what happens.
#[derive(Debug, Clone)]
pub struct EventSender(Arc<Log>);

impl EventSender {
    /// Says it to whoever listens, now or later.
    pub fn send(&self, event: Event) {
        self.0.send(event);
    }
}

impl Turns {
    /// No turns.
    #[must_use]
    pub fn new(bounds: TurnLimits) -> Self {
        Self(Arc::new(Inner { bounds, ..Inner::default() }))
    }

    /// Begins a turn. What it does goes on whether anybody listens or not; breaking it off drops it. However it ended, `close`
    /// has the last word before anybody hears of it.
    ///
    /// # Errors
    /// When there are too many.
    pub fn begin<F, G>(
        &self,
        new: NewTurn,
        work: impl FnOnce(EventSender) -> F,
        close: impl FnOnce(End) -> G + Send + 'static,
    ) -> Result<Arc<Turn>, Busy>
    where
        F: Future<Output = End> + Send + 'static,
        G: Future<Output = End> + Send + 'static,
    {
        let log = Arc::new(Log::new(event::turn(&new.id, &new.thread)));
        let turn = Arc::new(Turn { new, log: Arc::clone(&log), cancel: Notify::new() });
        self.0.register(&turn)?;
        let work = work(EventSender(log));
        // Also when the work panics or the runtime goes away.
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

    /// Whether this user may begin another, in a thread in which nothing goes on.
    ///
    /// # Errors
    /// When there are too many.
    pub fn check_capacity(&self, user: &str) -> Result<(), Busy> {
        self.0.check_capacity(&self.0.lock(), user)
    }

    /// The user's turn of this id, if it goes on or is still known.
    #[must_use]
    pub fn find(&self, user: &str, id: &str) -> Option<Arc<Turn>> {
        let state = self.0.lock();
        let mut all = state.running.iter().chain(&state.kept);
        all.find(|turn| turn.new.user == user && turn.new.id == id).cloned()
    }

    /// The turn that goes on in this thread of the user.
    #[must_use]
    pub fn running_in(&self, user: &str, thread: &str) -> Option<Arc<Turn>> {
        let state = self.0.lock();
        state.running.iter().find(|turn| turn.new.user == user && turn.new.thread == thread).cloned()
    }

    /// Breaks a turn off. Whether it was going on.
    pub fn cancel(&self, user: &str, id: &str) -> bool {
        let found = self.find(user, id).filter(|turn| !turn.log.has_ended());
        found.inspect(|turn| turn.cancel.notify_one()).is_some()
    }

    /// What has happened since the start.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let state = self.0.lock();
        Counters { running: state.running.len() as u64, ..state.counters }
    }

    /// Lets nothing begin any more, waits for what goes on, and breaks off what takes longer.
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
        let NewTurn { user, thread, .. } = &turn.new;
        let mut of_user = state.running.iter().filter(|other| other.new.user == *user);
        if let Some(other) = of_user.find(|other| other.new.thread == *thread) {
            return Err(Busy::Thread { turn: other.new.id.clone() });
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
        if state.running.iter().filter(|other| other.new.user == user).count() >= running_of_user {
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

/// Puts a turn to those that are over, whatever became of it.
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
            message: "something went wrong inside embody, and the turn was broken off".to_owned(),
            hint: Some("its log says more".to_owned()),
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
        // Whoever hears of the end may begin the next turn at once.
        self.turn.log.end(end);
        self.inner.over.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
