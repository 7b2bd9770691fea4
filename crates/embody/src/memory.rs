//! The JSON of a memory: the same from a command and from the HTTP API.

use embody_store::memories::Memory;
use serde_json::{Value, json};

use crate::time;

pub(crate) fn memory_json(memory: &Memory, score: Option<f64>) -> Value {
    json!({
        "id": memory.id,
        "text": memory.text,
        "kind": memory.kind,
        "score": score,
        "tags": memory.tags,
        "actor": memory.actor,
        "session": memory.session,
        "writer": memory.writer,
        "source": memory.source,
        "trust": memory.trust,
        "status": memory.status.name(),
        "version": memory.version,
        "occurred_at": time::rfc3339(memory.occurred_at),
        "created_at": time::rfc3339(memory.created_at),
    })
}
