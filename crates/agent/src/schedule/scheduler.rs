//! The scheduler: starts due schedules, a few at a time, in every process that runs one. The store decides which
//! process runs what, and by which clock: on PostgreSQL by the server's, so that replicas need not agree on the time.

use std::sync::Arc;
use std::time::Duration;

use embody_store::schedules::ClaimNowOutcome;
use embody_store::{Lease, Result, Store, Topic};
use embody_wire::server::CancellationToken;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::run_job::{JobContext, JobHandler, Phase, run_job};

/// The longest sleep: leases expire and clocks are set without a notification.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// The shortest sleep: another process may be claiming what is due.
const SHORTEST_SLEEP: Duration = Duration::from_millis(20);
/// The shortest interval between searches for lost runs.
const SETTLE_EVERY: Duration = Duration::from_secs(5);
const PRUNE_EVERY: Duration = Duration::from_secs(3600);
const RUN_RETENTION: Duration = Duration::from_secs(90 * 24 * 3600);
const BATCH: u32 = 100;
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct SchedulerSettings {
    /// The name of the process, for people to read.
    pub owner: String,
    /// How long after a crash its runs count as lost.
    pub lease: Duration,
    pub concurrency: u32,
    /// How late a run may be before it counts as missed.
    pub grace: Duration,
    pub run_limit: Duration,
    pub shutdown_grace: Duration,
}

impl Default for SchedulerSettings {
    fn default() -> Self {
        Self {
            owner: format!("process {}", std::process::id()),
            lease: Duration::from_secs(60),
            concurrency: 8,
            grace: Duration::from_secs(60),
            run_limit: Duration::from_secs(3600),
            shutdown_grace: Duration::from_secs(10),
        }
    }
}

#[derive(Clone)]
pub struct Scheduler {
    context: Arc<JobContext>,
}

#[derive(Default)]
struct Maintenance {
    settled: Option<Instant>,
    pruned: Option<Instant>,
}

impl Scheduler {
    /// Starts nothing yet.
    pub fn new(store: Store, handler: JobHandler, settings: SchedulerSettings) -> Self {
        let (phase, _) = watch::channel(Phase::Open);
        Self { context: Arc::new(JobContext { store, handler, settings, phase }) }
    }

    /// Runs due schedules until shutdown; then waits for running ones, and stops the rest.
    pub async fn run(self, ending: CancellationToken) {
        let mut changes = self.context.store.changes(Topic::Schedules);
        let mut running = JoinSet::new();
        let mut maintenance = Maintenance::default();
        let mut store_failed = false;
        while !ending.is_cancelled() {
            let pause = match self.start_due(&mut running, &mut maintenance).await {
                Ok(pause) => {
                    store_failed = false;
                    pause
                }
                Err(error) => {
                    if !store_failed {
                        tracing::warn!(reason = %error, "schedules cannot be read");
                    }
                    store_failed = true;
                    LONGEST_SLEEP
                }
            };
            let has_capacity = running.len() < self.capacity();
            tokio::select! {
                () = ending.cancelled() => break,
                Some(_) = running.join_next() => {}
                Ok(()) = changes.changed(), if has_capacity && !store_failed => {}
                () = sleep(pause) => {}
            }
        }
        self.shut_down(running).await;
    }

    /// Runs one schedule immediately and waits for its end; its regular due time does not change. Its run records say
    /// how it ended.
    pub async fn run_now(&self, user: &str, id: &str, ending: CancellationToken) -> Result<ClaimNowOutcome> {
        let claimed = self.context.store.schedules().claim_now(user, id, &self.lease()).await?;
        if let ClaimNowOutcome::Claimed(claim) = &claimed {
            let stop_on_shutdown = async {
                ending.cancelled().await;
                self.context.phase.send_replace(Phase::Stopping);
                std::future::pending::<()>().await;
            };
            tokio::select! {
                // Biased: a shutdown before the start prevents the run.
                biased;
                () = stop_on_shutdown => {}
                () = run_job(&self.context, claim) => {}
            }
        }
        Ok(claimed)
    }

    /// Starts what is due, and returns how long to sleep.
    async fn start_due(&self, running: &mut JoinSet<()>, maintenance: &mut Maintenance) -> Result<Duration> {
        self.maintain(maintenance).await?;
        while running.try_join_next().is_some() {}
        let capacity = self.capacity().saturating_sub(running.len());
        if capacity == 0 {
            // The end of a run interrupts the sleep.
            return Ok(LONGEST_SLEEP);
        }
        let next = self.context.store.schedules().next_due().await?;
        if next.is_none_or(|next| !next.is_zero()) {
            return Ok(next.unwrap_or(LONGEST_SLEEP).clamp(SHORTEST_SLEEP, LONGEST_SLEEP));
        }
        let limit = u32::try_from(capacity).unwrap_or(u32::MAX);
        for claim in self.context.store.schedules().claim_due(&self.lease(), limit).await? {
            let context = Arc::clone(&self.context);
            running.spawn(async move { run_job(&context, &claim).await });
        }
        Ok(SHORTEST_SLEEP)
    }

    async fn maintain(&self, maintenance: &mut Maintenance) -> Result<()> {
        let store = &self.context.store;
        if is_due(&mut maintenance.settled, SETTLE_EVERY.min(self.context.settings.lease / 2)) {
            for run in store.schedules().expire_runs(BATCH).await? {
                let (user, schedule, due_at) = (&run.user, &run.schedule, run.due_at);
                tracing::warn!(%user, %schedule, due_at, "the outcome of this run is unknown; it is not repeated");
            }
        }
        if is_due(&mut maintenance.pruned, PRUNE_EVERY) {
            store.schedules().prune_runs(RUN_RETENTION, BATCH * 10).await?;
        }
        Ok(())
    }

    /// Starts no more runs; waits for the running ones, and finally stops them.
    async fn shut_down(&self, mut running: JoinSet<()>) {
        self.context.phase.send_replace(Phase::Draining);
        let ended = timeout(self.context.settings.shutdown_grace, async {
            while running.join_next().await.is_some() {}
        });
        if ended.await.is_ok() {
            return;
        }
        self.context.phase.send_replace(Phase::Stopping);
        let _ = timeout(STOP_TIMEOUT, async { while running.join_next().await.is_some() {} }).await;
    }

    fn lease(&self) -> Lease {
        Lease { owner: self.context.settings.owner.clone(), duration: self.context.settings.lease }
    }

    fn capacity(&self) -> usize {
        usize::try_from(self.context.settings.concurrency.max(1)).unwrap_or(usize::MAX)
    }
}

/// Whether `every` has passed since the last time.
fn is_due(last: &mut Option<Instant>, every: Duration) -> bool {
    let now = Instant::now();
    let due = last.is_none_or(|last| now.duration_since(last) >= every);
    if due {
        *last = Some(now);
    }
    due
}

#[cfg(test)]
mod tests {
    use embody_store::schedules::{NewSchedule, ScheduleOrigin};
    use embody_store::{DatabaseUrl, Scope};

    use super::*;

    #[tokio::test]
    async fn what_is_due_while_there_is_no_room_is_not_asked_for_again_and_again() {
        let store = Store::open(DatabaseUrl::Memory).await.expect("a store");
        let overdue = NewSchedule {
            scope: Scope::new("ann", "assistant").expect("a scope"),
            cron: "@daily".into(),
            timezone: "UTC".into(),
            channel: "scheduled".into(),
            prompt: "read the news".into(),
            misfire: "once".into(),
            next_at: Some(1),
            origin: ScheduleOrigin::Owner,
            origins: Vec::new(),
            quarantined: false,
        };
        store.schedules().add(overdue).await.expect("a schedule");
        let handler = JobHandler::new(|_| std::future::pending());
        let settings = SchedulerSettings { concurrency: 1, ..Default::default() };
        let scheduler = Scheduler::new(store, handler, settings);
        let mut running = JoinSet::new();
        running.spawn(std::future::pending());
        let pause = scheduler.start_due(&mut running, &mut Maintenance::default()).await.expect("a look");
        assert_eq!((pause, running.len()), (LONGEST_SLEEP, 1));
    }
}
