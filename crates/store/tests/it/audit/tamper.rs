//! Whatever is done to the records from outside is noticed, and the first bad record is named.

use embody_store::audit::{ChainState, Fault};
use embody_store::{DatabaseUrl, Store};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};

use super::{append, assert_intact, broken, note, state};
use crate::world::World;

/// Runs each test on the backends that somebody else can reach.
macro_rules! outside {
    ($($name:ident),* $(,)?) => {
        mod sqlite_file {
            $(#[tokio::test] async fn $name() { super::$name($crate::world::World::file().await).await })*
        }
        mod pooled {
            $(#[tokio::test] async fn $name() { super::$name($crate::world::World::pooled().await).await })*
        }
        mod postgres {
            $(#[tokio::test] async fn $name() { super::$name($crate::world::World::postgres().await).await })*
        }
    };
}
pub(super) use outside;

outside!(
    a_change_in_any_column_is_found,
    nothing_is_not_an_empty_text,
    a_record_in_the_middle_is_missed,
    the_tail_is_missed,
    the_tail_is_missed_with_its_counter,
    everything_is_missed,
    swapped_neighbours_are_found,
    records_swapped_far_apart_are_found,
    a_record_of_somebody_else_is_found,
    a_counter_that_was_turned_back_stops_writing,
    a_rollback_is_noticed_and_stays_on_record,
    the_chain_of_before_a_rollback_does_not_come_back_unnoticed,
    records_of_newer_versions_are_shown,
    records_that_cannot_be_written_are_kept,
);

/// What somebody with the database's password, but without the key, does.
pub(crate) async fn meddle(store: &Store, sql: &str) {
    match store.url() {
        DatabaseUrl::File(path) => {
            let options = SqliteConnectOptions::new().filename(path);
            let mut conn = SqliteConnection::connect_with(&options).await.unwrap();
            sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut conn).await.unwrap();
            conn.close().await.unwrap();
        }
        DatabaseUrl::Postgres { url, .. } => {
            let mut conn = PgConnection::connect(url).await.unwrap();
            sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut conn).await.unwrap();
            conn.close().await.unwrap();
        }
        DatabaseUrl::Memory => panic!("nobody else can reach it"),
    }
}

async fn a_change_in_any_column_is_found(world: World) {
    append(&world.store, 6).await;
    meddle(&world.store, "CREATE TABLE saved AS SELECT * FROM audit").await;
    let blob = match world.store.url() {
        DatabaseUrl::Postgres { .. } => r"'\x00'::bytea",
        _ => "x'00'",
    };
    let changes = [
        ("at = at + 1".to_owned(), Fault::Changed),
        ("id = 'x'".to_owned(), Fault::Changed),
        ("user_id = 'bob'".to_owned(), Fault::Changed),
        ("agent = 'coach'".to_owned(), Fault::Changed),
        ("agent = NULL".to_owned(), Fault::Changed),
        ("session = ''".to_owned(), Fault::Changed),
        ("session = NULL".to_owned(), Fault::Changed),
        ("agent = 'assistants', session = '-1'".to_owned(), Fault::Changed),
        ("channel = 'telegram'".to_owned(), Fault::Changed),
        ("event = 'gap'".to_owned(), Fault::Changed),
        ("detail = replace(detail, 'note', 'boat')".to_owned(), Fault::Changed),
        (format!("mac = {blob}"), Fault::Changed),
        ("seq = 100".to_owned(), Fault::Missing),
        ("seq = -1".to_owned(), Fault::Extra),
        ("chain = 'another'".to_owned(), Fault::Missing),
    ];
    for (change, fault) in changes {
        meddle(&world.store, &format!("UPDATE audit SET {change} WHERE seq = 4")).await;
        let found = broken(&world.store).await;
        let seq = if fault == Fault::Extra { -1 } else { 4 };
        assert_eq!((found.seq, &found.fault), (seq, &fault), "{change}");
        assert_eq!(found.id.is_none(), fault == Fault::Missing, "{change}");
        meddle(&world.store, "DELETE FROM audit; INSERT INTO audit SELECT * FROM saved").await;
        assert_intact(&world.store, 6).await;
    }
}

async fn nothing_is_not_an_empty_text(world: World) {
    let mut record = note("ann", "by hand");
    record.actor.agent = None;
    world.store.audit().append(record).await.unwrap();
    assert_intact(&world.store, 1).await;
    meddle(&world.store, "UPDATE audit SET agent = ''").await;
    assert_eq!(broken(&world.store).await.fault, Fault::Changed);
}

async fn a_record_in_the_middle_is_missed(world: World) {
    append(&world.store, 6).await;
    meddle(&world.store, "DELETE FROM audit WHERE seq = 3").await;
    let found = broken(&world.store).await;
    assert_eq!((found.seq, &found.fault), (3, &Fault::Missing));
    assert_eq!(found.to_string(), "record 3: it is missing, but later records exist");
}

async fn the_tail_is_missed(world: World) {
    append(&world.store, 6).await;
    meddle(&world.store, "DELETE FROM audit WHERE seq > 4").await;
    let found = broken(&world.store).await;
    assert_eq!((found.seq, &found.fault), (5, &Fault::Truncated { known: 6 }));
}

async fn the_tail_is_missed_with_its_counter(world: World) {
    append(&world.store, 6).await;
    turn_back(&world.store, 4).await;
    let found = broken(&world.store).await;
    assert_eq!((found.seq, &found.fault), (5, &Fault::Truncated { known: 6 }));
}

/// Makes the database what it was after so many records.
async fn turn_back(store: &Store, seq: i64) {
    meddle(
        store,
        &format!(
            "DELETE FROM audit WHERE seq > {seq}; \
             UPDATE audit_chains SET seq = {seq}, mac = (SELECT mac FROM audit WHERE seq = {seq})"
        ),
    )
    .await;
}

async fn everything_is_missed(world: World) {
    append(&world.store, 6).await;
    meddle(&world.store, "DELETE FROM audit; DELETE FROM audit_chains").await;
    let found = broken(&world.store).await;
    assert_eq!((found.seq, &found.fault), (1, &Fault::Truncated { known: 6 }));
}

async fn swap(store: &Store, one: i64, other: i64) {
    meddle(
        store,
        &format!(
            "UPDATE audit SET seq = 1000 WHERE seq = {one}; UPDATE audit SET seq = {one} WHERE seq = {other}; \
             UPDATE audit SET seq = {other} WHERE seq = 1000"
        ),
    )
    .await;
}

async fn swapped_neighbours_are_found(world: World) {
    append(&world.store, 6).await;
    swap(&world.store, 3, 4).await;
    let found = broken(&world.store).await;
    assert_eq!((found.seq, &found.fault), (3, &Fault::Reordered { belongs_at: 4 }));
}

async fn records_swapped_far_apart_are_found(world: World) {
    append(&world.store, 6).await;
    swap(&world.store, 1, 5).await;
    let found = broken(&world.store).await;
    assert_eq!((found.seq, &found.fault), (1, &Fault::Reordered { belongs_at: 5 }));
}

async fn a_record_of_somebody_else_is_found(world: World) {
    append(&world.store, 3).await;
    meddle(
        &world.store,
        "INSERT INTO audit SELECT chain, 4, 'x', at, user_id, agent, session, channel, event, detail, mac \
         FROM audit WHERE seq = 3; UPDATE audit_chains SET seq = 4",
    )
    .await;
    let found = broken(&world.store).await;
    assert_eq!((found.seq, found.id.as_deref(), &found.fault), (4, Some("x"), &Fault::Changed));
}

// spec: N-14
async fn a_counter_that_was_turned_back_stops_writing(world: World) {
    append(&world.store, 3).await;
    meddle(&world.store, "UPDATE audit_chains SET seq = 1").await;
    let error = world.store.audit().begin(&super::actor("ann"), super::intent("c-1")).await.unwrap_err();
    assert_eq!(error.to_string(), "the audit chain has records beyond its counter");
    assert_eq!(broken(&world.store).await.fault, Fault::Counter);
}

async fn a_rollback_is_noticed_and_stays_on_record(world: World) {
    append(&world.store, 6).await;
    turn_back(&world.store, 2).await;
    append(&world.store, 2).await;
    let lost = Fault::Gap { reason: "records_lost".into(), known: Some(6) };
    let found = broken(&world.store).await;
    assert_eq!((found.seq, &found.fault), (3, &lost), "noted, and the chain is still shorter than it was");
    // Work goes on; that something was lost can no longer be hidden by making the chain long again.
    append(&world.store, 8).await;
    let gaps = world.count("SELECT count(*) FROM audit WHERE event = 'gap'").await;
    assert_eq!(gaps, Some(1), "one loss is noted once");
    let found = broken(&world.store).await;
    assert_eq!((found.seq, &found.fault), (3, &lost));
    // What is lost after that is noted again.
    turn_back(&world.store, 9).await;
    append(&world.store, 2).await;
    assert_eq!(world.count("SELECT count(*) FROM audit WHERE event = 'gap'").await, Some(2));
    assert_eq!(
        found.to_string().split_once(": ").unwrap().1,
        "before it, records up to 6 were lost (`records_lost`)"
    );
}

async fn the_chain_of_before_a_rollback_does_not_come_back_unnoticed(world: World) {
    append(&world.store, 6).await;
    meddle(
        &world.store,
        "CREATE TABLE saved AS SELECT * FROM audit; CREATE TABLE counter AS SELECT * FROM audit_chains",
    )
    .await;
    turn_back(&world.store, 2).await;
    append(&world.store, 1).await;
    meddle(
        &world.store,
        "DELETE FROM audit; INSERT INTO audit SELECT * FROM saved; \
         DELETE FROM audit_chains; INSERT INTO audit_chains SELECT * FROM counter",
    )
    .await;
    append(&world.store, 2).await;
    let found = broken(&world.store).await;
    assert_eq!((found.seq, &found.fault), (7, &Fault::Gap { reason: "head_differs".into(), known: Some(4) }));
}

async fn records_of_newer_versions_are_shown(world: World) {
    append(&world.store, 2).await;
    meddle(&world.store, r#"UPDATE audit SET event = 'dream', detail = '{"of": ["sheep"]}' WHERE seq = 2"#)
        .await;
    let tail = world.store.audit().tail(1, None).await.unwrap();
    assert_eq!((tail[0].event.as_str(), tail[0].detail.as_str()), ("dream", r#"{"of": ["sheep"]}"#));
    assert!(tail[0].json_line().contains(r#""event":"dream","detail":{"of": ["sheep"]}"#));
    meddle(&world.store, "UPDATE audit SET detail = 'no json' WHERE seq = 2").await;
    let tail = world.store.audit().tail(1, None).await.unwrap();
    assert!(tail[0].json_line().contains(r#""detail":"no json""#));
}

// spec: N-14
async fn records_that_cannot_be_written_are_kept(world: World) {
    append(&world.store, 1).await;
    meddle(&world.store, "ALTER TABLE audit RENAME TO away").await;
    world.store.audit().append_deferred(note("ann", "first")).await.unwrap();
    world.store.audit().append(note("ann", "lost")).await.unwrap_err();
    world.store.audit().append_deferred(note("ann", "second")).await.unwrap();
    world.store.audit().append(note("ann", "lost")).await.unwrap_err();
    meddle(&world.store, "ALTER TABLE away RENAME TO audit").await;
    world.store.audit().append(note("ann", "third")).await.unwrap();
    let tail = world.store.audit().tail(10, None).await.unwrap();
    let seen: Vec<_> = tail.iter().map(|record| record.text("subject").unwrap()).collect();
    assert_eq!(seen, ["note 0", "first", "second", "third"]);
    assert_intact(&world.store, 4).await;
}

#[test]
fn any_changed_byte_is_found() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (world, conn) = runtime.block_on(async {
        let world = World::file().await;
        append(&world.store, 5).await;
        let DatabaseUrl::File(path) = world.store.url() else { panic!() };
        let options = SqliteConnectOptions::new().filename(path);
        (world, tokio::sync::Mutex::new(SqliteConnection::connect_with(&options).await.unwrap()))
    });
    let columns =
        vec!["chain", "id", "user_id", "agent", "session", "channel", "event", "detail", "mac", "at", "seq"];
    let cases = (1..=5_i64, prop::sample::select(columns), any::<prop::sample::Index>(), 1..=255_u8);
    let mut runner = TestRunner::new(ProptestConfig::with_cases(400));
    let done = runner.run(&cases, |(seq, column, at, flip)| {
        runtime.block_on(async {
            let mut conn = conn.lock().await;
            sqlx::raw_sql("BEGIN; CREATE TEMP TABLE saved AS SELECT * FROM audit; COMMIT")
                .execute(&mut *conn)
                .await
                .unwrap();
            change(&mut conn, seq, column, at, flip).await;
            let report = world.store.audit().verify().await.unwrap();
            let found = report.broken().map(|(_, found)| found.clone());
            sqlx::raw_sql(
                "BEGIN; DELETE FROM audit; INSERT INTO audit SELECT * FROM saved; DROP TABLE saved; COMMIT",
            )
            .execute(&mut *conn)
            .await
            .unwrap();
            let found = found.ok_or_else(|| TestCaseError::fail("not noticed"))?;
            // Only a place of its own before all others is found before the record that is missing then.
            prop_assert!(found.seq == seq || column == "seq", "{found:?}");
            Ok(())
        })
    });
    done.unwrap();
    runtime.block_on(assert_intact(&world.store, 5));
}

/// Flips bits of one byte of one column.
async fn change(conn: &mut SqliteConnection, seq: i64, column: &str, at: prop::sample::Index, flip: u8) {
    let update =
        |value: &str| AssertSqlSafe(format!("UPDATE audit SET {column} = {value} WHERE seq = {seq}"));
    if matches!(column, "at" | "seq") {
        let old: i64 =
            sqlx::query_scalar(AssertSqlSafe(format!("SELECT {column} FROM audit WHERE seq = {seq}")))
                .fetch_one(&mut *conn)
                .await
                .unwrap();
        let mut bytes = old.to_le_bytes();
        // A place that is taken cannot be given to a second record.
        let at = if column == "seq" { 1 + at.index(7) } else { at.index(8) };
        bytes[at] ^= flip;
        sqlx::query(update("$1")).bind(i64::from_le_bytes(bytes)).execute(conn).await.unwrap();
        return;
    }
    let old: Vec<u8> = sqlx::query_scalar(AssertSqlSafe(format!(
        "SELECT CAST({column} AS BLOB) FROM audit WHERE seq = {seq}"
    )))
    .fetch_one(&mut *conn)
    .await
    .unwrap();
    let mut bytes = old;
    let at = at.index(bytes.len());
    bytes[at] ^= flip;
    let value = if column == "mac" { "$1" } else { "CAST($1 AS TEXT)" };
    sqlx::query(update(value)).bind(bytes).execute(conn).await.unwrap();
}

#[tokio::test]
async fn an_older_copy_of_the_file_is_noticed() {
    let world = World::file().await;
    let place = world.store.url().clone();
    let folder = world.folder.path().to_owned();
    append(&world.store, 3).await;
    world.store.close().await;
    let copies = ["embody.db", "embody.db-wal", "embody.db-shm"].map(|name| {
        let path = folder.join(name);
        let content = std::fs::read(&path).ok();
        (path, content)
    });
    let store = Store::open(place.clone()).await.unwrap();
    append(&store, 4).await;
    store.close().await;
    for (path, content) in copies {
        match content {
            Some(content) => std::fs::write(path, content).unwrap(),
            None => drop(std::fs::remove_file(path)),
        }
    }
    let store = Store::open(place).await.unwrap();
    let found = broken(&store).await;
    assert_eq!((found.seq, &found.fault), (4, &Fault::Truncated { known: 7 }));
    assert_ne!(state(&store.audit().verify().await.unwrap()), &ChainState::Intact);
}
