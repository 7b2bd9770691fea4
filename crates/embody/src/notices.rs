//! A notice to a user as programs and people see it, with what wrote it.

use embody_store::notices::{Notice, NoticeOrigin};
use serde::Serialize;

use crate::time::rfc3339;

#[derive(Debug, Serialize)]
pub(crate) struct NoticeJson<'a> {
    id: &'a str,
    at: String,
    text: &'a str,
    urgency: &'a str,
    read_at: Option<String>,
    origin: OriginJson<'a>,
}

#[derive(Debug, Serialize)]
struct OriginJson<'a> {
    agent: &'a str,
    channel: &'a str,
    schedule: Option<&'a str>,
    thread: Option<&'a str>,
    title: Option<&'a str>,
    /// The same in words.
    text: String,
}

impl<'a> NoticeJson<'a> {
    pub(crate) fn new(notice: &'a Notice) -> Self {
        let NoticeOrigin { channel, thread, schedule } = &notice.origin;
        Self {
            id: &notice.id,
            at: rfc3339(notice.created_at),
            text: &notice.text,
            urgency: &notice.urgency,
            read_at: notice.read_at.map(rfc3339),
            origin: OriginJson {
                agent: &notice.agent,
                channel,
                schedule: schedule.as_deref(),
                thread: thread.as_deref(),
                title: notice.title.as_deref(),
                text: origin_text(notice),
            },
        }
    }
}

/// What wrote it, such as `assistant, scheduled run “Write the digest.”`.
pub(crate) fn origin_text(notice: &Notice) -> String {
    let NoticeOrigin { channel, thread, schedule } = &notice.origin;
    let writer = match (schedule, thread, channel.as_str()) {
        (Some(_), _, _) => "scheduled run".to_owned(),
        (None, Some(_), channel) => format!("conversation on {channel}"),
        (None, None, "budget") => return "embody, budget".to_owned(),
        (None, None, "") => return notice.agent.clone(),
        (None, None, "mcp") => "MCP host".to_owned(),
        (None, None, channel) => channel.to_owned(),
    };
    let title = notice.title.as_ref().map(|title| format!(" “{title}”")).unwrap_or_default();
    format!("{}, {writer}{title}", notice.agent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_reads_what_wrote_a_notice() {
        let of = |channel: &str, thread: bool, schedule: bool| {
            let id = |is: bool| is.then(|| "019a".to_owned());
            origin_text(&Notice {
                id: "1".into(),
                agent: "assistant".into(),
                text: "tea".into(),
                urgency: "low".into(),
                origin: NoticeOrigin { channel: channel.into(), thread: id(thread), schedule: id(schedule) },
                title: thread.then(|| "Tea".to_owned()),
                created_at: 0,
                read_at: None,
            })
        };
        assert_eq!(of("scheduled", true, true), "assistant, scheduled run “Tea”");
        assert_eq!(of("web", true, false), "assistant, conversation on web “Tea”");
        assert_eq!(of("mcp", false, false), "assistant, MCP host");
        assert_eq!(of("budget", false, false), "embody, budget");
        assert_eq!(of("", false, false), "assistant");
    }
}
