//! The examples of a rule: calls that it must match and calls that it must not, checked when the configuration is read. They
//! do not determine the decision, because other rules apply too.

use embody_broker::arguments::Arguments;
use embody_broker::policy::{Condition, Facts, Glob};
use serde_json::value::RawValue;

use super::check::Checks;
use super::error::quoted;
use super::mask;
use super::origin::KeyPath;

/// The subject of a rule.
pub(super) struct About<'a> {
    pub(super) tools: &'a [String],
    pub(super) when: Option<&'a str>,
}

/// Checks calls that the rule must match.
pub(super) fn check(path: &KeyPath, texts: &[String], about: &About<'_>, checks: &mut Checks<'_>) {
    let hint = "change the rule or the example: the rule does not do what it was written for";
    each(path, texts, about, checks, |verdict| match verdict {
        Verdict::Holds => None,
        Verdict::OtherTool => Some(("but no pattern of `tools` names that tool", hint)),
        Verdict::Not => Some(("but `when` is not true of it", hint)),
        Verdict::Unknown => Some((UNKNOWN, GUARDED)),
    });
}

/// Checks calls that the rule must not match.
pub(super) fn check_counter(path: &KeyPath, texts: &[String], about: &About<'_>, checks: &mut Checks<'_>) {
    let hint = "change the rule or the example: the rule does more than it was written for";
    each(path, texts, about, checks, |verdict| match verdict {
        Verdict::OtherTool | Verdict::Not => None,
        Verdict::Holds => Some(("but the rule holds for it", hint)),
        // An undecided rule still asks and denies.
        Verdict::Unknown => Some((UNKNOWN, GUARDED)),
    });
}

const UNKNOWN: &str = "and nobody can tell whether `when` is true of it";
const GUARDED: &str = "guard the condition, as in has(args.to) && args.to.endsWith(\"@example.com\")";
const FORM: &str = "write TOOL or BODY/TOOL, and its arguments: 'send_email {\"to\": \"bob@example.com\"}'";

enum Verdict {
    Holds,
    OtherTool,
    Not,
    Unknown,
}

fn each(
    path: &KeyPath,
    texts: &[String],
    about: &About<'_>,
    checks: &mut Checks<'_>,
    wrong: impl Fn(Verdict) -> Option<(&'static str, &'static str)>,
) {
    for (index, text) in texts.iter().enumerate() {
        let path = path.index(index);
        let told = match verdict(text, about) {
            Ok(verdict) => wrong(verdict).map(|(what, hint)| (what.to_owned(), hint)),
            Err(reason) => Some((format!("which is no call: {}", mask::text(&reason)), FORM)),
        };
        if let Some((what, hint)) = told {
            checks.fail(&path, format!("`{path}` is {}, {what}", quoted(text)), Some(hint));
        }
    }
}

/// Evaluates it like `embody policy test`: channel `mcp`, as the owner.
fn verdict(text: &str, about: &About<'_>) -> Result<Verdict, String> {
    let (name, args) = match text.trim().split_once(char::is_whitespace) {
        Some((name, args)) => (name, Some(args.trim().to_owned())),
        None => (text.trim(), None),
    };
    if name.is_empty() || name.starts_with('{') {
        return Err("it names no tool".to_owned());
    }
    let (body, tool) = name.split_once('/').unwrap_or(("", name));
    let raw = args.map(RawValue::from_string).transpose().map_err(|error| error.to_string())?;
    let args = Arguments::read(raw.as_deref()).map_err(|error| error.to_string())?;
    if !about.tools.iter().any(|pattern| Glob::new(pattern).matches(body, tool)) {
        return Ok(Verdict::OtherTool);
    }
    // An invalid condition was already reported.
    let Some(when) = about.when.and_then(|when| Condition::new(when).ok()) else { return Ok(Verdict::Holds) };
    let facts = Facts { tool, body, args: args.value(), channel: "mcp", user: "owner", session: "test" };
    Ok(match when.holds(&facts) {
        Some(true) => Verdict::Holds,
        Some(false) => Verdict::Not,
        None => Verdict::Unknown,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Config, ConfigError, Inputs};

    const FOR_EVE: &str = "when = 'args.to == \"eve\"'\n";

    /// A rule for `send_*` with these additional lines.
    fn load(more: &str) -> Result<Config, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("embody.toml");
        std::fs::write(&file, format!("[[policy.rule]]\ntools = [\"send_*\"]\ngate = \"ask\"\n{more}"))
            .unwrap();
        let workspace = folder.path().to_owned();
        Config::load(Inputs { file: Some(file), workspace, env: Vec::new(), overrides: Vec::new() })
    }

    // spec: N-10
    #[test]
    fn good_examples_change_nothing() {
        load("examples = [\"send_email\", 'mail/send_note {\"n\": 1}']\ncounterexamples = [\"whoami {}\"]")
            .unwrap();
        let calls =
            "examples = ['send_email {\"to\": \"eve\"}']\ncounterexamples = ['send_email {\"to\": \"bob\"}']";
        load(&format!("{FOR_EVE}{calls}")).unwrap();
    }

    // spec: N-10
    #[test]
    fn a_wrong_example_is_told_with_its_place() {
        let for_eve = |more: &str| format!("{FOR_EVE}{more}");
        let other = "examples = [\"send_email\", \"draft {}\"]".to_owned();
        let no_call = "examples = ['{\"tool\": \"x\"}', \"send_email {\", \"send_email [1]\"]".to_owned();
        for (more, line, key, what) in [
            (other, 4, "examples[1]` is `draft {}`", "no pattern of `tools` names that tool"),
            (
                for_eve("examples = ['send_a {\"to\": \"bob\"}']"),
                5,
                "examples[0]`",
                "`when` is not true of it",
            ),
            (for_eve("examples = [\"send_a\"]"), 5, "examples[0]`", "nobody can tell whether `when` is true"),
            (
                for_eve("counterexamples = ['send_a {\"to\": \"eve\"}']"),
                5,
                "counterexamples[0]`",
                "the rule holds for it",
            ),
            (for_eve("counterexamples = [\"send_a\"]"), 5, "counterexamples[0]`", "nobody can tell whether"),
            (no_call.clone(), 4, "examples[0]`", "which is no call: it names no tool"),
            (no_call.clone(), 4, "examples[1]`", "which is no call: EOF while parsing"),
            (no_call, 4, "examples[2]`", "which is no call: "),
        ] {
            let error = load(&more).unwrap_err();
            let told: Vec<String> = error.problems().iter().map(ToString::to_string).collect();
            let place = format!("embody.toml:{line}: `policy.rule[0].{key}");
            assert!(told.iter().any(|one| one.contains(&place) && one.contains(what)), "{more}: {told:#?}");
        }
    }

    #[test]
    fn half_a_rule_is_no_measure_for_examples() {
        let error = load("when = \"args.to ==\"\nexamples = [\"draft\"]").unwrap_err();
        assert_eq!(error.problems().len(), 1, "{}", error.message());
    }
}
