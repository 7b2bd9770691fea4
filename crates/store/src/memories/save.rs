//! Saving memories: numbers, sessions, neighbours, actors, index, history. A repeat within one session is the
//! existing memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::areas::Memories;
use crate::audit::Action;
use crate::db::{Conn, Sql, Value, args, audited, dialect, listed, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::memories::analyze::{self, Document};
use crate::memories::index::{self, IndexedMemory, Ledger};
use crate::memories::rows::{self, select_listed};
use crate::memories::{Memory, MemoryStatus, NewMemory, SaveResult};
use crate::store::{OPERATOR, Scope, new_id, now};

const BATCH_LIMIT: usize = 10_000;
const BATCH_BYTES_LIMIT: usize = 64 * 1024 * 1024;
/// Memories of one step.
pub(super) const PIECE: usize = 1000;

pub(super) const ALIKE: Sql = select_listed!("memory_by_digest", "digest");

impl Memories<'_> {
    /// An exact repeat of an active memory within its session is that memory: nothing changes.
    pub async fn save(self, scope: &Scope, memory: NewMemory) -> Result<SaveResult> {
        let saved = self.save_all(scope, vec![memory]).await?.pop();
        saved.ok_or_else(|| Error::invalid("the list of memories to save is empty"))
    }

    /// Saves memories in their order, all or none.
    pub async fn save_all(self, scope: &Scope, memories: Vec<NewMemory>) -> Result<Vec<SaveResult>> {
        if memories.len() > BATCH_LIMIT {
            let count = memories.len();
            return Err(Error::invalid(format!("{count} memories at once; {BATCH_LIMIT} are allowed")));
        }
        let bytes: usize = memories.iter().map(|memory| memory.text.len()).sum();
        if bytes > BATCH_BYTES_LIMIT {
            return Err(Error::invalid(format!(
                "the memories have {bytes} bytes together; {BATCH_BYTES_LIMIT} are allowed at once"
            )));
        }
        let memories: Vec<Memory> = memories.into_iter().map(complete).collect::<Result<_>>()?;
        let memories = memories.into_iter().map(|memory| (memory, Vec::new())).collect();
        let entries = Entry::read_all(memories).await?;
        let scope = scope.clone();
        // What an agent saves is on record as its call.
        if entries.iter().all(|entry| entry.memory.writer != OPERATOR) {
            return transaction!(self.store, |conn| save(conn, &scope, &entries).await);
        }
        audited!(self.store, |tx| {
            let saved = save(&mut tx.conn, &scope, &entries).await?;
            for (entry, saved) in entries.iter().zip(&saved) {
                if entry.memory.writer == OPERATOR && !saved.repeated {
                    tx.operation(scope.user(), Action::MemorySaved, &saved.id, Some(scope.agent()))?;
                }
            }
            Ok(saved)
        })
    }
}

fn complete(new: NewMemory) -> Result<Memory> {
    let at = now();
    if new.status == MemoryStatus::Forgotten {
        return Err(Error::invalid("a new memory cannot have the status `forgotten`"));
    }
    let memory = Memory {
        id: new_id(),
        version: 1,
        status: new.status,
        text: new.text,
        kind: new.kind,
        tags: new.tags,
        actor: new.actor,
        session: new.session,
        writer: new.writer,
        source: new.source,
        trust: new.trust,
        occurred_at: new.occurred_at.unwrap_or(at),
        created_at: at,
        changed_at: at,
    };
    memory.check()?;
    Ok(memory)
}

async fn save(conn: &mut Conn, scope: &Scope, entries: &[Entry]) -> Result<Vec<SaveResult>> {
    let mut ledger = Ledger::lock(conn, scope).await?;
    let mut saved = Vec::with_capacity(entries.len());
    for piece in entries.chunks(PIECE) {
        let mut known = alike(conn, scope, piece).await?;
        let mut fresh = Vec::new();
        for entry in piece {
            let alike = known.entry(entry.digest).or_default();
            let there = alike.iter().find(|memory| is_repeat(memory, &entry.memory));
            let repeated = there.is_some();
            let Memory { id, version, status, .. } = there.unwrap_or(&entry.memory);
            saved.push(SaveResult { id: id.clone(), version: *version, status: *status, repeated });
            if !repeated {
                alike.push(entry.memory.clone());
                fresh.push(entry.clone());
            }
        }
        insert(conn, scope, &mut ledger, &fresh).await?;
    }
    ledger.write(conn, scope).await?;
    Ok(saved)
}

/// The memories that the entries may repeat, by their digest.
async fn alike(conn: &mut Conn, scope: &Scope, entries: &[Entry]) -> Result<HashMap<i64, Vec<Memory>>> {
    let digests: Vec<i64> = entries.iter().map(|entry| entry.digest).collect();
    let mut alike: HashMap<i64, Vec<Memory>> = HashMap::new();
    for kept in rows::fetch_all(conn, ALIKE, args![scope.user(), scope.agent(), digests]).await? {
        alike.entry(digest(&kept.memory)).or_default().push(kept.memory);
    }
    Ok(alike)
}

pub(super) const SESSIONS: Sql = listed!(
    "SELECT session, ordinal, last_seq FROM memory_sessions WHERE user_id = $1 AND agent = $2 AND session",
    "$3",
    ""
);
pub(super) const ACTORS: Sql = listed!(
    "SELECT actor FROM memory_actors WHERE user_id = $1 AND agent = $2 AND name = 0 AND actor",
    "$3",
    ""
);
pub(super) const FOLLOW: &str =
    "UPDATE agent_long_term_memory SET next_seq = $4 WHERE user_id = $1 AND agent = $2 AND seq = $3";

const LARGE_BYTES: usize = 64 * 1024;

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) memory: Memory,
    pub(super) document: Document,
    pub(super) digest: i64,
    /// Its earlier versions.
    pub(super) history: Vec<Memory>,
}

impl Entry {
    /// Analyzes the text of the memory, which takes a while if it is long.
    pub(super) fn new(memory: Memory, history: Vec<Memory>) -> Self {
        let document = analyze::document(&memory.text);
        let digest = digest(&memory);
        Self { memory, document, digest, history }
    }

    /// Analyzes many memories, on a blocking thread if that takes long.
    pub(super) async fn read_all(memories: Vec<(Memory, Vec<Memory>)>) -> Result<Vec<Self>> {
        let bytes: usize = memories.iter().map(|(memory, _)| memory.text.len()).sum();
        let read = move || memories.into_iter().map(|(memory, history)| Self::new(memory, history)).collect();
        if bytes < LARGE_BYTES {
            return Ok(read());
        }
        let interrupted =
            |error| Error::new(ErrorKind::Other, "reading the memories was interrupted").because(error);
        tokio::task::spawn_blocking(read).await.map_err(interrupted)
    }

    fn is_found(&self) -> bool {
        self.memory.status == MemoryStatus::Active
    }
}

/// Finds memories that this one may repeat: a short hash, so equals are compared by [`is_repeat`].
pub(super) fn digest(memory: &Memory) -> i64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(memory.session.as_deref().unwrap_or_default().as_bytes()).update(&[0]);
    hasher.update(memory.text.as_bytes());
    let [a, b, c, d, e, f, g, h, ..] = *hasher.finalize().as_bytes();
    i64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// Whether a new memory repeats an existing one: the same words of the same person in the same session, and nothing
/// more. One with another explicit time is not a repeat. A quarantined memory does not block the same memory of a
/// trusted writer.
pub(super) fn is_repeat(there: &Memory, new: &Memory) -> bool {
    let said = |memory: &Memory| {
        let Memory { status, session, actor, kind, text, tags, source, .. } = memory.clone();
        (status, session, actor, kind, text, tags, source)
    };
    // Without an explicit time, `occurred_at` is the time of saving.
    let same_time = new.occurred_at == new.created_at || new.occurred_at == there.occurred_at;
    same_time && said(there) == said(new)
}

pub(super) fn flags(document: &Document) -> i64 {
    i64::from(document.asks) | i64::from(document.ends_asking) << 1
}

/// Position of a memory in its scope and session.
struct Position {
    seq: u32,
    session: u32,
    previous: Option<u32>,
    next: Option<u32>,
}

pub(super) async fn insert(
    conn: &mut Conn,
    scope: &Scope,
    ledger: &mut Ledger,
    entries: &[Entry],
) -> Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    let before = ledger.clone();
    let places = assign_positions(conn, scope, ledger, entries).await?;
    let rows = entries.iter().zip(&places).map(|(entry, place)| row(scope, entry, place));
    let rows: Vec<Vec<Value>> = rows.collect::<Result<_>>()?;
    conn.insert_rows(
        "INSERT INTO agent_long_term_memory (user_id, agent, seq, session_ordinal, previous_seq, next_seq, asks, \
         occurred_at, status, kind, actor, id, version, digest, session, writer, source, trust, created_at, \
         changed_at, tags, text)",
        rows,
        "",
    )
    .await?;
    add_actors(conn, scope, ledger, entries).await?;
    add_history(conn, scope, entries).await?;
    let found: Vec<IndexedMemory<'_>> = entries
        .iter()
        .zip(&places)
        .filter(|(entry, _)| entry.is_found())
        .map(|(entry, place)| IndexedMemory {
            seq: place.seq,
            session: place.session,
            document: &entry.document,
        })
        .collect();
    found.iter().for_each(|placed| ledger.add(placed.document));
    index::append(conn, scope, &found).await?;
    if ledger.has_outgrown(&before) {
        conn.execute(dialect!(MEMORY_STATISTICS), Vec::new()).await?;
    }
    Ok(())
}

/// Numbers each entry, and links it to the last memory of its session.
async fn assign_positions(
    conn: &mut Conn,
    scope: &Scope,
    ledger: &mut Ledger,
    entries: &[Entry],
) -> Result<Vec<Position>> {
    let names: BTreeSet<&str> = entries.iter().filter_map(|entry| entry.memory.session.as_deref()).collect();
    let mut sessions: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    if !names.is_empty() {
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let rows: Vec<(String, i64, i64)> =
            conn.fetch_all(SESSIONS, args![scope.user(), scope.agent(), names]).await?;
        for (session, ordinal, last) in rows {
            sessions.insert(session, (rows::number(ordinal)?, rows::number(last)?));
        }
    }
    let mut places: Vec<Position> = Vec::with_capacity(entries.len());
    for entry in entries {
        let seq = ledger.next_seq()?;
        let Some(name) = entry.memory.session.as_deref() else {
            places.push(Position { seq, session: 0, previous: None, next: None });
            continue;
        };
        let (session, previous) = match sessions.get(name) {
            Some((ordinal, last)) => (*ordinal, Some(*last)),
            None => (ledger.next_session()?, None),
        };
        sessions.insert(name.to_owned(), (session, seq));
        if let Some(previous) = previous {
            match places.iter_mut().rev().find(|place| place.seq == previous) {
                Some(place) => place.next = Some(seq),
                None => {
                    let values = args![scope.user(), scope.agent(), i64::from(previous), i64::from(seq)];
                    conn.execute(FOLLOW, values).await?;
                }
            }
        }
        places.push(Position { seq, session, previous, next: None });
    }
    let rows = sessions.into_iter().map(|(session, (ordinal, last))| {
        args![scope.user(), scope.agent(), session, i64::from(ordinal), i64::from(last)]
    });
    conn.insert_rows(
        "INSERT INTO memory_sessions (user_id, agent, session, ordinal, last_seq)",
        rows.collect(),
        "ON CONFLICT (user_id, agent, session) DO UPDATE SET last_seq = excluded.last_seq",
    )
    .await?;
    Ok(places)
}

fn row(scope: &Scope, entry: &Entry, place: &Position) -> Result<Vec<Value>> {
    let memory = &entry.memory;
    Ok(args![
        scope.user(),
        scope.agent(),
        i64::from(place.seq),
        i64::from(place.session),
        place.previous.map(i64::from),
        place.next.map(i64::from),
        flags(&entry.document),
        memory.occurred_at,
        memory.status.name(),
        &memory.kind,
        memory.actor.as_deref(),
        &memory.id,
        memory.version,
        entry.digest,
        memory.session.as_deref(),
        &memory.writer,
        memory.source.as_deref(),
        &memory.trust,
        memory.created_at,
        memory.changed_at,
        json(&memory.tags)?,
        &memory.text,
    ])
}

async fn add_actors(conn: &mut Conn, scope: &Scope, ledger: &mut Ledger, entries: &[Entry]) -> Result<()> {
    let mut actors: BTreeSet<&str> =
        entries.iter().map(|entry| entry.memory.actor.as_deref().unwrap_or_default()).collect();
    let names: Vec<String> = actors.iter().map(|actor| (*actor).to_owned()).collect();
    let known: Vec<(String,)> = conn.fetch_all(ACTORS, args![scope.user(), scope.agent(), names]).await?;
    for (actor,) in &known {
        actors.remove(actor.as_str());
    }
    let rows = actors.iter().flat_map(|actor| {
        let names = analyze::name(actor).into_iter().map(|name| name.0);
        std::iter::once(0).chain(names).map(|name| args![scope.user(), scope.agent(), name, *actor])
    });
    ledger.actors += i64::try_from(actors.len()).unwrap_or(0);
    conn.insert_rows("INSERT INTO memory_actors (user_id, agent, name, actor)", rows.collect(), "").await
}

async fn add_history(conn: &mut Conn, scope: &Scope, entries: &[Entry]) -> Result<()> {
    let past = entries.iter().flat_map(|entry| &entry.history);
    let rows =
        past.map(|memory| Ok(args![scope.user(), scope.agent(), &memory.id, memory.version, json(memory)?]));
    let rows: Vec<Vec<Value>> = rows.collect::<Result<_>>()?;
    conn.insert_rows("INSERT INTO memory_history (user_id, agent, id, version, state)", rows, "").await
}

pub(super) fn json<T: serde::Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Error::invalid("the memory cannot be written").because(error))
}
