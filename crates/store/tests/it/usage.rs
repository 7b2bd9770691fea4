//! What models used: recorded per request, summed up by key and model, and pruned; notices are sent once.

use std::time::Duration;

use embody_store::usage::{ModelRequest, QUARTER_HOUR_US, Usage, UsageFilter, UsageKey, UsageSum};

use crate::world::{World, contract, scope};

contract!(
    sums_are_by_key_and_model,
    filters_narrow_the_sums,
    what_was_not_reported_is_counted_and_no_number_is_invented,
    a_notice_is_claimed_once_by_all_processes,
    old_requests_are_pruned
);

fn tokens(input: u64, output: u64) -> Usage {
    Usage { input: Some(input), output: Some(output), cache_read: None, cache_write: None }
}

fn request(agent: &str, model: &str, usage: Usage, at: i64) -> ModelRequest {
    ModelRequest {
        scope: scope("ann", agent),
        channel: "web".into(),
        schedule: None,
        model: model.into(),
        usage,
        at,
    }
}

async fn record(world: &World, requests: Vec<ModelRequest>) {
    for request in requests {
        world.store.usage().record(request).await.unwrap();
    }
}

async fn sums(world: &World, by: UsageKey, filter: &UsageFilter) -> Vec<(String, String, u64, u64, u64)> {
    let sums = world.store.usage().sums(by, filter).await.unwrap();
    let flat = |sum: UsageSum| {
        (sum.key, sum.model, sum.requests, sum.usage.input.unwrap(), sum.usage.output.unwrap())
    };
    sums.into_iter().map(flat).collect()
}

fn row(key: &str, model: &str, requests: u64, input: u64, output: u64) -> (String, String, u64, u64, u64) {
    (key.into(), model.into(), requests, input, output)
}

async fn sums_are_by_key_and_model(world: World) {
    let later = 5 * QUARTER_HOUR_US;
    record(
        &world,
        vec![
            request("a", "big", tokens(100, 10), 1),
            request("a", "big", tokens(200, 20), QUARTER_HOUR_US - 1),
            request("a", "small", tokens(1, 2), later),
            ModelRequest {
                schedule: Some("s-1".into()),
                channel: "scheduled".into(),
                ..request("b", "big", tokens(7, 8), later + 3)
            },
        ],
    )
    .await;
    let all = UsageFilter::default();
    let (start, later) = ("0", later.to_string());
    for (by, expected) in [
        (
            UsageKey::QuarterHour,
            vec![row(start, "big", 2, 300, 30), row(&later, "big", 1, 7, 8), row(&later, "small", 1, 1, 2)],
        ),
        (
            UsageKey::Agent,
            vec![row("a", "big", 2, 300, 30), row("a", "small", 1, 1, 2), row("b", "big", 1, 7, 8)],
        ),
        (UsageKey::User, vec![row("ann", "big", 3, 307, 38), row("ann", "small", 1, 1, 2)]),
        (
            UsageKey::Channel,
            vec![
                row("scheduled", "big", 1, 7, 8),
                row("web", "big", 2, 300, 30),
                row("web", "small", 1, 1, 2),
            ],
        ),
        (
            UsageKey::Schedule,
            vec![row("", "big", 2, 300, 30), row("", "small", 1, 1, 2), row("s-1", "big", 1, 7, 8)],
        ),
        (UsageKey::Model, vec![row("", "big", 3, 307, 38), row("", "small", 1, 1, 2)]),
    ] {
        assert_eq!(sums(&world, by, &all).await, expected, "{}", by.name());
    }
}

async fn filters_narrow_the_sums(world: World) {
    let bobs = ModelRequest { scope: scope("bob", "a"), ..request("a", "m", tokens(4, 4), 40) };
    let runs = ModelRequest { schedule: Some("s".into()), ..request("b", "m", tokens(8, 8), 50) };
    record(
        &world,
        vec![request("a", "m", tokens(1, 1), 10), request("a", "m", tokens(2, 2), 20), bobs, runs],
    )
    .await;
    let text = |text: &str| Some(text.to_owned());
    let all = UsageFilter::default;
    for (filter, input) in [
        (all(), 15),
        (UsageFilter { since: Some(20), ..all() }, 14),
        (UsageFilter { until: Some(20), ..all() }, 1),
        (UsageFilter { since: Some(20), until: Some(50), ..all() }, 6),
        (UsageFilter { user: text("ann"), ..all() }, 11),
        (UsageFilter { agent: text("a"), ..all() }, 7),
        (UsageFilter { schedule: text("s"), ..all() }, 8),
        (UsageFilter { user: text("bob"), schedule: text("s"), ..all() }, 0),
    ] {
        let sums = sums(&world, UsageKey::Model, &filter).await;
        assert_eq!(sums.iter().map(|(_, _, _, input, _)| input).sum::<u64>(), input, "{filter:?}");
    }
}

async fn what_was_not_reported_is_counted_and_no_number_is_invented(world: World) {
    let cached = Usage { cache_read: Some(60), cache_write: Some(30), ..tokens(100, 1) };
    let absurd = tokens(u64::MAX, u64::MAX);
    record(
        &world,
        vec![
            request("a", "m", Usage::default(), 1),
            request("a", "m", cached, 1),
            request("a", "odd", absurd, 1),
        ],
    )
    .await;
    let found = world.store.usage().sums(UsageKey::Model, &UsageFilter::default()).await.unwrap();
    assert_eq!((found[0].requests, found[0].unreported), (2, 1));
    assert_eq!(found[0].usage, cached);
    assert_eq!(found[1].usage.input, Some(1_000_000_000), "a number that nobody can believe is cut");
    let unnamed = world.store.usage().record(request("a", " ", tokens(1, 1), 1)).await;
    assert!(unnamed.unwrap_err().to_string().contains("model"));
}

async fn a_notice_is_claimed_once_by_all_processes(world: World) {
    let second = world.second().await;
    let (one, two) = tokio::join!(
        world.store.usage().claim_notice("2026-11-17", "daily", 80),
        second.usage().claim_notice("2026-11-17", "daily", 80)
    );
    assert_eq!([one.unwrap(), two.unwrap()].iter().filter(|claimed| **claimed).count(), 1);
    for (day, budget, percent) in
        [("2026-11-17", "daily", 100), ("2026-11-17", "other", 80), ("2026-11-18", "daily", 80)]
    {
        assert!(second.usage().claim_notice(day, budget, percent).await.unwrap(), "{day} {budget} {percent}");
    }
    assert!(!world.store.usage().claim_notice("2026-11-17", "daily", 100).await.unwrap());
}

async fn old_requests_are_pruned(world: World) {
    let now = world.store.clock().await.unwrap();
    let day = 24 * 3_600_000_000;
    let old = (1..=3).map(|n| request("a", "m", tokens(1, 1), now - n * 10 * day)).collect();
    record(&world, old).await;
    let age = |days: u64| Duration::from_secs(days * 24 * 3600);
    assert_eq!(world.store.usage().prune(age(40), 10).await.unwrap(), 0);
    assert_eq!(world.store.usage().prune(age(15), 1).await.unwrap(), 1);
    assert_eq!(world.store.usage().prune(age(15), 10).await.unwrap(), 1);
    let left = world.store.usage().sums(UsageKey::Model, &UsageFilter::default()).await.unwrap();
    assert_eq!((left.len(), left[0].requests), (1, 1));
}
