//! Whoever decides: the person at the terminal, or the script in their place, which says so.

use std::io::stdin;
use std::time::Duration;

use tokio::time::timeout;

use super::tale::Tale;
use crate::failure::Failure;

/// How long a person may think; after that nobody is there, which is no consent.
const THINKING: Duration = Duration::from_secs(600);
/// The longest answer that is looked at.
const LONGEST: usize = 4096;

/// What was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
}

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seat {
    /// Somebody at the terminal.
    Terminal,
    /// The script: `--yes`.
    Script,
}

/// The person, who reads the question in the tale.
pub(super) struct Person<'a> {
    pub(super) seat: Seat,
    pub(super) tale: &'a mut Tale,
}

impl Person<'_> {
    /// Shows the question as the broker worded it, and gets an answer.
    pub(super) async fn ask(&mut self, question: &str) -> Result<Answer, Failure> {
        self.tale.quote(question)?;
        match self.seat {
            Seat::Script => {
                self.tale.say("You passed `--yes`, so the script answers for you: yes.")?;
                Ok(Answer::Yes)
            }
            Seat::Terminal => {
                self.tale.say("You are the owner now. The demo goes on with either answer.")?;
                self.wait().await
            }
        }
    }

    async fn wait(&mut self) -> Result<Answer, Failure> {
        loop {
            self.tale.prompt("May it be sent? [y/N] ")?;
            // A thread of its own: the end of the program does not wait for a line.
            let line = timeout(THINKING, tokio::task::spawn_blocking(line)).await;
            let Ok(read) = line else {
                self.tale.line("")?;
                self.tale.say("Nobody answered within ten minutes. That is a no.")?;
                return Ok(Answer::No);
            };
            let read = read.map_err(|error| Failure::new("the terminal cannot be read").because(&error))?;
            match read? {
                None => {
                    self.tale.line("")?;
                    return Ok(Answer::No);
                }
                Some(text) => match understood(&text) {
                    Some(answer) => return Ok(answer),
                    None => self.tale.say("Please answer y or n.")?,
                },
            }
        }
    }
}

/// The next line; none at the end of input.
fn line() -> Result<Option<String>, Failure> {
    let mut text = String::new();
    let read = stdin()
        .read_line(&mut text)
        .map_err(|error| Failure::new("the terminal cannot be read").because(&error))?;
    text.truncate(text.floor_char_boundary(LONGEST));
    Ok((read > 0).then_some(text))
}

/// An empty line is a no: consent is said.
fn understood(text: &str) -> Option<Answer> {
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
            assert_eq!(understood(text), answer, "{text:?}");
        }
    }
}
