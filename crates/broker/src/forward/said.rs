//! What hosts say to tasks that run, on record: that one is to stop, and the answers to what it asks.

use embody_store::{Arguments as Kept, Event, Outcome as Ended, Record, TaskWord, ToTask};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::BrokerConfig;
use crate::arguments::canonical;
use crate::session::Session;

/// What a host says to a task.
pub(crate) struct Saying {
    said: TaskWord,
    answers: Option<Kept>,
}

/// The task that it is said to.
pub(crate) struct SaidTo<'a> {
    pub(crate) body: &'a str,
    /// What the body calls it.
    pub(crate) task: &'a str,
    /// The id of the call that it was, and the tool, where that is known.
    pub(crate) call: Option<(String, String)>,
}

impl Saying {
    /// Reads it; nothing, if it only asks how the task is.
    pub(crate) fn read(method: &str, params: Option<&RawValue>) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Given<'a> {
            #[serde(borrow)]
            input_responses: &'a RawValue,
        }
        match method {
            "tasks/cancel" => Some(Self { said: TaskWord::Cancel, answers: None }),
            "tasks/update" => {
                let given = params.and_then(|params| serde_json::from_str::<Given<'_>>(params.get()).ok());
                let answers = given.map(|Given { input_responses }| {
                    let text = input_responses.get();
                    Kept::of(canonical(text).as_deref().unwrap_or(text))
                });
                Some(Self { said: TaskWord::Update, answers })
            }
            _ => None,
        }
    }

    /// Puts on record that this session has said it, and whether the body has taken it.
    pub(crate) async fn record(
        self,
        config: &BrokerConfig,
        session: &Session,
        to: SaidTo<'_>,
        (outcome, detail): (Ended, Option<String>),
    ) {
        let SaidTo { body, task, call } = to;
        let (call_id, tool) = call.unzip();
        let (body, task) = (body.to_owned(), task.to_owned());
        let said = ToTask { call_id, body, tool, task, said: self.said, args: self.answers, outcome, detail };
        let record = Record { actor: session.who.actor.clone(), event: Event::Task(said) };
        if let Err(error) = config.store.audit_soon(record).await {
            config.meter.unrecorded.add(1);
            tracing::error!(session = session.id, reason = %error, "what was said to a task is not on record");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_asks_is_not_said() {
        let params = RawValue::from_string(
            r#"{"taskId":"t","inputResponses":{"b":{"token":"secret"},"a":1}}"#.to_owned(),
        )
        .unwrap();
        assert!(Saying::read("tasks/get", Some(&params)).is_none());
        assert!(Saying::read("tasks/result", Some(&params)).is_none());
        let stop = Saying::read("tasks/cancel", Some(&params)).unwrap();
        assert!(stop.said == TaskWord::Cancel && stop.answers.is_none());
        let told = Saying::read("tasks/update", Some(&params)).unwrap().answers.unwrap();
        assert_eq!(told.excerpt().to_string(), r#"{"a":1,"b":{"token":"[redacted]"}}"#);
        // The order in which they are written is not part of what they say.
        assert_eq!(told, Kept::of(r#"{"a":1,"b":{"token":"secret"}}"#));
        assert!(Saying::read("tasks/update", None).unwrap().answers.is_none());
    }
}
