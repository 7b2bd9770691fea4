//! Where a byte came from: a file and line, a flag, the clock, or the builder itself.

use std::fmt;
use std::sync::Arc;

/// The origin of a value: a name that a person recognises, and the line in it where the value starts.
#[derive(Clone, PartialEq, Eq)]
pub struct Source {
    name: Name,
    line: u32,
}

#[derive(Clone, PartialEq, Eq)]
enum Name {
    Static(&'static str),
    Shared(Arc<str>),
}

impl Source {
    pub const BUILT_IN: Self = Self::fixed("built-in");

    /// A source that is known at compile time, such as `clock`.
    pub const fn fixed(name: &'static str) -> Self {
        Self { name: Name::Static(name), line: 0 }
    }

    /// A file, named as a person would name it (relative to the workspace where possible).
    pub fn file(name: &str) -> Self {
        Self { name: Name::Shared(Arc::from(name)), line: 1 }
    }

    /// Anything else with a name made at run time, such as a URL.
    pub fn named(name: &str) -> Self {
        Self { name: Name::Shared(Arc::from(name)), line: 0 }
    }

    /// The same source, from `line` (counted from 1; 0 means that lines make no sense here).
    #[must_use]
    pub fn at_line(mut self, line: u32) -> Self {
        self.line = line;
        self
    }

    pub fn name(&self) -> &str {
        match &self.name {
            Name::Static(name) => name,
            Name::Shared(name) => name,
        }
    }

    pub fn line(&self) -> u32 {
        self.line
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(self.name()),
            line => write!(f, "{}:{line}", self.name()),
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
