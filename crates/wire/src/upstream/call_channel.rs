//! The ordered event queue of one call, with one reader. Most calls receive a single message, so an empty queue
//! allocates nothing. Bounded in messages and in bytes; the final event is always accepted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::CallEvent;
use super::inbox::UNREAD_BYTES;

/// Maximum number of unread messages. A caller that reads too slowly misses progress notifications but still gets its
/// response.
pub(super) const UNREAD: usize = 1024;

/// Dropping the sender closes the channel.
#[derive(Debug)]
pub(super) struct CallSender(Arc<CallChannel>);

/// Dropping the receiver rejects further events.
#[derive(Debug)]
pub(super) struct CallReceiver(Arc<CallChannel>);

#[derive(Debug, Default)]
struct CallChannel {
    queue: Mutex<Queue>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<(CallEvent, usize)>,
    bytes: usize,
    is_over: bool,
    is_left: bool,
}

pub(super) fn call_channel() -> (CallSender, CallReceiver) {
    let call_channel = Arc::default();
    (CallSender(Arc::clone(&call_channel)), CallReceiver(call_channel))
}

impl CallSender {
    /// Queues an event of `size` bytes, or returns it if there is no room.
    pub(super) fn put(&self, event: CallEvent, size: usize) -> Result<(), CallEvent> {
        let queue = self.0.queue();
        let is_full = queue.events.len() >= UNREAD
            || (!queue.events.is_empty() && queue.bytes.saturating_add(size) > UNREAD_BYTES);
        if is_full || queue.is_left {
            return Err(event);
        }
        self.0.add(queue, event, size);
        Ok(())
    }

    pub(super) fn finish(self, event: CallEvent) {
        let queue = self.0.queue();
        if !queue.is_left {
            self.0.add(queue, event, 0);
        }
    }
}

impl Drop for CallSender {
    fn drop(&mut self) {
        self.0.queue().is_over = true;
        self.0.news.notify_one();
    }
}

impl CallReceiver {
    /// Returns the next event, or `None` when the channel is closed and empty.
    pub(super) async fn next(&mut self) -> Option<CallEvent> {
        loop {
            {
                let mut queue = self.0.queue();
                if let Some((event, size)) = queue.events.pop_front() {
                    queue.bytes = queue.bytes.saturating_sub(size);
                    return Some(event);
                }
                if queue.is_over {
                    return None;
                }
            }
            self.0.news.notified().await;
        }
    }
}

impl Drop for CallReceiver {
    fn drop(&mut self) {
        let unread = {
            let mut queue = self.0.queue();
            queue.is_left = true;
            std::mem::take(&mut queue.events)
        };
        drop(unread);
    }
}

impl CallChannel {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, mut queue: MutexGuard<'_, Queue>, event: CallEvent, size: usize) {
        queue.bytes = queue.bytes.saturating_add(size);
        queue.events.push_back((event, size));
        drop(queue);
        self.news.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::message::Notification;

    fn note(method: &str) -> CallEvent {
        CallEvent::Notification(Notification { method: method.to_owned(), params: None })
    }

    #[tokio::test]
    async fn a_receiver_gets_all_events_in_order_and_then_the_end() {
        let (slot, mut mail) = call_channel();
        let reading = tokio::spawn(async move {
            let mut received = Vec::new();
            while let Some(event) = mail.next().await {
                received.push(match event {
                    CallEvent::Notification(notification) => notification.method,
                    _ => "lost".to_owned(),
                });
            }
            received
        });
        for number in 0..100 {
            slot.put(note(&number.to_string()), 1).unwrap();
            tokio::task::yield_now().await;
        }
        slot.finish(CallEvent::Lost(Error::NoAnswer));
        let expected: Vec<String> =
            (0..100).map(|number| number.to_string()).chain(["lost".to_owned()]).collect();
        assert_eq!(reading.await.unwrap(), expected);
    }

    #[tokio::test]
    async fn a_dropped_receiver_keeps_nothing_and_a_dropped_sender_is_the_end() {
        let (slot, mut mail) = call_channel();
        slot.put(note("read"), 1).unwrap();
        drop(slot);
        assert!(mail.next().await.is_some());
        assert!(mail.next().await.is_none());
        let (slot, mail) = call_channel();
        slot.put(note("unread"), 1).unwrap();
        drop(mail);
        assert!(slot.put(note("late"), 1).is_err());
        assert!(slot.0.queue().events.is_empty());
        slot.finish(CallEvent::Lost(Error::NoAnswer));
    }
}
