//! No statement of a consolidation may read more of a scope than it needs: SQLite's plans, which it makes without
//! statistics.

use super::{apply, due, undo};
use crate::db::{Sql, args};
use crate::memories::alike;
use crate::store::{DatabaseUrl, Store};

#[tokio::test]
async fn no_statement_walks_through_a_whole_scope() {
    let store = Store::open(DatabaseUrl::Memory).await.unwrap();
    let mut conn = store.db().reader().await.unwrap();
    let statements: [Sql; 13] = [
        due::UNSEEN.into(),
        due::EXPIRED.into(),
        apply::OVERDUE.into(),
        apply::UNDATED.into(),
        apply::OLDEST.into(),
        apply::ARCHIVE,
        apply::PRUNE,
        apply::EXPIRE.into(),
        undo::ITEMS.into(),
        undo::RESTORE.into(),
        alike::ALIKE,
        alike::NEIGHBOURS.into(),
        alike::UNLEARN.into(),
    ];
    for sql in statements {
        let explained: &'static str = format!("EXPLAIN QUERY PLAN {}", sql.sqlite).leak();
        let plan: Vec<(i64, i64, i64, String)> = conn.fetch_all(explained, args![]).await.unwrap();
        for (.., step) in &plan {
            let walks = step.contains("(user_id=? AND agent=?)")
                || (step.starts_with("SCAN") && !step.contains("json_each"));
            assert!(!walks && !step.contains("TEMP B-TREE FOR ORDER"), "{}\n{plan:#?}", sql.sqlite);
        }
        assert!(plan.iter().any(|(.., step)| step.contains("SEARCH")), "{}\n{plan:#?}", sql.sqlite);
    }
}
