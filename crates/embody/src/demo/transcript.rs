//! The output of the demo: steps with text, calls and results. Printed as it happens, sent to the console's page, or kept for JSON
//! at the end.

use anstyle::{AnsiColor, Style};
use embody_text::truncate;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use crate::error::CliError;
use crate::output::{self, printable};

const WIDTH: usize = 98;
const INDENT: &str = "   ";
/// Characters of a result in an error.
const RESULT_CHARS: usize = 600;

const HEAD: Style = AnsiColor::Green.on_default().bold();
const SENT: Style = AnsiColor::Cyan.on_default();
const GOT: Style = AnsiColor::Yellow.on_default();
const DIM: Style = Style::new().dimmed();

/// Where the transcript goes while the demo runs.
pub(crate) enum Destination {
    Terminal,
    /// Nowhere: [`Transcript::into_steps`] has all of it.
    Nowhere,
    /// The console's page.
    Page(UnboundedSender<DemoEvent>),
}

pub(crate) enum DemoEvent {
    Step {
        number: usize,
        title: &'static str,
    },
    Line {
        kind: LineKind,
        text: String,
    },
    /// The person must approve or deny what was quoted last.
    Ask,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LineKind {
    /// An explanation.
    Narration,
    /// What the host sends.
    Sent,
    /// What comes back.
    Received,
    Quote,
}

impl LineKind {
    /// What precedes the first line and the others, and the style of that.
    const fn frame(self) -> (&'static str, &'static str, Style) {
        match self {
            Self::Narration => (INDENT, INDENT, Style::new()),
            Self::Sent => ("   → ", "     ", SENT),
            Self::Received => ("   ← ", "     ", GOT),
            Self::Quote => ("     │ ", "     │ ", DIM),
        }
    }
}

#[derive(Serialize)]
pub(crate) struct Step {
    number: usize,
    title: &'static str,
    text: String,
}

pub(crate) struct Transcript {
    destination: Destination,
    steps: Vec<Step>,
}

impl Transcript {
    pub(crate) fn new(destination: Destination) -> Self {
        Self { destination, steps: Vec::new() }
    }

    pub(super) fn step(&mut self, title: &'static str) -> Result<(), CliError> {
        let number = self.steps.len() + 1;
        self.steps.push(Step { number, title, text: String::new() });
        self.send(DemoEvent::Step { number, title });
        self.show(&format!("\n{HEAD}{number}  {title}{HEAD:#}\n"))
    }

    pub(super) fn narrate(&mut self, text: &str) -> Result<(), CliError> {
        self.block(LineKind::Narration, text)
    }

    pub(super) fn sent(&mut self, tool: &str, arguments: &Value) -> Result<(), CliError> {
        self.block(LineKind::Sent, &format!("{tool} {arguments}"))
    }

    pub(super) fn received(&mut self, text: &str) -> Result<(), CliError> {
        self.block(LineKind::Received, text)
    }

    pub(super) fn quote(&mut self, text: &str) -> Result<(), CliError> {
        for line in text.lines() {
            self.block(LineKind::Quote, line)?;
        }
        Ok(())
    }

    pub(crate) fn line(&mut self, text: &str) -> Result<(), CliError> {
        self.record(text);
        self.show(&format!("{text}\n"))
    }

    pub(super) fn prompt(&mut self, text: &str) -> Result<(), CliError> {
        self.record(text);
        self.show(&format!("{INDENT}{HEAD}{text}{HEAD:#}"))
    }

    /// Lets the page ask the person.
    pub(super) fn ask(&self) {
        self.send(DemoEvent::Ask);
    }

    /// Fails with `claim` unless the condition holds.
    pub(super) fn check(&self, is_met: bool, claim: &str, seen: &Value) -> Result<(), CliError> {
        if is_met {
            return Ok(());
        }
        let number = self.steps.len();
        let seen = truncate(&seen.to_string(), RESULT_CHARS);
        Err(CliError::new(format!("step {number} failed: {claim}"))
            .caused_by(&std::io::Error::other(format!("the answer was {seen}")))
            .hint("`embody demo --yes --log debug` says more; a report of this is welcome"))
    }

    pub(crate) fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    fn block(&mut self, kind: LineKind, text: &str) -> Result<(), CliError> {
        let text = printable(text);
        self.send(DemoEvent::Line { kind, text: text.clone().into_owned() });
        let (first, rest, style) = kind.frame();
        let mut out = String::new();
        for (index, line) in wrapped(&text, WIDTH - first.chars().count()).into_iter().enumerate() {
            let lead = if index == 0 { first } else { rest };
            // An empty line has no trailing blank.
            let lead = if line.is_empty() { lead.trim_end() } else { lead };
            self.record(&format!("{lead}{line}"));
            out.push_str(&format!("{style}{lead}{style:#}{line}"));
            out.push('\n');
        }
        self.show(&out)
    }

    fn record(&mut self, line: &str) {
        if let Some(step) = self.steps.last_mut() {
            step.text.push_str(line);
            step.text.push('\n');
        }
    }

    fn show(&self, text: &str) -> Result<(), CliError> {
        match self.destination {
            Destination::Terminal => output::styled(text),
            Destination::Nowhere | Destination::Page(_) => Ok(()),
        }
    }

    /// A page that is gone ends the demo elsewhere.
    fn send(&self, event: DemoEvent) {
        if let Destination::Page(page) = &self.destination {
            let _ = page.send(event);
        }
    }
}

/// Lines of at most `width` characters, broken between words. Keeps the indentation; a longer word stays whole.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    if text.chars().count() <= width {
        return vec![text.to_owned()];
    }
    let lead: String = text.chars().take_while(|c| *c == ' ').collect();
    let mut lines = vec![lead.clone()];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let Some(line) = lines.last_mut() else { break };
        let is_first = line.trim().is_empty();
        if !is_first && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(format!("{lead}{word}"));
            continue;
        }
        if !is_first {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_failed_check_reports_the_result() {
        let mut transcript = Transcript::new(Destination::Nowhere);
        transcript.step("A step").unwrap();
        transcript.narrate("It goes well.").unwrap();
        assert!(transcript.check(true, "it does not", &Value::Null).is_ok());
        let (message, hint) =
            transcript.check(false, "it does not", &json!({"seen": 1})).unwrap_err().summary();
        assert_eq!(message, r#"step 1 failed: it does not: the answer was {"seen":1}"#);
        assert!(hint.contains("--log debug"), "{hint}");
        let steps = serde_json::to_value(transcript.into_steps()).unwrap();
        assert_eq!(steps, json!([{"number": 1, "title": "A step", "text": "   It goes well.\n"}]));
    }

    #[test]
    fn lines_break_between_words_and_keep_their_indentation() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("  one two three", 9), ["  one two", "  three"]);
        assert_eq!(wrapped("unbreakable no", 4), ["unbreakable", "no"]);
        assert_eq!(wrapped("", 4), [""]);
    }
}
