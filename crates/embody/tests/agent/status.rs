//! `status`: embody's own agent, and whether `up` runs.

use serde_json::{Value, json};

use crate::support::app::eventually;
use crate::support::model::{Model, WireFormat, rule, says};
use crate::support::served::Served;
use crate::support::world::World;

#[test]
fn the_own_agents_session_has_its_contract_in_the_prompt_and_may_have_ended() {
    let world = World::with_body("Never send money.\n");
    let _model = Model::start(&world, WireFormat::OpenAi, &json!([rule("hello", 0, says("Good morning."))]));
    world.run(&["run", "hello"]).ok();
    let text = world.run(&["status"]).ok().stdout;
    assert!(text.contains("1 active in the last minute (may include sessions that just ended)"), "{text}");
    assert!(text.contains("contract in the prompt, last active "), "{text}");
    assert!(text.contains("`embody up` is not running on this workspace"), "{text}");
    let status = world.run(&["status", "--json"]).ok().json();
    assert_eq!((&status["sessions"][0]["contract_delivered"], &status["up"]), (&Value::Null, &Value::Null));
}

#[test]
fn status_shows_up_while_it_runs_however_it_ends() {
    let world = World::new();
    let up = || world.run(&["status", "--json"]).ok().json()["up"].clone();
    assert_eq!(up(), Value::Null);
    let mut served = Served::start(&world);
    let reported = eventually("a word of `up`", || Some(up()).filter(|up| !up.is_null()));
    assert_eq!(reported["address"], format!("http://{}", served.host));
    assert_eq!(reported["pid"], served.process.id());
    let text = world.run(&["status"]).ok().stdout;
    assert!(text.contains(&format!("`embody up` runs at http://{}, process ", served.host)), "{text}");
    // Also if another store is configured than the one that it uses.
    let elsewhere = format!("sqlite:{}", world.path("elsewhere.db").display());
    let text = world.run(&["--store", &elsewhere, "status"]).ok().stdout;
    assert!(text.starts_with(&format!("`embody up` runs at http://{}", served.host)), "{text}");
    served.process.kill().unwrap();
    served.process.wait().unwrap();
    assert_eq!(up(), Value::Null);
}
