//! Receipts: the exact bytes of prompts that were sent. The text of a section is stored once, however often it was
//! sent.

use crate::areas::Receipts;
use crate::db::{Conn, args, dialect, from_row, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{Scope, check_name, check_text, new_id, now};

/// Of a part, of the number of parts, and of the whole prompt.
const PART_LIMIT: usize = 4 * 1024 * 1024;
const PARTS_LIMIT: usize = 1000;
const PROMPT_LIMIT: usize = 16 * 1024 * 1024;
const DETAIL_LIMIT: usize = 1024 * 1024;

#[derive(Clone, Debug)]
pub struct NewReceipt {
    pub layout: String,
    /// BLAKE3 of the whole text, in hexadecimal.
    pub hash: String,
    /// Sections and separators whose concatenation is the text. At most 1000 of 4 MiB each, and 16 MiB in
    /// all.
    pub parts: Vec<String>,
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
    pub created_at: i64,
}

from_row! { Receipt { id, user, agent, layout, hash, detail, created_at } }

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
        if new.parts.len() > PARTS_LIMIT {
            return Err(Error::invalid(format!(
                "the prompt has {} parts; {PARTS_LIMIT} are allowed",
                new.parts.len()
            )));
        }
        let bytes: usize = new.parts.iter().map(String::len).sum();
        if bytes > PROMPT_LIMIT {
            return Err(Error::invalid(format!("the prompt has {bytes} bytes; {PROMPT_LIMIT} are allowed")));
        }
        let mut hasher = blake3::Hasher::new();
        for part in &new.parts {
            check_text("part of the prompt", part, PART_LIMIT)?;
            hasher.update(part.as_bytes());
        }
        let hash = hasher.finalize().to_hex();
        if hash.as_str() != new.hash {
            return Err(Error::invalid(format!(
                "the parts of the prompt hash to `{hash}`, not to `{}`",
                new.hash
            )));
        }
        let scope = scope.clone();
        transaction!(self.store, |conn| insert(conn, &scope, new).await)
    }

    /// Receipts of a user by id, or by the beginning of the prompt's hash (at least eight characters); the latest first.
    pub async fn list(self, user: &str, name: &str, limit: u32) -> Result<Vec<Receipt>> {
        let sql = "SELECT id, user_id, agent, layout, hash, detail, created_at FROM prompt_receipts \
             WHERE user_id = $1 AND (id = $2 OR ($3 <> '' AND hash >= $3 AND substr(hash, 1, length($3)) = $3)) \
             ORDER BY id DESC LIMIT +$4";
        let from = if name.len() >= 8 { name } else { "" };
        self.store.fetch_all(sql, args![user, name, from, limit]).await
    }

    pub async fn list_latest(self, user: &str, limit: u32) -> Result<Vec<Receipt>> {
        let sql = "SELECT id, user_id, agent, layout, hash, detail, created_at FROM prompt_receipts \
             WHERE user_id = $1 ORDER BY id DESC LIMIT +$2";
        self.store.fetch_all(sql, args![user, limit]).await
    }

    /// The exact text that was sent, checked against its hash.
    pub async fn replay(self, receipt: &Receipt) -> Result<String> {
        let sql = "SELECT section.text FROM prompt_receipt_parts part JOIN prompt_sections section \
             ON section.user_id = part.user_id AND section.hash = part.hash \
             WHERE part.user_id = $1 AND part.receipt_id = $2 ORDER BY part.position";
        let parts: Vec<(String,)> = self.store.fetch_all(sql, args![&receipt.user, &receipt.id]).await?;
        let text: String = parts.into_iter().map(|(part,)| part).collect();
        let hash = blake3::hash(text.as_bytes()).to_hex();
        if hash.as_str() != receipt.hash {
            return Err(Error::new(
                ErrorKind::Corrupt,
                format!("receipt `{}` no longer gives the text that was sent", receipt.id),
            ));
        }
        Ok(text)
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
    let hashes: Vec<Vec<u8>> =
        new.parts.iter().map(|part| blake3::hash(part.as_bytes()).as_bytes().to_vec()).collect();
    let mut sections: Vec<(Vec<u8>, String)> = hashes.iter().cloned().zip(new.parts).collect();
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
    let parts =
        hashes.into_iter().zip(0i64..).map(|(hash, position)| args![scope.user(), &id, position, hash]);
    conn.insert_rows(
        "INSERT INTO prompt_receipt_parts (user_id, receipt_id, position, hash)",
        parts.collect(),
        "",
    )
    .await?;
    Ok(id)
}
