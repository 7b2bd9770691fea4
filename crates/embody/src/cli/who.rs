//! Whose data a command is about: `--user` and `--agent`, the environment, or the defaults.

use clap::Args;
use embody_store::Scope;

use crate::config::env::non_empty;
use crate::failure::Failure;

/// Whose.
#[derive(Args, Clone, Debug)]
pub(crate) struct Who {
    /// The user [env: EMBODY_USER] [default: owner]
    #[arg(long)]
    pub(crate) user: Option<String>,
    /// The agent's name [env: EMBODY_AGENT] [default: assistant]
    #[arg(long)]
    pub(crate) agent: Option<String>,
}

impl Who {
    /// The user that was asked for. Read by hand, because an empty variable says nothing and an empty flag is wrong.
    pub(crate) fn user(&self) -> String {
        named(self.user.as_ref(), "EMBODY_USER", "owner")
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

fn named(flag: Option<&String>, variable: &str, default: &str) -> String {
    let named = flag.cloned().or_else(|| non_empty(variable)?.into_string().ok());
    named.unwrap_or_else(|| default.to_owned())
}
