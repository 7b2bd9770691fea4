//! Parse: the parameters of `tools/call`. Rejects input that two parsers could read differently, and keeps the exact bytes.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use embody_wire::server::{code, failure};
use embody_wire::{Outcome, off_runtime, splice};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::respond::raw;
use crate::arguments::{Arguments, InvalidArguments, check_length, check_object, fold};
use crate::catalogue::{CatalogTool, Catalogue};
use crate::json::{Members, ParamsMembers};
use crate::params::{self, member};

#[derive(Debug)]
pub(crate) struct CallParams {
    pub(crate) began: Instant,
    pub(crate) name: String,
    arguments: Result<Arc<Arguments>, InvalidArguments>,
    arguments_bytes: usize,
    /// The parameters that are sent, except for the name; `_meta` contains only known members.
    params: Box<RawValue>,
    /// The name in `params`, as JSON.
    name_at: Range<usize>,
    /// Members sent to the server besides the arguments, as JSON text: `task`, and members that the protocol does not define.
    extra: Option<String>,
    pub(crate) wants_task: bool,
    /// Whether this is the inner call of `body_tool`, where a name is `TOOL` or `SERVER/TOOL`.
    is_inner: bool,
}

/// The members that the broker or an upstream reads.
const KNOWN: [&str; 4] = ["name", "arguments", "_meta", "task"];

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(rename = "_meta", borrow, default)]
    meta: Option<&'a RawValue>,
}

impl CallParams {
    pub(crate) fn parse(params: Option<&RawValue>) -> Result<Self, Outcome> {
        let began = Instant::now();
        let wrong = |error: String| {
            failure(code::INVALID_PARAMS, format!("invalid parameters of `tools/call`: {error}"))
        };
        let params = params.ok_or_else(|| wrong("they are missing".to_owned()))?;
        off_runtime(params.get().len(), || Self::read(params, began)).map_err(wrong)
    }

    /// Reads the members and the arguments in one pass.
    fn read(params: &RawValue, began: Instant) -> Result<Self, String> {
        let Some(ParamsMembers { members, arguments: parsed }) = ParamsMembers::parse(params.get()) else {
            let error = serde_json::from_str::<Members<'_>>(params.get()).err();
            return Err(error.map_or_else(|| "they are not JSON".to_owned(), |error| error.to_string()));
        };
        let is_other = |key: &str, folded: &str| KNOWN.iter().any(|known| folded == *known && key != *known);
        if let Some((key, _)) = members.iter().find(|(key, _)| is_other(key, &fold(key))) {
            let shown: String = key.chars().take(40).collect();
            return Err(format!("`{shown}` differs from a known member only in letter case"));
        }
        let mut known_members = [None; KNOWN.len()];
        for (key, value) in &members {
            let slot = KNOWN.iter().zip(&mut known_members).find(|(known, _)| *known == key);
            // Two parsers could choose different values of a repeated member.
            if slot.is_some_and(|(_, slot)| slot.replace(*value).is_some()) {
                return Err(format!("duplicate field `{key}`"));
            }
        }
        let [name, arguments, _, task] = known_members;
        let name_json = name.ok_or_else(|| "missing field `name`".to_owned())?;
        let name: String =
            serde_json::from_str(name_json).map_err(|_| "the name is not a string".to_owned())?;
        let given = |value: &&str| *value != "null";
        let task = task.filter(given);
        let others = members.iter().filter(|(key, _)| !KNOWN.contains(&&**key));
        let others = others.map(|(key, value)| member(key, value));
        let extra: Vec<String> = others.chain(task.map(|task| member("task", task))).collect();
        let arguments_json = arguments.filter(given);
        let arguments = match arguments_json.zip(parsed) {
            Some((json, parsed)) => check_object(json).and(parsed).and_then(Arguments::from_node),
            None => Arguments::read(None),
        };
        let members: Vec<(&str, &str)> = members.iter().map(|(key, value)| (&**key, *value)).collect();
        let (params, name_at) = params::with_known_meta(params, &members);
        let name_at = name_at.unwrap_or_default();
        Ok(Self {
            began,
            name,
            arguments: arguments.map(Arc::new),
            arguments_bytes: arguments_json.map_or(0, str::len),
            params,
            name_at: name_at..name_at + name_json.len(),
            extra: (!extra.is_empty()).then(|| format!("{{{}}}", extra.join(","))),
            wants_task: task.is_some(),
            is_inner: false,
        })
    }

    /// Returns the call inside a call of `body_tool`.
    pub(crate) fn inner(&self) -> Result<Self, Outcome> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Inner<'a> {
            name: String,
            #[serde(borrow, default)]
            args: Option<&'a RawValue>,
        }
        #[derive(serde::Serialize)]
        struct InnerParams<'a> {
            name: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            arguments: Option<&'a RawValue>,
            #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
            meta: Option<&'a RawValue>,
        }
        let wrong = |error: String| {
            failure(code::INVALID_PARAMS, format!("invalid arguments of `body_tool`: {error}"))
        };
        let outer: Params<'_> =
            serde_json::from_str(self.params.get()).map_err(|error| wrong(error.to_string()))?;
        let arguments = outer.arguments.ok_or_else(|| wrong("they are missing".to_owned()))?;
        let inner: Inner<'_> =
            serde_json::from_str(arguments.get()).map_err(|error| wrong(error.to_string()))?;
        let params = raw(&InnerParams { name: &inner.name, arguments: inner.args, meta: outer.meta });
        let inner = Self::read(&params, self.began).map_err(wrong)?;
        Ok(Self { is_inner: true, ..inner })
    }

    /// A call that the broker makes on behalf of the host.
    pub(crate) fn new(name: &str, arguments: &serde_json::Value) -> Result<Self, Outcome> {
        Self::parse(Some(&raw(&serde_json::json!({"name": name, "arguments": arguments}))))
    }

    /// The arguments. Fails unless every parser reads them alike.
    pub(crate) fn arguments(&self, max_bytes: usize) -> Result<Arc<Arguments>, InvalidArguments> {
        check_length(self.arguments_bytes, max_bytes)?;
        self.arguments.clone()
    }

    /// The arguments together with the extra members.
    pub(crate) fn arguments_with_extra(&self, max_bytes: usize) -> Result<Arc<Arguments>, InvalidArguments> {
        let arguments = self.arguments(max_bytes)?;
        match &self.extra {
            Some(extra) => Arguments::clone(&arguments).beside(extra, max_bytes).map(Arc::new),
            None => Ok(arguments),
        }
    }

    pub(crate) fn find<'a>(&self, catalogue: &'a Catalogue) -> Option<&'a CatalogTool> {
        let listed = catalogue.by_name(&self.name);
        if listed.is_some() || !self.is_inner || catalogue.is_session_name(&self.name) {
            return listed;
        }
        match self.name.split_once('/') {
            Some((body, tool)) => {
                catalogue.find_in_body(Some(body), tool).or_else(|| catalogue.find_in_body(None, &self.name))
            }
            None => catalogue.find_in_body(None, &self.name),
        }
    }

    /// Whether the name is `BODY__TOOL` of this body, or `BODY/TOOL` inside `body_tool`.
    pub(crate) fn may_name(&self, body: &str) -> bool {
        let rest = self.name.strip_prefix(body).unwrap_or_default();
        rest.starts_with("__") || (self.is_inner && rest.starts_with('/'))
    }

    /// The parameters with the upstream's own name of the tool; no other byte changes.
    pub(crate) fn for_upstream(&self, tool: &str) -> Box<RawValue> {
        let renamed = || {
            let name = self.params.get().get(self.name_at.clone())?;
            let by = serde_json::Value::from(tool).to_string();
            RawValue::from_string(splice::replace(self.params.get(), name, &by)?).ok()
        };
        let renamed = if self.name == tool { None } else { renamed() };
        renamed.unwrap_or_else(|| self.params.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<CallParams, Outcome> {
        CallParams::parse(Some(&RawValue::from_string(text.to_owned()).unwrap()))
    }

    // spec: N-05
    #[test]
    fn only_the_name_is_exchanged() {
        let text = r#"{ "x":1.0,"name" : "mail__send", "arguments":{"name":"n"}, "_meta":{"progressToken":1e3},"task":{}}"#;
        let asked = read(text).unwrap();
        assert_eq!(asked.name, "mail__send");
        assert_eq!(asked.for_upstream("send").get(), text.replace("mail__send", "send"));
        assert_eq!(asked.for_upstream("mail__send").get(), text);
        let escaped = read(r#"{"name":"s\u0065nd"}"#).unwrap();
        assert_eq!(escaped.for_upstream("send").get(), r#"{"name":"s\u0065nd"}"#);
    }

    #[test]
    fn what_a_call_brings_besides_its_arguments_is_known() {
        let extra = |text: &str| read(text).unwrap().extra;
        for text in [
            r#"{"name":"x"}"#,
            r#"{"name":"x","arguments":{"a":1},"_meta":{"progressToken":1,"baggage":"a=1"},"task":null}"#,
            r#"{"name":"x","_meta":{"claudecode/toolUseId":"t"}}"#,
        ] {
            assert_eq!(extra(text), None, "{text}");
        }
        let text = r#"{"name":"x","to":["eve"],"_meta":{"progressToken":1,"bcc":"eve"},"task":{"ttl":1.0}}"#;
        let all = r#"{"to":["eve"],"task":{"ttl":1.0}}"#;
        assert_eq!(extra(text).unwrap(), all);
        let inner = r#"{"name":"body_tool","arguments":{"name":"x","args":{}},"to":1,"_meta":{"bcc":"eve"}}"#;
        // The other members of the outer call do not reach the server.
        let inner = read(inner).unwrap().inner().unwrap();
        assert_eq!((inner.extra, inner.params.get()), (None, r#"{"name":"x","arguments":{}}"#));
    }

    // spec: N-05
    #[test]
    fn a_call_inside_body_tool_keeps_its_bytes() {
        let asked = read(r#"{"name":"body_tool","arguments":{"name":"send","args":{"n":1.0, "big":12345678901234567890123}},"_meta":{"progressToken":"t"}}"#).unwrap();
        let inner = asked.inner().unwrap();
        assert_eq!(
            inner.for_upstream("send").get(),
            r#"{"name":"send","arguments":{"n":1.0, "big":12345678901234567890123},"_meta":{"progressToken":"t"}}"#
        );
        for text in [
            r#"{"name":"body_tool"}"#,
            r#"{"name":"body_tool","arguments":{"args":{}}}"#,
            r#"{"name":"body_tool","arguments":{"name":"a","x":1}}"#,
        ] {
            assert!(read(text).unwrap().inner().is_err(), "{text}");
        }
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        for text in [
            r#"{"name":"a","name":"b"}"#,
            r#"{"name":"a","arguments":{},"arguments":{"x":1}}"#,
            r#"{"name":"a","n\u0061me":"b"}"#,
            r#"{"name":"a","_meta":{},"_meta":{}}"#,
            r#"{"name":7}"#,
            r#"{"arguments":{}}"#,
            r#"{"name":"whoami","arguments":{},"Name":"send_email"}"#,
            r#"{"name":"whoami","ARGUMENTS":{"to":"eve"}}"#,
            r#"["send_email",{"to":"eve"}]"#,
            "[]",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(CallParams::parse(None).is_err());
    }
}
