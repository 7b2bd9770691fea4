//! `embody instructions proposals`, `accept` and `dismiss`: what was wished for, and the owner's word on it.

use std::fmt::Write;
use std::process::ExitCode;

use anstyle::Style;
use clap::Args;
use embody_mind::{Caller, ContractSource, Mind, Moment, ProposalDecision, Trust};
use embody_store::{Proposal, ProposalStatus, Scope, Store};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;

use super::instructions::{OPERATOR, written};
use super::{Context, Who};
use crate::failure::Failure;
use crate::output::{self, printable};
use crate::store;
use crate::time;

const DIM: Style = Style::new().dimmed();

#[derive(Args, Debug)]
pub(crate) struct ProposalsArgs {
    #[command(flatten)]
    who: Who,
}

#[derive(Args, Debug)]
pub(crate) struct ProposalArgs {
    /// The proposal's id
    id: String,
    #[command(flatten)]
    who: Who,
}

pub(super) fn list(args: &ProposalsArgs, context: &Context) -> Result<ExitCode, Failure> {
    let caller = owner(args.who.scope()?);
    let found =
        store::read(context, async |store| mind(store).open_proposals(&caller).await.map_err(refused))?;
    let found = found.unwrap_or_default();
    if context.json {
        let proposals: Vec<_> = found.iter().map(as_json).collect();
        output::json(&json!({ "proposals": proposals }))?;
    } else {
        output::styled(&as_text(&found))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn accept(args: &ProposalArgs, context: &Context) -> Result<ExitCode, Failure> {
    let caller = owner(args.who.scope()?);
    let decision = store::change(context, async |store| {
        mind(store).accept_proposal(&caller, &args.id, &now()).await.map_err(refused)
    })?;
    match decision.ok_or_else(|| missing(&args.id))? {
        ProposalDecision::Accepted(instructions) => written(&instructions, context),
        ProposalDecision::Decided(proposal) => decided(&proposal, ProposalStatus::Accepted, context),
        ProposalDecision::Renewed(proposal) => Err(Failure::new(format!(
            "the instructions have version `{}` by now; nothing was changed",
            proposal.change.base_version
        ))
        .hint("the proposal was made anew: look at `embody instructions proposals`, then accept it again")),
    }
}

pub(super) fn dismiss(args: &ProposalArgs, context: &Context) -> Result<ExitCode, Failure> {
    let caller = owner(args.who.scope()?);
    let proposal = store::change(context, async |store| {
        mind(store).dismiss_proposal(&caller, &args.id, &now()).await.map_err(refused)
    })?;
    decided(&proposal.ok_or_else(|| missing(&args.id))?, ProposalStatus::Dismissed, context)
}

/// Asking twice for the same is no failure; asking for the opposite of what was decided is.
fn decided(proposal: &Proposal, wanted: ProposalStatus, context: &Context) -> Result<ExitCode, Failure> {
    let (id, status) = (&proposal.id, proposal.status.name());
    if proposal.status != wanted {
        return Err(Failure::new(format!("the proposal `{id}` is {status}; nothing was changed")).hint(
            "`embody instructions show` prints the instructions, `embody instructions set` changes them",
        ));
    }
    if context.json {
        output::json(&json!({ "id": id, "status": status }))?;
    } else {
        output::plain(&format!("{id} is {status}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The mind of this store. Nobody speaks through it here, so it has no voice.
fn mind(store: &Store) -> Mind {
    let nobody = ContractSource::new(async |_, _| Err("commands have no contract".to_owned()));
    Mind::new(store.clone(), nobody)
}

/// Whoever sits at the terminal with the store's address is its owner.
fn owner(scope: Scope) -> Caller {
    Caller { scope, writer: OPERATOR.to_owned(), trust: Trust::Owner, session: None, trains: false }
}

fn now() -> Moment {
    Moment::new(Timestamp::now(), TimeZone::system())
}

fn refused(error: embody_mind::Error) -> Failure {
    match error {
        embody_mind::Error::Store(error) => error.into(),
        other => Failure::new(&other),
    }
}

/// What the store says of an id that it does not know, for when there is no store.
fn missing(id: &str) -> Failure {
    Failure::new(format!("there is no proposal `{id}`"))
        .hint("`embody instructions proposals` lists them; `--user` and `--agent` say whose")
}

fn as_text(found: &[Proposal]) -> String {
    if found.is_empty() {
        return "No proposal waits.\n".to_owned();
    }
    let mut out = String::new();
    for Proposal { id, change, writer, trust, created_at, .. } in found {
        let (when, writer) = (time::shown(*created_at), printable(writer));
        let _ = writeln!(out, "{DIM}{id}  {when}  by {writer}, trust {}{DIM:#}", printable(trust));
        match &*change.sentence {
            "" => drop(writeln!(out, "  {}", printable(&change.line))),
            said => drop(writeln!(out, "  said: {}", printable(said))),
        }
        for line in printable(&change.diff).lines() {
            let _ = writeln!(out, "  {line}");
        }
    }
    out
}

fn as_json(proposal: &Proposal) -> serde_json::Value {
    let change = &proposal.change;
    json!({
        "id": proposal.id,
        "line": change.line,
        "text": change.text,
        "diff": change.diff,
        "base_version": change.base_version,
        "sentence": change.sentence,
        "writer": proposal.writer,
        "trust": proposal.trust,
        "created_at": time::rfc3339(proposal.created_at),
    })
}
