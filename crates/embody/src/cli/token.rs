//! `embody token …`: what names a user over HTTP.

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::Style;
use clap::{Args, Subcommand};
use embody_store::{NewToken, Token, TokenScope};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::Context;
use crate::failure::Failure;
use crate::output::{self, printable};
use crate::store;
use crate::time;

const EXAMPLES: &str = "Examples:
  embody token add --user ann --scope mcp --label laptop
  embody token add --user ann --scope chat --expires 30d
  embody token list
  embody token revoke 019a8b3e-…";

/// What to do with them.
#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum TokenCommand {
    /// Makes a token and prints its secret, this once
    Add(AddArgs),
    /// Lists tokens; their secrets are not kept
    List,
    /// Ends a token; servers that believed it a moment ago refuse it within a tenth of a second
    Revoke(RevokeArgs),
}

#[derive(Args, Debug)]
pub(crate) struct AddArgs {
    /// The user that it names
    #[arg(long)]
    user: String,
    /// What it may do: mcp (speak MCP), chat, or operate (approvals, audit, configuration)
    #[arg(long, value_parser = ["mcp", "chat", "operate"])]
    scope: String,
    /// What it is for
    #[arg(long, default_value = "")]
    label: String,
    /// When it ends: a time span such as 30d or 12h, or an RFC 3339 time
    #[arg(long, value_name = "WHEN", value_parser = ending)]
    expires: Option<Timestamp>,
}

#[derive(Args, Debug)]
pub(crate) struct RevokeArgs {
    /// Its id, as `token list` shows it
    id: String,
}

/// A moment, or a span from now. Days are 24 hours.
fn ending(text: &str) -> Result<Timestamp, String> {
    const WRONG: &str = "write a span such as 30d or 12h, or a time such as 2027-01-31T00:00:00Z";
    let span = |days: &str| Some(SignedDuration::from_hours(days.parse::<i64>().ok()?.checked_mul(24)?));
    let at = match text.strip_suffix('d').and_then(span).or_else(|| text.parse().ok()) {
        Some(span) => Timestamp::now().checked_add(span).map_err(|_| WRONG)?,
        None => text.parse().map_err(|_| WRONG)?,
    };
    if at <= Timestamp::now() {
        return Err(format!("`{text}` is over already"));
    }
    Ok(at)
}

pub(crate) fn run(command: &TokenCommand, context: &Context) -> Result<ExitCode, Failure> {
    match command {
        TokenCommand::Add(args) => add(args, context),
        TokenCommand::List => list(context),
        TokenCommand::Revoke(args) => revoke(args, context),
    }
}

fn add(args: &AddArgs, context: &Context) -> Result<ExitCode, Failure> {
    let new = NewToken {
        user: args.user.clone(),
        scope: TokenScope::from_name(&args.scope)
            .ok_or_else(|| Failure::usage(format!("there is no scope `{}`", args.scope)))?,
        label: args.label.clone(),
        expires_at: args.expires.map(Timestamp::as_microsecond),
    };
    let (token, secret) = store::with(context, async |store| Ok(store.add_token(new).await?))?;
    if context.json {
        let Token { id, user, scope, label, .. } = &token;
        let expires_at = token.expires_at.map(time::rfc3339);
        let (scope, token) = (scope.name(), secret.expose());
        output::json(
            &json!({ "id": id, "user": user, "scope": scope, "label": label, "expires_at": expires_at, "token": token }),
        )?;
    } else {
        output::plain(&format!("{}\n", secret.expose()))?;
        output::aside(&format!("token {}: keep the secret, it is not shown again", token.id));
    }
    Ok(ExitCode::SUCCESS)
}

fn list(context: &Context) -> Result<ExitCode, Failure> {
    let tokens = store::read(context, async |store| Ok(store.tokens().await?))?.unwrap_or_default();
    if context.json {
        output::json(&json!({ "tokens": tokens.iter().map(as_json).collect::<Vec<_>>() }))?;
    } else {
        output::styled(&as_text(&tokens))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn revoke(args: &RevokeArgs, context: &Context) -> Result<ExitCode, Failure> {
    let revoked = store::change(context, async |store| Ok(store.revoke_token(&args.id).await?))?;
    revoked.ok_or_else(|| {
        Failure::new(format!("there is no token `{}`", args.id)).hint("`embody token list` shows the ids")
    })?;
    if context.json {
        output::json(&json!({ "id": args.id, "state": "revoked" }))?;
    } else {
        output::plain(&format!("revoked {}\n", args.id))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn state(token: &Token) -> &'static str {
    let now = Timestamp::now().as_microsecond();
    match (token.revoked_at, token.expires_at) {
        (Some(_), _) => "revoked",
        (_, Some(end)) if end <= now => "over",
        _ => "good",
    }
}

fn as_text(tokens: &[Token]) -> String {
    const HEAD: Style = Style::new().bold();
    if tokens.is_empty() {
        return "There are no tokens.\n".to_owned();
    }
    let mut out = format!(
        "{HEAD}{:36}  {:16}  {:7}  {:7}  {:20}  label{HEAD:#}\n",
        "id", "user", "scope", "state", "last used"
    );
    for token in tokens {
        let used = token.last_used_at.map_or_else(|| "never".to_owned(), time::shown);
        let (user, scope) = (printable(&token.user), token.scope.name());
        let (state, label) = (state(token), printable(&token.label));
        let _ = writeln!(out, "{:36}  {user:16}  {scope:7}  {state:7}  {used:20}  {label}", token.id);
    }
    out
}

fn as_json(token: &Token) -> serde_json::Value {
    json!({
        "id": token.id,
        "user": token.user,
        "scope": token.scope.name(),
        "label": token.label,
        "state": state(token),
        "created_at": time::rfc3339(token.created_at),
        "expires_at": token.expires_at.map(time::rfc3339),
        "last_used_at": token.last_used_at.map(time::rfc3339),
        "revoked_at": token.revoked_at.map(time::rfc3339),
    })
}
