//! Receipts: the exact requests that were sent to a model: system prompt, tools, messages. The text of a section, a definition or a
//! message is stored once, however often it was sent.

use crate::areas::Receipts;
use crate::db::{Conn, args, dialect, from_row, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{Scope, check_name, check_text, new_id, now};

/// Of a part, of the number of parts, and of all parts together.
const PART_LIMIT: usize = 4 * 1024 * 1024;
const PARTS_LIMIT: usize = 4000;
const PROMPT_LIMIT: usize = 16 * 1024 * 1024;
const DETAIL_LIMIT: usize = 1024 * 1024;
const USAGE_LIMIT: usize = 1024;

/// At most 4000 parts, tools and messages of 4 MiB each, and 16 MiB in all.
#[derive(Clone, Debug, Default)]
pub struct NewReceipt {
    pub layout: String,
    /// BLAKE3 of the system prompt, in hexadecimal.
    pub hash: String,
    /// Sections and separators whose concatenation is the system prompt.
    pub parts: Vec<String>,
    /// The definitions that were sent beside it, as JSON.
    pub tools: Vec<String>,
    /// The conversation, oldest first, as JSON.
    pub messages: Vec<String>,
    /// Sections, sources and notes as JSON text.
    pub detail: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub id: String,
    pub user: String,
    pub agent: String,
    pub layout: String,
    pub hash: String,
    pub detail: String,
    /// The tokens that the model reported for the request, as JSON text.
    pub usage: Option<String>,
    pub created_at: i64,
}

from_row! { Receipt { id, user, agent, layout, hash, detail, usage, created_at } }

/// A request as it was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentRequest {
    /// The system prompt.
    pub text: String,
    pub tools: Vec<String>,
    pub messages: Vec<String>,
}

/// The values of `prompt_receipt_parts.kind`.
const SYSTEM: i64 = 0;
const TOOL: i64 = 1;
const MESSAGE: i64 = 2;

/// The newest receipt to prune; all that are not newer are pruned, a set that three statements can name alike.
const NEWEST_TO_GO: &str = "SELECT created_at, user_id, id FROM (SELECT created_at, user_id, id FROM prompt_receipts \
     WHERE created_at < $1 ORDER BY created_at, user_id, id LIMIT +$2) AS oldest \
     ORDER BY created_at DESC, user_id DESC, id DESC LIMIT 1";
const PRUNE_SECTIONS: &str = "DELETE FROM prompt_sections WHERE (user_id, hash) IN (SELECT part.user_id, part.hash \
     FROM prompt_receipts receipt JOIN prompt_receipt_parts part \
     ON part.user_id = receipt.user_id AND part.receipt_id = receipt.id \
     WHERE (receipt.created_at, receipt.user_id, receipt.id) <= ($1, $2, $3)) \
     AND NOT EXISTS (SELECT 1 FROM prompt_receipt_parts part JOIN prompt_receipts receipt \
     ON receipt.user_id = part.user_id AND receipt.id = part.receipt_id \
     WHERE part.user_id = prompt_sections.user_id AND part.hash = prompt_sections.hash \
     AND (receipt.created_at, receipt.user_id, receipt.id) > ($1, $2, $3))";
const PRUNE_PARTS: &str = "DELETE FROM prompt_receipt_parts WHERE (user_id, receipt_id) IN (SELECT user_id, id \
     FROM prompt_receipts WHERE (created_at, user_id, id) <= ($1, $2, $3))";
const PRUNE_RECEIPTS: &str = "DELETE FROM prompt_receipts WHERE (created_at, user_id, id) <= ($1, $2, $3)";

impl Receipts<'_> {
    pub async fn insert(self, scope: &Scope, new: NewReceipt) -> Result<String> {
        check_name("layout", &new.layout)?;
        check_text("detail of the receipt", &new.detail, DETAIL_LIMIT)?;
        let all = || new.parts.iter().chain(&new.tools).chain(&new.messages);
        let count = all().count();
        if count > PARTS_LIMIT {
            return Err(Error::invalid(format!("the prompt has {count} parts; {PARTS_LIMIT} are allowed")));
        }
        let bytes: usize = all().map(String::len).sum();
        if bytes > PROMPT_LIMIT {
            return Err(Error::invalid(format!("the prompt has {bytes} bytes; {PROMPT_LIMIT} are allowed")));
        }
        for part in all() {
            check_text("part of the prompt", part, PART_LIMIT)?;
        }
        let mut hasher = blake3::Hasher::new();
        for part in &new.parts {
            hasher.update(part.as_bytes());
        }
        let hash = hasher.finalize().to_hex();
        if hash.as_str() != new.hash {
            return Err(Error::invalid(format!(
                "the hash of the prompt's parts is `{hash}`, not `{}`",
                new.hash
            )));
        }
        let scope = scope.clone();
        transaction!(self.store, |conn| insert(conn, &scope, new).await)
    }

    /// Receipts of a user by id, or by the beginning of the prompt's hash (at least eight characters); the latest first.
    pub async fn list(self, user: &str, name: &str, limit: u32) -> Result<Vec<Receipt>> {
        let sql = "SELECT id, user_id, agent, layout, hash, detail, usage, created_at FROM prompt_receipts \
             WHERE user_id = $1 AND (id = $2 OR ($3 <> '' AND hash >= $3 AND substr(hash, 1, length($3)) = $3)) \
             ORDER BY id DESC LIMIT +$4";
        let from = if name.len() >= 8 { name } else { "" };
        self.store.fetch_all(sql, args![user, name, from, limit]).await
    }

    pub async fn list_latest(self, user: &str, limit: u32) -> Result<Vec<Receipt>> {
        let sql = "SELECT id, user_id, agent, layout, hash, detail, usage, created_at FROM prompt_receipts \
             WHERE user_id = $1 ORDER BY id DESC LIMIT +$2";
        self.store.fetch_all(sql, args![user, limit]).await
    }

    /// The exact request that was sent, checked against its hashes.
    pub async fn replay(self, receipt: &Receipt) -> Result<SentRequest> {
        let sql = "SELECT part.kind, part.hash, section.text FROM prompt_receipt_parts part \
             LEFT JOIN prompt_sections section ON section.user_id = part.user_id AND section.hash = part.hash \
             WHERE part.user_id = $1 AND part.receipt_id = $2 ORDER BY part.position";
        let parts: Vec<(i64, Vec<u8>, Option<String>)> =
            self.store.fetch_all(sql, args![&receipt.user, &receipt.id]).await?;
        let corrupt = || {
            let message = format!("receipt `{}` no longer reproduces the text that was sent", receipt.id);
            Error::new(ErrorKind::Corrupt, message)
        };
        let mut sent = SentRequest::default();
        for (kind, hash, text) in parts {
            let is_same =
                |text: &String| blake3::hash(text.as_bytes()).as_bytes().as_slice() == hash.as_slice();
            let text = text.filter(is_same).ok_or_else(corrupt)?;
            match kind {
                TOOL => sent.tools.push(text),
                MESSAGE => sent.messages.push(text),
                _ => sent.text.push_str(&text),
            }
        }
        if blake3::hash(sent.text.as_bytes()).to_hex().as_str() != receipt.hash {
            return Err(corrupt());
        }
        Ok(sent)
    }

    /// Stores the tokens that the model reported for the request, as JSON text.
    pub async fn set_usage(self, user: &str, id: &str, usage: &str) -> Result<()> {
        check_text("usage of the receipt", usage, USAGE_LIMIT)?;
        let sql = "UPDATE prompt_receipts SET usage = $3 WHERE user_id = $1 AND id = $2";
        let (user, id, usage) = (user.to_owned(), id.to_owned(), usage.to_owned());
        transaction!(self.store, |conn| conn.execute(sql, args![user, id, usage]).await.map(drop))
    }

    /// Deletes up to `limit` receipts from before a time, the oldest first, and the sections that no other receipt needs;
    /// returns how many receipts. Of all users; for operators.
    pub async fn prune(self, before: i64, limit: u32) -> Result<u64> {
        let oldest: Option<(i64, String, String)> =
            self.store.fetch_optional(NEWEST_TO_GO, args![before, 1_i64]).await?;
        if oldest.is_none() {
            return Ok(0);
        }
        transaction!(self.store, |conn| prune(conn, before, limit).await)
    }
}

async fn prune(conn: &mut Conn, before: i64, limit: u32) -> Result<u64> {
    // A receipt that is being inserted right now may rely on a section that no other receipt needs.
    conn.execute(dialect!(LOCK_SECTIONS), Vec::new()).await?;
    let newest: Option<(i64, String, String)> =
        conn.fetch_optional(NEWEST_TO_GO, args![before, limit]).await?;
    let Some((at, user, id)) = newest else { return Ok(0) };
    conn.execute(PRUNE_SECTIONS, args![at, &user, &id]).await?;
    conn.execute(PRUNE_PARTS, args![at, &user, &id]).await?;
    conn.execute(PRUNE_RECEIPTS, args![at, user, id]).await
}

async fn insert(conn: &mut Conn, scope: &Scope, new: NewReceipt) -> Result<String> {
    let id = new_id();
    let kinds = [(SYSTEM, new.parts), (TOOL, new.tools), (MESSAGE, new.messages)];
    let parts: Vec<(i64, Vec<u8>, String)> = kinds
        .into_iter()
        .flat_map(|(kind, texts)| texts.into_iter().map(move |text| (kind, text)))
        .map(|(kind, text)| (kind, blake3::hash(text.as_bytes()).as_bytes().to_vec(), text))
        .collect();
    let hashes: Vec<(i64, Vec<u8>)> = parts.iter().map(|(kind, hash, _)| (*kind, hash.clone())).collect();
    let mut sections: Vec<(Vec<u8>, String)> =
        parts.into_iter().map(|(_, hash, text)| (hash, text)).collect();
    // Sorted, so that two writers of the same sections never deadlock.
    sections.sort();
    sections.dedup();
    let sections = sections.into_iter().map(|(hash, text)| args![scope.user(), hash, text]);
    conn.insert_rows(
        "INSERT INTO prompt_sections (user_id, hash, text)",
        sections.collect(),
        "ON CONFLICT (user_id, hash) DO NOTHING",
    )
    .await?;
    let sql = "INSERT INTO prompt_receipts (user_id, id, agent, layout, hash, detail, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)";
    conn.execute(sql, args![scope.user(), &id, scope.agent(), new.layout, new.hash, new.detail, now()])
        .await?;
    let parts = hashes
        .into_iter()
        .zip(0i64..)
        .map(|((kind, hash), position)| args![scope.user(), &id, position, hash, kind]);
    conn.insert_rows(
        "INSERT INTO prompt_receipt_parts (user_id, receipt_id, position, hash, kind)",
        parts.collect(),
        "",
    )
    .await?;
    Ok(id)
}
