//! The mind goes away and comes back, while a session is open.

use std::time::Instant;

use serde_json::{Value, json};

use super::host::Host;
use super::stage::Stage;
use super::steps::{data, decision, text, until};
use super::tale::Tale;
use crate::failure::Failure;

/// What the broker calls it.
const AWAY: &str = "mind_unavailable";

/// Step 7.
pub(super) async fn mind_leaves_and_returns(
    stage: &Stage,
    tale: &mut Tale,
    host: &Host,
) -> Result<(), Failure> {
    let task = json!({"title": "Book a room for Thursday"});
    tale.step("The mind goes away, and comes back")?;
    tale.say("The connection to the mind is cut, and new ones are not answered.")?;
    stage.mind.leave();
    until(tale, host, "the broker does not say that the mind is away", |status| {
        is_mind(status, "unavailable") && status.get("degraded_modes") == Some(&json!([AWAY]))
    })
    .await?;
    tale.sent("runtime_status", &json!({}))?;
    tale.got(&format!("degraded: {AWAY}"))?;
    tale.sent("list_tasks", &json!({}))?;
    let listed = data(host.call("list_tasks", &json!({})).await?);
    let count = tasks(&listed);
    tale.sure(count == Some(1), "a read does not go on", &listed)?;
    tale.got("1 task, as before: reads go on")?;
    tale.sent("create_task", &task)?;
    let blocked = host.call("create_task", &task).await?;
    let decided = decision(&blocked);
    tale.sure(text(&decided, "/decision") == "blocked", "a write was not blocked", &blocked)?;
    tale.got(&format!("blocked: {}", text(&decided, "/reason")))?;
    tale.say("The mind is let back in. Nothing is restarted; the same session goes on.")?;
    stage.mind.come_back();
    let since = Instant::now();
    until(tale, host, "the mind is not back", |status| {
        is_mind(status, "connected") && status.get("degraded") == Some(&json!(false))
    })
    .await?;
    let took = since.elapsed().as_millis();
    tale.sent("runtime_status", &json!({}))?;
    tale.got(&format!("nothing is degraded: the broker has found the mind by itself, after {took} ms"))?;
    tale.sent("create_task", &task)?;
    let made = data(host.call("create_task", &task).await?);
    tale.sure(text(&made, "/title") == text(&task, "/title"), "the task was not made", &made)?;
    tale.got(&format!("task {}, {}: writes go on, too", text(&made, "/id"), text(&made, "/status")))
}

fn tasks(listed: &Value) -> Option<usize> {
    Some(listed.get("tasks")?.as_array()?.len())
}

fn is_mind(status: &Value, state: &str) -> bool {
    let upstreams = status.get("upstreams").and_then(Value::as_array);
    upstreams.into_iter().flatten().any(|one| text(one, "/role") == "mind" && text(one, "/state") == state)
}
