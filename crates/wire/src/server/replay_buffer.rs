//! A numbered queue that can be read again from any number it still holds. It makes a stream resumable.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::outbound::{Disconnected, OutboundMessage};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Capacity {
    /// Unread messages before a writer waits.
    pub(crate) messages: usize,
    /// Bytes, read and unread, before the oldest read messages are dropped and a writer waits.
    pub(crate) bytes: usize,
    /// Whether messages are kept after they were read.
    pub(crate) replays: bool,
}

/// Messages for one host, in order.
pub(crate) struct ReplayBuffer {
    capacity: Capacity,
    state: Mutex<State>,
    /// Signals a new message, or the end.
    news: Notify,
    freed: Notify,
}

#[derive(Default)]
struct State {
    /// The number of the oldest message that is kept; counted from 1.
    first: u64,
    kept: VecDeque<OutboundMessage>,
    bytes: usize,
    /// The number of the last message that was read.
    read: u64,
    is_done: bool,
    is_closed: bool,
    /// Counts the readers; only the latest one may read.
    reader: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Message(u64, OutboundMessage),
    /// The stream ends here; the buffer may continue.
    Released,
    /// Everything was read, and nothing follows.
    Done,
}

pub(crate) struct Reader {
    number: u64,
    last: u64,
}

impl Reader {
    /// The number of the last message that it has read.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }
}

impl ReplayBuffer {
    pub(crate) fn new(capacity: Capacity) -> Self {
        let state = State { first: 1, ..State::default() };
        Self { capacity, state: Mutex::new(state), news: Notify::new(), freed: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a message, waiting for room.
    pub(crate) async fn push(&self, outgoing: OutboundMessage) -> Result<(), Disconnected> {
        loop {
            let freed = self.freed.notified();
            {
                let mut state = self.state();
                if state.is_closed || state.is_done {
                    return Err(Disconnected);
                }
                if state.has_room(self.capacity, outgoing.text.len()) {
                    state.append(outgoing);
                    break;
                }
            }
            freed.await;
        }
        self.news.notify_waiters();
        Ok(())
    }

    /// Appends a message if there is room.
    pub(crate) fn try_push(&self, outgoing: OutboundMessage) {
        let mut state = self.state();
        if !state.is_closed && !state.is_done && state.has_room(self.capacity, outgoing.text.len()) {
            state.append(outgoing);
            drop(state);
            self.news.notify_waiters();
        }
    }

    /// Appends a message; if there is no room, drops the oldest.
    pub(crate) fn offer(&self, outgoing: OutboundMessage) -> Result<(), Disconnected> {
        let mut state = self.state();
        if state.is_closed || state.is_done {
            return Err(Disconnected);
        }
        while !state.has_room(self.capacity, outgoing.text.len()) && state.drop_oldest() {}
        state.append(outgoing);
        drop(state);
        self.news.notify_waiters();
        Ok(())
    }

    pub(crate) fn finish(&self) {
        self.state().is_done = true;
        self.notify();
    }

    /// Rejects all further reads and writes.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.is_done = true;
        drop(state);
        self.notify();
    }

    /// Ends the current reader's stream; unread messages wait for the next reader.
    pub(crate) fn release(&self) {
        self.state().reader += 1;
        self.notify();
    }

    pub(crate) fn is_spent(&self) -> bool {
        let state = self.state();
        state.is_closed || state.is_done && state.read >= state.end()
    }

    pub(crate) fn is_done(&self) -> bool {
        self.state().is_done
    }

    /// Starts reading after message `last` and replaces the current reader; `None` if the following messages are no
    /// longer kept.
    pub(crate) fn read_after(&self, last: u64) -> Option<Reader> {
        let mut state = self.state();
        if last.saturating_add(1) < state.first || last > state.end() {
            return None;
        }
        state.reader += 1;
        // The messages after `last` are unread again, so they are not dropped to make room.
        state.read = last;
        let reader = Reader { number: state.reader, last };
        drop(state);
        self.notify();
        Some(reader)
    }

    /// Starts reading at the first unread message.
    pub(crate) fn read_on(&self) -> Reader {
        let mut state = self.state();
        state.reader += 1;
        let reader = Reader { number: state.reader, last: state.read.max(state.first - 1) };
        drop(state);
        self.notify();
        reader
    }

    pub(crate) async fn next(&self, reader: &mut Reader) -> Next {
        loop {
            // Created before the check, so that no later notification is missed.
            let news = self.news.notified();
            if let Some(next) = self.next_now(reader) {
                if matches!(next, Next::Message(..)) {
                    self.freed.notify_waiters();
                }
                return next;
            }
            news.await;
        }
    }

    fn next_now(&self, reader: &mut Reader) -> Option<Next> {
        let mut state = self.state();
        let number = (reader.last + 1).max(state.first);
        let place = usize::try_from(number - state.first).unwrap_or(usize::MAX);
        let is_replaced = reader.number != state.reader;
        if let Some(outgoing) = state.kept.get(place).filter(|_| !is_replaced).cloned() {
            reader.last = number;
            state.read = state.read.max(number);
            if !self.capacity.replays {
                state.drop_oldest();
            }
            return Some(Next::Message(number, outgoing));
        }
        if is_replaced {
            return Some(Next::Released);
        }
        state.is_done.then_some(Next::Done)
    }

    fn notify(&self) {
        self.news.notify_waiters();
        self.freed.notify_waiters();
    }
}

impl State {
    fn end(&self) -> u64 {
        self.first + self.kept.len() as u64 - 1
    }

    fn append(&mut self, outgoing: OutboundMessage) {
        self.bytes += outgoing.text.len();
        self.kept.push_back(outgoing);
    }

    /// Drops read messages until `length` fits; an empty buffer accepts a message of any size.
    fn has_room(&mut self, capacity: Capacity, length: usize) -> bool {
        while self.bytes + length > capacity.bytes || self.kept.len() >= capacity.messages {
            if self.first > self.read || !self.drop_oldest() {
                return self.kept.is_empty();
            }
        }
        true
    }

    fn drop_oldest(&mut self) -> bool {
        let Some(oldest) = self.kept.pop_front() else { return false };
        self.bytes -= oldest.text.len();
        self.first += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Capacity = Capacity { messages: 3, bytes: 100, replays: true };

    async fn message(buffer: &ReplayBuffer, reader: &mut Reader) -> String {
        match buffer.next(reader).await {
            Next::Message(number, outgoing) => format!("{number}:{}", outgoing.text),
            other => format!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_stream_is_taken_up_where_it_broke() {
        let buffer = ReplayBuffer::new(SMALL);
        for text in ["a", "b"] {
            buffer.push(text.to_owned().into()).await.unwrap();
        }
        let mut first = buffer.read_on();
        assert_eq!(message(&buffer, &mut first).await, "1:a");
        let mut second = buffer.read_after(1).unwrap();
        assert_eq!(buffer.next(&mut first).await, Next::Released);
        assert_eq!(message(&buffer, &mut second).await, "2:b");
        buffer.finish();
        assert_eq!(buffer.next(&mut second).await, Next::Done);
        let mut again = buffer.read_after(0).unwrap();
        assert_eq!(message(&buffer, &mut again).await, "1:a");
        assert!(buffer.read_after(9).is_none());
    }

    #[tokio::test]
    async fn what_is_read_again_is_kept_until_then() {
        let buffer = ReplayBuffer::new(SMALL);
        let mut first = buffer.read_on();
        for text in ["a", "b", "c"] {
            buffer.push(text.to_owned().into()).await.unwrap();
            message(&buffer, &mut first).await;
        }
        let mut again = buffer.read_after(0).unwrap();
        let pushing = buffer.push("d".to_owned().into());
        let reading = async {
            let mut seen = Vec::new();
            for _ in 0..4 {
                seen.push(message(&buffer, &mut again).await);
            }
            seen
        };
        let (pushed, seen) = tokio::join!(pushing, reading);
        pushed.unwrap();
        assert_eq!(seen, ["1:a", "2:b", "3:c", "4:d"]);
    }

    #[tokio::test]
    async fn a_writer_waits_for_room_and_nothing_unread_is_lost() {
        let buffer = std::sync::Arc::new(ReplayBuffer::new(SMALL));
        let writer = tokio::spawn({
            let buffer = std::sync::Arc::clone(&buffer);
            async move {
                for number in 0..50 {
                    buffer.push(number.to_string().into()).await.unwrap();
                }
                buffer.finish();
            }
        });
        let mut reader = buffer.read_on();
        let mut seen = Vec::new();
        while let Next::Message(_, outgoing) = buffer.next(&mut reader).await {
            seen.push(outgoing.text);
        }
        writer.await.unwrap();
        assert_eq!(seen, (0..50).map(|number| number.to_string()).collect::<Vec<_>>());
        assert!(buffer.is_spent());
    }

    #[tokio::test]
    async fn unread_messages_are_dropped_oldest_first() {
        let buffer = ReplayBuffer::new(SMALL);
        for number in 0..10 {
            buffer.offer(number.to_string().into()).unwrap();
        }
        let mut reader = buffer.read_on();
        assert_eq!(message(&buffer, &mut reader).await, "8:7");
    }

    #[tokio::test]
    async fn closing_wakes_a_writer_that_waits() {
        let buffer = std::sync::Arc::new(ReplayBuffer::new(SMALL));
        for text in ["a", "b", "c"] {
            buffer.push(text.to_owned().into()).await.unwrap();
        }
        let waiting = tokio::spawn({
            let buffer = std::sync::Arc::clone(&buffer);
            async move { buffer.push("d".to_owned().into()).await }
        });
        tokio::task::yield_now().await;
        buffer.close();
        assert_eq!(waiting.await.unwrap(), Err(Disconnected));
    }
}
