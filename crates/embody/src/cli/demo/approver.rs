//! Answers the approval of the demo: the person at the terminal, or the script with `--yes`.

use std::io::stdin;
use std::time::Duration;

use tokio::time::timeout;

use super::transcript::Transcript;
use crate::error::CliError;

/// A missing answer after this time counts as a denial.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);
const MAX_ANSWER_BYTES: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerSource {
    Terminal,
    /// `--yes`.
    Script,
}

/// The approver, who reads the question in the transcript.
pub(super) struct Approver<'a> {
    pub(super) source: AnswerSource,
    pub(super) transcript: &'a mut Transcript,
}

impl Approver<'_> {
    /// Shows the question of the broker and returns the answer.
    pub(super) async fn ask(&mut self, question: &str) -> Result<Answer, CliError> {
        self.transcript.quote(question)?;
        match self.source {
            AnswerSource::Script => {
                self.transcript.say("You passed `--yes`, so the script answers for you: yes.")?;
                Ok(Answer::Yes)
            }
            AnswerSource::Terminal => {
                self.transcript.say("You are the owner now. The demo goes on with either answer.")?;
                self.wait().await
            }
        }
    }

    async fn wait(&mut self) -> Result<Answer, CliError> {
        loop {
            self.transcript.prompt("May it be sent? [y/N] ")?;
            // On its own thread: the exit of the program does not wait for input.
            let line = timeout(ANSWER_TIMEOUT, tokio::task::spawn_blocking(line)).await;
            let Ok(read) = line else {
                self.transcript.line("")?;
                self.transcript.say("Nobody answered within ten minutes. That is a no.")?;
                return Ok(Answer::No);
            };
            let read =
                read.map_err(|error| CliError::new("the terminal cannot be read").caused_by(&error))?;
            match read? {
                None => {
                    self.transcript.line("")?;
                    return Ok(Answer::No);
                }
                Some(text) => match parse_answer(&text) {
                    Some(answer) => return Ok(answer),
                    None => self.transcript.say("Please answer y or n.")?,
                },
            }
        }
    }
}

/// The next line; `None` at the end of input.
fn line() -> Result<Option<String>, CliError> {
    let mut text = String::new();
    let read = stdin()
        .read_line(&mut text)
        .map_err(|error| CliError::new("the terminal cannot be read").caused_by(&error))?;
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
