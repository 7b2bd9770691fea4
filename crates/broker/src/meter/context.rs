//! The origin of a trace: the W3C `traceparent` and `tracestate` in a request's `_meta`, or a new trace. Malformed values
//! count as missing.

use embody_wire::message::may_contain;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::trace_context::{is_tracestate, parse_traceparent};

pub(super) use crate::trace_context::Parent;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Context {
    pub(super) trace: [u8; 16],
    pub(super) parent: Option<Parent>,
    pub(super) state: String,
}

impl Context {
    pub(super) fn of(params: Option<&RawValue>) -> Self {
        let brought = params.filter(|params| may_contain(params, "traceparent")).and_then(read);
        brought.unwrap_or_else(|| Self {
            trace: uuid::Uuid::new_v4().into_bytes(),
            parent: None,
            state: String::new(),
        })
    }
}

/// A new span id: never all zeros, because the variant bits of its UUID are set.
pub(super) fn new_span_id() -> [u8; 8] {
    let [.., a, b, c, d, e, f, g, h] = uuid::Uuid::new_v4().into_bytes();
    [a, b, c, d, e, f, g, h]
}

fn read(params: &RawValue) -> Option<Context> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: Meta,
    }
    #[derive(Deserialize)]
    struct Meta {
        traceparent: String,
        #[serde(default)]
        tracestate: Option<serde_json::Value>,
    }
    let Params { meta } = serde_json::from_str(params.get()).ok()?;
    let (trace, parent) = parse_traceparent(&meta.traceparent)?;
    let state = meta.tracestate.as_ref().and_then(serde_json::Value::as_str);
    Some(Context {
        trace,
        parent: Some(parent),
        state: state.filter(|state| is_tracestate(state)).unwrap_or_default().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    fn of(meta: &str) -> Context {
        let params = RawValue::from_string(format!(r#"{{"name":"x","_meta":{meta}}}"#)).unwrap();
        Context::of(Some(&params))
    }

    #[test]
    fn the_hosts_context_is_read() {
        let context =
            of(&format!(r#"{{"traceparent":"00-{TRACE}-00f067aa0ba902b7-01","tracestate":"a=1,b=2"}}"#));
        assert_eq!(context.trace[..4], [0x4b, 0xf9, 0x2f, 0x35]);
        let parent = context.parent.unwrap();
        assert_eq!((parent.id, parent.is_sampled), ([0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7], true));
        assert_eq!(context.state, "a=1,b=2");
        let unsampled = of(&format!(r#"{{"traceparent":"00-{TRACE}-00f067aa0ba902b7-00","tracestate":7}}"#));
        assert!(!unsampled.parent.unwrap().is_sampled && unsampled.state.is_empty());
        let later = of(&format!(r#"{{"traceparent":"01-{TRACE}-00f067aa0ba902b7-03-more"}}"#));
        assert_eq!(later.trace, context.trace);
    }

    #[test]
    fn what_is_malformed_begins_a_trace_of_its_own() {
        for text in [
            "",
            "00",
            &format!("00-{TRACE}-00f067aa0ba902b7"),
            &format!("00-{TRACE}-00f067aa0ba902b7-01-more"),
            &format!("ff-{TRACE}-00f067aa0ba902b7-01"),
            &format!("00-{}-00f067aa0ba902b7-01", TRACE.to_uppercase()),
            &format!("00-{TRACE}-0000000000000000-01"),
            &format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            &format!("00-{TRACE}-00f067aa0ba902bü-01"),
        ] {
            assert_eq!(
                of(&format!("{{\"traceparent\":{}}}", serde_json::Value::from(text))).parent,
                None,
                "{text}"
            );
        }
        for meta in ["null", "{\"traceparent\":7}", "[\"traceparent\"]", "{\"x\":\"traceparent\"}"] {
            assert_eq!(of(meta).parent, None, "{meta}");
        }
        let (one, other) = (Context::of(None), Context::of(None));
        assert!(one.trace != other.trace && one.parent.is_none() && new_span_id() != new_span_id());
    }
}
