//! Schedules: due ones are run once, whoever runs them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use embody_store::schedules::{
    AddScheduleOutcome, ClaimNowOutcome, FinishRun, NewSchedule, RunOutcome, RunStart, Schedule,
    ScheduleClaim,
};
use embody_store::tokens::TokenScope;
use embody_store::untrusted_reads::ReadOrigin;
use embody_store::{ErrorKind, LeaseStatus, Store};

use crate::tokens;
use crate::world::{World, contract, eventually, long, scope, short};

contract!(
    belong_to_their_user,
    origins_that_cannot_be_read_are_an_error,
    eight_workers_run_two_hundred_once,
    a_slow_worker_is_refused,
    a_lost_run_is_unknown_and_never_started_again,
    only_what_is_enabled_is_due,
    a_time_set_during_a_run_stays,
    disabled_during_a_run_stays_disabled,
    moved_before_its_run_starts_is_not_run,
    a_removed_schedule_lets_its_run_end,
    a_renewed_lease_keeps_the_run,
    old_runs_are_forgotten,
    one_can_be_run_at_once,
    one_that_is_overdue_or_over_stays_so_when_it_is_run_at_once,
    the_next_due_time_is_known,
    those_of_a_disabled_user_wait,
);

fn new(user: &str, next_at: Option<i64>) -> NewSchedule {
    NewSchedule {
        scope: scope(user, "assistant"),
        cron: "0 8 * * *".into(),
        timezone: "Europe/Berlin".into(),
        channel: "scheduled".into(),
        prompt: "read the news".into(),
        misfire: "once".into(),
        next_at,
        origin: embody_store::schedules::ScheduleOrigin::Owner,
        origins: vec![ReadOrigin { origin: "mail/read".into(), at: 7 }],
        quarantined: false,
    }
}

pub(crate) async fn add(store: &Store, user: &str, next_at: Option<i64>) -> Schedule {
    match store.schedules().add(new(user, next_at)).await.unwrap() {
        AddScheduleOutcome::Added(schedule) => *schedule,
        AddScheduleOutcome::Full => panic!("full"),
    }
}

pub(crate) fn done(next_at: Option<i64>) -> FinishRun {
    FinishRun { outcome: RunOutcome::Done, output: "all quiet".into(), next_at }
}

pub(crate) async fn take_one(store: &Store, owner: &str) -> ScheduleClaim {
    let mut claims = store.schedules().claim_due(&long(owner), 1).await.unwrap();
    assert_eq!(claims.len(), 1);
    claims.remove(0)
}

/// Claims with a lease that runs out at once, and starts the run in time.
async fn started_by_a_slow_worker(store: &Store) -> ScheduleClaim {
    eventually("a run that started before its lease ran out", async || {
        let claim = store.schedules().claim_due(&short("slow"), 1).await.unwrap().into_iter().next()?;
        (store.schedules().start_run(&claim).await.unwrap() == RunStart::Started).then_some(claim)
    })
    .await
}

async fn those_of_a_disabled_user_wait(world: World) {
    let store = &world.store;
    add(store, "ann", Some(5)).await;
    store.tokens().add(tokens::new("ann", TokenScope::Chat)).await.unwrap();
    store.users().set_disabled("ann", true).await.unwrap();
    assert!(store.schedules().claim_due(&long("worker"), 1).await.unwrap().is_empty());
    store.users().set_disabled("ann", false).await.unwrap();
    take_one(store, "worker").await;
}

async fn belong_to_their_user(world: World) {
    let hers = add(&world.store, "ann", Some(5)).await;
    let later = add(&world.store, "ann", None).await;
    add(&world.store, "bob", None).await;
    assert_eq!(world.store.schedules().list("ann", "", 10).await.unwrap(), [hers.clone(), later.clone()]);
    assert_eq!(world.store.schedules().list("ann", &hers.id, 10).await.unwrap(), [later]);
    assert_eq!(world.store.schedules().get("ann", &hers.id).await.unwrap(), Some(hers.clone()));
    assert_eq!(world.store.schedules().get("bob", &hers.id).await.unwrap(), None);
    assert!(!world.store.schedules().remove("bob", &hers.id).await.unwrap());
    assert!(!world.store.schedules().enable("bob", &hers.id, None).await.unwrap());
    assert!(world.store.schedules().remove("ann", &hers.id).await.unwrap());
    assert_eq!(world.store.schedules().get("ann", &hers.id).await.unwrap(), None);
    let error = world
        .store
        .schedules()
        .add(NewSchedule { prompt: "a\0b".into(), ..new("ann", None) })
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "the prompt of the schedule has a NUL character at byte 1");
}

async fn eight_workers_run_two_hundred_once(world: World) {
    let second = world.second().await;
    let mut adding = tokio::task::JoinSet::new();
    for part in 0..8 {
        let store = world.store.clone();
        adding.spawn(async move {
            let mut added = Vec::new();
            for number in 0..25 {
                added
                    .push(add(&store, &format!("user{}", number % 7), Some(1000 + part * 25 + number)).await);
            }
            added
        });
    }
    let schedules: Vec<Schedule> = adding.join_all().await.into_iter().flatten().collect();
    assert_eq!(schedules.len(), 200);
    let ran = Arc::new(Mutex::new(BTreeMap::<String, u32>::new()));
    let workers: Vec<_> = (0..8)
        .map(|worker| {
            let store = if worker % 2 == 0 { world.store.clone() } else { second.clone() };
            let ran = Arc::clone(&ran);
            tokio::spawn(async move {
                loop {
                    let claims = store.schedules().claim_due(&long("worker"), 5).await.unwrap();
                    if claims.is_empty() && ran.lock().unwrap().len() == 200 {
                        return;
                    }
                    for claim in claims {
                        assert_eq!(store.schedules().start_run(&claim).await.unwrap(), RunStart::Started);
                        *ran.lock().unwrap().entry(claim.schedule.id.clone()).or_default() += 1;
                        assert_eq!(
                            store.schedules().finish_run(&claim, done(None)).await.unwrap(),
                            LeaseStatus::Kept
                        );
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    assert!(ran.lock().unwrap().values().all(|times| *times == 1));
    for schedule in schedules {
        let runs = world.store.schedules().runs(&schedule.user, &schedule.id, 10).await.unwrap();
        assert_eq!(runs.len(), 1);
        assert_eq!((runs[0].outcome, runs[0].output.as_deref()), (Some(RunOutcome::Done), Some("all quiet")));
        assert_eq!(Some(runs[0].due_at), schedule.next_at);
    }
}

async fn a_slow_worker_is_refused(world: World) {
    add(&world.store, "ann", Some(1)).await;
    let second = world.second().await;
    let slow = world.store.schedules().claim_due(&short("slow"), 1).await.unwrap().remove(0);
    let quick = eventually("the claim of the second worker", async || {
        second.schedules().claim_due(&long("quick"), 1).await.unwrap().into_iter().next()
    })
    .await;
    assert!(quick.fence > slow.fence);
    assert_eq!(world.store.schedules().renew(&slow, long("slow").duration).await.unwrap(), LeaseStatus::Lost);
    assert_eq!(world.store.schedules().start_run(&slow).await.unwrap(), RunStart::Lost);
    assert_eq!(world.store.schedules().release(&slow, Some(9)).await.unwrap(), LeaseStatus::Lost);
    assert_eq!(world.store.schedules().finish_run(&slow, done(Some(9))).await.unwrap(), LeaseStatus::Lost);
    assert_eq!(second.schedules().start_run(&quick).await.unwrap(), RunStart::Started);
    assert_eq!(second.schedules().finish_run(&quick, done(Some(7))).await.unwrap(), LeaseStatus::Kept);
    let schedule = second.schedules().get("ann", &quick.schedule.id).await.unwrap().unwrap();
    assert_eq!(schedule.next_at, Some(7));
}

async fn a_lost_run_is_unknown_and_never_started_again(world: World) {
    let schedule = add(&world.store, "ann", Some(1)).await;
    let second = world.second().await;
    let slow = started_by_a_slow_worker(&world.store).await;
    let other = eventually("the lease of the slow worker to run out", async || {
        second.schedules().claim_due(&long("other"), 1).await.unwrap().into_iter().next()
    })
    .await;
    assert_eq!((other.due_at, &other.schedule.id), (slow.due_at, &schedule.id));
    assert_eq!(world.store.schedules().finish_run(&slow, done(None)).await.unwrap(), LeaseStatus::Lost);
    assert_eq!(second.schedules().start_run(&other).await.unwrap(), RunStart::StartedBefore);
    let (here, there) =
        tokio::join!(world.store.schedules().expire_runs(10), second.schedules().expire_runs(10));
    let (here, there) = (here.unwrap(), there.unwrap());
    assert_eq!(here.len() + there.len(), 1);
    let lost = here.into_iter().chain(there).next().unwrap();
    assert_eq!((lost.user.as_str(), &lost.schedule, lost.due_at), ("ann", &schedule.id, 1));
    assert_eq!(world.store.schedules().list_unknown_runs(10).await.unwrap(), std::slice::from_ref(&lost));
    assert_eq!(world.store.schedules().runs("ann", &schedule.id, 10).await.unwrap(), [lost]);
    assert_eq!(world.store.schedules().runs("bob", &schedule.id, 10).await.unwrap(), []);
    assert_eq!(world.store.schedules().prune_runs(std::time::Duration::ZERO, 10).await.unwrap(), 0);
    assert_eq!(second.schedules().start_run(&other).await.unwrap(), RunStart::StartedBefore);
    assert_eq!(second.schedules().release(&other, Some(2)).await.unwrap(), LeaseStatus::Kept);
    assert_eq!(world.store.schedules().finish_run(&slow, done(None)).await.unwrap(), LeaseStatus::Lost);
    let runs = world.store.schedules().runs("ann", &schedule.id, 10).await.unwrap();
    assert_eq!(runs[0].outcome, Some(RunOutcome::Unknown));
    assert_eq!(take_one(&second, "next").await.due_at, 2);
}

async fn only_what_is_enabled_is_due(world: World) {
    let due = add(&world.store, "ann", Some(1)).await;
    add(&world.store, "ann", None).await;
    add(&world.store, "ann", Some(i64::MAX)).await;
    assert!(world.store.schedules().enable("ann", &due.id, None).await.unwrap());
    assert_eq!(world.store.schedules().claim_due(&long("worker"), 10).await.unwrap(), []);
    assert!(world.store.schedules().enable("ann", &due.id, Some(2)).await.unwrap());
    let claim = take_one(&world.store, "worker").await;
    assert_eq!((&claim.schedule.id, claim.due_at), (&due.id, 2));
    assert_eq!(world.store.schedules().claim_due(&long("worker"), 10).await.unwrap(), []);
    assert!(world.store.schedules().enable("ann", &due.id, None).await.unwrap());
    assert_eq!(world.store.schedules().start_run(&claim).await.unwrap(), RunStart::Lost);
}

async fn a_time_set_during_a_run_stays(world: World) {
    let schedule = add(&world.store, "ann", Some(1)).await;
    let claim = take_one(&world.store, "worker").await;
    assert_eq!(world.store.schedules().start_run(&claim).await.unwrap(), RunStart::Started);
    assert!(world.store.schedules().enable("ann", &schedule.id, Some(5)).await.unwrap());
    assert_eq!(world.store.schedules().finish_run(&claim, done(Some(9))).await.unwrap(), LeaseStatus::Kept);
    let runs = world.store.schedules().runs("ann", &schedule.id, 10).await.unwrap();
    assert_eq!((runs.len(), runs[0].outcome), (1, Some(RunOutcome::Done)));
    let next = take_one(&world.store, "worker").await;
    assert_eq!(next.due_at, 5);
    assert!(world.store.schedules().enable("ann", &schedule.id, Some(7)).await.unwrap());
    assert_eq!(world.store.schedules().release(&next, None).await.unwrap(), LeaseStatus::Kept);
    assert_eq!(take_one(&world.store, "worker").await.due_at, 7);
}

async fn disabled_during_a_run_stays_disabled(world: World) {
    let schedule = add(&world.store, "ann", Some(1)).await;
    let claim = take_one(&world.store, "worker").await;
    assert_eq!(world.store.schedules().start_run(&claim).await.unwrap(), RunStart::Started);
    assert!(world.store.schedules().enable("ann", &schedule.id, None).await.unwrap());
    assert_eq!(world.store.schedules().finish_run(&claim, done(Some(2))).await.unwrap(), LeaseStatus::Kept);
    let after = world.store.schedules().get("ann", &schedule.id).await.unwrap().unwrap();
    assert_eq!((after.enabled, after.next_at), (false, None));
    assert_eq!(world.store.schedules().claim_due(&long("worker"), 10).await.unwrap(), []);
}

async fn moved_before_its_run_starts_is_not_run(world: World) {
    let schedule = add(&world.store, "ann", Some(1)).await;
    let claim = take_one(&world.store, "worker").await;
    assert!(world.store.schedules().enable("ann", &schedule.id, Some(2)).await.unwrap());
    assert_eq!(world.store.schedules().start_run(&claim).await.unwrap(), RunStart::Lost);
    assert_eq!(world.store.schedules().runs("ann", &schedule.id, 10).await.unwrap(), []);
    assert_eq!(world.store.schedules().release(&claim, Some(9)).await.unwrap(), LeaseStatus::Kept);
    let next = take_one(&world.store, "worker").await;
    assert_eq!(next.due_at, 2);
    assert_eq!(world.store.schedules().start_run(&next).await.unwrap(), RunStart::Started);
}

async fn a_removed_schedule_lets_its_run_end(world: World) {
    let schedule = add(&world.store, "ann", Some(1)).await;
    let claim = take_one(&world.store, "worker").await;
    assert_eq!(world.store.schedules().start_run(&claim).await.unwrap(), RunStart::Started);
    assert!(world.store.schedules().remove("ann", &schedule.id).await.unwrap());
    assert_eq!(
        world.store.schedules().renew(&claim, long("worker").duration).await.unwrap(),
        LeaseStatus::Kept
    );
    assert_eq!(world.store.schedules().runs("ann", &schedule.id, 1).await.unwrap()[0].outcome, None);
    assert_eq!(world.store.schedules().finish_run(&claim, done(Some(5))).await.unwrap(), LeaseStatus::Kept);
    assert_eq!(world.store.schedules().finish_run(&claim, done(Some(5))).await.unwrap(), LeaseStatus::Lost);
    let runs = world.store.schedules().runs("ann", &schedule.id, 10).await.unwrap();
    assert_eq!(runs[0].outcome, Some(RunOutcome::Done));
    assert_eq!(world.store.schedules().list_unknown_runs(10).await.unwrap(), []);
}

async fn a_renewed_lease_keeps_the_run(world: World) {
    let schedule = add(&world.store, "ann", Some(1)).await;
    let claim = eventually("a lease renewed in time", async || {
        let claim =
            world.store.schedules().claim_due(&short("worker"), 1).await.unwrap().into_iter().next()?;
        let kept = world.store.schedules().renew(&claim, long("worker").duration).await.unwrap();
        (kept == LeaseStatus::Kept).then_some(claim)
    })
    .await;
    assert_eq!(world.store.schedules().start_run(&claim).await.unwrap(), RunStart::Started);
    assert_eq!(world.store.schedules().expire_runs(10).await.unwrap(), []);
    assert_eq!(world.store.schedules().runs("ann", &schedule.id, 1).await.unwrap()[0].outcome, None);
    let stranger = ScheduleClaim { fence: claim.fence + 1, ..claim };
    assert_eq!(
        world.store.schedules().renew(&stranger, long("worker").duration).await.unwrap(),
        LeaseStatus::Lost
    );
    let error = world.store.schedules().renew(&stranger, std::time::Duration::ZERO).await.unwrap_err();
    assert_eq!(error.to_string(), "a lease of `0ns` is not between a millisecond and a day");
}

async fn old_runs_are_forgotten(world: World) {
    let schedule = add(&world.store, "ann", Some(1)).await;
    for next_at in [2, 3, 4] {
        let claim = take_one(&world.store, "worker").await;
        assert_eq!(world.store.schedules().start_run(&claim).await.unwrap(), RunStart::Started);
        world.store.schedules().finish_run(&claim, done(Some(next_at))).await.unwrap();
    }
    let open = take_one(&world.store, "worker").await;
    assert_eq!(world.store.schedules().start_run(&open).await.unwrap(), RunStart::Started);
    assert_eq!(
        world.store.schedules().prune_runs(std::time::Duration::from_secs(3600), 10).await.unwrap(),
        0
    );
    assert_eq!(world.store.schedules().prune_runs(std::time::Duration::ZERO, 2).await.unwrap(), 2);
    eventually("the last finished run to be old", async || {
        (world.store.schedules().prune_runs(std::time::Duration::ZERO, 2).await.unwrap() == 1).then_some(())
    })
    .await;
    let runs = world.store.schedules().runs("ann", &schedule.id, 10).await.unwrap();
    assert_eq!(runs.iter().map(|run| run.due_at).collect::<Vec<_>>(), [4]);
}

async fn one_can_be_run_at_once(world: World) {
    let later = add(&world.store, "ann", Some(i64::MAX)).await;
    let before = world.store.clock().await.unwrap();
    let claimed = world.store.schedules().claim_now("ann", &later.id, &long("hand")).await.unwrap();
    let ClaimNowOutcome::Claimed(claim) = claimed else { panic!("{claimed:?}") };
    assert!(claim.due_at >= before && claim.claimed_at == claim.due_at && claim.is_extra());
    assert_eq!(world.store.schedules().get("ann", &later.id).await.unwrap().unwrap(), later);
    let again = world.second().await.schedules().claim_now("ann", &later.id, &long("other")).await.unwrap();
    assert_eq!(again, ClaimNowOutcome::Busy);
    assert_eq!(world.store.schedules().start_run(&claim).await.unwrap(), RunStart::Started);
    assert_eq!(
        world.store.schedules().finish_run(&claim, done(Some(i64::MAX))).await.unwrap(),
        LeaseStatus::Kept
    );
    let after = world.store.schedules().get("ann", &later.id).await.unwrap().unwrap();
    assert_eq!(after.next_at, Some(i64::MAX));
    for (user, expected) in [("bob", ClaimNowOutcome::Missing), ("ann", ClaimNowOutcome::Disabled)] {
        world.store.schedules().enable("ann", &later.id, None).await.unwrap();
        assert_eq!(
            world.store.schedules().claim_now(user, &later.id, &long("hand")).await.unwrap(),
            expected
        );
    }
}

async fn one_that_is_overdue_or_over_stays_so_when_it_is_run_at_once(world: World) {
    for next_at in [Some(1), None] {
        let schedule = add(&world.store, "ann", next_at).await;
        let claim = async || match world.store.schedules().claim_now("ann", &schedule.id, &long("hand")).await
        {
            Ok(ClaimNowOutcome::Claimed(claim)) => claim,
            other => panic!("{other:?}"),
        };
        let stored = async || world.store.schedules().get("ann", &schedule.id).await.unwrap().unwrap();
        let unused = claim().await;
        assert_eq!(world.store.schedules().release(&unused, next_at).await.unwrap(), LeaseStatus::Kept);
        assert_eq!(stored().await, schedule);
        let used = claim().await;
        assert_eq!(world.store.schedules().start_run(&used).await.unwrap(), RunStart::Started);
        assert_eq!(stored().await, schedule);
        assert_eq!(
            world.store.schedules().finish_run(&used, done(next_at)).await.unwrap(),
            LeaseStatus::Kept
        );
        assert_eq!(stored().await, schedule);
        // Moved meanwhile: it is not run for what it was, and the new time stays.
        let late = claim().await;
        world.store.schedules().enable("ann", &schedule.id, Some(i64::MAX)).await.unwrap();
        assert_eq!(world.store.schedules().start_run(&late).await.unwrap(), RunStart::Lost);
        assert_eq!(world.store.schedules().release(&late, next_at).await.unwrap(), LeaseStatus::Kept);
        assert_eq!(stored().await.next_at, Some(i64::MAX));
    }
}

async fn the_next_due_time_is_known(world: World) {
    assert_eq!(world.store.schedules().next_due().await.unwrap(), None);
    add(&world.store, "ann", None).await;
    let paused = add(&world.store, "ann", Some(1)).await;
    world.store.schedules().enable("ann", &paused.id, None).await.unwrap();
    assert_eq!(world.store.schedules().next_due().await.unwrap(), None);
    let hour = std::time::Duration::from_secs(3600);
    let at = world.store.clock().await.unwrap() + i64::try_from(hour.as_micros()).unwrap();
    add(&world.store, "ann", Some(at)).await;
    let left = world.store.schedules().next_due().await.unwrap().unwrap();
    assert!(left <= hour && left > hour / 2, "{left:?}");
    add(&world.store, "bob", Some(2)).await;
    assert_eq!(world.store.schedules().next_due().await.unwrap(), Some(std::time::Duration::ZERO));
    // What somebody has is nobody else's concern.
    take_one(&world.store, "worker").await;
    assert!(world.store.schedules().next_due().await.unwrap().unwrap() > hour / 2);
}

#[tokio::test]
async fn a_user_cannot_have_more_than_a_thousand() {
    let world = World::memory().await;
    for _ in 0..1000 {
        add(&world.store, "ann", None).await;
    }
    assert_eq!(world.store.schedules().add(new("ann", None)).await.unwrap(), AddScheduleOutcome::Full);
    add(&world.store, "bob", None).await;
}

async fn origins_that_cannot_be_read_are_an_error(world: World) {
    let store = &world.store;
    let broken = add(store, "ann", Some(5)).await;
    if !world.execute("UPDATE schedules SET origins = '{'").await {
        return;
    }
    let whole = add(store, "bob", Some(6)).await;
    assert_eq!(store.schedules().get("ann", &broken.id).await.unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(store.schedules().list("ann", "", 10).await.unwrap_err().kind(), ErrorKind::Corrupt);
    let now = store.schedules().claim_now("ann", &broken.id, &long("worker")).await;
    assert_eq!(now.unwrap_err().kind(), ErrorKind::Corrupt);
    let claimed = store.schedules().claim_due(&long("worker"), 10).await.unwrap();
    let claimed: Vec<_> = claimed.into_iter().map(|claim| claim.schedule.id).collect();
    assert_eq!(claimed, [whole.id], "it stops no other schedule");
}
