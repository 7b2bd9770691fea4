//! `embody mcp`: the broker, what a host runs.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use embody_broker::{Broker, Principal};
use embody_store::Store;

use super::Context;
use super::who::{self, Who};
use crate::config::resolved::Store as Configured;
use crate::contract::Voice;
use crate::failure::Failure;
use crate::serve::{self, ListenArgs};
use crate::telemetry::Telemetry;
use crate::{nerves, store, web};

const EXAMPLES: &str = "Examples:
  embody mcp                                  what a host starts: the one entry in its list of MCP servers
  embody mcp --agent writer                   the same as another agent
  embody mcp --listen 127.0.0.1:7717          for many hosts, at /mcp, and at /sse for older ones
  embody token add --user owner --scope mcp   the bearer token that such a host sends";

/// How it is served.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct McpArgs {
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    who: Who,
}

pub(crate) fn run(args: &McpArgs, context: Context) -> Result<ExitCode, Failure> {
    let address = args.listen.address()?;
    let agent = args.who.agent();
    args.who.scope()?;
    let is_shared = matches!(context.config.store, Configured::Postgres { .. });
    let place = store::place(&context);
    store::block_on_all(async move {
        let ending = serve::ending()?;
        let store = Store::open(place).await?;
        // A host on stdin speaks for the user that is named. Hosts over HTTP bring tokens, and the owner is named.
        let owner = if address.is_some() { args.who.user() } else { Who::owner() };
        let voice = Voice::new(context, store.clone(), owner);
        let telemetry = Telemetry::start(&voice.context().config)?;
        let setup = nerves::setup(voice.context(), store.clone(), &voice, &agent, telemetry.meter())?;
        if let Err(failure) = voice.find_zone(&agent).await {
            tracing::warn!(reason = failure.in_short().0, "the workspace cannot be read");
        }
        let broker = Arc::new(Broker::start(setup));
        let served = match address {
            Some(address) => {
                let metrics =
                    |door| web::metrics_alone(Arc::clone(&broker), Arc::clone(&voice), store.clone(), door);
                serve::over_http(Arc::clone(&broker), metrics, &args.listen, address, ending).await
            }
            None => {
                let user =
                    if is_shared { who::user_of_token(&store, &args.who).await? } else { args.who.user() };
                let may_approve = user == voice.owner();
                let principal = Principal::new(user, agent, "mcp").approving(may_approve);
                let serving = serve::over_stdio(Arc::clone(&broker), principal, ending);
                tokio::select! {
                    served = serving => served,
                    () = who::token_revoked(&store), if is_shared => {
                        Err(Failure::new("the token in EMBODY_TOKEN was revoked, or is over"))
                    }
                }
            }
        };
        broker.end().await;
        drop(broker);
        telemetry.end().await;
        drop(voice);
        store.close().await;
        served
    })?;
    Ok(ExitCode::SUCCESS)
}
