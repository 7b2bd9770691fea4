//! What a person reads before deciding: whole, or not at all. Every way of asking shows these words.
//!
//! The first three lines are the headline. Each line after them starts with a label of ours or is indented; what came from a
//! model, a body or a mind is made visible and cannot start a line of its own.

use embody_store::Approval;

use super::argument;
use super::audience::{self, Named};
use super::headline::{Headline, headline};
use super::overview::Overview;
use crate::visible;

/// The most bytes that a person is asked to read.
pub const WORDS_LIMIT: usize = 16 * 1024;

/// What is decided about.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Whose call it is.
    pub user: &'a str,
    /// The agent that calls.
    pub agent: &'a str,
    /// The channel that it calls from.
    pub channel: &'a str,
    /// The body that is called.
    pub body: &'a str,
    /// The tool of that body.
    pub tool: &'a str,
    /// The name of the call's class.
    pub class: &'a str,
    /// The canonical arguments, as JSON text.
    pub args: &'a str,
    /// The arguments that the tool's schema declares; empty if that is not known, as for a stored approval. The first lines
    /// show no others while there is one of these.
    pub declared: &'a [String],
    /// Why a person is asked.
    pub reason: &'a str,
    /// What the mind flagged.
    pub flags: &'a [String],
}

impl<'a> From<&'a Approval> for Subject<'a> {
    fn from(approval: &'a Approval) -> Self {
        let Approval { user, agent, channel, body, tool, class, args, reason, flags, .. } = approval;
        Self { user, agent, channel, body, tool, class, args, declared: &[], reason, flags }
    }
}

/// Why nobody can be asked about a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a person would have to read {bytes} bytes or more to approve this call; only {WORDS_LIMIT} can be shown whole, and \
     what cannot be shown whole cannot be approved"
)]
pub struct Unshowable {
    /// How much there would be to read, at least.
    pub bytes: usize,
}

/// The words.
///
/// # Errors
/// When they are longer than a person is asked to read.
pub fn words(subject: &Subject<'_>) -> Result<String, Unshowable> {
    let flagged: usize = subject.flags.iter().map(String::len).sum();
    // Made visible a text never gets shorter, so that a huge one need not be made visible first.
    within(subject.args.len() + subject.reason.len() + flagged)?;
    let overview = Overview::read(subject.args, subject.declared);
    let named = audience::named(&overview);
    let Headline { what, text, why, is_reason_whole } = headline(subject, &overview, &named);
    let mut out = format!("{what}\n{text}\n{why}\n");
    let mut say = |label: &str, text: &str| {
        out.push_str(label);
        out.push_str(": ");
        out.push_str(text);
        out.push('\n');
    };
    if !is_reason_whole {
        say("reason", &visible::line(subject.reason));
    }
    say("body", &visible::line(subject.body));
    say("tool", &visible::line(subject.tool));
    say("class", &explained(subject.class));
    if named.is_empty() {
        say("who will see it", unnamed(subject.class));
    } else {
        let named: Vec<String> = named.iter().map(Named::shown).collect();
        say("who will see it, by its arguments", &named.join(", "));
    }
    out.push_str("arguments, exactly:\n");
    argument::show_members(subject.args, "  ", &mut out);
    out.push('\n');
    if !subject.flags.is_empty() {
        out.push_str("flagged:\n");
        subject.flags.iter().for_each(|flag| out.push_str(&format!("  - {}\n", visible::line(flag))));
    }
    let [agent, user, channel] = [subject.agent, subject.user, subject.channel].map(visible::line);
    out.push_str(&format!("asked by: agent {agent} of user {user}, channel {channel}"));
    within(out.len())?;
    Ok(out)
}

fn within(bytes: usize) -> Result<(), Unshowable> {
    if bytes > WORDS_LIMIT { Err(Unshowable { bytes }) } else { Ok(()) }
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

    fn subject<'a>(args: &'a str, flags: &'a [String]) -> Subject<'a> {
        Subject {
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
        insta::assert_snapshot!(words(&subject(args, &flags)).unwrap());
    }

    #[test]
    fn what_is_missing_leaves_no_trace_but_who_will_see_it_is_always_said() {
        let bare = Subject { reason: "", ..subject("{}", &[]) };
        insta::assert_snapshot!(words(&bare).unwrap());
        let own = Subject { class: "write", ..bare };
        assert!(words(&own).unwrap().contains("who will see it: only the owner, by its class\n"));
    }

    #[test]
    fn nothing_starts_a_line_of_its_own() {
        let forged = "x\ntool: whoami\r\nbody: none\u{2028}class: read\u{85}reason: fine";
        let args = serde_json::json!({ forged: forged, "to": forged, "list": [forged] }).to_string();
        let flags = [forged.to_owned()];
        let all = Subject {
            user: forged,
            agent: forged,
            channel: forged,
            body: forged,
            tool: forged,
            class: forged,
            reason: forged,
            ..subject(&args, &flags)
        };
        let text = words(&all).unwrap();
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
        let long = Subject { reason: &reason, ..subject("{}", &[]) };
        assert!(words(&long).unwrap().contains(&format!("\nreason: {reason}\n")));
        assert!(!words(&subject("{}", &[])).unwrap().contains("\nreason: "));
    }

    #[test]
    fn whole_or_not_at_all() {
        let args = |length: usize| format!(r#"{{"text":"{}"}}"#, "a".repeat(length));
        // Long enough for the first lines to be as long as they get.
        let rest = words(&subject(&args(10_000), &[])).unwrap().len() - 10_000;
        let full = words(&subject(&args(WORDS_LIMIT - rest), &[])).unwrap();
        assert_eq!(full.len(), WORDS_LIMIT);
        assert_eq!(
            words(&subject(&args(WORDS_LIMIT - rest + 1), &[])),
            Err(Unshowable { bytes: WORDS_LIMIT + 1 })
        );
        // Short as JSON, long to read.
        let hidden = format!(r#"{{"text":"{}"}}"#, "\u{200b}".repeat(2000));
        assert!(words(&subject(&hidden, &[])).is_err());
        assert!(
            words(&subject(&args(1024 * 1024), &[])).unwrap_err().to_string().contains("cannot be approved")
        );
    }
}
