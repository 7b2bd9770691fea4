//! Calls that wait for a person, and that person's word, by the console. Whoever runs this house decides about
//! everybody's calls that the rules leave to the console; any token about those of its user.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use embody_broker::approval::bound_ways;
use embody_broker::policy::Via;
use embody_store::{Answer, Approval, ApprovalFilter, ApprovalStatus, DecideApproval, Decided};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Web;
use super::access::{self, Visitor};
use super::refusal::Refused;
use crate::approvals::{Shown, may_be_approved, missing, verdict};
use crate::failure::Failure;

/// The most that are shown.
const MOST: u32 = 100;
/// How many of everybody's are looked through: of ten users as many as one may have.
const EVERYBODYS: u32 = 1000;

#[derive(Deserialize)]
pub(super) struct Wanted {
    #[serde(default)]
    all: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Word {
    id: String,
    decision: Decision,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Decision {
    Approve,
    Deny,
}

/// Those that wait, the newest first; with `?all=true` also those that are settled.
pub(super) async fn list(
    State(web): State<Arc<Web>>,
    visitor: Visitor,
    Query(wanted): Query<Wanted>,
) -> Result<Json<Value>, Refused> {
    let filter = if wanted.all { ApprovalFilter::All } else { ApprovalFilter::Pending };
    let found = theirs(&web, &visitor, filter).await?;
    Ok(Json(json!({ "approvals": found.iter().map(Shown::of).collect::<Vec<_>>() })))
}

/// What a visitor may see, the newest first. Of other users' calls the owner sees those that wait, beside all of their own.
async fn theirs(web: &Web, visitor: &Visitor, filter: ApprovalFilter) -> Result<Vec<Approval>, Refused> {
    let user = visitor.operates()?;
    let mut found = web.store.approvals(user, filter, MOST).await?;
    if visitor.is_owner {
        let everybodys = web.store.all_approvals(ApprovalFilter::Pending, EVERYBODYS).await?;
        let others = everybodys.into_iter().filter(|asked| asked.user != user && is_left_to_us(asked));
        found.extend(others.take(usize::try_from(MOST).unwrap_or(usize::MAX)));
        found.sort_by(|one, other| other.id.cmp(&one.id));
    }
    Ok(found)
}

/// The one of this id, if this visitor may decide about it.
async fn find(web: &Web, visitor: &Visitor, id: &str) -> Result<Option<Approval>, Refused> {
    let user = visitor.operates()?;
    let own = web.store.approval(user, id).await?;
    if own.is_some() || !visitor.is_owner {
        return Ok(own);
    }
    Ok(web.store.anyones_approval(id).await?.filter(is_left_to_us))
}

/// Whether the rules let the console approve it: what nobody here can approve is nobody's business here.
fn is_left_to_us(asked: &Approval) -> bool {
    bound_ways(&asked.policy).contains(&Via::Console)
}

/// Decides one.
pub(super) async fn decide(
    State(web): State<Arc<Web>>,
    visitor: Visitor,
    request: Request,
) -> Result<Json<Value>, Refused> {
    visitor.operates()?;
    let Word { id, decision } = access::json(request).await?;
    let answer = match decision {
        Decision::Approve => Answer::Approve,
        Decision::Deny => Answer::Deny,
    };
    let nobody_knows = || refused(StatusCode::NOT_FOUND)(missing(&id));
    let asked = find(&web, &visitor, &id).await?.ok_or_else(nobody_knows)?;
    if asked.status == ApprovalStatus::Pending && answer == Answer::Approve {
        may_be_approved(&asked, &web.voice.context().config, Via::Console)
            .map_err(refused(StatusCode::FORBIDDEN))?;
    }
    let by = Via::Console.name().to_owned();
    let word = DecideApproval { user: asked.user, id: asked.id, answer, by };
    match web.store.decide_approval(word).await? {
        Decided::Decided(approval) | Decided::NotPending(approval) => {
            verdict(&approval, answer).map_err(refused(StatusCode::CONFLICT))?;
            Ok(Json(json!(Shown::of(&approval))))
        }
        Decided::Missing => Err(nobody_knows()),
    }
}

fn refused(status: StatusCode) -> impl Fn(Failure) -> Refused {
    move |failure| Refused::from_failure(status, &failure)
}
