//! Whose data a command is about: `--user` and `--agent`, the environment, or the defaults.

use clap::Args;
use embody_store::{Scope, Store, TokenScope};

use crate::config::env::non_empty;
use crate::failure::Failure;
use crate::store;

/// Whose.
#[derive(Args, Clone, Debug)]
pub(crate) struct Who {
    /// The user [env: EMBODY_USER] [default: owner]
    #[arg(long, value_parser = name)]
    pub(crate) user: Option<String>,
    /// The agent's name [env: EMBODY_AGENT] [default: assistant]
    #[arg(long, value_parser = name)]
    pub(crate) agent: Option<String>,
}

impl Who {
    /// The user that was asked for. Read by hand, because an empty variable says nothing and an empty flag is wrong.
    pub(crate) fn user(&self) -> String {
        named(self.user.as_ref(), "EMBODY_USER", "owner")
    }

    /// The owner of the workspace, which may be another user than the one that a command is about.
    pub(crate) fn owner() -> String {
        named(None, "EMBODY_USER", "owner")
    }

    /// The agent that was asked for.
    pub(crate) fn agent(&self) -> String {
        named(self.agent.as_ref(), "EMBODY_AGENT", "assistant")
    }

    /// Both, as the store wants them.
    pub(crate) fn scope(&self) -> Result<Scope, Failure> {
        Ok(Scope::new(&self.user(), &self.agent())?)
    }
}

/// A name that is given on the command line. What else it may not be, whoever keeps it says.
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

/// On a store that many share, a token names the user, also of a local process.
pub(crate) async fn user_of_token(store: &Store, who: &Who) -> Result<String, Failure> {
    let hint = "make one with `embody token add --user NAME --scope mcp`, and set EMBODY_TOKEN to it";
    let Some(token) = token() else {
        return Err(Failure::usage(
            "on PostgreSQL a token says who is speaking, and EMBODY_TOKEN is not set",
        )
        .hint(hint));
    };
    let Some(principal) = store.principal(token.trim()).await? else {
        return Err(Failure::new("nobody has the token in EMBODY_TOKEN, or it is revoked or over").hint(hint));
    };
    if principal.scope != TokenScope::Mcp {
        return Err(Failure::new(format!(
            "the token in EMBODY_TOKEN is for `{}`, not for `mcp`",
            principal.scope.name()
        ))
        .hint(hint));
    }
    if who.user.as_ref().is_some_and(|user| *user != principal.user) {
        return Err(Failure::usage("`--user` names somebody else than the token in EMBODY_TOKEN")
            .hint("leave `--user` out"));
    }
    Ok(principal.user)
}

fn token() -> Option<String> {
    non_empty("EMBODY_TOKEN").and_then(|token| token.into_string().ok())
}

/// Returns when the token in `EMBODY_TOKEN` is revoked.
pub(crate) async fn token_revoked(store: &Store) {
    match token() {
        Some(token) => store::revoked(store, token.trim()).await,
        None => std::future::pending().await,
    }
}
