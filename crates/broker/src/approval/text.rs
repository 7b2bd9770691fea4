//! The text that the owner reads before deciding: complete, or not shown. Every channel shows this text.
//!
//! The first three lines are the headline. Each further line starts with a label of the broker or is indented; text of a
//! model, a body or a mind is made visible and cannot start a line.

use embody_store::approvals::{Approval, AskApproval};

use super::argument;
use super::audience::{self, Named};
use super::headline::{Headline, headline};
use super::overview::Overview;
use crate::visible;

/// In bytes.
pub(crate) const APPROVAL_TEXT_LIMIT: usize = 16 * 1024;

/// The parts of an approval text.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalView<'a> {
    pub user: &'a str,
    pub agent: &'a str,
    pub channel: &'a str,
    pub body: &'a str,
    pub tool: &'a str,
    pub class: &'a str,
    /// The canonical arguments, as JSON text.
    pub args: &'a str,
    /// The arguments that the tool's schema declares; empty if unknown, as for a stored approval. If any exist, the first
    /// lines show only these.
    pub declared: &'a [String],
    pub reason: &'a str,
    pub flags: &'a [String],
}

impl<'a> From<&'a AskApproval> for ApprovalView<'a> {
    fn from(request: &'a AskApproval) -> Self {
        let AskApproval { scope, channel, body, tool, class, args, reason, flags, .. } = request;
        let (user, agent) = (scope.user(), scope.agent());
        Self { user, agent, channel, body, tool, class, args, declared: &[], reason, flags }
    }
}

impl<'a> From<&'a Approval> for ApprovalView<'a> {
    fn from(approval: &'a Approval) -> Self {
        let Approval { user, agent, channel, body, tool, class, args, reason, flags, .. } = approval;
        Self { user, agent, channel, body, tool, class, args, declared: &[], reason, flags }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a person would have to read {bytes} bytes or more to approve this call; only {APPROVAL_TEXT_LIMIT} can be shown whole, and \
     what cannot be shown whole cannot be approved"
)]
pub struct TooLong {
    /// A lower bound.
    pub bytes: usize,
}

/// # Errors
/// When the text is longer than [`APPROVAL_TEXT_LIMIT`].
pub fn approval_text(view: &ApprovalView<'_>) -> Result<String, TooLong> {
    let flagged: usize = view.flags.iter().map(String::len).sum();
    // The visible form is never shorter, so a huge text is rejected before it is built.
    within(view.args.len() + view.reason.len() + flagged)?;
    let overview = Overview::read(view.args, view.declared);
    let named = audience::named(&overview);
    let Headline { what, text, why, is_reason_whole } = headline(view, &overview, &named);
    let mut out = format!("{what}\n{text}\n{why}\n");
    let mut say = |label: &str, text: &str| {
        out.push_str(label);
        out.push_str(": ");
        out.push_str(text);
        out.push('\n');
    };
    if !is_reason_whole {
        say("reason", &visible::line(view.reason));
    }
    say("body", &visible::line(view.body));
    say("tool", &visible::line(view.tool));
    say("class", &explained(view.class));
    if named.is_empty() {
        say("who will see it", unnamed(view.class));
    } else {
        let named: Vec<String> = named.iter().map(Named::shown).collect();
        say("who will see it, by its arguments", &named.join(", "));
    }
    out.push_str("arguments, exactly:\n");
    argument::show_members(view.args, "  ", &mut out);
    out.push('\n');
    if !view.flags.is_empty() {
        out.push_str("flagged:\n");
        view.flags.iter().for_each(|flag| out.push_str(&format!("  - {}\n", visible::line(flag))));
    }
    let [agent, user, channel] = [view.agent, view.user, view.channel].map(visible::line);
    out.push_str(&format!("asked by: agent {agent} of user {user}, channel {channel}"));
    within(out.len())?;
    Ok(out)
}

fn within(bytes: usize) -> Result<(), TooLong> {
    if bytes > APPROVAL_TEXT_LIMIT { Err(TooLong { bytes }) } else { Ok(()) }
}

fn explained(class: &str) -> String {
    let meaning = match class {
        "read" => " (changes nothing)",
        "write" => " (changes something that only the owner sees)",
        "human_visible_write" => " (other people will see it)",
        "destructive" => " (takes something away)",
        _ => "",
    };
    format!("{}{meaning}", visible::line(class))
}

fn unnamed(class: &str) -> &'static str {
    match class {
        "read" | "write" => "only the owner, by its class",
        _ => "the arguments do not say: everyone that this tool reaches",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject<'a>(args: &'a str, flags: &'a [String]) -> ApprovalView<'a> {
        ApprovalView {
            user: "ann",
            agent: "assistant",
            channel: "web",
            body: "mail",
            tool: "send_email",
            class: "human_visible_write",
            args,
            declared: &[],
            reason: "mail leaves the building",
            flags,
        }
    }

    // spec: N-10
    #[test]
    fn a_person_reads_everything_that_counts() {
        let args = r#"{"body":"Hi Bob,\nsee you.\nreason: the owner said yes","to":"bob@example.com"}"#;
        let flags = ["first time to bob@example.com".to_owned(), "a\nreason: none".to_owned()];
        insta::assert_snapshot!(approval_text(&subject(args, &flags)).unwrap());
    }

    #[test]
    fn what_is_missing_leaves_no_trace_but_who_will_see_it_is_always_said() {
        let bare = ApprovalView { reason: "", ..subject("{}", &[]) };
        insta::assert_snapshot!(approval_text(&bare).unwrap());
        let own = ApprovalView { class: "write", ..bare };
        assert!(approval_text(&own).unwrap().contains("who will see it: only the owner, by its class\n"));
    }

    #[test]
    fn nothing_starts_a_line_of_its_own() {
        let forged = "x\ntool: whoami\r\nbody: none\u{2028}class: read\u{85}reason: fine";
        let args = serde_json::json!({ forged: forged, "to": forged, "list": [forged] }).to_string();
        let flags = [forged.to_owned()];
        let all = ApprovalView {
            user: forged,
            agent: forged,
            channel: forged,
            body: forged,
            tool: forged,
            class: forged,
            reason: forged,
            ..subject(&args, &flags)
        };
        let text = approval_text(&all).unwrap();
        let labels =
            ["body: ", "tool: ", "class: ", "asked by: ", "arguments, ", "flagged:", "Asked because: "];
        for label in labels {
            assert_eq!(text.lines().filter(|line| line.starts_with(label)).count(), 1, "{label}\n{text}");
            let posing = text.lines().filter(|line| line.trim_start().starts_with(label));
            assert_eq!(posing.count(), 1, "{label}\n{text}");
        }
        assert!(text.lines().nth(2).is_some_and(|line| line.starts_with("Asked because: ")), "{text}");
    }

    #[test]
    fn a_reason_that_is_too_long_for_its_line_is_shown_whole_below() {
        let reason = "x".repeat(200);
        let long = ApprovalView { reason: &reason, ..subject("{}", &[]) };
        assert!(approval_text(&long).unwrap().contains(&format!("\nreason: {reason}\n")));
        assert!(!approval_text(&subject("{}", &[])).unwrap().contains("\nreason: "));
    }

    #[test]
    fn whole_or_not_at_all() {
        let args = |length: usize| format!(r#"{{"text":"{}"}}"#, "a".repeat(length));
        // Long enough for the first lines to reach their maximum.
        let rest = approval_text(&subject(&args(10_000), &[])).unwrap().len() - 10_000;
        let full = approval_text(&subject(&args(APPROVAL_TEXT_LIMIT - rest), &[])).unwrap();
        assert_eq!(full.len(), APPROVAL_TEXT_LIMIT);
        assert_eq!(
            approval_text(&subject(&args(APPROVAL_TEXT_LIMIT - rest + 1), &[])),
            Err(TooLong { bytes: APPROVAL_TEXT_LIMIT + 1 })
        );
        // Short as JSON, but long when shown.
        let hidden = format!(r#"{{"text":"{}"}}"#, "\u{200b}".repeat(2000));
        assert!(approval_text(&subject(&hidden, &[])).is_err());
        assert!(
            approval_text(&subject(&args(1024 * 1024), &[]))
                .unwrap_err()
                .to_string()
                .contains("cannot be approved")
        );
    }
}
