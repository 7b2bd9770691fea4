//! One of the embedded servers alone, for hosts: over standard streams, or on an address.

use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use clap::Args;
use embody_store::Store;
use embody_wire::serve::Service;

use super::Context;
use super::who::{self, Who};
use crate::config::resolved::Store as Configured;
use crate::contract::Voice;
use crate::failure::Failure;
use crate::serve::{self, ListenArgs};
use crate::store;

/// Where it is served, and for whom.
#[derive(Args, Debug)]
pub(crate) struct AloneArgs {
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    who: Who,
}

/// Serves it until a signal or the end of input. On stdin and stdout it speaks with one host, as this user and agent.
pub(super) fn run<S: Service>(
    args: &AloneArgs,
    context: Context,
    server: impl FnOnce(&Store, &Arc<Voice>, &str) -> Arc<S>,
    principal: impl FnOnce(&str, &str) -> Result<S::Principal, embody_store::Error>,
) -> Result<ExitCode, Failure> {
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
        let server = server(&store, &voice, &agent);
        let served = match address {
            Some(address) => serve::over_http(server, |_| Router::new(), &args.listen, address, ending).await,
            None => {
                let user =
                    if is_shared { who::user_of_token(&store, &args.who).await? } else { args.who.user() };
                tokio::select! {
                    served = serve::over_stdio(server, principal(&user, &agent)?, ending) => served,
                    () = who::token_revoked(&store), if is_shared => {
                        Err(Failure::new("the token in EMBODY_TOKEN was revoked, or is over"))
                    }
                }
            }
        };
        drop(voice);
        store.close().await;
        served
    })?;
    Ok(ExitCode::SUCCESS)
}
