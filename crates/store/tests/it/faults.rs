//! Bad disks, bad files, bad passwords, servers that are away: a clear error or a wait, never half a write.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use embody_store::instructions::InstructionsChange;
use embody_store::{DatabaseUrl, Error, ErrorKind, Store};

use crate::crash::Server;
use crate::hammer::{Hammer, check, program};
use crate::world::{database, scope};

async fn refused(place: DatabaseUrl) -> Error {
    Store::open(place).await.expect_err("this must not open")
}

fn on(url: &str, folder: &Path) -> DatabaseUrl {
    DatabaseUrl::Postgres { url: url.to_owned(), direct_url: None, keys: folder.to_owned() }
}

fn set(text: &str) -> InstructionsChange {
    InstructionsChange { text: text.into(), writer: "test".into(), expected_version: None }
}

/// `ulimit` makes every write beyond a size fail, as a full disk does; root is not exempt from it.
#[test]
fn a_full_disk_is_an_error_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("embody.db");
    let url = file.to_str().unwrap();
    let mut before = Hammer::start(url, folder.path(), 4);
    before.wait_for(50);
    let acks = before.kill();
    let output = Command::new("bash")
        .args(["-c", "ulimit -f 3000; trap '' XFSZ; exec \"$0\" write \"$1\" \"$2\" 8"])
        .args([program().to_str().unwrap(), url, folder.path().to_str().unwrap()])
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("failed: the disk is full"), "{error}");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    let acks: Vec<String> = acks.into_iter().chain(said.lines().map(|line| format!("{line}\n"))).collect();
    assert_eq!(check(url, folder.path(), &acks), acks.len());
}

#[tokio::test]
async fn a_file_that_is_no_database_is_told_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("embody.db");
    fs::write(&file, "this is a letter, not a database, and it is long enough to be looked at".repeat(100))
        .unwrap();
    let before = fs::read(&file).unwrap();
    let error = refused(DatabaseUrl::File(file.clone())).await;
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
    assert!(error.advice().is_some());
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[tokio::test]
async fn a_damaged_database_is_an_error_not_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("embody.db");
    let store = Store::open(DatabaseUrl::File(file.clone())).await.unwrap();
    for round in 0..50 {
        store.instructions().set(&scope("ann", "assistant"), set(&"x".repeat(5000 + round))).await.unwrap();
    }
    store.close().await;
    let mut bytes = fs::read(&file).unwrap();
    let size = bytes.len();
    for byte in &mut bytes[4096..size - 4096] {
        *byte = 0xA5;
    }
    fs::write(&file, bytes).unwrap();
    let found = match Store::open(DatabaseUrl::File(file)).await {
        Err(error) => error,
        Ok(store) => store.check().await.expect_err("the damage must be seen"),
    };
    assert_eq!(found.kind(), ErrorKind::Corrupt, "{found:?}");
}

/// Root may write anywhere, so the file system itself must refuse: a folder in `/proc` does.
#[tokio::test]
async fn a_folder_that_cannot_be_written_is_told() {
    let error = refused(DatabaseUrl::File("/proc/self/embody/embody.db".into())).await;
    assert!(error.to_string().contains("/proc/self/embody/embody.db"), "{error}");
    assert!(error.advice().unwrap().contains("permissions"));
}

#[tokio::test]
async fn only_the_owner_can_read_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("new/folder/embody.db");
    let store = Store::open(DatabaseUrl::File(file.clone())).await.unwrap();
    store.instructions().set(&scope("ann", "assistant"), set("mine")).await.unwrap();
    for entry in fs::read_dir(file.parent().unwrap()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o077, 0, "{:?}", entry.path());
    }
}

#[tokio::test]
async fn a_newer_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("embody.db");
    Store::open(DatabaseUrl::File(file.clone())).await.unwrap().close().await;
    let pool = sqlx::SqlitePool::connect(file.to_str().unwrap()).await.unwrap();
    sqlx::raw_sql("INSERT INTO embody_migrations VALUES (99, '0099_future', 'x')")
        .execute(&pool)
        .await
        .unwrap();
    pool.close().await;
    let error = refused(DatabaseUrl::File(file.clone())).await;
    assert_eq!(error.kind(), ErrorKind::Schema);
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(cause, "the database has the migration `0099_future`, which this version does not know");
}

#[tokio::test]
async fn a_wrong_password_is_told_at_once_and_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    let url = database().await;
    let (start, rest) = url.split_once("://embody:").unwrap();
    let (_, rest) = rest.split_once('@').unwrap();
    let place = on(&format!("{start}://embody:wrong-secret@{rest}"), folder.path());
    assert!(!format!("{place:?}").contains("wrong-secret"));
    let error = refused(place).await;
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
    assert!(!format!("{error:?}").contains("wrong-secret"));
}

#[tokio::test]
async fn a_database_that_is_not_there_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("{}x", database().await);
    assert_eq!(refused(on(&url, folder.path())).await.kind(), ErrorKind::Denied);
}

#[tokio::test]
async fn a_server_that_refuses_a_connection_is_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let began = std::time::Instant::now();
    let error = refused(on(&format!("postgres://embody:x@127.0.0.1:{port}/x"), folder.path())).await;
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error:?}");
    assert!(format!("{error:?}").contains("refused"), "{error:?}");
    // Trying again until the limit takes ten seconds.
    assert!(began.elapsed().as_secs() < 5);
}

#[tokio::test]
async fn a_server_that_was_away_is_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let store = Store::open(on(&server.url, folder.path())).await.unwrap();
    let ann = scope("ann", "assistant");
    store.instructions().set(&ann, set("before")).await.unwrap();
    server.run("kill");
    // The store waits for a server for ten seconds; a busy machine may take longer to start one.
    let write = async {
        loop {
            let began = Instant::now();
            match store.instructions().set(&ann, set("after")).await {
                Err(error) if error.kind() == ErrorKind::Unreachable => {
                    assert!(began.elapsed() >= Duration::from_secs(9), "gave up early: {error}");
                }
                written => return written,
            }
        }
    };
    let start = tokio::task::spawn_blocking(move || {
        server.run("start");
        server
    });
    let (written, server) = tokio::join!(write, start);
    written.unwrap();
    assert_eq!(store.instructions().get(&ann).await.unwrap().text, "after");
    drop(server);
}

/// A write that breaks off changes nothing, and the store goes on.
#[tokio::test]
async fn a_write_that_fails_takes_no_other_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(DatabaseUrl::File(folder.path().join("embody.db"))).await.unwrap();
    let ann = scope("ann", "assistant");
    let writes = (0..64).map(|number| {
        let (store, ann) = (store.clone(), ann.clone());
        tokio::spawn(async move {
            if number % 2 == 0 {
                store.instructions().set(&ann, set("good")).await.map(drop)
            } else {
                store.instructions().revert(&ann, 1000 + number, "test").await.map(drop)
            }
        })
    });
    let mut failed = 0;
    for write in writes.collect::<Vec<_>>() {
        failed += usize::from(write.await.unwrap().is_err());
    }
    assert_eq!(failed, 32);
    assert_eq!(store.instructions().get(&ann).await.unwrap().version, 32);
}

/// Connections that go silent without an end, as when a machine vanishes, give their places to new ones.
#[tokio::test]
async fn connections_that_go_silent_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let url = database().await;
    let proxy = Proxy::start(&url).await;
    let store = Store::open(on(&proxy.url, folder.path())).await.unwrap();
    let ann = scope("ann", "assistant");
    store.instructions().set(&ann, set("before")).await.unwrap();
    // The transaction that runs into the silence is dropped by its caller; its connection must not stay taken.
    proxy.silence();
    for _ in 0..20 {
        let lost = tokio::time::timeout(Duration::from_millis(50), store.instructions().get(&ann)).await;
        assert!(lost.is_err() || lost.unwrap().is_ok());
    }
    let found = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            if let Ok(found) = store.instructions().get(&ann).await {
                return found;
            }
        }
    });
    assert_eq!(found.await.expect("a new connection").text, "before");
}

/// A way to the server whose present connections can be made silent.
struct Proxy {
    url: String,
    silent: tokio::sync::watch::Sender<u64>,
}

impl Proxy {
    async fn start(url: &str) -> Self {
        let (credentials, rest) = url.split_once('@').unwrap();
        let (address, name) = rest.split_once('/').unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (silent, silenced) = tokio::sync::watch::channel(0);
        let server = address.to_owned();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (server, mut silenced) = (server.clone(), silenced.clone());
                silenced.mark_unchanged();
                tokio::spawn(async move {
                    let mut upstream = tokio::net::TcpStream::connect(server).await.unwrap();
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut client, &mut upstream) => {}
                        // Both ends stay open, and nothing passes any more.
                        _ = silenced.changed() => std::future::pending().await,
                    }
                });
            }
        });
        Self { url: format!("{credentials}@127.0.0.1:{port}/{name}"), silent }
    }

    fn silence(&self) {
        self.silent.send_modify(|count| *count += 1);
    }
}
