//! Configuration errors: every problem with its origin and a hint. The command line prints `message`, `causes` and `hints` as
//! `error:`, `caused by:` and `hint:`.

use std::collections::BTreeSet;
use std::fmt;

use super::mask;
use super::tree::{KeyPath, Origin};

const MAX_PROBLEMS: usize = 100;

/// The configuration is invalid. The process exits with 2.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.message())]
pub(crate) struct ConfigError {
    /// In the order of files, lines and variables; never empty.
    problems: Vec<Problem>,
    left_out: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) key: Option<String>,
    /// `None` if the message contains it.
    pub(crate) origin: Option<Origin>,
    pub(crate) message: String,
    pub(crate) cause: Option<String>,
    pub(crate) hint: Option<String>,
}

impl ConfigError {
    pub(crate) fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The number of problems, including omitted ones.
    pub(crate) fn count(&self) -> usize {
        self.problems.len() + self.left_out
    }

    /// The line after `error:`.
    pub(crate) fn message(&self) -> String {
        match self.problems.as_slice() {
            [only] if self.left_out == 0 => only.to_string(),
            _ => format!("the configuration has {} problems", self.count()),
        }
    }

    /// The lines after `caused by:`.
    pub(crate) fn causes(&self) -> Vec<String> {
        let single = self.count() == 1;
        let mut causes = Vec::new();
        for problem in &self.problems {
            if !single {
                causes.push(problem.to_string());
            }
            causes.extend(problem.cause.clone());
        }
        if self.left_out > 0 {
            causes.push(format!("{} more problems", self.left_out));
        }
        causes
    }

    /// The lines after `hint:`, without duplicates.
    pub(crate) fn hints(&self) -> Vec<String> {
        let mut hints: Vec<String> =
            self.problems.iter().filter_map(|problem| problem.hint.clone()).collect();
        let mut seen = BTreeSet::new();
        hints.retain(|hint| seen.insert(hint.clone()));
        hints
    }
}

impl Problem {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { key: None, origin: None, message: message.into(), cause: None, hint: None }
    }

    pub(super) fn at(self, path: &KeyPath, origin: &Origin) -> Self {
        Self { key: Some(path.to_string()), origin: Some(origin.clone()), ..self }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    pub(super) fn cause(self, cause: impl Into<String>) -> Self {
        Self { cause: Some(cause.into()), ..self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(source) = self.origin.as_ref().and_then(Origin::source) {
            write!(f, "{source}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// Collects problems while the configuration is read, so that all are reported at once.
#[derive(Debug, Default)]
pub(super) struct Report {
    problems: Vec<Problem>,
    left_out: usize,
    bad: Vec<KeyPath>,
}

impl Report {
    pub(super) fn add(&mut self, problem: Problem) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        } else {
            self.left_out += 1;
        }
    }

    /// Adds a problem and marks the value at `path` as dropped, so that it is not also reported as missing.
    pub(super) fn reject(&mut self, path: &KeyPath, problem: Problem) {
        if self.problems.len() < MAX_PROBLEMS {
            self.bad.push(path.clone());
        }
        self.add(problem);
    }

    pub(super) fn count(&self) -> usize {
        self.problems.len() + self.left_out
    }

    /// Whether a value at `path`, above it or below it was dropped.
    pub(super) fn is_bad(&self, path: &KeyPath) -> bool {
        self.bad.iter().any(|bad| bad.overlaps(path))
    }

    pub(super) fn into_error(mut self) -> ConfigError {
        self.problems.sort_by(|a, b| a.origin.cmp(&b.origin));
        ConfigError { problems: self.problems, left_out: self.left_out }
    }
}

pub(super) fn quoted(value: &str) -> String {
    format!("`{}`", mask::text(value))
}
