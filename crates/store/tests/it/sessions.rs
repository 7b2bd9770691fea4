//! Broker sessions: resumed anywhere, bootstrapped once, the contract delivered to those who came later.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use embody_store::sessions::{
    Bootstrap, BrokerSession, ContractState, OpenSession, OpenSessionOutcome, Packet,
};
use embody_store::{LeaseStatus, Store};

use crate::world::{World, contract, eventually, long, scope, short};

contract!(
    goes_on_in_another_process,
    is_bootstrapped_once,
    a_slow_bootstrap_is_refused,
    a_failed_bootstrap_lets_the_next_try,
    how_far_the_contract_has_come_is_shared,
    idle_ones_are_forgotten,
    one_that_was_idle_begins_anew,
);

fn open(user: &str, agent: &str) -> OpenSession {
    OpenSession {
        scope: scope(user, agent),
        id: "s".into(),
        channel: "stdio".into(),
        host: Some("{\"name\": \"host\"}".into()),
        hello: None,
        idle: None,
    }
}

async fn opened(store: &Store) -> BrokerSession {
    match store.sessions().open(open("ann", "assistant")).await.unwrap() {
        OpenSessionOutcome::New(session) => session,
        other => panic!("{other:?}"),
    }
}

fn packet() -> Packet {
    Packet { text: "{\"schema_version\": 1,  \"new\": 1.0}".into(), reasons: vec!["no persona".into()] }
}

async fn goes_on_in_another_process(world: World) {
    let second = world.second().await;
    let session = opened(&world.store).await;
    assert_eq!((session.packet.clone(), session.contract.clone()), (None, ContractState::Unwritten));
    let again = OpenSession { host: None, channel: "http".into(), ..open("ann", "assistant") };
    let OpenSessionOutcome::Resumed(resumed) = second.sessions().open(again).await.unwrap() else { panic!() };
    assert_eq!((resumed.host, resumed.channel.as_str()), (session.host, "http"));
    assert_eq!(resumed.created_at, session.created_at);
    assert_eq!(
        second.sessions().open(open("ann", "coach")).await.unwrap(),
        OpenSessionOutcome::OfAnotherAgent
    );
    assert_eq!(second.sessions().get("bob", "s").await.unwrap(), None);
    assert!(matches!(
        second.sessions().open(open("bob", "coach")).await.unwrap(),
        OpenSessionOutcome::New(_)
    ));
    second.sessions().set_reasons("ann", "s", &["mind unavailable".into()]).await.unwrap();
    assert_eq!(world.store.sessions().get("ann", "s").await.unwrap().unwrap().reasons, ["mind unavailable"]);
    assert_eq!(world.store.sessions().get("bob", "s").await.unwrap().unwrap().reasons, Vec::<String>::new());
    assert_eq!(world.store.sessions().list("ann", 10).await.unwrap().len(), 1);
}

/// What each proxied call does: fetch the packet if it is ours to fetch, else wait for it.
async fn packet_of(store: Store, asked: Arc<AtomicU32>) -> Packet {
    let waiting = async {
        loop {
            match store.sessions().bootstrap("ann", "s", &long("one")).await.unwrap() {
                Bootstrap::Claimed(claim) => {
                    asked.fetch_add(1, Ordering::SeqCst);
                    assert_eq!(
                        store.sessions().set_packet(&claim, packet()).await.unwrap(),
                        LeaseStatus::Kept
                    );
                }
                Bootstrap::Done(packet) => return packet,
                Bootstrap::Busy => tokio::time::sleep(Duration::from_millis(5)).await,
                Bootstrap::Missing => panic!("the session is there"),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("no packet in time")
}

// spec: N-03, N-04
async fn is_bootstrapped_once(world: World) {
    let second = world.second().await;
    opened(&world.store).await;
    let asked = Arc::new(AtomicU32::new(0));
    let calls = (0..16).map(|number| {
        let store = if number % 2 == 0 { world.store.clone() } else { second.clone() };
        tokio::spawn(packet_of(store, Arc::clone(&asked)))
    });
    for call in calls.collect::<Vec<_>>() {
        assert_eq!(call.await.unwrap(), packet());
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let session = second.sessions().get("ann", "s").await.unwrap().unwrap();
    assert_eq!((session.packet, session.reasons), (Some(packet().text), packet().reasons));
    assert_eq!(world.store.sessions().bootstrap("bob", "s", &long("one")).await.unwrap(), Bootstrap::Missing);
}

async fn a_slow_bootstrap_is_refused(world: World) {
    let second = world.second().await;
    opened(&world.store).await;
    let Bootstrap::Claimed(slow) =
        world.store.sessions().bootstrap("ann", "s", &short("slow")).await.unwrap()
    else {
        panic!("nobody else asks")
    };
    let quick = eventually("the lease of the slow one to run out", async || {
        match second.sessions().bootstrap("ann", "s", &long("quick")).await.unwrap() {
            Bootstrap::Claimed(claim) => Some(claim),
            Bootstrap::Busy => None,
            other => panic!("{other:?}"),
        }
    })
    .await;
    let late = Packet { text: "{\"late\": true}".into(), reasons: Vec::new() };
    assert_eq!(world.store.sessions().set_packet(&slow, late.clone()).await.unwrap(), LeaseStatus::Lost);
    assert_eq!(world.store.sessions().release_bootstrap(&slow).await.unwrap(), LeaseStatus::Lost);
    assert_eq!(world.store.sessions().bootstrap("ann", "s", &long("third")).await.unwrap(), Bootstrap::Busy);
    assert_eq!(second.sessions().set_packet(&quick, packet()).await.unwrap(), LeaseStatus::Kept);
    assert_eq!(second.sessions().set_packet(&quick, late).await.unwrap(), LeaseStatus::Lost);
    assert_eq!(
        world.store.sessions().bootstrap("ann", "s", &long("third")).await.unwrap(),
        Bootstrap::Done(packet())
    );
}

async fn a_failed_bootstrap_lets_the_next_try(world: World) {
    opened(&world.store).await;
    let Bootstrap::Claimed(claim) = world.store.sessions().bootstrap("ann", "s", &long("one")).await.unwrap()
    else {
        panic!("nobody else asks")
    };
    assert_eq!(world.store.sessions().bootstrap("ann", "s", &long("two")).await.unwrap(), Bootstrap::Busy);
    assert_eq!(world.store.sessions().release_bootstrap(&claim).await.unwrap(), LeaseStatus::Kept);
    let next = world.store.sessions().bootstrap("ann", "s", &long("two")).await.unwrap();
    assert!(matches!(next, Bootstrap::Claimed(_)), "{next:?}");
}

// spec: N-12
async fn how_far_the_contract_has_come_is_shared(world: World) {
    let second = world.second().await;
    opened(&world.store).await;
    let store = &world.store;
    let state = async || second.sessions().get("ann", "s").await.unwrap().unwrap().contract;
    let (written, delivered) = (
        |hash: &str| ContractState::Written { hash: hash.into(), bounced: Some("x".into()) },
        |hash: &str| ContractState::Delivered { hash: hash.into() },
    );
    store.sessions().set_contract_read("ann", "s", 0, "c1").await.unwrap();
    assert_eq!(state().await, ContractState::Unwritten, "nothing was written yet");
    store.sessions().set_contract_written("ann", "s", 0, "c1", Some("x")).await.unwrap();
    assert_eq!(state().await, written("c1"));
    store.sessions().set_contract_read("ann", "s", 0, "c0").await.unwrap();
    assert_eq!(state().await, written("c1"), "another contract was read");
    store.sessions().set_contract_read("ann", "s", 0, "c1").await.unwrap();
    store.sessions().set_contract_written("ann", "s", 0, "c1", Some("x")).await.unwrap();
    assert_eq!(state().await, delivered("c1"), "writing it again changes nothing");
    store.sessions().set_contract_written("ann", "s", 0, "c2", Some("x")).await.unwrap();
    assert_eq!(state().await, written("c2"));
    store.sessions().begin_conversation(&scope("bob", "assistant"), "s").await.unwrap();
    store.sessions().begin_conversation(&scope("ann", "assistant"), "t").await.unwrap();
    assert_eq!(
        state().await,
        written("c2"),
        "another user's session, and one that begins with something else"
    );
    store.sessions().begin_conversation(&scope("ann", "assistant"), "s").await.unwrap();
    assert_eq!(state().await, ContractState::Unwritten);
    store.sessions().set_contract_written("ann", "s", 0, "c3", Some("x")).await.unwrap();
    store.sessions().set_contract_read("ann", "s", 0, "c2").await.unwrap();
    assert_eq!(state().await, ContractState::Unwritten, "late news of the earlier conversation");
    store.sessions().set_contract_written("ann", "s", 1, "c2", Some("x")).await.unwrap();
    assert_eq!(state().await, written("c2"));
}

async fn idle_ones_are_forgotten(world: World) {
    for number in 0..5 {
        let session = OpenSession { id: format!("s{number}"), ..open("ann", "assistant") };
        world.store.sessions().open(session).await.unwrap();
    }
    let hour = Duration::from_secs(3600);
    assert_eq!(world.store.sessions().expire(hour, 10).await.unwrap(), 0);
    let before = world.store.sessions().get("ann", "s1").await.unwrap().unwrap().seen_at;
    eventually("the session to be seen later", async || {
        world.store.sessions().touch("ann", "s1").await.unwrap();
        (world.store.sessions().get("ann", "s1").await.unwrap().unwrap().seen_at > before).then_some(())
    })
    .await;
    assert_eq!(world.store.sessions().list("ann", 1).await.unwrap()[0].id, "s1");
    assert_eq!(world.store.sessions().expire(Duration::ZERO, 4).await.unwrap(), 4);
    let left = world.store.sessions().list("ann", 10).await.unwrap();
    assert_eq!(left.iter().map(|session| session.id.as_str()).collect::<Vec<_>>(), ["s1"]);
}

async fn one_that_was_idle_begins_anew(world: World) {
    let lasting = |idle| OpenSession { idle: Some(idle), ..open("ann", "assistant") };
    let first = opened(&world.store).await;
    world.store.sessions().set_contract_written("ann", "s", 0, "c", None).await.unwrap();
    let hour = Duration::from_secs(3600);
    let OpenSessionOutcome::Resumed(same) = world.store.sessions().open(lasting(hour)).await.unwrap() else {
        panic!()
    };
    assert!(matches!(same.contract, ContractState::Written { .. }) && same.created_at == first.created_at);
    let again = eventually("the session to be idle", async || {
        match world.store.sessions().open(lasting(Duration::ZERO)).await.unwrap() {
            OpenSessionOutcome::New(session) => Some(session),
            _ => None,
        }
    })
    .await;
    assert_eq!(again.contract, ContractState::Unwritten);
    assert_eq!(
        world
            .store
            .sessions()
            .open(OpenSession { idle: Some(Duration::ZERO), ..open("ann", "coach") })
            .await
            .unwrap(),
        OpenSessionOutcome::OfAnotherAgent,
        "only one's own begins anew"
    );
}
