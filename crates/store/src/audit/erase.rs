//! Erasing a text from records. A record keeps its mac, so that the next one still follows it; a later record of the chain lists the
//! erased ones, each with a keyed hash of what is left, and verifying accepts exactly that.

use serde_json::{Map, Value, json};

use super::chain::Chain;
use super::entry::Entry;
use super::read::{self, StoredRecord};
use super::redact::scrubbed;
use crate::db::{Conn, WriteTx, args};
use crate::erase::{ERASED, Forms};
use crate::error::Result;
use crate::store::{hex, unhex};

/// The event of a record that lists erased ones.
pub(super) const EVENT: &str = "erased";
/// Records that one such record lists.
const LISTED: usize = 100;

/// The texts as records have them: without what looks like a secret.
pub(crate) fn forms(texts: &[String]) -> Forms {
    let scrubbed: Vec<String> = texts.iter().map(|text| scrubbed(text)).collect();
    Forms::new(texts.iter().chain(&scrubbed).map(String::as_str))
}

/// What a search for a text in the records of a user found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) own: u64,
    /// In chains of other replicas, which only those can change.
    pub(crate) foreign: u64,
}

pub(crate) async fn count(conn: &mut Conn, chain: &Chain, user: &str, forms: &Forms) -> Result<Found> {
    let mut found = Found::default();
    for name in read::chains(conn).await? {
        let count = search(conn, &name, user, forms).await?.len() as u64;
        *(if name == chain.name() { &mut found.own } else { &mut found.foreign }) += count;
    }
    Ok(found)
}

/// Removes the text from the records of a user in this chain, and records that.
pub(crate) async fn erase(tx: &mut WriteTx, chain: &Chain, user: &str, forms: &Forms) -> Result<Found> {
    let found = count(&mut tx.conn, chain, user, forms).await?;
    let records = search(&mut tx.conn, chain.name(), user, forms).await?;
    let mut seals = Vec::new();
    for (record, detail) in records {
        let sql = "UPDATE audit SET detail = $3 WHERE chain = $1 AND seq = $2";
        tx.conn.execute(sql, args![chain.name(), record.seq(), &detail]).await?;
        seals.push(json!([record.seq(), hex(&seal(chain, &record, detail.as_bytes()))]));
    }
    for listed in seals.chunks(LISTED) {
        tx.entries.push(Entry::note(EVENT, &json!({ "records": listed })));
    }
    Ok(found)
}

/// The records with the text, and their details without it.
async fn search(
    conn: &mut Conn,
    chain: &str,
    user: &str,
    forms: &Forms,
) -> Result<Vec<(StoredRecord, String)>> {
    let (mut found, mut after) = (Vec::new(), i64::MIN);
    loop {
        let page = read::page_of_user(conn, chain, user, after).await?;
        let Some(last) = page.last() else { return Ok(found) };
        after = last.seq();
        for record in page {
            let detail = std::str::from_utf8(record.mac_fields(record.seq()).detail).unwrap_or_default();
            if let Some(erased) = without(detail, forms) {
                found.push((record, erased));
            }
        }
    }
}

/// The whole arguments go: an excerpt may end inside the text, and its digest would confirm a guess.
fn without(detail: &str, forms: &Forms) -> Option<String> {
    let erased = forms.erase(detail)?;
    let Ok(Value::Object(mut members)) = serde_json::from_str::<Value>(detail) else { return Some(erased) };
    for member in ["args_excerpt", "args_digest"] {
        if let Some(value) = members.get_mut(member) {
            *value = ERASED.into();
        }
    }
    let mut kept = Map::new();
    for (name, value) in members {
        let text = value.as_str().and_then(|text| forms.erase(text)).map(Value::from);
        kept.insert(name, text.unwrap_or(value));
    }
    Some(Value::Object(kept).to_string())
}

fn seal(chain: &Chain, record: &StoredRecord, detail: &[u8]) -> [u8; 32] {
    let before: [u8; 32] = record.mac().try_into().unwrap_or_default();
    chain.mac(&before, &super::chain::RecordFields { detail, ..record.mac_fields(record.seq()) })
}

/// The mac of a record that says it was erased, and the seal that a later record must name.
pub(super) fn claim(chain: &Chain, record: &StoredRecord) -> Option<([u8; 32], [u8; 32])> {
    let detail = record.mac_fields(record.seq()).detail;
    let is_erased = detail.windows(ERASED.len()).any(|part| part == ERASED.as_bytes());
    let mac = record.mac().try_into().ok()?;
    is_erased.then(|| (mac, seal(chain, record, detail)))
}

/// The numbers and seals in a record of [`EVENT`].
pub(super) fn listed(detail: &[u8]) -> Vec<(i64, [u8; 32])> {
    let detail: Value = serde_json::from_slice(detail).unwrap_or_default();
    let records = detail.get("records").and_then(Value::as_array).cloned().unwrap_or_default();
    let pair = |record: &Value| Some((record.get(0)?.as_i64()?, unhex(record.get(1)?.as_str()?)?));
    records.iter().filter_map(pair).collect()
}
