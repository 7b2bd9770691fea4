//! A host over HTTP, of either era, that lives with a server that may be killed at any moment.

use std::io::{Error, ErrorKind, Result};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::ledger::SeenOutcome;
use super::server::Server;
use crate::support::served::{Reading, send};

/// A host.
pub(super) struct Client<'a> {
    server: &'a Server,
    era: Era,
    last_id: u64,
}

enum Era {
    /// With a session of this id.
    Session(String),
    /// With this name, in every request.
    Stateless(String),
}

/// A request that is under way.
pub(super) struct PendingRequest {
    stream: TcpStream,
    pub(super) id: u64,
}

impl<'a> Client<'a> {
    /// One that opens a session.
    pub(super) fn initialize(server: &'a Server) -> Result<Self> {
        let mut client = Self { server, era: Era::Session(String::new()), last_id: 0 };
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "guest", "version": "1"},
        });
        let asked = client.begin("initialize", &hello)?;
        let reading = Reading::new(asked.stream)?;
        assert_eq!(reading.status, 200);
        let session = reading.header("mcp-session-id").expect("a session").to_owned();
        client.era = Era::Session(session);
        answer(reading, asked.id)?;
        client.notify("notifications/initialized", &json!({}))?;
        Ok(client)
    }

    /// One that has no session on the wire.
    pub(super) fn alone(server: &'a Server, name: String) -> Self {
        Self { server, era: Era::Stateless(name), last_id: 0 }
    }

    /// Its session's id, if it has one.
    pub(super) fn session(&self) -> Option<&str> {
        match &self.era {
            Era::Session(id) => Some(id),
            Era::Stateless(_) => None,
        }
    }

    /// Sends a request.
    pub(super) fn begin(&mut self, method: &str, params: &Value) -> Result<PendingRequest> {
        self.last_id += 1;
        let mut params = params.clone();
        if let Era::Stateless(name) = &self.era {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"},
            });
        }
        let message = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        Ok(PendingRequest { stream: self.post(method, &message)?, id: self.last_id })
    }

    /// Sends a tool call.
    pub(super) fn begin_call(&mut self, tool: &str, arguments: &Value) -> Result<PendingRequest> {
        self.begin("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// The answer to a request.
    pub(super) fn finish(&self, asked: PendingRequest) -> Result<Value> {
        let reading = Reading::new(asked.stream)?;
        match (reading.status, &self.era) {
            (200, _) => answer(reading, asked.id),
            // It was another process that knew the session.
            (404, Era::Session(_)) => Err(Error::new(ErrorKind::NotFound, "the session is over")),
            _ => panic!("{:?}", reading.whole()),
        }
    }

    /// Sends a request and returns its response.
    pub(super) fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        let asked = self.begin(method, params)?;
        self.finish(asked)
    }

    /// Calls a tool.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        let asked = self.begin_call(tool, arguments)?;
        self.finish(asked)
    }

    /// Cancels a request: with a notification in a session, else by closing the connection.
    pub(super) fn cancel(&mut self, asked: PendingRequest) -> Result<()> {
        if self.session().is_some() {
            self.notify("notifications/cancelled", &json!({"requestId": asked.id}))?;
            // Its stream ends, with or without a final response.
            let _ = self.finish(asked);
        }
        Ok(())
    }

    fn notify(&mut self, method: &str, params: &Value) -> Result<()> {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let answer = Reading::new(self.post(method, &message)?)?.whole();
        if answer.status == 404 {
            return Err(Error::new(ErrorKind::NotFound, "the session is over"));
        }
        assert_eq!(answer.status, 202, "{answer:?}");
        Ok(())
    }

    fn post(&self, method: &str, message: &Value) -> Result<TcpStream> {
        let bearer = format!("Bearer {}", self.server.token);
        let mut headers =
            vec![("authorization", &*bearer), ("accept", "application/json, text/event-stream")];
        match &self.era {
            Era::Session(id) if id.is_empty() => {}
            Era::Session(id) => {
                headers.extend([("mcp-session-id", &**id), ("mcp-protocol-version", "2025-11-25")])
            }
            Era::Stateless(_) => {
                headers.extend([("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)]);
                headers.extend(message["params"]["name"].as_str().map(|name| ("mcp-name", name)));
            }
        }
        send(&self.server.address().1, "POST /mcp", &headers, Some(message))
    }
}

/// The answer to a request, in whichever form it comes.
fn answer(mut reading: Reading, id: u64) -> Result<Value> {
    if !reading.is_events() {
        return serde_json::from_str(&reading.whole().body).map_err(Error::from);
    }
    while let Some(message) = reading.message() {
        if message["id"] == id && message.get("method").is_none() {
            return Ok(message);
        }
    }
    Err(ErrorKind::UnexpectedEof.into())
}

/// The outcome in a response of an unruly body.
pub(super) fn seen(tool: &str, answer: &Value) -> SeenOutcome {
    let result = &answer["result"];
    let reported = &result["_meta"]["embody/decision"];
    if reported["decision"].is_string() {
        return if reported["outcome_unknown"] == true { SeenOutcome::Unknown } else { SeenOutcome::Refused };
    }
    // The body's tools were not known yet: a busy machine starts it slowly.
    if answer["error"]["code"] == -32602 {
        return SeenOutcome::Refused;
    }
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    if answer["error"]["message"] == "unruly will not" || text == "unruly could not" {
        return SeenOutcome::Failed;
    }
    // The large ones are of one letter.
    let is_done =
        text == format!("{tool} is done") || (text.len() > 1000 && text.bytes().all(|byte| byte == b'x'));
    assert!(is_done && result["isError"] != true, "{tool}: {answer}");
    SeenOutcome::Done
}
