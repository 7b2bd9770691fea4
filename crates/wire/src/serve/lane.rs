//! A numbered queue that can be read again from any number that it still keeps: what makes a stream resumable.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::way::Gone;
use super::written::Written;

/// What a lane may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Capacity {
    /// Unread messages before a writer waits.
    pub(crate) messages: usize,
    /// Bytes, read and unread, before the oldest read ones are let go and a writer waits.
    pub(crate) bytes: usize,
    /// Whether messages are kept after they were read.
    pub(crate) replays: bool,
}

/// A message on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Letter {
    pub(crate) text: String,
    /// For the answer to a request: the code of its error, or 0.
    pub(crate) answer: Option<i64>,
    /// What is done when the transport has it.
    pub(crate) written: Written,
}

impl From<String> for Letter {
    fn from(text: String) -> Self {
        Self { text, answer: None, written: Written::default() }
    }
}

/// Messages on their way to one host, in order.
pub(crate) struct Lane {
    capacity: Capacity,
    state: Mutex<State>,
    /// There is something to read, or an end to notice.
    news: Notify,
    /// There is room again.
    room: Notify,
}

#[derive(Default)]
struct State {
    /// The number of the oldest message that is kept; they are counted from 1.
    first: u64,
    kept: VecDeque<Letter>,
    bytes: usize,
    /// The number of the last message that was read.
    read: u64,
    /// Nothing more will be written.
    is_done: bool,
    /// Nothing more will be read.
    is_closed: bool,
    /// Counts the readers; only the last one reads.
    reader: u64,
}

/// What a reader gets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A message and its number.
    Message(u64, Letter),
    /// The stream ends here; the lane may go on.
    Released,
    /// All was read, and nothing will follow.
    Done,
}

/// A place in a lane.
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

impl Lane {
    pub(crate) fn new(capacity: Capacity) -> Self {
        let state = State { first: 1, ..State::default() };
        Self { capacity, state: Mutex::new(state), news: Notify::new(), room: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a message, waiting for room.
    pub(crate) async fn push(&self, letter: Letter) -> Result<(), Gone> {
        loop {
            let room = self.room.notified();
            {
                let mut state = self.state();
                if state.is_closed || state.is_done {
                    return Err(Gone);
                }
                if state.has_room(self.capacity, letter.text.len()) {
                    state.append(letter);
                    break;
                }
            }
            room.await;
        }
        self.news.notify_waiters();
        Ok(())
    }

    /// Appends a message; if there is no room, the oldest are lost instead.
    pub(crate) fn offer(&self, letter: Letter) -> Result<(), Gone> {
        let mut state = self.state();
        if state.is_closed || state.is_done {
            return Err(Gone);
        }
        while !state.has_room(self.capacity, letter.text.len()) && state.drop_oldest() {}
        state.append(letter);
        drop(state);
        self.news.notify_waiters();
        Ok(())
    }

    /// Nothing more will be written.
    pub(crate) fn finish(&self) {
        self.state().is_done = true;
        self.wake();
    }

    /// Nothing more will be read or written.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.is_done = true;
        drop(state);
        self.wake();
    }

    /// Ends the present reader's stream; what it has not read waits for the next.
    pub(crate) fn release(&self) {
        self.state().reader += 1;
        self.wake();
    }

    /// Whether everything was written and read.
    pub(crate) fn is_spent(&self) -> bool {
        let state = self.state();
        state.is_closed || state.is_done && state.read >= state.end()
    }

    /// Whether everything was written.
    pub(crate) fn is_done(&self) -> bool {
        self.state().is_done
    }

    /// Begins to read after this message, in place of whoever reads now; `None` if what follows it is no longer kept.
    pub(crate) fn read_after(&self, last: u64) -> Option<Reader> {
        let mut state = self.state();
        if last.saturating_add(1) < state.first || last > state.end() {
            return None;
        }
        state.reader += 1;
        // What follows is unread again, and is not let go to make room.
        state.read = last;
        let reader = Reader { number: state.reader, last };
        drop(state);
        self.wake();
        Some(reader)
    }

    /// Begins to read what nobody has read.
    pub(crate) fn read_on(&self) -> Reader {
        let mut state = self.state();
        state.reader += 1;
        let reader = Reader { number: state.reader, last: state.read.max(state.first - 1) };
        drop(state);
        self.wake();
        reader
    }

    /// The next message.
    pub(crate) async fn next(&self, reader: &mut Reader) -> Next {
        loop {
            // Made before the look: it hears of everything that happens from here on.
            let news = self.news.notified();
            if let Some(next) = self.look(reader) {
                if matches!(next, Next::Message(..)) {
                    self.room.notify_waiters();
                }
                return next;
            }
            news.await;
        }
    }

    fn look(&self, reader: &mut Reader) -> Option<Next> {
        let mut state = self.state();
        let number = (reader.last + 1).max(state.first);
        let place = usize::try_from(number - state.first).unwrap_or(usize::MAX);
        let is_replaced = reader.number != state.reader;
        if let Some(letter) = state.kept.get(place).filter(|_| !is_replaced).cloned() {
            reader.last = number;
            state.read = state.read.max(number);
            if !self.capacity.replays {
                state.drop_oldest();
            }
            return Some(Next::Message(number, letter));
        }
        if is_replaced {
            return Some(Next::Released);
        }
        state.is_done.then_some(Next::Done)
    }

    fn wake(&self) {
        self.news.notify_waiters();
        self.room.notify_waiters();
    }
}

impl State {
    /// The number of the last message.
    fn end(&self) -> u64 {
        self.first + self.kept.len() as u64 - 1
    }

    fn append(&mut self, letter: Letter) {
        self.bytes += letter.text.len();
        self.kept.push_back(letter);
    }

    /// Makes room by letting go of what was read; an empty lane takes a message of any size.
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

    async fn message(lane: &Lane, reader: &mut Reader) -> String {
        match lane.next(reader).await {
            Next::Message(number, letter) => format!("{number}:{}", letter.text),
            other => format!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_stream_is_taken_up_where_it_broke() {
        let lane = Lane::new(SMALL);
        for text in ["a", "b"] {
            lane.push(text.to_owned().into()).await.unwrap();
        }
        let mut first = lane.read_on();
        assert_eq!(message(&lane, &mut first).await, "1:a");
        let mut second = lane.read_after(1).unwrap();
        assert_eq!(lane.next(&mut first).await, Next::Released);
        assert_eq!(message(&lane, &mut second).await, "2:b");
        lane.finish();
        assert_eq!(lane.next(&mut second).await, Next::Done);
        let mut again = lane.read_after(0).unwrap();
        assert_eq!(message(&lane, &mut again).await, "1:a");
        assert!(lane.read_after(9).is_none());
    }

    #[tokio::test]
    async fn what_is_read_again_is_kept_until_then() {
        let lane = Lane::new(SMALL);
        let mut first = lane.read_on();
        for text in ["a", "b", "c"] {
            lane.push(text.to_owned().into()).await.unwrap();
            message(&lane, &mut first).await;
        }
        let mut again = lane.read_after(0).unwrap();
        let pushing = lane.push("d".to_owned().into());
        let reading = async {
            let mut seen = Vec::new();
            for _ in 0..4 {
                seen.push(message(&lane, &mut again).await);
            }
            seen
        };
        let (pushed, seen) = tokio::join!(pushing, reading);
        pushed.unwrap();
        assert_eq!(seen, ["1:a", "2:b", "3:c", "4:d"]);
    }

    #[tokio::test]
    async fn a_writer_waits_for_room_and_nothing_unread_is_lost() {
        let lane = std::sync::Arc::new(Lane::new(SMALL));
        let writer = tokio::spawn({
            let lane = std::sync::Arc::clone(&lane);
            async move {
                for number in 0..50 {
                    lane.push(number.to_string().into()).await.unwrap();
                }
                lane.finish();
            }
        });
        let mut reader = lane.read_on();
        let mut seen = Vec::new();
        while let Next::Message(_, letter) = lane.next(&mut reader).await {
            seen.push(letter.text);
        }
        writer.await.unwrap();
        assert_eq!(seen, (0..50).map(|number| number.to_string()).collect::<Vec<_>>());
        assert!(lane.is_spent());
    }

    #[tokio::test]
    async fn what_nobody_listens_to_is_lost_oldest_first() {
        let lane = Lane::new(SMALL);
        for number in 0..10 {
            lane.offer(number.to_string().into()).unwrap();
        }
        let mut reader = lane.read_on();
        assert_eq!(message(&lane, &mut reader).await, "8:7");
    }

    #[tokio::test]
    async fn closing_wakes_a_writer_that_waits() {
        let lane = std::sync::Arc::new(Lane::new(SMALL));
        for text in ["a", "b", "c"] {
            lane.push(text.to_owned().into()).await.unwrap();
        }
        let waiting = tokio::spawn({
            let lane = std::sync::Arc::clone(&lane);
            async move { lane.push("d".to_owned().into()).await }
        });
        tokio::task::yield_now().await;
        lane.close();
        assert_eq!(waiting.await.unwrap(), Err(Gone));
    }
}
