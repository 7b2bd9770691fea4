//! Erasing a memory: its text leaves the store, wherever it stands literally. A tombstone without text stays.

use std::sync::Arc;

use crate::areas::Memories;
use crate::audit::Action;
use crate::audit::erase as records;
use crate::changes::Topic;
use crate::db::{Conn, Value, args, audited};
use crate::erase::{self, ERASED, ErasedPlace, Forms, is_distinct};
use crate::error::Result;
use crate::memories::alike::UNLEARN;
use crate::memories::change::{read_state, replace};
use crate::memories::index::Ledger;
use crate::memories::rows::{self, MemoryRow, SAVED_AFTER};
use crate::memories::{Memory, MemoryStatus};
use crate::store::{OPERATOR, Scope, now};

const PAGE: u32 = 500;
const OWNER: &str = "owner";
const MEMORIES: &str = "other memories";
const AUDIT: &str = "audit records";

#[derive(Clone, Debug, PartialEq)]
pub struct EraseReport {
    /// As it was before; after [`Memories::erase`] the tombstone.
    pub memory: Memory,
    /// Earlier versions.
    pub versions: u64,
    /// Rows of the user elsewhere that have the text.
    pub places: Vec<ErasedPlace>,
    /// Whether only the memory itself was looked at: a text of one word or number occurs by chance.
    pub is_too_short: bool,
    /// Audit records in chains of other replicas, which keep the text.
    pub foreign_records: u64,
}

impl Memories<'_> {
    /// What [`Memories::erase`] would change.
    pub async fn plan_erase(self, scope: &Scope, id: &str) -> Result<EraseReport> {
        let mut conn = self.store.reader().await?;
        let target = Target::read(&mut conn, scope, id).await?;
        let (user, forms) = (scope.user(), target.forms());
        let mut places = Vec::new();
        let others = others(&mut conn, user, &forms, &target.kept).await?.len() as u64;
        let mut foreign_records = 0;
        if !forms.is_empty() {
            places = erase::count(&mut conn, user, &forms).await?;
            let audited = records::forms(&target.texts);
            let found = records::count(&mut conn, self.store.chain(), user, &audited).await?;
            foreign_records = found.foreign;
            add(&mut places, AUDIT, found.own);
        }
        add(&mut places, MEMORIES, others);
        own_history(&mut places, target.versions());
        Ok(target.report(places, foreign_records))
    }

    /// Removes the text of a memory, and of its history, from everything that is stored of the user, and leaves a tombstone.
    /// Erasing again only removes what the database file may still contain. For operators.
    pub async fn erase(self, scope: &Scope, id: &str) -> Result<EraseReport> {
        let (scope, id, chain) = (scope.clone(), id.to_owned(), Arc::clone(self.store.chain()));
        let report = audited!(self.store, |tx| {
            let conn = &mut tx.conn;
            let mut ledger = Ledger::lock(conn, &scope).await?;
            let target = Target::read(conn, &scope, &id).await?;
            if target.kept.memory.status == MemoryStatus::Erased {
                return Ok(target.report(Vec::new(), 0));
            }
            let (user, forms) = (scope.user(), target.forms());
            let tombstone = bury(conn, &scope, &mut ledger, &target.kept).await?;
            let others = others(conn, user, &forms, &target.kept).await?;
            let count = others.len() as u64;
            for (scope, other) in others {
                erase_other(conn, &scope, &forms, &other).await?;
            }
            let (mut places, mut foreign_records) = (Vec::new(), 0);
            if !forms.is_empty() {
                places = erase::erase(conn, user, &forms).await?;
                conn.notify(Topic::Approvals).await?;
                conn.notify(Topic::Instructions).await?;
                let audited = records::forms(&target.texts);
                let found = records::erase(tx, &chain, user, &audited).await?;
                foreign_records = found.foreign;
                add(&mut places, AUDIT, found.own);
            }
            add(&mut places, MEMORIES, count);
            tx.operation(user, Action::MemoryErased, &id, Some(scope.agent()))?;
            Ok(EraseReport { memory: tombstone, ..target.report(places, foreign_records) })
        })?;
        let compacted = self.store.compact().await;
        compacted.map_err(|error| {
            error
                .about(
                    "the text is erased, but its bytes may still be in the files of the database".to_owned(),
                )
                .hint("run the same command again when no other process uses the store")
        })?;
        Ok(report)
    }
}

/// The memory to erase.
struct Target {
    kept: MemoryRow,
    /// Of all its versions, each once.
    texts: Vec<String>,
    past: u64,
}

impl Target {
    async fn read(conn: &mut Conn, scope: &Scope, id: &str) -> Result<Self> {
        let kept = rows::expect(conn, scope, id).await?;
        let sql =
            "SELECT state FROM memory_history WHERE user_id = $1 AND agent = $2 AND id = $3 ORDER BY version";
        let past: Vec<(String,)> = conn.fetch_all(sql, args![scope.user(), scope.agent(), id]).await?;
        let mut texts = vec![kept.memory.text.clone()];
        for (state,) in &past {
            texts.push(read_state(id, state)?.text);
        }
        texts.sort();
        texts.dedup();
        Ok(Self { kept, texts, past: past.len() as u64 })
    }

    fn versions(&self) -> u64 {
        self.past
    }

    fn forms(&self) -> Forms {
        Forms::new(self.texts.iter().map(String::as_str))
    }

    fn report(self, places: Vec<ErasedPlace>, foreign_records: u64) -> EraseReport {
        let is_erased = self.kept.memory.status == MemoryStatus::Erased;
        EraseReport {
            is_too_short: !is_erased && !self.texts.iter().all(|text| is_distinct(text.trim())),
            memory: self.kept.memory,
            versions: self.past,
            places,
            foreign_records,
        }
    }
}

fn add(places: &mut Vec<ErasedPlace>, what: &'static str, count: u64) {
    places.extend((count > 0).then_some(ErasedPlace { what, count }));
}

/// The history of the memory itself is told apart from that of others.
fn own_history(places: &mut Vec<ErasedPlace>, versions: u64) {
    for place in places.iter_mut().filter(|place| place.what == "memory history") {
        place.count = place.count.saturating_sub(versions);
    }
    places.retain(|place| place.count > 0);
}

/// Replaces a memory and its history with a tombstone.
async fn bury(conn: &mut Conn, scope: &Scope, ledger: &mut Ledger, kept: &MemoryRow) -> Result<Memory> {
    let before = &kept.memory;
    let tombstone = Memory {
        version: before.version + 1,
        status: MemoryStatus::Erased,
        text: String::new(),
        tags: Vec::new(),
        actor: None,
        session: None,
        source: None,
        writer: OPERATOR.to_owned(),
        trust: OWNER.to_owned(),
        changed_at: now(),
        ..before.clone()
    };
    replace(conn, scope, ledger, kept.clone(), &tombstone).await?;
    let of_memory = args![scope.user(), scope.agent(), i64::from(kept.seq)];
    let sql = "UPDATE agent_long_term_memory SET tags = '[]', actor = NULL, session = NULL, source = NULL \
         WHERE user_id = $1 AND agent = $2 AND seq = $3";
    conn.execute(sql, of_memory.clone()).await?;
    conn.execute(UNLEARN, of_memory).await?;
    let sql = "DELETE FROM memory_history WHERE user_id = $1 AND agent = $2 AND id = $3";
    conn.execute(sql, args![scope.user(), scope.agent(), &before.id]).await?;
    Ok(tombstone)
}

/// The other memories of the user, of any agent, with the text.
async fn others(
    conn: &mut Conn,
    user: &str,
    forms: &Forms,
    target: &MemoryRow,
) -> Result<Vec<(Scope, MemoryRow)>> {
    let mut found = Vec::new();
    if forms.is_empty() {
        return Ok(found);
    }
    let agents: Vec<(String,)> = conn
        .fetch_all("SELECT agent FROM memory_scopes WHERE user_id = $1 ORDER BY agent", args![user])
        .await?;
    for (agent,) in agents {
        let scope = Scope::new(user, &agent)?;
        let mut last = 0;
        loop {
            let values: Vec<Value> = args![user, &agent, last, PAGE];
            let page = rows::fetch_all(conn, SAVED_AFTER, values).await?;
            let Some(newest) = page.last() else { break };
            last = i64::from(newest.seq);
            let has_text = |kept: &MemoryRow| forms.erase(&kept.memory.text).is_some();
            let others = page.into_iter().filter(|kept| kept.memory.id != target.memory.id);
            found.extend(others.filter(has_text).map(|kept| (scope.clone(), kept)));
        }
    }
    Ok(found)
}

/// A memory that says nothing else is erased, too.
async fn erase_other(conn: &mut Conn, scope: &Scope, forms: &Forms, kept: &MemoryRow) -> Result<()> {
    let mut ledger = Ledger::lock(conn, scope).await?;
    let text = forms.erase(&kept.memory.text).unwrap_or_default();
    if text.trim() == ERASED {
        return bury(conn, scope, &mut ledger, kept).await.map(drop);
    }
    let after = Memory { text, ..kept.memory.clone() };
    replace(conn, scope, &mut ledger, kept.clone(), &after).await?;
    let of_memory = args![scope.user(), scope.agent(), i64::from(kept.seq)];
    conn.execute(UNLEARN, of_memory).await.map(drop)
}
