//! Audit records for what a host sends to a running task: cancellation and answers.

use embody_store::audit::{Arguments as Kept, Event, Outcome as Ended, Record, TaskMessage, TaskMessageKind};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::BrokerConfig;
use crate::arguments::canonical;
use crate::session::Session;

pub(crate) struct TaskAudit {
    said: TaskMessageKind,
    answers: Option<Kept>,
}

pub(crate) struct TaskTarget<'a> {
    pub(crate) body: &'a str,
    pub(crate) task: &'a str,
    /// The id and the tool of the call that became the task, if known.
    pub(crate) call: Option<(String, String)>,
}

impl TaskAudit {
    /// Parses the request; `None` if it only queries the task.
    pub(crate) fn read(method: &str, params: Option<&RawValue>) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            #[serde(borrow)]
            input_responses: &'a RawValue,
        }
        match method {
            "tasks/cancel" => Some(Self { said: TaskMessageKind::Cancel, answers: None }),
            "tasks/update" => {
                let given = params.and_then(|params| serde_json::from_str::<Params<'_>>(params.get()).ok());
                let answers = given.map(|Params { input_responses }| {
                    let text = input_responses.get();
                    Kept::of(canonical(text).as_deref().unwrap_or(text))
                });
                Some(Self { said: TaskMessageKind::Update, answers })
            }
            _ => None,
        }
    }

    /// Records the request of this session, and whether the body accepted it.
    pub(crate) async fn record(
        self,
        config: &BrokerConfig,
        session: &Session,
        to: TaskTarget<'_>,
        (outcome, detail): (Ended, Option<String>),
    ) {
        let TaskTarget { body, task, call } = to;
        let (call_id, tool) = call.unzip();
        let (body, task) = (body.to_owned(), task.to_owned());
        let said =
            TaskMessage { call_id, body, tool, task, said: self.said, args: self.answers, outcome, detail };
        let record = Record { actor: session.identity.actor.clone(), event: Event::Task(said) };
        if let Err(error) = config.store.audit().append_deferred(record).await {
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
        assert!(TaskAudit::read("tasks/get", Some(&params)).is_none());
        assert!(TaskAudit::read("tasks/result", Some(&params)).is_none());
        let stop = TaskAudit::read("tasks/cancel", Some(&params)).unwrap();
        assert!(stop.said == TaskMessageKind::Cancel && stop.answers.is_none());
        let told = TaskAudit::read("tasks/update", Some(&params)).unwrap().answers.unwrap();
        assert_eq!(told.excerpt().to_string(), r#"{"a":1,"b":{"token":"[redacted]"}}"#);
        // The order of members does not matter.
        assert_eq!(told, Kept::of(r#"{"a":1,"b":{"token":"secret"}}"#));
        assert!(TaskAudit::read("tasks/update", None).unwrap().answers.is_none());
    }
}
