//! One turn of the web channel: what a request says becomes what an agent hears, and what happens becomes what a page hears.

use std::sync::{Arc, Mutex, PoisonError};

use embody_agent::model::ChatMessage;
use embody_agent::turn::{Facts, TurnError, TurnEvent, TurnInput, Turned};
use embody_agent::web::{Busy, Done, End, Event, NewTurn, Turn, Voice};
use embody_prompt::Audience;
use embody_store::{NewMessage, Scope, Store, Thread};

use super::Web;
use crate::house;

/// The channel.
pub(crate) const WEB: &str = "web";

/// What somebody says.
pub(super) struct Question {
    pub(super) text: String,
    pub(super) task: Option<String>,
    pub(super) facts: Facts,
}

/// Nobody answers, until there is a model and this process has begun anew.
pub(super) fn no_model(web: &Web, scope: &Scope) -> End {
    // What stands where in the configuration is the owner's business.
    let is_owner = scope.user() == web.scope.user();
    if let Some(unnamed) = house::unnamed_model(&web.voice.context().config).filter(|_| is_owner) {
        let (message, hint) = unnamed.in_short();
        return End::Failed { message, hint: Some(format!("{hint}, and start `embody up` again")) };
    }
    let error = TurnError::NoModel;
    let hint = error.hint().map(|hint| match hint.split_once(":\n") {
        Some((first, lines)) => format!("{first} and start `embody up` again:\n{lines}"),
        None => hint,
    });
    End::Failed { message: error.to_string(), hint }
}

impl Web {
    pub(super) fn has_model(&self) -> bool {
        self.agent.has_model()
    }

    /// What somebody says in this thread, as the agent takes it.
    pub(super) fn input(&self, scope: Scope, thread: &Thread, question: Question) -> TurnInput {
        let Question { text, task, facts } = question;
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

    /// Begins a turn in this thread, which goes on whether anybody listens or not.
    pub(super) fn begin(&self, thread: &Thread, salt: &str, input: TurnInput) -> Result<Arc<Turn>, Busy> {
        let id = format!("{}.{}.{salt}", thread.id, thread.messages + 1);
        let new = NewTurn { id, user: input.scope.user().to_owned(), thread: thread.id.clone() };
        let (agent, store, at) =
            (self.agent.clone(), self.store.clone(), (new.user.clone(), new.thread.clone()));
        let words = Arc::<Words>::default();
        let heard = Arc::clone(&words);
        let work = |voice: Voice| async move {
            let mut on = |event| {
                heard.hear(&event);
                say(&voice, event);
            };
            match agent.turn(input, &mut on).await {
                Ok(Turned { reply, is_cut, usage, receipt, .. }) => {
                    End::Done(Done { reply, is_cut, usage: Some(usage), receipt: Some(receipt) })
                }
                Err(error) => failed(&error),
            }
        };
        let close = async move |end: End| {
            if end == End::Cancelled {
                words.keep(&store, &at).await;
            }
            end
        };
        self.turns.begin(new, work, close)
    }

    /// A conversation goes on by itself, as soon as nothing else goes on in it: a call that waited was decided.
    pub(crate) async fn go_on(&self, input: TurnInput) {
        loop {
            let thread = match self.store.thread(input.scope.user(), &input.thread).await {
                Ok(Some(thread)) => thread,
                Ok(None) => return,
                Err(error) => return tracing::error!(reason = %error, "a conversation cannot go on"),
            };
            let Ok(salt) = salt() else { return };
            match self.begin(&thread, &salt, input.clone()) {
                Err(Busy::Thread { turn }) => {
                    let Some(turn) = self.turns.find(input.scope.user(), &turn) else { continue };
                    let mut reader = turn.read(u64::MAX);
                    while reader.next().await.is_some() {}
                }
                Err(Busy::User { .. } | Busy::All) => tokio::time::sleep(AGAIN).await,
                Ok(_) | Err(Busy::Ending) => return,
            }
        }
    }
}

/// What a reply ends with that was broken off, for whoever reads it later.
pub(super) const STOPPED: &str = "[stopped]";

/// What the agent is saying: the thread gets it only when it is whole, or when it is broken off.
#[derive(Default)]
struct Words(Mutex<String>);

impl Words {
    fn hear(&self, event: &TurnEvent) {
        let mut words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            TurnEvent::Text(text) => words.push_str(text),
            TurnEvent::Tool { .. } => words.clear(),
            TurnEvent::ToolDone { .. } | TurnEvent::Waiting { .. } => {}
        }
    }

    async fn keep(&self, store: &Store, (user, thread): &(String, String)) {
        let words = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if words.trim().is_empty() {
            return;
        }
        let said =
            ChatMessage::Assistant { text: format!("{} {STOPPED}", words.trim_end()), calls: Vec::new() };
        let content = serde_json::to_string(&said).unwrap_or_default();
        let message = NewMessage { role: "assistant".to_owned(), content };
        if let Err(error) = store.append_messages(user, thread, vec![message]).await {
            tracing::warn!(reason = %error, "what was said before a turn was broken off is not kept");
        }
    }
}

/// When to try again where there is no room.
const AGAIN: std::time::Duration = std::time::Duration::from_secs(2);

/// Two turns may begin at the same message, when the first came to nothing.
pub(super) fn salt() -> Result<String, &'static str> {
    let mut bytes = [0u8; 4];
    getrandom::fill(&mut bytes).map_err(|_| "the system gives no random bytes")?;
    Ok(format!("{:08x}", u32::from_le_bytes(bytes)))
}

fn say(voice: &Voice, event: TurnEvent) {
    voice.say(match event {
        TurnEvent::Text(text) => Event::Text(text),
        TurnEvent::Tool { id, name } => Event::Tool { id, name },
        TurnEvent::ToolDone { id, name, is_error, decision, approval } => {
            Event::ToolDone { id, name, is_error, decision, approval }
        }
        TurnEvent::Waiting { after, reason } => {
            Event::Waiting { after_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX), reason }
        }
    });
}

/// In words for whoever waits; the log has the rest.
fn failed(error: &TurnError) -> End {
    if let Some(source) = std::error::Error::source(error) {
        tracing::warn!(reason = %source, "a turn failed: {error}");
    }
    End::Failed { message: error.to_string(), hint: error.hint() }
}
