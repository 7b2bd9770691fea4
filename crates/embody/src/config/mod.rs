//! Loads the configuration: merges its sources, checks it, and reports all problems.
//!
//! Sources in ascending precedence: default, file, environment, command-line flag. The stages are one file each:
//! `parse` (file to tree), `env` (variables over the tree), `check` (tree against known keys), `raw` (serde), `resolve`
//! (checked and typed). Runs no command and opens no connection.

mod check;
pub(crate) mod choices;
pub(crate) mod env;
mod error;
pub(crate) mod keys;
pub(crate) mod mask;
mod parse;
mod raw;
pub(crate) mod reference;
mod resolve;
pub(crate) mod resolved;
#[cfg(test)]
mod tests;
pub(crate) mod tree;
mod upstream;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

pub(crate) use error::{ConfigError, Problem};
pub(crate) use resolved::Config;

use error::Report;
use tree::{KeyPath, Node, Origin};

/// The `embody.toml` that `init` writes: it shows every key, and sets only those that a new workspace needs.
pub(crate) const TEMPLATE: &str = include_str!("template.toml");

pub(crate) struct Inputs {
    /// The file given by `--config`; must exist.
    pub(crate) file: Option<PathBuf>,
    /// Its `embody.toml` is read if no file is given.
    pub(crate) workspace: PathBuf,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) overrides: Vec<Override>,
}

/// A key that a command-line flag sets.
pub(crate) struct Override {
    /// The key, for example `store.url`.
    pub(crate) key: String,
    pub(crate) value: toml::Value,
    /// The flag, for example `--store`.
    pub(crate) flag: String,
}

impl Config {
    /// Reads all sources and checks the result. The error contains all problems.
    pub(crate) fn load(inputs: Inputs) -> Result<Self, ConfigError> {
        let mut report = Report::default();
        let Some((file, mut tree)) = read_file(inputs.file, &inputs.workspace, &mut report) else {
            return Err(report.into_error());
        };
        let proxies = env::proxies(&inputs.env, &mut report);
        env::apply(inputs.env, &mut tree, &mut report);
        for given in inputs.overrides {
            apply_override(given, &mut tree, &mut report);
        }
        let raw = raw::Raw::deserialize(tree.to_value()).unwrap_or_else(|error| {
            // `check` rejects everything that serde rejects; report a mismatch instead of guessing.
            report.add(Problem::bare("the configuration cannot be read").cause(mask::text(error.message())));
            raw::Raw::default()
        });
        let mut checks = check::Checks { tree: &tree, workspace: &inputs.workspace, report: &mut report };
        let resolved = resolve::resolve(raw, &mut checks);
        match resolved {
            Some(config) if report.count() == 0 => Ok(Self {
                keys: reference::list_settings(keys::root(), &tree, &config),
                file,
                proxies,
                ..config
            }),
            _ => Err(report.into_error()),
        }
    }
}

/// The file's path and the valid part of its content; `None` if it cannot be read at all.
fn read_file(
    explicit: Option<PathBuf>,
    workspace: &Path,
    report: &mut Report,
) -> Option<(Option<PathBuf>, Node)> {
    let source = match parse::read_file(explicit, workspace) {
        Ok(Some(source)) => source,
        Ok(None) => return Some((None, Node::empty(Origin::Default))),
        Err(problem) => {
            report.add(*problem);
            return None;
        }
    };
    let path: Arc<Path> = Arc::from(source.path.as_path());
    let tree = parse::file(&path, &source.text, report)?;
    let tree = check::prune(keys::root(), tree, &KeyPath::default(), report)?;
    Some((Some(source.path), tree))
}

fn apply_override(given: Override, tree: &mut Node, report: &mut Report) {
    let origin = Origin::Flag { name: given.flag };
    let path = KeyPath::dotted(&given.key);
    let node = Node::from_value(given.value, &origin);
    // Wrap the key into its tables, so that the check of the whole tree applies to it.
    let mut lone = Node::empty(origin);
    if lone.set(&path, node).is_err() {
        return;
    }
    let Some(checked) = check::prune(keys::root(), lone, &KeyPath::default(), report) else { return };
    if let Some(node) = checked.at(&path) {
        put(&path, node.clone(), tree, report);
    }
}

/// Overrides the value of a weaker source with a checked value.
fn put(path: &KeyPath, node: Node, tree: &mut Node, report: &mut Report) {
    let origin = node.origin.clone();
    if let Err(gap) = tree.set(path, node)
        && !report.is_bad(path)
    {
        let message = format!("`{path}` names entry {}, but there are only {}", gap.index, gap.len);
        report.reject(path, Problem::at(path, &origin, message).hint("entries count from 0, without gaps"));
    }
}
