//! The parameters of `initialize` that a server receives from us, and the result that it returns.

use std::collections::BTreeMap;
use std::sync::Arc;

use embody_wire::InitializeParams;
use embody_wire::server::TASKS;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::Role;
use crate::instructions::LONGEST;

/// The host's parameters for this server. Declares `sampling` only if the server may use the host's model, `roots` only if they
/// are forwarded or replaced, and tasks only if the host's era has them. A mind is also called by the broker itself, which
/// waits for results.
pub(crate) fn params_for_upstream(
    host: &InitializeParams,
    role: &Role,
    is_stateless: bool,
) -> InitializeParams {
    let may_sample = matches!(role, Role::Body(body) if body.sampling);
    let capabilities = host.capabilities.clone();
    let capabilities =
        if may_sample { capabilities } else { capabilities.as_deref().and_then(without_sampling) };
    let may_be_a_task = is_stateless && !role.is_mind();
    let capabilities =
        if may_be_a_task { capabilities } else { capabilities.as_deref().and_then(without_tasks) };
    let capabilities = role.roots().capabilities(capabilities.as_deref());
    InitializeParams { capabilities, ..host.clone() }
}

/// The capabilities without `sampling`; `None` if they are not an object.
fn without_sampling(capabilities: &RawValue) -> Option<Box<RawValue>> {
    let mut members: BTreeMap<String, &RawValue> = serde_json::from_str(capabilities.get()).ok()?;
    match members.remove("sampling") {
        None => Some(capabilities.to_owned()),
        Some(_) => to_raw_value(&members).ok(),
    }
}

/// The capabilities without the tasks extension; `None` if they are not an object.
fn without_tasks(capabilities: &RawValue) -> Option<Box<RawValue>> {
    let mut members: BTreeMap<String, &RawValue> = serde_json::from_str(capabilities.get()).ok()?;
    let extensions = members.get("extensions").map(|extensions| extensions.get());
    let extensions: Option<BTreeMap<String, &RawValue>> =
        extensions.and_then(|extensions| serde_json::from_str(extensions).ok());
    let Some(mut extensions) = extensions.filter(|extensions| extensions.contains_key(TASKS)) else {
        return Some(capabilities.to_owned());
    };
    extensions.remove(TASKS);
    let extensions = to_raw_value(&extensions).ok()?;
    members.insert("extensions".to_owned(), &extensions);
    to_raw_value(&members).ok()
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct InitializeResult {
    pub(super) capabilities: Option<Map<String, Value>>,
    server_info: Option<Info>,
    instructions: Value,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SentInstructions {
    /// Not connected yet.
    #[default]
    Unknown,
    /// The server sends no instructions.
    Absent,
    Text(Arc<str>),
    /// Longer than the limit, with the number of bytes.
    TooLong(usize),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Info {
    name: String,
}

impl InitializeResult {
    /// Parses the result; members that cannot be parsed count as missing.
    pub(super) fn read(raw: &RawValue) -> Self {
        serde_json::from_str(raw.get()).unwrap_or_default()
    }

    /// Whether the server is an embody broker: connecting to it could start this one again.
    pub(super) fn is_broker(&self) -> bool {
        self.server_info.as_ref().is_some_and(|info| info.name == crate::broker::NAME)
    }

    pub(super) fn has_tools(&self) -> bool {
        self.capabilities.as_ref().is_some_and(|capabilities| capabilities.contains_key("tools"))
    }

    pub(super) fn instructions(&self) -> SentInstructions {
        match self.instructions.as_str().map(str::trim) {
            None | Some("") => SentInstructions::Absent,
            Some(text) if text.len() > LONGEST => SentInstructions::TooLong(text.len()),
            Some(text) => SentInstructions::Text(Arc::from(text)),
        }
    }

    pub(super) fn into_capabilities(self) -> Arc<Map<String, Value>> {
        Arc::new(self.capabilities.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::super::BodySpec;
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn sampling_is_told_only_to_those_who_may() {
        let capabilities = |text: &str, role: &Role| {
            let host = InitializeParams { capabilities: Some(raw(text)), ..InitializeParams::default() };
            let params = params_for_upstream(&host, role, true);
            params.capabilities.map(|capabilities| capabilities.get().to_owned())
        };
        let may = Role::Body(BodySpec { sampling: true, ..BodySpec::default() });
        let all = r#"{ "sampling":{}, "roots":{"listChanged":true}, "x":1.0}"#;
        assert_eq!(capabilities(all, &may).as_deref(), Some(all));
        let less = r#"{"roots":{"listChanged":true},"x":1.0}"#;
        for role in [Role::Mind, Role::Body(BodySpec::default())] {
            assert_eq!(capabilities(all, &role).as_deref(), Some(less));
            assert_eq!(
                capabilities(r#"{ "x":{"sampling":{}} }"#, &role).as_deref(),
                Some(r#"{ "x":{"sampling":{}} }"#)
            );
            assert_eq!(capabilities("[]", &role), None);
        }
    }

    #[test]
    fn tasks_are_told_only_of_hosts_that_have_them_and_not_to_a_mind() {
        let all = r#"{ "extensions":{"io.modelcontextprotocol/tasks":{}, "x/y":{"n":1.0}}}"#;
        let host = InitializeParams { capabilities: Some(raw(all)), ..InitializeParams::default() };
        let capabilities = |role: &Role, is_stateless| {
            params_for_upstream(&host, role, is_stateless).capabilities.unwrap().get().to_owned()
        };
        let body = Role::Body(BodySpec::default());
        assert_eq!(capabilities(&body, true), all);
        let less = r#"{"extensions":{"x/y":{"n":1.0}}}"#;
        assert_eq!(
            (capabilities(&body, false), capabilities(&Role::Mind, true)),
            (less.to_owned(), less.to_owned())
        );
    }

    #[test]
    fn instructions_are_read_whatever_else_is_wrong() {
        let of = |text: &str| InitializeResult::read(&raw(text)).instructions();
        assert_eq!(of(r#"{"instructions":" Be kind.\n"}"#), SentInstructions::Text("Be kind.".into()));
        for text in ["{}", r#"{"instructions":null}"#, r#"{"instructions":" \n"}"#, r#"{"instructions":7}"#] {
            assert_eq!(of(text), SentInstructions::Absent, "{text}");
        }
        let long = format!(r#"{{"instructions":"{}"}}"#, "x".repeat(LONGEST + 1));
        assert_eq!(of(&long), SentInstructions::TooLong(LONGEST + 1));
        let odd = InitializeResult::read(&raw(r#"{"capabilities":{"tools":{}},"instructions":[1]}"#));
        assert!(odd.has_tools(), "the rest is read all the same");
    }

    // spec: N-06
    #[test]
    fn a_broker_is_known_by_its_name() {
        let of = |text: &str| InitializeResult::read(&raw(text));
        assert!(of(r#"{"serverInfo":{"name":"embody-broker","x":1}}"#).is_broker());
        for text in [r#"{"serverInfo":{"name":"embody"}}"#, r#"{"serverInfo":7}"#, "{}", "[]"] {
            assert!(!of(text).is_broker(), "{text}");
        }
        assert!(of(r#"{"capabilities":{"tools":{}}}"#).has_tools() && !of("{}").has_tools());
    }
}
