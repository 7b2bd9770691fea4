//! What is known about the configured servers without starting them: their last contact, and their tools with class and gate. For
//! `embody server`, `embody status` and `/api/status`; also records what a check has found.

use std::collections::BTreeMap;

use embody_broker::catalogue::{self, CatalogTool, CatalogueCache, FirstListing};
use embody_broker::policy::{Class, ClassFrom, Explained, Facts, Gate, Policy};
use embody_broker::upstream::CheckedServer;
use embody_store::Store;
use embody_store::server_health::ServerHealth;
use serde::Serialize;
use serde_json::{Value, json};

use crate::broker_setup::{self, BODY, MIND};
use crate::config::Config;
use crate::config::settings::Body;
use crate::error::CliError;
use crate::prompt_tools::known_catalogue;
use crate::server_check::{ServerFailure, target};
use crate::time::rfc3339;

/// A tool as the rules see it before the arguments of a call are known.
#[derive(Debug, Serialize)]
pub(crate) struct ServerTool {
    /// The name that hosts are shown.
    pub(crate) name: String,
    pub(crate) body: String,
    pub(crate) tool: String,
    pub(crate) class: Class,
    pub(crate) class_because: &'static str,
    pub(crate) gate: Gate,
    pub(crate) gate_because: &'static str,
    /// The rules that set class or gate, or may do so for some arguments.
    pub(crate) rules: Vec<String>,
    /// Whether a rule looks at the arguments.
    pub(crate) depends_on_arguments: bool,
    /// Why the definition is quarantined.
    pub(crate) quarantined: Option<String>,
}

pub(crate) struct Server {
    pub(crate) name: String,
    /// The program or the URL.
    pub(crate) target: String,
    /// `None` if no session or check has reported it yet.
    pub(crate) health: Option<ServerHealth>,
    /// `None` if it has never listed its tools.
    pub(crate) tools: Option<Vec<ServerTool>>,
}

/// The configured servers that this user may use, in the order of the configuration.
pub(crate) async fn servers(
    config: &Config,
    store: Option<&Store>,
    user: &str,
    owner: &str,
) -> Result<Vec<Server>, CliError> {
    let mut tools = known_tools(config, store, user, owner).await?;
    let health = match store {
        Some(store) => store.server_health().list().await?,
        None => Vec::new(),
    };
    let mut servers = Vec::new();
    for body in broker_setup::usable_bodies(config, user, owner) {
        let name = &body.name;
        let has_listed = match store {
            Some(store) => store.pins().list_last_seen(name).await?.is_some(),
            None => false,
        };
        let own = tools.extract_if(.., |tool| tool.body == *name).collect();
        servers.push(Server {
            name: name.clone(),
            target: target(body),
            health: health.iter().find(|one| one.body == *name).cloned(),
            tools: has_listed.then_some(own),
        });
    }
    Ok(servers)
}

/// The known tools of the embedded servers and of those that this user may use.
pub(crate) async fn known_tools(
    config: &Config,
    store: Option<&Store>,
    user: &str,
    owner: &str,
) -> Result<Vec<ServerTool>, CliError> {
    let catalogue = known_catalogue(config, store, user, owner).await?;
    let rules = broker_setup::policy(config)?.policy;
    let rule = |tool: &CatalogTool| server_tool(tool, config, &rules, user);
    let mut tools: Vec<ServerTool> = catalogue.listed().map(rule).collect();
    // A definition that was never accepted is not listed.
    let is_known = |tool: &&CatalogTool| catalogue.listed().any(|listed| listed.name == tool.name);
    tools.extend(catalogue.quarantined().filter(|tool| !is_known(tool)).map(rule));
    Ok(tools)
}

fn server_tool(tool: &CatalogTool, config: &Config, rules: &Policy, user: &str) -> ServerTool {
    let body = &*tool.upstream;
    let arguments = json!({});
    let facts = Facts {
        tool: &tool.tool,
        body,
        args: &arguments,
        has_extra: false,
        channel: "mcp",
        user,
        session: "test",
    };
    let is_trusted = tool.is_mind
        || tool.is_embedded
        || config.bodies.iter().any(|one| one.name == body && one.trust_annotations == Some(true));
    let annotations = match tool.is_mind {
        true => embody_broker::policy::Annotations::of_mind(&tool.tool),
        false => tool.annotations,
    };
    let explained = rules.explain(&facts, annotations, is_trusted);
    let has_condition = |index: usize| config.policy.rules.get(index).is_some_and(|rule| rule.when.is_some());
    let relevant = explained.matches.iter().filter(|found| {
        found.sets_class || found.sets_gate || (has_condition(found.index) && found.holds != Some(true))
    });
    let rule_name = |index: usize| {
        let key = format!("policy.rule[{index}]");
        match config.origin(&format!("{key}.tools")).source() {
            Some(source) => format!("{key} ({source})"),
            None => key,
        }
    };
    ServerTool {
        name: tool.name.clone(),
        body: body.to_owned(),
        tool: tool.tool.clone(),
        class: explained.ruled.class,
        class_because: class_because(explained.class_from, body, true, is_trusted),
        gate: explained.ruled.gate,
        gate_because: gate_because(&explained),
        rules: relevant.map(|found| rule_name(found.index)).collect(),
        depends_on_arguments: explained.matches.iter().any(|found| has_condition(found.index)),
        quarantined: tool.quarantine_reason().map(|reason| reason.to_string()),
    }
}

/// `is_seen`: whether the server has ever listed the tool.
pub(crate) fn class_because(from: ClassFrom, body: &str, is_seen: bool, is_trusted: bool) -> &'static str {
    match (from, body) {
        (ClassFrom::Rule | ClassFrom::Name, _) => from.words(),
        (_, BODY) if is_seen => "by the annotation of the embedded body",
        (_, MIND) => ClassFrom::Name.words(),
        // The annotation of a trusted server counts.
        (ClassFrom::Hint, _) if is_trusted => ClassFrom::Annotations.words(),
        _ => from.words(),
    }
}

pub(crate) fn gate_because(explained: &Explained) -> &'static str {
    match explained.matches.iter().any(|found| found.sets_gate) {
        true => "set by a rule",
        false if explained.ruled.via.is_empty() => "a rule asks, but the rules allow no place to approve",
        false => "default of the class",
    }
}

/// How many tools each class has, in the order of the classes, without those that have none.
pub(crate) fn class_counts(tools: &[ServerTool]) -> Vec<(Class, usize)> {
    let count = |class: Class| (class, tools.iter().filter(|tool| tool.class == class).count());
    Class::ALL.into_iter().map(count).filter(|(_, count)| *count > 0).collect()
}

impl Server {
    /// `ok` or `failed` at the last contact, else `unknown`.
    pub(crate) fn state(&self) -> &'static str {
        match &self.health {
            None => "unknown",
            Some(health) if health.is_ok => "ok",
            Some(_) => "failed",
        }
    }

    pub(crate) fn json(&self) -> Value {
        let health = self.health.as_ref();
        let error = health.and_then(|health| {
            let message = health.error.as_ref()?;
            Some(json!({"message": message, "at": health.error_at.map(rfc3339)}))
        });
        json!({
            "name": self.name,
            "target": self.target,
            "state": self.state(),
            "checked_at": health.map(|health| rfc3339(health.checked_at)),
            "last_error": error,
            "tools": self.tools.as_ref().map(Vec::len),
            "classes": self.tools.as_deref().map(classes_json),
            "quarantined": self.tools.as_ref().map(|tools| quarantined(tools)),
        })
    }
}

pub(crate) fn quarantined(tools: &[ServerTool]) -> usize {
    tools.iter().filter(|tool| tool.quarantined.is_some()).count()
}

pub(crate) fn classes_json(tools: &[ServerTool]) -> BTreeMap<&'static str, usize> {
    class_counts(tools).into_iter().map(|(class, count)| (class.name(), count)).collect()
}

/// Records what a check has found: its health, and the tools that it listed, as a session does.
pub(crate) async fn record_check(
    store: &Store,
    body: &Body,
    checked: &Result<CheckedServer, ServerFailure>,
) -> Result<(), CliError> {
    let error = checked.as_ref().err().map(|failure| failure.message.as_str());
    store.server_health().record(&body.name, error).await?;
    let Ok(checked) = checked else { return Ok(()) };
    let role = broker_setup::role(body);
    let source = catalogue::Source {
        upstream: body.name.as_str().into(),
        role: &role,
        is_embedded: false,
        is_live: true,
        first_listing: FirstListing::InSession,
        tools: checked.tools.as_slice().into(),
    };
    CatalogueCache::default().of(store, &[source]).await?;
    if checked.left_out.is_none() {
        let names: Vec<String> = checked.tools.iter().map(|tool| tool.name.clone()).collect();
        store.pins().set_tools(&body.name, &names).await?;
    }
    Ok(())
}
