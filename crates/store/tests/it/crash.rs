//! Nothing that was acknowledged is lost, whatever is killed and whenever.

use std::path::Path;
use std::process::Command;

use crate::hammer::{Hammer, any, check, kills};
use crate::world::database;

// spec: N-14, S-02
#[test]
fn a_killed_process_loses_nothing_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("embody.db");
    killed_again_and_again(file.to_str().unwrap(), folder.path());
}

// spec: N-14, S-02
#[tokio::test]
async fn a_killed_process_loses_nothing_on_postgres() {
    let folder = tempfile::tempdir().unwrap();
    killed_again_and_again(&database().await, folder.path());
}

fn killed_again_and_again(url: &str, keys: &Path) {
    let mut acks = Vec::new();
    for _ in 0..kills() {
        let mut hammer = Hammer::start(url, keys, 8);
        hammer.wait_for(1 + any(200));
        acks.extend(hammer.kill());
    }
    assert_eq!(check(url, keys, &acks), acks.iter().filter(|line| line.ends_with('\n')).count());
}

/// Two processes write to one file while one of them is killed.
#[test]
fn a_killed_process_does_not_disturb_another_on_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("embody.db");
    let url = file.to_str().unwrap();
    let mut steady = Hammer::start(url, folder.path(), 4);
    steady.wait_for(1);
    let mut acks = Vec::new();
    for _ in 0..5 {
        let mut victim = Hammer::start(url, folder.path(), 4);
        victim.wait_for(1 + any(100));
        acks.extend(victim.kill());
        steady.wait_for(10);
    }
    acks.extend(steady.kill());
    assert!(check(url, folder.path(), &acks) > 50);
}

/// A server of its own, because it is killed.
// spec: S-02
#[test]
fn a_killed_server_loses_nothing_and_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let mut hammer = Hammer::start(&server.url, folder.path(), 8);
    for _ in 0..(kills() / 4).max(2) {
        hammer.wait_for(1 + any(200));
        server.run("kill");
        server.run("start");
        // The same process goes on by itself once the server is back.
        hammer.wait_for(20);
    }
    let acks = hammer.kill();
    assert!(check(&server.url, folder.path(), &acks) > 50);
}

pub(crate) struct Server {
    folder: std::path::PathBuf,
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start(folder: &Path) -> Self {
        let folder = folder.join("server");
        let mut server = Self { folder, url: String::new() };
        server.url = server.run("start").lines().last().unwrap().to_owned();
        server
    }

    pub(crate) fn run(&self, command: &str) -> String {
        let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/postgres");
        let mut call = Command::new(tool);
        call.arg(command);
        if command == "start" {
            call.args(["--for", &std::process::id().to_string()]);
        }
        let output = call.arg(&self.folder).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/postgres");
        let _ = Command::new(tool).args(["stop", "--remove"]).arg(&self.folder).output();
    }
}
