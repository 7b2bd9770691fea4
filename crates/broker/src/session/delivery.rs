//! Whether the model of this conversation can have read the contract before it made a call. `contract` defines the contract
//! itself.
//!
//! The protocol does not tell which model turn a call belongs to, so the order of requests is not enough: a host that runs
//! the calls of one turn in sequence sends the second after the result of the first, although the model made both before it
//! read anything. The contract counts as read:
//!
//! - after a bounce, with a call that repeats a bounced call exactly, because the model must have read the result; then for
//!   every later call.
//! - after `runtime_bootstrap`, for every later call.
//! - never for a call that arrives sooner than a model can respond: a host that runs calls in sequence sends the next within
//!   milliseconds, and no hosted model returns a whole tool call within `policy.contract_delay_ms`.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use embody_store::sessions::ContractState;
use tokio::time::Instant;

use super::lock;

const BOUNCED_MAX: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    Bounce(blake3::Hash),
    /// The model requested it with `runtime_bootstrap`.
    Bootstrap,
}

#[derive(Debug, Default)]
pub(crate) struct Delivery {
    state: Mutex<DeliveryState>,
}

#[derive(Debug, Default)]
struct DeliveryState {
    conversation: i64,
    written: Option<WrittenContract>,
    bounced: VecDeque<blake3::Hash>,
}

#[derive(Debug)]
struct WrittenContract {
    hash: String,
    after: u64,
    /// A call that arrives earlier was made before; `None` if another process wrote the contract.
    earliest: Option<Instant>,
    read: ReadCondition,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadCondition {
    Yes,
    /// Once a bounced call is repeated.
    OnRepeat,
    /// With the next call that can have been made after it.
    OnNext,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) number: u64,
    pub(crate) at: Instant,
    pub(crate) digest: blake3::Hash,
}

impl Delivery {
    pub(crate) fn conversation(&self) -> i64 {
        lock(&self.state).conversation
    }

    /// Notes that the whole contract was written in this conversation after this many requests. Calls that arrive within
    /// `delay` were made before.
    pub(crate) fn written(
        &self,
        conversation: i64,
        hash: &str,
        after: u64,
        carrier: Carrier,
        delay: Duration,
    ) {
        let read = match carrier {
            Carrier::Bounce(_) => ReadCondition::OnRepeat,
            Carrier::Bootstrap => ReadCondition::OnNext,
        };
        let earliest = Some(Instant::now() + delay);
        let mut state = lock(&self.state);
        if conversation != state.conversation {
            return;
        }
        match &mut state.written {
            // The first delivery counts; a later one can only confirm it.
            Some(known) if known.hash == hash => {
                if known.read == ReadCondition::OnRepeat && read == ReadCondition::OnNext {
                    (known.after, known.earliest, known.read) = (after, earliest, read);
                }
            }
            written => *written = Some(WrittenContract { hash: hash.to_owned(), after, earliest, read }),
        }
    }

    /// Merges the stored state, from another process or from before a restart.
    pub(crate) fn merge_stored(&self, conversation: i64, known: &ContractState) {
        let mut state = lock(&self.state);
        state.enter(conversation);
        let (hash, read) = match known {
            _ if conversation < state.conversation => return,
            ContractState::Unwritten => return,
            ContractState::Written { hash, bounced } => {
                if state.written.as_ref().is_some_and(|written| written.hash == *hash) {
                    return;
                }
                state.bounced.extend(bounced.as_ref().and_then(|digest| blake3::Hash::from_hex(digest).ok()));
                (hash.clone(), ReadCondition::OnRepeat)
            }
            ContractState::Delivered { hash } => (hash.clone(), ReadCondition::Yes),
        };
        state.written = Some(WrittenContract { hash, after: 0, earliest: None, read });
    }

    /// Starts a new conversation, which has read nothing; ignores the stored state of the previous one.
    pub(crate) fn withdraw(&self) {
        let mut state = lock(&self.state);
        let next = state.conversation + 1;
        state.enter(next);
    }

    pub(crate) fn bounced(&self, digest: blake3::Hash) {
        let bounced = &mut lock(&self.state).bounced;
        if !bounced.contains(&digest) {
            bounced.push_back(digest);
            let surplus = bounced.len().saturating_sub(BOUNCED_MAX);
            bounced.drain(..surplus);
        }
    }

    /// Whether the model can have read this contract before it made this call. Calls `on_first` when that becomes known.
    pub(crate) fn covers(
        &self,
        hash: &str,
        call: impl FnOnce() -> Arrival,
        on_first: impl FnOnce(i64),
    ) -> bool {
        let mut state = lock(&self.state);
        let DeliveryState { conversation, written, bounced } = &mut *state;
        let Some(known) = written.as_mut().filter(|known| known.hash == hash) else { return false };
        let call = call();
        if call.number <= known.after {
            return false;
        }
        let is_read = match known.read {
            ReadCondition::Yes => return true,
            _ if known.earliest.is_some_and(|earliest| call.at < earliest) => false,
            ReadCondition::OnNext => true,
            ReadCondition::OnRepeat => bounced.contains(&call.digest),
        };
        if is_read {
            known.read = ReadCondition::Yes;
            bounced.clear();
            on_first(*conversation);
        }
        is_read
    }

    pub(crate) fn is_read(&self) -> bool {
        lock(&self.state).written.as_ref().is_some_and(|known| known.read == ReadCondition::Yes)
    }

    pub(crate) fn is_written(&self, hash: &str) -> bool {
        lock(&self.state).written.as_ref().is_some_and(|known| known.hash == hash)
    }

    pub(crate) fn has_happened(&self) -> bool {
        lock(&self.state).written.is_some()
    }
}

impl DeliveryState {
    fn enter(&mut self, conversation: i64) {
        if conversation > self.conversation {
            *self = Self { conversation, ..Self::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_millis(250);

    fn call(number: u64, what: &str) -> Arrival {
        Arrival { number, at: Instant::now(), digest: blake3::hash(what.as_bytes()) }
    }

    fn covers(delivery: &Delivery, hash: &str, call: Arrival) -> bool {
        delivery.covers(hash, || call, |_| ())
    }

    // spec: N-12
    #[test]
    fn only_what_arrives_after_the_writing_counts() {
        let delivery = Delivery::default();
        assert!(!covers(&delivery, "a", call(9, "x")));
        delivery.written(0, "a", 3, Carrier::Bootstrap, Duration::ZERO);
        assert!(!covers(&delivery, "a", call(3, "x")), "it arrived before the contract was written");
        assert!(covers(&delivery, "a", call(4, "x")));
        assert!(!covers(&delivery, "b", call(4, "x")), "another contract");
        delivery.written(0, "a", 10, Carrier::Bootstrap, Duration::ZERO);
        assert!(covers(&delivery, "a", call(4, "x")), "the first writing counts");
        delivery.written(0, "b", 12, Carrier::Bootstrap, Duration::ZERO);
        assert!(!covers(&delivery, "b", call(12, "x")) && covers(&delivery, "b", call(13, "x")));
        delivery.withdraw();
        assert!(!covers(&delivery, "b", call(14, "x")), "a new conversation has read nothing");
    }

    // spec: N-12
    #[test]
    fn after_a_bounce_the_other_writes_of_the_same_answer_bounce_too() {
        let delivery = Delivery::default();
        delivery.bounced(call(1, "first").digest);
        delivery.written(0, "a", 1, Carrier::Bounce(call(1, "first").digest), Duration::ZERO);
        assert!(!covers(&delivery, "a", call(2, "second")), "the model made it before it read the contract");
        delivery.bounced(call(2, "second").digest);
        assert!(covers(&delivery, "a", call(3, "second")), "a repetition answers the bounce");
        assert!(covers(&delivery, "a", call(4, "third")), "and from then on everything counts");
    }

    // spec: N-12
    #[test]
    fn a_host_that_runs_calls_in_sequence_cannot_hide_a_second_call_of_one_answer() {
        for carrier in [Carrier::Bounce(call(1, "x").digest), Carrier::Bootstrap] {
            let delivery = Delivery::default();
            delivery.bounced(call(1, "x").digest);
            delivery.written(0, "a", 1, carrier, DELAY);
            assert!(!covers(&delivery, "a", call(2, "x")), "{carrier:?}: no model answers that soon");
            let later = Arrival { at: Instant::now() + DELAY, ..call(3, "x") };
            assert!(covers(&delivery, "a", later), "{carrier:?}: a model has had the time to read it");
        }
    }

    // spec: N-12
    #[test]
    fn what_comes_late_about_an_earlier_conversation_does_not_count() {
        let delivery = Delivery::default();
        let bounced = call(0, "bounced").digest.to_hex().to_string();
        let written = ContractState::Written { hash: "a".to_owned(), bounced: Some(bounced) };
        let delivered = ContractState::Delivered { hash: "a".to_owned() };
        delivery.withdraw();
        delivery.written(0, "a", 1, Carrier::Bootstrap, Duration::ZERO);
        delivery.merge_stored(0, &delivered);
        assert!(!covers(&delivery, "a", call(2, "x")), "the store may not know yet that it has ended");
        delivery.merge_stored(1, &written);
        assert!(
            !covers(&delivery, "a", call(3, "x")),
            "which calls another process has bounced is not known"
        );
        delivery.merge_stored(1, &delivered);
        assert!(covers(&delivery, "a", call(4, "x")), "another process knows that it was read");
        delivery.withdraw();
        delivery.merge_stored(2, &written);
        assert!(covers(&delivery, "a", call(4, "bounced")), "it repeats what another process has bounced");
        delivery.merge_stored(3, &ContractState::Unwritten);
        assert!(!covers(&delivery, "a", call(5, "x")), "another process has begun a new one");
    }

    #[test]
    fn a_bootstrap_after_a_bounce_settles_it() {
        let delivery = Delivery::default();
        delivery.bounced(call(1, "first").digest);
        delivery.written(0, "a", 1, Carrier::Bounce(call(1, "first").digest), Duration::ZERO);
        delivery.written(0, "a", 2, Carrier::Bootstrap, Duration::ZERO);
        assert!(covers(&delivery, "a", call(3, "other")));
    }
}
