//! `embody open`: prints a link that signs the owner in to the console of the running `embody up`, also when that is a service
//! without a terminal. The code reaches it through the store. Prints to a terminal only: the link grants the rights of the owner.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use clap::Args;
use serde_json::json;

use super::{Context, terminal};
use crate::config::env::non_empty;
use crate::error::{CliError, ErrorContext};
use crate::pidfile::{self, UpProcess};
use crate::{output, store, web};

const EXAMPLES: &str = "Examples:
  embody open               print a link to the console; it works once, within ten minutes
  embody open --browser     and open it, with $BROWSER or xdg-open
  sudo -u embody embody --workspace /srv/embody open     of a service that runs under another account";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct OpenArgs {
    /// Also open the link in a browser; other accounts on this machine may see the command line of the browser
    #[arg(long)]
    browser: bool,
}

pub(crate) fn run(args: &OpenArgs, context: &Context) -> Result<ExitCode, CliError> {
    terminal::require_terminal_output("embody open")?;
    let workspace = context.workspace.display();
    let UpProcess { address, user, store: used, .. } =
        pidfile::read(&context.workspace).ok_or_else(|| {
            CliError::new(format!("`embody up` does not run in the workspace `{workspace}`")).hint(
                "start it with `embody up`, which prints a link; `--workspace DIR` names another workspace",
            )
        })?;
    if !pidfile::is_ours(&context.workspace) {
        return Err(CliError::new(format!("`embody up` runs in `{workspace}` under another account"))
            .hint("run `embody open` under that account, as with `sudo -u NAME`"));
    }
    let ours = store::database_url(context).to_string();
    if ours != used {
        return Err(CliError::usage(format!(
            "`embody up` uses the store `{used}`, and this command `{ours}`"
        ))
        .hint("pass the same `--store` and `--config` as to `embody up`"));
    }
    let link = store::with(context, async |store| web::sign_in_link(store, &user, &address).await)?;
    context.print_plain(&json!({ "url": link, "address": address, "user": user }), || format!("{link}\n"))?;
    if args.browser {
        open_browser(&link)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts the browser and does not wait for it: some end with their last window.
fn open_browser(link: &str) -> Result<(), CliError> {
    let browser = non_empty("BROWSER").unwrap_or_else(|| OsString::from("xdg-open"));
    let failed = || format!("the browser `{}` cannot be started", browser.display());
    let hint = "open the link yourself, or set BROWSER to the command of a browser";
    let words = browser.to_str().and_then(shlex::split).filter(|words| !words.is_empty());
    let mut words = words.ok_or_else(|| CliError::usage(failed()).hint(hint))?.into_iter();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).arg(link).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().context(failed()).map_err(|error| error.hint(hint))?;
    output::stderr_line("opened in the browser");
    Ok(())
}
