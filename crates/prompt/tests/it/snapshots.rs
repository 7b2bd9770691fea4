//! A folder of inputs, each a snapshot of text, border, sections and notes. Adding a test is adding a file.

use std::fmt::Write as _;

use embody_prompt::{CacheClass, assemble, render, tokens};

use crate::fixture::Fixture;

// spec: P-01, T-02, S-01, P-12. AC-11: soul, identity, instructions, channel and memory in many combinations
#[test]
fn inputs() {
    insta::glob!("../inputs", "*.toml", |path| {
        let fixture = Fixture::parse(&std::fs::read_to_string(path).unwrap());
        let shown = show(&fixture);
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("../snapshots");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.set_description(format!("{} {}", fixture.why, fixture.spec.join(" ")).trim_end());
        settings.bind(|| insta::assert_snapshot!("prompt", shown));
    });
}

/// An input that nobody looks at proves nothing, and neither does a snapshot whose input is gone.
#[test]
fn inputs_and_snapshots_match() {
    let tests = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let names = |folder: &str, suffix: &str| -> Vec<String> {
        let entries = std::fs::read_dir(tests.join(folder)).unwrap();
        let mut names: Vec<String> = entries
            .filter_map(|entry| {
                entry.unwrap().file_name().into_string().unwrap().strip_suffix(suffix).map(str::to_owned)
            })
            .map(|name| name.trim_start_matches("prompt@").to_owned())
            .collect();
        names.sort();
        names
    };
    let inputs = names("inputs", ".toml");
    assert!(inputs.len() >= 70, "{}", inputs.len());
    assert_eq!(names("snapshots", ".toml.snap"), inputs);
}

fn show(fixture: &Fixture) -> String {
    let input = fixture.input();
    let prompt = assemble(&input, &fixture.layout());
    let rendered = render(&prompt);
    let text = &rendered.text;
    let mut out = String::new();
    let (chars, size) = (text.chars().count(), tokens::count(text));
    writeln!(out, "{} bytes, {chars} characters, {size} tokens", text.len()).unwrap();
    let before: String =
        text[..rendered.stable_len].chars().rev().take(20).collect::<Vec<_>>().into_iter().rev().collect();
    writeln!(out, "stable_len {} behind {before:?}", rendered.stable_len).unwrap();
    for span in &rendered.spans {
        let (kind, layer) = (span.kind.name(), span.layer.name());
        let fresh = if span.cache_class == CacheClass::Volatile { " fresh" } else { "" };
        let cut = if span.truncated { " cut" } else { "" };
        let (start, end, source) = (span.start, span.end, span.source());
        writeln!(out, "  {start:>5}..{end:<5} {kind:<17} {layer:<8} {source}{fresh}{cut}").unwrap();
    }
    for note in &prompt.notes {
        writeln!(out, "note {}: {} ({})", note.kind.name(), note.message, note.source).unwrap();
    }
    write!(out, "{}\n{text}", "-".repeat(80)).unwrap();
    out
}
