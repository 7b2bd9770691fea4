//! Soul and identity as an operator sets them.

use serde_json::json;

use crate::world::{World, contract};

contract!(
    keeps_soul_and_identity,
    replaces_and_removes,
    what_is_not_given_stays,
    members_of_an_identity_are_merged,
    a_member_replaces_the_whole_one_and_null_removes_it,
    two_operators_lose_nothing_of_each_other,
    refuses_an_identity_that_is_no_object,
);

// spec: S-02
async fn keeps_soul_and_identity(world: World) {
    let identity = json!({"name": "Ada", "vibe": "calm", "extra": {"deep": [1, null, "ü"]}});
    world.store.agents().put("coach", Some("Be kind.\nBe brief."), Some(identity.clone())).await.unwrap();
    world.store.agents().put("bare", None, None).await.unwrap();
    let coach = world.store.agents().get("coach").await.unwrap().unwrap();
    assert_eq!(coach.soul.as_deref(), Some("Be kind.\nBe brief."));
    assert_eq!(coach.identity, Some(identity));
    let names: Vec<String> =
        world.store.agents().list().await.unwrap().into_iter().map(|agent| agent.name).collect();
    assert_eq!(names, ["bare", "coach"]);
    assert_eq!(world.store.agents().get("nobody").await.unwrap(), None);
}

async fn replaces_and_removes(world: World) {
    assert_eq!(world.store.agents().put("coach", Some("one"), None).await.unwrap(), 1);
    assert_eq!(world.store.agents().put("coach", Some("two"), None).await.unwrap(), 2);
    let coach = world.store.agents().get("coach").await.unwrap().unwrap();
    assert_eq!((coach.soul.as_deref(), coach.version), (Some("two"), 2));
    assert!(world.store.agents().remove("coach").await.unwrap());
    assert!(!world.store.agents().remove("coach").await.unwrap());
}

async fn what_is_not_given_stays(world: World) {
    let identity = |name: &str| Some(json!({ "name": name }));
    world.store.agents().put("coach", Some("one"), identity("Ada")).await.unwrap();
    world.store.agents().put("coach", None, identity("Eve")).await.unwrap();
    world.store.agents().put("coach", Some("two"), None).await.unwrap();
    world.store.agents().put("coach", None, None).await.unwrap();
    let coach = world.store.agents().get("coach").await.unwrap().unwrap();
    assert_eq!((coach.soul.as_deref(), coach.identity, coach.version), (Some("two"), identity("Eve"), 4));
    world.store.agents().remove("coach").await.unwrap();
    world.store.agents().put("coach", Some("three"), None).await.unwrap();
    let coach = world.store.agents().get("coach").await.unwrap().unwrap();
    assert_eq!((coach.soul.as_deref(), coach.identity, coach.version), (Some("three"), None, 1));
}

async fn members_of_an_identity_are_merged(world: World) {
    let agents = world.store.agents();
    let identity = async || agents.get("coach").await.unwrap().unwrap().identity;
    agents.put("coach", None, Some(json!({"name": "Ada", "vibe": "calm"}))).await.unwrap();
    agents.put("coach", None, Some(json!({"vibe": "brisk", "emoji": "x"}))).await.unwrap();
    assert_eq!(identity().await, Some(json!({"name": "Ada", "vibe": "brisk", "emoji": "x"})));
    agents.put("coach", None, Some(json!({"vibe": null}))).await.unwrap();
    assert_eq!(identity().await, Some(json!({"name": "Ada", "emoji": "x"})));
    agents.put("bare", Some("soul"), None).await.unwrap();
    agents.put("bare", None, Some(json!({"name": "Eve"}))).await.unwrap();
    assert_eq!(agents.get("bare").await.unwrap().unwrap().identity, Some(json!({"name": "Eve"})));
}

async fn a_member_replaces_the_whole_one_and_null_removes_it(world: World) {
    let agents = world.store.agents();
    let identity = async || agents.get("coach").await.unwrap().unwrap().identity;
    let put = async |identity| agents.put("coach", None, Some(identity)).await.unwrap();
    put(json!({"name": "Ada", "vibe": null, "extra": {"a": {"b": 1, "c": null}, "d": [null, {"e": null}]}}))
        .await;
    assert_eq!(identity().await, Some(json!({"name": "Ada", "extra": {"a": {"b": 1}, "d": [null, {}]}})));
    put(json!({"extra": {"f": 2, "g": null}})).await;
    assert_eq!(identity().await, Some(json!({"name": "Ada", "extra": {"f": 2}})));
    put(json!({"extra": null, "odd \"key\".$": {}})).await;
    assert_eq!(identity().await, Some(json!({"name": "Ada", "odd \"key\".$": {}})));
    put(json!({})).await;
    assert_eq!(identity().await, Some(json!({"name": "Ada", "odd \"key\".$": {}})));
    agents.put("coach", Some("soul"), None).await.unwrap();
    put(json!({"name": null, "odd \"key\".$": null})).await;
    assert_eq!(identity().await, Some(json!({})));
}

async fn two_operators_lose_nothing_of_each_other(world: World) {
    for round in 0..10 {
        let (soul, identity) = (format!("soul {round}"), json!({ "name": format!("name {round}") }));
        let (one, other) = tokio::join!(
            world.store.agents().put("coach", Some(&soul), None),
            world.store.agents().put("coach", None, Some(identity.clone())),
        );
        assert_ne!(one.unwrap(), other.unwrap());
        let coach = world.store.agents().get("coach").await.unwrap().unwrap();
        assert_eq!((coach.soul, coach.identity), (Some(soul), Some(identity)));
    }
}

async fn refuses_an_identity_that_is_no_object(world: World) {
    let error = world.store.agents().put("coach", None, Some(json!("Ada"))).await.unwrap_err();
    assert_eq!(error.to_string(), "the identity is not a JSON object");
    let error = world.store.agents().put("coach", None, Some(json!({"name": "A\0"}))).await.unwrap_err();
    assert!(error.to_string().contains("NUL"), "{error}");
}
