//! The user and agent of a command: `--user` and `--agent`, the environment, or the defaults.

use clap::Args;
use embody_store::tokens::TokenScope;
use embody_store::{Scope, Store};

use crate::config::env::non_empty;
use crate::error::CliError;
use crate::store;

#[derive(Args, Clone, Debug)]
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
        named(self.user.as_ref(), "EMBODY_USER", "owner")
    }

    /// The owner of the workspace, who may differ from the user of a command.
    pub(crate) fn owner() -> String {
        named(None, "EMBODY_USER", "owner")
    }

    pub(crate) fn agent(&self) -> String {
        named(self.agent.as_ref(), "EMBODY_AGENT", "assistant")
    }

    pub(crate) fn resolve(&self) -> Result<Scope, CliError> {
        Ok(Scope::new(&self.user(), &self.agent())?)
    }
}

/// Rejects an empty name; the store checks the rest.
pub(super) fn name(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() {
        return Err("a name cannot be empty; leave the flag out for the default");
    }
    Ok(text.to_owned())
}

fn named(flag: Option<&String>, variable: &str, default: &str) -> String {
    let named = flag.cloned().or_else(|| non_empty(variable)?.into_string().ok());
    named.unwrap_or_else(|| default.to_owned())
}

/// On a shared store a token names the user, even of a local process.
pub(crate) async fn token_user(store: &Store, args: &ScopeArgs) -> Result<String, CliError> {
    let hint = "make one with `embody token add --user NAME --scope mcp`, and set EMBODY_TOKEN to it";
    let Some(token) = token() else {
        return Err(CliError::usage(
            "on PostgreSQL a token says who is speaking, and EMBODY_TOKEN is not set",
        )
        .hint(hint));
    };
    let Some(principal) = store.tokens().authenticate(token.trim()).await? else {
        return Err(
            CliError::new("nobody has the token in EMBODY_TOKEN, or it is revoked or over").hint(hint)
        );
    };
    if principal.scope != TokenScope::Mcp {
        return Err(CliError::new(format!(
            "the token in EMBODY_TOKEN is for `{}`, not for `mcp`",
            principal.scope.name()
        ))
        .hint(hint));
    }
    if args.user.as_ref().is_some_and(|user| *user != principal.user) {
        return Err(CliError::usage("`--user` names somebody else than the token in EMBODY_TOKEN")
            .hint("leave `--user` out"));
    }
    Ok(principal.user)
}

fn token() -> Option<String> {
    non_empty("EMBODY_TOKEN").and_then(|token| token.into_string().ok())
}

/// Returns when the token in `EMBODY_TOKEN` is revoked.
pub(crate) async fn wait_until_token_revoked(store: &Store) {
    match token() {
        Some(token) => store::wait_until_revoked(store, token.trim()).await,
        None => std::future::pending().await,
    }
}
