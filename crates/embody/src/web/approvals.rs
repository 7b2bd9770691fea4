//! Calls that wait for a person, and that person's word, by the console.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use embody_broker::policy::Via;
use embody_store::{Answer, ApprovalFilter, ApprovalStatus, DecideApproval, Decided};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Web;
use super::access::{self, Visitor};
use super::refusal::Refused;
use crate::approvals::{Shown, may_be_approved, missing, verdict};
use crate::failure::Failure;

/// The most that are shown.
const MOST: u32 = 100;

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
    let user = visitor.operates()?;
    let filter = if wanted.all { ApprovalFilter::All } else { ApprovalFilter::Pending };
    let found = web.store.approvals(user, filter, MOST).await?;
    Ok(Json(json!({ "approvals": found.iter().map(Shown::of).collect::<Vec<_>>() })))
}

/// Decides one.
pub(super) async fn decide(
    State(web): State<Arc<Web>>,
    visitor: Visitor,
    request: Request,
) -> Result<Json<Value>, Refused> {
    let user = visitor.operates()?;
    let Word { id, decision } = access::json(request).await?;
    let answer = match decision {
        Decision::Approve => Answer::Approve,
        Decision::Deny => Answer::Deny,
    };
    let nobody_knows = || refused(StatusCode::NOT_FOUND)(missing(&id));
    let asked = web.store.approval(user, &id).await?.ok_or_else(nobody_knows)?;
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
