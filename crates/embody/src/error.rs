//! The error of a command: message, causes, hints and exit code. Printed in one place.

use std::error::Error;
use std::fmt::Display;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};

use crate::config::ConfigError;
use crate::output::printable;

/// The exit code of a command that failed, or whose answer is no.
const FAILED: u8 = 1;
/// The exit code of wrong usage or configuration.
const WRONG_USAGE: u8 = 2;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const CAUSE: Style = Style::new().dimmed();
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default();

#[derive(Debug)]
pub(crate) struct CliError {
    code: u8,
    message: String,
    causes: Vec<String>,
    hints: Vec<String>,
}

impl CliError {
    pub(crate) fn new(message: impl Display) -> Self {
        Self { code: FAILED, message: message.to_string(), causes: Vec::new(), hints: Vec::new() }
    }

    /// Whether the caller wrote something wrong.
    pub(crate) fn is_usage(&self) -> bool {
        self.code == WRONG_USAGE
    }

    /// An error in the arguments or the configuration.
    pub(crate) fn usage(message: impl Display) -> Self {
        Self { code: WRONG_USAGE, ..Self::new(message) }
    }

    /// Adds the error and its sources, each on a line.
    pub(crate) fn caused_by(mut self, error: &dyn Error) -> Self {
        self.causes.extend(sources(error));
        self
    }

    /// Adds the sources of an error whose own text is the message.
    pub(crate) fn with_sources_of(self, error: &dyn Error) -> Self {
        match error.source() {
            Some(source) => self.caused_by(source),
            None => self,
        }
    }

    pub(crate) fn hint(self, hint: impl Display) -> Self {
        self.hint_opt(Some(hint))
    }

    pub(crate) fn hint_opt(mut self, hint: Option<impl Display>) -> Self {
        self.hints.extend(hint.map(|hint| hint.to_string()));
        self
    }

    /// Message and causes in one line, and the hints in another.
    pub(crate) fn summary(&self) -> (String, String) {
        let lines: Vec<&str> =
            std::iter::once(&self.message).chain(&self.causes).map(String::as_str).collect();
        (lines.join(": "), self.hints.join("; "))
    }

    /// Prints it to stderr; colours only on a terminal.
    pub(crate) fn print(self) -> ExitCode {
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

/// Turns an error into the cause of a [`CliError`] with this message.
pub(crate) trait ErrorContext<T> {
    fn context(self, message: impl Display) -> Result<T, CliError>;

    /// For an error in the arguments or the configuration.
    fn usage_context(self, message: impl Display) -> Result<T, CliError>;
}

impl<T, E: Error> ErrorContext<T> for Result<T, E> {
    fn context(self, message: impl Display) -> Result<T, CliError> {
        self.map_err(|error| CliError::new(message).caused_by(&error))
    }

    fn usage_context(self, message: impl Display) -> Result<T, CliError> {
        self.map_err(|error| CliError::usage(message).caused_by(&error))
    }
}

/// An error and its sources in one line.
pub(crate) fn chain_text(error: &dyn Error) -> String {
    sources(error).join(": ")
}

fn sources(error: &dyn Error) -> Vec<String> {
    let mut texts = vec![error.to_string()];
    let mut source = error.source();
    while let Some(error) = source {
        texts.push(error.to_string());
        source = error.source();
    }
    texts
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        Self { code: WRONG_USAGE, message: error.message(), causes: error.causes(), hints: error.hints() }
    }
}

impl From<embody_workspace::Error> for CliError {
    fn from(error: embody_workspace::Error) -> Self {
        let failure = match error {
            embody_workspace::Error::AgentName { .. } => Self::usage(&error),
            _ => Self::new(&error),
        };
        failure.with_sources_of(&error)
    }
}
