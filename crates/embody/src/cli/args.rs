//! What several commands take: the user and the agent (flags, environment or defaults), and text or a file from stdin.

use std::fs::File;
use std::io::{Read, stdin};
use std::path::Path;

use clap::Args;
use embody_store::tokens::TokenScope;
use embody_store::{Scope, Store};

use crate::config::env::non_empty;
use crate::error::{CliError, ErrorContext};
use crate::store;

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ScopeArgs {
    /// The user [env: EMBODY_USER] [default: owner]
    #[arg(long, value_parser = name)]
    pub(crate) user: Option<String>,
    /// The agent's name [env: EMBODY_AGENT] [default: assistant]
    #[arg(long, value_parser = name)]
    pub(crate) agent: Option<String>,
}

impl ScopeArgs {
    /// Not read by clap, because an empty variable counts as unset and an empty flag is an error.
    pub(crate) fn user(&self) -> String {
        self.user.clone().unwrap_or_else(Self::owner)
    }

    /// The owner of the workspace, who may differ from the user of a command.
    pub(crate) fn owner() -> String {
        variable("EMBODY_USER").unwrap_or_else(|| "owner".to_owned())
    }

    pub(crate) fn agent(&self) -> String {
        let agent = self.agent.clone().or_else(|| variable("EMBODY_AGENT"));
        agent.unwrap_or_else(|| "assistant".to_owned())
    }

    pub(crate) fn resolve(&self) -> Result<Scope, CliError> {
        Ok(Scope::new(&self.user(), &self.agent())?)
    }
}

/// Rejects an empty name; the store checks the rest.
fn name(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() {
        return Err("a name cannot be empty; leave the flag out for the default");
    }
    Ok(text.to_owned())
}

fn variable(name: &str) -> Option<String> {
    non_empty(name)?.into_string().ok()
}

/// The channel of runs whose reply no person sees.
pub(super) const SCHEDULED: &str = "scheduled";

const TOKEN: &str = "EMBODY_TOKEN";

/// On a shared store a token names the user, even of a local process.
pub(super) async fn token_user(store: &Store, args: &ScopeArgs) -> Result<String, CliError> {
    let hint = "create one with `embody token add --user NAME --scope mcp`, and set EMBODY_TOKEN to it";
    let Some(token) = variable(TOKEN) else {
        return Err(CliError::usage(
            "on PostgreSQL a token identifies the user, and EMBODY_TOKEN is not set",
        )
        .hint(hint));
    };
    let Some(principal) = store.tokens().authenticate(token.trim()).await? else {
        return Err(CliError::new("the token in EMBODY_TOKEN is unknown, revoked or expired").hint(hint));
    };
    if principal.scope != TokenScope::Mcp {
        return Err(CliError::new(format!(
            "the token in EMBODY_TOKEN has the scope `{}`, not `mcp`",
            principal.scope.name()
        ))
        .hint(hint));
    }
    if args.user.as_ref().is_some_and(|user| *user != principal.user) {
        return Err(CliError::usage("`--user` differs from the user of the token in EMBODY_TOKEN")
            .hint("leave `--user` out"));
    }
    Ok(principal.user)
}

/// Returns when the token in `EMBODY_TOKEN` is revoked.
pub(super) async fn wait_until_token_revoked(store: &Store) {
    match variable(TOKEN) {
        Some(token) => store::wait_until_revoked(store, token.trim()).await,
        None => std::future::pending().await,
    }
}

/// The store has a lower limit and reports it.
const TEXT_LIMIT: u64 = 1024 * 1024;

/// The argument itself, or stdin for `-`.
pub(super) fn read_text(given: &str) -> Result<String, CliError> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    let mut text = String::new();
    stdin().lock().take(TEXT_LIMIT).read_to_string(&mut text).context("the text on stdin cannot be read")?;
    Ok(text)
}

/// A file, or stdin for `-`; `None` if it has `limit` bytes or more.
pub(super) fn read_file(path: &Path, limit: u64) -> Result<Option<String>, CliError> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        stdin().lock().take(limit).read_to_string(&mut text)
    } else {
        File::open(path).and_then(|file| file.take(limit).read_to_string(&mut text))
    };
    let read = read.context(format!("`{}` cannot be read", path.display()))?;
    Ok((read as u64 != limit).then_some(text))
}
