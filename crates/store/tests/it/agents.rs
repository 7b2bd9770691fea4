//! Soul and identity as an operator sets them.

use serde_json::json;

use crate::world::{World, contract};

contract!(keeps_soul_and_identity, replaces_and_removes, refuses_an_identity_that_is_no_object);

// spec: S-02
async fn keeps_soul_and_identity(world: World) {
    let identity = json!({"name": "Ada", "vibe": "calm", "extra": {"deep": [1, null, "ü"]}});
    world.store.put_agent("coach", Some("Be kind.\nBe brief."), Some(identity.clone())).await.unwrap();
    world.store.put_agent("bare", None, None).await.unwrap();
    let coach = world.store.agent("coach").await.unwrap().unwrap();
    assert_eq!(coach.soul.as_deref(), Some("Be kind.\nBe brief."));
    assert_eq!(coach.identity, Some(identity));
    let names: Vec<String> =
        world.store.agents().await.unwrap().into_iter().map(|agent| agent.name).collect();
    assert_eq!(names, ["bare", "coach"]);
    assert_eq!(world.store.agent("nobody").await.unwrap(), None);
}

async fn replaces_and_removes(world: World) {
    world.store.put_agent("coach", Some("one"), None).await.unwrap();
    world.store.put_agent("coach", Some("two"), None).await.unwrap();
    let coach = world.store.agent("coach").await.unwrap().unwrap();
    assert_eq!((coach.soul.as_deref(), coach.version), (Some("two"), 2));
    assert!(world.store.remove_agent("coach").await.unwrap());
    assert!(!world.store.remove_agent("coach").await.unwrap());
}

async fn refuses_an_identity_that_is_no_object(world: World) {
    let error = world.store.put_agent("coach", None, Some(json!("Ada"))).await.unwrap_err();
    assert_eq!(error.to_string(), "the identity is not a JSON object");
    let error = world.store.put_agent("coach", None, Some(json!({"name": "A\0"}))).await.unwrap_err();
    assert!(error.to_string().contains("NUL"), "{error}");
}
