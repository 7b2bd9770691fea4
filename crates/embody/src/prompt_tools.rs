//! The tools that the broker offers a user, as far as they are known without starting a server: for prompts outside a turn.

use std::sync::Arc;

use embody_agent::turn::ToolList;
use embody_broker::catalogue::{self, Catalogue, CatalogueCache, FirstListing};
use embody_broker::upstream::{RawTool, Role};
use embody_broker::{INSTRUCTIONS_PIN, ServerInstructions};
use embody_prompt::{Source, Tool};
use embody_store::Store;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::config::Config;
use crate::error::CliError;
use crate::{broker_setup, embedded};

/// The embedded tools, and the tools and instructions that each server of this user had when it was last connected. Without a store
/// only the embedded ones.
pub(crate) async fn known_tools(
    config: &Config,
    store: Option<&Store>,
    user: &str,
    owner: &str,
) -> Result<ToolList, CliError> {
    let catalogue = known_catalogue(config, store, user, owner).await?;
    let mut pins = Vec::new();
    if let Some(store) = store {
        for body in broker_setup::usable_bodies(config, user, owner) {
            pins.extend(store.pins().get(&body.name, INSTRUCTIONS_PIN).await?);
        }
    }
    let bodies =
        broker_setup::usable_bodies(config, user, owner).map(|body| (body.name.as_str(), body.instructions));
    Ok(ToolList {
        tools: listed(config, &catalogue),
        servers: ServerInstructions::from_pins(bodies, &pins),
        missing: Vec::new(),
    })
}

/// The embedded tools and those that each server of this user listed last, compared with their pins.
pub(crate) async fn known_catalogue(
    config: &Config,
    store: Option<&Store>,
    user: &str,
    owner: &str,
) -> Result<Catalogue, CliError> {
    let mut servers = vec![mind(config, store).await?, embedded_body(config)];
    for body in broker_setup::usable_bodies(config, user, owner) {
        servers.push(ToolServer {
            name: body.name.clone(),
            role: broker_setup::role(body),
            is_embedded: false,
            tools: last_seen(store, &body.name).await?.unwrap_or_default().into(),
        });
    }
    let sources: Vec<catalogue::Source<'_>> = servers.iter().map(ToolServer::source).collect();
    Ok(match store {
        Some(store) => CatalogueCache::default().of(store, &sources).await?,
        None => Catalogue::without_pins(&sources),
    })
}

/// In the order in which hosts see them.
fn listed(config: &Config, catalogue: &Catalogue) -> Vec<(Tool, Source)> {
    let listed = config.listing_limit().apply(catalogue, &[]);
    let own = listed.own.iter().filter_map(|definition| tool(definition, Source::fixed("broker")));
    let others = listed.tools.iter().filter_map(|offered| {
        let source = match &*offered.upstream {
            broker_setup::MIND => Source::fixed("mind"),
            broker_setup::BODY => Source::fixed("body"),
            other => Source::named(&format!("body {other}")),
        };
        tool(&offered.definition, source)
    });
    own.chain(others).collect()
}

struct ToolServer {
    name: String,
    role: Role,
    is_embedded: bool,
    tools: Arc<[RawTool]>,
}

impl ToolServer {
    fn source(&self) -> catalogue::Source<'_> {
        let Self { name, role, is_embedded, tools } = self;
        catalogue::Source {
            upstream: name.as_str().into(),
            role,
            is_embedded: *is_embedded,
            is_live: false,
            first_listing: FirstListing::BeforeSession,
            tools: Arc::clone(tools),
        }
    }
}

/// A remote mind that was never connected is assumed to have the tools of the embedded one.
async fn mind(config: &Config, store: Option<&Store>) -> Result<ToolServer, CliError> {
    let remote = match config.mind.upstream {
        Some(_) => last_seen(store, broker_setup::MIND).await?.filter(|tools| !tools.is_empty()),
        None => None,
    };
    Ok(ToolServer {
        name: broker_setup::MIND.to_owned(),
        role: Role::Mind,
        is_embedded: remote.is_none(),
        tools: match remote {
            Some(tools) => tools.into(),
            None => embedded::tools(embody_mind::server::tools()).unwrap_or_default(),
        },
    })
}

fn embedded_body(config: &Config) -> ToolServer {
    ToolServer {
        name: broker_setup::BODY.to_owned(),
        role: broker_setup::embedded_role(),
        is_embedded: true,
        tools: embedded::tools(embody_body::server::tools(&embedded::channels(config))).unwrap_or_default(),
    }
}

async fn last_seen(store: Option<&Store>, body: &str) -> Result<Option<Vec<RawTool>>, CliError> {
    let Some(store) = store else { return Ok(None) };
    let tool = |(name, text)| Some(RawTool { name, definition: RawValue::from_string(text).ok()? });
    let tools = store.pins().list_last_seen(body).await?;
    Ok(tools.map(|tools| tools.into_iter().filter_map(tool).collect()))
}

fn tool(definition: &RawValue, source: Source) -> Option<(Tool, Source)> {
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
    Some((tool, source))
}
