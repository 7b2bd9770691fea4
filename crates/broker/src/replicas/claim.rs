//! Resumes a suspended call for a returning host. The process that holds the call continues it; if that process is gone, this
//! one restarts the call if nothing irreversible was sent, and otherwise reports an unknown outcome.

use std::time::Duration;

use embody_store::Principal;
use embody_store::suspended_calls::NewSuspendedCall;
use embody_wire::server::{Claim, Host, ResumeResult, code, failure};
use embody_wire::{Outcome, Request};
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::Replicas;
use super::messages::ReplicaMessage;
use crate::session::lock;

/// How long a call waits for its host.
const SUSPENDED_LIFETIME: Duration = Duration::from_secs(900);
/// How long the holder may take to claim the call.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(4);
/// How long the holder may be silent while it works.
const PROGRESS_TIMEOUT: Duration = Duration::from_secs(15);
const REPLY_QUEUE: usize = 16;

impl Replicas {
    pub(crate) async fn suspend(
        &self,
        user: &str,
        ticket: &str,
        resume_data: Option<&RawValue>,
    ) -> Result<(), Outcome> {
        let call = NewSuspendedCall {
            user: user.to_owned(),
            ticket: ticket.to_owned(),
            holder: self.replica_id.clone(),
            resume_data: resume_data.map(|data| data.get().to_owned()),
            lasts: SUSPENDED_LIFETIME,
        };
        self.store.suspended_calls().insert(call).await.map_err(|error| unavailable(&error))
    }

    /// Finds the call that waits under this ticket.
    pub(crate) async fn claim(
        &self,
        host: &Host<Principal>,
        request: &Request,
        ticket: &str,
    ) -> Result<Claim, Outcome> {
        let user = host.principal.user();
        let answered = self.store.suspended_calls().answer(user, ticket, &self.replica_id).await;
        let suspended = answered.map_err(|error| unavailable(&error))?.ok_or_else(used)?;
        if suspended.holder == self.replica_id {
            return Ok(Claim::Here);
        }
        if self.is_shared
            && let Some(reply) = self.ask_holder(&suspended.holder, user, ticket, request).await?
        {
            return Ok(Claim::Elsewhere(reply));
        }
        // A SQLite file has one HTTP process: the previous holder is gone.
        if !self.is_shared && !self.take(user, ticket).await? {
            return Err(used());
        }
        suspended
            .resume_data
            .and_then(|data| RawValue::from_string(data).ok())
            .map(Claim::Restart)
            .ok_or_else(unknown)
    }

    async fn take(&self, user: &str, ticket: &str) -> Result<bool, Outcome> {
        self.store.suspended_calls().claim(user, ticket).await.map_err(|error| unavailable(&error))
    }

    /// Asks the holder to continue the call; `None` if it does not claim it and no longer can.
    async fn ask_holder(
        &self,
        holder: &str,
        user: &str,
        ticket: &str,
        request: &Request,
    ) -> Result<Option<ResumeResult>, Outcome> {
        let (sender, mut replies) = mpsc::channel(REPLY_QUEUE);
        lock(&self.waiting).insert(ticket.to_owned(), sender);
        let _waiting = WaiterGuard(self, ticket);
        let answers = ReplicaMessage::Resume {
            ticket: ticket.to_owned(),
            user: user.to_owned(),
            request: request.print(),
        };
        if !self.send(Some(holder), &answers).await {
            let message = "the answers cannot be passed to the process that waits for them";
            return Err(failure(code::INTERNAL_ERROR, message));
        }
        let mut limit = CLAIM_TIMEOUT;
        loop {
            match timeout(limit, replies.recv()).await {
                Ok(Some(ReplicaMessage::Claimed { .. } | ReplicaMessage::Working { .. })) => {}
                Ok(Some(ReplicaMessage::Expired { .. })) => return Err(used()),
                Ok(Some(reply)) => return reply.into_reply().map(Some).ok_or_else(unknown),
                Ok(None) => return Err(unknown()),
                // Only one of the two processes may continue it.
                Err(_)
                    if limit == CLAIM_TIMEOUT && self.take(user, ticket).await.map_err(|_| unknown())? =>
                {
                    return Ok(None);
                }
                Err(_) if limit == CLAIM_TIMEOUT => {}
                Err(_) => return Err(unknown()),
            }
            limit = PROGRESS_TIMEOUT;
        }
    }
}

struct WaiterGuard<'a>(&'a Replicas, &'a str);

impl Drop for WaiterGuard<'_> {
    fn drop(&mut self) {
        lock(&self.0.waiting).remove(self.1);
    }
}

fn used() -> Outcome {
    let message = "unknown `requestState`: it was used or has expired; make the call again without it";
    failure(code::INVALID_PARAMS, message)
}

fn unknown() -> Outcome {
    let message = "the process that made this call has ended, so its outcome is unknown; check whether it took effect before you make it again";
    failure(code::INTERNAL_ERROR, message)
}

fn unavailable(error: &embody_store::Error) -> Outcome {
    tracing::error!(reason = %error, "a call that waits for its host cannot be stored");
    failure(code::INTERNAL_ERROR, "the call cannot wait for its host: the store does not answer")
}
