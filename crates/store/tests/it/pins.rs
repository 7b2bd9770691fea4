//! Pins: the first sight holds until the operator accepts another.

use embody_store::Store;
use embody_store::pins::{AcceptPin, AcceptPinOutcome, Definition, PinState, SeenTool};

use crate::world::{World, contract};

contract!(
    the_first_sight_is_pinned_once,
    a_change_is_held_until_it_is_accepted,
    going_back_needs_no_acceptance,
    what_is_not_acceptable_is_held,
    only_what_was_shown_is_accepted,
    many_are_seen_as_one_by_one,
    a_first_listing_is_one_fact_for_all_processes,
    a_tool_after_an_empty_first_listing_is_new,
    pins_of_an_earlier_version_count_as_a_listing,
    a_body_is_known_as_it_showed_itself_last,
    what_is_only_remembered_is_no_sight,
    a_pin_with_an_older_hash_is_recognized_and_rehashed,
    a_definition_that_is_no_longer_suspicious_is_released_unless_it_replaced_another,
);

fn definition(text: &str) -> Definition {
    Definition {
        text: format!("{{\"name\": \"send\",  \"description\": \"{text}\"}}"),
        hash: format!("h-{text}"),
    }
}

pub(crate) fn seen(text: &str) -> SeenTool {
    let definition = definition(text);
    SeenTool { body: "teams".into(), tool: "send".into(), definition, acceptable: true, rehash: |_, _| None }
}

pub(crate) fn accept(text: &str) -> AcceptPin {
    AcceptPin { body: "teams".into(), tool: "send".into(), hash: format!("h-{text}"), by: "operator".into() }
}

async fn see(store: &Store, text: &str) -> PinState {
    store.pins().record(seen(text)).await.unwrap()
}

fn changed(pinned: &str, seen: &str) -> PinState {
    PinState::Changed { pinned: definition(pinned), seen: definition(seen) }
}

async fn the_first_sight_is_pinned_once(world: World) {
    let second = world.second().await;
    let looking = (0..16).map(|number| {
        let store = if number % 2 == 0 { world.store.clone() } else { second.clone() };
        tokio::spawn(async move { see(&store, "one").await })
    });
    let mut states = Vec::new();
    for task in looking.collect::<Vec<_>>() {
        states.push(task.await.unwrap());
    }
    assert_eq!(states.iter().filter(|state| **state == PinState::First).count(), 1, "{states:?}");
    assert_eq!(states.iter().filter(|state| **state == PinState::Same).count(), 15, "{states:?}");
    let other = SeenTool { body: "mail".into(), ..seen("two") };
    assert_eq!(world.store.pins().record(other).await.unwrap(), PinState::First);
    let pins = world.store.pins().list(("", ""), 10).await.unwrap();
    assert_eq!(pins.iter().map(|pin| pin.body.as_str()).collect::<Vec<_>>(), ["mail", "teams"]);
    assert_eq!(pins[1].pinned, definition("one"));
    assert!(pins[1].accepted);
    assert_eq!(world.store.pins().list(("mail", "send"), 10).await.unwrap(), [pins[1].clone()]);
}

async fn a_change_is_held_until_it_is_accepted(world: World) {
    let second = world.second().await;
    assert_eq!(see(&world.store, "one").await, PinState::First);
    assert_eq!(see(&world.store, "two").await, changed("one", "two"));
    assert_eq!(see(&second, "two").await, changed("one", "two"));
    let accepted = second.pins().accept(accept("two")).await.unwrap();
    let AcceptPinOutcome::Accepted(pin) = accepted else { panic!("{accepted:?}") };
    assert_eq!(
        (pin.pinned, pin.seen, pin.accepted_by.as_deref()),
        (definition("two"), None, Some("operator"))
    );
    let records = world.store.audit().tail(10, None).await.unwrap();
    let told: Vec<_> =
        records.iter().map(|record| ["action", "subject", "note"].map(|name| record.text(name))).collect();
    assert_eq!(told, [["pin_accepted", "teams/send", "operator"].map(|text| Some(text.to_owned()))]);
    assert_eq!(see(&world.store, "two").await, PinState::Same);
    assert_eq!(see(&world.store, "one").await, changed("two", "one"));
}

async fn going_back_needs_no_acceptance(world: World) {
    see(&world.store, "one").await;
    assert_eq!(see(&world.store, "two").await, changed("one", "two"));
    assert_eq!(see(&world.store, "one").await, PinState::Same);
    assert_eq!(world.store.pins().list(("", ""), 10).await.unwrap()[0].seen, None);
    let late = world.store.pins().accept(accept("two")).await.unwrap();
    assert!(matches!(late, AcceptPinOutcome::Stale(_)), "{late:?}");
}

async fn what_is_not_acceptable_is_held(world: World) {
    let bad = |text: &str| SeenTool { acceptable: false, ..seen(text) };
    assert_eq!(world.store.pins().record(bad("obey")).await.unwrap(), PinState::Held);
    assert_eq!(world.store.pins().record(bad("obey")).await.unwrap(), PinState::Held);
    // A server that shows something harmless afterwards has not become trustworthy by it.
    assert_eq!(see(&world.store, "fine").await, PinState::Held);
    let stale = world.store.pins().accept(accept("obey")).await.unwrap();
    let AcceptPinOutcome::Stale(pin) = stale else { panic!("{stale:?}") };
    assert_eq!((pin.pinned, pin.accepted), (definition("fine"), false));
    let accepted = world.store.pins().accept(accept("fine")).await.unwrap();
    assert!(matches!(accepted, AcceptPinOutcome::Accepted(_)), "{accepted:?}");
    assert_eq!(see(&world.store, "fine").await, PinState::Same);
}

async fn only_what_was_shown_is_accepted(world: World) {
    assert_eq!(world.store.pins().accept(accept("one")).await.unwrap(), AcceptPinOutcome::Missing);
    see(&world.store, "one").await;
    see(&world.store, "two").await;
    see(&world.store, "three").await;
    let stale = world.store.pins().accept(accept("two")).await.unwrap();
    let AcceptPinOutcome::Stale(pin) = stale else { panic!("{stale:?}") };
    assert_eq!((pin.pinned, pin.seen), (definition("one"), Some(definition("three"))));
    assert_eq!(world.store.audit().tail(10, None).await.unwrap(), []);
    assert_eq!(see(&world.store, "two").await, changed("one", "two"));
}

fn tool(name: &str, text: &str) -> SeenTool {
    SeenTool { tool: name.into(), ..seen(text) }
}

async fn many_are_seen_as_one_by_one(world: World) {
    let second = world.second().await;
    // More than fit into one transaction, and not in the order of their names.
    let names: Vec<String> = (0..450).map(|number| format!("tool {}", (number * 7) % 450)).collect();
    let all = |text: &str| -> Vec<SeenTool> { names.iter().map(|name| tool(name, text)).collect() };
    let (one, other) = tokio::join!(
        world.store.pins().record_all("teams", all("one")),
        second.pins().record_all("teams", all("one"))
    );
    for (one, other) in one.unwrap().into_iter().zip(other.unwrap()) {
        let firsts = [&one, &other].iter().filter(|state| ***state == PinState::First).count();
        let sames = [&one, &other].iter().filter(|state| ***state == PinState::Same).count();
        assert_eq!((firsts, sames), (1, 1), "{one:?} {other:?}");
    }
    let mut mixed = all("one");
    mixed[3] = tool(&names[3], "two");
    mixed[440] = SeenTool { acceptable: false, ..tool("new and bad", "obey") };
    for _ in 0..2 {
        let states = world.store.pins().record_all("teams", mixed.clone()).await.unwrap();
        assert_eq!(states.len(), 450);
        assert_eq!((&states[3], &states[440]), (&changed("one", "two"), &PinState::Held));
        assert_eq!(states.iter().filter(|state| **state == PinState::Same).count(), 448);
    }
    assert_eq!(world.store.pins().record_all("teams", Vec::new()).await.unwrap(), []);
    let long = tool(&"x".repeat(10_000), "one");
    assert!(world.store.pins().record_all("teams", vec![long]).await.is_err());
}

/// One process lists a body for the first time, with more tools than fit into one of the later transactions. Another one, which
/// may use only the last of them, lists it as soon as it sees the first: by then it sees all, and none is new.
async fn a_first_listing_is_one_fact_for_all_processes(world: World) {
    let second = world.second().await;
    for round in 0..4 {
        let body = format!("body {round}");
        let of = |number: u32| SeenTool { body: body.clone(), ..tool(&format!("tool {number:04}"), "one") };
        let all: Vec<SeenTool> = (0..900).map(of).collect();
        let (first, tools, name) = (world.store.clone(), all.clone(), body.clone());
        let first = tokio::spawn(async move { first.pins().record_all(&name, tools).await.unwrap() });
        while second.pins().get(&body, "tool 0000").await.unwrap().is_none() {
            tokio::task::yield_now().await;
        }
        let states = second.pins().record_all(&body, all[800..].to_vec()).await.unwrap();
        assert!(states.iter().all(|state| *state == PinState::Same), "round {round}: {states:?}");
        let states = first.await.unwrap();
        assert!(states.iter().all(|state| *state == PinState::First), "round {round}: {states:?}");
    }
}

/// A process of an earlier version writes pins and no row about the listing.
async fn pins_of_an_earlier_version_count_as_a_listing(world: World) {
    let store = &world.store;
    store.pins().record(tool("read", "one")).await.unwrap();
    assert!(store.pins().list_last_seen("teams").await.unwrap().is_some());
    let states =
        store.pins().record_all("teams", vec![tool("read", "one"), tool("late", "one")]).await.unwrap();
    assert_eq!(states, [PinState::Same, PinState::New]);
}

async fn a_tool_after_an_empty_first_listing_is_new(world: World) {
    let (store, second) = (&world.store, world.second().await);
    assert_eq!(store.pins().list_last_seen("teams").await.unwrap(), None);
    // Instructions are no listing.
    store.pins().record(tool(embody_store::pins::INSTRUCTIONS_PIN, "be kind")).await.unwrap();
    assert_eq!(store.pins().list_last_seen("teams").await.unwrap(), None);
    assert_eq!(store.pins().record_all("teams", Vec::new()).await.unwrap(), []);
    assert_eq!(second.pins().record_all("teams", vec![tool("send", "one")]).await.unwrap(), [PinState::New]);
    assert_eq!(store.pins().record_all("teams", vec![tool("send", "one")]).await.unwrap(), [PinState::New]);
    let other = SeenTool { body: "mail".into(), ..tool("send", "one") };
    assert_eq!(store.pins().record_all("mail", vec![other]).await.unwrap(), [PinState::First]);
    assert!(store.pins().list_last_seen("teams").await.unwrap().is_some());
}

async fn a_body_is_known_as_it_showed_itself_last(world: World) {
    let store = &world.store;
    assert_eq!(store.pins().list_last_seen("teams").await.unwrap(), None);
    let listed = ["send", "read", "a"].map(|name| tool(name, "one"));
    store.pins().record_all("teams", listed.to_vec()).await.unwrap();
    store.pins().record(SeenTool { body: "mail".into(), ..tool("other", "one") }).await.unwrap();
    let known =
        async || -> Vec<(String, String)> { store.pins().list_last_seen("teams").await.unwrap().unwrap() };
    let names =
        |known: Vec<(String, String)>| -> Vec<String> { known.into_iter().map(|(name, _)| name).collect() };
    assert_eq!(names(known().await), ["send", "read", "a"], "in the server's order");
    // What it showed last, not what holds: whoever compares it with the pin sees that it has changed.
    store.pins().record(tool("read", "two")).await.unwrap();
    assert_eq!(known().await[1], ("read".to_owned(), definition("two").text));
    let all = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
    store.pins().set_tools("teams", &all(&["a", "send", "new"])).await.unwrap();
    assert_eq!(names(known().await), ["send", "a"]);
    assert_eq!(store.pins().list(("", ""), 10).await.unwrap().len(), 4, "no pin is gone");
    store.pins().set_tools("teams", &all(&["read"])).await.unwrap();
    assert_eq!(names(known().await), ["read"]);
    assert_eq!(names(store.pins().list_last_seen("mail").await.unwrap().unwrap()), ["other"]);
    // A pin of instructions is no tool, whenever it was seen.
    store.pins().record(tool(embody_store::pins::INSTRUCTIONS_PIN, "one")).await.unwrap();
    assert_eq!(names(known().await), ["read"]);
    assert_eq!(store.pins().list(("", ""), 10).await.unwrap().len(), 5);
}

async fn what_is_only_remembered_is_no_sight(world: World) {
    let store = &world.store;
    let compare = async |text: &str| store.pins().compare("teams", vec![seen(text)]).await.unwrap();
    assert_eq!(compare("one").await, [PinState::Held], "nobody has seen it");
    see(store, "one").await;
    assert_eq!(compare("one").await, [PinState::Same]);
    see(store, "two").await;
    // A session that remembers the first one takes nothing back, and asks nobody to look again.
    let mark = store.pins().mark().await.unwrap();
    assert_eq!(compare("one").await, [PinState::Same]);
    assert_eq!(compare("three").await, [changed("one", "three")]);
    assert_eq!(store.pins().mark().await.unwrap(), mark);
    assert_eq!(store.pins().list(("", ""), 10).await.unwrap().remove(0).seen, Some(definition("two")));
}

/// As a later version hashes: `h-one` became `c-one`.
fn rehashed(text: &str) -> SeenTool {
    let seen = seen(text);
    let definition = Definition { hash: format!("c-{text}"), ..seen.definition };
    let rehash = |tool: &str, text: &str| {
        assert_eq!(tool, "send");
        Some(format!("c-{}", text.split('"').nth(7)?))
    };
    SeenTool { definition, rehash, ..seen }
}

async fn a_pin_with_an_older_hash_is_recognized_and_rehashed(world: World) {
    let store = &world.store;
    see(store, "one").await;
    // What is only remembered is compared in the same way, and nothing is written.
    assert_eq!(store.pins().compare("teams", vec![rehashed("one")]).await.unwrap(), [PinState::Same]);
    assert_eq!(store.pins().list(("", ""), 10).await.unwrap()[0].pinned.hash, "h-one");
    assert_eq!(store.pins().record_all("teams", vec![rehashed("one")]).await.unwrap(), [PinState::Same]);
    let pin = store.pins().list(("", ""), 10).await.unwrap().remove(0);
    assert_eq!((&*pin.pinned.hash, pin.seen, pin.accepted), ("c-one", None, true));
    let mark = store.pins().mark().await.unwrap();
    assert_eq!(store.pins().record(rehashed("one")).await.unwrap(), PinState::Same);
    assert_eq!(store.pins().mark().await.unwrap(), mark, "it is rehashed once");
    // Another definition is a change, whichever way the pinned one was hashed.
    let changed = store.pins().record(rehashed("two")).await.unwrap();
    assert!(matches!(changed, PinState::Changed { .. }), "{changed:?}");
}

async fn a_definition_that_is_no_longer_suspicious_is_released_unless_it_replaced_another(world: World) {
    let store = &world.store;
    let bad = |name: &str, text: &str| SeenTool { acceptable: false, ..tool(name, text) };
    store.pins().record_all("teams", vec![bad("misjudged", "fine"), bad("poisoned", "obey")]).await.unwrap();
    assert_eq!(store.pins().record(tool("poisoned", "fine")).await.unwrap(), PinState::Held);
    let states = store
        .pins()
        .record_all("teams", vec![tool("misjudged", "fine"), tool("poisoned", "fine")])
        .await
        .unwrap();
    assert_eq!(states, [PinState::Same, PinState::Held]);
    let pins = store.pins().list(("", ""), 10).await.unwrap();
    assert_eq!(pins.iter().map(|pin| pin.accepted).collect::<Vec<_>>(), [true, false]);
    assert_eq!(pins[0].accepted_by, None);
    assert_eq!(store.pins().record(bad("misjudged", "fine")).await.unwrap(), PinState::Same);
}
