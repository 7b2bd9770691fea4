//! The tree of written values with their origins; a stronger source overrides a weaker one. Independent of the known keys,
//! which `check` compares with the tree.

use std::collections::BTreeMap;
use std::mem;

use super::origin::{KeyPath, Origin, Step};

/// A value and its origin.
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

/// An override names element `index` of a list with only `len` elements.
pub(super) struct Gap {
    pub(super) index: usize,
    pub(super) len: usize,
}

impl Node {
    /// An empty table.
    pub(super) fn empty(origin: Origin) -> Self {
        Self { origin, content: Content::Table(BTreeMap::new()) }
    }

    pub(super) fn text(text: &str, origin: Origin) -> Self {
        Self { origin, content: Content::Leaf(toml::Value::String(text.to_owned())) }
    }

    /// A value with one origin throughout.
    pub(super) fn from_value(value: toml::Value, origin: &Origin) -> Self {
        let content = match value {
            toml::Value::Array(items) => {
                Content::List(items.into_iter().map(|item| Self::from_value(item, origin)).collect())
            }
            toml::Value::Table(table) => Content::Table(
                table.into_iter().map(|(key, item)| (key, Self::from_value(item, origin))).collect(),
            ),
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

    /// The entry with this key, if this is a table.
    pub(super) fn entry(&self, key: &str) -> Option<&Self> {
        match &self.content {
            Content::Table(entries) => entries.get(key),
            _ => None,
        }
    }

    /// The elements, if this is a list.
    pub(super) fn items(&self) -> &[Self] {
        match &self.content {
            Content::List(items) => items,
            _ => &[],
        }
    }

    /// The origin of `path`, or of the nearest table above it.
    pub(super) fn origin_of(&self, path: &KeyPath) -> &Origin {
        let mut node = self;
        for step in path.steps() {
            match node.child(step) {
                Some(child) => node = child,
                None => break,
            }
        }
        &node.origin
    }

    /// The value at `path`.
    pub(super) fn at(&self, path: &KeyPath) -> Option<&Self> {
        path.steps().iter().try_fold(self, |node, step| node.child(step))
    }

    fn child(&self, step: &Step) -> Option<&Self> {
        match (step, &self.content) {
            (Step::Key(key), Content::Table(entries)) => entries.get(key),
            (Step::Index(index), Content::List(items)) => items.get(*index),
            _ => None,
        }
    }

    /// Replaces the value at `path`, creating tables as needed.
    pub(super) fn set(&mut self, path: &KeyPath, value: Self) -> Result<(), Gap> {
        self.set_below(path.steps(), value)
    }

    fn set_below(&mut self, steps: &[Step], value: Self) -> Result<(), Gap> {
        let Some((step, rest)) = steps.split_first() else {
            *self = value;
            return Ok(());
        };
        let fresh = Self::empty(value.origin.clone());
        let content = mem::replace(&mut self.content, Content::List(Vec::new()));
        match step {
            Step::Key(key) => {
                let mut entries =
                    if let Content::Table(entries) = content { entries } else { BTreeMap::new() };
                let done = entries.entry(key.clone()).or_insert(fresh).set_below(rest, value);
                self.content = Content::Table(entries);
                done
            }
            Step::Index(index) => {
                let mut items = if let Content::List(items) = content { items } else { Vec::new() };
                let len = items.len();
                if len == *index {
                    items.push(fresh);
                }
                let done = match items.get_mut(*index) {
                    Some(item) => item.set_below(rest, value),
                    None => Err(Gap { index: *index, len }),
                };
                self.content = Content::List(items);
                done
            }
        }
    }
}
