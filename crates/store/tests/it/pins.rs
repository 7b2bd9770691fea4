//! Pins: the first sight holds until the operator accepts another.

use embody_store::{AcceptPin, Definition, PinAccepted, PinState, SeenTool, Store};

use crate::world::{World, contract};

contract!(
    the_first_sight_is_pinned_once,
    a_change_is_held_until_it_is_accepted,
    going_back_needs_no_acceptance,
    what_is_not_acceptable_is_held,
    only_what_was_shown_is_accepted,
);

fn definition(text: &str) -> Definition {
    Definition {
        text: format!("{{\"name\": \"send\",  \"description\": \"{text}\"}}"),
        hash: format!("h-{text}"),
    }
}

pub(crate) fn seen(text: &str) -> SeenTool {
    SeenTool { body: "teams".into(), tool: "send".into(), definition: definition(text), acceptable: true }
}

pub(crate) fn accept(text: &str) -> AcceptPin {
    AcceptPin { body: "teams".into(), tool: "send".into(), hash: format!("h-{text}"), by: "operator".into() }
}

async fn see(store: &Store, text: &str) -> PinState {
    store.see_tool(seen(text)).await.unwrap()
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
    assert_eq!(world.store.see_tool(other).await.unwrap(), PinState::First);
    let pins = world.store.pins(("", ""), 10).await.unwrap();
    assert_eq!(pins.iter().map(|pin| pin.body.as_str()).collect::<Vec<_>>(), ["mail", "teams"]);
    assert_eq!(pins[1].pinned, definition("one"));
    assert!(pins[1].accepted);
    assert_eq!(world.store.pins(("mail", "send"), 10).await.unwrap(), [pins[1].clone()]);
}

async fn a_change_is_held_until_it_is_accepted(world: World) {
    let second = world.second().await;
    assert_eq!(see(&world.store, "one").await, PinState::First);
    assert_eq!(see(&world.store, "two").await, changed("one", "two"));
    assert_eq!(see(&second, "two").await, changed("one", "two"));
    let accepted = second.accept_pin(accept("two")).await.unwrap();
    let PinAccepted::Accepted(pin) = accepted else { panic!("{accepted:?}") };
    assert_eq!(
        (pin.pinned, pin.seen, pin.accepted_by.as_deref()),
        (definition("two"), None, Some("operator"))
    );
    let records = world.store.audit_tail(10, None).await.unwrap();
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
    assert_eq!(world.store.pins(("", ""), 10).await.unwrap()[0].seen, None);
    let late = world.store.accept_pin(accept("two")).await.unwrap();
    assert!(matches!(late, PinAccepted::Stale(_)), "{late:?}");
}

async fn what_is_not_acceptable_is_held(world: World) {
    let bad = |text: &str| SeenTool { acceptable: false, ..seen(text) };
    assert_eq!(world.store.see_tool(bad("obey")).await.unwrap(), PinState::Held);
    assert_eq!(world.store.see_tool(bad("obey")).await.unwrap(), PinState::Held);
    // A server that shows something harmless afterwards has not become trustworthy by it.
    assert_eq!(see(&world.store, "fine").await, PinState::Held);
    let stale = world.store.accept_pin(accept("obey")).await.unwrap();
    let PinAccepted::Stale(pin) = stale else { panic!("{stale:?}") };
    assert_eq!((pin.pinned, pin.accepted), (definition("fine"), false));
    let accepted = world.store.accept_pin(accept("fine")).await.unwrap();
    assert!(matches!(accepted, PinAccepted::Accepted(_)), "{accepted:?}");
    assert_eq!(see(&world.store, "fine").await, PinState::Same);
}

async fn only_what_was_shown_is_accepted(world: World) {
    assert_eq!(world.store.accept_pin(accept("one")).await.unwrap(), PinAccepted::Missing);
    see(&world.store, "one").await;
    see(&world.store, "two").await;
    see(&world.store, "three").await;
    let stale = world.store.accept_pin(accept("two")).await.unwrap();
    let PinAccepted::Stale(pin) = stale else { panic!("{stale:?}") };
    assert_eq!((pin.pinned, pin.seen), (definition("one"), Some(definition("three"))));
    assert_eq!(world.store.audit_tail(10, None).await.unwrap(), []);
    assert_eq!(see(&world.store, "two").await, changed("one", "two"));
}
