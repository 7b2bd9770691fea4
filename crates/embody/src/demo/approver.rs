//! Who answers the host's approval: the person at the terminal, the script with `--yes`, or the person at the console's page.

use std::io::stdin;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use super::transcript::Transcript;
use crate::error::{CliError, ErrorContext};

/// A missing answer after this time counts as a denial.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);
const MAX_ANSWER_BYTES: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    No,
}

pub(crate) enum Approver {
    Terminal,
    /// `--yes`.
    Script,
    /// The answers that the page sends.
    Page(UnboundedReceiver<Answer>),
}

impl Approver {
    pub(super) async fn ask(
        &mut self,
        transcript: &mut Transcript,
        question: &str,
    ) -> Result<Answer, CliError> {
        transcript.quote(question)?;
        match self {
            Self::Script => {
                transcript.narrate("You passed `--yes`, so the script approves for you.")?;
                Ok(Answer::Yes)
            }
            Self::Terminal => {
                transcript.narrate("You are the owner. The demo continues with either answer.")?;
                ask_on_terminal(transcript).await
            }
            Self::Page(answers) => {
                transcript.narrate("You are the owner. The tour continues with either answer.")?;
                // A button that was pressed before the question was shown is no answer to it.
                while answers.try_recv().is_ok() {}
                transcript.ask();
                answers.recv().await.ok_or_else(|| CliError::new("the page was closed"))
            }
        }
    }
}

async fn ask_on_terminal(transcript: &mut Transcript) -> Result<Answer, CliError> {
    loop {
        transcript.prompt("May it be sent? [y/N] ")?;
        // On its own thread: the exit of the program does not wait for input.
        let line = timeout(ANSWER_TIMEOUT, tokio::task::spawn_blocking(read_line)).await;
        let Ok(read) = line else {
            transcript.line("")?;
            transcript.narrate("No answer within ten minutes counts as no.")?;
            return Ok(Answer::No);
        };
        let read = read.context("the terminal cannot be read")?;
        match read? {
            None => {
                transcript.line("")?;
                return Ok(Answer::No);
            }
            Some(text) => match parse_answer(&text) {
                Some(answer) => return Ok(answer),
                None => transcript.narrate("Please answer y or n.")?,
            },
        }
    }
}

/// The next line; `None` at the end of input.
fn read_line() -> Result<Option<String>, CliError> {
    let mut text = String::new();
    let read = stdin().read_line(&mut text).context("the terminal cannot be read")?;
    text.truncate(text.floor_char_boundary(MAX_ANSWER_BYTES));
    Ok((read > 0).then_some(text))
}

/// An empty line is a denial.
fn parse_answer(text: &str) -> Option<Answer> {
    match text.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(Answer::Yes),
        "" | "n" | "no" => Some(Answer::No),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_a_yes() {
        for (text, answer) in [
            ("y\n", Some(Answer::Yes)),
            (" Yes \r\n", Some(Answer::Yes)),
            ("n\n", Some(Answer::No)),
            ("NO", Some(Answer::No)),
            ("\n", Some(Answer::No)),
            ("yeah\n", None),
            ("y n\n", None),
        ] {
            assert_eq!(parse_answer(text), answer, "{text:?}");
        }
    }
}
