//! Access to the store for commands: which database is configured, a runtime to work on, and what the store adds to a prompt
//! (standing instructions, soul, identity, task). Holds no SQL.

use std::path::{Path, PathBuf};
use std::time::Duration;

use embody_prompt::{Source, Step, StepState, Task};
use embody_store::instructions::Instructions;
use embody_store::pins::ToolPin;
use embody_store::untrusted_reads::EXPOSED;
use embody_store::{DatabaseUrl, ErrorKind, Scope, Store};

use crate::config::mask::Address;
use crate::config::tree::Origin;
use crate::error::{CliError, ErrorContext};
use crate::settings::Settings;

/// The folder of the workspace that holds the audit key when the store itself is on a server.
const KEYS: &str = "keys";

/// The configured database. A relative path is relative to the workspace in the configuration, and to the current directory in a
/// flag.
pub(crate) fn database_url(settings: &Settings) -> DatabaseUrl {
    let store = &settings.config.store;
    match &store.url {
        None => DatabaseUrl::File(settings.workspace.join("embody.db")),
        Some(url) if url.is_sqlite() => DatabaseUrl::File(match settings.config.origin("store.url") {
            Origin::Flag { .. } => sqlite_path(url.expose()),
            // Hosts start programs in any directory; a configured path must not depend on it.
            _ => settings.workspace.join(sqlite_path(url.expose())),
        }),
        Some(url) => DatabaseUrl::Postgres {
            url: url.expose().to_owned(),
            direct_url: store.direct_url.as_ref().map(|url| url.expose().to_owned()),
            keys: settings.workspace.join(KEYS),
        },
    }
}

pub(crate) fn parse_database_url(text: &str, workspace: &Path) -> Result<DatabaseUrl, CliError> {
    let wrong = |reason: &str| {
        CliError::usage(format!("the address `{}` {reason}", crate::config::mask::address(text)))
            .hint("write sqlite:///path/to/file, the path of a SQLite file, or postgres://user@host/database")
    };
    let address = Address::new(text);
    if address.is_sqlite() {
        address.check_sqlite().map_err(wrong)?;
        return Ok(DatabaseUrl::File(sqlite_path(text)));
    }
    if text.contains("://") {
        address.check_postgres().map_err(wrong)?;
        let keys = workspace.join(KEYS);
        return Ok(DatabaseUrl::Postgres { url: text.to_owned(), direct_url: None, keys });
    }
    if text.trim().is_empty() || text.contains(char::is_control) {
        return Err(wrong("names no file"));
    }
    Ok(DatabaseUrl::File(PathBuf::from(text)))
}

/// `sqlite:path`, `sqlite://path` and `sqlite:///path`; the path is used as written.
fn sqlite_path(url: &str) -> PathBuf {
    let rest = url.strip_prefix("sqlite:").unwrap_or(url);
    PathBuf::from(rest.strip_prefix("//").unwrap_or(rest))
}

/// Opens the configured store, creating it if necessary, runs `work` and closes it.
pub(crate) fn with<T>(
    settings: &Settings,
    work: impl AsyncFnOnce(&Store) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let url = database_url(settings);
    block_on(async {
        let store = Store::open(url).await?;
        let done = work(&store).await;
        store.close().await;
        done
    })
}

/// Like [`with`], but does not create a SQLite file that does not exist: `None`.
pub(crate) fn with_existing<T>(
    settings: &Settings,
    work: impl AsyncFnOnce(&Store) -> Result<T, CliError>,
) -> Result<Option<T>, CliError> {
    let url = database_url(settings);
    block_on(async {
        let Some(store) = Store::open_existing(url).await? else { return Ok(None) };
        let done = work(&store).await;
        store.close().await;
        done.map(Some)
    })
}

/// Runs a server to its end, on one thread per processor.
pub(crate) fn block_on_multi_thread<T>(
    work: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    run(tokio::runtime::Builder::new_multi_thread(), work)
}

/// Runs asynchronous work to its end, on this thread.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    run(tokio::runtime::Builder::new_current_thread(), work)
}

fn run<T>(
    mut builder: tokio::runtime::Builder,
    work: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    let runtime = builder.enable_all().build().context("the runtime could not be started")?;
    let done = runtime.block_on(work);
    // Pending connections and reads from stdin must not delay the exit.
    runtime.shutdown_background();
    done
}

const TOKEN_CHECK: Duration = Duration::from_millis(400);

/// Returns when the token is revoked or expired, or its user is disabled.
pub(crate) async fn wait_until_revoked(store: &Store, token: &str) {
    while store.tokens().is_valid(token).await {
        tokio::time::sleep(TOKEN_CHECK).await;
    }
}

/// Returns when the token of this id has ended: whether it is still stored, so was revoked or has expired. While the store
/// does not answer, a valid token stays valid.
pub(crate) async fn wait_until_ended(store: &Store, user: &str, id: &str) -> bool {
    loop {
        match store.tokens().validity(user, id).await {
            Ok(None) => return false,
            Ok(Some(false)) => return true,
            Ok(Some(true)) => {}
            Err(error) => tracing::warn!(reason = %error, "cannot look up whether a token was revoked"),
        }
        tokio::time::sleep(TOKEN_CHECK).await;
    }
}

impl From<embody_store::Error> for CliError {
    fn from(error: embody_store::Error) -> Self {
        let failure = match error.kind() {
            ErrorKind::Invalid => Self::usage(&error),
            _ => Self::new(&error),
        };
        failure.with_sources_of(&error).hint_opt(error.advice())
    }
}

/// How many tasks are named when the requested one does not exist.
const KNOWN_TASKS: u32 = 10;
const PIN_PAGE: u32 = 500;

/// The pinned definitions that `keep` selects, page by page, until there are at least `limit`.
pub(crate) async fn pins(
    store: &Store,
    limit: usize,
    keep: impl Fn(&ToolPin) -> bool,
) -> Result<Vec<ToolPin>, CliError> {
    let mut pins: Vec<ToolPin> = Vec::new();
    let mut last = (String::new(), String::new());
    while pins.len() < limit {
        let page = store.pins().list((&last.0, &last.1), PIN_PAGE).await?;
        let Some(end) = page.last() else { break };
        last = (end.body.clone(), end.tool.clone());
        pins.extend(page.into_iter().filter(&keep));
    }
    Ok(pins)
}

/// What the store adds to a prompt, each part with its source.
#[derive(Default)]
pub(crate) struct StoredParts {
    pub(crate) instructions: Option<(String, Source)>,
    pub(crate) soul: Option<(String, Source)>,
    pub(crate) identity: Option<(serde_json::Value, Source)>,
    pub(crate) task: Option<(Task, Source)>,
    /// The task, if it was written after reading untrusted text.
    pub(crate) exposed_task: Option<String>,
}

/// A store that cannot be read is an error, because a prompt without the user's instructions must not look like one with them.
pub(crate) async fn stored_parts(
    store: &Store,
    scope: &Scope,
    task_id: Option<&str>,
) -> Result<StoredParts, CliError> {
    let Instructions { text, version, .. } = store.instructions().get(scope).await?;
    let source = format!("store: instructions of {}, version {version}", scope.user());
    let instructions = (!text.trim().is_empty()).then(|| (text, Source::named(&source)));
    let agent = store.agents().get(scope.agent()).await?;
    let (soul, identity) = agent.map_or((None, None), |agent| (agent.soul, agent.identity));
    let source = Source::named(&format!("store: agent {}", scope.agent()));
    let task = match task_id {
        Some(id) => task(store, scope.user(), id).await?,
        None => None,
    };
    let (task, trust) = task.unzip();
    let is_exposed = trust.is_some_and(|trust| trust == EXPOSED);
    Ok(StoredParts {
        instructions,
        soul: soul.map(|soul| (soul, source.clone())),
        identity: identity.map(|identity| (identity, source)),
        exposed_task: task.as_ref().filter(|_| is_exposed).map(|(task, _)| task.id.clone()),
        task,
    })
}

/// The task in the store and its trust; `None` if the user has no tasks there, so that `tasks.json` is read.
async fn task(store: &Store, user: &str, id: &str) -> Result<Option<((Task, Source), String)>, CliError> {
    let known = store.tasks().list(user, 0, KNOWN_TASKS).await?;
    if known.is_empty() {
        return Ok(None);
    }
    let found = match id.parse() {
        Ok(number) => store.tasks().get(user, number).await?,
        Err(_) => None,
    };
    let Some(found) = found else {
        let known: Vec<String> = known.iter().map(|task| task.number.to_string()).collect();
        return Err(CliError::new(format!("unknown task `{id}`; the store has {}", known.join(", "))));
    };
    let content = found.content;
    let steps = content.steps.into_iter().map(|step| Step {
        text: step.text,
        state: match step.state {
            embody_store::tasks::StepState::Open => StepState::Open,
            embody_store::tasks::StepState::Current => StepState::Current,
            embody_store::tasks::StepState::Done => StepState::Done,
        },
    });
    let task = Task {
        id: found.number.to_string(),
        title: content.title,
        description: Some(content.description).filter(|text| !text.is_empty()),
        status: Some(content.status),
        steps: steps.collect(),
    };
    let source = Source::named(&format!("store: task {} of {user}", found.number));
    Ok(Some(((task, source), content.trust)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        parse_database_url(text, Path::new("/w"))
            .map_or_else(|failure| format!("{failure:?}"), |url| url.to_string())
    }

    #[test]
    fn a_database_can_be_named_in_many_ways() {
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
            matches!(parse_database_url("postgres://h/x", Path::new("/w")), Ok(DatabaseUrl::Postgres { keys, .. }) if keys == Path::new("/w/keys"))
        );
    }

    #[test]
    fn an_invalid_database_is_rejected_without_showing_its_password() {
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
            assert!(parse_database_url(text, Path::new("/w")).is_err(), "{text:?}");
        }
        assert!(!shown("mysql://me:secret@h/x").contains("secret"));
    }
}
