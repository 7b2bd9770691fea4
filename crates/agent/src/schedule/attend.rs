//! One due schedule, from the claim to the end of its run. What a run did nobody can take back, so a run that was begun is
//! never begun again: it ends, or it is `unknown`.

use std::pin::Pin;
use std::time::Duration;

use embody_store::{Error, ErrorKind, Fenced, FinishRun, RunOutcome, RunStart, ScheduleClaim, Store};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::misfire::{Late, Plan, plan};
use super::{Misfire, SchedulerSettings, Timetable};

/// The longest output that is kept, in bytes.
const OUTPUT_LIMIT: usize = 250_000;
const FIRST_REST: Duration = Duration::from_millis(100);
const STOPPED: &str = "stopped: embody was ended before the run was";

type Working = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

/// What a run is: the output, or in words why it failed. Dropping the future ends the run.
pub struct Work(Box<dyn Fn(ScheduleClaim) -> Working + Send + Sync>);

impl Work {
    /// Called once for every run.
    pub fn new<F>(work: impl Fn(ScheduleClaim) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<String, String>> + Send + 'static,
    {
        Self(Box::new(move |claim| Box::pin(work(claim))))
    }
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Work")
    }
}

/// How far the scheduler is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Runs are begun.
    Open,
    /// None is begun any more; those that go on may end.
    Leaving,
    /// Those that go on are stopped.
    Stopping,
}

/// What every run needs.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) store: Store,
    pub(super) work: Work,
    pub(super) settings: SchedulerSettings,
    pub(super) phase: watch::Sender<Phase>,
}

/// How the work ended, as far as the scheduler is concerned.
enum Worked {
    Said(Result<String, String>),
    /// It was stopped, for this reason. What it had asked others to do may go on.
    Stopped(String),
    /// The lease is gone, and with it the right to go on and to say how it ended.
    Lost,
}

/// Runs it, or gives it back.
pub(super) async fn attend(desk: &Desk, claim: &ScheduleClaim) {
    let (id, due_at) = (&claim.schedule.id, claim.due_at);
    let attended = match planned(desk, claim) {
        _ if *desk.phase.borrow() != Phase::Open => give_back(desk, claim, claim.schedule.next_at).await,
        Ok(Plan::Skip { next }) => {
            tracing::info!(schedule = %id, due_at, "a missed run is left out");
            give_back(desk, claim, next).await
        }
        Ok(Plan::Run { next }) => run(desk, claim, next).await,
        Err(reason) => file_unreadable(desk, claim, reason).await,
    };
    if let Err(error) = attended {
        tracing::warn!(schedule = %id, due_at, reason = %error, "a schedule could not be attended to");
    }
}

fn planned(desk: &Desk, claim: &ScheduleClaim) -> Result<Plan, String> {
    let schedule = &claim.schedule;
    let table = Timetable::parse(&schedule.cron, &schedule.timezone).map_err(|error| error.to_string())?;
    let misfire = Misfire::named(&schedule.misfire)?;
    if claim.is_extra() {
        return Ok(Plan::Run { next: schedule.next_at });
    }
    let late = Late { table: &table, due: claim.due_at, now: claim.claimed_at, grace: desk.settings.grace };
    Ok(plan(misfire, &late))
}

async fn give_back(desk: &Desk, claim: &ScheduleClaim, next: Option<i64>) -> Result<(), Error> {
    desk.store.return_schedule(claim, next).await.map(drop)
}

/// A schedule that cannot be read is not run again; its owner finds the reason among its runs.
async fn file_unreadable(desk: &Desk, claim: &ScheduleClaim, reason: String) -> Result<(), Error> {
    match desk.store.start_run(claim).await? {
        RunStart::Started => {
            let output = format!("the schedule cannot be run: {reason}");
            file(desk, claim, FinishRun { outcome: RunOutcome::Failed, output, next_at: None }).await
        }
        RunStart::StartedBefore | RunStart::Lost => give_back(desk, claim, None).await,
    }
}

async fn run(desk: &Desk, claim: &ScheduleClaim, next: Option<i64>) -> Result<(), Error> {
    match desk.store.start_run(claim).await? {
        RunStart::Started => {}
        RunStart::StartedBefore => return give_back(desk, claim, next).await,
        // Whatever its owner made of it meanwhile stays as it is.
        RunStart::Lost => return give_back(desk, claim, claim.schedule.next_at).await,
    }
    let (schedule, due_at) = (&claim.schedule.id, claim.due_at);
    let (outcome, output) = match worked(desk, claim).await {
        Worked::Said(Ok(output)) => (RunOutcome::Done, output),
        Worked::Said(Err(reason)) => (RunOutcome::Failed, reason),
        Worked::Stopped(reason) => {
            tracing::warn!(%schedule, due_at, %reason, "a run was stopped; its end is unknown");
            (RunOutcome::Unknown, reason)
        }
        Worked::Lost => {
            tracing::warn!(%schedule, due_at, "a run lost its lease and was stopped; its end is unknown");
            return Ok(());
        }
    };
    file(desk, claim, FinishRun { outcome, output, next_at: next }).await
}

/// Lets the work go on for as long as the lease is ours.
async fn worked(desk: &Desk, claim: &ScheduleClaim) -> Worked {
    let lease = desk.settings.lease;
    let (beat, hurried) = (lease / 3, lease / 20);
    let mut phase = desk.phase.subscribe();
    // As a task it goes on while the lease is renewed, and its panic is its own. Dropped, it ends.
    let mut task = JoinSet::new();
    task.spawn((desk.work.0)(claim.clone()));
    let limit = Instant::now() + desk.settings.run_limit;
    let mut ours_until = Instant::now() + lease;
    let mut renewal = Instant::now() + beat;
    loop {
        tokio::select! {
            biased;
            Some(ended) = task.join_next() => return Worked::Said(ended.unwrap_or_else(|error| Err(broken(&error)))),
            () = stopping(&mut phase) => return Worked::Stopped(STOPPED.to_owned()),
            () = sleep_until(limit) => return Worked::Stopped(too_long(desk.settings.run_limit)),
            () = sleep_until(renewal) => {
                let asked = Instant::now();
                match timeout(beat, desk.store.renew_schedule(claim, lease)).await {
                    Ok(Ok(Fenced::Kept)) => (ours_until, renewal) = (asked + lease, asked + beat),
                    Ok(Ok(Fenced::Lost)) => return Worked::Lost,
                    // Nobody answers: until the lease is over it is ours.
                    Ok(Err(_)) | Err(_) if Instant::now() < ours_until => renewal = Instant::now() + hurried,
                    Ok(Err(_)) | Err(_) => return Worked::Lost,
                }
            }
        }
    }
}

async fn stopping(phase: &mut watch::Receiver<Phase>) {
    // Whoever could say so is gone: nobody will.
    if phase.wait_for(|phase| *phase == Phase::Stopping).await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn too_long(limit: Duration) -> String {
    format!("stopped: the run took longer than {} s", limit.as_secs())
}

fn broken(error: &JoinError) -> String {
    format!("the run broke off: {}", if error.is_panic() { "it panicked" } else { "it was cancelled" })
}

/// Writes down how it ended. A store that does not answer is asked again for as long as a lease lasts.
async fn file(desk: &Desk, claim: &ScheduleClaim, finish: FinishRun) -> Result<(), Error> {
    let finish = FinishRun { output: kept(&finish.output), ..finish };
    let deadline = Instant::now() + desk.settings.lease;
    let mut rest = FIRST_REST;
    loop {
        match desk.store.finish_run(claim, finish.clone()).await {
            Ok(Fenced::Kept) => return Ok(()),
            Ok(Fenced::Lost) => {
                let (schedule, due_at) = (&claim.schedule.id, claim.due_at);
                tracing::warn!(%schedule, due_at, "a run ended after its lease; its end is unknown");
                return Ok(());
            }
            Err(error) if error.kind() == ErrorKind::Invalid || Instant::now() + rest > deadline => {
                return Err(error);
            }
            Err(_) => sleep(rest).await,
        }
        rest = (rest * 2).min(desk.settings.lease / 3);
    }
}

/// What both databases can hold of it.
fn kept(output: &str) -> String {
    let whole = output.replace('\0', "\u{fffd}");
    if whole.len() <= OUTPUT_LIMIT {
        return whole;
    }
    let cut = whole.floor_char_boundary(OUTPUT_LIMIT);
    format!("{}\n[cut: {} bytes in all]", whole.get(..cut).unwrap_or_default(), whole.len())
}
