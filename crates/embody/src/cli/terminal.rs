//! Whether a person sits at the terminal. A host's shell tool runs commands without one, and must not act as its owner.

use std::io::{IsTerminal, Write, stderr, stdin, stdout};

use rustix::process::{getpgrp, getsid};
use rustix::termios::{QueueSelector, tcflush, tcgetpgrp, tcgetsid};

use crate::error::{CliError, ErrorContext};

/// Fails unless stdin is the controlling terminal of this process, and the process is in its foreground.
pub(super) fn require_terminal(command: &str) -> Result<(), CliError> {
    if is_controlling() {
        return Ok(());
    }
    Err(CliError::new(format!("`{command}` needs a terminal, and stdin is not one"))
        .hint("run it yourself in a terminal; programs, such as the shell tool of a host, cannot use it"))
}

/// The same, and what the command prints is seen there and nowhere else.
pub(super) fn require_terminal_output(command: &str) -> Result<(), CliError> {
    require_terminal(command)?;
    if stdout().is_terminal() {
        return Ok(());
    }
    Err(CliError::new(format!("`{command}` needs a terminal as its output"))
        .hint("run it without a pipe or a file behind it"))
}

/// Asks on the terminal. What was typed before the question is not an answer.
pub(super) fn confirm(question: &str) -> Result<bool, CliError> {
    let _ = tcflush(stdin(), QueueSelector::IFlush);
    let _ = write!(stderr(), "{question}");
    let mut answer = String::new();
    stdin().read_line(&mut answer).context("the answer cannot be read")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn is_controlling() -> bool {
    let input = stdin();
    let is_of_session = || tcgetsid(&input).is_ok_and(|of_terminal| getsid(None) == Ok(of_terminal));
    let is_in_foreground = || tcgetpgrp(&input).is_ok_and(|group| group == getpgrp());
    input.is_terminal() && is_of_session() && is_in_foreground()
}
