//! `embody up`: everything in one process.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use embody_agent::model::ModelTimes;
use embody_agent::telegram::Bot;
use embody_agent::web_turns::{TurnLimits, Turns};
use embody_broker::Broker;
use embody_wire::server::http::Options;
use embody_wire::server::{CancellationToken, http};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use super::{Context, ScopeArgs};
use crate::app::{self, App};
use crate::channels::{self, Channels};
use crate::error::CliError;
use crate::serve::{self, BoundListener, ListenArgs};
use crate::web::{self, LoginSessions, WebState};
use crate::{output, pidfile, store};

const EXAMPLES: &str = "Examples:
  embody up                                 listens on 127.0.0.1:7717; the first line is the URL to open
  embody up --listen 127.0.0.1:0            on a free port
  embody up --agent writer                  with another agent
  embody up --listen 0.0.0.0:80 --allow-remote --host agent.example.com
  kill -USR1 PID                            prints another URL to open, on a terminal only";

const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UpArgs {
    /// The address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7717")]
    listen: String,
    /// Allow an address that other machines can reach; put TLS in front of it
    #[arg(long)]
    allow_remote: bool,
    /// A host name that clients use to reach this machine, besides localhost; may be repeated
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    #[command(flatten)]
    scope: ScopeArgs,
}

pub(crate) fn run(args: &UpArgs, context: Context) -> Result<ExitCode, CliError> {
    let listen = ListenArgs {
        listen: Some(args.listen.clone()),
        allow_remote: args.allow_remote,
        hosts: args.hosts.clone(),
    };
    let address = listen.address()?.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
    let scope = args.scope.resolve()?;
    store::block_on_multi_thread(async move {
        let ending = serve::shutdown_signal()?;
        let bot = channels::bot(&context.config, scope.user(), scope.agent())?;
        let listening = serve::listen(&listen, address).await?;
        let app = App::open(context.settings, scope.user(), scope.agent(), ModelTimes::default()).await?;
        let web = Arc::new(WebState {
            store: app.store.clone(),
            prompts: Arc::clone(&app.prompts),
            agent: app.agent.clone(),
            broker: Arc::clone(&app.broker),
            scope,
            origin_guard: listening.origin_guard.clone(),
            turns: Turns::new(TurnLimits::default()),
            logins: LoginSessions::new(listening.address.port(), listening.origin_guard.is_behind_tls),
            since: Instant::now(),
        });
        let served = serve(listening, &web, Arc::clone(&app.broker), bot, ending).await;
        drop(web);
        app.close().await;
        served
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(
    listening: BoundListener,
    web: &Arc<WebState>,
    broker: Arc<Broker>,
    bot: Option<Bot>,
    ending: CancellationToken,
) -> Result<(), CliError> {
    let BoundListener { listener, address, origin_guard } = listening;
    let base = base(web, address);
    let limits = serve::limits();
    let options = Options { origin_guard, limits: limits.clone() };
    let router = http::router(broker, options, ending.clone()).merge(web::router(Arc::clone(web)));
    let printing = print_again(Arc::clone(web), base.clone());
    output::plain(&format!("{base}/#code={}\n", web.logins.new_code()?))?;
    output::stderr_line(&format!(
        "open this URL in a browser; MCP hosts connect to {base}/mcp with a token of scope `mcp`"
    ));
    if !web.agent.has_model() {
        let (message, hint) = app::no_model_error(&web.prompts.settings().config).summary();
        output::stderr_line(&format!("{message}; {hint}"));
    }
    pidfile::announce(&web.prompts.settings().workspace, base);
    let mut channels = Channels::start(web, bot, &ending);
    let (end, shutdown) = (ending.clone(), ending.clone());
    let serving = async {
        tokio::join!(http::serve(listener, router, &limits, ending), async {
            end.cancelled().await;
            web.turns.shutdown(SHUTDOWN_GRACE).await;
        })
    };
    let broken = async {
        let failure = channels.wait_for_failure().await;
        if shutdown.is_cancelled() {
            // A regular shutdown.
            std::future::pending::<()>().await;
        }
        failure
    };
    let served = tokio::select! {
        ((), ()) = serving => Ok(()),
        failure = broken => Err(failure),
    };
    printing.abort();
    channels.shutdown().await;
    served
}

fn base(web: &WebState, address: SocketAddr) -> String {
    match web.origin_guard.hosts.first() {
        Some(host) if web.origin_guard.is_behind_tls => format!("https://{host}"),
        _ => format!("http://{address}"),
    }
}

/// Prints another one-time code on SIGUSR1, to a terminal only: programs that can send signals may read a file or a pipe, and
/// the code grants the rights of the owner.
fn print_again(web: Arc<WebState>, base: String) -> JoinHandle<()> {
    let signals = signal(SignalKind::user_defined1());
    tokio::spawn(async move {
        let Ok(mut signals) = signals else { return };
        while signals.recv().await.is_some() {
            if !std::io::stdout().is_terminal() {
                output::stderr_line(
                    "a new sign-in URL is printed to a terminal only; restart `embody up`, or use a token",
                );
            } else if let Ok(code) = web.logins.new_code() {
                let _ = output::plain(&format!("{base}/#code={code}\n"));
            }
        }
    })
}
