//! The event log of one turn, for pages that reconnect. A position is a number that only grows: an event takes one, a
//! text as many as it has bytes. So consecutive texts are merged, and can still be read from any position.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::event::{End, SseEvent, TurnEvent};

/// Bytes kept of one turn. The oldest are dropped first; a page that missed them gets the whole reply at the end.
const KEPT: usize = 1024 * 1024;
/// The longest text of one event, in bytes.
const PIECE: usize = 16 * 1024;

#[derive(Debug)]
pub(super) struct Log {
    state: Mutex<LogState>,
    /// The position after the last event; also signals the end of the turn.
    position: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct LogState {
    entries: VecDeque<Entry>,
    bytes: usize,
    end: Option<End>,
}

#[derive(Debug)]
struct Entry {
    /// The position before it.
    start: u64,
    event: TurnEvent,
}

impl Entry {
    fn len(&self) -> u64 {
        match &self.event {
            TurnEvent::Text(text) => text.len() as u64,
            _ => 1,
        }
    }

    fn end(&self) -> u64 {
        self.start + self.len()
    }

    fn bytes(&self) -> usize {
        match &self.event {
            TurnEvent::Text(text) => text.len(),
            event => event.to_sse(0).data.len(),
        }
    }

    /// The part of it after this position, if any.
    fn after(&self, position: u64) -> Option<SseEvent> {
        match &self.event {
            TurnEvent::Text(whole) => {
                let from = usize::try_from(position.saturating_sub(self.start)).ok()?;
                let from = (from..=whole.len()).find(|at| whole.is_char_boundary(*at))?;
                let upto =
                    (from..=whole.len().min(from + PIECE)).rev().find(|at| whole.is_char_boundary(*at))?;
                let piece = whole.get(from..upto).filter(|piece| !piece.is_empty())?;
                Some(SseEvent::text(self.start + upto as u64, piece))
            }
            event => (position < self.end()).then(|| event.to_sse(self.end())),
        }
    }
}

impl Log {
    pub(super) fn new(first: TurnEvent) -> Self {
        let log = Self { state: Mutex::default(), position: watch::Sender::new(0) };
        log.send(first);
        log
    }

    pub(super) fn send(&self, event: TurnEvent) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.end.is_some() {
            return;
        }
        let start = state.entries.back().map_or(0, Entry::end);
        let entry = Entry { start, event };
        let (added, position) = (entry.bytes(), entry.end());
        match (state.entries.back_mut(), entry.event) {
            (Some(Entry { event: TurnEvent::Text(before), .. }), TurnEvent::Text(more))
                if before.len() < PIECE =>
            {
                before.push_str(&more);
            }
            (_, event) => state.entries.push_back(Entry { start, event }),
        }
        state.bytes += added;
        while state.bytes > KEPT && state.entries.len() > 1 {
            state.bytes -= state.entries.pop_front().map_or(0, |gone| gone.bytes());
        }
        drop(state);
        self.position.send_replace(position);
    }

    pub(super) fn end(&self, end: End) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.end.is_none() {
            state.end = Some(end);
        }
        drop(state);
        self.position.send_modify(|position| *position += 1);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).end.is_some()
    }

    /// The first event after this position, and whether it is the last.
    fn after(&self, position: u64) -> Option<(SseEvent, bool)> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // From the newest: readers are mostly at the end.
        let first = state.entries.iter().rev().take_while(|entry| entry.end() > position).last();
        if let Some(event) = first.and_then(|entry| entry.after(position)) {
            return Some((event, false));
        }
        let last = state.entries.back().map_or(0, Entry::end) + 1;
        Some((state.end.as_ref()?.to_sse(last), true))
    }
}

#[derive(Debug)]
pub struct Reader {
    log: Arc<Log>,
    changes: watch::Receiver<u64>,
    position: u64,
    has_ended: bool,
}

impl Reader {
    pub(super) fn new(log: Arc<Log>, position: u64) -> Self {
        let changes = log.position.subscribe();
        Self { log, changes, position, has_ended: false }
    }

    /// The next event; `None` after the end of the turn.
    pub async fn next(&mut self) -> Option<SseEvent> {
        while !self.has_ended {
            self.changes.mark_unchanged();
            if let Some((event, is_last)) = self.log.after(self.position) {
                self.has_ended = is_last;
                self.position = event.id;
                return Some(event);
            }
            self.changes.changed().await.ok()?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::TurnResult;

    fn log() -> Arc<Log> {
        Arc::new(Log::new(TurnEvent::Started { turn: "t".into(), thread: "h".into() }))
    }

    fn text(text: &str) -> TurnEvent {
        TurnEvent::Text(text.to_owned())
    }

    async fn all(mut reader: Reader) -> Vec<SseEvent> {
        let mut events = Vec::new();
        while let Some(one) = reader.next().await {
            events.push(one);
        }
        events
    }

    fn joined(events: &[SseEvent]) -> String {
        let text = |one: &SseEvent| {
            let data: serde_json::Value = serde_json::from_str(&one.data).unwrap();
            data["delta"].as_str().unwrap_or_default().to_owned()
        };
        events.iter().map(text).collect()
    }

    #[tokio::test]
    async fn reading_again_from_any_place_gives_exactly_the_rest() {
        let log = log();
        let mut live = Reader::new(Arc::clone(&log), 0);
        let mut seen = vec![live.next().await.unwrap()];
        for piece in ["Grüß ", "dich", " 🌍", "!"] {
            log.send(text(piece));
            seen.push(live.next().await.unwrap());
        }
        log.send(TurnEvent::Tool { id: "1".into(), name: "look".into() });
        log.send(text("Done."));
        log.end(End::Done(TurnResult::default()));
        while let Some(one) = live.next().await {
            seen.push(one);
        }
        let whole = joined(&seen);
        assert_eq!(whole, "Grüß dich 🌍!Done.");
        assert!(seen.windows(2).all(|two| two[0].id < two[1].id), "{seen:?}");
        for (at, one) in seen.iter().enumerate() {
            let rest = all(Reader::new(Arc::clone(&log), one.id)).await;
            let missed = &seen[at + 1..];
            assert_eq!(joined(&rest), joined(missed), "after {one:?}");
            if !missed.is_empty() {
                assert_eq!(rest.last().unwrap().name, "done");
            }
        }
    }

    #[tokio::test]
    async fn a_place_inside_a_character_or_beyond_the_end_does_no_harm() {
        let log = log();
        log.send(text("🌍🌍"));
        log.end(End::Cancelled);
        for position in 0..20 {
            let events = all(Reader::new(Arc::clone(&log), position)).await;
            assert_eq!(events.last().unwrap().name, "cancelled", "{position}: {events:?}");
        }
        assert_eq!(all(Reader::new(log, u64::MAX)).await.len(), 1);
    }

    #[tokio::test]
    async fn a_turn_without_end_keeps_a_bounded_tail() {
        let log = log();
        for _ in 0..4 * KEPT / 1024 {
            log.send(text(&"x".repeat(1024)));
        }
        let kept = log.state.lock().unwrap().bytes;
        assert!(kept <= KEPT, "{kept}");
        log.end(End::Cancelled);
        let events = all(Reader::new(log, 0)).await;
        assert!(joined(&events).len() <= KEPT && events.len() <= 1 + KEPT / 1024, "{}", events.len());
        assert!(events.iter().all(|one| one.data.len() < 2 * PIECE));
    }

    #[test]
    fn nothing_is_said_after_the_end() {
        let log = log();
        log.end(End::Cancelled);
        log.send(text("late"));
        log.end(End::Done(TurnResult::default()));
        assert_eq!(log.after(1).unwrap().0.name, "cancelled");
    }
}
