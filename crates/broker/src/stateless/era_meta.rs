//! Strips the members of the stateless era from requests and results, and adds them. Shared members stay byte-identical.

use embody_wire::Outcome;
use embody_wire::message::ErrorObject;
use embody_wire::server::{code, failure_with};
use serde_json::Value;
use serde_json::json;
use serde_json::value::RawValue;

use crate::broker;
use crate::json::Members;
pub(super) use crate::params::member;
use crate::params::meta_without;

/// The prefix of the stateless era's keys in `_meta`.
const ERA_PREFIX: &str = "io.modelcontextprotocol/";
/// How long a host may cache a list, in milliseconds. Listeners also receive changes.
const LIST_TTL_MS: u32 = 5_000;

/// The parameters of this method without the members that the stateless era adds, and without those that it removed: in this
/// era the server decides whether a call becomes a task.
pub(super) fn strip_era_params(params: Option<Box<RawValue>>, method: &str) -> Option<Box<RawValue>> {
    let params = params?;
    let Ok(Members(members)) = serde_json::from_str::<Members<'_>>(params.get()) else { return Some(params) };
    let mut kept = Vec::with_capacity(members.len());
    for (name, value) in members {
        match &*name {
            // The answers to a task's input requests are the content of this method.
            "inputResponses" if method == "tasks/update" => kept.push(member(&name, value.get())),
            "inputResponses" | "requestState" => {}
            "task" if method == "tools/call" => {}
            "_meta" => kept.extend(
                meta_without(value, |name| name.starts_with(ERA_PREFIX)).map(|meta| member(&name, &meta)),
            ),
            _ => kept.push(member(&name, value.get())),
        }
    }
    RawValue::from_string(format!("{{{}}}", kept.join(","))).ok()
}

pub(super) fn strip_era_result(result: Box<RawValue>, method: &str) -> Box<RawValue> {
    let is_era = |name: &str| match name {
        "resultType" => true,
        "ttlMs" | "cacheScope" => is_cacheable(method),
        _ => false,
    };
    let Ok(Members(members)) = serde_json::from_str::<Members<'_>>(result.get()) else { return result };
    let server = |(name, value): &(String, &RawValue)| name == "_meta" && value.get().contains(SERVER_INFO);
    if !members.iter().any(|one| is_era(&one.0) || server(one)) {
        return result;
    }
    let kept = members.iter().filter(|(name, _)| !is_era(name)).filter_map(|one| {
        let (name, value) = one;
        let value = if server(one) {
            meta_without(value, |name| name == SERVER_INFO)?
        } else {
            value.get().to_owned()
        };
        Some(member(name, &value))
    });
    let kept: Vec<String> = kept.collect();
    RawValue::from_string(format!("{{{}}}", kept.join(","))).unwrap_or(result)
}

/// Whether results of this method have a cache lifetime.
fn is_cacheable(method: &str) -> bool {
    matches!(
        method,
        "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" | "resources/read"
    )
}

pub(super) fn add_era_meta(outcome: Outcome, method: &str) -> Outcome {
    match outcome {
        Outcome::Result(result) => Outcome::Result(with_era_members(result, method)),
        Outcome::Error(error) if method == "resources/read" => Outcome::Error(without_resource_code(error)),
        error @ Outcome::Error(_) => error,
    }
}

fn with_era_members(result: Box<RawValue>, method: &str) -> Box<RawValue> {
    let Ok(Members(members)) = serde_json::from_str::<Members<'_>>(result.get()) else { return result };
    let has = |name: &str| members.iter().any(|(known, _)| known == name);
    let mut added = Vec::new();
    let mut add = |name: &str, value: Value| {
        if !has(name) {
            added.push(member(name, &value.to_string()));
        }
    };
    let is_foreign = is_foreign(&members, method == "tools/call");
    if !is_foreign {
        add("resultType", "complete".into());
    }
    if is_cacheable(method) {
        let ttl_ms = if method == "resources/read" { 0 } else { LIST_TTL_MS };
        add("ttlMs", ttl_ms.into());
        add("cacheScope", "private".into());
    }
    add("_meta", json!({SERVER_INFO: broker::about()}));
    if is_foreign {
        return as_complete(added, &members).unwrap_or(result);
    }
    if added.is_empty() {
        return result;
    }
    let text = result.get().trim_start();
    let rest = text.strip_prefix('{').unwrap_or(text).trim_start();
    let comma = if rest.starts_with('}') { "" } else { "," };
    RawValue::from_string(format!("{{{}{comma}{rest}", added.join(","))).unwrap_or(result)
}

/// Whether a result has a `resultType` that only the broker may set: all input requests are answered by now, and the broker
/// knows which calls continue as tasks.
fn is_foreign(members: &[(String, &RawValue)], may_be_a_task: bool) -> bool {
    let kinds = || members.iter().filter(|(name, _)| name == "resultType").map(|(_, value)| value.get());
    let says_more = |kind| match serde_json::from_str::<String>(kind).as_deref() {
        Ok("input_required") => true,
        Ok("task") => !may_be_a_task,
        _ => false,
    };
    kinds().count() > 1 || kinds().any(says_more)
}

/// These members plus `resultType: complete`.
fn as_complete(mut written: Vec<String>, members: &[(String, &RawValue)]) -> Option<Box<RawValue>> {
    written.push(member("resultType", "\"complete\""));
    let rest = members.iter().filter(|(name, _)| name != "resultType");
    written.extend(rest.map(|(name, value)| member(name, value.get())));
    RawValue::from_string(format!("{{{}}}", written.join(","))).ok()
}

/// Replaces a `resultType` that only the broker may set in the result of a task; `None` if nothing changes.
pub(super) fn scrub_result(result: &RawValue) -> Option<Box<RawValue>> {
    let Members(members) = serde_json::from_str(result.get()).ok()?;
    if is_foreign(&members, false) { as_complete(Vec::new(), &members) } else { None }
}

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// The stateless era has no error code for a missing resource.
fn without_resource_code(error: Box<RawValue>) -> Box<RawValue> {
    let Ok(read) = serde_json::from_str::<ErrorObject>(error.get()) else { return error };
    if read.code != code::RESOURCE_NOT_FOUND {
        return error;
    }
    let data = serde_json::from_str::<Value>(error.get()).ok().and_then(|error| error.get("data").cloned());
    match failure_with(code::INVALID_PARAMS, read.message, data) {
        Outcome::Error(error) | Outcome::Result(error) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn parameters_lose_only_what_is_the_eras() {
        let of = |text: &str, method| strip_era_params(Some(raw(text)), method).unwrap().get().to_owned();
        let without = |text: &str| of(text, "tools/call");
        let meta = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
        assert_eq!(
            without(&format!(
                r#"{{"name":"x","arguments":{{"a":1.0, "b":1}},"_meta":{{{meta},"progressToken":1.0}},"requestState":"s","inputResponses":{{}}}}"#
            )),
            r#"{"name":"x","arguments":{"a":1.0, "b":1},"_meta":{"progressToken":1.0}}"#
        );
        assert_eq!(without(&format!(r#"{{"_meta":{{{meta}}}}}"#)), "{}");
        assert!(strip_era_params(None, "tools/call").is_none());
        let answers = r#"{"taskId":"t","inputResponses":{"a":{"x":1.0}}}"#;
        assert_eq!(of(answers, "tasks/update"), answers);
        let task = r#"{"name":"x","task":{"ttl":1}}"#;
        assert_eq!(
            (of(task, "tools/call"), of(task, "x/y")),
            (r#"{"name":"x"}"#.to_owned(), task.to_owned())
        );
    }

    #[test]
    fn results_gain_what_is_missing_and_keep_the_rest() {
        let dressed = |text: &str, method: &str| {
            let Outcome::Result(result) = add_era_meta(Outcome::Result(raw(text)), method) else { panic!() };
            result.get().to_owned()
        };
        let list: Value = serde_json::from_str(&dressed(r#"{"tools":[]}"#, "tools/list")).unwrap();
        assert_eq!((&list["resultType"], &list["cacheScope"]), (&json!("complete"), &json!("private")));
        assert!(list["ttlMs"].is_number() && list["_meta"][SERVER_INFO]["name"].is_string());
        let called = dressed(r#"{ "content":[{"x":1.0}],"_meta":{"a":1}}"#, "tools/call");
        assert_eq!(called, r#"{"resultType":"complete","content":[{"x":1.0}],"_meta":{"a":1}}"#);
        assert!(dressed("{}", "tools/call").ends_with("}}}"), "an empty one stays an object");
        let task = r#"{"resultType":"task","_meta":{}}"#;
        assert_eq!(dressed(task, "tools/call"), task);
        assert_eq!(dressed(task, "tasks/get"), r#"{"resultType":"complete","_meta":{}}"#);
        let other = r#"{"resultType":"other","_meta":{}}"#;
        assert_eq!(dressed(other, "x/y"), other);
    }

    #[test]
    fn results_lose_only_what_is_the_eras() {
        let without = |text: &str, method| strip_era_result(raw(text), method).get().to_owned();
        let called = r#"{"resultType":"complete", "content":[{"x":1.0, "resultType":"y"}],"ttlMs":1}"#;
        assert_eq!(without(called, "tools/call"), r#"{"content":[{"x":1.0, "resultType":"y"}],"ttlMs":1}"#);
        let read = r#"{"contents":[ ],"result\u0054ype":"complete","ttlMs":0,"cacheScope":"private"}"#;
        assert_eq!(without(read, "resources/read"), r#"{"contents":[ ]}"#);
        let info = r#""io.modelcontextprotocol/serverInfo":{"name":"x"}"#;
        assert_eq!(without(&format!(r#"{{"a":1,"_meta":{{{info}}}}}"#), "tools/call"), r#"{"a":1}"#);
        assert_eq!(
            without(&format!(r#"{{"_meta":{{{info},"k":1.0}}}}"#), "tools/call"),
            r#"{"_meta":{"k":1.0}}"#
        );
        for whole in [r#"{ "content": [],  "_meta":{"k":1} }"#, "[]", "null"] {
            assert_eq!(without(whole, "tools/call"), whole);
        }
    }

    #[test]
    fn a_server_does_not_ask_past_the_broker() {
        let dressed = |text: &str| match add_era_meta(Outcome::Result(raw(text)), "tools/call") {
            Outcome::Result(result) => result.get().to_owned(),
            Outcome::Error(_) => panic!("an error"),
        };
        for asks in [
            r#"{"resultType":"input_required","inputRequests":{},"_meta":{}}"#,
            r#"{"resultType":"complete","inputRequests":{},"_meta":{},"resultType":"input_required"}"#,
            r#"{"result\u0054ype":"input\u005frequired","inputRequests":{},"_meta":{}}"#,
        ] {
            assert_eq!(dressed(asks), r#"{"resultType":"complete","inputRequests":{},"_meta":{}}"#);
            // Nor in the result of a task.
            let of_task = scrub_result(&raw(asks)).unwrap();
            assert_eq!(of_task.get(), r#"{"resultType":"complete","inputRequests":{},"_meta":{}}"#);
        }
        let task = raw(r#"{"resultType":"task","taskId":"x"}"#);
        assert_eq!(scrub_result(&task).unwrap().get(), r#"{"resultType":"complete","taskId":"x"}"#);
        for whole in [r#"{"content":[]}"#, r#"{"resultType":"complete","content":[1.0]}"#, "[]"] {
            assert!(scrub_result(&raw(whole)).is_none(), "{whole}");
        }
    }

    #[test]
    fn a_resource_that_is_not_there_has_the_code_of_its_era() {
        let error = raw(r#"{"code":-32002,"message":"no","data":{"uri":"x"}}"#);
        let Outcome::Error(error) = add_era_meta(Outcome::Error(error), "resources/read") else { panic!() };
        let error: Value = serde_json::from_str(error.get()).unwrap();
        assert_eq!((&error["code"], &error["data"]["uri"]), (&json!(-32602), &json!("x")));
    }
}
