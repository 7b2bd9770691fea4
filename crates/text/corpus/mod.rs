//! The labelled texts of the five rule engines, and how an engine's results on them are counted. Test code: the tests of
//! each engine include this file by its path. `docs/text-rules.md` describes the tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Rules are written and changed with `Tuning` in view. `Locked` is evaluated in total only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    Tuning,
    Locked,
}

pub(crate) struct Case {
    pub(crate) id: &'static str,
    pub(crate) language: &'static str,
    pub(crate) label: &'static str,
    pub(crate) text: String,
    /// What an engine needs besides the text, and what it must find. Empty for most.
    pub(crate) detail: &'static str,
}

impl Case {
    /// Whether something must be found in the text. In any other text nothing may be found.
    pub(crate) fn is_positive(&self) -> bool {
        !matches!(self.label, "benign" | "none" | "ordinary" | "still_open")
    }
}

/// Whether the locked half is evaluated in this run. `./test` does; a run during work on the rules does not.
fn evaluates_locked_half() -> bool {
    std::env::vars_os().any(|(name, _)| name == "EMBODY_TEST_LOCKED")
}

pub(crate) fn cases(engine: &str, half: Half) -> Vec<Case> {
    if half == Half::Locked && !evaluates_locked_half() {
        return Vec::new();
    }
    let table = match (engine, half) {
        ("lint", Half::Tuning) => include_str!("lint.tuning.tsv"),
        ("lint", Half::Locked) => include_str!("lint.locked.tsv"),
        ("definitions", Half::Tuning) => include_str!("definitions.tuning.tsv"),
        ("definitions", Half::Locked) => include_str!("definitions.locked.tsv"),
        ("quarantine", Half::Tuning) => include_str!("quarantine.tuning.tsv"),
        ("quarantine", Half::Locked) => include_str!("quarantine.locked.tsv"),
        ("rules", Half::Tuning) => include_str!("rules.tuning.tsv"),
        ("rules", Half::Locked) => include_str!("rules.locked.tsv"),
        ("reflect", Half::Tuning) => include_str!("reflect.tuning.tsv"),
        ("reflect", Half::Locked) => include_str!("reflect.locked.tsv"),
        _ => panic!("there is no corpus of `{engine}`"),
    };
    let rows = table.lines().skip(1).map(|line| {
        let mut columns = line.split('\t');
        let mut column = || columns.next().unwrap_or_default();
        let (id, language, label, text) = (column(), column(), column(), column());
        let (_source, detail) = (column(), column());
        // A definition is JSON, with JSON's own escapes.
        let text = if engine == "definitions" { text.to_owned() } else { unescape(text) };
        Case { id, language, label, text, detail }
    });
    rows.collect()
}

/// Turns `\n`, `\t`, `\\` and `\u{202e}` into the characters that they stand for.
fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            out.push(char);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('u') => {
                let code: String = chars.by_ref().skip(1).take_while(|&char| char != '}').collect();
                out.push(u32::from_str_radix(&code, 16).ok().and_then(char::from_u32).unwrap());
            }
            other => out.extend(other),
        }
    }
    out
}

#[derive(Clone, Copy, Default)]
struct Figures {
    found: usize,
    positives: usize,
    false_alarms: usize,
    negatives: usize,
}

/// Counts an engine's results and compares them with the recorded ones. `found` says of each case whether the engine found
/// what the case asks for; of a case in which there is nothing to find, whether it found anything.
pub(crate) fn check(engine: &str, half: Half, found: impl IntoIterator<Item = (Case, bool)>) {
    if half == Half::Locked && !evaluates_locked_half() {
        println!("left out: the locked half is evaluated with EMBODY_TEST_LOCKED=1 only");
        return;
    }
    let mut by_language: BTreeMap<&str, Figures> = BTreeMap::new();
    let mut wrong = String::new();
    for (case, found) in found {
        let figures = by_language.entry(case.language).or_default();
        if case.is_positive() {
            figures.positives += 1;
            figures.found += usize::from(found);
        } else {
            figures.negatives += 1;
            figures.false_alarms += usize::from(found);
        }
        // Single results of the locked half are never shown, so that rules are not fitted to them.
        if found != case.is_positive() && half == Half::Tuning {
            let text = case.text.escape_debug().to_string();
            let _ = writeln!(wrong, "{} {} {}: {text} {}", case.id, case.language, case.label, case.detail);
        }
    }
    let name = if half == Half::Tuning { "tuning" } else { "locked" };
    let total = by_language.values().fold(Figures::default(), |sum, figures| Figures {
        found: sum.found + figures.found,
        positives: sum.positives + figures.positives,
        false_alarms: sum.false_alarms + figures.false_alarms,
        negatives: sum.negatives + figures.negatives,
    });
    let mut report = format!("{wrong}\n");
    for (language, figures) in by_language.iter().chain([(&"all", &total)]) {
        let Figures { found, positives, false_alarms, negatives } = figures;
        let _ = writeln!(
            report,
            "{engine}\t{name}\t{language}\t{found}\t{positives}\t{false_alarms}\t{negatives}"
        );
    }
    println!("{report}");
    let bar = recorded(engine, name);
    assert!(
        total.positives >= bar.positives && total.negatives >= bar.negatives,
        "cases were lost\n{report}"
    );
    assert!(total.found >= bar.found, "{} were found before\n{report}", bar.found);
    assert!(total.false_alarms <= bar.false_alarms, "{} false alarms before\n{report}", bar.false_alarms);
}

fn recorded(engine: &str, half: &str) -> Figures {
    for line in include_str!("figures.tsv").lines() {
        if let [of, in_half, "all", found, positives, false_alarms, negatives] =
            line.split('\t').collect::<Vec<_>>()[..]
            && (of, in_half) == (engine, half)
        {
            let number = |text: &str| text.parse().unwrap();
            return Figures {
                found: number(found),
                positives: number(positives),
                false_alarms: number(false_alarms),
                negatives: number(negatives),
            };
        }
    }
    panic!("figures.tsv has no line `{engine} {half} all`")
}
