//! Whether the model of this conversation can have read the contract when it made a call. Owns what is known of that; what
//! a contract is, `contract` says.
//!
//! The protocol does not tell which model answer a call belongs to, so the order of requests alone is not enough: a host
//! that runs the calls of one answer one after the other sends the second one after the result of the first, and the model
//! made both before it read anything. What counts as read:
//!
//! - after a bounce, a call that repeats a bounced call exactly: the model has read the result that asks for it. From then
//!   on every call counts.
//! - after `runtime_bootstrap`, every later call; but not one that a host known to run calls in sequence sends sooner than
//!   a model can answer ([`FASTEST_ANSWER`]).

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use embody_store::ContractState;
use embody_wire::serve::Hello;
use serde_json::Value;
use tokio::time::Instant;

/// No hosted model returns a whole tool call sooner than this after it was sent a result; a host that runs calls in sequence
/// sends the next one within a few milliseconds.
const FASTEST_ANSWER: Duration = Duration::from_millis(250);
/// Bounced calls that are remembered.
const BOUNCED_MAX: usize = 64;
/// `clientInfo.name` of hosts that run the calls of one model answer one after the other.
const SEQUENTIAL_HOSTS: [&str; 2] = ["claude-code", "codex-mcp-client"];

/// Which result carries the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// A call was bounced.
    Bounce,
    /// The model asked for it with `runtime_bootstrap`.
    Bootstrap,
}

/// Which contract was written to the host, and whether its model can have read it.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Which conversation of the session runs, by the store's count.
    conversation: i64,
    written: Option<Written>,
    /// The last calls that were bounced.
    bounced: VecDeque<blake3::Hash>,
}

#[derive(Debug)]
struct Written {
    hash: String,
    /// The last request that had arrived by then.
    after: u64,
    read: Read,
    /// A call was covered by it.
    was_used: bool,
}

/// When the model counts as having read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Read {
    /// It has.
    Yes,
    /// Once a bounced call comes again.
    OnRepeat,
    /// From this moment on, or once a bounced call comes again.
    From(Instant),
}

/// One call, as far as it matters here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    /// Its place among the requests of its host.
    pub(crate) number: u64,
    pub(crate) at: Instant,
    /// Server, tool and arguments.
    pub(crate) digest: blake3::Hash,
}

impl Delivery {
    /// The conversation that runs.
    pub(crate) fn conversation(&self) -> i64 {
        self.lock().conversation
    }

    /// The whole contract was written in this conversation, after so many requests had arrived.
    pub(crate) fn written(&self, conversation: i64, hash: &str, after: u64, carrier: Carrier, host: &Hello) {
        let read = match carrier {
            Carrier::Bounce => Read::OnRepeat,
            Carrier::Bootstrap if is_sequential(host) => Read::From(Instant::now() + FASTEST_ANSWER),
            Carrier::Bootstrap => Read::Yes,
        };
        let mut state = self.lock();
        if conversation != state.conversation {
            return;
        }
        match &mut state.written {
            // The first delivery counts; a later one can only make it surer.
            Some(known) if known.hash == hash => {
                if known.read == Read::OnRepeat && read != Read::OnRepeat {
                    (known.after, known.read) = (after, read);
                }
            }
            written => *written = Some(Written { hash: hash.to_owned(), after, read, was_used: false }),
        }
    }

    /// What another process knows of it, or this one knew before it was started again. Which calls another process has bounced
    /// is not known here, so whatever it has written counts as read.
    pub(crate) fn learn(&self, conversation: i64, known: &ContractState) {
        let mut state = self.lock();
        state.enter(conversation);
        let (hash, is_read) = match known {
            _ if conversation < state.conversation => return,
            ContractState::Unwritten => return,
            ContractState::Written { hash } => (hash, false),
            ContractState::Delivered { hash } => (hash, true),
        };
        let written = &mut state.written;
        if is_read || written.as_ref().is_none_or(|known| known.hash != *hash) {
            *written = Some(Written { hash: hash.clone(), after: 0, read: Read::Yes, was_used: is_read });
        }
    }

    /// A new conversation begins, whose number the store has not given yet: it has read nothing.
    pub(crate) fn withdraw(&self) {
        let mut state = self.lock();
        *state = State { conversation: state.conversation, ..State::default() };
    }

    /// The store has counted a conversation. A new one has read nothing.
    pub(crate) fn enter(&self, conversation: i64) {
        self.lock().enter(conversation);
    }

    /// This call was bounced.
    pub(crate) fn bounced(&self, digest: blake3::Hash) {
        let bounced = &mut self.lock().bounced;
        if !bounced.contains(&digest) {
            bounced.push_back(digest);
            let surplus = bounced.len().saturating_sub(BOUNCED_MAX);
            bounced.drain(..surplus);
        }
    }

    /// Whether the model can have read this contract when it made this call. `on_first` is called when that becomes known.
    pub(crate) fn covers(
        &self,
        hash: &str,
        call: impl FnOnce() -> Arrival,
        on_first: impl FnOnce(i64),
    ) -> bool {
        let mut state = self.lock();
        let State { conversation, written, bounced } = &mut *state;
        let Some(known) = written.as_mut().filter(|known| known.hash == hash) else { return false };
        let call = call();
        if call.number <= known.after {
            return false;
        }
        let is_read = match known.read {
            Read::Yes => true,
            Read::From(moment) if call.at >= moment => true,
            Read::From(_) | Read::OnRepeat => bounced.contains(&call.digest),
        };
        if is_read {
            known.read = Read::Yes;
            if !std::mem::replace(&mut known.was_used, true) {
                on_first(*conversation);
            }
        }
        is_read
    }

    /// Whether the model is known to have read a contract.
    pub(crate) fn is_read(&self) -> bool {
        self.lock().written.as_ref().is_some_and(|known| known.read == Read::Yes)
    }

    /// Whether this contract was written.
    pub(crate) fn is_written(&self, hash: &str) -> bool {
        self.lock().written.as_ref().is_some_and(|known| known.hash == hash)
    }

    /// Whether any contract was written.
    pub(crate) fn has_happened(&self) -> bool {
        self.lock().written.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn enter(&mut self, conversation: i64) {
        if conversation > self.conversation {
            *self = Self { conversation, ..Self::default() };
        }
    }
}

fn is_sequential(host: &Hello) -> bool {
    let client = host.client.as_deref().and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    let name = client.as_ref().and_then(|client| client.get("name")).and_then(Value::as_str);
    name.is_some_and(|name| SEQUENTIAL_HOSTS.contains(&name))
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    fn call(number: u64, what: &str) -> Arrival {
        Arrival { number, at: Instant::now(), digest: blake3::hash(what.as_bytes()) }
    }

    fn covers(delivery: &Delivery, hash: &str, call: Arrival) -> bool {
        delivery.covers(hash, || call, |_| ())
    }

    fn named(name: &str) -> Hello {
        let client = RawValue::from_string(format!("{{\"name\":\"{name}\",\"version\":\"1\"}}")).unwrap();
        Hello { client: Some(client), ..Hello::default() }
    }

    // spec: N-12
    #[test]
    fn only_what_arrives_after_the_writing_counts() {
        let delivery = Delivery::default();
        assert!(!covers(&delivery, "a", call(9, "x")));
        delivery.written(0, "a", 3, Carrier::Bootstrap, &named("host"));
        assert!(!covers(&delivery, "a", call(3, "x")), "it arrived before the contract was written");
        assert!(covers(&delivery, "a", call(4, "x")));
        assert!(!covers(&delivery, "b", call(4, "x")), "another contract");
        delivery.written(0, "a", 10, Carrier::Bootstrap, &named("host"));
        assert!(covers(&delivery, "a", call(4, "x")), "the first writing counts");
        delivery.written(0, "b", 12, Carrier::Bootstrap, &named("host"));
        assert!(!covers(&delivery, "b", call(12, "x")) && covers(&delivery, "b", call(13, "x")));
        delivery.withdraw();
        assert!(!covers(&delivery, "b", call(14, "x")), "a new conversation has read nothing");
    }

    // spec: N-12
    #[test]
    fn after_a_bounce_the_other_writes_of_the_same_answer_bounce_too() {
        let delivery = Delivery::default();
        delivery.bounced(call(1, "first").digest);
        delivery.written(0, "a", 1, Carrier::Bounce, &named("host"));
        assert!(!covers(&delivery, "a", call(2, "second")), "the model made it before it read the contract");
        delivery.bounced(call(2, "second").digest);
        assert!(covers(&delivery, "a", call(3, "second")), "a repetition answers the bounce");
        assert!(covers(&delivery, "a", call(4, "third")), "and from then on everything counts");
    }

    // spec: N-12
    #[test]
    fn a_host_that_runs_calls_in_sequence_cannot_hide_one_behind_the_bootstrap() {
        for (name, passes) in [("claude-code", false), ("codex-mcp-client", false), ("opencode", true)] {
            let delivery = Delivery::default();
            delivery.written(0, "a", 1, Carrier::Bootstrap, &named(name));
            assert_eq!(covers(&delivery, "a", call(2, "x")), passes, "{name}");
            let later = Arrival { at: Instant::now() + FASTEST_ANSWER, ..call(3, "y") };
            assert!(covers(&delivery, "a", later), "{name}: a model has had the time to read it");
        }
    }

    // spec: N-12
    #[test]
    fn what_comes_late_about_an_earlier_conversation_does_not_count() {
        let delivery = Delivery::default();
        let written = ContractState::Written { hash: "a".to_owned() };
        delivery.enter(2);
        delivery.written(1, "a", 1, Carrier::Bootstrap, &named("host"));
        delivery.learn(1, &written);
        assert!(!covers(&delivery, "a", call(2, "x")));
        delivery.learn(2, &written);
        delivery.enter(2);
        assert!(covers(&delivery, "a", call(3, "x")), "another process has written it in this one");
        delivery.learn(3, &ContractState::Unwritten);
        assert!(!covers(&delivery, "a", call(4, "x")), "another process has begun a new one");
    }

    #[test]
    fn a_bootstrap_after_a_bounce_settles_it() {
        let delivery = Delivery::default();
        delivery.bounced(call(1, "first").digest);
        delivery.written(0, "a", 1, Carrier::Bounce, &named("host"));
        delivery.written(0, "a", 2, Carrier::Bootstrap, &named("host"));
        assert!(covers(&delivery, "a", call(3, "other")));
    }
}
