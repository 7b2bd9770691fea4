//! Calls that were waiting for approval when their turn ended. After the approval exactly that call is made, without asking the
//! model; its result is stored in the thread, and then the conversation continues. The process that claims a call from the
//! store makes it; if it dies before sending, the call is not made and the approval expires unused.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use embody_broker::ToolOutcome;
use embody_prompt::Audience;
use embody_store::approvals::ApprovalStatus;
use embody_store::{CallAwaitingApproval, Store, Topic};
use embody_wire::server::CancellationToken;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use super::history::{CallDecision, to_stored, to_stored_with};
use super::tool_loop::result_of;
use super::{Agent, PromptRequest, TurnBody, TurnError, TurnInput};
use crate::model::{ChatMessage, ToolRequest};

const BATCH: u32 = 100;
const POLL_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
struct DeferredCall {
    input: TurnInput,
    call: ToolRequest,
}

/// What is stored with a call.
#[derive(Serialize, Deserialize)]
struct Content {
    channel: String,
    audience: String,
    background: bool,
    task: Option<String>,
    #[serde(default)]
    schedule: Option<String>,
    call_id: String,
}

impl DeferredCall {
    fn to_stored(&self, approval: &str) -> CallAwaitingApproval {
        let TurnInput { prompt, thread, .. } = &self.input;
        let PromptRequest { scope, audience, background, task, schedule, .. } = prompt;
        let content = Content {
            channel: self.input.channel().to_owned(),
            audience: audience.name().to_owned(),
            background: *background,
            task: task.clone(),
            schedule: schedule.clone(),
            call_id: self.call.id.clone(),
        };
        CallAwaitingApproval {
            scope: scope.clone(),
            approval: approval.to_owned(),
            thread: thread.clone(),
            tool: self.call.name.clone(),
            arguments: self.call.arguments.clone(),
            content: serde_json::to_string(&content).unwrap_or_default(),
        }
    }

    /// `None` if another version wrote it.
    fn parse(deferred: CallAwaitingApproval) -> Option<Self> {
        let CallAwaitingApproval { scope, thread, tool, arguments, content, .. } = deferred;
        let Content { channel, audience, background, task, schedule, call_id } =
            serde_json::from_str(&content).ok()?;
        let prompt = PromptRequest {
            channel: Some(channel),
            audience: Audience::from_name(&audience)?,
            background,
            task,
            schedule,
            ..PromptRequest::new(scope)
        };
        let input = TurnInput { prompt, thread, body: TurnBody::Message(String::new()) };
        Some(Self { input, call: ToolRequest { id: call_id, name: tool, arguments } })
    }
}

/// Stores a call that waits for an approval; its turn continues without it.
pub(super) async fn defer_if_pending(
    store: &Store,
    outcome: &ToolOutcome,
    input: &TurnInput,
    call: &ToolRequest,
) {
    let (Some("pending" | "held"), Some(approval)) = (outcome.decision.as_deref(), &outcome.approval) else {
        return;
    };
    let deferred = DeferredCall { input: input.clone(), call: call.clone() };
    if let Err(error) = store.calls_awaiting_approval().insert(deferred.to_stored(approval)).await {
        tracing::warn!(approval, reason = %error, "a call that waits for approval is not tracked; it is not made when approved");
    }
}

/// Drops the stored calls that the model now repeats itself.
pub(super) async fn drop_repeated(store: &Store, input: &TurnInput, calls: &[ToolRequest]) {
    let user = input.scope().user();
    let found = async {
        for deferred in store.calls_awaiting_approval().list_in_thread(user, &input.thread).await? {
            let is_same =
                |call: &ToolRequest| (&call.name, &call.arguments) == (&deferred.tool, &deferred.arguments);
            if calls.iter().any(is_same) {
                store.calls_awaiting_approval().claim(user, &deferred.approval).await?;
            }
        }
        Ok::<_, embody_store::Error>(())
    };
    if let Err(error) = found.await {
        tracing::warn!(reason = %error, "calls that wait for approval cannot be read");
    }
}

/// The calls that a task in this process handles.
type InFlight = Arc<Mutex<HashSet<(String, String)>>>;

/// Marks a call as handled until it is dropped.
struct CallGuard {
    in_flight: InFlight,
    key: (String, String),
}

impl CallGuard {
    /// `None` if another task already handles it.
    fn new(in_flight: &InFlight, deferred: &CallAwaitingApproval) -> Option<Self> {
        let key = (deferred.scope.user().to_owned(), deferred.approval.clone());
        let is_new = in_flight.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        is_new.then(|| Self { in_flight: Arc::clone(in_flight), key })
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

impl Agent {
    /// Makes calls that were approved after their turn, until shutdown. `resume` receives the input that continues the
    /// conversation.
    pub async fn run_deferred_calls<F>(
        &self,
        ending: CancellationToken,
        resume: impl Fn(TurnInput) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut decisions = self.store().changes(Topic::Approvals);
        let (resume, in_flight) = (Arc::new(resume), InFlight::default());
        let mut running = JoinSet::new();
        while !ending.is_cancelled() {
            tokio::select! {
                () = ending.cancelled() => break,
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                Some(_) = running.join_next() => continue,
                changed = decisions.changed() => {
                    if changed.is_err() {
                        tokio::time::sleep(POLL_INTERVAL).await;
                    }
                }
            }
            let decided =
                self.store().calls_awaiting_approval().list_decided(BATCH).await.unwrap_or_else(|error| {
                    tracing::warn!(reason = %error, "calls that wait for approval cannot be read");
                    Vec::new()
                });
            for deferred in decided {
                let Some(guard) = CallGuard::new(&in_flight, &deferred) else { continue };
                let (agent, resume) = (self.clone(), Arc::clone(&resume));
                running.spawn(async move {
                    let settled = agent.settle(deferred).await;
                    drop(guard);
                    match settled {
                        Ok(Some(input)) => resume(input).await,
                        Ok(None) => {}
                        Err(error) => {
                            tracing::warn!(reason = %error, "a call that waits for approval cannot be read")
                        }
                    }
                });
            }
        }
        // A call that was sent must not be dropped before its result is stored.
        while running.join_next().await.is_some() {}
    }

    /// The input that continues the conversation, if any.
    async fn settle(&self, stored: CallAwaitingApproval) -> Result<Option<TurnInput>, embody_store::Error> {
        let (user, approval) = (stored.scope.user().to_owned(), stored.approval.clone());
        let found = self.store().approvals().get(&user, &approval).await?;
        let status = found.map_or(ApprovalStatus::Expired, |found| found.status);
        let Some(deferred) = DeferredCall::parse(stored) else {
            tracing::warn!(approval, "an approved call cannot be parsed; it is not made");
            self.store().calls_awaiting_approval().claim(&user, &approval).await?;
            return Ok(None);
        };
        let name = &deferred.call.name;
        let text = match status {
            ApprovalStatus::Approved => match self.execute(&deferred, &approval).await {
                Ok(Some(outcome)) if outcome.decision.is_none() => {
                    format!(
                        "[embody: the owner approved the waiting call of {name}, and it was made. Its result is above.]"
                    )
                }
                Ok(Some(_)) => {
                    format!(
                        "[embody: the owner approved the waiting call of {name}, but it could not be made. The reason is above.]"
                    )
                }
                // The call waits again, or another process makes it.
                Ok(None) => return Ok(None),
                Err(error) => {
                    tracing::warn!(reason = %error, tool = name, "an approved call was not made");
                    // If it was already claimed it may have been made, so the model must not be asked to repeat it.
                    if !self.store().calls_awaiting_approval().claim(&user, &approval).await? {
                        return Ok(None);
                    }
                    format!(
                        "[embody: the owner approved the waiting call of {name}, but it could not be made. Make it again.]"
                    )
                }
            },
            ApprovalStatus::Denied => {
                if !self.store().calls_awaiting_approval().claim(&user, &approval).await? {
                    return Ok(None);
                }
                format!(
                    "[embody: the owner denied the waiting call of {name}. Do not make it again unless they ask for it.]"
                )
            }
            ApprovalStatus::Pending => return Ok(None),
            // The call was made elsewhere, or the approval has expired.
            ApprovalStatus::Used | ApprovalStatus::Expired => {
                self.store().calls_awaiting_approval().claim(&user, &approval).await?;
                return Ok(None);
            }
        };
        Ok(Some(TurnInput { body: TurnBody::Message(text), ..deferred.input }))
    }

    /// Makes the call while no turn of its thread runs, and stores it with its result; `None` if it waits again or
    /// another process has claimed it.
    async fn execute(
        &self,
        deferred: &DeferredCall,
        approval: &str,
    ) -> Result<Option<ToolOutcome>, TurnError> {
        let DeferredCall { input, call } = deferred;
        let _lock = self.0.thread_locks.lock(&input.thread).await;
        let prepared = self.prepare(self.settings().model.as_ref(), input, &mut |_| {}).await?;
        let Some(local) = prepared.session.client() else { return Err(TurnError::Empty) };
        // As late as possible: nothing is awaited between this and the record of the call.
        if !self.store().calls_awaiting_approval().claim(input.scope().user(), approval).await? {
            return Ok(None);
        }
        let outcome = local.call(&call.name, &call.arguments).await;
        if matches!(outcome.decision.as_deref(), Some("pending" | "held")) {
            defer_if_pending(self.store(), &outcome, input, call).await;
            return Ok(None);
        }
        let id = format!("approved-{}", call.id);
        let call = ToolRequest { id, ..call.clone() };
        let result = result_of(&call, outcome.text.clone(), outcome.is_error);
        let request = ChatMessage::Assistant { text: String::new(), calls: vec![call] };
        let decision =
            CallDecision { decision: outcome.decision.clone(), approval: outcome.approval.clone() };
        let messages = vec![to_stored(&request), to_stored_with(&result, &decision)];
        self.store().threads().append(input.scope().user(), &input.thread, messages).await?;
        Ok(Some(outcome))
    }
}
