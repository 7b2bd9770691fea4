//! `embody mcp`, `embody mind` and `embody body`: the broker, or one embedded server alone, over standard streams or on an
//! address.

use std::io::{IsTerminal, stdin};
use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use clap::Args;
use embody_broker::Broker;
use embody_store::{Principal, Store};
use embody_wire::server::{CancellationToken, Service};
use serde_json::json;

use super::Context;
use super::args::{self, ScopeArgs};
use crate::error::CliError;
use crate::prompt_service::PromptService;
use crate::reload::Reloader;
use crate::serve::{self, ListenArgs};
use crate::telemetry::Telemetry;
use crate::{broker_setup, embedded, output, store, web};

pub(super) const MCP_EXAMPLES: &str = "Examples:
  embody mcp                                  on stdio: the entry in a host's list of MCP servers
  embody mcp --agent writer                   with another agent
  embody mcp --listen 127.0.0.1:7717          for many hosts: streamable HTTP at /mcp, legacy SSE at /sse
  embody token add --user owner --scope mcp   the bearer token that such a host sends";

pub(super) const MIND_EXAMPLES: &str = "Examples:
  embody mind                                 on stdio, started by a host
  embody mind --listen 127.0.0.1:7718         for many hosts: streamable HTTP at /mcp, legacy SSE at /sse
  embody token add --user owner --scope mcp   the bearer token that such a host sends";

pub(super) const BODY_EXAMPLES: &str = "Examples:
  embody body                                 on stdio, started by a host
  embody body --listen 127.0.0.1:7719         for many hosts: streamable HTTP at /mcp, legacy SSE at /sse
  embody mcp                                  behind the broker, which gates its calls";

#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

pub(crate) fn run(args: &ServeArgs, context: Context) -> Result<ExitCode, CliError> {
    let address = args.listen.address()?;
    let agent = args.scope.agent();
    args.scope.resolve()?;
    let is_shared = is_shared(&context);
    let (url, inputs) = (store::database_url(&context), context.inputs()?);
    // A person typed it. It serves nevertheless: some hosts give their servers a terminal, and messages can be pasted.
    if address.is_none() && stdin().is_terminal() {
        output::stderr_line(&host_entries(&context.entry_arguments(&args.scope)));
    }
    store::block_on_multi_thread(async move {
        let ending = serve::shutdown_signal()?;
        let store = Store::open(url).await?;
        // `--user` names the user of a host on stdin. Hosts over HTTP have tokens, and `--user` names the owner.
        let owner = if address.is_some() { args.scope.user() } else { ScopeArgs::owner() };
        let prompts = PromptService::new(context.settings, Some(store.clone()), owner);
        let telemetry = Telemetry::start(&prompts.settings().config)?;
        let (setup, builder) = broker_setup::build(&prompts, store.clone(), &agent, telemetry.meter())?;
        prompts.load_zone_or_warn(&agent).await;
        let broker = Arc::new(Broker::start(setup));
        let reloader = Reloader::new("mcp", inputs, (&prompts, &broker, Arc::new(builder)), None);
        let watching = tokio::spawn(reloader.watch(ending.clone()));
        let served = match address {
            Some(address) => {
                let metrics = |guard| {
                    web::standalone_metrics(Arc::clone(&broker), Arc::clone(&prompts), store.clone(), guard)
                };
                serve::over_http(Arc::clone(&broker), metrics, &args.listen, address, ending).await
            }
            None => {
                let user = stdio_user(&store, &args.scope, is_shared).await?;
                let may_approve = user == prompts.owner();
                let principal = Principal { may_approve, ..Principal::host(&user, &agent)? };
                serve_stdio(Arc::clone(&broker), principal, &store, is_shared, ending).await
            }
        };
        watching.abort();
        // It holds the broker.
        let _ = watching.await;
        broker.shutdown().await;
        drop(broker);
        telemetry.end().await;
        drop(prompts);
        store.close().await;
        served
    })?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn mind(args: &ServeArgs, context: Context) -> Result<ExitCode, CliError> {
    serve(args, context, embedded::mind)
}

pub(crate) fn body(args: &ServeArgs, context: Context) -> Result<ExitCode, CliError> {
    serve(args, context, |store, prompts, agent| {
        embedded::body(store, prompts, agent, embedded::channels(&prompts.settings().config))
    })
}

/// Serves until a signal or the end of input. On standard streams it serves one host, as the user and agent of `args`.
fn serve<S: Service<Principal = Principal>>(
    args: &ServeArgs,
    context: Context,
    server: impl FnOnce(&Store, &Arc<PromptService>, &str) -> Arc<S>,
) -> Result<ExitCode, CliError> {
    let address = args.listen.address()?;
    let agent = args.scope.agent();
    let scope = args.scope.resolve()?;
    let is_shared = is_shared(&context);
    let url = store::database_url(&context);
    store::block_on_multi_thread(async move {
        let ending = serve::shutdown_signal()?;
        let store = Store::open(url).await?;
        let prompts = PromptService::new(context.settings, Some(store.clone()), scope.user().to_owned());
        prompts.load_zone_or_warn(&agent).await;
        let server = server(&store, &prompts, &agent);
        let served = match address {
            Some(address) => serve::over_http(server, |_| Router::new(), &args.listen, address, ending).await,
            None => {
                let user = stdio_user(&store, &args.scope, is_shared).await?;
                serve_stdio(server, Principal::host(&user, &agent)?, &store, is_shared, ending).await
            }
        };
        drop(prompts);
        store.close().await;
        served
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What the command is for, and the entry for the usual hosts.
fn host_entries(arguments: &[String]) -> String {
    let json = json!({ "mcpServers": { "embody": { "command": "embody", "args": arguments } } });
    let code =
        json!({ "servers": { "embody": { "type": "stdio", "command": "embody", "args": arguments } } });
    let list = json!(arguments);
    let words = shlex::try_join(arguments.iter().map(String::as_str)).unwrap_or_default();
    format!(
        "embody mcp is started by an MCP host, such as Claude Code, and speaks MCP (JSON-RPC) on stdin and stdout.
It waits for messages now; Ctrl-C ends it. Add one of these to your host instead:

Claude Code   claude mcp add embody -- embody {words}
Codex         ~/.codex/config.toml
              [mcp_servers.embody]
              command = \"embody\"
              args = {list}
Gemini CLI    ~/.gemini/settings.json
              {json}
VS Code       .vscode/mcp.json
              {code}

docs/hosts.md has more hosts, and the entry over HTTP (embody mcp --listen 127.0.0.1:7717)."
    )
}

fn is_shared(context: &Context) -> bool {
    context.config.store.url.as_ref().is_some_and(|url| !url.is_sqlite())
}

async fn stdio_user(store: &Store, scope: &ScopeArgs, is_shared: bool) -> Result<String, CliError> {
    if is_shared { args::token_user(store, scope).await } else { Ok(scope.user()) }
}

/// Serves one host until a signal or the end of input; on a shared store also until its token is revoked.
async fn serve_stdio<S: Service>(
    service: Arc<S>,
    principal: S::Principal,
    store: &Store,
    is_shared: bool,
    ending: CancellationToken,
) -> Result<(), CliError> {
    tokio::select! {
        served = serve::over_stdio(service, principal, ending) => served,
        () = args::wait_until_token_revoked(store), if is_shared => {
            Err(CliError::new("the token in EMBODY_TOKEN was revoked or has expired"))
        }
    }
}
