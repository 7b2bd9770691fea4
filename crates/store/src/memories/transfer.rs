//! Export and import of memories as JSON Lines, complete: ids, versions, statuses, times, history.

use std::collections::HashMap;
use std::io::Write;

use serde::{Deserialize, Serialize};

use crate::areas::Memories;
use crate::audit::Action;
use crate::db::{Conn, Sql, args, audited, listed};
use crate::error::{Error, ErrorKind, Result};
use crate::memories::change::read_state;
use crate::memories::index::Ledger;
use crate::memories::rows::{self, SAVED_AFTER};
use crate::memories::save::PIECE;
use crate::memories::save::{self, Entry, json};
use crate::memories::{Memory, MemoryStatus};
use crate::store::Scope;

const PAGE: u32 = 500;
pub(super) const HISTORY: Sql = listed!(
    "SELECT id, state FROM memory_history WHERE user_id = $1 AND agent = $2 AND id",
    "$3",
    " ORDER BY id, version"
);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryImport {
    pub added: u64,
    pub unchanged: u64,
}

/// A line: a memory and its earlier versions, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    memory: Memory,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    history: Vec<Memory>,
}

impl Memories<'_> {
    /// Writes every memory of the scope that is not erased as a line of JSON, in the order of saving; returns how many.
    pub async fn export(self, scope: &Scope, into: &mut (dyn Write + Send)) -> Result<u64> {
        let failed =
            |error| Error::new(ErrorKind::Other, "the exported memories cannot be written").because(error);
        let mut conn = self.store.reader().await?;
        let (mut last, mut count) = (0, 0);
        loop {
            let page =
                rows::fetch_all(&mut conn, SAVED_AFTER, args![scope.user(), scope.agent(), last, PAGE])
                    .await?;
            let Some(newest) = page.last() else {
                into.flush().map_err(failed)?;
                return Ok(count);
            };
            last = i64::from(newest.seq);
            let ids = page.iter().map(|kept| kept.memory.id.clone()).collect();
            let mut histories = histories(&mut conn, scope, ids).await?;
            for kept in page.into_iter().filter(|kept| kept.memory.status != MemoryStatus::Erased) {
                let mut history = histories.remove(&kept.memory.id).unwrap_or_default();
                // It may have changed since the page was read.
                history.retain(|past| past.version < kept.memory.version);
                writeln!(into, "{}", json(&Line { memory: kept.memory, history })?).map_err(failed)?;
                count += 1;
            }
        }
    }

    /// Imports what [`Memories::export`] wrote, all or nothing. An equal existing memory is skipped; a different one
    /// is an error that names it. For operators.
    pub async fn import(self, scope: &Scope, lines: &str) -> Result<MemoryImport> {
        let lines = read(lines)?.into_iter().map(|line| (line.memory, line.history)).collect();
        let entries = Entry::read_all(lines).await?;
        let scope = scope.clone();
        audited!(self.store, |tx| {
            let done = import(&mut tx.conn, &scope, &entries).await?;
            if done.added > 0 {
                let note = format!("{} memories", done.added);
                tx.operation(scope.user(), Action::MemoriesImported, scope.agent(), Some(&note))?;
            }
            Ok(done)
        })
    }
}

fn read(text: &str) -> Result<Vec<Line>> {
    let mut lines: Vec<Line> = Vec::new();
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (number, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
        let wrong = |error: Error| Error::invalid(format!("line {number} cannot be imported")).because(error);
        let line: Line = serde_json::from_str(text)
            .map_err(|error| Error::invalid(format!("line {number} is not a memory")).because(error))?;
        check(&line).map_err(wrong)?;
        match seen.get(&line.memory.id).and_then(|place| lines.get(*place)) {
            Some(first) if *first == line => {}
            Some(_) => return Err(wrong(differs(&line.memory.id))),
            None => {
                seen.insert(line.memory.id.clone(), lines.len());
                lines.push(line);
            }
        }
    }
    Ok(lines)
}

fn check(line: &Line) -> Result<()> {
    line.memory.check()?;
    let Memory { id, version, .. } = &line.memory;
    let mut last = 0;
    for past in &line.history {
        past.check()?;
        let in_order = last < past.version && past.version < *version;
        last = past.version;
        if past.id != *id || !in_order {
            return Err(Error::invalid(format!(
                "the history of memory `{id}` has version `{}` of `{}` out of order",
                past.version, past.id
            )));
        }
    }
    Ok(())
}

async fn import(conn: &mut Conn, scope: &Scope, entries: &[Entry]) -> Result<MemoryImport> {
    let mut ledger = Ledger::lock(conn, scope).await?;
    let mut done = MemoryImport::default();
    for piece in entries.chunks(PIECE) {
        let ids: Vec<String> = piece.iter().map(|entry| entry.memory.id.clone()).collect();
        let there = rows::by_ids(conn, scope, ids.clone()).await?;
        let there: HashMap<String, Memory> =
            there.into_iter().map(|kept| (kept.memory.id.clone(), kept.memory)).collect();
        let past = if there.is_empty() { HashMap::new() } else { histories(conn, scope, ids).await? };
        let mut fresh = Vec::new();
        for entry in piece {
            let id = &entry.memory.id;
            let history = past.get(id).map(Vec::as_slice).unwrap_or_default();
            match there.get(id) {
                None => fresh.push(entry.clone()),
                Some(memory) if *memory == entry.memory && history == entry.history => done.unchanged += 1,
                Some(memory) if memory.status == MemoryStatus::Erased => return Err(erased(id)),
                Some(_) => return Err(differs(id)),
            }
        }
        save::insert(conn, scope, &mut ledger, &fresh).await?;
        done.added += fresh.len() as u64;
    }
    ledger.write(conn, scope).await?;
    Ok(done)
}

fn erased(id: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("the memory `{id}` was erased here"))
        .hint("nothing was imported; leave out the line")
}

fn differs(id: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("the memory `{id}` already exists and differs"))
        .hint("nothing was imported; forget or export the existing one, or leave out the line")
}

/// Oldest first.
async fn histories(conn: &mut Conn, scope: &Scope, ids: Vec<String>) -> Result<HashMap<String, Vec<Memory>>> {
    let rows: Vec<(String, String)> =
        conn.fetch_all(HISTORY, args![scope.user(), scope.agent(), ids]).await?;
    let mut histories: HashMap<String, Vec<Memory>> = HashMap::new();
    for (id, state) in rows {
        let memory = read_state(&id, &state)?;
        histories.entry(id).or_default().push(memory);
    }
    Ok(histories)
}
