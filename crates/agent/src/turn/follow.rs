//! Calls that waited for the owner when their turn ended. Once the owner says yes the very same call is made, by us and not
//! by the model's memory of it, and the conversation goes on with what came of it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use embody_broker::Principal;
use embody_store::{ApprovalStatus, Topic};
use embody_wire::serve::Ending;

use super::{Agent, Facts, Inner, TurnInput};
use crate::model::ToolRequest;

/// Calls that are waited for at the same time.
const WAITING: usize = 1000;
/// How often they are looked at without being told to.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// What of a result goes into the conversation, in characters.
const SHOWN: usize = 4000;

/// The calls that wait, by their approval.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<HashMap<String, Held>>);

#[derive(Debug, Clone)]
struct Held {
    input: TurnInput,
    call: ToolRequest,
}

impl Waiting {
    /// This call waits for that approval; its turn goes on without it.
    pub(super) fn add(&self, approval: &str, input: &TurnInput, call: &ToolRequest) {
        let mut held = self.lock();
        if held.len() < WAITING {
            let input = TurnInput { text: String::new(), facts: Facts::default(), ..input.clone() };
            held.insert(approval.to_owned(), Held { input, call: call.clone() });
        }
    }

    fn all(&self) -> Vec<(String, Held)> {
        self.lock().iter().map(|(approval, held)| (approval.clone(), held.clone())).collect()
    }

    fn take(&self, approval: &str) -> bool {
        self.lock().remove(approval).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Agent {
    /// Makes calls that were approved after their turn, until the end. `go_on` gets what the conversation goes on with.
    pub async fn follow(&self, mut ending: Ending, go_on: impl Fn(TurnInput)) {
        let mut decisions = self.store().changes(Topic::Approvals);
        loop {
            tokio::select! {
                () = ending.wait() => return,
                () = tokio::time::sleep(LOOK_AGAIN) => {}
                changed = decisions.changed() => {
                    if changed.is_err() {
                        tokio::time::sleep(LOOK_AGAIN).await;
                    }
                }
            }
            for input in self.decided().await {
                go_on(input);
            }
        }
    }

    /// What goes on now.
    async fn decided(&self) -> Vec<TurnInput> {
        let Inner { setup, waiting, .. } = &*self.0;
        let mut goes_on = Vec::new();
        for (approval, held) in waiting.all() {
            let status = match setup.store.approval(held.input.scope.user(), &approval).await {
                Ok(found) => found.map(|found| found.status),
                Err(error) => {
                    tracing::warn!(reason = %error, "approvals cannot be looked at");
                    return goes_on;
                }
            };
            if status == Some(ApprovalStatus::Pending) || !waiting.take(&approval) {
                continue;
            }
            match status {
                Some(ApprovalStatus::Approved) => goes_on.push(self.make(held).await),
                Some(ApprovalStatus::Denied) => {
                    goes_on.push(go_on(&held, "The owner has said no to it. Do not try it again."));
                }
                // The model has made it again by itself, or it is too late.
                _ => {}
            }
        }
        goes_on
    }

    async fn make(&self, held: Held) -> TurnInput {
        let Inner { setup, sessions, .. } = &*self.0;
        let TurnInput { scope, channel, thread, .. } = &held.input;
        let principal = Principal::new(scope.user(), scope.agent(), channel);
        let called = match sessions.of(&setup.broker, principal, thread).await {
            Ok(session) => match session.local() {
                Some(local) => Some(local.call(&held.call.name, &held.call.arguments).await),
                None => None,
            },
            Err(_) => None,
        };
        match called {
            Some(called) => {
                let text: String = called.text.chars().take(SHOWN).collect();
                let how = if called.is_error { "It was made now and failed" } else { "It was made now" };
                go_on(&held, &format!("The owner has approved it. {how}; its result is data:\n{text}"))
            }
            None => go_on(&held, "The owner has approved it. Make exactly the same call again now."),
        }
    }
}

fn go_on(held: &Held, what: &str) -> TurnInput {
    let ToolRequest { name, arguments, .. } = &held.call;
    let arguments: String = arguments.chars().take(SHOWN).collect();
    let text = format!("[About the call of {name} that waited, with {arguments}] {what}");
    TurnInput { text, ..held.input.clone() }
}
