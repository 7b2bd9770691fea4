//! The sessions that are open over HTTP, and the lanes of each.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::door::Admitted;
use super::{Face, GRACE};
use crate::limits::Limits;
use crate::secret::Secret;
use crate::serve::cancel::Cancel;
use crate::serve::conversation::{Conversation, Ending};
use crate::serve::lane::{Capacity, Lane, Letter};
use crate::serve::new_session_id;
use crate::serve::relay::Resumed;
use crate::serve::service::{Host, Service};
use crate::serve::way::Way;

/// Finished streams that are kept for a host that lost their end.
const SPENT_LANES: usize = 16;
/// Kept bytes of one lane; a longer message stands alone in it.
const LANE_BYTES: usize = 4 * 1024 * 1024;
/// Finished streams that were not read to their end: their host may still come for it.
const UNREAD_LANES: usize = 32;
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);
const SWEEP_INTERVAL_LEAST: Duration = Duration::from_millis(10);

/// The number of the lane that belongs to no request.
pub(super) const GENERAL: u64 = 0;

/// All sessions of a face.
pub(crate) struct Sessions<S: Service> {
    open: Mutex<HashMap<Arc<str>, Arc<Session<S>>>>,
    limits: Limits,
}

/// One session.
pub(super) struct Session<S: Service> {
    pub(super) conversation: Conversation<S>,
    lanes: Mutex<BTreeMap<u64, Arc<Lane>>>,
    next_lane: AtomicU64,
    used: Mutex<Instant>,
    /// Streams that are being read.
    streams: AtomicUsize,
    /// A legacy session is one pipe; it has no lanes but this queue.
    pub(super) pipe: Option<Way>,
    /// Set when it is closed.
    pub(super) closed: Cancel,
}

/// Holds a session open while a stream of it is read.
pub(super) struct Streaming<S: Service>(Arc<Session<S>>);

impl<S: Service> Drop for Streaming<S> {
    fn drop(&mut self) {
        self.0.touch();
        self.0.streams.fetch_sub(1, Ordering::AcqRel);
    }
}

impl<S: Service> Sessions<S> {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { open: Mutex::default(), limits: limits.clone() }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Session<S>>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session of this id, if this principal opened it, with this token.
    pub(super) fn find(&self, id: &str, by: &Admitted<S::Principal>) -> Option<Arc<Session<S>>> {
        let session = self.open().get(id).cloned()?;
        let host = &session.conversation.host;
        if host.principal != by.principal || host.bearer != by.bearer {
            return None;
        }
        session.touch();
        Some(session)
    }

    /// The session of this id, whoever asks.
    pub(super) fn of_anyone(&self, id: &str) -> Option<Arc<Session<S>>> {
        self.open().get(id).cloned()
    }

    /// Keeps a session; `false` if there are too many.
    pub(super) fn keep(&self, session: &Arc<Session<S>>) -> bool {
        let mut open = self.open();
        let Some(id) = session.conversation.host.session.clone() else { return false };
        let same =
            |other: &Session<S>| other.conversation.host.principal == session.conversation.host.principal;
        let own = open.values().filter(|other| same(other));
        if own.clone().count() >= self.limits.sessions_each_max
            && let Some(oldest) = own.min_by_key(|other| other.last_used()).cloned()
            && let Some(id) = &oldest.conversation.host.session
        {
            open.remove(id);
            tokio::spawn(async move { oldest.close().await });
        }
        if open.len() >= self.limits.sessions_max {
            return false;
        }
        open.insert(id, Arc::clone(session));
        true
    }

    /// Closes a session.
    pub(super) async fn close(&self, session: &Arc<Session<S>>) {
        if let Some(id) = &session.conversation.host.session {
            self.open().remove(id);
        }
        session.close().await;
    }

    /// The tokens that have opened sessions.
    pub(super) fn bearers(&self) -> Vec<Secret> {
        self.open().values().filter_map(|session| session.conversation.host.bearer.clone()).collect()
    }

    /// Takes out the sessions of a token. They are still to be closed.
    pub(super) fn take_of(&self, bearer: &Secret) -> Vec<Arc<Session<S>>> {
        let of_token = |_: &Arc<str>, session: &mut Arc<Session<S>>| {
            session.conversation.host.bearer.as_ref() == Some(bearer)
        };
        self.open().extract_if(of_token).map(|(_, session)| session).collect()
    }

    async fn close_idle(&self) {
        let idle: Vec<_> = {
            let mut open = self.open();
            let limit = self.limits.session_idle_timeout;
            open.extract_if(|_, session| session.is_idle(limit)).map(|(_, session)| session).collect()
        };
        for session in idle {
            session.close().await;
        }
    }

    async fn close_all(&self) {
        let all: Vec<_> = self.open().drain().map(|(_, session)| session).collect();
        // For all of them together: each of many would take too long.
        let deadline = Instant::now() + GRACE;
        for session in all {
            session.conversation.rest(deadline.saturating_duration_since(Instant::now())).await;
            session.close().await;
        }
    }
}

/// Closes sessions that nobody uses, until the server is ending; then all.
pub(super) async fn sweep<S: Service>(face: Weak<Face<S>>, limits: Limits, mut ending: Ending) {
    let interval = limits.session_idle_timeout.clamp(SWEEP_INTERVAL_LEAST, SWEEP_INTERVAL);
    loop {
        let is_ending = tokio::select! {
            () = ending.wait() => true,
            () = tokio::time::sleep(interval) => false,
        };
        let Some(face) = face.upgrade() else { return };
        if is_ending {
            face.sessions.close_all().await;
            return;
        }
        face.sessions.close_idle().await;
    }
}

impl<S: Service> Session<S> {
    /// A session of streamable HTTP.
    pub(super) fn streamable(face: &Face<S>, by: Admitted<S::Principal>) -> Arc<Self> {
        let Admitted { principal, bearer } = by;
        let host = |way| Host::session(principal, new_session_id(), way).let_in_by(bearer);
        Self::with(face, GENERAL + 1, host)
    }

    /// One that was opened in another process.
    pub(super) fn resumed(
        face: &Face<S>,
        by: Admitted<S::Principal>,
        id: Arc<str>,
        known: Resumed,
    ) -> Arc<Self> {
        let Admitted { principal, bearer } = by;
        // The streams that the host has there are not those that it has here.
        let first = 1 + (u64::from(uuid::Uuid::new_v4().as_fields().0) << 16);
        Self::with(face, first, |way| Host::resumed(principal, id, way, known).let_in_by(bearer))
    }

    fn with(face: &Face<S>, first_lane: u64, host: impl FnOnce(Way) -> Host<S::Principal>) -> Arc<Self> {
        let general = Arc::new(Lane::new(capacity(&face.limits, true)));
        let host = host(Way::Lane(Arc::clone(&general)));
        Arc::new(Self {
            conversation: face.conversation(host),
            lanes: Mutex::new(BTreeMap::from([(GENERAL, general)])),
            next_lane: AtomicU64::new(first_lane),
            used: Mutex::new(Instant::now()),
            streams: AtomicUsize::new(0),
            pipe: None,
            closed: Cancel::default(),
        })
    }

    /// A session of legacy HTTP+SSE: everything goes back by one queue.
    pub(super) fn legacy(
        face: &Face<S>,
        by: Admitted<S::Principal>,
        queue: mpsc::Sender<Letter>,
    ) -> Arc<Self> {
        let way = Way::Queue(queue);
        let host = Host::session(by.principal, new_session_id(), way.clone()).let_in_by(by.bearer);
        Arc::new(Self {
            conversation: face.conversation(host),
            lanes: Mutex::default(),
            next_lane: AtomicU64::new(GENERAL + 1),
            used: Mutex::new(Instant::now()),
            streams: AtomicUsize::new(0),
            pipe: Some(way),
            closed: Cancel::default(),
        })
    }

    /// A lane for the requests of one POST.
    pub(super) fn open_lane(&self, limits: &Limits) -> (u64, Arc<Lane>) {
        let number = self.next_lane.fetch_add(1, Ordering::Relaxed);
        let lane = Arc::new(Lane::new(capacity(limits, true)));
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        forget(&mut lanes, Lane::is_spent, SPENT_LANES);
        forget(&mut lanes, Lane::is_done, SPENT_LANES + UNREAD_LANES);
        lanes.insert(number, Arc::clone(&lane));
        (number, lane)
    }

    /// A lane by its number.
    pub(super) fn lane(&self, number: u64) -> Option<Arc<Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
    }

    /// Forgets a lane whose answer went out as a plain body.
    pub(super) fn drop_lane(&self, number: u64) {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
    }

    /// Says that a stream is being read.
    pub(super) fn streaming(self: &Arc<Self>) -> Streaming<S> {
        self.streams.fetch_add(1, Ordering::AcqRel);
        Streaming(Arc::clone(self))
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether nobody has listened for so long. A call that still runs does not count: whoever wants its answer listens.
    fn last_used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_idle(&self, limit: Duration) -> bool {
        let unused = self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        unused >= limit && self.streams.load(Ordering::Acquire) == 0
    }

    pub(super) async fn close(&self) {
        self.closed.now();
        let lanes = std::mem::take(&mut *self.lanes.lock().unwrap_or_else(PoisonError::into_inner));
        lanes.values().for_each(|lane| lane.finish());
        self.conversation.end().await;
    }
}

/// Lets go of the oldest lanes of a kind that are too many.
fn forget(lanes: &mut BTreeMap<u64, Arc<Lane>>, kind: fn(&Lane) -> bool, most: usize) {
    let numbers: Vec<u64> = lanes.iter().filter(|(_, lane)| kind(lane)).map(|(number, _)| *number).collect();
    for number in numbers.iter().take(numbers.len().saturating_sub(most)) {
        lanes.remove(number);
    }
}

impl<S: Service> Face<S> {
    /// The session of this id, if it is theirs: of this process, or one that another process has opened.
    pub(super) async fn session(&self, id: &str, by: &Admitted<S::Principal>) -> Option<Arc<Session<S>>> {
        if let Some(session) = self.sessions.find(id, by) {
            return Some(session);
        }
        // Of others', nothing is known to them.
        if self.sessions.of_anyone(id).is_some() || self.ending.has_begun() {
            return None;
        }
        // Seldom, and large.
        Box::pin(self.resume(id, by)).await
    }

    /// Takes a session over from another process.
    async fn resume(&self, id: &str, by: &Admitted<S::Principal>) -> Option<Arc<Session<S>>> {
        let _one_at_a_time = self.resuming.lock().await;
        if let Some(session) = self.sessions.find(id, by) {
            return Some(session);
        }
        let known = self.service.resume(&by.principal, id).await?;
        let session = Session::resumed(self, by.clone(), Arc::from(id), known);
        self.sessions.keep(&session).then_some(session)
    }

    /// A conversation of this face.
    pub(super) fn conversation(&self, host: Host<S::Principal>) -> Conversation<S> {
        Conversation::new(Arc::clone(&self.service), host, self.limits.clone(), self.ending.clone())
            .with(&self.parked)
    }
}

pub(super) fn capacity(limits: &Limits, replays: bool) -> Capacity {
    Capacity { messages: limits.unread_max, bytes: LANE_BYTES, replays }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_lanes_of_a_kind_the_oldest_go_first() {
        let lane = |is_done: bool| {
            let lane = Lane::new(capacity(&Limits::default(), true));
            if is_done {
                // Nobody has read this, so it is done but not spent.
                lane.offer("unread".to_owned().into()).unwrap();
                lane.finish();
            }
            Arc::new(lane)
        };
        let mut lanes: BTreeMap<u64, Arc<Lane>> = [false, true, true, false, true]
            .into_iter()
            .map(lane)
            .zip(0..)
            .map(|(lane, at)| (at, lane))
            .collect();
        forget(&mut lanes, Lane::is_spent, 0);
        assert_eq!(lanes.len(), 5);
        forget(&mut lanes, Lane::is_done, 1);
        assert_eq!(lanes.keys().copied().collect::<Vec<_>>(), [0, 3, 4]);
    }
}
