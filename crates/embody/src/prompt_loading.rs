//! Loads the workspace and the layout of a prompt from flags and configuration, and the tools that the broker offers as far as they
//! are known without starting a server: the one path for every command.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use embody_broker::catalogue::{self, Catalogue, FirstListing};
use embody_broker::upstream::{RawTool, Role};
use embody_broker::{Description, INSTRUCTIONS_PIN, ServerInstructions, contract_text};
use embody_prompt::{
    Audience, Body, BodyPart, Budget, Kind, Layout, Note, NoteKind, PromptInput, Server, Source, Tool, Value,
    assemble, render,
};
use embody_store::pins::ToolPin;
use embody_workspace::{
    AgentName, LoadRequest, LoadedWorkspace, ModelFacts, RequestFacts, StoredValues, load,
};
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::cli::{Context, ScopeArgs};
use crate::config::Config;
use crate::config::mask::Address;
use crate::error::CliError;
use crate::persona::{self, FetchedPersona};
use crate::{broker_setup, store, time};

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PromptArgs {
    /// The layout: body, full, tagged or channel [default: the agent's, else the configured one]
    #[arg(long, value_parser = ["body", "full", "tagged", "channel"])]
    pub(crate) layout: Option<String>,
    /// Leave the body out
    #[arg(long)]
    pub(crate) no_body: bool,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    /// The channel that the reply goes to: web, telegram, scheduled or another
    #[arg(long)]
    pub(crate) channel: Option<String>,
    /// The task that the run is bound to, by its id
    #[arg(long, value_name = "ID")]
    pub(crate) task: Option<String>,
    /// As for a run whose reply nobody sees
    #[arg(long)]
    pub(crate) background: bool,
    /// The time, instead of now
    #[arg(long, value_name = "RFC3339", value_parser = time::parse_timestamp)]
    pub(crate) now: Option<jiff::Timestamp>,
    /// The time zone, instead of the user's
    #[arg(long, value_name = "TZ", value_parser = time::parse_zone)]
    pub(crate) timezone: Option<String>,
    /// The project whose CLAUDE.md and AGENTS.md files are read, up to the root
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
    /// Whether the model's provider takes tools natively [default: as configured]
    #[arg(long, value_name = "true|false")]
    pub(crate) native_tools: Option<bool>,
    /// Only tools and project context (layout full)
    #[arg(long, conflicts_with = "minimal")]
    pub(crate) simple: bool,
    /// Only the first sentence, for titles and summaries (layout full)
    #[arg(long)]
    pub(crate) minimal: bool,
    /// Try these standing instructions
    #[arg(long, value_name = "TEXT")]
    pub(crate) instructions: Option<String>,
    /// Who will read the replies: owner, user, group or public
    #[arg(long, value_parser = ["owner", "user", "group", "public"], default_value = "owner")]
    pub(crate) audience: String,
    /// The session's key, shown in the runtime section
    #[arg(long, value_name = "KEY")]
    pub(crate) session: Option<String>,
}

impl PromptArgs {
    pub(crate) fn new(scope: ScopeArgs) -> Self {
        Self { scope, audience: Audience::Owner.name().to_owned(), ..Self::default() }
    }
}

pub(crate) struct LoadedPrompt {
    pub(crate) workspace: LoadedWorkspace,
    pub(crate) layout: Layout,
    pub(crate) servers: ServerInstructions,
}

/// Reads the workspace, fetches the persona if it is needed, and logs the outcome.
pub(crate) fn load_prompt(context: &Context, args: &PromptArgs) -> Result<LoadedPrompt, CliError> {
    let started = Instant::now();
    let config = &context.config;
    let user = args.scope.user();
    let mut request = workspace_request(context.workspace.clone(), config, args, user == ScopeArgs::owner())?;
    let pins = store::add_stored_parts(&mut request, context, args)?;
    request.tools = offered_tools(config, &pins, &user);
    let bodies =
        broker_setup::usable_bodies(config, &user).map(|body| (body.name.as_str(), body.instructions));
    let servers = ServerInstructions::from_pins(bodies, &pins);
    let mut loaded = load(&request)?;
    add_servers(&mut loaded.input, &servers);
    let layout = layout(config, args, &loaded)?;
    let persona = if layout.wants_persona(&loaded.input) {
        persona::fetch_blocking(config)
    } else {
        FetchedPersona::NotNeeded
    };
    let outcome = apply_persona(&mut loaded, config, persona);
    log_outcome(&loaded, &layout, &outcome, started);
    Ok(LoadedPrompt { workspace: loaded, layout, servers })
}

const SERVERS: Source = Source::fixed("bodies");

/// Adds the instructions of bodies: rules below the body rules, descriptions to the tools.
pub(crate) fn add_servers(input: &mut PromptInput, servers: &ServerInstructions) {
    let rules = servers.rules_text();
    if !rules.is_empty() {
        let parts = &mut input.body.get_or_insert_with(|| Body { parts: Vec::new() }).parts;
        let text = if parts.is_empty() { rules } else { format!("\n\n{rules}") };
        parts.push(BodyPart { text, source: SERVERS });
    }
    input.servers = servers
        .descriptions()
        .iter()
        .map(|Description { body, text, cut }| {
            let server = Server { name: body.clone(), description: text.clone(), cut: *cut };
            Value::new(server, SERVERS, Audience::Public)
        })
        .collect();
}

/// The contract that hosts get, without what a remote mind adds.
pub(crate) fn contract(prompt: &LoadedPrompt, config: &Config) -> String {
    let mut input = prompt.workspace.input.clone();
    if let Some(body) = &mut input.body {
        body.parts.retain(|part| part.source != SERVERS);
    }
    let mind = config.mind.upstream.is_none().then(|| embody_mind::Contract::assemble(&input).text);
    input.persona = None;
    let rules = match prompt.workspace.body.loaded {
        true => render(&assemble(&input, &Layout::BODY)).text,
        false => String::new(),
    };
    contract_text(&rules, &prompt.servers, mind.as_deref())
}

/// The request for a prompt; without the files of the owner if it is for another user.
pub(crate) fn workspace_request(
    workspace: PathBuf,
    config: &Config,
    args: &PromptArgs,
    is_for_owner: bool,
) -> Result<LoadRequest, CliError> {
    // clap rejects other names; the widest audience is the safe fallback.
    let audience = match Audience::from_name(&args.audience).unwrap_or(Audience::Public) {
        Audience::Owner if !is_for_owner => Audience::User,
        audience => audience,
    };
    let system_zone = || TimeZone::system().iana_name().map(str::to_owned);
    let sections = config.prompt.sections.iter();
    Ok(LoadRequest {
        workspace,
        body: config.prompt.body.clone(),
        agent: AgentName::new(&args.scope.agent())?,
        is_for_owner,
        audience,
        audiences: config.audience.clone(),
        channel: args.channel.clone(),
        task: args.task.clone(),
        background: args.background,
        now: args.now,
        timezone: args.timezone.clone().or_else(|| if is_for_owner { None } else { system_zone() }),
        project: args.project.clone(),
        facts: RequestFacts { session: args.session.clone(), ..RequestFacts::default() },
        model: model(config),
        native_tools: args.native_tools.unwrap_or(config.model.native_tools),
        sandbox: config.sandbox.clone(),
        tools: Vec::new(),
        instructions: args.instructions.clone().map(|text| (text, Source::fixed("--instructions"))),
        stored: StoredValues::default(),
        budget: Budget {
            total: config.prompt.budget_tokens as usize,
            sections: sections
                .filter_map(|(name, limit)| Some((Kind::from_name(name)?, *limit as usize)))
                .collect(),
        },
    })
}

pub(crate) fn layout(
    config: &Config,
    args: &PromptArgs,
    loaded: &LoadedWorkspace,
) -> Result<Layout, CliError> {
    let short = args.simple || args.minimal;
    if short && args.layout.as_deref().is_some_and(|name| name != "full") {
        return Err(CliError::usage("`--simple` and `--minimal` are forms of the layout `full`")
            .hint("leave `--layout` out, or use `--layout full`"));
    }
    let name = args.layout.as_deref().or(loaded.layout.as_deref()).unwrap_or(config.prompt.layout.as_str());
    let layout = match Layout::from_name(name) {
        _ if args.minimal => Layout::MINIMAL,
        _ if args.simple => Layout::SIMPLE,
        // Only this layout explains tools to a model without native tools.
        Some(_)
            if args.layout.is_none()
                && args.native_tools.is_none()
                && !config.model.native_tools
                && !loaded.input.tools.is_empty() =>
        {
            Layout::FULL
        }
        Some(layout) => layout,
        None => {
            return Err(CliError::usage(format!(
                "agent `{}` asks for the layout `{name}`, which does not exist",
                args.scope.agent()
            ))
            .hint("set `layout` in its agent.toml to body, full, tagged or channel"));
        }
    };
    Ok(layout.with_body(!args.no_body).with_volatile_last(config.prompt.fresh_last))
}

fn model(config: &Config) -> ModelFacts {
    match &config.model.model {
        None => ModelFacts::default(),
        Some(model) => {
            ModelFacts { provider: Some(config.model.provider.name().into()), model: Some(model.clone()) }
        }
    }
}

pub(crate) struct PersonaOutcome {
    state: &'static str,
    reason: Option<String>,
}

pub(crate) fn apply_persona(
    loaded: &mut LoadedWorkspace,
    config: &Config,
    fetched: FetchedPersona,
) -> PersonaOutcome {
    let source =
        config.persona.url.as_ref().map_or(Source::fixed("persona"), |url| Source::named(&url.to_string()));
    let (state, reason) = match fetched {
        FetchedPersona::Unset => ("unset", None),
        FetchedPersona::NotNeeded => ("not needed", None),
        FetchedPersona::Incomplete(reason) => ("incomplete", Some(reason.to_owned())),
        FetchedPersona::Failed(reason) => ("failed", Some(reason)),
        FetchedPersona::Text(text) => {
            loaded.set_persona(text, source.clone());
            ("loaded", None)
        }
    };
    let mut note = |kind, message: String| loaded.input.notes.push(Note::new(kind, message, source.clone()));
    if let Some(reason) = &reason {
        note(NoteKind::PersonaUnavailable, format!("the remote persona is left out: {reason}"));
    }
    if matches!(state, "loaded" | "failed") && config.persona.url.as_ref().is_some_and(Address::is_open) {
        note(NoteKind::Insecure, "the persona's token travels over plain http: use https".to_owned());
    }
    PersonaOutcome { state, reason }
}

fn log_outcome(loaded: &LoadedWorkspace, layout: &Layout, persona: &PersonaOutcome, started: Instant) {
    let body = &loaded.body;
    let has_body = layout.body && body.loaded;
    let outcome = match (has_body, loaded.input.persona.is_some()) {
        (true, true) => "body and persona",
        (true, false) => "body alone",
        (false, true) => "persona alone",
        (false, false) if layout.name == "body" => "fallback",
        (false, false) => "layout alone",
    };
    let elapsed_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
    let absent = || (!body.loaded).then(|| format!("there is no {}", body.name));
    let body_reason = body.reason.clone().or_else(absent);
    let reasons: Vec<String> = body_reason.into_iter().chain(persona.reason.clone()).collect();
    let reason = (!reasons.is_empty()).then(|| reasons.join("; "));
    let notes = notes(&loaded.input.notes);
    let has_problem = notes.is_some() || body.reason.is_some() || persona.reason.is_some();
    macro_rules! log {
        ($level:ident) => {
            tracing::$level!(
                outcome,
                layout = layout.name,
                body = body.name,
                body_found = body.loaded,
                body_bytes = body.bytes,
                included = body.included,
                missing = body.missing,
                persona = persona.state,
                reason,
                notes,
                elapsed_us,
                "prompt loaded"
            )
        };
    }
    if has_problem { log!(warn) } else { log!(info) }
}

/// The first few notes in one line.
fn notes(notes: &[Note]) -> Option<String> {
    const SHOWN: usize = 5;
    let mut shown: Vec<String> =
        notes.iter().take(SHOWN).map(|note| format!("{} {}", note.kind.name(), note.source)).collect();
    if notes.len() > SHOWN {
        shown.push(format!("and {} more", notes.len() - SHOWN));
    }
    (!shown.is_empty()).then(|| shown.join("; "))
}

/// The tools for this user, in the order in which hosts see them.
fn offered_tools(config: &Config, pins: &[ToolPin], user: &str) -> Vec<Value<Tool>> {
    let servers = tool_servers(config, pins, user);
    let sources: Vec<catalogue::Source<'_>> = servers.iter().map(ToolServer::source).collect();
    let catalogue = Catalogue::without_pins(&sources);
    let listed = config.listing_limit().apply(&catalogue, &[]);
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
        let (upstream, tools) = (name.as_str().into(), Arc::clone(tools));
        catalogue::Source {
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
fn tool_servers(config: &Config, pins: &[ToolPin], user: &str) -> Vec<ToolServer> {
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
    let mind = ToolServer {
        name: broker_setup::MIND.to_owned(),
        role: Role::Mind,
        is_embedded: config.mind.upstream.is_none(),
        tools: remote.unwrap_or_else(|| embedded(embody_mind::server::tools())).into(),
    };
    let body = ToolServer {
        name: broker_setup::BODY.to_owned(),
        role: broker_setup::embedded_role(),
        is_embedded: true,
        tools: embedded(embody_body::server::tools()).into(),
    };
    let others = broker_setup::usable_bodies(config, user).map(|body| ToolServer {
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

fn tool(definition: &RawValue, source: Source) -> Option<Value<Tool>> {
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
    Some(Value::new(tool, source, Audience::Public))
}
