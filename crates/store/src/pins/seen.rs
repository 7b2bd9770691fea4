//! What servers show, compared with what is pinned, and remembered.

use std::collections::{HashMap, HashSet};

use super::{INSTRUCTIONS_PIN, LOCK, PinState, Row, SeenTool, ToolPin, keep, stored};
use crate::areas::Pins;
use crate::changes::Topic;
use crate::db::{Conn, args, transaction};
use crate::error::Result;
use crate::store::{check_name, check_text, now};

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

impl Pins<'_> {
    /// Compares a definition with the pinned one, and remembers what it saw. The usual case only reads.
    pub async fn record(self, seen: SeenTool) -> Result<PinState> {
        check_seen(&seen)?;
        let row: Option<Row> =
            self.store.reader().await?.fetch_optional(ONE, args![&seen.body, &seen.tool]).await?;
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
            self.store.reader().await?.fetch_optional(LISTED, args![body, INSTRUCTIONS_PIN]).await?;
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
        let rows: Vec<Row> = self.store.reader().await?.fetch_all(OF_BODY, args![body]).await?;
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
        self.store.reader().await?.fetch_all(LAST_SEEN, args![body, INSTRUCTIONS_PIN]).await.map(Some)
    }

    /// These are all the tools that a body has now. The pins of others stay, but are not among those last seen.
    pub async fn set_tools(self, body: &str, tools: &[String]) -> Result<()> {
        let has: HashSet<&str> = tools.iter().map(String::as_str).collect();
        let known = "SELECT tool, is_gone FROM tool_pins WHERE body = $1 AND tool <> $2 ORDER BY tool";
        let known: Vec<(String, i64)> =
            self.store.reader().await?.fetch_all(known, args![body, INSTRUCTIONS_PIN]).await?;
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
    let first = conn
        .execute(
            "INSERT INTO tool_pins (body, tool, definition, hash, accepted, first_seen_at, changed_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT (body, tool) DO NOTHING",
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
