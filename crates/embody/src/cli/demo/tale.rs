//! What the demo tells: steps with a title, sentences, what was sent and what came back. For people as it happens, for
//! programs as one object at the end. A claim is checked before it is told.

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::output::{self, printable};
use crate::time::clipped;

/// The width that everything fits in.
const WIDTH: usize = 98;
const INDENT: &str = "   ";
/// How much of a result a failure shows.
const SHOWN: usize = 600;

const HEAD: Style = AnsiColor::Green.on_default().bold();
const SENT: Style = AnsiColor::Cyan.on_default();
const GOT: Style = AnsiColor::Yellow.on_default();
const DIM: Style = Style::new().dimmed();

/// One step as programs get it.
#[derive(Serialize)]
pub(super) struct Step {
    number: usize,
    title: &'static str,
    text: String,
}

/// The tale so far.
pub(super) struct Tale {
    is_quiet: bool,
    steps: Vec<Step>,
}

impl Tale {
    /// A tale for a person, or one that is only kept.
    pub(super) fn new(is_quiet: bool) -> Self {
        Self { is_quiet, steps: Vec::new() }
    }

    /// Begins a step.
    pub(super) fn step(&mut self, title: &'static str) -> Result<(), Failure> {
        let number = self.steps.len() + 1;
        self.steps.push(Step { number, title, text: String::new() });
        self.show(&format!("\n{HEAD}{number}  {title}{HEAD:#}\n"))
    }

    /// Sentences.
    pub(super) fn say(&mut self, text: &str) -> Result<(), Failure> {
        self.block(text, INDENT, INDENT, None)
    }

    /// What the host sent.
    pub(super) fn sent(&mut self, tool: &str, arguments: &Value) -> Result<(), Failure> {
        self.block(&format!("{tool} {arguments}"), "   → ", "     ", Some(SENT))
    }

    /// What came back.
    pub(super) fn got(&mut self, text: &str) -> Result<(), Failure> {
        self.block(text, "   ← ", "     ", Some(GOT))
    }

    /// A text of somebody else's, line by line.
    pub(super) fn quote(&mut self, text: &str) -> Result<(), Failure> {
        for line in text.lines() {
            self.block(line, "     │ ", "     │ ", Some(DIM))?;
        }
        Ok(())
    }

    /// A line as it is.
    pub(super) fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.keep(text, "\n");
        self.show(&format!("{text}\n"))
    }

    /// A question that waits for an answer on its line.
    pub(super) fn prompt(&mut self, text: &str) -> Result<(), Failure> {
        self.keep(text, "\n");
        self.show(&format!("{INDENT}{HEAD}{text}{HEAD:#}"))
    }

    /// Goes on only if the claim is so.
    pub(super) fn sure(&self, is_so: bool, claim: &str, seen: &Value) -> Result<(), Failure> {
        if is_so {
            return Ok(());
        }
        let number = self.steps.len();
        let seen = clipped(&seen.to_string(), SHOWN);
        Err(Failure::new(format!("step {number} did not come out as told: {claim}"))
            .because(&std::io::Error::other(format!("the answer was {seen}")))
            .hint("`embody demo --yes --log debug` says more; a report of this is welcome"))
    }

    /// What programs get.
    pub(super) fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    fn block(&mut self, text: &str, first: &str, rest: &str, mark: Option<Style>) -> Result<(), Failure> {
        let text = printable(text);
        let style = mark.unwrap_or_default();
        let mut out = String::new();
        for (index, line) in wrapped(&text, WIDTH - first.chars().count()).into_iter().enumerate() {
            let lead = if index == 0 { first } else { rest };
            // An empty line has no blank at its end.
            let lead = if line.is_empty() { lead.trim_end() } else { lead };
            self.keep(&format!("{lead}{line}"), "\n");
            out.push_str(&format!("{style}{lead}{style:#}{line}"));
            out.push('\n');
        }
        self.show(&out)
    }

    fn keep(&mut self, text: &str, end: &str) {
        if let Some(step) = self.steps.last_mut() {
            step.text.push_str(text);
            step.text.push_str(end);
        }
    }

    fn show(&self, text: &str) -> Result<(), Failure> {
        if self.is_quiet { Ok(()) } else { output::styled(text) }
    }
}

/// Lines of at most so many characters, broken between words. What leads a line stays; a longer word stays whole.
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
    fn what_is_not_so_ends_the_tale_with_what_was_seen() {
        let mut tale = Tale::new(true);
        tale.step("A step").unwrap();
        tale.say("It goes well.").unwrap();
        assert!(tale.sure(true, "it does not", &Value::Null).is_ok());
        let (message, hint) = tale.sure(false, "it does not", &json!({"seen": 1})).unwrap_err().in_short();
        assert_eq!(message, r#"step 1 did not come out as told: it does not: the answer was {"seen":1}"#);
        assert!(hint.contains("--log debug"), "{hint}");
        let steps = serde_json::to_value(tale.into_steps()).unwrap();
        assert_eq!(steps, json!([{"number": 1, "title": "A step", "text": "   It goes well.\n"}]));
    }

    #[test]
    fn lines_break_between_words_and_keep_their_place() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("  one two three", 9), ["  one two", "  three"]);
        assert_eq!(wrapped("unbreakable no", 4), ["unbreakable", "no"]);
        assert_eq!(wrapped("", 4), [""]);
    }
}
