//! Identifies a setting: where it was set (`Origin`) and which key it is (`KeyPath`). Holds no values.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::mask;

/// The source of a key's value, ordered by precedence, weakest first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    Default,
    File {
        path: Arc<Path>,
        /// Starting at 1.
        line: usize,
    },
    Env {
        name: String,
    },
    Flag {
        /// The name with its dashes.
        name: String,
    },
}

impl Origin {
    /// The kind of source: `default`, `file`, `env` or `flag`.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::File { .. } => "file",
            Self::Env { .. } => "env",
            Self::Flag { .. } => "flag",
        }
    }

    /// The source, for example `embody.toml:3`; `None` for a default.
    pub(crate) fn source(&self) -> Option<String> {
        match self {
            Self::Default => None,
            Self::File { path, line } => Some(format!("{}:{line}", mask::text(&path.to_string_lossy()))),
            Self::Env { name } | Self::Flag { name } => Some(mask::text(name)),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source() {
            None => f.write_str("default"),
            Some(source) => write!(f, "{} {source}", self.kind()),
        }
    }
}

/// One step down the tree of settings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
}

/// The full name of a key, written `policy.rule[0].gate`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyPath(Vec<Step>);

impl KeyPath {
    /// Parses a dotted name such as `prompt.layout`, without indexes.
    pub(crate) fn dotted(name: &str) -> Self {
        Self(name.split('.').map(|part| Step::Key(part.to_owned())).collect())
    }

    /// Appends a key.
    pub(crate) fn key(&self, key: &str) -> Self {
        self.with(Step::Key(key.to_owned()))
    }

    /// Appends an index.
    pub(crate) fn index(&self, index: usize) -> Self {
        self.with(Step::Index(index))
    }

    /// The steps from the root.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Whether this path is `other` or lies below it.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// The TOML heading of this table: `[prompt]`, or `[[body]]` for an element of a list.
    pub(crate) fn heading(&self) -> String {
        let keys: Vec<String> = self.0.iter().filter_map(Step::bare_key).collect();
        let name = keys.join(".");
        if matches!(self.0.last(), Some(Step::Index(_))) {
            format!("[[{name}]]")
        } else {
            format!("[{name}]")
        }
    }

    fn with(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }
}

impl FromIterator<Step> for KeyPath {
    fn from_iter<T: IntoIterator<Item = Step>>(steps: T) -> Self {
        Self(steps.into_iter().collect())
    }
}

impl Step {
    fn bare_key(&self) -> Option<String> {
        match self {
            Self::Key(key) => Some(shown_key(key)),
            Self::Index(_) => None,
        }
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) if position == 0 => f.write_str(&shown_key(key))?,
                Step::Key(key) => write!(f, ".{}", shown_key(key))?,
            }
        }
        Ok(())
    }
}

/// The printable form of a key: bare if TOML allows it, else quoted, bounded and without control characters.
pub(crate) fn shown_key(key: &str) -> String {
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let short = mask::text(key);
    if bare { short } else { format!("\"{short}\"") }
}
