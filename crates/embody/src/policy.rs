//! From `[policy]` to the rules that the broker goes by, and the version that an approval is bound to.

use embody_broker::policy::{Class, Condition, Gate, Glob, Policy, Rule, Via};
use serde_json::json;

use crate::config::choices;
use crate::config::resolved::{Config, Policy as Configured, Rule as ConfiguredRule};
use crate::failure::Failure;

/// The rules, ready to be asked.
pub(crate) struct Rules {
    /// What they say.
    pub(crate) policy: Policy,
    /// Another one whenever anything in `[policy]` is another: an approval given under other rules does not count.
    pub(crate) version: String,
}

/// The rules that are configured.
///
/// # Errors
/// When a `when` is no condition. Loading the configuration has found that out before.
pub(crate) fn of(config: &Config) -> Result<Rules, Failure> {
    let rules = config.policy.rules.iter().map(rule).collect::<Result<Vec<_>, _>>();
    let rules = rules.map_err(|error| Failure::usage(&error))?;
    Ok(Rules { policy: Policy::new(rules), version: version(&config.policy) })
}

fn rule(rule: &ConfiguredRule) -> Result<Rule, embody_broker::policy::WrongCondition> {
    Ok(Rule {
        tools: rule.tools.iter().map(|pattern| Glob::new(pattern)).collect(),
        class: rule.class.map(class),
        gate: rule.gate.map(gate),
        via: rule.via.as_ref().map(|ways| ways.iter().copied().map(via).collect()),
        when: rule.when.as_deref().map(Condition::new).transpose()?,
        reason: rule.reason.clone(),
    })
}

fn version(policy: &Configured) -> String {
    let rules: Vec<_> = policy
        .rules
        .iter()
        .map(|rule| json!([rule.tools, rule.class, rule.gate, rule.via, rule.when, rule.reason]))
        .collect();
    let (wait, timeout) = (policy.ask_wait.as_secs(), policy.ask_timeout.as_secs());
    let all = json!([policy.mind_down, wait, timeout, rules]).to_string();
    blake3::hash(all.as_bytes()).to_hex().to_string()
}

fn class(class: choices::Class) -> Class {
    match class {
        choices::Class::Read => Class::Read,
        choices::Class::Write => Class::Write,
        choices::Class::HumanVisibleWrite => Class::HumanVisibleWrite,
        choices::Class::Destructive => Class::Destructive,
    }
}

fn gate(gate: choices::Gate) -> Gate {
    match gate {
        choices::Gate::Allow => Gate::Allow,
        choices::Gate::Ask => Gate::Ask,
        choices::Gate::Deny => Gate::Deny,
    }
}

fn via(via: choices::Via) -> Via {
    match via {
        choices::Via::Elicitation => Via::Elicitation,
        choices::Via::Console => Via::Console,
        choices::Via::Cli => Via::Cli,
        choices::Via::Telegram => Via::Telegram,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::config::Inputs;

    fn rules(text: &str) -> Rules {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("embody.toml");
        std::fs::write(&file, text).unwrap();
        let inputs = Inputs {
            file: Some(file),
            workspace: PathBuf::from("nowhere"),
            env: Vec::new(),
            overrides: Vec::new(),
        };
        of(&Config::load(inputs).unwrap()).unwrap()
    }

    #[test]
    fn another_policy_is_another_version() {
        let rule = "[[policy.rule]]\ntools = [\"send_*\"]\ngate = \"ask\"\n";
        let texts = [
            String::new(),
            "[policy]\nmind_down = \"warn\"".to_owned(),
            "[policy]\nask_wait_s = 7".to_owned(),
            "[policy]\nask_timeout_s = 301".to_owned(),
            rule.to_owned(),
            rule.replace("ask", "deny"),
            rule.replace("send_*", "send"),
            format!("{rule}class = \"read\""),
            format!("{rule}via = [\"cli\"]"),
            format!("{rule}when = 'user == \"ann\"'"),
            format!("{rule}reason = \"because\""),
            format!("{rule}{rule}"),
        ];
        let mut versions: Vec<String> = texts.iter().map(|text| rules(text).version).collect();
        assert_eq!(versions[0], rules("[log]\nlevel = \"debug\"").version);
        versions.sort_unstable();
        versions.dedup();
        assert_eq!(versions.len(), texts.len());
    }
}
