//! `embody mind` and `embody body`: one embedded server alone, over standard streams or on an address.

use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use clap::Args;
use embody_store::Store;
use embody_wire::server::Service;

use super::Context;
use super::scope_args::{self, ScopeArgs};
use crate::config::resolved::Store as Configured;
use crate::error::CliError;
use crate::prompt_service::PromptService;
use crate::serve::{self, ListenArgs};
use crate::{embedded, store};

#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    scope: ScopeArgs,
}

/// Serves until a signal or the end of input. On standard streams it serves one host, as the user and agent of `args`.
fn serve<S: Service>(
    args: &ServeArgs,
    context: Context,
    server: impl FnOnce(&Store, &Arc<PromptService>, &str) -> Arc<S>,
    principal: impl FnOnce(&str, &str) -> Result<S::Principal, embody_store::Error>,
) -> Result<ExitCode, CliError> {
    let address = args.listen.address()?;
    let agent = args.scope.agent();
    let scope = args.scope.resolve()?;
    let is_shared = matches!(context.config.store, Configured::Postgres { .. });
    let url = store::database_url(&context);
    store::block_on_multi_thread(async move {
        let ending = serve::shutdown_signal()?;
        let store = Store::open(url).await?;
        let prompts = PromptService::new(context, store.clone(), scope.user().to_owned());
        prompts.load_zone_or_warn(&agent).await;
        let server = server(&store, &prompts, &agent);
        let served = match address {
            Some(address) => serve::over_http(server, |_| Router::new(), &args.listen, address, ending).await,
            None => {
                let user = if is_shared {
                    scope_args::token_user(&store, &args.scope).await?
                } else {
                    args.scope.user()
                };
                tokio::select! {
                    served = serve::over_stdio(server, principal(&user, &agent)?, ending) => served,
                    () = scope_args::wait_until_token_revoked(&store), if is_shared => {
                        Err(CliError::new("the token in EMBODY_TOKEN was revoked, or is over"))
                    }
                }
            }
        };
        drop(prompts);
        store.close().await;
        served
    })?;
    Ok(ExitCode::SUCCESS)
}

const MIND_EXAMPLES: &str = "Examples:
  embody mind                                 for a host that starts it, over stdin and stdout
  embody mind --listen 127.0.0.1:7718         for many hosts, at /mcp, and at /sse for older ones
  embody token add --user owner --scope mcp   the bearer token that such a host sends";

#[derive(Args, Debug)]
#[command(after_help = MIND_EXAMPLES)]
pub(crate) struct MindArgs {
    #[command(flatten)]
    serve: ServeArgs,
}

pub(crate) fn mind(args: &MindArgs, context: Context) -> Result<ExitCode, CliError> {
    serve(&args.serve, context, embedded::mind, embody_mind::server::Principal::host)
}

const BODY_EXAMPLES: &str = "Examples:
  embody body                                 for a host that starts it, over stdin and stdout
  embody body --listen 127.0.0.1:7719         for many hosts, at /mcp, and at /sse for older ones
  embody mcp                                  behind the broker, where its messages are gated";

#[derive(Args, Debug)]
#[command(after_help = BODY_EXAMPLES)]
pub(crate) struct BodyArgs {
    #[command(flatten)]
    serve: ServeArgs,
}

pub(crate) fn body(args: &BodyArgs, context: Context) -> Result<ExitCode, CliError> {
    serve(&args.serve, context, embedded::body, embody_body::server::Principal::host)
}
