//! Agents: soul and identity as an operator set them. No tool can write them; only an operator's command does.

use serde_json::Value as JsonValue;
use sqlx::types::Json;

use crate::areas::Agents;
use crate::audit::Action;
use crate::db::{Sql, args, audited, from_row};
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
/// Merges in the statement itself, so that two operators do not overwrite each other. A member replaces the whole stored one.
/// `$5` is an object with the names of all given members: they are removed first, because `json_patch` merges nested objects.
macro_rules! put {
    ($merged:literal) => {
        concat!(
            "INSERT INTO agent_configurations AS this (agent_name, soul, identity, version, changed_at) \
             VALUES ($1, $2, $3, 1, $4) ON CONFLICT (agent_name) DO UPDATE SET \
             soul = COALESCE(excluded.soul, this.soul), identity = COALESCE(",
            $merged,
            ", this.identity), version = this.version + 1, changed_at = excluded.changed_at RETURNING version"
        )
    };
}
const PUT: Sql = Sql {
    sqlite: put!("json_patch(json_patch(COALESCE(this.identity, '{}'), $5), excluded.identity)"),
    pg: put!(
        "((CASE jsonb_typeof(this.identity) WHEN 'object' THEN this.identity ELSE '{}' END) \
         - ARRAY(SELECT jsonb_object_keys($5))) || excluded.identity"
    ),
};

/// Removes the members that are `null`, of nested objects too. A `null` in an array stays.
fn strip_nulls(value: &mut JsonValue) {
    match value {
        JsonValue::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(strip_nulls);
        }
        JsonValue::Array(items) => items.iter_mut().for_each(strip_nulls),
        _ => {}
    }
}

/// An object with the same members, each `null`.
fn names_of(identity: &JsonValue) -> JsonValue {
    let names = identity.as_object().into_iter().flat_map(|members| members.keys());
    names.map(|name| (name.clone(), JsonValue::Null)).collect()
}

const KNOWN: &str = "SELECT agent_name FROM agent_configurations UNION SELECT agent FROM threads \
     UNION SELECT agent FROM schedules UNION SELECT agent FROM memory_scopes \
     UNION SELECT agent_name FROM user_agent_prompt_customizations ORDER BY 1";

impl Agents<'_> {
    pub async fn get(self, name: &str) -> Result<Option<Agent>> {
        self.store.fetch_optional(BY_NAME, args![name]).await
    }

    pub async fn list(self) -> Result<Vec<Agent>> {
        self.store.fetch_all(ALL, Vec::new()).await
    }

    /// Every name with a configuration, a thread, a schedule, memories or instructions. For operators.
    pub async fn list_known(self) -> Result<Vec<String>> {
        let rows: Vec<(String,)> = self.store.fetch_all(KNOWN, Vec::new()).await?;
        Ok(rows.into_iter().map(|(name,)| name).collect())
    }

    /// Sets what is given, also single members of the identity; the rest stays as it is. A member replaces the stored one, also
    /// if both are objects. A member that is `null` is removed.
    /// Returns the new version. For operators.
    pub async fn put(self, name: &str, soul: Option<&str>, mut identity: Option<JsonValue>) -> Result<i64> {
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
        let given = identity.as_ref().map(names_of);
        identity.iter_mut().for_each(strip_nulls);
        let (name, soul) = (name.to_owned(), soul.map(str::to_owned));
        audited!(self.store, |tx| {
            tx.operation(OPERATOR, Action::AgentSet, &name, None)?;
            let (version,) = tx.conn.fetch_one(PUT, args![name, soul, identity, now(), given]).await?;
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
