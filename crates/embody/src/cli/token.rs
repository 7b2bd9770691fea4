//! `embody token …`: the tokens that authenticate users over HTTP.

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::Style;
use clap::{Args, Subcommand};
use embody_store::tokens::{NewToken, Token, TokenScope};
use embody_store::{IdSet, ShortIds};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{Context, ScopeArgs, ids};
use crate::error::CliError;
use crate::output::{self, printable};
use crate::{store, time};

const EXAMPLES: &str = "Examples:
  embody token add --user ann --scope mcp --label laptop
  embody token add --user owner --scope mcp --may-approve    forms in your own host count, also over HTTP
  embody token add --user ann --scope chat --expires 30d
  embody token add --user owner --scope owner                chat, and decide about your own calls
  embody token list
  embody token revoke 019a8b3e";

#[derive(Subcommand, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) enum TokenCommand {
    /// Create a token and print its secret, once
    #[command(
        after_help = "Examples:\n  embody token add --user ann --scope mcp --label laptop\n  embody token add --user owner --scope owner --expires 30d"
    )]
    Add(AddArgs),
    /// List tokens, and browsers that are signed in to the console; secrets are not stored
    #[command(after_help = "Examples:\n  embody token list")]
    List,
    /// Revoke a token, or sign a browser out (takes effect within 100 ms; its sessions, streams and waiting calls end
    /// within a second)
    #[command(after_help = "Examples:\n  embody token revoke 8f21c0de")]
    Revoke {
        /// The token's id, or its end, see `token list`
        id: String,
    },
}

#[derive(Args, Debug)]
pub(crate) struct AddArgs {
    /// The user of the token
    #[arg(long)]
    user: String,
    /// What the token allows: mcp (MCP), chat (web chat), operate (approvals, audit, status, metrics), or owner (chat and
    /// operate, for the owner only)
    #[arg(long, value_parser = TokenScope::ALL.map(TokenScope::name))]
    scope: String,
    /// A label, shown by `token list`
    #[arg(long, default_value = "")]
    label: String,
    /// The expiry: a duration such as 30d or 12h, or an RFC 3339 time
    #[arg(long, value_name = "WHEN", value_parser = ending)]
    expires: Option<Timestamp>,
    /// Answers to approval forms in this host count as the owner's. Only for the owner, with the scope mcp: the person
    /// or program that answers forms in that host approves its calls
    #[arg(long)]
    may_approve: bool,
}

/// A timestamp, or a duration from now. Days are 24 hours.
fn ending(text: &str) -> Result<Timestamp, String> {
    const WRONG: &str = "write a duration such as 30d or 12h, or a time such as 2027-01-31T00:00:00Z";
    let span = |days: &str| Some(SignedDuration::from_hours(days.parse::<i64>().ok()?.checked_mul(24)?));
    let at = match text.strip_suffix('d').and_then(span).or_else(|| text.parse().ok()) {
        Some(span) => Timestamp::now().checked_add(span).map_err(|_| WRONG)?,
        None => text.parse().map_err(|_| WRONG)?,
    };
    if at <= Timestamp::now() {
        return Err(format!("`{text}` is in the past"));
    }
    Ok(at)
}

pub(crate) fn run(command: &TokenCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        TokenCommand::Add(args) => add(args, context),
        TokenCommand::List => list(context),
        TokenCommand::Revoke { id } => revoke(id, context),
    }
}

/// Only the owner approves and has the scope `owner`, and only hosts show forms.
fn check_right(args: &AddArgs) -> Result<(), CliError> {
    let owner = ScopeArgs::owner();
    if args.may_approve && args.user != owner {
        let message = format!("`--may-approve` is for the owner `{owner}`, not for `{}`", args.user);
        return Err(CliError::usage(message).hint(
            "leave it out: the owner decides about the calls of other users. EMBODY_USER sets the owner",
        ));
    }
    if args.scope == TokenScope::Owner.name() && args.user != owner {
        let message = format!("`--scope owner` is for the owner `{owner}`, not for `{}`", args.user);
        return Err(CliError::usage(message).hint(
            "create a token with the scope `chat` and one with `operate`. EMBODY_USER sets the owner",
        ));
    }
    if args.may_approve && args.scope != TokenScope::Mcp.name() {
        let message = format!("`--may-approve` needs `--scope mcp`, not `{}`", args.scope);
        return Err(CliError::usage(message).hint("leave it out: only hosts answer forms"));
    }
    Ok(())
}

fn add(args: &AddArgs, context: &Context) -> Result<ExitCode, CliError> {
    check_right(args)?;
    let new = NewToken {
        user: args.user.clone(),
        scope: TokenScope::from_name(&args.scope)
            .ok_or_else(|| CliError::usage(format!("unknown scope `{}`", args.scope)))?,
        label: args.label.clone(),
        expires_at: args.expires.map(Timestamp::as_microsecond),
        may_approve: args.may_approve,
    };
    let (token, secret) = store::with(context, async |store| Ok(store.tokens().add(new).await?))?;
    if context.json {
        output::json(&json!({
            "id": token.id,
            "user": token.user,
            "scope": token.scope.name(),
            "label": token.label,
            "expires_at": token.expires_at.map(time::rfc3339),
            "may_approve": token.may_approve,
            "token": secret.expose(),
        }))?;
    } else {
        output::plain(&format!("{}\n", secret.expose()))?;
        output::stderr_line(&format!("token {}: store the secret now, it is not shown again", token.id));
    }
    Ok(ExitCode::SUCCESS)
}

fn list(context: &Context) -> Result<ExitCode, CliError> {
    let tokens = store::with_existing(context, async |store| {
        let tokens = store.tokens().list().await?;
        let ids = tokens.iter().map(|token| &token.id);
        Ok((ids::shorten(context, store, IdSet::Tokens, ids).await?, tokens))
    })?;
    let (short, tokens) = tokens.unwrap_or_default();
    context.print_list("tokens", &tokens, as_json, |tokens| as_text(tokens, &short))
}

fn revoke(id: &str, context: &Context) -> Result<ExitCode, CliError> {
    let revoked = store::with_existing(context, async |store| {
        let id = ids::resolve(store, IdSet::Tokens, id, not_found).await?;
        store.tokens().revoke(&id).await?;
        Ok(id)
    })?;
    let id = revoked.ok_or_else(|| not_found(id))?;
    context.print_plain(&json!({ "id": id, "state": "revoked" }), || format!("revoked {id}\n"))
}

fn not_found(id: &str) -> CliError {
    CliError::new(format!("unknown token `{id}`")).hint("`embody token list` shows the ids")
}

fn state(token: &Token) -> &'static str {
    let now = Timestamp::now().as_microsecond();
    match (token.revoked_at, token.expires_at) {
        (Some(_), _) => "revoked",
        (_, Some(end)) if end <= now => "over",
        _ => "good",
    }
}

fn as_text(tokens: &[Token], short: &ShortIds) -> String {
    const HEAD: Style = Style::new().bold();
    if tokens.is_empty() {
        return "There are no tokens.\n".to_owned();
    }
    let mut out = format!(
        "{HEAD}{:13}  {:16}  {:16}  {:7}  {:20}  label{HEAD:#}\n",
        "id", "user", "scope", "state", "last used"
    );
    for token in tokens {
        let used = token.last_used_at.map_or_else(|| "never".to_owned(), time::display);
        let user = printable(&token.user);
        let scope = if token.may_approve { "mcp, may approve" } else { token.scope.name() };
        let (state, label) = (state(token), printable(&token.label));
        let _ =
            writeln!(out, "{:13}  {user:16}  {scope:16}  {state:7}  {used:20}  {label}", short.of(&token.id));
    }
    out
}

fn as_json(token: &Token) -> serde_json::Value {
    json!({
        "id": token.id,
        "user": token.user,
        "scope": token.scope.name(),
        "label": token.label,
        "may_approve": token.may_approve,
        "state": state(token),
        "created_at": time::rfc3339(token.created_at),
        "expires_at": token.expires_at.map(time::rfc3339),
        "last_used_at": token.last_used_at.map(time::rfc3339),
        "revoked_at": token.revoked_at.map(time::rfc3339),
    })
}
