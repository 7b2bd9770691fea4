//! The output of the demo: steps with text, calls and results. Printed as it happens, or as JSON at the end.

use anstyle::{AnsiColor, Style};
use embody_text::truncate;
use serde::Serialize;
use serde_json::Value;

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

#[derive(Serialize)]
pub(super) struct Step {
    number: usize,
    title: &'static str,
    text: String,
}

pub(super) struct Transcript {
    is_quiet: bool,
    steps: Vec<Step>,
}

impl Transcript {
    /// Prints for a person, or only records if `is_quiet`.
    pub(super) fn new(is_quiet: bool) -> Self {
        Self { is_quiet, steps: Vec::new() }
    }

    pub(super) fn step(&mut self, title: &'static str) -> Result<(), CliError> {
        let number = self.steps.len() + 1;
        self.steps.push(Step { number, title, text: String::new() });
        self.show(&format!("\n{HEAD}{number}  {title}{HEAD:#}\n"))
    }

    pub(super) fn narrate(&mut self, text: &str) -> Result<(), CliError> {
        self.block(text, INDENT, INDENT, None)
    }

    pub(super) fn sent(&mut self, tool: &str, arguments: &Value) -> Result<(), CliError> {
        self.block(&format!("{tool} {arguments}"), "   → ", "     ", Some(SENT))
    }

    pub(super) fn received(&mut self, text: &str) -> Result<(), CliError> {
        self.block(text, "   ← ", "     ", Some(GOT))
    }

    pub(super) fn quote(&mut self, text: &str) -> Result<(), CliError> {
        for line in text.lines() {
            self.block(line, "     │ ", "     │ ", Some(DIM))?;
        }
        Ok(())
    }

    pub(super) fn line(&mut self, text: &str) -> Result<(), CliError> {
        self.record(text);
        self.show(&format!("{text}\n"))
    }

    pub(super) fn prompt(&mut self, text: &str) -> Result<(), CliError> {
        self.record(text);
        self.show(&format!("{INDENT}{HEAD}{text}{HEAD:#}"))
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

    pub(super) fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    fn block(&mut self, text: &str, first: &str, rest: &str, mark: Option<Style>) -> Result<(), CliError> {
        let text = printable(text);
        let style = mark.unwrap_or_default();
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
        if self.is_quiet { Ok(()) } else { output::styled(text) }
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
        let mut transcript = Transcript::new(true);
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
