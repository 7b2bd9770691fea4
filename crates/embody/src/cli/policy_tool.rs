//! Which tool of which body a person means on the command line, and what is known of it without starting anything. Refuses
//! a body that nobody has.

use embody_broker::policy::Annotations;
use embody_store::ToolPin;
use serde::Deserialize;

use super::Context;
use crate::failure::Failure;
use crate::{nerves, store};

/// A tool, and whose it is.
pub(super) struct Meant {
    /// By the name that its body gives it.
    pub(super) tool: String,
    /// Empty if nobody can tell.
    pub(super) body: String,
    pub(super) known: Known,
}

/// What is known of a tool besides its name.
pub(super) struct Known {
    pub(super) annotations: Annotations,
    pub(super) is_trusted: bool,
    /// Whether its server was ever seen to have it.
    pub(super) is_seen: bool,
}

/// Reads `TOOL`, or `BODY/TOOL`.
///
/// # Errors
/// When there is no such body, or the store cannot be read.
pub(super) fn meant(text: &str, body: Option<&str>, context: &Context) -> Result<Meant, Failure> {
    if let Some(body) = body.filter(|body| !is_body(body, context)) {
        return Err(no_body(body, context));
    }
    // A tool's own name may have a slash too: where a body is named already, or where one was seen to have it.
    let split = text.split_once('/').filter(|_| body.is_none());
    let (named, tool) = match split {
        Some((prefix, rest)) if is_body(prefix, context) => (Some(prefix), rest),
        _ => (body, text),
    };
    let mut pins = store::read(context, async |store| Ok(pinned(store, tool).await?))?.unwrap_or_default();
    pins.retain(|pin| is_body(&pin.body, context));
    if let (Some((prefix, _)), None, true) = (split, named, pins.is_empty()) {
        return Err(no_body(prefix, context)
            .hint(format!("for a tool that is called `{tool}` name its body with `--body`")));
    }
    let body = named.or_else(|| owner(tool, &pins, context)).unwrap_or_default().to_owned();
    let known = known(&body, tool, &pins, context);
    Ok(Meant { tool: tool.to_owned(), body, known })
}

fn bodies(context: &Context) -> impl Iterator<Item = &str> {
    let configured = context.config.bodies.iter().map(|body| body.name.as_str());
    [nerves::BODY, nerves::MIND].into_iter().chain(configured)
}

fn is_body(name: &str, context: &Context) -> bool {
    bodies(context).any(|body| body == name)
}

fn no_body(name: &str, context: &Context) -> Failure {
    let there: Vec<String> = bodies(context).map(|body| format!("`{body}`")).collect();
    Failure::usage(format!("there is no body `{name}`")).hint(format!("there are {}", there.join(", ")))
}

/// The pins of every tool of this name.
async fn pinned(store: &embody_store::Store, tool: &str) -> embody_store::Result<Vec<ToolPin>> {
    let mut found = Vec::new();
    let mut last = (String::new(), String::new());
    loop {
        let page = store.pins((&last.0, &last.1), 500).await?;
        let Some(end) = page.last() else { return Ok(found) };
        last = (end.body.clone(), end.tool.clone());
        found.extend(page.into_iter().filter(|pin| pin.tool == tool));
    }
}

/// Whose tool it is when nobody says so. Others keep a name that the embedded servers have too, as for hosts.
fn owner<'a>(tool: &str, pins: &'a [ToolPin], context: &'a Context) -> Option<&'a str> {
    match (pins, context.config.bodies.as_slice()) {
        ([only], _) => Some(&only.body),
        ([], _) if is_listed(&embody_body::server::tools(), tool) => Some(nerves::BODY),
        ([], _) if is_listed(&embody_mind::server::tools(), tool) => Some(nerves::MIND),
        (_, [only]) => Some(&only.name),
        _ => None,
    }
}

fn is_listed(tools: &[embody_mcp::Tool], name: &str) -> bool {
    tools.iter().any(|tool| tool.name == name)
}

fn known(body: &str, tool: &str, pins: &[ToolPin], context: &Context) -> Known {
    let pin = pins.iter().find(|pin| pin.body == body);
    match body {
        nerves::MIND => Known {
            annotations: Annotations::of_mind(tool),
            is_trusted: true,
            is_seen: pin.is_some() || is_listed(&embody_mind::server::tools(), tool),
        },
        nerves::BODY => embedded(tool),
        _ => {
            let configured = context.config.bodies.iter().find(|configured| configured.name == body);
            Known {
                annotations: pin.map(hints).unwrap_or_default(),
                is_trusted: configured.is_some_and(|body| body.trust_annotations),
                is_seen: pin.is_some(),
            }
        }
    }
}

/// The embedded body's own word on its tools, which counts.
fn embedded(tool: &str) -> Known {
    let listed = embody_body::server::tools().into_iter().find(|listed| listed.name == tool);
    let annotations = listed.as_ref().and_then(|listed| listed.annotations.as_ref());
    let annotations = annotations.map(|hints| Annotations {
        read_only_hint: Some(hints.read_only_hint),
        destructive_hint: Some(hints.destructive_hint),
        open_world_hint: Some(hints.open_world_hint),
        is_new: false,
    });
    Known { annotations: annotations.unwrap_or_default(), is_trusted: true, is_seen: listed.is_some() }
}

fn hints(pin: &ToolPin) -> Annotations {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Hints {
        annotations: Annotations,
    }
    let hints = serde_json::from_str::<Hints>(&pin.pinned.text).unwrap_or_default().annotations;
    Annotations { is_new: pin.is_new, ..hints }
}
