//! Each kind of store under the commands: SQLite in the workspace, SQLite by address, PostgreSQL.

#[path = "../../../store/tests/support/postgres.rs"]
mod postgres_server;

use std::fs::File;
use std::process::Command;

use embody_store::{DatabaseUrl, Store};

use self::postgres_server::server_url;
use crate::support::world::{CommandOutput, World, finish};

/// A world and the flags that name its store.
pub(crate) struct StoreFixture {
    pub(crate) world: World,
    flags: Vec<String>,
}

impl StoreFixture {
    pub(crate) fn workspace() -> Self {
        Self { world: World::new(), flags: Vec::new() }
    }

    pub(crate) fn sqlite() -> Self {
        let world = World::new();
        let flags =
            vec!["--store".to_owned(), format!("sqlite://{}", world.outside("elsewhere/my.db").display())];
        Self { world, flags }
    }

    pub(crate) fn postgres() -> Self {
        Self { world: World::new(), flags: vec!["--store".to_owned(), database()] }
    }

    /// Runs `embody [--store URL] ARGUMENTS`.
    pub(crate) fn run(&self, arguments: &[&str]) -> CommandOutput {
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        self.world.run(&[&flags, arguments].concat())
    }

    /// Uses the store directly, without a command.
    pub(crate) fn directly<T>(&self, work: impl AsyncFnOnce(&Store) -> T) -> T {
        let place = match self.flags.get(1) {
            None => DatabaseUrl::File(self.world.path("embody.db")),
            Some(url) if url.starts_with("sqlite:") => DatabaseUrl::File(url.replace("sqlite://", "").into()),
            Some(url) => {
                DatabaseUrl::Postgres { url: url.clone(), direct_url: None, keys: self.world.path("keys") }
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = Store::open(place).await.unwrap();
            let done = work(&store).await;
            store.close().await;
            done
        })
    }

    /// `embody [--store URL] ARGUMENTS`, to be started at a terminal.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.world.command();
        command.arg("--workspace").arg(self.world.workspace()).args(&self.flags).args(arguments);
        command
    }

    /// Runs a command with a file as stdin.
    pub(crate) fn run_with(&self, stdin: File, arguments: &[&str]) -> CommandOutput {
        let mut command = self.command(arguments);
        command.stdin(stdin);
        finish(command)
    }
}

/// The address of a new, empty database on the test server.
pub(crate) fn database() -> String {
    let server = server_url("EMBODY_TEST_POSTGRES");
    let name = format!("cli_{}_{:?}", std::process::id(), std::time::Instant::now());
    let name = format!("cli_{}", &blake3::hash(name.as_bytes()).to_hex()[..24]);
    let made =
        Command::new("psql").args([&server, "-qc", &format!("CREATE DATABASE {name}")]).status().unwrap();
    assert!(made.success());
    let (base, _) = server.rsplit_once('/').unwrap();
    format!("{base}/{name}")
}

/// Runs each test function on every kind of store.
macro_rules! on_each_store {
    ($($name:ident),* $(,)?) => {
        mod in_the_workspace {
            $(#[test] fn $name() { super::$name(&$crate::support::stores::StoreFixture::workspace()) })*
        }
        mod on_sqlite {
            $(#[test] fn $name() { super::$name(&$crate::support::stores::StoreFixture::sqlite()) })*
        }
        mod on_postgres {
            $(#[test] fn $name() { super::$name(&$crate::support::stores::StoreFixture::postgres()) })*
        }
    };
}
pub(crate) use on_each_store;
