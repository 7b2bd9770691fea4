//! What servers show, compared with what is pinned, and remembered.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{INSTRUCTIONS_PIN, LOCK, PinState, Row, SeenTool, ToolPin, keep, stored};
use crate::changes::{Topic, tell};
use crate::db::{Conn, args};
use crate::error::Result;
use crate::store::{Store, check_name, check_text, now};

const DEFINITION_LIMIT: usize = 1024 * 1024;
/// Tools that are compared in one transaction.
const BATCH: usize = 200;

pub(super) const ONE: &str = "SELECT body, tool, definition, hash, accepted, seen_definition, seen_hash, first_seen_at, changed_at, \
     accepted_by FROM tool_pins WHERE body = $1 AND tool = $2";
const OF_BODY: &str = "SELECT body, tool, definition, hash, accepted, seen_definition, seen_hash, first_seen_at, changed_at, \
     accepted_by FROM tool_pins WHERE body = $1 ORDER BY first_seen_at, tool";
const LAST_SEEN: &str = "SELECT tool, coalesce(seen_definition, definition) FROM tool_pins WHERE body = $1 AND is_gone = 0 \
     ORDER BY first_seen_at, tool";

impl Store {
    /// Compares a definition with the pinned one, and remembers what it saw. The usual case only reads.
    pub async fn see_tool(&self, seen: SeenTool) -> Result<PinState> {
        check_seen(&seen)?;
        let row: Option<Row> = self.db().reader().await?.maybe(ONE, args![&seen.body, &seen.tool]).await?;
        if let Some((_, Sight::Known(state))) = row.map(|row| compared(row.into(), &seen)) {
            return Ok(state);
        }
        let (state, changed) =
            self.db().write(move |conn| Box::pin(async move { see(conn, seen, now(), false).await })).await?;
        if changed {
            self.wake(Topic::Pins);
        }
        Ok(state)
    }

    /// The same for many, in their order: they are read with one question for each body, and what is new is written with a
    /// few.
    pub async fn see_tools(&self, seen: Vec<SeenTool>) -> Result<Vec<PinState>> {
        let mut known = self.pins_of(&seen).await?;
        // A tool that was not in the first listing of its body came with an update that the operator has not reviewed.
        let tools = known.keys().filter(|(_, tool)| tool != INSTRUCTIONS_PIN);
        let bodies: HashSet<String> = tools.map(|(body, _)| body.clone()).collect();
        let mut states = Vec::with_capacity(seen.len());
        // With its place: the pins of one listing are first seen in its order.
        let mut news: Vec<(usize, SeenTool, bool)> = Vec::new();
        for (place, seen) in seen.into_iter().enumerate() {
            let pin = known.remove(&(seen.body.clone(), seen.tool.clone()));
            match pin.map(|pin| compared(pin, &seen)) {
                Some((_, Sight::Known(state))) => states.push(Some(state)),
                _ => {
                    check_seen(&seen)?;
                    states.push(None);
                    let is_late = bodies.contains(&seen.body);
                    news.push((place, seen, is_late));
                }
            }
        }
        // Everybody takes them in the same order, so that nobody waits for one who waits.
        news.sort_by(|(_, one, _), (_, other, _)| (&one.body, &one.tool).cmp(&(&other.body, &other.tool)));
        let at = now();
        while !news.is_empty() {
            let rest = news.split_off(news.len().min(BATCH));
            for (place, state) in self.see_batch(std::mem::replace(&mut news, rest), at).await? {
                if let Some(known) = states.get_mut(place) {
                    *known = Some(state);
                }
            }
        }
        Ok(states.into_iter().flatten().collect())
    }

    /// The same for what is remembered of a server that does not run: nothing is written.
    pub async fn compare_tools(&self, seen: Vec<SeenTool>) -> Result<Vec<PinState>> {
        let mut known = self.pins_of(&seen).await?;
        let states = seen.iter().map(|seen| {
            let pin = known.remove(&(seen.body.clone(), seen.tool.clone()));
            match pin.map(|pin| compared(pin, seen)) {
                Some((_, Sight::Known(state) | Sight::New(state))) => state,
                // Nobody has seen it: whoever starts the server will.
                None => PinState::Held,
            }
        });
        Ok(states.collect())
    }

    async fn pins_of(&self, seen: &[SeenTool]) -> Result<HashMap<(String, String), ToolPin>> {
        let bodies: BTreeSet<&str> = seen.iter().map(|seen| &*seen.body).collect();
        let mut known: HashMap<(String, String), ToolPin> = HashMap::new();
        for body in bodies {
            check_name("body", body)?;
            let rows: Vec<Row> = self.db().reader().await?.all(OF_BODY, args![body]).await?;
            let pins = rows.into_iter().map(ToolPin::from);
            known.extend(pins.map(|pin| ((pin.body.clone(), pin.tool.clone()), pin)));
        }
        Ok(known)
    }

    async fn see_batch(
        &self,
        batch: Vec<(usize, SeenTool, bool)>,
        at: i64,
    ) -> Result<Vec<(usize, PinState)>> {
        let seeing = self.db().write(move |conn| {
            Box::pin(async move {
                let (mut states, mut is_changed) = (Vec::with_capacity(batch.len()), false);
                for (place, seen, is_late) in batch {
                    let at = at.saturating_add(i64::try_from(place).unwrap_or(i64::MAX));
                    let (state, changed) = see(conn, seen, at, is_late).await?;
                    is_changed |= changed;
                    states.push((place, state));
                }
                Ok((states, is_changed))
            })
        });
        let (states, is_changed) = seeing.await?;
        if is_changed {
            self.wake(Topic::Pins);
        }
        Ok(states)
    }

    /// The tools of a body as it showed them last, in the order in which they were first seen: name and definition. Without
    /// those that it no longer had then.
    pub async fn last_seen_tools(&self, body: &str) -> Result<Vec<(String, String)>> {
        self.db().reader().await?.all(LAST_SEEN, args![body]).await
    }

    /// These are all the tools that a body has now. The pins of others stay, but are not among those last seen.
    pub async fn set_tools_of(&self, body: &str, tools: &[String]) -> Result<()> {
        let has: HashSet<&str> = tools.iter().map(String::as_str).collect();
        let known = "SELECT tool, is_gone FROM tool_pins WHERE body = $1 ORDER BY tool";
        let known: Vec<(String, i64)> = self.db().reader().await?.all(known, args![body]).await?;
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
        let keeping = self.db().write(move |conn| {
            Box::pin(async move {
                for (tool, is_gone) in changed {
                    let set = "UPDATE tool_pins SET is_gone = $3 WHERE body = $1 AND tool = $2";
                    conn.run(set, args![&body, tool, is_gone]).await?;
                }
                Ok(())
            })
        });
        keeping.await
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
    /// Nothing that is not written down.
    Known(PinState),
    /// The pin is to be written.
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

/// `is_late`: other tools of the body were seen before.
async fn see(conn: &mut Conn, seen: SeenTool, at: i64, is_late: bool) -> Result<(PinState, bool)> {
    let accepted = stored(seen.acceptable, is_late);
    let first = conn
        .run(
            "INSERT INTO tool_pins (body, tool, definition, hash, accepted, first_seen_at, changed_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT (body, tool) DO NOTHING",
            args![&seen.body, &seen.tool, &seen.definition.text, &seen.definition.hash, accepted, at],
        )
        .await?;
    if first > 0 {
        tell(conn, Topic::Pins).await?;
        let state = match (seen.acceptable, is_late) {
            (false, _) => PinState::Held,
            (true, true) => PinState::New,
            (true, false) => PinState::First,
        };
        return Ok((state, true));
    }
    let row: Row = conn.one(LOCK, args![&seen.body, &seen.tool]).await?;
    match compared(row.into(), &seen) {
        (_, Sight::Known(state)) => Ok((state, false)),
        (pin, Sight::New(state)) => {
            keep(conn, pin).await?;
            Ok((state, true))
        }
    }
}
