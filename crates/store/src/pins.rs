//! Pins of tool definitions: the first seen definition holds until the operator accepts another. No user owns a pin.
//!

use std::collections::{HashMap, HashSet};

use crate::areas::Pins;
use crate::audit::Action;
use crate::changes::Topic;
use crate::db::{Conn, args, audited, from_row, transaction};
use crate::error::Result;
use crate::store::{check_name, check_text, now};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// As the server sent it; at most 1 MiB.
    pub text: String,
    /// Equal for equal definitions.
    pub hash: String,
}

#[derive(Clone, Debug)]
pub struct SeenTool {
    pub body: String,
    pub tool: String,
    pub definition: Definition,
    /// Whether it may be pinned at first sight; otherwise it is quarantined until the operator accepts it.
    pub acceptable: bool,
    /// Hashes a stored definition (tool name, text) the way `definition.hash` was made, to compare pins stored with
    /// an older hash. `None` for an unreadable one.
    pub rehash: fn(&str, &str) -> Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PinState {
    /// Seen for the first time, and pinned now.
    First,
    /// Appeared on a body whose other tools were known before, and not accepted by the operator.
    New,
    Same,
    /// The pinned definition stays until the operator accepts the new one.
    Changed {
        pinned: Definition,
        seen: Definition,
    },
    /// No definition of the tool was ever accepted.
    Held,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPin {
    pub body: String,
    pub tool: String,
    pub pinned: Definition,
    /// `false` for a quarantined definition.
    pub accepted: bool,
    /// Appeared on a body whose other tools were known before, and not accepted by the operator.
    pub is_new: bool,
    /// Another definition that the server lists now.
    pub seen: Option<Definition>,
    pub first_seen_at: i64,
    pub changed_at: i64,
    /// `None` for one that was pinned at first sight.
    pub accepted_by: Option<String>,
}

/// The name of the pin of a body's instructions, which are not a tool.
pub const INSTRUCTIONS_PIN: &str = "server:instructions";

#[derive(Clone, Debug)]
pub struct AcceptPin {
    pub body: String,
    pub tool: String,
    /// Hash of the definition that the operator saw.
    pub hash: String,
    pub by: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcceptPinOutcome {
    Accepted(ToolPin),
    /// Another definition is listed by now; nothing is accepted.
    Stale(ToolPin),
    Missing,
}

from_row! {
    ToolPin {
        body, tool, text, hash, accepted as i64, seen_text as Option<String>, seen_hash, first_seen_at, changed_at,
        accepted_by,
    } => {
        let seen = seen_text.zip(seen_hash).map(|(text, hash)| Definition { text, hash });
        let (accepted, is_new) = (matches!(accepted, 1 | NEW), matches!(accepted, NEW | HELD_NEW));
        let pinned = Definition { text, hash };
        Ok(Self { body, tool, pinned, accepted, is_new, seen, first_seen_at, changed_at, accepted_by })
    }
}

macro_rules! columns {
    () => {
        "body, tool, definition, hash, accepted, seen_definition, seen_hash, first_seen_at, changed_at, accepted_by"
    };
}

const LOCK: &str =
    concat!("UPDATE tool_pins SET hash = hash WHERE body = $1 AND tool = $2 RETURNING ", columns!());
const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM tool_pins WHERE (body, tool) > ($1, $2) ORDER BY body, tool LIMIT +$3"
);
const ONE: &str = concat!("SELECT ", columns!(), " FROM tool_pins WHERE body = $1 AND tool = $2");
const OF_BODY: &str =
    concat!("SELECT ", columns!(), " FROM tool_pins WHERE body = $1 ORDER BY first_seen_at, tool");
const UPDATE: &str = "UPDATE tool_pins SET definition = $3, hash = $4, accepted = $5, seen_definition = $6, seen_hash = $7, \
     changed_at = $8, accepted_by = $9 WHERE body = $1 AND tool = $2";

pub(crate) const PINS_MARK: &str =
    "SELECT count(*), CAST(coalesce(sum(changed_at % 4294967296), 0) AS bigint) FROM tool_pins";

/// Equal as long as no pin changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PinsMark(i64, i64);

impl Pins<'_> {
    pub async fn mark(self) -> Result<PinsMark> {
        let (count, sum) = self.store.fetch_one(PINS_MARK, Vec::new()).await?;
        Ok(PinsMark(count, sum))
    }

    /// The pins in the order of body and tool, from the one after `after` (both empty: from the first).
    pub async fn list(self, after: (&str, &str), limit: u32) -> Result<Vec<ToolPin>> {
        self.store.fetch_all(LIST, args![after.0, after.1, limit]).await
    }

    pub async fn get(self, body: &str, tool: &str) -> Result<Option<ToolPin>> {
        self.store.fetch_optional(ONE, args![body, tool]).await
    }

    /// Accepts the definition that was shown, with an audit record in the same commit.
    pub async fn accept(self, accept: AcceptPin) -> Result<AcceptPinOutcome> {
        check_name("operator", &accept.by)?;
        audited!(self.store, |tx| {
            let by = accept.by.clone();
            let outcome = self::accept(&mut tx.conn, accept).await?;
            if let AcceptPinOutcome::Accepted(pin) = &outcome {
                // No user owns a pin: the record belongs to the operator who accepted it.
                let subject = format!("{}/{}", pin.body, pin.tool);
                tx.operation(&by, Action::PinAccepted, &subject, Some(&by))?;
            }
            Ok(outcome)
        })
    }

    /// Compares a definition with the pinned one, and stores what is new. The usual case only reads.
    pub async fn record(self, seen: SeenTool) -> Result<PinState> {
        check_seen(&seen)?;
        let pin: Option<ToolPin> = self.store.fetch_optional(ONE, args![&seen.body, &seen.tool]).await?;
        if let Some((_, Comparison::Known(state))) = pin.map(|pin| compare(pin, &seen)) {
            return Ok(state);
        }
        transaction!(self.store, |conn| self::record(conn, seen, now(), false).await)
    }

    /// The same for all tools that a body lists, in their order, with few statements; the list may be empty.
    pub async fn record_all(self, body: &str, seen: Vec<SeenTool>) -> Result<Vec<PinState>> {
        let was_listed = self.was_listed(body).await?;
        let mut known = self.pins_of(body).await?;
        let mut states = Vec::with_capacity(seen.len());
        // With its position: the pins of one listing are ordered by it.
        let mut news: Vec<(usize, SeenTool)> = Vec::new();
        for (place, seen) in seen.into_iter().enumerate() {
            let pin = known.remove(&seen.tool);
            match pin.map(|pin| compare(pin, &seen)) {
                Some((_, Comparison::Known(state))) => states.push(Some(state)),
                _ => {
                    check_seen(&seen)?;
                    states.push(None);
                    news.push((place, seen));
                }
            }
        }
        // All processes lock in the same order, so that none deadlocks.
        news.sort_by(|(_, one), (_, other)| one.tool.cmp(&other.tool));
        // The first listing and the fact that it happened are one commit: of two processes that list at once, the
        // second finds every tool of the first.
        let batch = if was_listed { BATCH } else { usize::MAX };
        let (at, mut is_due) = (now(), !was_listed || !news.is_empty());
        while is_due {
            let rest = news.split_off(news.len().min(batch));
            let seen = self.record_batch(body, std::mem::replace(&mut news, rest), at, was_listed).await?;
            for (place, state) in seen {
                if let Some(known) = states.get_mut(place) {
                    *known = Some(state);
                }
            }
            is_due = !news.is_empty();
        }
        Ok(states.into_iter().flatten().collect())
    }

    /// Whether this body has ever listed its tools, even an empty list.
    async fn was_listed(self, body: &str) -> Result<bool> {
        check_name("body", body)?;
        let listed: Option<(String,)> =
            self.store.fetch_optional(LISTED, args![body, INSTRUCTIONS_PIN]).await?;
        Ok(listed.is_some())
    }

    /// The same without writing, for the remembered tools of a server that is not running.
    pub async fn compare(self, body: &str, seen: Vec<SeenTool>) -> Result<Vec<PinState>> {
        let mut known = self.pins_of(body).await?;
        let states = seen.iter().map(|seen| {
            let pin = known.remove(&seen.tool);
            match pin.map(|pin| compare(pin, seen)) {
                Some((_, Comparison::Known(state) | Comparison::New(state))) => state,
                // No session has seen it: the one that starts the server will.
                None => PinState::Held,
            }
        });
        Ok(states.collect())
    }

    async fn pins_of(self, body: &str) -> Result<HashMap<String, ToolPin>> {
        let pins: Vec<ToolPin> = self.store.fetch_all(OF_BODY, args![body]).await?;
        Ok(pins.into_iter().map(|pin| (pin.tool.clone(), pin)).collect())
    }

    async fn record_batch(
        self,
        body: &str,
        batch: Vec<(usize, SeenTool)>,
        at: i64,
        was_listed: bool,
    ) -> Result<Vec<(usize, PinState)>> {
        let body = body.to_owned();
        transaction!(self.store, |conn| {
            // A tool that was not in the first listing of its body came with an update that the operator has not
            // reviewed.
            let is_late = conn.execute(LIST_FIRST, args![&body, at]).await? == 0 || was_listed;
            let mut states = Vec::with_capacity(batch.len());
            for (place, seen) in batch {
                let at = at.saturating_add(i64::try_from(place).unwrap_or(i64::MAX));
                states.push((place, self::record(conn, seen, at, is_late).await?));
            }
            Ok(states)
        })
    }

    /// The tools that a body listed last, in the order in which they were first seen: name and definition. `None` if
    /// it has never listed its tools.
    pub async fn list_last_seen(self, body: &str) -> Result<Option<Vec<(String, String)>>> {
        if !self.was_listed(body).await? {
            return Ok(None);
        }
        self.store.fetch_all(LAST_SEEN, args![body, INSTRUCTIONS_PIN]).await.map(Some)
    }

    /// Sets the tools that a body has now. The pins of others stay, but are not in `list_last_seen`.
    pub async fn set_tools(self, body: &str, tools: &[String]) -> Result<()> {
        let has: HashSet<&str> = tools.iter().map(String::as_str).collect();
        let known = "SELECT tool, is_gone FROM tool_pins WHERE body = $1 AND tool <> $2 ORDER BY tool";
        let known: Vec<(String, i64)> = self.store.fetch_all(known, args![body, INSTRUCTIONS_PIN]).await?;
        let changed: Vec<(String, bool)> = known
            .into_iter()
            .map(|(tool, was_gone)| (has.contains(&*tool), tool, was_gone != 0))
            .filter(|(is_there, _, was_gone)| is_there == was_gone)
            .map(|(is_there, tool, _)| (tool, !is_there))
            .collect();
        if changed.is_empty() {
            return Ok(());
        }
        let body = body.to_owned();
        transaction!(self.store, |conn| {
            for (tool, is_gone) in changed {
                let set = "UPDATE tool_pins SET is_gone = $3 WHERE body = $1 AND tool = $2";
                conn.execute(set, args![&body, tool, is_gone]).await?;
            }
            Ok(())
        })
    }
}

async fn accept(conn: &mut Conn, accept: AcceptPin) -> Result<AcceptPinOutcome> {
    let pin: Option<ToolPin> = conn.fetch_optional(LOCK, args![&accept.body, &accept.tool]).await?;
    let Some(mut pin) = pin else { return Ok(AcceptPinOutcome::Missing) };
    if pin.seen.as_ref().unwrap_or(&pin.pinned).hash != accept.hash {
        return Ok(AcceptPinOutcome::Stale(pin));
    }
    if let Some(seen) = pin.seen.take() {
        pin.pinned = seen;
    }
    (pin.accepted, pin.is_new) = (true, false);
    pin.accepted_by = Some(accept.by);
    Ok(AcceptPinOutcome::Accepted(update(conn, pin).await?))
}

async fn update(conn: &mut Conn, pin: ToolPin) -> Result<ToolPin> {
    let pin = ToolPin { changed_at: now(), ..pin };
    let (seen_text, seen_hash) = pin.seen.clone().map(|seen| (seen.text, seen.hash)).unzip();
    let values = args![
        &pin.body,
        &pin.tool,
        &pin.pinned.text,
        &pin.pinned.hash,
        accepted_column(pin.accepted, pin.is_new),
        seen_text,
        seen_hash,
        pin.changed_at,
        pin.accepted_by.clone()
    ];
    conn.execute(UPDATE, values).await?;
    conn.notify(Topic::Pins).await?;
    Ok(pin)
}

/// Values of the column `accepted`; 0 is held, 1 is accepted.
const NEW: i64 = 2;
const HELD_NEW: i64 = 3;

fn accepted_column(is_accepted: bool, is_new: bool) -> i64 {
    match (is_accepted, is_new) {
        (false, false) => 0,
        (false, true) => HELD_NEW,
        (true, false) => 1,
        (true, true) => NEW,
    }
}

const DEFINITION_LIMIT: usize = 1024 * 1024;
const BATCH: usize = 200;

const LAST_SEEN: &str = "SELECT tool, coalesce(seen_definition, definition) FROM tool_pins \
     WHERE body = $1 AND tool <> $2 AND is_gone = 0 ORDER BY first_seen_at, tool";

/// Pins without the row were made by an earlier version.
const LISTED: &str = "SELECT body FROM listed_bodies WHERE body = $1 \
     UNION ALL SELECT body FROM tool_pins WHERE body = $1 AND tool <> $2 LIMIT 1";
const LIST_FIRST: &str =
    "INSERT INTO listed_bodies (body, first_listed_at) VALUES ($1, $2) ON CONFLICT (body) DO NOTHING";

fn check_seen(seen: &SeenTool) -> Result<()> {
    check_name("body", &seen.body)?;
    check_name("tool", &seen.tool)?;
    check_name("hash of the definition", &seen.definition.hash)?;
    check_text("definition of the tool", &seen.definition.text, DEFINITION_LIMIT)
}

enum Comparison {
    /// Nothing to write.
    Known(PinState),
    New(PinState),
}

fn compare(mut pin: ToolPin, seen: &SeenTool) -> (ToolPin, Comparison) {
    let shown = &seen.definition;
    let is_rehashed = pin.pinned.hash != shown.hash
        && (seen.rehash)(&pin.tool, &pin.pinned.text).is_some_and(|hash| hash == shown.hash);
    if is_rehashed {
        pin.pinned.hash.clone_from(&shown.hash);
    }
    if pin.pinned.hash == shown.hash {
        // It was held at first sight and only the caller's judgement has changed since. A harmless definition that
        // has replaced a held one stays held.
        let is_released = !pin.accepted && seen.acceptable && pin.changed_at == pin.first_seen_at;
        pin.accepted |= is_released;
        let state = match (pin.accepted, pin.is_new) {
            (false, _) => PinState::Held,
            (true, true) => PinState::New,
            (true, false) => PinState::Same,
        };
        // The server went back to the pinned definition: there is nothing left to accept.
        let is_new = pin.seen.take().is_some() || is_rehashed || is_released;
        return (pin, if is_new { Comparison::New(state) } else { Comparison::Known(state) });
    }
    // The operator has not accepted the previous definition.
    if !pin.accepted || pin.is_new {
        pin.pinned = shown.clone();
        pin.accepted &= seen.acceptable;
        let state = if pin.accepted { PinState::New } else { PinState::Held };
        return (pin, Comparison::New(state));
    }
    let state = PinState::Changed { pinned: pin.pinned.clone(), seen: shown.clone() };
    if pin.seen.as_ref().is_some_and(|before| before.hash == shown.hash) {
        return (pin, Comparison::Known(state));
    }
    pin.seen = Some(shown.clone());
    (pin, Comparison::New(state))
}

async fn record(conn: &mut Conn, seen: SeenTool, at: i64, is_late: bool) -> Result<PinState> {
    let accepted = accepted_column(seen.acceptable, is_late);
    let sql = "INSERT INTO tool_pins (body, tool, definition, hash, accepted, first_seen_at, changed_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT (body, tool) DO NOTHING";
    let values = args![&seen.body, &seen.tool, &seen.definition.text, &seen.definition.hash, accepted, at];
    let first = conn.execute(sql, values).await?;
    if first > 0 {
        conn.notify(Topic::Pins).await?;
        return Ok(match (seen.acceptable, is_late) {
            (false, _) => PinState::Held,
            (true, true) => PinState::New,
            (true, false) => PinState::First,
        });
    }
    match compare(conn.fetch_one(LOCK, args![&seen.body, &seen.tool]).await?, &seen) {
        (_, Comparison::Known(state)) => Ok(state),
        (pin, Comparison::New(state)) => {
            update(conn, pin).await?;
            Ok(state)
        }
    }
}
