//! Changes: whoever waits is woken, by this process and by others; none is lost.

use std::time::Duration;

use embody_store::{InstructionsChange, Place, Store, Topic};
use sqlx::{Connection, PgConnection};

use crate::world::{World, contract, database, eventually, scope};

contract!(sees_every_change_of_another_process, wakes_in_the_same_process, ends_with_the_store);

fn change(text: String) -> InstructionsChange {
    InstructionsChange { text, writer: "owner".into(), expected_version: None }
}

/// The other writes twenty versions, each after the one before was seen.
async fn follow(watching: &Store, writing: &Store) {
    let ann = scope("ann", "assistant");
    let mut changes = watching.changes(Topic::Instructions);
    for version in 1..=20 {
        writing.set_instructions(&ann, change(format!("version {version}"))).await.unwrap();
        tokio::time::timeout(Duration::from_secs(15), async {
            while watching.instructions(&ann).await.unwrap().version < version {
                changes.changed().await.unwrap();
            }
        })
        .await
        .unwrap_or_else(|_| panic!("version {version} was not seen"));
    }
}

async fn sees_every_change_of_another_process(world: World) {
    let second = world.second().await;
    follow(&world.store, &second).await;
}

async fn wakes_in_the_same_process(world: World) {
    follow(&world.store, &world.store).await;
}

async fn ends_with_the_store(world: World) {
    let mut changes = world.store.changes(Topic::Approvals);
    drop(world.store);
    let ended = tokio::time::timeout(Duration::from_secs(15), async {
        loop {
            if let Err(error) = changes.changed().await {
                return error;
            }
        }
    });
    assert_eq!(ended.await.expect("it does not end").to_string(), "the store is closed");
}

async fn listening(direct_url: &str, url: String) -> (World, Store) {
    let folder = tempfile::tempdir().unwrap();
    let place =
        Place::Postgres { url, direct_url: Some(direct_url.to_owned()), keys: folder.path().to_owned() };
    let (store, second) = (Store::open(place.clone()).await.unwrap(), Store::open(place).await.unwrap());
    (World { store, folder }, second)
}

fn pooled(direct_url: &str) -> String {
    let (_, name) = direct_url.rsplit_once('/').unwrap();
    let pool = std::env::var("EMBODY_TEST_PGBOUNCER").expect("EMBODY_TEST_PGBOUNCER is not set: run ./test");
    let (base, _) = pool.rsplit_once('/').unwrap();
    format!("{base}/{name}")
}

const LISTENERS: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'";

#[tokio::test]
async fn listens_beside_the_pooler() {
    let direct = database().await;
    let (world, second) = listening(&direct, pooled(&direct)).await;
    follow(&world.store, &second).await;
}

/// Past the wake that begins the listening there are none but those that were announced.
#[tokio::test]
async fn a_listener_hears_of_its_topic_only() {
    let direct = database().await;
    let (world, second) = listening(&direct, direct.clone()).await;
    let ann = scope("ann", "assistant");
    let mut instructions = world.store.changes(Topic::Instructions);
    let mut pins = world.store.changes(Topic::Pins);
    instructions.changed().await.unwrap();
    pins.changed().await.unwrap();
    eventually("the listener", async || (world.count(LISTENERS).await.unwrap() == 1).then_some(())).await;
    for version in 1..=3 {
        second.set_instructions(&ann, change(format!("version {version}"))).await.unwrap();
        tokio::time::timeout(Duration::from_secs(15), instructions.changed()).await.unwrap().unwrap();
    }
    let quiet = tokio::time::timeout(Duration::ZERO, pins.changed()).await;
    assert!(quiet.is_err(), "woken for another topic");
}

#[tokio::test]
async fn a_broken_listener_comes_back() {
    let direct = database().await;
    let (world, second) = listening(&direct, direct.clone()).await;
    let mut admin = PgConnection::connect(&direct).await.unwrap();
    let mut changes = world.store.changes(Topic::Instructions);
    let ann = scope("ann", "assistant");
    for version in 1..=3 {
        eventually("the listener", async || (world.count(LISTENERS).await.unwrap() == 1).then_some(())).await;
        let killed: bool = sqlx::query_scalar(
            "SELECT bool_or(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE datname = current_database() AND query LIKE 'LISTEN%'",
        )
        .fetch_one(&mut admin)
        .await
        .unwrap();
        assert!(killed);
        second.set_instructions(&ann, change(format!("version {version}"))).await.unwrap();
        tokio::time::timeout(Duration::from_secs(15), async {
            while world.store.instructions(&ann).await.unwrap().version < version {
                changes.changed().await.unwrap();
            }
        })
        .await
        .unwrap();
    }
}

#[tokio::test]
async fn a_wrong_direct_address_falls_back_to_polling() {
    let direct = database().await;
    let (world, second) = listening("postgres://nobody:x@127.0.0.1:1/none", direct).await;
    follow(&world.store, &second).await;
}
