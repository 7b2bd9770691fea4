//! The tools that the broker offers, as far as known without starting a server: its own, those of the embedded mind and body, and
//! pinned definitions of other servers.

use std::sync::Arc;

use embody_broker::INSTRUCTIONS_PIN;
use embody_broker::catalogue::{Catalogue, FirstListing, Source};
use embody_broker::upstream::{RawTool, Role};
use embody_prompt::{Audience, Source as From, Tool, Value};
use embody_store::pins::ToolPin;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::broker_setup;
use crate::config::resolved::Config;

/// The tools for this user, in the order in which hosts see them.
pub(crate) fn offered_tools(config: &Config, pins: &[ToolPin], user: &str) -> Vec<Value<Tool>> {
    let servers = servers(config, pins, user);
    let sources: Vec<Source<'_>> = servers.iter().map(Server::source).collect();
    let catalogue = Catalogue::without_pins(&sources);
    let shown = broker_setup::listing_limit(config).apply(&catalogue, &[]);
    let own = shown.own.iter().filter_map(|definition| tool(definition, From::fixed("broker")));
    let others = shown.tools.iter().filter_map(|offered| {
        let from = match &*offered.upstream {
            broker_setup::MIND => From::fixed("mind"),
            broker_setup::BODY => From::fixed("body"),
            other => From::named(&format!("body {other}")),
        };
        tool(&offered.definition, from)
    });
    own.chain(others).collect()
}

struct Server {
    name: String,
    role: Role,
    is_embedded: bool,
    tools: Arc<[RawTool]>,
}

impl Server {
    fn source(&self) -> Source<'_> {
        let Self { name, role, is_embedded, tools } = self;
        let (upstream, tools) = (name.as_str().into(), Arc::clone(tools));
        Source {
            upstream,
            role,
            is_embedded: *is_embedded,
            is_live: false,
            first_listing: FirstListing::BeforeSession,
            tools,
        }
    }
}

/// The mind, the embedded body, then the others. A remote mind that was never seen is assumed to have the tools of the
/// embedded one.
fn servers(config: &Config, pins: &[ToolPin], user: &str) -> Vec<Server> {
    let pinned = |body: &str| -> Vec<RawTool> {
        let accepted =
            pins.iter().filter(|pin| pin.accepted && pin.body == body && pin.tool != INSTRUCTIONS_PIN);
        accepted
            .filter_map(|pin| raw_tool(&pin.tool, RawValue::from_string(pin.pinned.text.clone()).ok()))
            .collect()
    };
    let embedded = |tools: Vec<embody_mcp::Tool>| -> Vec<RawTool> {
        tools.iter().filter_map(|tool| raw_tool(&tool.name, to_raw_value(tool).ok())).collect()
    };
    let remote =
        config.mind.upstream.as_ref().map(|_| pinned(broker_setup::MIND)).filter(|tools| !tools.is_empty());
    let mind = Server {
        name: broker_setup::MIND.to_owned(),
        role: Role::Mind,
        is_embedded: config.mind.upstream.is_none(),
        tools: remote.unwrap_or_else(|| embedded(embody_mind::server::tools())).into(),
    };
    let body = Server {
        name: broker_setup::BODY.to_owned(),
        role: broker_setup::embedded_role(),
        is_embedded: true,
        tools: embedded(embody_body::server::tools()).into(),
    };
    let others = broker_setup::usable_bodies(config, user).map(|body| Server {
        name: body.name.clone(),
        role: broker_setup::role(body),
        is_embedded: false,
        tools: pinned(&body.name).into(),
    });
    [mind, body].into_iter().chain(others).collect()
}

fn raw_tool(name: &str, definition: Option<Box<RawValue>>) -> Option<RawTool> {
    definition.map(|definition| RawTool { name: name.to_owned(), definition })
}

fn tool(definition: &RawValue, from: From) -> Option<Value<Tool>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Listed<'a> {
        name: String,
        #[serde(default)]
        description: Option<String>,
        #[serde(borrow)]
        input_schema: &'a RawValue,
    }
    let Listed { name, description, input_schema } = serde_json::from_str(definition.get()).ok()?;
    let tool =
        Tool { name, description: description.unwrap_or_default(), schema: input_schema.get().to_owned() };
    Some(Value::new(tool, from, Audience::Public))
}
