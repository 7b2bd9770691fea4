//! A client that calls one of our own servers in this process and validates its results against the schemas that it lists.
//!
//! Other crates include it with `#[path = "../../../mcp/tests/own_tools/mod.rs"] mod own_tools;` and need `embody-wire`,
//! `serde_json` and `tokio` with `io-util`.

mod validate;

use std::sync::Arc;

use embody_wire::Limits;
use embody_wire::server::{CancellationToken, Service, lines};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

pub(crate) use self::validate::validate;

/// A client of a server in this process, over a pipe.
pub(crate) struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
    requests: u64,
    /// What the server lists.
    pub(crate) tools: Vec<Value>,
}

impl Client {
    pub(crate) async fn start<S: Service>(service: Arc<S>, principal: S::Principal) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move {
            let ending = CancellationToken::new();
            lines::serve(service, principal, tokio::io::split(theirs), Limits::default(), ending).await
        });
        let (input, output) = tokio::io::split(ours);
        let lines = BufReader::new(input).lines();
        let mut client = Self { lines, output, requests: 0, tools: Vec::new() };
        let info = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
        client.request("initialize", params).await;
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        let listed = client.request("tools/list", json!({})).await;
        client.tools = listed["tools"].as_array().unwrap().clone();
        client
    }

    /// Calls a tool and validates its structured content against the schema that is listed, as clients do: also an error's.
    pub(crate) async fn call(&mut self, name: &str, arguments: Value) -> Value {
        let result = self.request("tools/call", json!({"name": name, "arguments": arguments})).await;
        let tool = self.tools.iter().find(|tool| tool["name"] == name).unwrap();
        match (tool.get("outputSchema"), result.get("structuredContent")) {
            (Some(schema), Some(data)) => {
                validate(schema, data).unwrap_or_else(|why| panic!("{name}: {why}"));
            }
            (Some(_), None) => {
                assert_eq!(result["isError"], true, "{name} has no structured content: {result}")
            }
            (None, _) => {}
        }
        result
    }

    async fn request(&mut self, method: &str, params: Value) -> Value {
        self.requests += 1;
        let id = self.requests;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        loop {
            let line = self.lines.next_line().await.unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                assert_eq!(message.get("error"), None, "{message}");
                return message["result"].clone();
            }
        }
    }

    async fn send(&mut self, message: Value) {
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }
}
