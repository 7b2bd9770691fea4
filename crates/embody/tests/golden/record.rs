//! The text of a snapshot as it grows: commands and exchanges, each with everything that came back.

use std::fmt::Write;

use super::normalize::Normalizer;
use crate::support::world::{CommandOutput, World};

pub(super) struct Record {
    pub(super) normalizer: Normalizer,
    text: String,
}

impl Record {
    /// A record of what happens in this world.
    pub(super) fn of(world: &World) -> Self {
        let mut normalizer = Normalizer::default();
        let root = world.outside("");
        let root = root.to_str().unwrap().trim_end_matches('/');
        normalizer.literal(root, "[root]");
        normalizer.literal(root.rsplit('/').next().unwrap(), "[name of root]");
        let binary = env!("CARGO_BIN_EXE_embody");
        normalizer.literal(binary, "[embody]");
        normalizer.literal(binary.strip_suffix("/embody").unwrap(), "[target]");
        normalizer.word(env!("CARGO_PKG_VERSION"), "[version]");
        Self { normalizer, text: String::new() }
    }

    /// Runs `embody --workspace … ARGUMENTS` and records the command, its exit code and what it printed.
    pub(super) fn run(&mut self, world: &World, arguments: &[&str]) -> CommandOutput {
        let done = world.run(arguments);
        self.ran(arguments, &done);
        done
    }

    /// Records a command that has run.
    pub(super) fn ran(&mut self, arguments: &[&str], done: &CommandOutput) {
        let words: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
        self.heading(format!("$ embody {}", words.join(" ")).trim_end());
        writeln!(self.text, "exit {}", done.code.map_or("by a signal".to_owned(), |code| code.to_string()))
            .unwrap();
        self.part("stdout", &done.stdout);
        self.part("stderr", &done.stderr);
    }

    /// Begins a command or an exchange.
    pub(super) fn heading(&mut self, line: &str) {
        let line = self.normalizer.normalize(line);
        let gap = if self.text.is_empty() { "" } else { "\n" };
        writeln!(self.text, "{gap}{line}").unwrap();
    }

    /// Adds a text under a name; nothing if it is empty.
    pub(super) fn part(&mut self, name: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        let lines: String = text.split_inclusive('\n').map(folded).collect();
        let shown = self.normalizer.normalize(&lines);
        let end = if shown.ends_with('\n') { "" } else { "\n" };
        let whole = if text.ends_with('\n') { "" } else { " (no newline at the end)" };
        write!(self.text, "--- {name}{whole}\n{shown}{end}").unwrap();
    }

    /// Compares what was recorded since the last snapshot with the snapshot of this name.
    pub(super) fn snapshot(&mut self, name: &str) {
        let text = std::mem::take(&mut self.text);
        self.normalizer.next_snapshot();
        let mut settings = insta::Settings::clone_current();
        settings.set_omit_expression(true);
        settings.set_prepend_module_to_snapshot(false);
        settings.set_snapshot_path("snapshots");
        settings.bind(|| insta::assert_snapshot!(name, text));
    }
}

fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=+,@*?".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A line of JSON that has no whitespace between its parts, with a line for each member. Every other text is left as it is:
/// the two cannot be confused, since a line that was broken here begins with a mark.
pub(super) fn folded(line: &str) -> String {
    let (json, end) = line.strip_suffix('\n').map_or((line, ""), |json| (json, "\n"));
    let (prefix, json) = json.strip_prefix("data: ").map_or(("", json), |json| ("data: ", json));
    let is_long = json.len() > 100 && json.starts_with(['{', '[']);
    if !is_long || serde_json::from_str::<serde::de::IgnoredAny>(json).is_err() {
        return line.to_owned();
    }
    let mut out = format!("{prefix}⏎");
    let (mut depth, mut in_string, mut is_escaped, mut previous) = (0_usize, false, false, ' ');
    for letter in json.chars() {
        if in_string {
            out.push(letter);
            in_string = is_escaped || letter != '"';
            is_escaped = !is_escaped && letter == '\\';
            previous = letter;
            continue;
        }
        match letter {
            letter if letter.is_whitespace() => return line.to_owned(),
            '{' | '[' => {
                out.push(letter);
                depth += 1;
                new_line(&mut out, depth);
            }
            '}' | ']' => {
                depth -= 1;
                if matches!(previous, '{' | '[') {
                    out.truncate(out.trim_end().len());
                } else {
                    new_line(&mut out, depth);
                }
                out.push(letter);
            }
            ',' => {
                out.push(letter);
                new_line(&mut out, depth);
            }
            _ => {
                in_string = letter == '"';
                out.push(letter);
            }
        }
        previous = letter;
    }
    out + end
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.push_str(&"  ".repeat(depth));
}

#[test]
fn only_compact_json_is_folded() {
    let compact = format!(r#"{{"a":[],"b":{{"c":"{{, [\"x"}},"d":[1,"{}"]}}"#, "y".repeat(100));
    let shown = folded(&format!("{compact}\n"));
    assert!(shown.starts_with("⏎{\n  \"a\":[],\n  \"b\":{\n    \"c\":\"{, [\\\"x\"\n  },\n"), "{shown}");
    assert!(shown.ends_with("\"\n  ]\n}\n"), "{shown}");
    let loose = compact.replacen(',', ", ", 1);
    assert_eq!(folded(&loose), loose);
}
