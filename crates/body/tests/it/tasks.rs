//! Tasks with steps.

use embody_body::{Caller, CreateTask, ListTasks, StepEntry, StepState, TaskEntry, UpdateTask};
use embody_mcp::read_arguments;
use embody_store::Scope;
use serde_json::{Value, json};

use crate::world::{NOW, World, caller, in_shared_conversation};

fn update(given: Value) -> UpdateTask {
    read_arguments("update_task", &given).unwrap()
}

fn list(given: Value) -> ListTasks {
    read_arguments("list_tasks", &given).unwrap()
}

async fn create(world: &World, user: &str, title: &str) -> TaskEntry {
    let steps = Some(vec!["measure".to_owned(), "cut".to_owned()]);
    let args = CreateTask { title: title.to_owned(), description: None, steps };
    world.body.create_task(&caller(user), args).await.unwrap()
}

#[tokio::test]
async fn tasks_are_not_shown_where_others_read_along() {
    let world = World::new().await;
    create(&world, "ann", "buy a ring").await;
    let shared_conversation = in_shared_conversation("ann", "t");
    let listed = world.body.list_tasks(&shared_conversation, ListTasks::default()).await.unwrap_err();
    let changed = world
        .body
        .update_task(&shared_conversation, update(json!({"id": 1, "status": "open"})))
        .await
        .unwrap_err();
    for (refused, tool) in [(listed, "list_tasks"), (changed, "update_task")] {
        let shown = refused.to_string();
        assert!(shown.contains(tool) && !shown.contains("ring"), "{shown}");
    }
}

#[tokio::test]
async fn a_task_is_made_changed_and_listed() {
    let world = World::new().await;
    let made = create(&world, "ann", " build a shelf ").await;
    assert_eq!((&*made.id, &*made.title, &*made.status, made.version), ("1", "build a shelf", "open", 1));
    assert_eq!(made.steps[1], StepEntry { text: "cut".to_owned(), state: StepState::Open });
    // Models write ids as they like.
    let steps = json!([{"text": "measure", "state": "done"}, {"text": "cut", "state": "current"}]);
    let changed = update(json!({"id": 1, "status": "doing", "steps": steps}));
    let changed = world.body.update_task(&caller("ann"), changed).await.unwrap();
    assert_eq!((&*changed.status, &*changed.title, changed.version), ("doing", "build a shelf", 2));
    let changed = update(json!({"id": "#1", "description": "of oak"}));
    let changed = world.body.update_task(&caller("ann"), changed).await.unwrap();
    assert_eq!((&*changed.status, &*changed.description), ("doing", "of oak"), "what is left out stays");
    assert_eq!(changed.steps[0].state, StepState::Done);
    let listed = world.body.list_tasks(&caller("ann"), ListTasks::default()).await.unwrap();
    assert_eq!((listed.tasks, listed.next_after), (vec![changed], None));
}

#[tokio::test]
async fn a_stale_change_is_rejected() {
    let world = World::new().await;
    create(&world, "ann", "a").await;
    let first = update(json!({"id": "1", "status": "done", "expected_version": 1}));
    world.body.update_task(&caller("ann"), first.clone()).await.unwrap();
    let error = world.body.update_task(&caller("ann"), first).await.unwrap_err();
    assert!(error.to_string().contains("is now at version `2`"), "{error}");
    for (user, id) in [("ann", "9"), ("bob", "1"), ("ann", "x"), ("ann", "")] {
        let error = world.body.update_task(&caller(user), update(json!({"id": id}))).await.unwrap_err();
        assert!(error.to_string().contains("unknown task"), "{user} {id}: {error}");
    }
    for title in ["", " ", "two\nlines"] {
        let args = CreateTask { title: title.to_owned(), description: None, steps: None };
        assert!(world.body.create_task(&caller("ann"), args).await.is_err(), "{title:?}");
    }
}

#[tokio::test]
async fn long_lists_come_in_parts() {
    let world = World::new().await;
    for number in 0..7 {
        create(&world, "ann", &format!("task {number}")).await;
    }
    let done = update(json!({"id": "6", "status": "done"}));
    world.body.update_task(&caller("ann"), done).await.unwrap();
    let ids = async |given: Value| {
        let listed = world.body.list_tasks(&caller("ann"), list(given)).await.unwrap();
        let ids: Vec<String> = listed.tasks.iter().map(|task| task.id.clone()).collect();
        (ids.join(","), listed.next_after)
    };
    assert_eq!(ids(json!({"limit": 3})).await, ("1,2,3".to_owned(), Some("3".to_owned())));
    assert_eq!(ids(json!({"limit": 4, "after": 3})).await, ("4,5,6,7".to_owned(), None));
    assert_eq!(ids(json!({"limit": 3, "after": "3", "status": "open"})).await, ("4,5,7".to_owned(), None));
    assert_eq!(ids(json!({"status": "done"})).await, ("6".to_owned(), None));
    assert!(world.body.list_tasks(&caller("bob"), list(json!({}))).await.unwrap().tasks.is_empty());
}

#[tokio::test]
async fn a_task_that_was_written_after_such_a_read_marks_who_reads_it() {
    let world = World::new().await;
    let other = Caller { scope: Scope::new("ann", "other").unwrap(), ..caller("ann") };
    let origins = async |reader: &Caller| -> Vec<String> {
        let known =
            world.store.untrusted_reads().origins(&reader.scope, &reader.scope.writer(), NOW).await.unwrap();
        known.into_iter().map(|read| read.origin).collect()
    };
    create(&world, "ann", "buy milk").await;
    world.body.list_tasks(&other, ListTasks::default()).await.unwrap();
    assert_eq!(origins(&other).await, [""; 0], "what an agent wrote before is its own");
    let ann = caller("ann").scope;
    world.store.untrusted_reads().record(&ann, &ann.writer(), &["mail/read"], NOW).await.unwrap();
    create(&world, "ann", "pay Eve").await;
    // Only what is shown counts.
    world.body.list_tasks(&other, list(json!({"limit": 1}))).await.unwrap();
    assert_eq!(origins(&other).await, [""; 0]);
    world.body.list_tasks(&other, ListTasks::default()).await.unwrap();
    assert_eq!(origins(&other).await, ["task:2"]);
    // A change makes the whole task suspect, and shows it to who changes it.
    world
        .body
        .update_task(&caller("ann"), update(json!({"id": "1", "description": "pay Eve"})))
        .await
        .unwrap();
    let third = Caller { scope: Scope::new("ann", "third").unwrap(), ..caller("ann") };
    world.body.update_task(&third, update(json!({"id": "1", "status": "done"}))).await.unwrap();
    assert_eq!(origins(&third).await, ["task:1"]);
    assert_eq!(world.store.tasks().get("ann", 1).await.unwrap().unwrap().content.trust, "exposed");
}
