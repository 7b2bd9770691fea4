//! `embody up`: everything in one process.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use embody_agent::model::ModelTimes;
use embody_agent::telegram::Bot;
use embody_agent::web::{Bounds, Turns};
use embody_broker::Broker;
use embody_wire::serve::http::Options;
use embody_wire::serve::{Ending, http};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use super::Context;
use super::who::Who;
use crate::channels::{self, Channels};
use crate::failure::Failure;
use crate::house::{self, House};
use crate::serve::{self, ListenArgs, Listening};
use crate::web::{self, Logins, Web};
use crate::{output, running, store};

const EXAMPLES: &str = "Examples:
  embody up                                 opens at http://127.0.0.1:7717; the first line is the address to open
  embody up --listen 127.0.0.1:0            on a free port
  embody up --agent writer                  the same with another agent
  embody up --listen 0.0.0.0:80 --allow-remote --host agent.example.com
  kill -USR1 PID                            on a terminal: prints another address to open";

/// How long turns may still go on when it ends.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Where it is served.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UpArgs {
    /// The address, port 0 for a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7717")]
    listen: String,
    /// Listen beyond this machine, with TLS in front of it
    #[arg(long)]
    allow_remote: bool,
    /// A name that this machine is reached by, besides localhost; may be repeated
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    #[command(flatten)]
    who: Who,
}

pub(crate) fn run(args: &UpArgs, context: Context) -> Result<ExitCode, Failure> {
    let listen = ListenArgs {
        listen: Some(args.listen.clone()),
        allow_remote: args.allow_remote,
        hosts: args.hosts.clone(),
    };
    let address = listen.address()?.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
    let scope = args.who.scope()?;
    store::block_on_all(async move {
        let ending = serve::ending()?;
        let bot = channels::bot(&context.config, scope.user(), scope.agent())?;
        let listening = serve::listen(&listen, address).await?;
        let house = House::open(context, scope.user(), scope.agent(), ModelTimes::default()).await?;
        let web = Arc::new(Web {
            store: house.store.clone(),
            voice: Arc::clone(&house.voice),
            agent: house.agent.clone(),
            broker: Arc::clone(&house.broker),
            scope,
            door: listening.door.clone(),
            turns: Turns::new(Bounds::default()),
            logins: Logins::new(listening.address.port(), listening.door.is_behind_tls),
            since: Instant::now(),
        });
        let served = serve(listening, &web, Arc::clone(&house.broker), bot, ending).await;
        drop(web);
        house.close().await;
        served
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Serves until a signal; then what goes on gets a moment.
async fn serve(
    listening: Listening,
    web: &Arc<Web>,
    broker: Arc<Broker>,
    bot: Option<Bot>,
    ending: Ending,
) -> Result<(), Failure> {
    let Listening { listener, address, door } = listening;
    let base = base(web, address);
    let limits = serve::limits();
    let options = Options { door, limits: limits.clone() };
    let router = http::router(broker, options, ending.clone()).merge(web::router(Arc::clone(web)));
    let printing = print_again(Arc::clone(web), base.clone());
    output::plain(&format!("{base}/#code={}\n", web.logins.new_code()?))?;
    output::aside(&format!("open it in a browser; hosts find {base}/mcp with a token for `mcp`"));
    if !web.agent.has_model() {
        let (message, hint) = house::no_model(&web.voice.context().config).in_short();
        output::aside(&format!("{message}; {hint}"));
    }
    running::announce(&web.voice.context().workspace, base);
    let mut channels = Channels::start(web, bot, &ending);
    let (mut end, has_begun) = (ending.clone(), ending.clone());
    let serving = async {
        tokio::join!(http::serve(listener, router, &limits, ending), async {
            end.wait().await;
            web.turns.end(LAST_WORDS).await;
        })
    };
    let broken = async {
        let failure = channels.broken().await;
        if has_begun.has_begun() {
            // Everything ends now, as it should.
            std::future::pending::<()>().await;
        }
        failure
    };
    let served = tokio::select! {
        ((), ()) = serving => Ok(()),
        failure = broken => Err(failure),
    };
    printing.abort();
    channels.end().await;
    served
}

/// The address that a browser opens.
fn base(web: &Web, address: SocketAddr) -> String {
    match web.door.hosts.first() {
        Some(host) if web.door.is_behind_tls => format!("https://{host}"),
        _ => format!("http://{address}"),
    }
}

/// A code holds once. Another is printed to a terminal alone: a file or a pipe may be read by programs that can send signals
/// too, and whoever has the code is the owner. From here on the signal does not end the process.
fn print_again(web: Arc<Web>, base: String) -> JoinHandle<()> {
    let signals = signal(SignalKind::user_defined1());
    tokio::spawn(async move {
        let Ok(mut signals) = signals else { return };
        while signals.recv().await.is_some() {
            if !std::io::stdout().is_terminal() {
                output::aside(
                    "another address is printed to a terminal only; start `embody up` again, or use a token",
                );
            } else if let Ok(code) = web.logins.new_code() {
                let _ = output::plain(&format!("{base}/#code={code}\n"));
            }
        }
    })
}
