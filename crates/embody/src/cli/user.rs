//! `embody user …`: the users in the store, and which of them are locked out.

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::Style;
use clap::{Args, Subcommand};
use embody_store::users::User;
use serde_json::json;

use super::Context;
use crate::error::CliError;
use crate::output::printable;
use crate::{store, time};

const EXAMPLES: &str = "Examples:
  embody user list
  embody user disable ann      reject her tokens, and end her open sessions within a second
  embody user enable ann       accept her tokens again, except revoked ones";

#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum UserCommand {
    /// List the users that have tokens or are stored
    #[command(after_help = "Examples:\n  embody user list")]
    List,
    /// Disable a user: all their tokens are rejected
    #[command(after_help = "Examples:\n  embody user disable ann")]
    Disable(UserArgs),
    /// Enable a user again
    #[command(after_help = "Examples:\n  embody user enable ann")]
    Enable(UserArgs),
}

#[derive(Args, Debug)]
pub(crate) struct UserArgs {
    /// The user, see `user list`
    #[arg(value_name = "USER")]
    name: String,
}

pub(crate) fn run(command: &UserCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        UserCommand::List => list(context),
        UserCommand::Disable(args) => set(&args.name, true, context),
        UserCommand::Enable(args) => set(&args.name, false, context),
    }
}

fn list(context: &Context) -> Result<ExitCode, CliError> {
    let users =
        store::with_existing(context, async |store| Ok(store.users().list().await?))?.unwrap_or_default();
    context.print_list("users", &users, as_json, as_text)
}

fn set(user: &str, disabled: bool, context: &Context) -> Result<ExitCode, CliError> {
    let unknown =
        || CliError::new(format!("unknown user `{user}`")).hint("`embody user list` lists the users");
    let known = store::with_existing(context, async |store| {
        if !store.users().list().await?.iter().any(|known| known.id == user) {
            return Ok(false);
        }
        store.users().set_disabled(user, disabled).await?;
        Ok(true)
    })?;
    if known != Some(true) {
        return Err(unknown());
    }
    let state = state(disabled);
    context.print_plain(&json!({ "user": user, "state": state }), || format!("{state} {}\n", printable(user)))
}

fn state(disabled: bool) -> &'static str {
    if disabled { "disabled" } else { "enabled" }
}

fn as_text(users: &[User]) -> String {
    const HEAD: Style = Style::new().bold();
    if users.is_empty() {
        return "There are no users.\n".to_owned();
    }
    let mut out = format!("{HEAD}{:24}  {:8}  {:20}  name{HEAD:#}\n", "user", "state", "since");
    for user in users {
        let state = state(user.disabled_at.is_some());
        let since = time::display(user.disabled_at.unwrap_or(user.created_at));
        let (id, name) = (printable(&user.id), printable(user.name.as_deref().unwrap_or_default()));
        let _ = writeln!(out, "{id:24}  {state:8}  {since:20}  {name}");
    }
    out
}

fn as_json(user: &User) -> serde_json::Value {
    json!({
        "user": user.id,
        "name": user.name,
        "state": state(user.disabled_at.is_some()),
        "created_at": time::rfc3339(user.created_at),
        "disabled_at": user.disabled_at.map(time::rfc3339),
    })
}
