//! One due schedule, from the claim to the end of its run. A run cannot be undone, so a started run is never started
//! again: it ends, or its outcome is `unknown`.

use std::time::Duration;

use embody_store::schedules::{FinishRun, RunOutcome, RunStart, ScheduleClaim};
use embody_store::{Error, ErrorKind, LeaseStatus, Store};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::misfire::{DueRun, Plan, plan};
use super::{Misfire, SchedulerSettings, Timetable};
use crate::AsyncCallback;

const MAX_OUTPUT_BYTES: usize = 250_000;
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
const STOPPED: &str = "stopped: embody was stopped during the run";

/// The work of a run. Returns its output. Dropping the future ends the run.
pub type JobHandler = AsyncCallback<ScheduleClaim, Result<String, JobError>>;

/// Why a run has no output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobError {
    Failed(String),
    /// Nothing was done. A one-time schedule is due again at `retry_at`, in microseconds since 1970.
    Skipped {
        reason: String,
        retry_at: Option<i64>,
    },
}

impl From<String> for JobError {
    fn from(reason: String) -> Self {
        Self::Failed(reason)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Runs are started.
    Open,
    /// No run is started; running ones may end.
    Draining,
    /// Running ones are stopped.
    Stopping,
}

pub(super) struct JobContext {
    pub(super) store: Store,
    pub(super) handler: JobHandler,
    pub(super) settings: SchedulerSettings,
    pub(super) phase: watch::Sender<Phase>,
}

/// How the work ended, from the scheduler's view.
enum JobResult {
    Finished(Result<String, JobError>),
    /// It was stopped for this reason. Calls that it had made may still be running.
    Stopped(String),
    /// The lease is lost, and with it the right to continue and to record the end.
    Lost,
}

/// Runs the schedule, or releases the claim.
pub(super) async fn run_job(context: &JobContext, claim: &ScheduleClaim) {
    let (id, due_at) = (&claim.schedule.id, claim.due_at);
    let result = match plan_run(context, claim) {
        _ if *context.phase.borrow() != Phase::Open => release(context, claim, claim.schedule.next_at).await,
        Ok(Plan::Skip { next }) => {
            tracing::info!(schedule = %id, due_at, "a missed run is skipped");
            release(context, claim, next).await
        }
        Ok(Plan::Run { next }) => run(context, claim, next).await,
        Err(reason) => record_unreadable(context, claim, reason).await,
    };
    if let Err(error) = result {
        tracing::warn!(schedule = %id, due_at, reason = %error, "a schedule could not be run");
    }
}

fn plan_run(context: &JobContext, claim: &ScheduleClaim) -> Result<Plan, String> {
    let schedule = &claim.schedule;
    let table = Timetable::parse(&schedule.cron, &schedule.timezone).map_err(|error| error.to_string())?;
    let misfire = Misfire::named(&schedule.misfire)?;
    if claim.is_extra() {
        return Ok(Plan::Run { next: schedule.next_at });
    }
    let due_run =
        DueRun { table: &table, due: claim.due_at, now: claim.claimed_at, grace: context.settings.grace };
    Ok(plan(misfire, &due_run))
}

async fn release(context: &JobContext, claim: &ScheduleClaim, next: Option<i64>) -> Result<(), Error> {
    context.store.schedules().release(claim, next).await.map(drop)
}

/// Disables a schedule with an invalid timetable and records the reason as a run, for its owner.
async fn record_unreadable(context: &JobContext, claim: &ScheduleClaim, reason: String) -> Result<(), Error> {
    match context.store.schedules().start_run(claim).await? {
        RunStart::Started => {
            let output = format!("the schedule cannot be run: {reason}");
            record_end(context, claim, FinishRun { outcome: RunOutcome::Failed, output, next_at: None }).await
        }
        RunStart::StartedBefore | RunStart::Lost => release(context, claim, None).await,
    }
}

async fn run(context: &JobContext, claim: &ScheduleClaim, next: Option<i64>) -> Result<(), Error> {
    match context.store.schedules().start_run(claim).await? {
        RunStart::Started => {}
        RunStart::StartedBefore => return release(context, claim, next).await,
        // Changes that its owner made meanwhile are kept.
        RunStart::Lost => return release(context, claim, claim.schedule.next_at).await,
    }
    let (schedule, due_at) = (&claim.schedule.id, claim.due_at);
    let mut next_at = next;
    let (outcome, output) = match run_with_lease(context, claim).await {
        JobResult::Finished(Ok(output)) => (RunOutcome::Done, output),
        JobResult::Finished(Err(JobError::Failed(reason))) => (RunOutcome::Failed, reason),
        JobResult::Finished(Err(JobError::Skipped { reason, retry_at })) => {
            tracing::warn!(%schedule, due_at, %reason, "a run is skipped");
            // An extra run changes nothing about the schedule.
            if !claim.is_extra() {
                next_at = next.or(retry_at);
            }
            (RunOutcome::Skipped, reason)
        }
        JobResult::Stopped(reason) => {
            tracing::warn!(%schedule, due_at, %reason, "a run was stopped; its outcome is unknown");
            (RunOutcome::Unknown, reason)
        }
        JobResult::Lost => {
            tracing::warn!(%schedule, due_at, "a run lost its lease and was stopped; its outcome is unknown");
            return Ok(());
        }
    };
    record_end(context, claim, FinishRun { outcome, output, next_at }).await
}

/// Runs the work for as long as the lease is held.
async fn run_with_lease(context: &JobContext, claim: &ScheduleClaim) -> JobResult {
    let lease = context.settings.lease;
    let (renew_every, retry_every) = (lease / 3, lease / 20);
    let mut phase = context.phase.subscribe();
    // As a task it continues while the lease is renewed, and its panic is isolated. Dropping the set ends it.
    let mut task = JoinSet::new();
    task.spawn(context.handler.call(claim.clone()));
    let limit = Instant::now() + context.settings.run_limit;
    let mut lease_until = Instant::now() + lease;
    let mut renewal = Instant::now() + renew_every;
    loop {
        tokio::select! {
            biased;
            Some(ended) = task.join_next() => return JobResult::Finished(ended.unwrap_or_else(|error| Err(JobError::Failed(join_error_text(&error))))),
            () = stopping(&mut phase) => return JobResult::Stopped(STOPPED.to_owned()),
            () = sleep_until(limit) => return JobResult::Stopped(run_limit_exceeded(context.settings.run_limit)),
            () = sleep_until(renewal) => {
                let requested_at = Instant::now();
                match timeout(renew_every, context.store.schedules().renew(claim, lease)).await {
                    Ok(Ok(LeaseStatus::Kept)) => (lease_until, renewal) = (requested_at + lease, requested_at + renew_every),
                    Ok(Ok(LeaseStatus::Lost)) => return JobResult::Lost,
                    // The store does not respond: the lease is valid until it expires.
                    Ok(Err(_)) | Err(_) if Instant::now() < lease_until => renewal = Instant::now() + retry_every,
                    Ok(Err(_)) | Err(_) => return JobResult::Lost,
                }
            }
        }
    }
}

async fn stopping(phase: &mut watch::Receiver<Phase>) {
    // The scheduler is gone, so the phase cannot change any more.
    if phase.wait_for(|phase| *phase == Phase::Stopping).await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn run_limit_exceeded(limit: Duration) -> String {
    format!("stopped: the run took longer than {} s", limit.as_secs())
}

fn join_error_text(error: &JoinError) -> String {
    format!("the run failed: {}", if error.is_panic() { "it panicked" } else { "it was cancelled" })
}

/// Records the end. Retries for the duration of a lease if the store does not respond.
async fn record_end(context: &JobContext, claim: &ScheduleClaim, finish: FinishRun) -> Result<(), Error> {
    let finish = FinishRun { output: truncate_output(&finish.output), ..finish };
    let deadline = Instant::now() + context.settings.lease;
    let mut backoff = FIRST_BACKOFF;
    loop {
        match context.store.schedules().finish_run(claim, finish.clone()).await {
            Ok(LeaseStatus::Kept) => return Ok(()),
            Ok(LeaseStatus::Lost) => {
                let (schedule, due_at) = (&claim.schedule.id, claim.due_at);
                tracing::warn!(%schedule, due_at, "a run ended after its lease; its outcome is unknown");
                return Ok(());
            }
            Err(error) if error.kind() == ErrorKind::Invalid || Instant::now() + backoff > deadline => {
                return Err(error);
            }
            Err(_) => sleep(backoff).await,
        }
        backoff = (backoff * 2).min(context.settings.lease / 3);
    }
}

/// Truncates and cleans the output to what both databases can store.
fn truncate_output(output: &str) -> String {
    let whole = output.replace('\0', "\u{fffd}");
    if whole.len() <= MAX_OUTPUT_BYTES {
        return whole;
    }
    let cut = whole.floor_char_boundary(MAX_OUTPUT_BYTES);
    format!("{}\n[cut: {} bytes in all]", whole.get(..cut).unwrap_or_default(), whole.len())
}
