//! Loads the configuration: merges its sources, checks it, and reports all problems.
//!
//! Sources in ascending precedence: default, file, environment, command-line flag. The stages are one file each: `parse` (file to
//! tree), `env` (variables over the tree), `check` (tree against the known keys, which `schema` derives from `settings`), serde
//! (tree to `settings`), `validate` (keys that depend on each other). Runs no command and opens no connection.

mod check;
pub(crate) mod complete;
pub(crate) mod edit;
pub(crate) mod env;
mod error;
pub(crate) mod mask;
mod parse;
pub(crate) mod reference;
pub(crate) mod schema;
pub(crate) mod settings;
#[cfg(test)]
mod tests;
pub(crate) mod tree;
pub(crate) mod validate;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

pub(crate) use error::{ConfigError, Problem};
pub(crate) use schema::nearest;
pub(crate) use settings::Config;

use error::Report;
use tree::{KeyPath, Node, Origin};

/// The `embody.toml` that `init` writes: it shows every key, and sets only those that a new workspace needs.
pub(crate) const TEMPLATE: &str = include_str!("template.toml");

pub(crate) const FILE_NAME: &str = "embody.toml";

#[derive(Clone)]
pub(crate) struct Inputs {
    /// The file given by `--config`; must exist.
    pub(crate) file: Option<PathBuf>,
    /// Its `embody.toml` is read if no file is given. Paths are relative to it.
    pub(crate) workspace: PathBuf,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) overrides: Vec<Override>,
}

/// A key that a command-line flag sets.
#[derive(Clone)]
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
        let source = parse::read_file(inputs.file.clone(), &inputs.workspace);
        Self::load_source(source, inputs)
    }

    /// Like [`Config::load`], with a text that is not in the file yet.
    pub(crate) fn load_text(path: PathBuf, text: String, inputs: Inputs) -> Result<Self, ConfigError> {
        Self::load_source(parse::check_length(path, text).map(Some), inputs)
    }

    fn load_source(source: parse::Source, inputs: Inputs) -> Result<Self, ConfigError> {
        let Inputs { workspace, env, overrides, .. } = inputs;
        let mut report = Report::default();
        let Some((file, mut tree)) = parse_source(source, &mut report) else {
            return Err(report.into_error());
        };
        let proxies = env::proxies(&env, &mut report);
        env::apply(&env, &mut tree, &mut report);
        overrides.into_iter().for_each(|given| apply_override(given, &mut tree, &mut report));
        let mut config = Self::deserialize(flags_as_text(tree.to_value())).unwrap_or_else(|error| {
            // `check` rejects everything that serde rejects; report a mismatch instead of guessing.
            report.add(Problem::new("the configuration cannot be read").cause(mask::text(error.message())));
            Self::default()
        });
        validate::validate(&mut config, &tree, &mut report);
        if report.count() > 0 {
            return Err(report.into_error());
        }
        config.list_settings(&tree, &workspace);
        config.prompt.body = workspace.join(&config.prompt.body);
        config.model.api_key_file = config.model.api_key_file.map(|file| workspace.join(file));
        for cwd in config.bodies.iter_mut().filter_map(|body| body.cwd.as_mut()) {
            *cwd = workspace.join(&*cwd);
        }
        config.sandbox = config.sandbox.filter(|sandbox| *sandbox != Default::default());
        Ok(Self { file, proxies, ..config })
    }

    fn list_settings(&mut self, tree: &Node, workspace: &Path) {
        let mut in_force = toml::Value::try_from(&*self).ok();
        if let Some(store) = in_force.as_mut().and_then(|config| config.get_mut("store")?.as_table_mut()) {
            let default = || format!("sqlite://{}", workspace.join("embody.db").display()).into();
            store.entry("url").or_insert_with(default);
        }
        let root = KeyPath::default();
        reference::list_settings(schema::root(), Some(tree), in_force.as_ref(), &root, &mut self.keys);
    }
}

/// The file's path and the valid part of its content; `None` if it cannot be read at all.
fn parse_source(source: parse::Source, report: &mut Report) -> Option<(Option<PathBuf>, Node)> {
    let (path, text) = match source {
        Ok(Some(source)) => source,
        Ok(None) => return Some((None, Node::empty(Origin::Default))),
        Err(problem) => {
            report.add(*problem);
            return None;
        }
    };
    let mut tree = parse::file(&Arc::from(path.as_path()), &text, report)?;
    check::prune(schema::root(), &mut tree, &KeyPath::default(), report);
    Some((Some(path), tree))
}

fn apply_override(given: Override, tree: &mut Node, report: &mut Report) {
    let origin = Origin::Flag { name: given.flag };
    let path = KeyPath::from(given.key.as_str());
    let node = Node::from_value(given.value, &origin);
    // Wrap the key into its tables, so that the check of the whole tree applies to it.
    let mut lone = Node::empty(origin);
    let is_set = lone.set(&path, node).is_ok();
    check::prune(schema::root(), &mut lone, &KeyPath::default(), report);
    if let Some(node) = lone.at(&path).filter(|_| is_set) {
        put(&path, node.clone(), tree, report);
    }
}

/// Overrides the value of a weaker source with a checked value.
fn put(path: &KeyPath, node: Node, tree: &mut Node, report: &mut Report) {
    let origin = node.origin.clone();
    if let Err(reason) = tree.set(path, node)
        && !report.is_bad(path)
    {
        let problem = Problem::new(format!("`{path}` {reason}")).at(path, &origin);
        report.reject(path, problem.hint("entries count from 0, without gaps"));
    }
}

/// The texts of `[sandbox]` are only shown, so that `true` and `"true"` mean the same.
fn flags_as_text(mut config: toml::Value) -> toml::Value {
    let sandbox = config.get_mut("sandbox").and_then(toml::Value::as_table_mut);
    for (_, value) in sandbox.into_iter().flatten().filter(|(key, _)| *key != "enabled") {
        if let Some(flag) = value.as_bool() {
            *value = flag.to_string().into();
        }
    }
    config
}
