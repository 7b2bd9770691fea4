//! How commands reach the store: which one is meant, and a runtime to work with it on. Refuses to know what is in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use embody_store::{DatabaseUrl, ErrorKind, Store};

use crate::cli::Context;
use crate::config::address::Address;
use crate::config::origin::Origin;
use crate::config::resolved::Store as Configured;
use crate::failure::Failure;

/// The folder of the workspace that holds the audit key when the store itself is on a server.
const KEYS: &str = "keys";

/// Where the configured store is. A relative path in the configuration starts at the workspace, one in a flag where the
/// command runs.
pub(crate) fn place(context: &Context) -> DatabaseUrl {
    match &context.config.store {
        Configured::Workspace { path } => DatabaseUrl::File(path.clone()),
        Configured::Sqlite { url } => DatabaseUrl::File(match context.config.origin("store.url") {
            Origin::Flag { .. } => sqlite(url.expose()),
            // Hosts start programs in folders of their own choice; what is configured must not depend on them.
            _ => context.workspace.join(sqlite(url.expose())),
        }),
        Configured::Postgres { url, direct_url } => DatabaseUrl::Postgres {
            url: url.expose().to_owned(),
            direct_url: direct_url.as_ref().map(|url| url.expose().to_owned()),
            keys: context.workspace.join(KEYS),
        },
    }
}

/// The store that somebody named on the command line: an address, or the path of a SQLite file.
pub(crate) fn named(text: &str, workspace: &Path) -> Result<DatabaseUrl, Failure> {
    let wrong = |reason: &str| {
        Failure::usage(format!("the address `{}` {reason}", crate::config::mask::address(text)))
            .hint("write sqlite:///path/to/file, the path of a SQLite file, or postgres://user@host/database")
    };
    if text.starts_with("sqlite:") {
        return Address::sqlite(text).map(|url| DatabaseUrl::File(sqlite(url.expose()))).map_err(wrong);
    }
    if text.contains("://") {
        let url = Address::postgres(text).map_err(wrong)?.expose().to_owned();
        return Ok(DatabaseUrl::Postgres { url, direct_url: None, keys: workspace.join(KEYS) });
    }
    if text.trim().is_empty() || text.contains(char::is_control) {
        return Err(wrong("names no file"));
    }
    Ok(DatabaseUrl::File(PathBuf::from(text)))
}

/// `sqlite:path`, `sqlite://path` and `sqlite:///path`; what follows is taken as it is written.
fn sqlite(url: &str) -> PathBuf {
    let rest = url.strip_prefix("sqlite:").unwrap_or(url);
    PathBuf::from(rest.strip_prefix("//").unwrap_or(rest))
}

/// Opens the configured store, making it if need be, works with it, and closes it.
pub(crate) fn with<T>(
    context: &Context,
    work: impl AsyncFnOnce(&Store) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let place = place(context);
    block_on(async {
        let store = Store::open(place).await?;
        let done = work(&store).await;
        store.close().await;
        done
    })
}

/// Reads from the configured store. A SQLite file that is not there is not made: `None`.
pub(crate) fn read<T>(
    context: &Context,
    work: impl AsyncFnOnce(&Store) -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    let place = place(context);
    block_on(async {
        let Some(store) = Store::open_existing(place).await? else { return Ok(None) };
        let done = work(&store).await;
        store.close().await;
        done.map(Some)
    })
}

/// Changes something that the configured store has. Where there is no store there is nothing to change, and none is
/// made: `None`.
pub(crate) fn change<T>(
    context: &Context,
    work: impl AsyncFnOnce(&Store) -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    read(context, work)
}

/// Runs a server to its end, on as many threads as there are processors.
pub(crate) fn block_on_all<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    run(tokio::runtime::Builder::new_multi_thread(), work)
}

/// Runs asynchronous work to its end, on this thread.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    run(tokio::runtime::Builder::new_current_thread(), work)
}

fn run<T>(
    mut builder: tokio::runtime::Builder,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let runtime = builder
        .enable_all()
        .build()
        .map_err(|error| Failure::new("the runtime could not be started").because(&error))?;
    let done = runtime.block_on(work);
    // What still connects, or waits for a line on stdin, must not hold up the program.
    runtime.shutdown_background();
    done
}

/// How often an open stream looks whether its token still counts.
const TOKEN_CHECK: Duration = Duration::from_millis(400);

/// Returns when this token does not count any more: it is revoked or over, or its user is disabled.
pub(crate) async fn revoked(store: &Store, token: &str) {
    while store.is_valid_token(token).await {
        tokio::time::sleep(TOKEN_CHECK).await;
    }
}

impl From<embody_store::Error> for Failure {
    fn from(error: embody_store::Error) -> Self {
        let failure = match error.kind() {
            ErrorKind::Invalid => Self::usage(&error),
            _ => Self::new(&error),
        };
        let failure = match std::error::Error::source(&error) {
            Some(source) => failure.because(source),
            None => failure,
        };
        match error.advice() {
            Some(advice) => failure.hint(advice),
            None => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        named(text, Path::new("/w")).map_or_else(|failure| format!("{failure:?}"), |place| place.to_string())
    }

    #[test]
    fn a_store_can_be_named_in_many_ways() {
        for (text, place) in [
            ("sqlite:///var/a b.db", "/var/a b.db"),
            ("sqlite:a.db", "a.db"),
            ("sqlite://a.db", "a.db"),
            ("./a.db", "./a.db"),
            ("postgres://me:secret@db.example:7/x", "postgres://db.example:7/x"),
        ] {
            assert_eq!(shown(text), place);
        }
        assert!(
            matches!(named("postgres://h/x", Path::new("/w")), Ok(DatabaseUrl::Postgres { keys, .. }) if keys == Path::new("/w/keys"))
        );
    }

    #[test]
    fn what_names_no_store_is_refused_without_its_password() {
        for text in [
            "",
            " ",
            "a\nb",
            "sqlite:",
            "sqlite::memory:",
            "sqlite:a.db?mode=ro",
            "postgres://",
            "mysql://me:secret@h/x",
        ] {
            assert!(named(text, Path::new("/w")).is_err(), "{text:?}");
        }
        assert!(!shown("mysql://me:secret@h/x").contains("secret"));
    }
}
