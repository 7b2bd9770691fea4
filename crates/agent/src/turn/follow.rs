//! Calls that waited for the owner when their turn ended. Once the owner says yes the very same call is made, by us and not
//! by the model's memory of it; what came of it stands in the thread before anything else happens, and the conversation goes
//! on. What waits is known to this process only: after a restart the model has to make the call again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use embody_broker::Called;
use embody_store::{ApprovalStatus, Topic};
use embody_wire::serve::Ending;
use tokio::task::JoinSet;

use super::history::kept;
use super::rounds::result_of;
use super::{Agent, Facts, Inner, TurnError, TurnInput};
use crate::model::{ChatMessage, ToolRequest};

/// Calls that are waited for at the same time.
const WAITING: usize = 1000;
/// How often they are looked at without being told to.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// The calls that wait, by their approval.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<HashMap<String, Held>>);

#[derive(Debug, Clone)]
struct Held {
    input: TurnInput,
    call: ToolRequest,
}

impl Waiting {
    /// This call waits for that approval, if it does; its turn goes on without it.
    pub(super) fn add(&self, called: &Called, input: &TurnInput, call: &ToolRequest) {
        let (Some("pending" | "held"), Some(approval)) = (called.decision.as_deref(), &called.approval)
        else {
            return;
        };
        let mut held = self.lock();
        if held.len() >= WAITING {
            tracing::warn!(
                approval,
                "too many calls wait: this one is not made by itself when it is approved"
            );
            return;
        }
        let input = TurnInput { text: String::new(), facts: Facts::default(), ..input.clone() };
        held.insert(approval.clone(), Held { input, call: call.clone() });
    }

    /// The model makes the same call again by itself: it waits no more.
    pub(super) fn made_again(&self, input: &TurnInput, call: &ToolRequest) {
        let is_same = |held: &Held| {
            let TurnInput { scope, thread, .. } = &held.input;
            (scope, thread) == (&input.scope, &input.thread)
                && (&held.call.name, &held.call.arguments) == (&call.name, &call.arguments)
        };
        self.lock().retain(|_, held| !is_same(held));
    }

    fn all(&self) -> Vec<(String, String)> {
        let name =
            |(approval, held): (&String, &Held)| (approval.clone(), held.input.scope.user().to_owned());
        self.lock().iter().map(name).collect()
    }

    fn take(&self, approval: &str) -> Option<Held> {
        self.lock().remove(approval)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Agent {
    /// Makes calls that were approved after their turn, until the end. `go_on` gets what the conversation goes on with.
    pub async fn follow<F>(&self, mut ending: Ending, go_on: impl Fn(TurnInput) -> F + Send + Sync + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut decisions = self.store().changes(Topic::Approvals);
        let go_on = Arc::new(go_on);
        let mut making = JoinSet::new();
        while !ending.has_begun() {
            tokio::select! {
                () = ending.wait() => break,
                () = tokio::time::sleep(LOOK_AGAIN) => {}
                Some(_) = making.join_next() => continue,
                changed = decisions.changed() => {
                    if changed.is_err() {
                        tokio::time::sleep(LOOK_AGAIN).await;
                    }
                }
            }
            for (held, status) in self.decided().await {
                let (agent, go_on) = (self.clone(), Arc::clone(&go_on));
                making.spawn(async move {
                    if let Some(input) = agent.settle(held, status).await {
                        go_on(input).await;
                    }
                });
            }
        }
        // What was sent must not be dropped before its result is kept.
        while making.join_next().await.is_some() {}
    }

    /// What has been decided since.
    async fn decided(&self) -> Vec<(Held, ApprovalStatus)> {
        let Inner { setup, waiting, .. } = &*self.0;
        let mut decided = Vec::new();
        for (approval, user) in waiting.all() {
            let status = match setup.store.approval(&user, &approval).await {
                Ok(found) => found.map_or(ApprovalStatus::Expired, |found| found.status),
                Err(error) => {
                    tracing::warn!(reason = %error, "approvals cannot be looked at");
                    break;
                }
            };
            if status != ApprovalStatus::Pending
                && let Some(held) = waiting.take(&approval)
            {
                decided.push((held, status));
            }
        }
        decided
    }

    /// What the conversation goes on with, if it does.
    async fn settle(&self, held: Held, status: ApprovalStatus) -> Option<TurnInput> {
        let name = &held.call.name;
        let text = match status {
            ApprovalStatus::Approved => match self.make(&held).await {
                Ok(Some(called)) if called.decision.is_none() => {
                    format!(
                        "[embody: the owner has approved the call of {name} that waited; it was made. Its result stands above.]"
                    )
                }
                Ok(Some(_)) => {
                    format!(
                        "[embody: the owner has approved the call of {name} that waited, but it could not be made. Why stands above.]"
                    )
                }
                // It waits again.
                Ok(None) => return None,
                Err(error) => {
                    tracing::warn!(reason = %error, tool = name, "an approved call was not made");
                    format!(
                        "[embody: the owner has approved the call of {name} that waited, but it could not be made. Make it again.]"
                    )
                }
            },
            ApprovalStatus::Denied => {
                format!(
                    "[embody: the owner has said no to the call of {name} that waited. Do not make it again.]"
                )
            }
            // Somebody has made it, or it is too late.
            ApprovalStatus::Pending | ApprovalStatus::Used | ApprovalStatus::Expired => return None,
        };
        Some(TurnInput { text, ..held.input })
    }

    /// Makes the call while no turn of its thread goes on, and keeps it with its result; nothing if it waits again.
    async fn make(&self, held: &Held) -> Result<Option<Called>, TurnError> {
        let Held { input, call } = held;
        let _alone = self.0.threads.alone(&input.thread).await;
        let ready = self.ready(input).await?;
        let Some(local) = ready.session.local() else { return Err(TurnError::Empty) };
        let called = local.call(&call.name, &call.arguments).await;
        if matches!(called.decision.as_deref(), Some("pending" | "held")) {
            self.0.waiting.add(&called, input, call);
            return Ok(None);
        }
        let id = format!("approved-{}", call.id);
        let call = ToolRequest { id, ..call.clone() };
        let result = result_of(&call, called.text.clone(), called.is_error);
        let said = ChatMessage::Assistant { text: String::new(), calls: vec![call] };
        let messages = [said, result].iter().map(kept).collect();
        self.store().append_messages(input.scope.user(), &input.thread, messages).await?;
        Ok(Some(called))
    }
}
