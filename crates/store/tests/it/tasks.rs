//! Tasks with steps.

use embody_store::tasks::{Step, StepState, TaskContent, TaskOutcome};

use crate::world::{World, contract};

contract!(
    numbers_are_the_users_own,
    a_stale_change_is_told,
    many_at_once_get_numbers_without_gaps,
    a_task_keeps_its_trust,
    an_unknown_trust_is_exposed,
);

fn content(title: &str) -> TaskContent {
    TaskContent {
        agent: "assistant".into(),
        title: title.into(),
        description: "in full".into(),
        status: "open".into(),
        steps: vec![
            Step { text: "look".into(), state: StepState::Done },
            Step { text: "leap".into(), state: StepState::Current },
        ],
        trust: "agent".into(),
    }
}

async fn numbers_are_the_users_own(world: World) {
    assert_eq!(world.store.tasks().add("ann", content("one")).await.unwrap().number, 1);
    assert_eq!(world.store.tasks().add("ann", content("two")).await.unwrap().number, 2);
    assert_eq!(world.store.tasks().add("bob", content("his")).await.unwrap().number, 1);
    let two = world.store.tasks().get("ann", 2).await.unwrap().unwrap();
    assert_eq!(two.content, content("two"));
    assert_eq!(world.store.tasks().get("bob", 2).await.unwrap(), None);
    let rest: Vec<String> = world
        .store
        .tasks()
        .list("ann", 1, 10)
        .await
        .unwrap()
        .into_iter()
        .map(|task| task.content.title)
        .collect();
    assert_eq!(rest, ["two"]);
}

async fn a_stale_change_is_told(world: World) {
    let task = world.store.tasks().add("ann", content("one")).await.unwrap();
    let first = world.store.tasks().update("ann", task.number, 1, content("mine")).await.unwrap();
    assert!(matches!(first, TaskOutcome::Written(ref task) if task.version == 2));
    let second = world.store.tasks().update("ann", task.number, 1, content("yours")).await.unwrap();
    let TaskOutcome::Stale(current) = second else { panic!("{second:?}") };
    assert_eq!((current.content.title.as_str(), current.version), ("mine", 2));
    assert!(world.store.tasks().update("bob", task.number, 2, content("theft")).await.is_err());
}

async fn many_at_once_get_numbers_without_gaps(world: World) {
    let adding: Vec<_> = (0..64)
        .map(|_| {
            let store = world.store.clone();
            tokio::spawn(
                async move { store.tasks().add("ann", content("one of many")).await.unwrap().number },
            )
        })
        .collect();
    let mut numbers = Vec::new();
    for task in adding {
        numbers.push(task.await.unwrap());
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=64).collect::<Vec<i64>>());
}

async fn a_task_keeps_its_trust(world: World) {
    let trusted = |trust: &str| TaskContent { trust: trust.into(), ..content("one") };
    let task = world.store.tasks().add("ann", trusted("exposed")).await.unwrap();
    let trust = async || world.store.tasks().list("ann", 0, 10).await.unwrap().swap_remove(0).content.trust;
    assert_eq!(trust().await, "exposed");
    world.store.tasks().update("ann", task.number, 1, trusted("agent")).await.unwrap();
    assert_eq!(trust().await, "agent");
}

async fn an_unknown_trust_is_exposed(world: World) {
    let task = world.store.tasks().add("ann", content("one")).await.unwrap();
    if world.execute("UPDATE tasks SET trust = 'Agent'").await {
        let task = world.store.tasks().get("ann", task.number).await.unwrap().unwrap();
        assert_eq!(task.content.trust, "exposed");
    }
}
