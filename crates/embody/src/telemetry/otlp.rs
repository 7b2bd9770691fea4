//! Encodes `ExportTraceServiceRequest` of OTLP 1 by hand: it has only a few kinds of fields. Does not decode.

use embody_broker::meter::{Attribute, Span, SpanKind, Value};

/// The bits of `Span.flags`.
const SAMPLED: u32 = 0x1;
const HAS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;
/// `STATUS_CODE_ERROR`.
const ERROR: u64 = 2;

pub(super) fn request(resource: &[Attribute], spans: &[Span]) -> Vec<u8> {
    let mut request = Message::default();
    request.message(1, |resource_spans| {
        resource_spans.message(1, |message| {
            for attribute in resource {
                message.attribute(1, attribute);
            }
        });
        resource_spans.message(2, |scope_spans| {
            scope_spans.message(1, |scope| {
                scope.bytes(1, b"embody.broker");
                scope.bytes(2, env!("CARGO_PKG_VERSION").as_bytes());
            });
            for span in spans {
                scope_spans.message(2, |message| put_span(message, span));
            }
        });
    });
    request.0
}

fn put_span(message: &mut Message, span: &Span) {
    message.bytes(1, &span.trace);
    message.bytes(2, &span.id);
    if !span.state.is_empty() {
        message.bytes(3, span.state.as_bytes());
    }
    if let Some(parent) = &span.parent {
        message.bytes(4, parent);
    }
    message.bytes(5, span.name.as_bytes());
    message.number(
        6,
        match span.kind {
            SpanKind::Internal => 1,
            SpanKind::Server => 2,
            SpanKind::Client => 3,
        },
    );
    message.fixed64(7, span.start_ns);
    message.fixed64(8, span.end_ns);
    for attribute in &span.attributes {
        message.attribute(9, attribute);
    }
    if span.is_error {
        message.message(15, |status| status.number(3, ERROR));
    }
    let remote = if span.is_parent_remote { IS_REMOTE } else { 0 };
    message.fixed32(16, SAMPLED | HAS_IS_REMOTE | remote);
}

#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn number(&mut self, field: u32, value: u64) {
        self.key(field, 0);
        self.varint(value);
    }

    fn fixed64(&mut self, field: u32, value: u64) {
        self.key(field, 1);
        self.0.extend(value.to_le_bytes());
    }

    fn fixed32(&mut self, field: u32, value: u32) {
        self.key(field, 5);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u32, value: &[u8]) {
        self.key(field, 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }

    fn message(&mut self, field: u32, make: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        make(&mut inner);
        self.bytes(field, &inner.0);
    }

    fn attribute(&mut self, field: u32, (key, value): &Attribute) {
        self.message(field, |pair| {
            pair.bytes(1, key.as_bytes());
            pair.message(2, |any| match value {
                Value::Text(text) => any.bytes(1, text.as_bytes()),
                Value::Number(number) => any.number(3, number.cast_unsigned()),
            });
        });
    }

    fn key(&mut self, field: u32, kind: u32) {
        self.varint(u64::from(field << 3 | kind));
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(make: impl FnOnce(&mut Message)) -> Vec<u8> {
        let mut message = Message::default();
        make(&mut message);
        message.0
    }

    /// The examples in the protobuf documentation.
    #[test]
    fn fields_are_encoded_as_protobuf_requires() {
        assert_eq!(encode(|message| message.number(1, 150)), [0x08, 0x96, 0x01]);
        assert_eq!(encode(|message| message.bytes(2, b"testing")), *b"\x12\x07testing");
        assert_eq!(encode(|message| message.message(3, |inner| inner.number(1, 150))), [0x1a, 3, 8, 0x96, 1]);
        let minus_two = encode(|message| message.number(1, (-2_i64).cast_unsigned()));
        assert_eq!(minus_two, [8, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
        assert_eq!(encode(|message| message.fixed32(16, 1)), [0x85, 0x01, 1, 0, 0, 0]);
        assert_eq!(encode(|message| message.fixed64(7, 258)), [0x39, 2, 1, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_minimal_span_has_only_the_required_fields() {
        let span = Span {
            trace: [1; 16],
            id: [2; 8],
            parent: None,
            is_parent_remote: false,
            state: String::new(),
            name: "n".to_owned(),
            kind: SpanKind::Server,
            start_ns: 1,
            end_ns: 2,
            attributes: Vec::new(),
            is_error: false,
        };
        let bytes = encode(|message| put_span(message, &span));
        // Two ids, a name, a kind, two times, flags.
        assert_eq!(bytes.len(), 18 + 10 + 3 + 2 + 9 + 9 + 6);
    }
}
