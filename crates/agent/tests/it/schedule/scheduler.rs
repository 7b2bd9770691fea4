//! The scheduler in one process: misfire policies, failures, limits, graceful shutdown.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use embody_agent::schedule::{JobError, JobHandler, Scheduler, SchedulerSettings, open_schedule_thread};
use embody_store::schedules::{
    AddScheduleOutcome, ClaimNowOutcome, NewSchedule, RunOutcome, Schedule, ScheduleRun,
};
use embody_store::{DatabaseUrl, Scope, Store};
use embody_wire::server::CancellationToken;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

const HOUR: i64 = 3600 * 1_000_000;

struct Wish {
    cron: &'static str,
    misfire: &'static str,
    /// When it is due, in hours from now.
    in_hours: f64,
}

async fn memory() -> Store {
    Store::open(DatabaseUrl::Memory).await.unwrap()
}

async fn add(store: &Store, wish: Wish) -> Schedule {
    #[expect(clippy::cast_possible_truncation, reason = "hours of a test")]
    let late = (wish.in_hours * HOUR as f64) as i64;
    let new = NewSchedule {
        scope: Scope::new("ann", "assistant").unwrap(),
        cron: wish.cron.into(),
        timezone: "UTC".into(),
        channel: "scheduled".into(),
        prompt: "read the news\nand tell me".into(),
        misfire: wish.misfire.into(),
        next_at: Some(store.clock().await.unwrap() + late),
        origin: embody_store::schedules::ScheduleOrigin::Owner,
        origins: Vec::new(),
        quarantined: false,
    };
    match store.schedules().add(new).await.unwrap() {
        AddScheduleOutcome::Added(schedule) => *schedule,
        AddScheduleOutcome::Full => panic!("full"),
    }
}

struct Running {
    switch: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    fn start(store: &Store, work: JobHandler, settings: SchedulerSettings) -> Self {
        let ending = CancellationToken::new();
        let switch = ending.clone();
        Self { switch, task: tokio::spawn(Scheduler::new(store.clone(), work, settings).run(ending)) }
    }

    async fn end(self) {
        self.switch.cancel();
        tokio::time::timeout(Duration::from_secs(30), self.task).await.unwrap().unwrap();
    }
}

fn quick() -> JobHandler {
    JobHandler::new(|claim| async move { Ok(format!("heard: {}", claim.schedule.prompt)) })
}

async fn runs(store: &Store, schedule: &Schedule) -> Vec<ScheduleRun> {
    store.schedules().runs("ann", &schedule.id, 1000).await.unwrap()
}

async fn now(store: &Store, schedule: &Schedule) -> Schedule {
    store.schedules().get("ann", &schedule.id).await.unwrap().unwrap()
}

async fn eventually(what: &str, mut look: impl AsyncFnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while !look().await {
        assert!(tokio::time::Instant::now() < deadline, "not seen in time: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until it is due in the future, or never, and no run of it is active.
async fn settled(store: &Store, schedule: &Schedule) {
    eventually("a schedule that is not due", async || {
        let clock = store.clock().await.unwrap();
        now(store, schedule).await.next_at.is_none_or(|next| next > clock)
            && runs(store, schedule).await.iter().all(|run| run.finished_at.is_some())
    })
    .await;
}

#[tokio::test]
async fn what_was_missed_is_skipped_run_once_or_made_up_for() {
    let store = memory().await;
    let mut schedules = Vec::new();
    for misfire in ["skip", "once", "all"] {
        schedules.push(add(&store, Wish { cron: "@every 1h", misfire, in_hours: -3.5 }).await);
    }
    let running = Running::start(&store, quick(), SchedulerSettings::default());
    for (schedule, expected) in schedules.iter().zip([0, 1, 4]) {
        settled(&store, schedule).await;
        let runs = runs(&store, schedule).await;
        assert_eq!(runs.len(), expected, "{}", schedule.misfire);
        assert!(runs.iter().all(|run| run.outcome == Some(RunOutcome::Done)));
        assert!(runs.iter().all(|run| run.output.as_deref() == Some("heard: read the news\nand tell me")));
        // It keeps its rhythm.
        let next = now(&store, schedule).await.next_at.unwrap();
        assert_eq!(next - schedule.next_at.unwrap(), 4 * HOUR);
    }
    running.end().await;
}

#[tokio::test]
async fn a_new_schedule_wakes_it_and_a_future_one_does_not_run() {
    let store = memory().await;
    let running = Running::start(&store, quick(), SchedulerSettings::default());
    let future = add(&store, Wish { cron: "@daily", misfire: "all", in_hours: 1.0 }).await;
    let due = add(&store, Wish { cron: "@once 2020-01-01T00:00:00Z", misfire: "once", in_hours: 0.0 }).await;
    eventually("the run", async || runs(&store, &due).await.iter().any(|run| run.finished_at.is_some()))
        .await;
    assert_eq!(now(&store, &due).await.next_at, None);
    assert_eq!((runs(&store, &future).await, now(&store, &future).await), (vec![], future));
    running.end().await;
}

#[tokio::test]
async fn a_one_time_run_that_is_skipped_is_due_again() {
    let store = memory().await;
    let wish = |cron| Wish { cron, misfire: "skip", in_hours: 0.0 };
    let once = add(&store, wish("@once 2020-01-01T00:00:00Z")).await;
    let lost = add(&store, wish("@once 2020-01-02T00:00:00Z")).await;
    let hourly = add(&store, wish("@every 1h")).await;
    let retry_at = store.clock().await.unwrap() + 2 * HOUR;
    let no_retry = lost.id.clone();
    let work = JobHandler::new(move |claim| {
        let retry_at = (claim.schedule.id != no_retry).then_some(retry_at);
        async move { Err(JobError::Skipped { reason: "used up".into(), retry_at }) }
    });
    let running = Running::start(&store, work, SchedulerSettings::default());
    for (schedule, next_at) in
        [(&once, Some(retry_at)), (&lost, None), (&hourly, hourly.next_at.map(|due| due + HOUR))]
    {
        settled(&store, schedule).await;
        let runs = runs(&store, schedule).await;
        assert_eq!((runs.len(), runs[0].outcome), (1, Some(RunOutcome::Skipped)));
        assert_eq!(runs[0].output.as_deref(), Some("used up"));
        assert_eq!(now(&store, schedule).await.next_at, next_at, "{}", schedule.cron);
    }
    running.end().await;

    // The second attempt is the run of this schedule.
    let again = add(&store, wish("@once 2020-01-01T00:00:00Z")).await;
    let attempts = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&attempts);
    let work = JobHandler::new(move |claim| {
        let is_first = counter.fetch_add(1, Ordering::SeqCst) == 0;
        let retry_at = Some(claim.claimed_at + 1_000_000);
        async move {
            if is_first {
                return Err(JobError::Skipped { reason: "used up".into(), retry_at });
            }
            Ok("done".to_owned())
        }
    });
    let running = Running::start(&store, work, SchedulerSettings::default());
    eventually("the second attempt", async || {
        runs(&store, &again).await.iter().any(|run| run.outcome == Some(RunOutcome::Done))
    })
    .await;
    assert_eq!((attempts.load(Ordering::SeqCst), now(&store, &again).await.next_at), (2, None));
    running.end().await;
}

#[tokio::test]
async fn a_run_that_fails_says_why() {
    let store = memory().await;
    let wish = |cron, misfire| Wish { cron, misfire, in_hours: 0.0 };
    let refused = add(&store, wish("@hourly", "once")).await;
    let broken = add(&store, wish("@daily", "once")).await;
    let unreadable = add(&store, wish("61 * * * *", "once")).await;
    let odd = add(&store, wish("@daily", "sometimes")).await;
    let work = JobHandler::new(|claim| async move {
        assert!(claim.schedule.cron != "@daily", "as planned");
        Err(JobError::Failed(format!("no model: {}\0", claim.schedule.cron)))
    });
    let running = Running::start(&store, work, SchedulerSettings::default());
    for (schedule, words, goes_on) in [
        (&refused, "no model: @hourly\u{fffd}", true),
        (&broken, "the run failed: it panicked", true),
        (&unreadable, "the schedule cannot be run: invalid minute `61`; allowed: 0 to 59", false),
        (&odd, "the schedule cannot be run: unknown misfire policy `sometimes`", false),
    ] {
        settled(&store, schedule).await;
        let runs = runs(&store, schedule).await;
        assert_eq!((runs.len(), runs[0].outcome), (1, Some(RunOutcome::Failed)));
        assert!(runs[0].output.as_deref().unwrap().starts_with(words), "{:?}", runs[0].output);
        assert_eq!(now(&store, schedule).await.next_at.is_some(), goes_on);
    }
    running.end().await;
}

#[tokio::test]
async fn only_so_many_run_at_a_time_and_too_much_output_is_cut() {
    let store = memory().await;
    let mut schedules = Vec::new();
    for _ in 0..12 {
        schedules.push(add(&store, Wish { cron: "@yearly", misfire: "once", in_hours: 0.0 }).await);
    }
    let (present, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (here, highest) = (Arc::clone(&present), Arc::clone(&most));
    let work = JobHandler::new(move |_| {
        let (here, highest) = (Arc::clone(&here), Arc::clone(&highest));
        async move {
            highest.fetch_max(here.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(20)).await;
            here.fetch_sub(1, Ordering::SeqCst);
            Ok("é".repeat(200_000))
        }
    });
    let running = Running::start(&store, work, SchedulerSettings { concurrency: 3, ..Default::default() });
    for schedule in &schedules {
        settled(&store, schedule).await;
        let runs = runs(&store, schedule).await;
        let output = runs[0].output.as_deref().unwrap();
        assert!(output.len() < 256 * 1024 && output.ends_with("é\n[cut: 400000 bytes in all]"));
    }
    assert_eq!(most.load(Ordering::SeqCst), 3);
    running.end().await;
}

#[tokio::test]
async fn a_long_run_keeps_its_lease_before_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Store::open(DatabaseUrl::File(folder.path().join("embody.db")));
    let (store, second) = (open().await.unwrap(), open().await.unwrap());
    let schedule = add(&store, Wish { cron: "@yearly", misfire: "once", in_hours: 0.0 }).await;
    let begun = Arc::new(AtomicUsize::new(0));
    let lease = Duration::from_secs(2);
    let work = || {
        let begun = Arc::clone(&begun);
        JobHandler::new(move |_| {
            begun.fetch_add(1, Ordering::SeqCst);
            // Longer than two leases.
            async move {
                tokio::time::sleep(lease * 5 / 2).await;
                Ok("at last".to_owned())
            }
        })
    };
    let settings = SchedulerSettings { lease, ..Default::default() };
    let here = Running::start(&store, work(), settings.clone());
    let there = Running::start(&second, work(), settings);
    settled(&store, &schedule).await;
    let runs = runs(&store, &schedule).await;
    assert_eq!((runs.len(), runs[0].outcome), (1, Some(RunOutcome::Done)));
    assert_eq!(begun.load(Ordering::SeqCst), 1);
    here.end().await;
    there.end().await;
}

#[tokio::test]
async fn at_the_end_a_run_may_end_and_one_that_does_not_is_stopped() {
    let store = memory().await;
    for (ends, outcome, words) in [
        (true, RunOutcome::Done, "in time"),
        (false, RunOutcome::Unknown, "stopped: embody was stopped during the run"),
    ] {
        let schedule = add(&store, Wish { cron: "@yearly", misfire: "once", in_hours: 0.0 }).await;
        let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (told, waits) = (Arc::clone(&begun), Arc::clone(&go));
        let work = JobHandler::new(move |_| {
            let (told, waits) = (Arc::clone(&told), Arc::clone(&waits));
            async move {
                told.notify_one();
                waits.notified().await;
                Ok("in time".to_owned())
            }
        });
        let shutdown_grace = if ends { Duration::from_secs(60) } else { Duration::from_millis(50) };
        let running =
            Running::start(&store, work, SchedulerSettings { shutdown_grace, ..Default::default() });
        begun.notified().await;
        running.switch.cancel();
        // No run is started from now on.
        let late = add(&store, Wish { cron: "@yearly", misfire: "once", in_hours: 0.0 }).await;
        if ends {
            go.notify_one();
        }
        running.end().await;
        let runs_now = runs(&store, &schedule).await;
        assert_eq!((runs_now.len(), runs_now[0].outcome), (1, Some(outcome)));
        assert_eq!(runs_now[0].output.as_deref(), Some(words));
        // The operator sees the runs whose outcome is unknown.
        let lost = store.schedules().list_unknown_runs(10).await.unwrap();
        assert_eq!(lost, if ends { vec![] } else { runs_now });
        assert_eq!((runs(&store, &late).await, now(&store, &late).await.next_at), (vec![], late.next_at));
        store.schedules().remove("ann", &late.id).await.unwrap();
    }
}

#[tokio::test]
async fn a_run_that_takes_too_long_is_stopped() {
    let store = memory().await;
    let schedule = add(&store, Wish { cron: "@yearly", misfire: "once", in_hours: 0.0 }).await;
    let settings = SchedulerSettings { run_limit: Duration::from_millis(50), ..Default::default() };
    let running = Running::start(&store, JobHandler::new(|_| std::future::pending()), settings);
    settled(&store, &schedule).await;
    let run = runs(&store, &schedule).await.remove(0);
    assert_eq!(store.schedules().list_unknown_runs(10).await.unwrap(), std::slice::from_ref(&run));
    let output = run.output.unwrap();
    assert!(output.starts_with("stopped: the run took longer than"), "{output}");
    running.end().await;
}

#[tokio::test]
async fn one_is_run_by_hand_and_stays_due() {
    let store = memory().await;
    let schedule = add(&store, Wish { cron: "@yearly", misfire: "skip", in_hours: 30.0 }).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&seen);
    let work = JobHandler::new(move |claim| {
        taken.lock().unwrap().push(claim.schedule.id);
        std::future::ready(Ok("by hand".to_owned()))
    });
    let scheduler = Scheduler::new(store.clone(), work, SchedulerSettings::default());
    let ending = CancellationToken::new();
    let ran = scheduler.run_now("ann", &schedule.id, ending.clone()).await.unwrap();
    let ClaimNowOutcome::Claimed(claim) = ran else { panic!("{ran:?}") };
    let run = runs(&store, &schedule).await.remove(0);
    assert_eq!(
        (run.due_at, run.outcome, run.output.as_deref()),
        (claim.due_at, Some(RunOutcome::Done), Some("by hand"))
    );
    assert_eq!(now(&store, &schedule).await, schedule);
    assert_eq!(
        scheduler.run_now("bob", &schedule.id, ending.clone()).await.unwrap(),
        ClaimNowOutcome::Missing
    );
    store.schedules().enable("ann", &schedule.id, None).await.unwrap();
    assert_eq!(scheduler.run_now("ann", &schedule.id, ending).await.unwrap(), ClaimNowOutcome::Disabled);
    assert_eq!(*seen.lock().unwrap(), [schedule.id]);
}

#[tokio::test]
async fn by_hand_nothing_that_was_missed_is_forgotten() {
    let store = memory().await;
    let scheduler = Scheduler::new(store.clone(), quick(), SchedulerSettings::default());
    for (misfire, made_up) in [("skip", 0), ("once", 1), ("all", 4)] {
        let schedule = add(&store, Wish { cron: "@every 1h", misfire, in_hours: -3.5 }).await;
        let ending = CancellationToken::new();
        let switch = ending.clone();
        scheduler.run_now("ann", &schedule.id, ending).await.unwrap();
        drop(switch);
        assert_eq!(
            (runs(&store, &schedule).await.len(), now(&store, &schedule).await),
            (1, schedule.clone())
        );
        let running = Running::start(&store, quick(), SchedulerSettings::default());
        settled(&store, &schedule).await;
        running.end().await;
        assert_eq!(runs(&store, &schedule).await.len(), 1 + made_up, "{misfire}");
        assert_eq!(now(&store, &schedule).await.next_at, schedule.next_at.map(|at| at + 4 * HOUR));
    }
}

#[tokio::test]
async fn one_that_is_ended_before_it_begins_by_hand_is_given_back_as_it_was() {
    let store = memory().await;
    let schedule = add(&store, Wish { cron: "@every 1h", misfire: "all", in_hours: -3.5 }).await;
    let scheduler = Scheduler::new(store.clone(), quick(), SchedulerSettings::default());
    let ending = CancellationToken::new();
    let switch = ending.clone();
    switch.cancel();
    scheduler.run_now("ann", &schedule.id, ending).await.unwrap();
    assert_eq!((runs(&store, &schedule).await, now(&store, &schedule).await), (vec![], schedule));
    // It is released at once.
    assert_eq!(store.schedules().next_due().await.unwrap(), Some(Duration::ZERO));
}

// spec: S-08
#[tokio::test]
async fn the_runs_of_a_schedule_share_a_thread() {
    let store = memory().await;
    let schedule = add(&store, Wish { cron: "@yearly", misfire: "skip", in_hours: 1.0 }).await;
    let thread = open_schedule_thread(&store, &schedule).await.unwrap();
    assert_eq!((&*thread.channel, thread.external.as_deref()), ("scheduled", Some(&*schedule.id)));
    assert_eq!(thread.title.as_deref(), Some("read the news"));
    assert_eq!(open_schedule_thread(&store, &schedule).await.unwrap().id, thread.id);
}
