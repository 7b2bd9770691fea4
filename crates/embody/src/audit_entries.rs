//! The audit chain as a person reads it: one entry per call, with its intent and its outcome joined.

use std::collections::HashMap;

use embody_broker::approval::{EXPIRED_UNANSWERED, EXPIRED_UNUSED};
use embody_broker::policy::Glob;
use embody_store::Store;
use embody_store::audit::{AuditRange, AuditRecord};
use serde_json::{Map, Value, json};

use crate::error::CliError;
use crate::time;

/// Records that are read for one command.
const SEARCHED: usize = 200_000;

/// How long after the end of a range the outcome of a call of the range is searched for, in microseconds.
const OUTCOME_WAIT_US: i64 = 24 * 3600 * 1_000_000;

/// The outcome of a write whose outcome is not recorded.
pub(crate) const OPEN: &str = "open";
/// Every outcome of an entry.
pub(crate) const OUTCOMES: [&str; 11] =
    ["done", "failed", "denied", EXPIRED, "unknown", OPEN, "pending", "bounce", "held", "blocked", "timeout"];
/// The outcome of a call whose approval expired, with or without an answer.
pub(crate) const EXPIRED: &str = "expired";
/// How the broker's reasons for it begin.
const EXPIRED_REASONS: [&str; 2] = [EXPIRED_UNANSWERED, EXPIRED_UNUSED];

/// A record; of a write, with the record of its outcome.
#[derive(Clone)]
pub(crate) struct AuditEntry {
    pub(crate) record: AuditRecord,
    /// The detail of the record; empty if it is not a JSON object.
    pub(crate) detail: Map<String, Value>,
    pub(crate) end: Option<AuditRecord>,
}

impl AuditEntry {
    pub(crate) fn new(record: AuditRecord, end: Option<AuditRecord>) -> Self {
        let detail = serde_json::from_str(&record.detail).unwrap_or_default();
        Self { record, detail, end }
    }

    pub(crate) fn text(&self, member: &str) -> Option<&str> {
        self.detail.get(member)?.as_str()
    }

    /// What the call came to; `None` for a record that is not about a call.
    pub(crate) fn outcome(&self) -> Option<String> {
        let is_expired = || {
            let reason = self.text("reason").unwrap_or_default();
            EXPIRED_REASONS.iter().any(|begin| reason.starts_with(begin))
        };
        let own = || match self.text("outcome").or_else(|| self.text("decision")) {
            Some("timeout") if self.record.event == "decision" && is_expired() => Some(EXPIRED),
            own => own,
        };
        let outcome = match &self.end {
            Some(end) => end.text("outcome"),
            None if self.record.event == "intent" => Some(OPEN.to_owned()),
            None => own().map(str::to_owned),
        };
        outcome.map(|outcome| if outcome == "deny" { "denied".to_owned() } else { outcome })
    }

    pub(crate) fn json(&self) -> Value {
        let AuditRecord { chain, seq, id, at, user, agent, session, channel, event, detail, mac } =
            &self.record;
        let detail = match self.detail.is_empty() {
            true => Value::from(detail.as_str()),
            false => Value::Object(self.detail.clone()),
        };
        json!({
            "chain": chain, "seq": seq, "id": id, "at": time::rfc3339(*at), "user": user, "agent": agent,
            "session": session, "channel": channel, "event": event, "detail": detail, "mac": mac,
            "outcome": self.outcome(),
            "ended_at": self.end.as_ref().map(|end| time::rfc3339(end.at)),
            "outcome_detail": self.end.as_ref().and_then(|end| end.text("detail")),
        })
    }
}

/// Joins outcomes to their intents; takes records newest first.
#[derive(Default)]
pub(crate) struct Joiner {
    ends: HashMap<(String, String), AuditRecord>,
}

impl Joiner {
    pub(crate) fn add(&mut self, record: AuditRecord) -> Option<AuditEntry> {
        let call = |record: &AuditRecord| Some((record.user.clone(), record.text("call_id")?));
        match record.event.as_str() {
            "outcome" => {
                // Of several, the last one counts.
                if let Some(call) = call(&record) {
                    self.ends.entry(call).or_insert(record);
                }
                None
            }
            "intent" => {
                let end = call(&record).and_then(|call| self.ends.remove(&call));
                Some(AuditEntry::new(record, end))
            }
            _ => Some(AuditEntry::new(record, None)),
        }
    }

    /// Outcomes whose intents were not among the records.
    pub(crate) fn rest(self) -> impl Iterator<Item = AuditEntry> {
        self.ends.into_values().map(|record| AuditEntry::new(record, None))
    }
}

/// Which entries are wanted, besides their time and user.
#[derive(Default)]
pub(crate) struct EntryFilter {
    pub(crate) tool: Option<Glob>,
    pub(crate) body: Option<String>,
    pub(crate) outcome: Option<String>,
}

impl EntryFilter {
    pub(crate) fn matches(&self, entry: &AuditEntry) -> bool {
        let (body, tool) = (entry.text("body").unwrap_or_default(), entry.text("tool").unwrap_or_default());
        self.tool.as_ref().is_none_or(|glob| !tool.is_empty() && glob.matches(body, tool))
            && self.body.as_ref().is_none_or(|wanted| wanted == body)
            && self.outcome.as_ref().is_none_or(|wanted| entry.outcome().as_ref() == Some(wanted))
    }
}

/// Up to `count` entries of a range, the newest, oldest first; and whether the search ended early. A call belongs to the range
/// in which it began, also if it ended up to a day later.
pub(crate) async fn read(
    store: &Store,
    range: AuditRange,
    filter: &EntryFilter,
    count: usize,
) -> Result<(Vec<AuditEntry>, bool), CliError> {
    let until = range.until;
    let range = AuditRange { until: until.saturating_add(OUTCOME_WAIT_US), ..range };
    let (mut tail, mut joiner) = (store.audit().newest_first(range), Joiner::default());
    let is_wanted = |entry: &AuditEntry| entry.record.at < until && filter.matches(entry);
    let (mut entries, mut searched) = (Vec::new(), 0);
    while entries.len() < count && searched < SEARCHED {
        let page = tail.next().await?;
        if page.is_empty() {
            entries.extend(joiner.rest().filter(is_wanted));
            entries.sort_by_key(|entry| std::cmp::Reverse((entry.record.at, entry.record.seq)));
            searched = 0;
            break;
        }
        searched += page.iter().filter(|record| record.at < until).count();
        entries.extend(page.into_iter().filter_map(|record| joiner.add(record)).filter(is_wanted));
    }
    let is_cut = searched >= SEARCHED && entries.len() < count;
    entries.truncate(count);
    entries.reverse();
    Ok((entries, is_cut))
}

#[cfg(test)]
mod tests {
    use embody_store::DatabaseUrl;
    use embody_store::audit::{
        Actor, AuditOutcome, AuditedCall, CallEnd, Event, Intent, Record, RedactedArguments,
    };

    use super::*;

    #[tokio::test]
    async fn a_call_that_ends_after_the_range_has_its_outcome() {
        let store = Store::open(DatabaseUrl::Memory).await.unwrap();
        let actor = || Actor { user: "ann".into(), agent: None, session: None, channel: None };
        let begin = async |id: &str| {
            let args = RedactedArguments::of("{}");
            let call = AuditedCall {
                call_id: id.into(),
                body: "mail".into(),
                tool: "send".into(),
                class: "write".into(),
                args,
            };
            let event = Event::Intent(Intent { call, approval: None });
            store.audit().append(Record { actor: actor(), event }).await.unwrap();
        };
        let end = async |id: &str| {
            let event =
                Event::Outcome(CallEnd { call_id: id.into(), outcome: AuditOutcome::Done, detail: None });
            store.audit().append(Record { actor: actor(), event }).await.unwrap();
        };
        begin("1").await;
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        begin("2").await;
        end("1").await;
        end("2").await;
        let records = store.audit().tail(10, None).await.unwrap();
        let range = |since: i64, until: i64| AuditRange { user: None, since, until };
        let found = async |range: AuditRange| -> Vec<(Option<String>, Option<String>)> {
            let (entries, is_cut) = read(&store, range, &EntryFilter::default(), 10).await.unwrap();
            assert!(!is_cut);
            entries.iter().map(|entry| (entry.text("call_id").map(str::to_owned), entry.outcome())).collect()
        };
        let done = |id: &str| (Some(id.to_owned()), Some("done".to_owned()));
        assert_eq!(found(range(i64::MIN, i64::MAX)).await, [done("1"), done("2")]);
        assert_eq!(found(range(i64::MIN, records[1].at)).await, [done("1")]);
        assert_eq!(found(range(i64::MIN, records[0].at)).await, []);
    }
}
