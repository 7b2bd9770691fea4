//! Builds the policy of the broker from `[policy]`, and the version that approvals are bound to.

use embody_broker::policy::{Condition, Glob, Policy, Rule};
use serde_json::json;

use crate::config::resolved::{Config, Policy as Configured, Rule as ConfiguredRule};
use crate::error::CliError;

pub(crate) struct LoadedPolicy {
    pub(crate) policy: Policy,
    /// Differs whenever anything in `[policy]` differs: an approval given under another policy is void.
    pub(crate) version: String,
}

/// Fails on an invalid `when`, which loading the configuration already rejects.
pub(crate) fn load(config: &Config) -> Result<LoadedPolicy, CliError> {
    let rules = config.policy.rules.iter().map(rule).collect::<Result<Vec<_>, _>>();
    let rules = rules.map_err(|error| CliError::usage(&error))?;
    Ok(LoadedPolicy { policy: Policy::new(rules), version: version(&config.policy) })
}

fn rule(rule: &ConfiguredRule) -> Result<Rule, embody_broker::policy::WrongCondition> {
    Ok(Rule {
        tools: rule.tools.iter().map(|pattern| Glob::new(pattern)).collect(),
        class: rule.class.map(Into::into),
        gate: rule.gate.map(Into::into),
        via: rule.via.as_ref().map(|ways| ways.iter().map(|way| (*way).into()).collect()),
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::config::Inputs;

    fn rules(text: &str) -> LoadedPolicy {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("embody.toml");
        std::fs::write(&file, text).unwrap();
        let inputs = Inputs {
            file: Some(file),
            workspace: PathBuf::from("nowhere"),
            env: Vec::new(),
            overrides: Vec::new(),
        };
        load(&Config::load(inputs).unwrap()).unwrap()
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
