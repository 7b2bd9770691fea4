//! Agents: soul and identity as an operator set them. No tool can write them; only an operator's command does.

use serde_json::Value as JsonValue;
use sqlx::types::Json;

use crate::areas::Agents;
use crate::audit::Action;
use crate::db::{args, audited, from_row};
use crate::error::{Error, Result};
use crate::store::{OPERATOR, check_name, check_text, now};

pub(crate) const SOUL_LIMIT: usize = 256 * 1024;
const IDENTITY_LIMIT: usize = 16 * 1024;

#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    pub name: String,
    pub soul: Option<String>,
    /// A JSON object: name, vibe, description and other keys.
    pub identity: Option<JsonValue>,
    /// Counts the changes.
    pub version: i64,
    pub changed_at: i64,
}

from_row! {
    Agent { name, soul, identity as Option<Json<JsonValue>>, version, changed_at } => {
        Ok(Self { name, soul, identity: identity.map(|Json(value)| value), version, changed_at })
    }
}

const BY_NAME: &str = "SELECT agent_name, soul, identity, version, changed_at FROM agent_configurations \
     WHERE agent_name = $1";
const ALL: &str =
    "SELECT agent_name, soul, identity, version, changed_at FROM agent_configurations ORDER BY agent_name";
/// Merges in the statement itself, so that two operators do not overwrite each other.
const PUT: &str = "INSERT INTO agent_configurations AS this (agent_name, soul, identity, version, changed_at) \
     VALUES ($1, $2, $3, 1, $4) ON CONFLICT (agent_name) DO UPDATE SET \
     soul = COALESCE(excluded.soul, this.soul), identity = COALESCE(excluded.identity, this.identity), \
     version = this.version + 1, changed_at = excluded.changed_at RETURNING version";

impl Agents<'_> {
    pub async fn get(self, name: &str) -> Result<Option<Agent>> {
        self.store.fetch_optional(BY_NAME, args![name]).await
    }

    pub async fn list(self) -> Result<Vec<Agent>> {
        self.store.fetch_all(ALL, Vec::new()).await
    }

    /// Sets what is given; the rest stays as it is. Returns the new version. For operators.
    pub async fn put(self, name: &str, soul: Option<&str>, identity: Option<JsonValue>) -> Result<i64> {
        check_name("agent", name)?;
        soul.map_or(Ok(()), |soul| check_text("soul", soul, SOUL_LIMIT))?;
        if let Some(identity) = &identity {
            if !identity.is_object() {
                return Err(Error::invalid("the identity is not a JSON object").hint(
                    "write it like {\"name\": \"Ada\", \"vibe\": \"calm\", \"description\": \"a librarian\"}",
                ));
            }
            // PostgreSQL keeps no NUL inside JSON either, however it is written.
            check_text("identity", &identity.to_string().replace("\\u0000", "\0"), IDENTITY_LIMIT)?;
        }
        let (name, soul) = (name.to_owned(), soul.map(str::to_owned));
        audited!(self.store, |tx| {
            tx.operation(OPERATOR, Action::AgentSet, &name, None)?;
            let (version,) = tx.conn.fetch_one(PUT, args![name, soul, identity, now()]).await?;
            Ok(version)
        })
    }

    /// Removes what was set; returns whether it existed. For operators.
    pub async fn remove(self, name: &str) -> Result<bool> {
        let name = name.to_owned();
        audited!(self.store, |tx| {
            let gone = tx
                .conn
                .execute("DELETE FROM agent_configurations WHERE agent_name = $1", args![&name])
                .await?;
            if gone > 0 {
                tx.operation(OPERATOR, Action::AgentRemoved, &name, None)?;
            }
            Ok(gone > 0)
        })
    }
}
