//! Approvals in the console. The owner decides about all users' calls that the rules leave to the console; a token decides
//! about those of its user.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use embody_broker::approval::bound_channels;
use embody_broker::policy::Via;
use embody_store::approvals::{
    Answer, Approval, ApprovalFilter, ApprovalStatus, DecideApproval, DecideOutcome,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::WebState;
use super::auth::{self, ApiCaller};
use super::error::ApiError;
use crate::approvals::{self, ApprovalJson, check_approvable, check_decision};
use crate::error::CliError;

const LIMIT: u32 = 100;
/// How many approvals of all users are searched: the maximum of ten users.
const ALL_USERS_LIMIT: u32 = 1000;

#[derive(Deserialize)]
pub(super) struct ListQuery {
    #[serde(default)]
    all: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DecideRequest {
    id: String,
    decision: Decision,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Decision {
    Approve,
    Deny,
    /// Takes a denial back.
    #[serde(rename = "ask_again")]
    AskAgain,
}

/// The pending approvals, newest first; with `?all=true` also the decided ones. Apart from them, those whose denial stands.
pub(super) async fn list(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
    Query(query): Query<ListQuery>,
) -> Result<Json<Value>, ApiError> {
    let filter = if query.all { ApprovalFilter::All } else { ApprovalFilter::Pending };
    let found = visible_approvals(&web, &caller, filter).await?;
    let denied = visible_approvals(&web, &caller, ApprovalFilter::Denied).await?;
    let config = &web.prompts.settings().config;
    let list = |found: &[Approval]| -> Vec<Value> {
        found.iter().map(|approval| json!(ApprovalJson::new(approval, config))).collect()
    };
    Ok(Json(json!({ "approvals": list(&found), "denied": list(&denied) })))
}

/// The approvals that a caller may see, newest first. The owner sees all of their own, and of other users those that are pending
/// or whose denial stands.
async fn visible_approvals(
    web: &WebState,
    caller: &ApiCaller,
    filter: ApprovalFilter,
) -> Result<Vec<Approval>, ApiError> {
    let user = caller.require_operator()?;
    let mut found = web.store.approvals().list(user, filter, LIMIT).await?;
    if caller.is_owner {
        let of_others = match filter {
            ApprovalFilter::Denied => ApprovalFilter::Denied,
            ApprovalFilter::Pending | ApprovalFilter::All => ApprovalFilter::Pending,
        };
        let all = web.store.approvals().list_all(of_others, ALL_USERS_LIMIT).await?;
        let others =
            all.into_iter().filter(|approval| approval.user != user && console_may_approve(approval));
        found.extend(others.take(usize::try_from(LIMIT).unwrap_or(usize::MAX)));
        found.sort_by(|one, other| other.id.cmp(&one.id));
    }
    Ok(found)
}

/// The approval with this id, if this caller may decide about it.
async fn find(web: &WebState, caller: &ApiCaller, id: &str) -> Result<Option<Approval>, ApiError> {
    let user = caller.require_operator()?;
    let own = web.store.approvals().get(user, id).await?;
    if own.is_some() || !caller.is_owner {
        return Ok(own);
    }
    Ok(web.store.approvals().find(id).await?.filter(console_may_approve))
}

/// Whether the rules let the console approve it; others are not shown here.
fn console_may_approve(approval: &Approval) -> bool {
    bound_channels(&approval.policy).contains(&Via::Console)
}

pub(super) async fn decide(
    State(web): State<Arc<WebState>>,
    caller: ApiCaller,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    caller.require_operator()?;
    let DecideRequest { id, decision } = auth::json(request).await?;
    let not_found = || api_error(StatusCode::NOT_FOUND)(approvals::not_found(&id));
    let approval = find(&web, &caller, &id).await?.ok_or_else(not_found)?;
    let config = &web.prompts.settings().config;
    let answer = match decision {
        Decision::Approve => Answer::Approve,
        Decision::Deny => Answer::Deny,
        Decision::AskAgain => {
            let Approval { user, id, .. } = &approval;
            let ended = web.store.approvals().ask_again(user, id, Via::Console.name()).await?;
            let ended =
                ended.ok_or_else(|| api_error(StatusCode::CONFLICT)(approvals::not_denied(&approval)))?;
            return Ok(Json(json!(ApprovalJson::new(&ended, config))));
        }
    };
    if approval.status == ApprovalStatus::Pending && answer == Answer::Approve {
        check_approvable(&approval, config, Via::Console).map_err(api_error(StatusCode::FORBIDDEN))?;
    }
    let by = Via::Console.name().to_owned();
    let decision = DecideApproval { user: approval.user, id: approval.id, answer, by };
    match web.store.approvals().decide(decision).await? {
        DecideOutcome::Decided(approval) | DecideOutcome::NotPending(approval) => {
            check_decision(&approval, answer).map_err(api_error(StatusCode::CONFLICT))?;
            Ok(Json(json!(ApprovalJson::new(&approval, config))))
        }
        DecideOutcome::Missing => Err(not_found()),
    }
}

fn api_error(status: StatusCode) -> impl Fn(CliError) -> ApiError {
    move |failure| ApiError::from_cli_error(status, &failure)
}
