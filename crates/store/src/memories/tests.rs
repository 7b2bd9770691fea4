//! No statement may read more of a scope than it needs: SQLite's plans, which it makes without statistics.

use crate::db::{args, dialect};
use crate::memories::{change, index, lookup, rows, save, search, transfer};
use crate::store::{DatabaseUrl, Store};

#[tokio::test]
async fn no_statement_walks_through_a_whole_scope() {
    let store = Store::open(DatabaseUrl::Memory).await.unwrap();
    let mut conn = store.db().reader().await.unwrap();
    let statements: [&str; 17] = [
        rows::BY_ID,
        rows::BY_IDS.sqlite,
        rows::BY_SEQS.sqlite,
        rows::SAVED_AFTER,
        save::ALIKE.sqlite,
        save::SESSIONS.sqlite,
        save::ACTORS.sqlite,
        save::FOLLOW,
        change::UPDATE,
        index::TAILS.sqlite,
        dialect!(MEMORY_BLOCKS).sqlite,
        lookup::LOOKUP.sqlite,
        lookup::THESE.sqlite,
        search::FEW_SINCE,
        search::FEW_OF_KIND,
        rows::NEWEST,
        rows::NEWEST_OF_KIND,
    ];
    for sql in statements.into_iter().chain([transfer::HISTORY.sqlite]) {
        let explained = format!("EXPLAIN QUERY PLAN {sql}");
        let plan: Vec<(i64, i64, i64, String)> = conn.fetch_all(explained, args![]).await.unwrap();
        for (.., step) in &plan {
            let of_scope = step.contains("(user_id=? AND agent=?)") && !step.contains("memory_scopes");
            let walks = of_scope || step.starts_with("SCAN agent_long_term_memory");
            assert!(!walks && !step.contains("TEMP B-TREE FOR ORDER"), "{sql}\n{plan:#?}");
        }
        assert!(plan.iter().any(|(.., step)| step.contains("SEARCH")), "{sql}\n{plan:#?}");
    }
}
