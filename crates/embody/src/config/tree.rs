//! The tree of written values with their origins, and the paths of keys in it; a stronger source overrides a weaker one.
//! Independent of the known keys, which `check` compares with the tree.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::mask;

#[derive(Clone)]
pub(super) struct Node {
    pub(super) origin: Origin,
    pub(super) content: Content,
}

#[derive(Clone)]
pub(super) enum Content {
    Leaf(toml::Value),
    List(Vec<Node>),
    Table(BTreeMap<String, Node>),
}

impl Node {
    pub(super) fn empty(origin: Origin) -> Self {
        Self { origin, content: Content::Table(BTreeMap::new()) }
    }

    /// A text or a list of texts, with one origin throughout.
    pub(super) fn from_value(value: toml::Value, origin: &Origin) -> Self {
        let content = match value {
            toml::Value::Array(items) => {
                Content::List(items.into_iter().map(|item| Self::from_value(item, origin)).collect())
            }
            leaf => Content::Leaf(leaf),
        };
        Self { origin: origin.clone(), content }
    }

    pub(super) fn to_value(&self) -> toml::Value {
        match &self.content {
            Content::Leaf(value) => value.clone(),
            Content::List(items) => toml::Value::Array(items.iter().map(Self::to_value).collect()),
            Content::Table(entries) => {
                toml::Value::Table(entries.iter().map(|(key, node)| (key.clone(), node.to_value())).collect())
            }
        }
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (&String, &Self)> {
        let entries = if let Content::Table(entries) = &self.content { Some(entries) } else { None };
        entries.into_iter().flatten()
    }

    pub(super) fn child(&self, step: &Step) -> Option<&Self> {
        match (step, &self.content) {
            (Step::Key(key), Content::Table(entries)) => entries.get(key),
            (Step::Index(index), Content::List(items)) => items.get(*index),
            _ => None,
        }
    }

    pub(super) fn at(&self, path: &KeyPath) -> Option<&Self> {
        path.0.iter().try_fold(self, |node, step| node.child(step))
    }

    /// The origin of `path`, or of the nearest table above it.
    pub(super) fn origin_of(&self, path: &KeyPath) -> &Origin {
        let mut node = self;
        for step in &path.0 {
            let Some(child) = node.child(step) else { break };
            node = child;
        }
        &node.origin
    }

    /// Replaces the value at `path`, creating tables and the next element of a list as needed. Fails with what `path` does, if it
    /// leaves out an element.
    pub(super) fn set(&mut self, path: &KeyPath, value: Self) -> Result<(), String> {
        let mut node = self;
        for step in &path.0 {
            node = node.child_or_new(step, &value.origin)?;
        }
        *node = value;
        Ok(())
    }

    fn child_or_new(&mut self, step: &Step, origin: &Origin) -> Result<&mut Self, String> {
        match (step, &self.content) {
            (Step::Key(_), Content::Table(_)) | (Step::Index(_), Content::List(_)) => {}
            (Step::Key(_), _) => self.content = Content::Table(BTreeMap::new()),
            (Step::Index(_), _) => self.content = Content::List(Vec::new()),
        }
        let fresh = Self::empty(origin.clone());
        match (step, &mut self.content) {
            (Step::Key(key), Content::Table(entries)) => Ok(entries.entry(key.clone()).or_insert(fresh)),
            (Step::Index(index), Content::List(items)) => {
                let len = items.len();
                items.extend(Some(fresh).filter(|_| len == *index));
                items.get_mut(*index).ok_or_else(|| format!("names entry {index}, but there are only {len}"))
            }
            _ => Err("names neither a key nor an entry".to_owned()),
        }
    }
}

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
    pub(crate) fn env(name: &str) -> Self {
        Self::Env { name: name.to_owned() }
    }

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

/// The full name of a key, written `policy.rule[0].gate`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KeyPath(Vec<Step>);

impl From<&str> for KeyPath {
    /// A dotted name such as `prompt.layout`, without indexes.
    fn from(name: &str) -> Self {
        Self(name.split('.').map(|part| Step::Key(part.to_owned())).collect())
    }
}

impl KeyPath {
    pub(super) fn key(&self, key: &str) -> Self {
        self.with(Step::Key(key.to_owned()))
    }

    pub(super) fn index(&self, index: usize) -> Self {
        self.with(Step::Index(index))
    }

    fn with(&self, step: Step) -> Self {
        Self(self.0.iter().cloned().chain([step]).collect())
    }

    pub(super) fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of the two paths lies below the other, or is the other.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0) || other.0.starts_with(&self.0)
    }

    /// The TOML heading of this table: `[prompt]`, or `[[body]]` for an element of a list.
    pub(super) fn heading(&self) -> String {
        let key = |step: &Step| if let Step::Key(key) = step { Some(shown_key(key)) } else { None };
        let name = self.0.iter().filter_map(key).collect::<Vec<_>>().join(".");
        match self.0.last() {
            Some(Step::Index(_)) => format!("[[{name}]]"),
            _ => format!("[{name}]"),
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
pub(super) fn shown_key(key: &str) -> String {
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let short = mask::text(key);
    if bare { short } else { format!("\"{short}\"") }
}
