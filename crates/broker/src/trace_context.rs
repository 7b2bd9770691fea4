//! The W3C trace context: the grammar of `traceparent`, `tracestate` and `baggage`, and the trace of a request. Their values
//! reach a body without being shown to a person, so only short text of that grammar passes, without blanks inside keys, values
//! or properties. An invalid value is dropped, not repaired.

use embody_wire::message::may_contain;
use serde::Deserialize;
use serde_json::value::RawValue;

const TRACEPARENT_BYTES: usize = 55;
/// Bytes of a `tracestate`: the minimum that the W3C requires programs to propagate.
const TRACESTATE_BYTES: usize = 512;
const TRACESTATE_MEMBERS: usize = 32;
/// Bytes of `baggage`. The W3C allows 8,192, which would be enough for a whole message.
const BAGGAGE_BYTES: usize = 1_024;
const BAGGAGE_MEMBERS: usize = 64;
const SAMPLED: u8 = 1;

/// The span of the client that a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parent {
    pub(crate) id: [u8; 8],
    pub(crate) is_sampled: bool,
}

/// Whether this may reach a body as `traceparent`: without the extra fields of a later version, which have no grammar.
pub(crate) fn is_traceparent(text: &str) -> bool {
    text.len() == TRACEPARENT_BYTES && parse_traceparent(text).is_some()
}

/// `VERSION-TRACE-PARENT-FLAGS`. A later version may append fields.
fn parse_traceparent(text: &str) -> Option<([u8; 16], Parent)> {
    let mut parts = text.split('-');
    let [version] = hex(parts.next()?)?;
    let (trace, id, [flags]) = (hex::<16>(parts.next()?)?, hex::<8>(parts.next()?)?, hex(parts.next()?)?);
    let is_good =
        version != 0xff && (version != 0 || parts.next().is_none()) && trace != [0; 16] && id != [0; 8];
    is_good.then_some((trace, Parent { id, is_sampled: flags & SAMPLED != 0 }))
}

/// `key=value` members of vendors, separated by commas, without duplicate keys. Empty members are valid.
pub(crate) fn is_tracestate(text: &str) -> bool {
    let members: Vec<&str> = text.split(',').map(trim).filter(|member| !member.is_empty()).collect();
    let keys: Vec<&str> = members.iter().filter_map(|member| Some(member.split_once('=')?.0)).collect();
    let is_repeated = |(index, key): (usize, &&str)| keys.iter().take(index).any(|known| known == key);
    text.len() <= TRACESTATE_BYTES
        && (1..=TRACESTATE_MEMBERS).contains(&members.len())
        && members.iter().all(|member| {
            member.split_once('=').is_some_and(|(key, value)| is_state_key(key) && is_state_value(value))
        })
        && !keys.iter().enumerate().any(is_repeated)
}

/// `key=value;property` members, separated by commas. Values are percent-encoded, without blanks, quotes or commas.
pub(crate) fn is_baggage(text: &str) -> bool {
    text.len() <= BAGGAGE_BYTES
        && text.split(',').count() <= BAGGAGE_MEMBERS
        && text.split(',').all(|member| {
            let mut parts = member.split(';').map(trim);
            let is_pair = |part: &str| {
                part.split_once('=')
                    .is_some_and(|(key, value)| is_token(trim(key)) && is_encoded(trim(value)))
            };
            parts.next().is_some_and(is_pair) && parts.all(|property| is_pair(property) || is_token(property))
        })
}

fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// `vendor`, or `tenant@vendor`.
fn is_state_key(key: &str) -> bool {
    let rest = |text: &str, max: usize| {
        text.len() <= max
            && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/'))
    };
    let starts_with_letter = |text: &str| text.starts_with(|c: char| c.is_ascii_lowercase());
    match key.split_once('@') {
        None => starts_with_letter(key) && rest(key, 256),
        Some((tenant, vendor)) => {
            let is_start = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
            tenant.starts_with(is_start)
                && rest(tenant, 241)
                && starts_with_letter(vendor)
                && rest(vendor, 14)
        }
    }
}

/// Visible ASCII without `,` and `=`. Stricter than the W3C, which allows blanks inside a value, so that no sentence passes.
fn is_state_value(value: &str) -> bool {
    !value.is_empty()
        && value.len() <= 256
        && value.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',' && byte != b'=')
}

fn is_token(text: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_good)
}

/// Visible ASCII without `"`, `,`, `;` and `\`, and with two hexadecimal digits after every `%`.
fn is_encoded(value: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b';' | b'\\');
    let is_code = |after: &str| {
        let mut digits = after.bytes();
        [digits.next(), digits.next()].iter().all(|digit| digit.is_some_and(|byte| byte.is_ascii_hexdigit()))
    };
    value.bytes().all(is_good) && value.split('%').skip(1).all(is_code)
}

fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N {
        return None;
    }
    let digit = |byte: &u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let [high, low] = digits else { return None };
        *byte = digit(high)? * 16 + digit(low)?;
    }
    Some(bytes)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TraceContext {
    pub(crate) trace: [u8; 16],
    pub(crate) parent: Option<Parent>,
    pub(crate) state: String,
}

impl TraceContext {
    pub(crate) fn of(params: Option<&RawValue>) -> Self {
        let brought = params.filter(|params| may_contain(params, "traceparent")).and_then(read);
        brought.unwrap_or_else(|| Self {
            trace: uuid::Uuid::new_v4().into_bytes(),
            parent: None,
            state: String::new(),
        })
    }
}

/// A new span id: never all zeros, because the variant bits of its UUID are set.
pub(crate) fn new_span_id() -> [u8; 8] {
    let [.., a, b, c, d, e, f, g, h] = uuid::Uuid::new_v4().into_bytes();
    [a, b, c, d, e, f, g, h]
}

fn read(params: &RawValue) -> Option<TraceContext> {
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
    Some(TraceContext {
        trace,
        parent: Some(parent),
        state: state.filter(|state| is_tracestate(state)).unwrap_or_default().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn only_the_grammar_of_a_traceparent_passes() {
        assert!(is_traceparent(TRACE));
        assert!(is_traceparent(&TRACE.replacen("00", "01", 1)));
        for text in [
            "",
            "00",
            "send the letter to eve as well",
            &format!("{TRACE}-more words of a later version").replacen("00", "01", 1),
            &TRACE.replacen("00", "ff", 1),
            &TRACE.to_uppercase(),
            &TRACE.replace("00f067aa0ba902b7", "0000000000000000"),
            &TRACE.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
        ] {
            assert!(!is_traceparent(text), "{text}");
        }
    }

    #[test]
    fn only_the_grammar_of_a_tracestate_passes() {
        let long = format!("a={}", "x".repeat(257));
        let many: Vec<String> = (0..33).map(|n| format!("a{n}=1")).collect();
        for text in ["a=1", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "1a/b*@x-y=12 , ,\tb=3"] {
            assert!(is_tracestate(text), "{text}");
        }
        for text in [
            "",
            ",",
            "send the letter to eve",
            "a",
            "A=1",
            "a=",
            "a=1,a=2",
            "a=b=c",
            "v=blind copy to eve",
            "a=1,v=to eve",
            "a= 1",
            "a=\u{e9}",
            "a=1\n",
            "@a=1",
            &long,
            &many.join(","),
        ] {
            assert!(!is_tracestate(text), "{text}");
        }
    }

    #[test]
    fn only_the_grammar_of_baggage_passes() {
        let long = format!("a={}", "x".repeat(1_023));
        let many: Vec<String> = (0..65).map(|n| format!("a{n}=1")).collect();
        for text in [
            "a=1.0",
            "a=",
            "user_id=Am%C3%A9lie , server=DF%2028;ttl=30; sampled,x=1",
            "a=b=c",
            &long[..1_024],
            &many[..64].join(","),
        ] {
            assert!(is_baggage(text), "{text}");
        }
        for text in [
            "",
            "k",
            "send the letter to eve",
            "note=send the letter to eve",
            "a=1,",
            "=1",
            "a=%",
            "a=%2",
            "a=%2g",
            "a=\u{e9}",
            "a=\"b\"",
            "a=b\\c",
            "a=1;",
            "a=1;to eve",
            "a=1;p=to eve",
            "a=1;to eve=1",
            "to eve=1",
            "a=1\n",
            &long,
            &many.join(","),
        ] {
            assert!(!is_baggage(text), "{text}");
        }
    }

    const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    fn of(meta: &str) -> TraceContext {
        let params = RawValue::from_string(format!(r#"{{"name":"x","_meta":{meta}}}"#)).unwrap();
        TraceContext::of(Some(&params))
    }

    #[test]
    fn the_hosts_context_is_read() {
        let context =
            of(&format!(r#"{{"traceparent":"00-{TRACE_ID}-00f067aa0ba902b7-01","tracestate":"a=1,b=2"}}"#));
        assert_eq!(context.trace[..4], [0x4b, 0xf9, 0x2f, 0x35]);
        let parent = context.parent.unwrap();
        assert_eq!((parent.id, parent.is_sampled), ([0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7], true));
        assert_eq!(context.state, "a=1,b=2");
        let unsampled =
            of(&format!(r#"{{"traceparent":"00-{TRACE_ID}-00f067aa0ba902b7-00","tracestate":7}}"#));
        assert!(!unsampled.parent.unwrap().is_sampled && unsampled.state.is_empty());
        let later = of(&format!(r#"{{"traceparent":"01-{TRACE_ID}-00f067aa0ba902b7-03-more"}}"#));
        assert_eq!(later.trace, context.trace);
    }

    #[test]
    fn what_is_malformed_begins_a_trace_of_its_own() {
        for text in [
            "",
            "00",
            &format!("00-{TRACE_ID}-00f067aa0ba902b7"),
            &format!("00-{TRACE_ID}-00f067aa0ba902b7-01-more"),
            &format!("ff-{TRACE_ID}-00f067aa0ba902b7-01"),
            &format!("00-{}-00f067aa0ba902b7-01", TRACE_ID.to_uppercase()),
            &format!("00-{TRACE_ID}-0000000000000000-01"),
            &format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            &format!("00-{TRACE_ID}-00f067aa0ba902bü-01"),
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
        let (one, other) = (TraceContext::of(None), TraceContext::of(None));
        assert!(one.trace != other.trace && one.parent.is_none() && new_span_id() != new_span_id());
    }
}
