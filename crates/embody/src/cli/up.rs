//! `embody up`: everything in one process.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use embody_agent::model::{FailureLog, ModelTimes};
use embody_agent::telegram::Bot;
use embody_agent::web_turns::{TurnLimits, Turns};
use embody_wire::server::http::Options;
use embody_wire::server::{CancellationToken, http};

use super::{Context, ScopeArgs};
use crate::app::{self, App};
use crate::channels::{self, Channels};
use crate::error::CliError;
use crate::pidfile::{UpLock, UpProcess};
use crate::reload::Reloader;
use crate::serve::{self, BoundListener, ListenArgs};
use crate::web::{self, LoginCookie, Tour, WebState};
use crate::{output, store};

const EXAMPLES: &str = "Examples:
  embody up                                 listens on 127.0.0.1:7717; the first line is the URL to open
  embody up --listen 127.0.0.1:0            on a free port
  embody up --agent writer                  with another agent
  embody up --listen 0.0.0.0:80 --allow-remote --host agent.example.com
  embody open                               prints another URL to open";

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
    let inputs = context.inputs()?;
    let mut lock = UpLock::take(&context.workspace)?;
    store::block_on_multi_thread(async move {
        let ending = serve::shutdown_signal()?;
        let bot = channels::bot(&context.config, scope.user(), scope.agent())?;
        let listening = serve::listen(&listen, address).await?;
        let (times, failures) = (ModelTimes::default(), FailureLog::Warn);
        let app = App::open(context.settings, scope.user(), scope.agent(), times, failures).await?;
        let parts = (&app.prompts, &app.broker, Arc::clone(&app.settings_builder));
        let reloader = Reloader::new("up", inputs, parts, Some(app.agent.clone()));
        let watching = tokio::spawn(Arc::clone(&reloader).watch(ending.clone()));
        let web = Arc::new(WebState {
            reloader,
            store: app.store.clone(),
            prompts: Arc::clone(&app.prompts),
            agent: app.agent.clone(),
            broker: Arc::clone(&app.broker),
            scope,
            origin_guard: listening.origin_guard.clone(),
            turns: Turns::new(TurnLimits::default()),
            cookie: LoginCookie::new(listening.address.port(), listening.origin_guard.is_behind_tls),
            since: Instant::now(),
            ending: ending.clone(),
            tour: Tour::new(),
        });
        let served = serve(listening, &web, &mut lock, bot, ending).await;
        watching.abort();
        drop((watching.await, web));
        app.close().await;
        served
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(
    listening: BoundListener,
    web: &Arc<WebState>,
    lock: &mut UpLock,
    bot: Option<Bot>,
    ending: CancellationToken,
) -> Result<(), CliError> {
    let BoundListener { listener, address, origin_guard } = listening;
    let base = base(web, address);
    let limits = serve::limits();
    let options = Options { origin_guard, limits: limits.clone() };
    let router =
        http::router(Arc::clone(&web.broker), options, ending.clone()).merge(web::router(Arc::clone(web)));
    let owner = web.scope.user();
    // A person or a script that reads the first line may run `embody open`.
    lock.announce(&UpProcess {
        address: base.clone(),
        pid: std::process::id(),
        user: owner.to_owned(),
        store: web.store.url().to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    });
    output::plain(&format!("{}\n", web::sign_in_link(&web.store, owner, &base).await?))?;
    output::stderr_line(&format!(
        "open this URL in a browser; MCP hosts connect to {base}/mcp with a token of scope `mcp`"
    ));
    if !web.agent.has_model() {
        let (message, hint) = app::no_model_error(&web.prompts.settings().config).summary();
        output::stderr_line(&format!("{message}; {hint}"));
    }
    let mut channels = Channels::start(web, bot, &ending);
    let (end, shutdown) = (ending.clone(), ending.clone());
    let serving = async {
        tokio::join!(http::serve(listener, router, &limits, ending), async {
            end.cancelled().await;
            tokio::join!(web.turns.shutdown(SHUTDOWN_GRACE), web.tour.shutdown(SHUTDOWN_GRACE));
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
    channels.shutdown().await;
    served
}

fn base(web: &WebState, address: SocketAddr) -> String {
    match web.origin_guard.hosts.first() {
        Some(host) if web.origin_guard.is_behind_tls => format!("https://{host}"),
        _ => format!("http://{address}"),
    }
}
