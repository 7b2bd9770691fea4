//! Owns the configuration: where it comes from, which source wins, and what is wrong with it.
//!
//! Sources in rising precedence: default, file, environment, command-line flag. The stages are one file each:
//! `file` and `parse` (text to tree), `env` (variables over the tree), `check` (tree against known keys), `raw` (serde),
//! `resolve` (checked and typed). `proxies` is beside them: its variables are no keys. Refuses to act on what it reads:
//! no command is run, nothing is connected to.

pub(crate) mod address;
mod check;
pub(crate) mod choices;
mod defaults;
pub(crate) mod env;
mod error;
mod examples;
pub(crate) mod keys;
pub(crate) mod mask;
mod model;
mod node;
pub(crate) mod origin;
mod parse;
mod proxies;
mod raw;
pub(crate) mod reference;
mod resolve;
pub(crate) mod resolved;
mod settings;
pub(crate) mod telemetry;
mod template;
#[cfg(test)]
mod tests;
mod upstream;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

pub(crate) use error::{ConfigError, Problem};
pub(crate) use resolved::Config;
pub(crate) use template::commented_default;

use error::Report;
use node::Node;
use origin::{KeyPath, Origin};

/// What a configuration is made from.
pub(crate) struct Inputs<E> {
    /// The file that `--config` names; it must exist.
    pub(crate) file: Option<PathBuf>,
    /// The workspace, whose `embody.toml` is read when no file is named.
    pub(crate) workspace: PathBuf,
    /// The environment, by name and value.
    pub(crate) env: E,
    /// What flags on the command line say.
    pub(crate) overrides: Vec<Override>,
}

/// A key that a flag on the command line sets.
pub(crate) struct Override {
    /// The key, for example `store.url`.
    pub(crate) key: String,
    /// Its value.
    pub(crate) value: toml::Value,
    /// The flag, for example `--store`.
    pub(crate) flag: String,
}

impl Config {
    /// Reads every source and checks the whole. The error tells all problems at once.
    pub(crate) fn load<E>(inputs: Inputs<E>) -> Result<Self, ConfigError>
    where
        E: IntoIterator<Item = (String, String)>,
    {
        let mut report = Report::default();
        let Some((file, mut tree)) = read_file(inputs.file, &inputs.workspace, &mut report) else {
            return Err(report.into_error());
        };
        let env: Vec<(String, String)> = inputs.env.into_iter().collect();
        let proxies = proxies::read(&env, &mut report);
        env::apply(env, &mut tree, &mut report);
        for given in inputs.overrides {
            apply_override(given, &mut tree, &mut report);
        }
        let raw = raw::Raw::deserialize(tree.to_value()).unwrap_or_else(|error| {
            // `check` lets nothing through that serde refuses; if it ever does, say so instead of guessing.
            report.add(Problem::bare("the configuration cannot be read").cause(mask::text(error.message())));
            raw::Raw::default()
        });
        let mut checks = check::Checks { tree: &tree, workspace: &inputs.workspace, report: &mut report };
        let resolved = resolve::resolve(raw, &mut checks);
        match resolved {
            Some(config) if report.count() == 0 => {
                Ok(Self { keys: settings::list(keys::root(), &tree, &config), file, proxies, ..config })
            }
            _ => Err(report.into_error()),
        }
    }
}

/// The file's path and what is right of its content; `None` if it cannot be read at all.
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
    // Wrapped into its tables, so that the one check of the whole tree also checks a lone key.
    let mut lone = Node::empty(origin);
    if lone.set(&path, node).is_err() {
        return;
    }
    let Some(checked) = check::prune(keys::root(), lone, &KeyPath::default(), report) else { return };
    if let Some(node) = checked.at(&path) {
        put(&path, node.clone(), tree, report);
    }
}

/// Puts a checked value over whatever a weaker source says.
fn put(path: &KeyPath, node: Node, tree: &mut Node, report: &mut Report) {
    let origin = node.origin.clone();
    if let Err(gap) = tree.set(path, node)
        && !report.is_bad(path)
    {
        let message = format!("`{path}` names entry {}, but there are only {}", gap.index, gap.len);
        report.reject(path, Problem::at(path, &origin, message).hint("entries count from 0, without gaps"));
    }
}
