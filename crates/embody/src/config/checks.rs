//! Owns the small checks that sections share: commands, addresses, texts that must not be empty. Refuses to know any
//! section.

use std::path::Path;

use super::address::Address;
use super::error::{Problem, Report};
use super::mask;
use super::node::Node;
use super::origin::KeyPath;
use super::resolved::CommandLine;

/// What the checks of all sections share.
pub(super) struct Checks<'a> {
    /// What was written, for the places.
    pub(super) tree: &'a Node,
    /// What paths are relative to.
    pub(super) workspace: &'a Path,
    /// What is wrong so far.
    pub(super) report: &'a mut Report,
}

impl Checks<'_> {
    /// Notes that something is wrong at `path`, unless its value was already found wrong.
    pub(super) fn fail(&mut self, path: &KeyPath, message: String, hint: Option<&str>) {
        if self.report.is_bad(path) {
            return;
        }
        let problem = Problem::at(path, self.tree.origin_of(path), message);
        self.report.add(match hint {
            Some(hint) => problem.hint(hint),
            None => problem,
        });
    }

    /// An `http` address.
    pub(super) fn http(&mut self, path: &KeyPath, text: &str) -> Option<Address> {
        self.address(path, text, (Address::http(text), None))
    }

    /// A command with a program.
    pub(super) fn command(&mut self, path: &KeyPath, words: Option<Vec<String>>) -> Option<CommandLine> {
        let mut words = words?.into_iter();
        match words.next() {
            Some(program) if !program.trim().is_empty() => {
                Some(CommandLine { program, args: words.collect() })
            }
            _ => {
                let hint = "write the program and its arguments as separate texts, or remove the key";
                self.fail(path, format!("`{path}` is `[]`, which names no program"), Some(hint));
                None
            }
        }
    }

    /// A text with something in it.
    pub(super) fn filled(&mut self, path: &KeyPath, text: Option<String>) -> Option<String> {
        let text = text?;
        if text.trim().is_empty() {
            self.fail(
                path,
                format!("`{path}` is `\"\"`, which is empty"),
                Some("remove the key to leave it unset"),
            );
            return None;
        }
        Some(text)
    }

    /// Patterns or methods, none of them empty.
    pub(super) fn all_filled(&mut self, path: &KeyPath, texts: &[String]) {
        for (index, text) in texts.iter().enumerate() {
            self.filled(&path.index(index), Some(text.clone()));
        }
    }

    /// The name of an environment variable. The value is not repeated: people paste the secret itself here.
    pub(super) fn variable_name(&mut self, path: &KeyPath, name: &str) -> Option<String> {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !name.is_empty() && name.chars().all(good) && !name.starts_with(|c: char| c.is_ascii_digit()) {
            return Some(name.to_owned());
        }
        let hint = "put the secret into a variable and write that variable's name here";
        self.fail(path, format!("`{path}` is not the name of an environment variable"), Some(hint));
        None
    }

    /// An address that was checked already; tells what is wrong with it.
    pub(super) fn address(
        &mut self,
        path: &KeyPath,
        text: &str,
        (checked, hint): (Result<Address, &'static str>, Option<&str>),
    ) -> Option<Address> {
        checked
            .map_err(|reason| {
                self.fail(path, format!("`{path}` is `{}`, which {reason}", mask::address(text)), hint);
            })
            .ok()
    }
}
