//! Pins of tool definitions: the one that was first seen holds until the operator accepts another. All of it is the
//! operator's; no user owns a pin.
//!
//! - `seen`: what servers show, compared with what is pinned

use std::collections::{HashMap, HashSet};

use crate::areas::Pins;
use crate::audit::Action;
use crate::changes::Topic;
use crate::db::{Conn, args, audited, transaction};
use crate::error::Result;
use crate::store::{check_name, check_text, now};

/// A tool's definition: the raw text and the hash that the caller makes of it.
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
    /// Hashes a stored definition (tool name, text) the way `definition.hash` was made, to compare pins
    /// stored with an older hash. `None` for an unreadable one.
    pub rehash: fn(&str, &str) -> Option<String>,
}

/// How a definition relates to the pinned one.
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

/// The name under which the instructions of a body are pinned, which are no tool.
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

type Row = (String, String, String, String, i64, Option<String>, Option<String>, i64, i64, Option<String>);

const LOCK: &str = "UPDATE tool_pins SET hash = hash WHERE body = $1 AND tool = $2 \
     RETURNING body, tool, definition, hash, accepted, seen_definition, seen_hash, first_seen_at, changed_at, accepted_by";
const LIST: &str = "SELECT body, tool, definition, hash, accepted, seen_definition, seen_hash, first_seen_at, changed_at, \
     accepted_by FROM tool_pins WHERE (body, tool) > ($1, $2) ORDER BY body, tool LIMIT +$3";
const KEEP: &str = "UPDATE tool_pins SET definition = $3, hash = $4, accepted = $5, seen_definition = $6, seen_hash = $7, \
     changed_at = $8, accepted_by = $9 WHERE body = $1 AND tool = $2";

/// Another whenever a pin is another.
pub(crate) const PINS_MARK: &str =
    "SELECT count(*), CAST(coalesce(sum(changed_at % 4294967296), 0) AS bigint) FROM tool_pins";

/// The pins as they are, as far as that one can tell whether they are others later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PinsMark(i64, i64);

impl Pins<'_> {
    /// The same as long as no pin is another.
    pub async fn mark(self) -> Result<PinsMark> {
        let (count, sum) = self.store.fetch_one(PINS_MARK, Vec::new()).await?;
        Ok(PinsMark(count, sum))
    }

    /// The pins in the order of body and tool, from the one after `after` (both empty: from the first).
    pub async fn list(self, after: (&str, &str), limit: u32) -> Result<Vec<ToolPin>> {
        let rows: Vec<Row> = self.store.fetch_all(LIST, args![after.0, after.1, limit]).await?;
        Ok(rows.into_iter().map(ToolPin::from).collect())
    }

    pub async fn get(self, body: &str, tool: &str) -> Result<Option<ToolPin>> {
        let row: Option<Row> = self.store.fetch_optional(ONE, args![body, tool]).await?;
        Ok(row.map(ToolPin::from))
    }

    /// Accepts the definition that was shown, and puts that on record in the same commit.
    pub async fn accept(self, accept: AcceptPin) -> Result<AcceptPinOutcome> {
        check_name("operator", &accept.by)?;
        audited!(self.store, |tx| {
            let by = accept.by.clone();
            let outcome = take_over(&mut tx.conn, accept).await?;
            if let AcceptPinOutcome::Accepted(pin) = &outcome {
                // No user owns a pin: it is on record with whoever accepted it.
                let subject = format!("{}/{}", pin.body, pin.tool);
                tx.operation(&by, Action::PinAccepted, &subject, Some(&by))?;
            }
            Ok(outcome)
        })
    }

    /// Compares a definition with the pinned one, and remembers what it saw. The usual case only reads.
    pub async fn record(self, seen: SeenTool) -> Result<PinState> {
        check_seen(&seen)?;
        let row: Option<Row> = self.store.fetch_optional(ONE, args![&seen.body, &seen.tool]).await?;
        if let Some((_, Sight::Known(state))) = row.map(|row| compared(row.into(), &seen)) {
            return Ok(state);
        }
        transaction!(self.store, |conn| see(conn, seen, now(), false).await)
    }

    /// The same for all tools that a body lists, in their order; it may list none. They are read with one question, and what is
    /// new is written with a few.
    pub async fn record_all(self, body: &str, seen: Vec<SeenTool>) -> Result<Vec<PinState>> {
        let was_listed = self.was_listed(body).await?;
        let mut known = self.pins_of(body).await?;
        let mut states = Vec::with_capacity(seen.len());
        // With its place: the pins of one listing are first seen in its order.
        let mut news: Vec<(usize, SeenTool)> = Vec::new();
        for (place, seen) in seen.into_iter().enumerate() {
            let pin = known.remove(&seen.tool);
            match pin.map(|pin| compared(pin, &seen)) {
                Some((_, Sight::Known(state))) => states.push(Some(state)),
                _ => {
                    check_seen(&seen)?;
                    states.push(None);
                    news.push((place, seen));
                }
            }
        }
        // Every process takes them in the same order, so that none waits for one that waits.
        news.sort_by(|(_, one), (_, other)| one.tool.cmp(&other.tool));
        // The first listing is one commit with the fact that there was one: of two processes that list at once the second finds
        // every tool of the first.
        let batch = if was_listed { BATCH } else { usize::MAX };
        let (at, mut is_due) = (now(), !was_listed || !news.is_empty());
        while is_due {
            let rest = news.split_off(news.len().min(batch));
            let seen = self.see_batch(body, std::mem::replace(&mut news, rest), at, was_listed).await?;
            for (place, state) in seen {
                if let Some(known) = states.get_mut(place) {
                    *known = Some(state);
                }
            }
            is_due = !news.is_empty();
        }
        Ok(states.into_iter().flatten().collect())
    }

    /// Whether this body has ever listed its tools, also if there were none.
    async fn was_listed(self, body: &str) -> Result<bool> {
        check_name("body", body)?;
        let listed: Option<(String,)> =
            self.store.fetch_optional(LISTED, args![body, INSTRUCTIONS_PIN]).await?;
        Ok(listed.is_some())
    }

    /// The same for what is remembered of a server that does not run: nothing is written.
    pub async fn compare(self, body: &str, seen: Vec<SeenTool>) -> Result<Vec<PinState>> {
        let mut known = self.pins_of(body).await?;
        let states = seen.iter().map(|seen| {
            let pin = known.remove(&seen.tool);
            match pin.map(|pin| compared(pin, seen)) {
                Some((_, Sight::Known(state) | Sight::New(state))) => state,
                // No session has seen it: the one that starts the server will.
                None => PinState::Held,
            }
        });
        Ok(states.collect())
    }

    async fn pins_of(self, body: &str) -> Result<HashMap<String, ToolPin>> {
        let rows: Vec<Row> = self.store.fetch_all(OF_BODY, args![body]).await?;
        let pins = rows.into_iter().map(ToolPin::from);
        Ok(pins.map(|pin| (pin.tool.clone(), pin)).collect())
    }

    async fn see_batch(
        self,
        body: &str,
        batch: Vec<(usize, SeenTool)>,
        at: i64,
        was_listed: bool,
    ) -> Result<Vec<(usize, PinState)>> {
        let body = body.to_owned();
        transaction!(self.store, |conn| {
            // A tool that was not in the first listing of its body came with an update that the operator has not reviewed.
            let is_late = conn.execute(LIST_FIRST, args![&body, at]).await? == 0 || was_listed;
            let mut states = Vec::with_capacity(batch.len());
            for (place, seen) in batch {
                let at = at.saturating_add(i64::try_from(place).unwrap_or(i64::MAX));
                states.push((place, see(conn, seen, at, is_late).await?));
            }
            Ok(states)
        })
    }

    /// The tools of a body as it showed them last, in the order in which they were first seen: name and definition. Without
    /// those that it no longer had then. `None` if it has never listed its tools.
    pub async fn list_last_seen(self, body: &str) -> Result<Option<Vec<(String, String)>>> {
        if !self.was_listed(body).await? {
            return Ok(None);
        }
        self.store.fetch_all(LAST_SEEN, args![body, INSTRUCTIONS_PIN]).await.map(Some)
    }

    /// These are all the tools that a body has now. The pins of others stay, but are not among those last seen.
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

async fn take_over(conn: &mut Conn, accept: AcceptPin) -> Result<AcceptPinOutcome> {
    let row: Option<Row> = conn.fetch_optional(LOCK, args![&accept.body, &accept.tool]).await?;
    let Some(mut pin) = row.map(ToolPin::from) else { return Ok(AcceptPinOutcome::Missing) };
    if pin.seen.as_ref().unwrap_or(&pin.pinned).hash != accept.hash {
        return Ok(AcceptPinOutcome::Stale(pin));
    }
    if let Some(seen) = pin.seen.take() {
        pin.pinned = seen;
    }
    (pin.accepted, pin.is_new) = (true, false);
    pin.accepted_by = Some(accept.by);
    Ok(AcceptPinOutcome::Accepted(keep(conn, pin).await?))
}

async fn keep(conn: &mut Conn, pin: ToolPin) -> Result<ToolPin> {
    let pin = ToolPin { changed_at: now(), ..pin };
    let (seen_text, seen_hash) = pin.seen.clone().map(|seen| (seen.text, seen.hash)).unzip();
    conn.execute(
        KEEP,
        args![
            &pin.body,
            &pin.tool,
            &pin.pinned.text,
            &pin.pinned.hash,
            stored(pin.accepted, pin.is_new),
            seen_text,
            seen_hash,
            pin.changed_at,
            pin.accepted_by.clone()
        ],
    )
    .await?;
    conn.notify(Topic::Pins).await?;
    Ok(pin)
}

/// In the column `accepted`: 0 is held, 1 is accepted, this is new.
const NEW: i64 = 2;
const HELD_NEW: i64 = 3;

fn stored(is_accepted: bool, is_new: bool) -> i64 {
    match (is_accepted, is_new) {
        (false, false) => 0,
        (false, true) => HELD_NEW,
        (true, false) => 1,
        (true, true) => NEW,
    }
}

impl From<Row> for ToolPin {
    fn from(row: Row) -> Self {
        let (body, tool, text, hash, accepted, seen_text, seen_hash, first_seen_at, changed_at, accepted_by) =
            row;
        let seen = seen_text.zip(seen_hash).map(|(text, hash)| Definition { text, hash });
        let (accepted, is_new) = (matches!(accepted, 1 | NEW), matches!(accepted, NEW | HELD_NEW));
        let pinned = Definition { text, hash };
        Self { body, tool, pinned, accepted, is_new, seen, first_seen_at, changed_at, accepted_by }
    }
}

const DEFINITION_LIMIT: usize = 1024 * 1024;
/// Tools that are compared in one transaction.
const BATCH: usize = 200;

pub(super) const ONE: &str = "SELECT body, tool, definition, hash, accepted, seen_definition, seen_hash, first_seen_at, changed_at, \
     accepted_by FROM tool_pins WHERE body = $1 AND tool = $2";
const OF_BODY: &str = "SELECT body, tool, definition, hash, accepted, seen_definition, seen_hash, first_seen_at, changed_at, \
     accepted_by FROM tool_pins WHERE body = $1 ORDER BY first_seen_at, tool";
const LAST_SEEN: &str = "SELECT tool, coalesce(seen_definition, definition) FROM tool_pins \
     WHERE body = $1 AND tool <> $2 AND is_gone = 0 ORDER BY first_seen_at, tool";

/// Pins without the row are those of a process of an earlier version.
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

/// What a sight means for the pin.
enum Sight {
    /// Nothing to write.
    Known(PinState),
    New(PinState),
}

fn compared(mut pin: ToolPin, seen: &SeenTool) -> (ToolPin, Sight) {
    let shown = &seen.definition;
    let is_rehashed = pin.pinned.hash != shown.hash
        && (seen.rehash)(&pin.tool, &pin.pinned.text).is_some_and(|hash| hash == shown.hash);
    if is_rehashed {
        pin.pinned.hash.clone_from(&shown.hash);
    }
    if pin.pinned.hash == shown.hash {
        // It was held at first sight and nothing has changed since but the caller's judgement of it. A harmless definition
        // that has replaced a held one stays held.
        let is_released = !pin.accepted && seen.acceptable && pin.changed_at == pin.first_seen_at;
        pin.accepted |= is_released;
        let state = match (pin.accepted, pin.is_new) {
            (false, _) => PinState::Held,
            (true, true) => PinState::New,
            (true, false) => PinState::Same,
        };
        // The server went back to the pinned one: there is nothing left to accept.
        let is_new = pin.seen.take().is_some() || is_rehashed || is_released;
        return (pin, if is_new { Sight::New(state) } else { Sight::Known(state) });
    }
    // The operator has not accepted what it was before.
    if !pin.accepted || pin.is_new {
        pin.pinned = shown.clone();
        pin.accepted &= seen.acceptable;
        let state = if pin.accepted { PinState::New } else { PinState::Held };
        return (pin, Sight::New(state));
    }
    let state = PinState::Changed { pinned: pin.pinned.clone(), seen: shown.clone() };
    if pin.seen.as_ref().is_some_and(|before| before.hash == shown.hash) {
        return (pin, Sight::Known(state));
    }
    pin.seen = Some(shown.clone());
    (pin, Sight::New(state))
}

async fn see(conn: &mut Conn, seen: SeenTool, at: i64, is_late: bool) -> Result<PinState> {
    let accepted = stored(seen.acceptable, is_late);
    let sql = "INSERT INTO tool_pins (body, tool, definition, hash, accepted, first_seen_at, changed_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT (body, tool) DO NOTHING";
    let first = conn
        .execute(
            sql,
            args![&seen.body, &seen.tool, &seen.definition.text, &seen.definition.hash, accepted, at],
        )
        .await?;
    if first > 0 {
        conn.notify(Topic::Pins).await?;
        return Ok(match (seen.acceptable, is_late) {
            (false, _) => PinState::Held,
            (true, true) => PinState::New,
            (true, false) => PinState::First,
        });
    }
    let row: Row = conn.fetch_one(LOCK, args![&seen.body, &seen.tool]).await?;
    match compared(row.into(), &seen) {
        (_, Sight::Known(state)) => Ok(state),
        (pin, Sight::New(state)) => {
            keep(conn, pin).await?;
            Ok(state)
        }
    }
}
