//! The key and the head beside the database.

use std::error::Error as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use embody_store::audit::{ChainState, Fault};
use embody_store::{DatabaseUrl, Error, ErrorKind, Store};

use super::{append, assert_intact, broken};
use crate::world::World;

fn key(world: &World) -> PathBuf {
    world.folder.path().join("embody.db.audit.key")
}

fn head(world: &World) -> PathBuf {
    world.folder.path().join("embody.db.audit.head")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Why the store could not be opened.
fn cause(error: &Error) -> String {
    error.source().unwrap().to_string()
}

#[tokio::test]
async fn the_key_is_private_and_outside_the_database() {
    let world = World::file().await;
    append(&world.store, 1).await;
    assert_eq!((mode(&key(&world)), fs::read(key(&world)).unwrap().len()), (0o600, 32));
    assert_eq!(mode(&head(&world)), 0o600);
    let bytes = fs::read(key(&world)).unwrap();
    for file in ["embody.db", "embody.db-wal", "embody.db.audit.head"] {
        let content = fs::read(world.folder.path().join(file)).unwrap();
        assert!(!content.windows(32).any(|window| window == bytes), "{file}");
    }
    let world = World::postgres().await;
    let files: Vec<_> =
        fs::read_dir(world.folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 2, "{files:?}");
    assert!(files.iter().all(|file| mode(file) == 0o600), "{files:?}");
}

#[tokio::test]
async fn a_key_that_others_can_read_is_refused() {
    let world = World::file().await;
    let place = world.store.url().clone();
    fs::set_permissions(key(&world), Permissions::from_mode(0o640)).unwrap();
    let error = Store::open(place.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Key);
    assert!(cause(&error).ends_with("can be used by others: its mode is `640`"), "{error:?}");
    assert!(error.advice().unwrap().contains("chmod 600"));
    fs::set_permissions(key(&world), Permissions::from_mode(0o600)).unwrap();
    Store::open(place).await.unwrap();
}

#[tokio::test]
async fn a_key_of_the_wrong_size_is_refused() {
    let world = World::file().await;
    fs::write(key(&world), [7; 31]).unwrap();
    let error = Store::open(world.store.url().clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Key);
    assert!(cause(&error).ends_with("has 31 bytes; a key has 32"), "{error:?}");
}

#[tokio::test]
async fn stores_that_open_at_once_make_one_key() {
    let folder = tempfile::tempdir().unwrap();
    let place = DatabaseUrl::File(folder.path().join("embody.db"));
    let opening: Vec<_> = (0..8).map(|_| tokio::spawn(Store::open(place.clone()))).collect();
    let mut stores = Vec::new();
    for store in opening {
        let store = store.await.unwrap().unwrap();
        append(&store, 1).await;
        stores.push(store);
    }
    assert_intact(&stores[0], 8).await;
    let drafts: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with('.'))
        .collect();
    assert_eq!(drafts, [""; 0]);
}

#[tokio::test]
async fn a_new_key_begins_a_new_chain() {
    let world = World::file().await;
    let place = world.store.url().clone();
    append(&world.store, 3).await;
    let (key, head) = (key(&world), head(&world));
    world.store.close().await;
    fs::remove_file(&key).unwrap();
    let store = Store::open(place.clone()).await.unwrap();
    let found = broken(&store).await;
    assert!(matches!(found.fault, Fault::HeadForeign { .. }), "{found:?}");
    store.close().await;
    fs::remove_file(&key).unwrap();
    fs::remove_file(&head).unwrap();
    let store = Store::open(place).await.unwrap();
    append(&store, 2).await;
    let report = store.audit().verify().await.unwrap();
    assert_eq!(report.broken(), None);
    let mut states: Vec<_> = report.chains.iter().map(|chain| (chain.records, chain.state.clone())).collect();
    states.sort_by_key(|(records, _)| *records);
    assert_eq!(states, [(2, ChainState::Intact), (3, ChainState::KeyAway)]);
}

#[tokio::test]
async fn a_head_that_is_gone_is_noticed_and_stays_on_record() {
    let world = World::file().await;
    append(&world.store, 3).await;
    fs::remove_file(head(&world)).unwrap();
    assert_eq!(broken(&world.store).await.fault, Fault::HeadMissing);
    append(&world.store, 3).await;
    let found = broken(&world.store).await;
    assert_eq!((found.seq, found.fault), (4, Fault::Gap { reason: "head_missing".into(), known: None }));
}

#[tokio::test]
async fn a_key_without_any_record_and_without_a_head_is_a_gap() {
    let world = World::file().await;
    append(&world.store, 3).await;
    let place = world.store.url().clone();
    let (database, head) = (world.folder.path().join("embody.db"), head(&world));
    world.store.close().await;
    for path in [&database, &head] {
        fs::remove_file(path).unwrap();
    }
    let store = Store::open(place.clone()).await.unwrap();
    assert_eq!(broken(&store).await.fault, Fault::HeadMissing);
    store.close().await;
    // Opening it again changes nothing, and what is written then does not hide it.
    let store = Store::open(place).await.unwrap();
    assert_eq!(broken(&store).await.fault, Fault::HeadMissing);
    append(&store, 2).await;
    let found = broken(&store).await;
    assert_eq!((found.seq, found.fault), (1, Fault::Gap { reason: "head_missing".into(), known: None }));
}

#[tokio::test]
async fn a_head_that_was_changed_is_noticed() {
    let world = World::file().await;
    append(&world.store, 3).await;
    let text = fs::read_to_string(head(&world)).unwrap();
    fs::write(head(&world), text.replace("00003 ", "00002 ")).unwrap();
    assert_eq!(broken(&world.store).await.fault, Fault::HeadDamaged);
    fs::write(head(&world), [0xff; 10]).unwrap();
    assert_eq!(broken(&world.store).await.fault, Fault::HeadDamaged);
    fs::write(head(&world), text.clone() + "x").unwrap();
    assert_eq!(broken(&world.store).await.fault, Fault::HeadDamaged);
    fs::write(head(&world), text).unwrap();
    assert_intact(&world.store, 3).await;
}

#[tokio::test]
async fn a_head_of_another_chain_is_noticed() {
    let (world, other) = (World::file().await, World::file().await);
    append(&world.store, 3).await;
    append(&other.store, 3).await;
    fs::copy(head(&other), head(&world)).unwrap();
    let found = broken(&world.store).await;
    assert!(matches!(found.fault, Fault::HeadForeign { .. }), "{found:?}");
}

#[tokio::test]
async fn an_older_head_is_no_fault_but_told() {
    let world = World::file().await;
    append(&world.store, 3).await;
    let older = fs::read(head(&world)).unwrap();
    append(&world.store, 4).await;
    fs::write(head(&world), older).unwrap();
    let report = world.store.audit().verify().await.unwrap();
    assert_eq!((&report.chains[0].state, report.chains[0].beyond_head), (&ChainState::Intact, 4));
    append(&world.store, 1).await;
    assert_intact(&world.store, 8).await;
}

#[tokio::test]
async fn a_head_that_cannot_be_written_is_told() {
    let world = World::file().await;
    append(&world.store, 3).await;
    let text = fs::read(head(&world)).unwrap();
    fs::remove_file(head(&world)).unwrap();
    fs::create_dir(head(&world)).unwrap();
    append(&world.store, 2).await;
    let report = world.store.audit().verify().await.unwrap();
    assert_eq!((&report.chains[0].state, report.chains[0].beyond_head), (&ChainState::Intact, 5));
    assert!(report.chains[0].head_trouble.is_some());
    fs::remove_dir(head(&world)).unwrap();
    fs::write(head(&world), text).unwrap();
    append(&world.store, 1).await;
    assert_intact(&world.store, 6).await;
}
