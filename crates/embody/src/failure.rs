//! How a command fails: what, why, what to do about it, and the exit code. Printed in one place.

use std::error::Error;
use std::fmt::Display;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};

use crate::config::ConfigError;
use crate::output::printable;

/// The thing asked about is not so, or could not be done.
const NOT_SO: u8 = 1;
/// Wrong usage or configuration.
const WRONG_USAGE: u8 = 2;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const CAUSE: Style = Style::new().dimmed();
const HINT: Style = AnsiColor::Cyan.on_default();

/// Why a command ended without doing its work.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
    causes: Vec<String>,
    hints: Vec<String>,
}

impl Failure {
    /// It could not be done.
    pub(crate) fn new(message: impl Display) -> Self {
        Self { code: NOT_SO, message: message.to_string(), causes: Vec::new(), hints: Vec::new() }
    }

    /// It was asked for in the wrong way.
    pub(crate) fn usage(message: impl Display) -> Self {
        Self { code: WRONG_USAGE, ..Self::new(message) }
    }

    /// The same with what lies behind it, source by source.
    pub(crate) fn because(mut self, error: &dyn Error) -> Self {
        let mut cause = Some(error);
        while let Some(error) = cause {
            self.causes.push(error.to_string());
            cause = error.source();
        }
        self
    }

    /// The same with advice.
    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }

    /// The failure in one line, and what to do about it, for a list of findings.
    pub(crate) fn in_short(&self) -> (String, String) {
        let lines: Vec<&str> =
            std::iter::once(&self.message).chain(&self.causes).map(String::as_str).collect();
        (lines.join(": "), self.hints.join("; "))
    }

    /// Prints it to stderr; colours only on a terminal.
    pub(crate) fn report(self) -> ExitCode {
        anstream::eprintln!("{ERROR}error:{ERROR:#} {}", printable(&self.message));
        for cause in &self.causes {
            anstream::eprintln!("{CAUSE}caused by:{CAUSE:#} {}", printable(cause));
        }
        for hint in &self.hints {
            anstream::eprintln!("{HINT}hint:{HINT:#} {}", printable(hint));
        }
        ExitCode::from(self.code)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self { code: WRONG_USAGE, message: error.message(), causes: error.causes(), hints: error.hints() }
    }
}

impl From<embody_workspace::Error> for Failure {
    fn from(error: embody_workspace::Error) -> Self {
        let failure = match error {
            embody_workspace::Error::AgentName { .. } => Self::usage(&error),
            _ => Self::new(&error),
        };
        match error.source() {
            Some(source) => failure.because(source),
            None => failure,
        }
    }
}
