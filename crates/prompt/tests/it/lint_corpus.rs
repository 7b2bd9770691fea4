//! The corpus of override attempts and harmless texts: how much of the first is found, how much of the second is
//! left alone. To add a case, add a record to a file under `tests/lint/attempts` or `tests/lint/harmless`: a line
//! `=== name`, then the text. `\u{200b}` stands for the character with that number, so that nothing is invisible.

use std::fs;
use std::path::Path;

use embody_prompt::lint::override_attempts;

struct Case {
    file: String,
    name: String,
    text: String,
}

// spec: B-10
#[test]
fn attempts_are_found_and_harmless_texts_left_alone() {
    let (attempts, harmless) = (cases("attempts"), cases("harmless"));
    let missed: Vec<String> =
        attempts.iter().filter(|case| override_attempts(&case.text).is_empty()).map(Case::told).collect();
    let flagged: Vec<String> = harmless.iter().filter_map(Case::told_if_flagged).collect();
    let found_share = share(attempts.len() - missed.len(), attempts.len());
    let flagged_share = share(flagged.len(), harmless.len());
    let report = format!(
        "found {found_share:.1} % of {} attempts, flagged {flagged_share:.1} % of {} harmless texts\nmissed:\n{}\nflagged:\n{}",
        attempts.len(),
        harmless.len(),
        missed.join("\n"),
        flagged.join("\n"),
    );
    println!("{report}");
    assert!(attempts.len() >= 90, "only {} attempts", attempts.len());
    assert!(harmless.len() >= 260, "only {} harmless texts", harmless.len());
    assert!(found_share >= 90.0 && flagged_share <= 2.0, "{report}");
}

// spec: B-10
#[test]
fn every_rule_about_overriding_is_exercised() {
    use embody_prompt::lint::Rule;
    let found: std::collections::BTreeSet<Rule> = cases("attempts")
        .iter()
        .flat_map(|case| override_attempts(&case.text))
        .map(|finding| finding.rule)
        .collect();
    let expected = Rule::ALL.into_iter().take_while(|&rule| rule != Rule::PrivateKey);
    let unseen: Vec<&str> = expected.filter(|rule| !found.contains(rule)).map(Rule::name).collect();
    assert!(unseen.is_empty(), "no attempt is reported as {unseen:?}");
}

impl Case {
    fn told(&self) -> String {
        format!(
            "  {} `{}`: {}",
            self.file,
            self.name,
            self.text.chars().take(160).collect::<String>().replace('\n', " / ")
        )
    }

    fn told_if_flagged(&self) -> Option<String> {
        let findings = override_attempts(&self.text);
        let first = findings.first()?;
        Some(format!(
            "  {} `{}`: {} at line {}: {}",
            self.file,
            self.name,
            first.rule.name(),
            first.line,
            first.excerpt
        ))
    }
}

fn share(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole as f64
}

/// Every record of every file in one folder, in a stable order.
fn cases(folder: &str) -> Vec<Case> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lint").join(folder);
    let mut files: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut cases = Vec::new();
    for path in files {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        for record in text.split("\n=== ").map(|record| record.trim_start_matches("=== ")) {
            let (name, body) =
                record.split_once('\n').unwrap_or_else(|| panic!("`{file}` has a record without text"));
            cases.push(Case {
                file: file.clone(),
                name: name.trim().to_owned(),
                text: unescape(body.trim_end()),
            });
        }
    }
    cases
}

/// Turns `\u{202e}` into the character it names.
fn unescape(text: &str) -> String {
    let mut parts = text.split("\\u{");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_once('}').unwrap();
        out.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
        out.push_str(rest);
    }
    out
}
