//! Detection of a process's era: what it is sent first, and what is cached.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use embody_wire::upstream::{ChildSpec, ConnectOptions, EraCache, Link, Route};
use tempfile::TempDir;

use super::{begin, open, opening, result};

/// A server that writes the method of every message to a file, and answers `initialize` if that comes first.
const READ: &str = r#"
    next() {
        read -r line || exit 0
        method=${line#*\"method\":\"}; method=${method%%\"*}; echo "$method" >>"$LOG"
    }
    greet() {
        echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}'
        next; next; echo '{"jsonrpc":"2.0","id":2,"result":{}}'; cat >/dev/null; exit 0
    }
    echo start >>"$LOG"; next"#;

struct Server {
    folder: TempDir,
    opening: ConnectOptions,
}

impl Server {
    fn new(script: &str, era: EraCache) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let route = Route::Child(ChildSpec {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), format!("{READ}\n{script}").into()],
            environment: vec![("PATH".into(), "/usr/bin:/bin".into()), ("LOG".into(), log.into())],
            folder: Some("/".into()),
            secrets: Vec::new(),
            reaper: None,
            stderr: None,
        });
        Self { folder, opening: ConnectOptions { era, ..opening(route) } }
    }

    async fn open(&self) -> Link {
        let (link, _hears) = open(&self.opening).await.unwrap();
        assert_eq!(result(&mut begin(&link, "x").await).await, "{}");
        link
    }

    /// The methods it has read since the last call.
    fn log(&self) -> Vec<String> {
        taken(&self.folder.path().join("log"))
    }
}

fn taken(path: &Path) -> Vec<String> {
    let log = std::fs::read_to_string(path).unwrap_or_default();
    let _ = std::fs::remove_file(path);
    log.lines().map(str::to_owned).collect()
}

const GREETED: [&str; 4] = ["start", "initialize", "notifications/initialized", "x"];

#[tokio::test]
async fn a_process_that_ends_at_an_unknown_method_is_started_again_and_greeted_with_initialize() {
    let server = Server::new(r#"[ "$method" = initialize ] || exit 1; greet"#, EraCache::default());
    let link = server.open().await;
    assert!(!link.is_stateless());
    link.close().await;
    assert_eq!(server.log(), [&["start", "server/discover"][..], &GREETED].concat());
    server.open().await.close().await;
    assert_eq!(server.log(), GREETED, "it is not probed again");
}

#[tokio::test]
async fn a_process_that_ends_only_with_the_message_after_the_probe_is_started_again_too() {
    // Servers on the Python SDK up to 1.8.1 do this.
    let script = r#"[ "$method" = initialize ] || { next; exit 1; }; greet"#;
    let server = Server::new(script, EraCache::default());
    server.open().await.close().await;
    let log = server.log();
    assert_eq!(
        (&log[..2], &log[3..]),
        (&["start", "server/discover"].map(String::from)[..], &GREETED.map(String::from)[..])
    );
    server.open().await.close().await;
    assert_eq!(server.log(), GREETED, "it is not probed again");
}

#[tokio::test]
async fn a_process_that_never_works_is_probed_with_every_second_start() {
    let server = Server::new("exit 1", EraCache::default());
    for expected in
        [&["server/discover", "initialize"][..], &["initialize"], &["server/discover", "initialize"]]
    {
        open(&server.opening).await.unwrap_err();
        let log = server.log();
        assert_eq!(log.iter().filter(|line| *line != "start").collect::<Vec<_>>(), expected);
    }
}

/// A cache whose storage is a value in memory.
fn stored(is_session_era: bool) -> (EraCache, Arc<Mutex<bool>>) {
    let kept = Arc::new(Mutex::new(is_session_era));
    let (loads, saves) = (Arc::clone(&kept), Arc::clone(&kept));
    let load = move || std::future::ready(*loads.lock().unwrap());
    let save = move |is_session_era| {
        *saves.lock().unwrap() = is_session_era;
        std::future::ready(())
    };
    (EraCache::stored(load, save), kept)
}

#[tokio::test]
async fn what_a_probe_proved_is_stored_and_used_by_the_next_process() {
    let (era, kept) = stored(false);
    let script = r#"[ "$method" = initialize ] || exit 1; greet"#;
    let server = Server::new(script, era);
    server.open().await.close().await;
    assert!(*kept.lock().unwrap());
    let server = Server::new(script, stored(true).0);
    server.open().await.close().await;
    assert_eq!(server.log(), GREETED);
}

#[tokio::test]
async fn a_stored_era_that_fails_is_removed_and_the_server_is_probed() {
    let discovered = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}"#;
    let refuses = format!(
        r#"echo '{{"jsonrpc":"2.0","id":1,"error":{{"code":-32601,"message":"no"}}}}'; next
        echo '{{"jsonrpc":"2.0","id":2,"result":{discovered}}}'; cat >/dev/null"#
    );
    let ends = format!(
        r#"[ "$method" = server/discover ] || exit 1
        echo '{{"jsonrpc":"2.0","id":1,"result":{discovered}}}'; cat >/dev/null"#
    );
    for (script, failures) in [(refuses, 0), (ends, 1)] {
        let (era, kept) = stored(true);
        let mut server = Server::new(&script, era);
        server.opening.limits.courtesy_timeout = Duration::from_millis(50);
        for _ in 0..failures {
            open(&server.opening).await.unwrap_err();
        }
        let (link, _hears) = open(&server.opening).await.unwrap();
        assert!(link.is_stateless());
        assert!(!*kept.lock().unwrap());
        link.close().await;
    }
}

#[tokio::test]
async fn an_error_that_comes_after_the_probe_has_given_up_is_a_proof_too() {
    let (era, kept) = stored(false);
    let refuses_late = r#"next
        echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid request parameters"}}'
        echo '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}'
        cat >/dev/null"#;
    let server = Server::new(refuses_late, era);
    let (link, _hears) = open(&server.opening).await.unwrap();
    assert!(!link.is_stateless() && *kept.lock().unwrap());
    link.close().await;
}
