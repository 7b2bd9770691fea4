//! One turn of the web channel: starts the agent with the message of a request, and sends its events to the page.

use std::sync::{Arc, Mutex, PoisonError};

use embody_agent::model::ChatMessage;
use embody_agent::turn::{Facts, TurnError, TurnEvent, TurnInput, TurnResult};
use embody_agent::web_turns::{Busy, Done, End, EventSender, NewTurn, Turn};
use embody_prompt::Audience;
use embody_store::threads::{NewMessage, Thread};
use embody_store::{Scope, Store};

use super::WebState;
use crate::app;

pub(crate) const WEB: &str = "web";

pub(super) struct UserMessage {
    pub(super) text: String,
    pub(super) task: Option<String>,
    pub(super) facts: Facts,
}

/// The end of a turn without a model; a new one needs a restart.
pub(super) fn no_model(web: &WebState, scope: &Scope) -> End {
    // Only the owner sees details of the configuration.
    let is_owner = scope.user() == web.scope.user();
    if let Some(unnamed) = app::missing_model_name(&web.prompts.context().config).filter(|_| is_owner) {
        let (message, hint) = unnamed.summary();
        return End::Failed { message, hint: Some(format!("{hint}, and start `embody up` again")) };
    }
    let error = TurnError::NoModel;
    let hint = error.hint().map(|hint| match hint.split_once(":\n") {
        Some((first, lines)) => format!("{first} and start `embody up` again:\n{lines}"),
        None => hint,
    });
    End::Failed { message: error.to_string(), hint }
}

impl WebState {
    pub(super) fn has_model(&self) -> bool {
        self.agent.has_model()
    }

    pub(super) fn input(&self, scope: Scope, thread: &Thread, question: UserMessage) -> TurnInput {
        let UserMessage { text, task, facts } = question;
        let is_owner = scope.user() == self.scope.user();
        TurnInput {
            scope,
            channel: WEB.to_owned(),
            thread: thread.id.clone(),
            text,
            facts,
            audience: if is_owner { Audience::Owner } else { Audience::User },
            background: false,
            task,
        }
    }

    /// Starts a turn, which continues without readers.
    pub(super) fn start_turn(
        &self,
        thread: &Thread,
        salt: &str,
        input: TurnInput,
    ) -> Result<Arc<Turn>, Busy> {
        let id = format!("{}.{}.{salt}", thread.id, thread.messages + 1);
        let new = NewTurn { id, user: input.scope.user().to_owned(), thread: thread.id.clone() };
        let (agent, store, at) =
            (self.agent.clone(), self.store.clone(), (new.user.clone(), new.thread.clone()));
        let partial_reply = Arc::<PartialReply>::default();
        let reply = Arc::clone(&partial_reply);
        let work = |events: EventSender| async move {
            let mut on = |event| {
                reply.record(&event);
                events.send(event);
            };
            match agent.run_turn(input, &mut on).await {
                Ok(TurnResult { reply, is_cut, usage, receipt, .. }) => {
                    End::Done(Done { reply, is_cut, usage: Some(usage), receipt: Some(receipt) })
                }
                Err(error) => failed(&error),
            }
        };
        let close = async move |end: End| {
            if end == End::Cancelled {
                partial_reply.save(&store, &at).await;
            }
            end
        };
        self.turns.begin(new, work, close)
    }

    /// Resumes a thread after a waiting call was decided, as soon as no other turn runs in it.
    pub(crate) async fn resume_thread(&self, input: TurnInput) {
        loop {
            let thread = match self.store.threads().get(input.scope.user(), &input.thread).await {
                Ok(Some(thread)) => thread,
                Ok(None) => return,
                Err(error) => return tracing::error!(reason = %error, "a conversation cannot be resumed"),
            };
            let Ok(salt) = salt() else { return };
            match self.start_turn(&thread, &salt, input.clone()) {
                Err(Busy::Thread { turn }) => {
                    let Some(turn) = self.turns.find(input.scope.user(), &turn) else { continue };
                    let mut reader = turn.read(u64::MAX);
                    while reader.next().await.is_some() {}
                }
                Err(Busy::User { .. } | Busy::All) => tokio::time::sleep(RETRY_DELAY).await,
                Ok(_) | Err(Busy::Ending) => return,
            }
        }
    }
}

/// The end of a stored reply that was cancelled.
pub(super) const STOPPED: &str = "[stopped]";

/// The text of the running reply. The thread stores it only when it is complete or cancelled.
#[derive(Default)]
struct PartialReply(Mutex<String>);

impl PartialReply {
    fn record(&self, event: &TurnEvent) {
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            TurnEvent::Text(more) => text.push_str(more),
            TurnEvent::Tool { .. } => text.clear(),
            TurnEvent::ToolDone { .. } | TurnEvent::Waiting { .. } => {}
        }
    }

    async fn save(&self, store: &Store, (user, thread): &(String, String)) {
        let text = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if text.trim().is_empty() {
            return;
        }
        let said =
            ChatMessage::Assistant { text: format!("{} {STOPPED}", text.trim_end()), calls: Vec::new() };
        let content = serde_json::to_string(&said).unwrap_or_default();
        let message = NewMessage { role: "assistant".to_owned(), content };
        if let Err(error) = store.threads().append(user, thread, vec![message]).await {
            tracing::warn!(reason = %error, "the partial reply of a cancelled turn is not stored");
        }
    }
}

/// The delay before another attempt when too many turns run.
const RETRY_DELAY: std::time::Duration = std::time::Duration::from_secs(2);

/// Distinguishes turns that start at the same message, when the first one failed.
pub(super) fn salt() -> Result<String, &'static str> {
    let mut bytes = [0u8; 4];
    getrandom::fill(&mut bytes).map_err(|_| "the system gives no random bytes")?;
    Ok(format!("{:08x}", u32::from_le_bytes(bytes)))
}

fn failed(error: &TurnError) -> End {
    if let Some(source) = std::error::Error::source(error) {
        tracing::warn!(reason = %source, "a turn failed: {error}");
    }
    End::Failed { message: error.to_string(), hint: error.hint() }
}
