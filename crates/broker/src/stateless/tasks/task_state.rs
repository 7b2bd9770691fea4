//! A task's state as its server reports it, translated for the host: with the host's id, and with permitted requests only.

use embody_wire::message::may_contain;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::Members;
use crate::server_requests::{Requester, host_requests};
use crate::stateless::era_meta::{member, scrub_result};

#[derive(Debug)]
pub(super) struct TaskState<'a> {
    members: Vec<(String, &'a RawValue)>,
    pub(super) task: String,
}

impl<'a> TaskState<'a> {
    /// Parses the state; `None` if it is not about a task, or if two parsers could read it differently.
    pub(super) fn read(result: &'a RawValue) -> Option<Self> {
        if !may_contain(result, "taskId") {
            return None;
        }
        let Members(members) = serde_json::from_str(result.get()).ok()?;
        let mut names: Vec<&str> = members.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair.first() == pair.last()) {
            return None;
        }
        let task = members.iter().find(|(name, _)| name == "taskId")?;
        let task = serde_json::from_str(task.1.get()).ok()?;
        Some(Self { members, task })
    }

    fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.members.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    /// Whether a call continues as this task.
    pub(super) fn is_new(&self) -> bool {
        self.text("resultType").as_deref() == Some("task")
    }

    /// How long the server keeps the task, in milliseconds, if it reports that.
    pub(super) fn ttl_ms(&self) -> Option<u64> {
        serde_json::from_str(self.get("ttlMs")?.get()).ok()
    }

    /// The server's poll interval, in milliseconds, if it reports one.
    pub(super) fn poll_ms(&self) -> Option<u64> {
        serde_json::from_str(self.get("pollIntervalMs")?.get()).ok()
    }

    pub(super) fn message(&self) -> Option<String> {
        self.text("statusMessage")
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.text("status").as_deref(), Some("completed" | "failed" | "cancelled"))
    }

    /// How the task ended, if it has.
    pub(super) fn end(&self) -> Option<TaskEnd<'a>> {
        match self.text("status").as_deref() {
            Some("completed") => Some(TaskEnd::Completed(self.get("result")?)),
            Some("failed") => Some(TaskEnd::Failed(self.get("error")?)),
            Some("cancelled") => Some(TaskEnd::Cancelled),
            _ => None,
        }
    }

    pub(super) fn for_host(&self, id: &str, asker: &Requester) -> Option<Box<RawValue>> {
        let requests = self.get("inputRequests").map(|requests| host_requests(asker, requests));
        let (requests, refused) = requests.unzip();
        let refused = refused.unwrap_or_default();
        let mut written = Vec::with_capacity(self.members.len() + 1);
        for (name, value) in &self.members {
            match (&**name, &requests) {
                ("taskId", _) => written.push(member(name, &Value::from(id).to_string())),
                ("inputRequests", Some(requests)) => written.push(member(name, requests)),
                ("result", _) => {
                    let scrub_result = scrub_result(value);
                    written.push(member(name, scrub_result.as_deref().unwrap_or(value).get()));
                }
                ("statusMessage", _) if !refused.is_empty() => {}
                _ => written.push(member(name, value.get())),
            }
        }
        if !refused.is_empty() {
            let by = &asker.upstream.spec().name;
            let message = format!("`{by}` asks for input that it may not have: {}", refused.join("; "));
            written.push(member("statusMessage", &Value::from(message).to_string()));
        }
        RawValue::from_string(format!("{{{}}}", written.join(","))).ok()
    }
}

#[derive(Debug)]
pub(super) enum TaskEnd<'a> {
    Completed(&'a RawValue),
    Failed(&'a RawValue),
    Cancelled,
}

/// The parameters with this id in place of the host's; no other value changes.
pub(super) fn params_for(params: Option<&RawValue>, task: &str) -> Option<Box<RawValue>> {
    let params = crate::params::only(params?, &["taskId", "inputResponses"])?;
    let Members(members) = serde_json::from_str(params.get()).ok()?;
    let written = members.iter().map(|(name, value)| match &**name {
        "taskId" => member(name, &Value::from(task).to_string()),
        _ => member(name, value.get()),
    });
    RawValue::from_string(format!("{{{}}}", written.collect::<Vec<_>>().join(","))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn only_what_everybody_reads_alike_is_about_a_task() {
        let state = raw(r#"{"resultType":"task","taskId":"t","status":"working","ttlMs":5}"#);
        let state = TaskState::read(&state).unwrap();
        assert!(state.is_new() && state.end().is_none());
        assert_eq!((state.task.as_str(), state.ttl_ms()), ("t", Some(5)));
        for text in [
            "{}",
            r#"["taskId"]"#,
            r#"{"taskId":7}"#,
            r#"{"taskId":"a","taskId":"b"}"#,
            r#"{"taskId":"a","inputRequests":{},"input\u0052equests":{}}"#,
        ] {
            assert!(TaskState::read(&raw(text)).is_none(), "{text}");
        }
    }

    #[test]
    fn an_end_is_what_came_of_it() {
        let end = |text: &str| TaskState::read(&raw(text)).unwrap().end().map(|end| format!("{end:?}"));
        assert!(end(r#"{"taskId":"t","status":"completed","result":{"x":1.0}}"#).unwrap().contains("1.0"));
        assert!(end(r#"{"taskId":"t","status":"failed","error":{"code":1}}"#).is_some());
        assert!(end(r#"{"taskId":"t","status":"cancelled"}"#).is_some());
        assert!(end(r#"{"taskId":"t","status":"input_required"}"#).is_none());
        let is_over = |text: &str| TaskState::read(&raw(text)).unwrap().is_over();
        assert!(
            is_over(r#"{"taskId":"t","status":"completed"}"#),
            "although it does not say what came of it"
        );
        assert!(!is_over(r#"{"taskId":"t","status":"working"}"#));
    }

    #[test]
    fn only_the_id_of_parameters_changes() {
        let params = raw(r#"{ "taskId":"theirs", "inputResponses":{"a":{"x":1.0}},"_meta":{"y":[ ]}}"#);
        assert_eq!(
            params_for(Some(&params), "ours").unwrap().get(),
            r#"{"taskId":"ours","inputResponses":{"a":{"x":1.0}}}"#
        );
    }
}
