//! How unusual a call is: reads the two profiles that know, asks each part for its doubt, and joins them. Learning is the
//! same profiles, changed in one transaction.

mod codec;
mod heard;
mod order;
mod paths;
#[cfg(test)]
mod tests;
mod tool;
mod weigh;

use std::collections::BTreeMap;

use embody_store::{Scope, Store, UsageProfile};

use self::heard::Heard;
use self::order::Order;
use self::tool::Tool;
use self::weigh::{COLD_CALLS, Doubt, join};
use super::call::Reading;
use crate::caller::Caller;
use crate::error::Result;
use crate::moment::Moment;

/// Doubts that weigh less are not worth a sentence.
const WORTH_SAYING: f64 = 0.1;
const ORDER: &str = "order";
const HEARD: &str = "heard";

/// How unusual, and why.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Surprise {
    pub(super) prediction_error: f64,
    pub(super) reasons: Vec<String>,
}

/// Compares a call with what is usual. Writes nothing.
pub(super) async fn assess(
    store: &Store,
    caller: &Caller,
    reading: &Reading,
    now: &Moment,
) -> Result<Surprise> {
    let hasher = Hasher::new(&caller.scope);
    let subject = subject(hasher.tool(&reading.tool));
    let habits = store.usage_profiles(&caller.scope, &[ORDER.to_owned(), subject.clone()]).await?;
    let habits = habits.into_iter().map(|habit| (habit.subject, habit.data)).collect();
    let (order, tool) = profiles(&habits, &subject, now);
    Ok(compare(&order, &tool, reading, caller, &hasher, now))
}

/// Counts a call that is over as usual, unless it was counted under this key before.
pub(super) async fn learn(
    store: &Store,
    caller: &Caller,
    reading: &Reading,
    key: &str,
    now: &Moment,
) -> Result<()> {
    let hasher = Hasher::new(&caller.scope);
    let subject = subject(hasher.tool(&reading.tool));
    let subjects = vec![HEARD.to_owned(), ORDER.to_owned(), subject.clone()];
    let key = hasher.key(key);
    let (scope, caller, reading, now) = (caller.scope.clone(), caller.clone(), reading.clone(), now.clone());
    let at = now.micros();
    let change = move |habits: BTreeMap<String, Vec<u8>>| {
        let mut heard = Heard::read(habits.get(HEARD).map(Vec::as_slice).unwrap_or_default());
        if !heard.is_new(key) {
            return Vec::new();
        }
        let (mut order, mut tool) = profiles(&habits, &subject, &now);
        tool.learn(&reading, &hasher);
        let gone = order.learn(&reading, &caller, &hasher, &now);
        let gone = gone.map(|tool| UsageProfile { subject: self::subject(tool), data: Vec::new() });
        let kept = [
            UsageProfile { subject: HEARD.to_owned(), data: heard.pack() },
            UsageProfile { subject: ORDER.to_owned(), data: order.pack() },
            UsageProfile { subject, data: tool.pack() },
        ];
        gone.into_iter().chain(kept).collect()
    };
    Ok(store.update_usage_profiles(&scope, subjects, at, change).await?)
}

fn profiles(habits: &BTreeMap<String, Vec<u8>>, subject: &str, now: &Moment) -> (Order, Tool) {
    let data = |subject: &str| habits.get(subject).map(Vec::as_slice).unwrap_or_default();
    let minutes = u32::try_from(now.micros() / 60_000_000).unwrap_or(0);
    (Order::read(data(ORDER), minutes), Tool::read(data(subject), minutes))
}

fn compare(
    order: &Order,
    tool: &Tool,
    reading: &Reading,
    caller: &Caller,
    hasher: &Hasher,
    now: &Moment,
) -> Surprise {
    let parts = [
        order.doubt(reading, caller, hasher),
        order.hour(now),
        tool.values(reading, hasher),
        tool.sizes(reading, hasher),
        tool.outcome(reading),
    ];
    let mut doubts: Vec<Doubt> = parts.into_iter().flatten().collect();
    let prediction_error = join(&doubts, order.calls);
    doubts.sort_by(|one, other| other.weight.total_cmp(&one.weight));
    let worth = doubts.into_iter().filter(|doubt| doubt.weight >= WORTH_SAYING);
    let mut reasons: Vec<String> = worth.map(|doubt| doubt.reason).collect();
    if order.calls < COLD_CALLS {
        let seen = if order.calls == 1 { "call was seen" } else { "calls were seen" };
        reasons.push(format!("only {} {seen} so far: little is known of what is usual", order.calls));
    }
    Surprise { prediction_error, reasons }
}

fn subject(tool: u64) -> String {
    format!("tool {tool:016x}")
}

/// Names and values as numbers. Those of two scopes differ, so that nobody can compare them.
#[derive(Clone)]
pub(super) struct Hasher {
    scope: blake3::Hasher,
}

impl Hasher {
    fn new(scope: &Scope) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("embody mind habits");
        for part in [scope.user(), scope.agent()] {
            hasher.update(part.as_bytes()).update(&[0]);
        }
        Self { scope: hasher }
    }

    fn tool(&self, name: &str) -> u64 {
        self.hash(b"tool", &[name])
    }

    fn key(&self, key: &str) -> u64 {
        self.hash(b"key", &[key])
    }

    fn pair(&self, one: u64, other: u64) -> u64 {
        self.hash(b"pair", &[&one.to_string(), &other.to_string()])
    }

    fn session(&self, caller: &Caller) -> u64 {
        self.hash(b"session", &[caller.session.as_deref().unwrap_or_default()])
    }

    fn path(&self, path: &str) -> u64 {
        self.hash(b"path", &[path])
    }

    fn list(&self, path: &str) -> u64 {
        self.hash(b"list", &[path])
    }

    /// Where the homes of a path's values are counted: domains, hosts, folders.
    fn home(&self, path: &str, what: &str) -> u64 {
        self.hash(b"home", &[path, what])
    }

    fn value(&self, path: &str, text: &str) -> u64 {
        self.hash(b"value", &[path, &text.trim().to_lowercase()])
    }

    fn hash(&self, sort: &[u8], parts: &[&str]) -> u64 {
        let mut hasher = self.scope.clone();
        hasher.update(sort);
        for part in parts {
            hasher.update(&[0]).update(part.as_bytes());
        }
        let [a, b, c, d, e, f, g, h, ..] = *hasher.finalize().as_bytes();
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}
