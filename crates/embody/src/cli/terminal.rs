//! Whether a person sits at the terminal. A host's shell tool runs commands without one, and must not act as its owner.

use std::io::{IsTerminal, stdin, stdout};

use rustix::process::{getpgrp, getsid};
use rustix::termios::{tcgetpgrp, tcgetsid};

use crate::error::CliError;

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

fn is_controlling() -> bool {
    let input = stdin();
    let is_of_session = || tcgetsid(&input).is_ok_and(|of_terminal| getsid(None) == Ok(of_terminal));
    let is_in_foreground = || tcgetpgrp(&input).is_ok_and(|group| group == getpgrp());
    input.is_terminal() && is_of_session() && is_in_foreground()
}
