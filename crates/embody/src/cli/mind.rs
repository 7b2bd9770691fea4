//! `embody mind`: the embedded mind alone, as an MCP server.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use embody_mind::server::{MindServer, Principal};
use embody_store::{Scope, Store};

use super::Context;
use super::who::{self, Who};
use crate::config::resolved::Store as Configured;
use crate::contract::Voice;
use crate::failure::Failure;
use crate::serve::{self, ListenArgs};
use crate::store;

const EXAMPLES: &str = "Examples:
  embody mind                                 for a host that starts it, over stdin and stdout
  embody mind --listen 127.0.0.1:7718         for many hosts, at /mcp, and at /sse for older ones
  embody token add --user owner --scope mcp   the bearer token that such a host sends";

/// How it is served.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MindArgs {
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    who: Who,
}

pub(crate) fn run(args: &MindArgs, context: Context) -> Result<ExitCode, Failure> {
    let address = args.listen.address()?;
    let agent = args.who.agent();
    let scope = args.who.scope()?;
    let is_shared = matches!(context.config.store, Configured::Postgres { .. });
    let place = store::place(&context);
    store::block_on_all(async move {
        let ending = serve::ending()?;
        let store = Store::open(place).await?;
        let voice = Voice::new(context, store.clone(), scope.user().to_owned());
        if let Err(failure) = voice.find_zone(&agent).await {
            tracing::warn!(reason = failure.in_short().0, "the workspace cannot be read");
        }
        let clock = {
            let voice = Arc::clone(&voice);
            move |scope: &Scope| voice.now(scope)
        };
        let server = MindServer::new(store.clone(), voice.source(), agent.clone(), clock);
        let served = match address {
            Some(address) => serve::over_http(server.service(), &args.listen, address, ending).await,
            None => {
                let user =
                    if is_shared { who::user_of_token(&store, &args.who).await? } else { args.who.user() };
                let principal = Principal::host(&user, &agent)?;
                serve::over_stdio(server.service(), principal, ending).await
            }
        };
        drop(server);
        drop(voice);
        store.close().await;
        served
    })?;
    Ok(ExitCode::SUCCESS)
}
