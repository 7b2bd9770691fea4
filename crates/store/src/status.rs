//! Numbers about the store, for operators.

use serde::Serialize;

use crate::db::{args, dialect, migrate};
use crate::error::Result;
use crate::store::Store;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoreStatus {
    /// Schema version.
    pub schema: i64,
    pub schema_name: String,
    /// Size; on PostgreSQL that of its tables and indexes.
    pub bytes: i64,
    pub rows: Vec<StoredRows>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoredRows {
    pub what: String,
    pub count: i64,
}

impl Store {
    /// Counts the rows of all users. For operators.
    pub async fn status(&self) -> Result<StoreStatus> {
        let mut conn = self.db().reader().await?;
        let sql = "SELECT version, name FROM embody_migrations ORDER BY version DESC LIMIT 1";
        let (schema, schema_name) = conn.fetch_one(sql, Vec::new()).await?;
        let tables: Vec<String> = migrate::tables().map(str::to_owned).collect();
        let (bytes,): (i64,) = conn.fetch_one(dialect!(SIZE), args![tables]).await?;
        let rows: Vec<(String, i64)> = conn.fetch_all(COUNTS, Vec::new()).await?;
        let rows = rows.into_iter().map(|(what, count)| StoredRows { what, count }).collect();
        Ok(StoreStatus { schema, schema_name, bytes, rows })
    }
}

const COUNTS: &str = "\
     SELECT 'users', COUNT(*) FROM users \
     UNION ALL SELECT 'tokens', COUNT(*) FROM tokens \
     UNION ALL SELECT 'agents', COUNT(*) FROM agent_configurations \
     UNION ALL SELECT 'instructions', COUNT(*) FROM user_agent_prompt_customizations \
     UNION ALL SELECT 'memories', COUNT(*) FROM agent_long_term_memory \
     UNION ALL SELECT 'habits', COUNT(*) FROM mind_habits \
     UNION ALL SELECT 'cautions', COUNT(*) FROM mind_cautions \
     UNION ALL SELECT 'tasks', COUNT(*) FROM tasks \
     UNION ALL SELECT 'schedules', COUNT(*) FROM schedules \
     UNION ALL SELECT 'threads', COUNT(*) FROM threads \
     UNION ALL SELECT 'messages', COUNT(*) FROM messages \
     UNION ALL SELECT 'incoming', COUNT(*) FROM incoming \
     UNION ALL SELECT 'outgoing', COUNT(*) FROM outgoing \
     UNION ALL SELECT 'sessions', COUNT(*) FROM broker_sessions \
     UNION ALL SELECT 'approvals', COUNT(*) FROM approvals \
     UNION ALL SELECT 'audit records', COUNT(*) FROM audit \
     UNION ALL SELECT 'waiting observations', COUNT(*) FROM observation_outbox \
     UNION ALL SELECT 'receipts', COUNT(*) FROM prompt_receipts \
     UNION ALL SELECT 'mind log entries', COUNT(*) FROM mind_log \
     UNION ALL SELECT 'commitments', COUNT(*) FROM commitments \
     UNION ALL SELECT 'instruction proposals', COUNT(*) FROM instruction_proposals \
     UNION ALL SELECT 'consolidations', COUNT(*) FROM consolidations";
