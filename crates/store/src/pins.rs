//! Pins of tool definitions: the one that was first seen holds until the operator accepts another. All of it is the
//! operator's; no user owns a pin.
//!
//! - `seen`: what servers show, compared with what is pinned

mod seen;

use crate::areas::Pins;
use crate::audit::Action;
use crate::changes::Topic;
use crate::db::{Conn, args, audited};
use crate::error::Result;
use crate::store::{check_name, now};

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
        let (count, sum) = self.store.reader().await?.fetch_one(PINS_MARK, Vec::new()).await?;
        Ok(PinsMark(count, sum))
    }

    /// The pins in the order of body and tool, from the one after `after` (both empty: from the first).
    pub async fn list(self, after: (&str, &str), limit: u32) -> Result<Vec<ToolPin>> {
        let rows: Vec<Row> =
            self.store.reader().await?.fetch_all(LIST, args![after.0, after.1, limit]).await?;
        Ok(rows.into_iter().map(ToolPin::from).collect())
    }

    pub async fn get(self, body: &str, tool: &str) -> Result<Option<ToolPin>> {
        let row: Option<Row> =
            self.store.reader().await?.fetch_optional(seen::ONE, args![body, tool]).await?;
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
