//! Databases that an earlier version wrote are brought up to date, and keep what is in them.

use embody_store::notices::NoticeFilter;
use embody_store::outgoing::NewOutgoing;
use embody_store::tasks::TaskContent;
use embody_store::threads::NewThread;
use embody_store::{DatabaseUrl, Store};
use sqlx::{AssertSqlSafe, Connection};

use crate::world::{World, scope};
use crate::{incoming, outgoing};

/// What the later migrations made, taken away again: a database of the first.
const BACK: &str = "DROP TABLE incoming; DROP TABLE outgoing; DROP TABLE channel_cursors; DROP TABLE heard; \
     DROP TABLE posts; DROP TABLE held_calls; DROP TABLE seal_keys; DROP TABLE parked_calls; \
     DROP TABLE letters; ALTER TABLE broker_sessions DROP COLUMN hello; DROP INDEX tool_pins_by_change; \
     ALTER TABLE tool_pins DROP COLUMN is_gone; DROP TABLE session_servers; \
     ALTER TABLE broker_sessions DROP COLUMN conversation; ALTER TABLE broker_sessions DROP COLUMN written_in; \
     ALTER TABLE broker_sessions DROP COLUMN delivered_in; ALTER TABLE broker_sessions DROP COLUMN bounced; \
     ALTER TABLE tokens DROP COLUMN may_approve; ALTER TABLE tokens DROP COLUMN signed_in_with; \
     DROP TABLE sign_in_codes; \
     ALTER TABLE schedules DROP COLUMN origin; ALTER TABLE schedules DROP COLUMN quarantined; \
     DROP TABLE untrusted_read_origins; ALTER TABLE schedules DROP COLUMN origins; \
     ALTER TABLE tasks DROP COLUMN trust; DROP TABLE listed_bodies; DROP TABLE server_health; \
     ALTER TABLE prompt_receipt_parts DROP COLUMN kind; ALTER TABLE prompt_receipts DROP COLUMN usage; \
     DROP TABLE model_requests; DROP TABLE budget_notices; DROP TABLE notices; \
     DELETE FROM embody_migrations WHERE version > 1";

#[tokio::test]
async fn a_sqlite_file_of_the_first_version_is_brought_up_to_date() {
    upgraded(World::file().await).await;
}

#[tokio::test]
async fn a_postgres_database_of_the_first_version_is_brought_up_to_date() {
    upgraded(World::postgres().await).await;
}

/// A database of the version before notices.
const BEFORE_NOTICES: &str = "DROP TABLE notices; DELETE FROM embody_migrations WHERE version > 16";

#[tokio::test]
async fn a_notice_that_waited_for_a_conversation_in_a_file_becomes_an_entry() {
    waiting_notices_become_entries(World::file().await).await;
}

#[tokio::test]
async fn a_notice_that_waited_for_a_conversation_on_postgres_becomes_an_entry() {
    waiting_notices_become_entries(World::postgres().await).await;
}

async fn waiting_notices_become_entries(world: World) {
    let place = world.store.url().clone();
    for (user, channel, kind) in
        [("ann", "web", "notice"), ("bob", "web", "notice"), ("ann", "telegram", "notice")]
    {
        let new = NewOutgoing {
            scope: scope(user, "assistant"),
            channel: channel.into(),
            to: user.into(),
            text: format!("tea for {user} on {channel}"),
            kind: kind.into(),
            urgency: "high".into(),
            about: None,
        };
        world.store.outgoing().enqueue(new).await.unwrap();
    }
    let World { store, folder: _folder } = world;
    store.close().await;
    run(&place, BEFORE_NOTICES).await;
    let store = Store::open(place).await.unwrap();
    let notices = store.notices().list("ann", NoticeFilter::Unread, 10).await.unwrap();
    let found: Vec<_> = notices.iter().map(|one| (&*one.text, &*one.urgency, &*one.origin.channel)).collect();
    assert_eq!(found, [("tea for ann on web", "high", "")]);
    let waiting: Vec<_> = store.outgoing().list("ann", 10).await.unwrap();
    assert_eq!(waiting.iter().map(|one| &*one.channel).collect::<Vec<_>>(), ["telegram"]);
    assert_eq!(store.notices().unread("bob").await.unwrap().count, 1);
}

async fn upgraded(world: World) {
    let new = NewThread { channel: "web".into(), external: None, title: None };
    let thread = world.store.threads().open(&scope("ann", "assistant"), new).await.unwrap();
    let place = world.store.url().clone();
    world.store.untrusted_reads().record(&scope("ann", "assistant"), "assistant", &[], 1).await.unwrap();
    for (user, agent) in [("ann", "assistant"), ("ann", "other"), ("bob", "assistant")] {
        world.store.tasks().add(user, task(agent)).await.unwrap();
    }
    let World { store, folder: _folder } = world;
    store.close().await;
    run(&place, BACK).await;
    // Two processes of the new version begin at once.
    let (store, second) = tokio::join!(Store::open(place.clone()), Store::open(place));
    let (store, second) = (store.unwrap(), second.unwrap());
    assert_eq!(store.status().await.unwrap().schema, 17);
    assert_eq!(store.threads().get("ann", &thread.id).await.unwrap(), Some(thread));
    let trusts = async |user: &str| -> Vec<String> {
        store.tasks().list(user, 0, 10).await.unwrap().into_iter().map(|task| task.content.trust).collect()
    };
    assert_eq!(trusts("ann").await, ["exposed", "exposed"], "any agent of the user may have changed a task");
    assert_eq!(trusts("bob").await, ["agent"]);
    incoming::take(&store, "7", "1").await;
    assert_eq!(incoming::claim(&second, 10).await.len(), 1);
    outgoing::add(&second, "7", "text").await;
    assert_eq!(outgoing::claim(&store, 10).await.len(), 1);
}

fn task(agent: &str) -> TaskContent {
    TaskContent {
        agent: agent.into(),
        title: "one".into(),
        description: String::new(),
        status: "open".into(),
        steps: Vec::new(),
        trust: "agent".into(),
    }
}

/// Runs statements past the store.
async fn run(place: &DatabaseUrl, sql: &'static str) {
    match place {
        DatabaseUrl::Memory => panic!("memory does not outlive its store"),
        DatabaseUrl::File(path) => {
            let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
            let mut conn = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut conn).await.unwrap();
            conn.close().await.unwrap();
        }
        DatabaseUrl::Postgres { url, .. } => {
            let mut conn = sqlx::PgConnection::connect(url).await.unwrap();
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut conn).await.unwrap();
        }
    }
}
