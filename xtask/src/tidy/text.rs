//! Text that no file may contain: marks of unfinished work, skipped tests, paths of one machine.

use super::Tracked;

/// Written in two parts, so that this file does not contain them.
const UNFINISHED: &[&str] =
    &[concat!("todo", "!("), concat!("unimplemented", "!("), concat!("#[", "ignore"), concat!("FIX", "ME")];
const MACHINE: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("index.cra", "tes.io"),
    concat!("registry.npm", "js.org"),
];

pub(super) fn check(files: &[Tracked], breaches: &mut Vec<String>) {
    for file in files {
        for (number, line) in (1..).zip(file.text.lines()) {
            for mark in UNFINISHED.iter().filter(|mark| file.is_rust() && line.contains(**mark)) {
                breaches.push(format!("{}:{number}: unfinished: `{mark}`", file.path));
            }
            for name in MACHINE.iter().filter(|name| !file.path.ends_with(".lock") && line.contains(**name)) {
                breaches.push(format!("{}:{number}: a path or host of one machine: `{name}`", file.path));
            }
        }
    }
}
