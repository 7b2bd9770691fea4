//! `embody mcp`: runs the broker for a host.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use embody_broker::{Broker, Principal};
use embody_store::Store;

use super::Context;
use super::scope_args::{self, ScopeArgs};
use crate::config::resolved::Store as Configured;
use crate::error::CliError;
use crate::prompt_service::PromptService;
use crate::serve::{self, ListenArgs};
use crate::telemetry::Telemetry;
use crate::{broker_setup, store, web};

const EXAMPLES: &str = "Examples:
  embody mcp                                  what a host starts: the one entry in its list of MCP servers
  embody mcp --agent writer                   the same as another agent
  embody mcp --listen 127.0.0.1:7717          for many hosts, at /mcp, and at /sse for older ones
  embody token add --user owner --scope mcp   the bearer token that such a host sends";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct McpArgs {
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

pub(crate) fn run(args: &McpArgs, context: Context) -> Result<ExitCode, CliError> {
    let address = args.listen.address()?;
    let agent = args.scope.agent();
    args.scope.resolve()?;
    let is_shared = matches!(context.config.store, Configured::Postgres { .. });
    let url = store::database_url(&context);
    store::block_on_multi_thread(async move {
        let ending = serve::shutdown_signal()?;
        let store = Store::open(url).await?;
        // `--user` names the user of a host on stdin. Hosts over HTTP have tokens, and `--user` names the owner.
        let owner = if address.is_some() { args.scope.user() } else { ScopeArgs::owner() };
        let prompts = PromptService::new(context, store.clone(), owner);
        let telemetry = Telemetry::start(&prompts.context().config)?;
        let setup = broker_setup::build(&prompts, store.clone(), &agent, telemetry.meter())?;
        prompts.load_zone_or_warn(&agent).await;
        let broker = Arc::new(Broker::start(setup));
        let served = match address {
            Some(address) => {
                let metrics = |door| {
                    web::standalone_metrics(Arc::clone(&broker), Arc::clone(&prompts), store.clone(), door)
                };
                serve::over_http(Arc::clone(&broker), metrics, &args.listen, address, ending).await
            }
            None => {
                let user = if is_shared {
                    scope_args::token_user(&store, &args.scope).await?
                } else {
                    args.scope.user()
                };
                let may_approve = user == prompts.owner();
                let principal = Principal::new(user, agent, "mcp").approving(may_approve);
                let serving = serve::over_stdio(Arc::clone(&broker), principal, ending);
                tokio::select! {
                    served = serving => served,
                    () = scope_args::wait_until_token_revoked(&store), if is_shared => {
                        Err(CliError::new("the token in EMBODY_TOKEN was revoked, or is over"))
                    }
                }
            }
        };
        broker.end().await;
        drop(broker);
        telemetry.end().await;
        drop(prompts);
        store.close().await;
        served
    })?;
    Ok(ExitCode::SUCCESS)
}
