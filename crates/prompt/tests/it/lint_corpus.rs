//! The lint on its labelled texts: how many override attempts it finds and how many harmless texts it reports.
//! `docs/text-rules.md` describes the tables and how to add a case.

#[path = "../../../text/corpus/mod.rs"]
mod corpus;

use corpus::{Half, cases, check};
use embody_prompt::lint::override_attempts;

fn check_half(half: Half) {
    check(
        "lint",
        half,
        cases("lint", half).into_iter().map(|case| {
            let found = !override_attempts(&case.text).is_empty();
            (case, found)
        }),
    );
}

// spec: B-10
#[test]
fn attempts_are_found_and_harmless_texts_left_alone() {
    check_half(Half::Tuning);
}

// spec: B-10
#[test]
fn the_locked_half_is_not_worse_than_recorded() {
    check_half(Half::Locked);
}

// spec: B-10
#[test]
fn every_rule_about_overriding_is_exercised() {
    use embody_prompt::lint::Rule;
    let found: std::collections::BTreeSet<Rule> = cases("lint", Half::Tuning)
        .iter()
        .filter(|case| case.is_positive())
        .flat_map(|case| override_attempts(&case.text))
        .map(|finding| finding.rule)
        .collect();
    let expected = Rule::ALL.into_iter().take_while(|&rule| rule != Rule::PrivateKey);
    let unseen: Vec<&str> = expected.filter(|rule| !found.contains(rule)).map(Rule::name).collect();
    assert!(unseen.is_empty(), "no attempt is reported as {unseen:?}");
}
