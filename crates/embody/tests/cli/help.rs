//! What every command's help has: examples, and ids that may be short.

use crate::support::world::World;

/// The commands without subcommands, each with its help.
fn leaves() -> Vec<(String, String)> {
    let page = World::new().run(&["man", "--markdown"]).ok().stdout;
    let sections: Vec<(String, String)> = page
        .split("\n## `")
        .skip(1)
        .map(|section| {
            let (name, help) = section.split_once('`').unwrap();
            (name.to_owned(), help.to_owned())
        })
        .collect();
    let is_leaf = |name: &str| !sections.iter().any(|(other, _)| other.starts_with(&format!("{name} ")));
    let leaves: Vec<_> = sections.iter().filter(|(name, _)| is_leaf(name)).cloned().collect();
    assert!(leaves.len() > 70, "{}", leaves.len());
    leaves
}

#[test]
fn every_command_has_an_example() {
    let lacks = |(_, help): &(String, String)| {
        let examples = help.split_once("\nExamples:\n").map_or("", |(_, examples)| examples);
        !examples.lines().any(|line| line.starts_with("  ") && line.contains("embody"))
    };
    let missing: Vec<String> = leaves().into_iter().filter(lacks).map(|(name, _)| name).collect();
    assert!(missing.is_empty(), "no `Examples:` in the help of {missing:?}");
}

/// A help that says so is resolved by `cli/ids.rs`; the tests of each command use the end of an id.
#[test]
fn no_command_needs_a_whole_id() {
    let mut ids = 0;
    for (name, help) in leaves() {
        let lines: Vec<&str> = help.lines().map(str::trim).collect();
        for (at, line) in lines.iter().enumerate() {
            let is_argument = ["<ID>", "[ID]", "<RUN>"].iter().any(|id| line.ends_with(id));
            if !is_argument || line.starts_with("Usage:") {
                continue;
            }
            let text =
                lines[at + 1..].iter().take_while(|line| !line.is_empty()).copied().collect::<Vec<_>>();
            let text = text.join(" ");
            ids += 1;
            // A task has a number.
            let is_number = line.starts_with("--task") && text.contains("task");
            assert!(is_number || text.contains("or its end"), "{name} {line}: {text}");
        }
    }
    assert!(ids >= 20, "{ids}");
}
