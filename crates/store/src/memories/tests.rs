//! No statement may read more of a scope than it needs: SQLite's plans, which it makes without statistics.

use crate::db::{Sql, args, dialect};
use crate::memories::{change, index, lookup, rows, save, search, transfer};
use crate::store::{DatabaseUrl, Store};

#[tokio::test]
async fn no_statement_walks_through_a_whole_scope() {
    let store = Store::open(DatabaseUrl::Memory).await.unwrap();
    let mut conn = store.db().reader().await.unwrap();
    let statements: [Sql; 17] = [
        rows::BY_ID.into(),
        rows::BY_IDS,
        rows::BY_SEQS,
        rows::SAVED_AFTER.into(),
        save::ALIKE,
        save::SESSIONS,
        save::ACTORS,
        save::FOLLOW.into(),
        change::UPDATE.into(),
        index::TAILS,
        dialect!(MEMORY_BLOCKS),
        lookup::LOOKUP,
        lookup::THESE,
        search::FEW_SINCE.into(),
        search::FEW_OF_KIND.into(),
        rows::NEWEST.into(),
        rows::NEWEST_OF_KIND.into(),
    ];
    for sql in statements.into_iter().chain([transfer::HISTORY]) {
        let explained: &'static str = format!("EXPLAIN QUERY PLAN {}", sql.sqlite).leak();
        let plan: Vec<(i64, i64, i64, String)> = conn.fetch_all(explained, args![]).await.unwrap();
        for (.., step) in &plan {
            let of_scope = step.contains("(user_id=? AND agent=?)") && !step.contains("memory_scopes");
            let walks = of_scope || step.starts_with("SCAN agent_long_term_memory");
            assert!(!walks && !step.contains("TEMP B-TREE FOR ORDER"), "{}\n{plan:#?}", sql.sqlite);
        }
        assert!(plan.iter().any(|(.., step)| step.contains("SEARCH")), "{}\n{plan:#?}", sql.sqlite);
    }
}
