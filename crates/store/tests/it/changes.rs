//! Changes: whoever waits is woken, by this process and by others; none is lost.

use std::time::Duration;

use embody_store::approvals::ApprovalRequest;
use embody_store::incoming::FinishIncoming;
use embody_store::instructions::InstructionsChange;
use embody_store::outgoing::OutgoingEnd;
use embody_store::replica_messages::NewReplicaMessage;
use embody_store::{Changes, DatabaseUrl, Store, Topic};
use sqlx::{Connection, PgConnection};

use crate::postgres_server::server_url;
use crate::world::{World, contract, database, eventually, scope, short};
use crate::{approvals, incoming, notices, outgoing, pins, schedules};

contract!(sees_every_change_of_another_process, wakes_at_once_in_the_same_process, ends_with_the_store);

pub(crate) fn change(text: String) -> InstructionsChange {
    InstructionsChange { text, writer: "owner".into(), expected_version: None }
}

/// The other writes twenty versions, each after the one before was seen. Nobody looks before being woken.
async fn follow(watching: &Store, writing: &Store) {
    let ann = scope("ann", "assistant");
    let mut changes = watching.changes(Topic::Instructions);
    for version in 1..=20 {
        writing.instructions().set(&ann, change(format!("version {version}"))).await.unwrap();
        seen(watching, &mut changes, version).await;
    }
}

async fn seen(watching: &Store, changes: &mut Changes, version: i64) {
    let ann = scope("ann", "assistant");
    let looking = async {
        loop {
            changes.changed().await.unwrap();
            if watching.instructions().get(&ann).await.unwrap().version >= version {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(15), looking)
        .await
        .unwrap_or_else(|_| panic!("version {version} was not seen"));
}

async fn sees_every_change_of_another_process(world: World) {
    let second = world.second().await;
    follow(&world.store, &second).await;
}

async fn wakes_at_once_in_the_same_process(world: World) {
    let mut waiting = Waiting::on(&world.store);
    make_changes(&world.store, async |topic, what| {
        let woken = tokio::time::timeout(Duration::ZERO, waiting.of(topic).changed()).await;
        assert!(woken.is_ok(), "{what} woke nobody");
    })
    .await;
}

struct Waiting {
    approvals: Changes,
    pins: Changes,
    instructions: Changes,
    schedules: Changes,
    incoming: Changes,
    outgoing: Changes,
    notices: Changes,
    letters: Changes,
}

impl Waiting {
    fn on(store: &Store) -> Self {
        Self {
            approvals: store.changes(Topic::Approvals),
            pins: store.changes(Topic::Pins),
            instructions: store.changes(Topic::Instructions),
            schedules: store.changes(Topic::Schedules),
            incoming: store.changes(Topic::Incoming),
            outgoing: store.changes(Topic::Outgoing),
            notices: store.changes(Topic::Notices),
            letters: store.changes(Topic::ReplicaMessages),
        }
    }

    fn of(&mut self, topic: Topic) -> &mut Changes {
        match topic {
            Topic::Approvals => &mut self.approvals,
            Topic::Pins => &mut self.pins,
            Topic::Instructions => &mut self.instructions,
            Topic::Schedules => &mut self.schedules,
            Topic::Incoming => &mut self.incoming,
            Topic::Outgoing => &mut self.outgoing,
            Topic::Notices => &mut self.notices,
            Topic::ReplicaMessages => &mut self.letters,
        }
    }
}

/// Makes every change that is announced, and says after each what it was.
async fn make_changes(store: &Store, mut made: impl AsyncFnMut(Topic, &str)) {
    let ann = scope("ann", "assistant");
    store.instructions().set(&ann, change("one".into())).await.unwrap();
    made(Topic::Instructions, "setting").await;
    store.instructions().revert(&ann, 1, "owner").await.unwrap();
    made(Topic::Instructions, "reverting").await;

    let approval = approvals::asked(store, approvals::ask()).await;
    made(Topic::Approvals, "asking").await;
    approvals::approve(store, &approval).await;
    made(Topic::Approvals, "deciding").await;
    assert!(approvals::is_used(&store.approvals().consume(approvals::call(&approval)).await.unwrap()));
    made(Topic::Approvals, "using").await;
    let brief = ApprovalRequest { timeout: Duration::from_millis(1), ..approvals::ask() };
    store.approvals().ask(brief).await.unwrap();
    made(Topic::Approvals, "asking again").await;
    eventually("the end of the approval", async || {
        (!store.approvals().expire(10).await.unwrap().is_empty()).then_some(())
    })
    .await;
    made(Topic::Approvals, "expiring").await;

    store.pins().record(pins::seen("one")).await.unwrap();
    made(Topic::Pins, "the first sight").await;
    store.pins().record(pins::seen("two")).await.unwrap();
    made(Topic::Pins, "another definition").await;
    store.pins().accept(pins::accept("two")).await.unwrap();
    made(Topic::Pins, "accepting").await;

    let id = store.notices().add(notices::new("ann", "tea"), None).await.unwrap();
    made(Topic::Notices, "a notice").await;
    store.notices().mark_read("ann", vec![id]).await.unwrap();
    made(Topic::Notices, "reading it").await;

    let letter = NewReplicaMessage { sender: "one".into(), recipient: None, content: "hello".into() };
    store.replica_messages().send(letter).await.unwrap();
    made(Topic::ReplicaMessages, "writing").await;

    let schedule = schedules::add(store, "ann", Some(1)).await;
    made(Topic::Schedules, "adding").await;
    let claim = schedules::take_one(store, "worker").await;
    store.schedules().release(&claim, Some(2)).await.unwrap();
    made(Topic::Schedules, "returning").await;
    let claim = schedules::take_one(store, "worker").await;
    store.schedules().start_run(&claim).await.unwrap();
    store.schedules().finish_run(&claim, schedules::done(None)).await.unwrap();
    made(Topic::Schedules, "finishing").await;
    store.schedules().enable("ann", &schedule.id, Some(i64::MAX)).await.unwrap();
    made(Topic::Schedules, "enabling").await;
    store.schedules().remove("ann", &schedule.id).await.unwrap();
    made(Topic::Schedules, "removing").await;
    make_channel_changes(store, &mut made).await;
}

async fn make_channel_changes(store: &Store, made: &mut impl AsyncFnMut(Topic, &str)) {
    incoming::take(store, "7", "1").await;
    made(Topic::Incoming, "arriving").await;
    let claim = incoming::claim(store, 1).await.remove(0);
    let finish = FinishIncoming { replies: vec![outgoing::reply("7", "yes", "1")], ..incoming::done() };
    store.incoming().finish(&claim, finish).await.unwrap();
    made(Topic::Incoming, "answering").await;
    made(Topic::Outgoing, "an answer").await;
    let claim = outgoing::claim(store, 1).await.remove(0);
    store.outgoing().finish(&claim, OutgoingEnd::Sent).await.unwrap();
    made(Topic::Outgoing, "leaving").await;
    outgoing::add(store, "7", "by the way").await;
    made(Topic::Outgoing, "queueing").await;

    incoming::take(store, "7", "2").await;
    made(Topic::Incoming, "arriving again").await;
    store.incoming().claim("telegram", &short("slow"), 1).await.unwrap();
    store.outgoing().claim("telegram", &short("slow"), 1).await.unwrap();
    eventually("the lost ones", async || {
        (!store.incoming().expire("telegram", 10, |_| None).await.unwrap().is_empty()).then_some(())
    })
    .await;
    made(Topic::Incoming, "getting lost").await;
    eventually("the lost ones", async || {
        (!store.outgoing().expire("telegram", 10).await.unwrap().is_empty()).then_some(())
    })
    .await;
    made(Topic::Outgoing, "being put back").await;
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
    let place = DatabaseUrl::Postgres {
        url,
        direct_url: Some(direct_url.to_owned()),
        keys: folder.path().to_owned(),
    };
    let (store, second) = (Store::open(place.clone()).await.unwrap(), Store::open(place).await.unwrap());
    (World { store, folder }, second)
}

fn pooled(direct_url: &str) -> String {
    let (_, name) = direct_url.rsplit_once('/').unwrap();
    let pool = server_url("EMBODY_TEST_PGBOUNCER");
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
async fn a_listener_hears_of_everything_that_others_change() {
    let direct = database().await;
    let (world, second) = listening(&direct, direct.clone()).await;
    let mut waiting = Waiting::on(&world.store);
    for topic in [
        Topic::Approvals,
        Topic::Pins,
        Topic::Instructions,
        Topic::Schedules,
        Topic::Incoming,
        Topic::Outgoing,
    ] {
        waiting.of(topic).changed().await.unwrap();
    }
    eventually("the listener", async || (world.count(LISTENERS).await.unwrap() == 1).then_some(())).await;
    make_changes(&second, async |topic, what| {
        tokio::time::timeout(Duration::from_secs(15), waiting.of(topic).changed())
            .await
            .unwrap_or_else(|_| panic!("{what} was not heard"))
            .unwrap();
    })
    .await;
    let (mut pins, mut instructions) =
        (world.store.changes(Topic::Pins), world.store.changes(Topic::Instructions));
    second.instructions().set(&scope("ann", "assistant"), change("last".into())).await.unwrap();
    instructions.changed().await.unwrap();
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
        second.instructions().set(&ann, change(format!("version {version}"))).await.unwrap();
        seen(&world.store, &mut changes, version).await;
    }
}

#[tokio::test]
async fn a_wrong_direct_address_falls_back_to_polling() {
    let direct = database().await;
    let (world, second) = listening("postgres://nobody:x@127.0.0.1:1/none", direct).await;
    follow(&world.store, &second).await;
}
