//! The flags of a prompt, as one request, and the prompt that they ask for.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use embody_agent::turn::PromptRequest;
use embody_prompt::{Audience, Layout, RequestFacts};
use embody_store::Store;
use embody_workspace::AgentName;

use crate::cli::args::SCHEDULED;
use crate::cli::{Context, ScopeArgs};
use crate::error::CliError;
use crate::prompt_service::{LoadedPrompt, PromptService};
use crate::{store, time};

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PromptArgs {
    /// The layout: body, full, tagged or channel [default: the agent's, else the configured one]
    #[arg(long, value_parser = ["body", "full", "tagged", "channel"])]
    layout: Option<String>,
    /// Leave the rules file out
    #[arg(long)]
    no_body: bool,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    /// The channel that the reply goes to: web, telegram, scheduled or another
    #[arg(long)]
    channel: Option<String>,
    /// The task that the run is bound to, by its id
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// As for a run whose reply is not shown
    #[arg(long)]
    background: bool,
    /// The time, instead of now
    #[arg(long, value_name = "RFC3339", value_parser = time::parse_timestamp)]
    pub(super) now: Option<jiff::Timestamp>,
    /// The time zone, instead of the user's
    #[arg(long, value_name = "TZ", value_parser = time::parse_zone)]
    timezone: Option<String>,
    /// The project whose CLAUDE.md and AGENTS.md files are read, up to the root
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Whether the model's provider takes tools natively [default: as configured]
    #[arg(long, value_name = "true|false")]
    native_tools: Option<bool>,
    /// Only tools and project context (layout full)
    #[arg(long, conflicts_with = "minimal")]
    simple: bool,
    /// Only the first sentence, for titles and summaries (layout full)
    #[arg(long)]
    minimal: bool,
    /// Try these standing instructions
    #[arg(long, value_name = "TEXT")]
    instructions: Option<String>,
    /// Who will read the replies: owner, user, group or public
    #[arg(long, value_parser = ["owner", "user", "group", "public"], default_value = "owner")]
    audience: String,
    /// The session's key, shown in the runtime section; of a turn, its thread
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
    /// The language that the request asks for, shown in the runtime section
    #[arg(long, value_name = "LANGUAGE")]
    accept_language: Option<String>,
    /// The address that the request comes from, shown in the runtime section
    #[arg(long, value_name = "IP")]
    remote_ip: Option<String>,
    /// The place that the request comes from, shown in the runtime section
    #[arg(long, value_name = "PLACE")]
    location: Option<String>,
}

impl PromptArgs {
    fn request(&self) -> Result<PromptRequest, CliError> {
        let is_short = self.simple || self.minimal;
        if is_short && self.layout.as_deref().is_some_and(|name| name != Layout::FULL.name) {
            return Err(CliError::usage("`--simple` and `--minimal` are forms of the layout `full`")
                .hint("leave `--layout` out, or use `--layout full`"));
        }
        // Its rules are stricter than those of the store, and its message says what is allowed.
        AgentName::new(&self.scope.agent())?;
        Ok(PromptRequest {
            channel: self.channel.clone(),
            // clap rejects other names; the widest audience is the safe fallback.
            audience: Audience::from_name(&self.audience).unwrap_or(Audience::Public),
            background: self.background || self.channel.as_deref() == Some(SCHEDULED),
            task: self.task.clone(),
            facts: RequestFacts {
                session: self.session.clone(),
                accept_language: self.accept_language.clone(),
                remote_ip: self.remote_ip.clone(),
                location: self.location.clone(),
            },
            layout: match &self.layout {
                _ if self.minimal => Some(Layout::MINIMAL),
                _ if self.simple => Some(Layout::SIMPLE),
                name => name.as_deref().and_then(Layout::from_name),
            },
            without_body: self.no_body,
            now: self.now,
            timezone: self.timezone.clone(),
            project: self.project.clone(),
            native_tools: self.native_tools,
            instructions: self.instructions.clone(),
            ..PromptRequest::new(self.scope.resolve()?)
        })
    }
}

/// Builds the prompt with the tools that are known without starting a server, and logs the outcome. Creates no store.
pub(crate) fn load_prompt(context: &Context, args: &PromptArgs) -> Result<LoadedPrompt, CliError> {
    let request = args.request()?;
    let url = store::database_url(context);
    let loaded = store::block_on(async {
        let store = Store::open_existing(url).await?;
        let settings = Arc::clone(&context.settings);
        let prompts = PromptService::new(settings, store.clone(), ScopeArgs::owner());
        let loaded = prompts.build_with_known_tools(&request).await;
        drop(prompts);
        if let Some(store) = store {
            store.close().await;
        }
        loaded
    })?;
    loaded.log();
    Ok(loaded)
}
