//! `embody approvals watch`: shows each call as it comes, and takes the answer with one key.

use std::io::{Read, stdin};
use std::time::Duration;

use embody_broker::policy::Via;
use embody_store::approvals::{Answer, Approval, ApprovalFilter, DecideApproval, DecideOutcome};
use embody_store::{IdSet, Store, Topic};
use embody_wire::server::CancellationToken;
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios};
use rustix::termios::{tcflush, tcgetattr, tcsetattr};
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::Instant;

use super::{BY, as_text, summary};
use crate::approvals::{check_approvable, check_decision, outcome};
use crate::cli::{Context, terminal};
use crate::error::{CliError, ErrorContext};
use crate::output::{self, printable};
use crate::{serve, store};

/// A key that comes sooner after a call is shown was meant for what was shown before.
const READING_TIME: Duration = Duration::from_millis(500);
/// Also notices calls that expire, which the store does not announce.
const POLL: Duration = Duration::from_secs(1);
const LIMIT: u32 = 100;
/// A call with more lines than this is shown by its first three.
const BRIEF_LINES: usize = 16;
const KEYS: &str = "y approve · n deny · d details · s later · q quit";

pub(super) fn watch(user: Option<&str>, context: &Context) -> Result<(), CliError> {
    if context.json {
        return Err(CliError::usage("`embody approvals watch` is for a person and has no JSON")
            .hint("`embody approvals list --json` lists the calls"));
    }
    terminal::require_terminal("embody approvals watch")?;
    let stop = serve::shutdown_signal()?;
    let _mode = KeyMode::enter()?;
    store::with(context, async |store| {
        let mut watch = Watch { store, context, user, shown: None, later: Vec::new() };
        watch.run(&stop).await
    })
}

struct Watch<'a> {
    store: &'a Store,
    context: &'a Context,
    user: Option<&'a str>,
    shown: Option<Shown>,
    /// Ids of calls that the person left for later.
    later: Vec<String>,
}

struct Shown {
    approval: Approval,
    at: Instant,
    /// Whether every line was shown: only then it can be approved.
    is_whole: bool,
}

impl Watch<'_> {
    async fn run(&mut self, stop: &CancellationToken) -> Result<(), CliError> {
        let mut changes = self.store.changes(Topic::Approvals);
        let mut keys = keys();
        output::plain("Waiting for calls that need approval. q or Ctrl-C ends this.\n")?;
        loop {
            self.poll().await?;
            let key = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                key = keys.recv() => key,
                changed = changes.changed() => { changed?; continue }
                () = tokio::time::sleep(POLL) => continue,
            };
            match key {
                // The end of the input.
                None | Some(b'q' | 4) => return Ok(()),
                Some(key) => self.press(key).await?,
            }
        }
    }

    /// Shows the oldest call that is new, unless one is shown that still waits.
    async fn poll(&mut self) -> Result<(), CliError> {
        let mut pending = match self.user {
            Some(user) => self.store.approvals().list(user, ApprovalFilter::Pending, LIMIT).await?,
            None => self.store.approvals().list_all(ApprovalFilter::Pending, LIMIT).await?,
        };
        if let Some(shown) = &self.shown {
            if pending.iter().any(|approval| approval.id == shown.approval.id) {
                return Ok(());
            }
            let now = self.store.approvals().find(&shown.approval.id).await?;
            self.shown = None;
            output::plain(&format!("  {}\n", ended(now.as_ref())))?;
        }
        self.later.retain(|id| pending.iter().any(|approval| approval.id == *id));
        pending.retain(|approval| !self.later.contains(&approval.id));
        let Some(approval) = pending.pop() else { return Ok(()) };
        let is_whole = summary(&approval, BRIEF_LINES).is_none();
        self.show(approval, is_whole).await
    }

    async fn show(&mut self, approval: Approval, is_whole: bool) -> Result<(), CliError> {
        let short = self.store.ids().shorten(IdSet::Approvals, vec![approval.id.clone()]).await?;
        let id = short.of(&approval.id);
        let text = match summary(&approval, BRIEF_LINES).filter(|_| !is_whole) {
            Some(brief) => format!("{id}\n{brief}  … press d to see all of it\n"),
            None => as_text(&approval, id, &self.context.config),
        };
        // Keys that were pressed before this was shown are not about it.
        let _ = tcflush(stdin(), QueueSelector::IFlush);
        output::styled(&format!("\n{text}  {KEYS}\n"))?;
        self.shown = Some(Shown { approval, at: Instant::now(), is_whole });
        Ok(())
    }

    async fn press(&mut self, key: u8) -> Result<(), CliError> {
        let Some(shown) = &self.shown else { return Ok(()) };
        if shown.at.elapsed() < READING_TIME {
            return Ok(());
        }
        let (approval, is_whole) = (shown.approval.clone(), shown.is_whole);
        match key {
            b'y' if !is_whole => self.show(approval, true).await,
            b'y' => self.decide(approval, Answer::Approve).await,
            b'n' => self.decide(approval, Answer::Deny).await,
            b'd' => self.show(approval, true).await,
            b's' => {
                self.later.push(approval.id);
                self.shown = None;
                output::plain("  left for later\n")
            }
            _ => Ok(()),
        }
    }

    async fn decide(&mut self, approval: Approval, answer: Answer) -> Result<(), CliError> {
        if answer == Answer::Approve
            && let Err(error) = check_approvable(&approval, &self.context.config, Via::Cli)
        {
            let (message, hint) = error.summary();
            return output::plain(&format!("  not approved: {message}\n  hint: {hint}\n"));
        }
        let Approval { user, id, .. } = approval;
        let decide = DecideApproval { user, id, answer, by: BY.to_owned() };
        let line = match self.store.approvals().decide(decide).await? {
            DecideOutcome::Decided(now) | DecideOutcome::NotPending(now) => {
                match check_decision(&now, answer) {
                    Ok(done) => done.to_owned(),
                    Err(error) => error.summary().0,
                }
            }
            DecideOutcome::Missing => ended(None),
        };
        self.shown = None;
        output::plain(&format!("  {line}\n"))
    }
}

/// What became of a call that was decided or ended elsewhere.
fn ended(approval: Option<&Approval>) -> String {
    match approval {
        Some(approval) => printable(&outcome(approval)).into_owned(),
        None => "the approval no longer exists".to_owned(),
    }
}

/// The keys that are pressed, from a thread that ends with the process.
fn keys() -> Receiver<u8> {
    let (sender, keys) = channel(1);
    std::thread::spawn(move || {
        let mut key = [0];
        while let Ok(1) = stdin().lock().read(&mut key) {
            let [key] = key;
            if sender.blocking_send(key).is_err() {
                return;
            }
        }
    });
    keys
}

/// Each key arrives at once and is not echoed; signals stay.
struct KeyMode {
    before: Termios,
}

impl KeyMode {
    fn enter() -> Result<Self, CliError> {
        let failed = "the terminal cannot be set up";
        let before = tcgetattr(stdin()).context(failed)?;
        let mut mode = before.clone();
        mode.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        mode.special_codes[SpecialCodeIndex::VMIN] = 1;
        mode.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(stdin(), OptionalActions::Flush, &mode).context(failed)?;
        Ok(Self { before })
    }
}

impl Drop for KeyMode {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}
