//! Notices over HTTP: each user's own, and announced at once.

use embody_store::notices::{NewNotice, NoticeOrigin};
use embody_store::{DatabaseUrl, Scope, Store};
use serde_json::{Value, json};

use crate::support::served::{Served, token};
use crate::support::world::World;

fn add(world: &World, user: &str, text: &str) {
    let place = DatabaseUrl::File(world.path("embody.db"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Store::open(place).await.unwrap();
        let new = NewNotice {
            scope: Scope::new(user, "assistant").unwrap(),
            text: text.into(),
            urgency: "normal".into(),
            origin: NoticeOrigin { channel: "mcp".into(), ..NoticeOrigin::default() },
        };
        store.notices().add(new, None).await.unwrap();
        store.close().await;
    });
}

#[test]
fn a_user_lists_and_reads_their_own_notices_with_any_scope_of_the_api() {
    let world = World::new();
    let [chat, operate, owner, mcp] =
        ["chat", "operate", "owner", "mcp"].map(|scope| token(&world, "owner", scope));
    let ann = token(&world, "ann", "chat");
    let served = Served::start(&world);
    assert_eq!(served.get("/api/notices", &chat).json(), json!({"notices": [], "unread": 0}));
    add(&world, "owner", "<b>tea</b>");
    add(&world, "owner", "post");
    add(&world, "ann", "of Ann");
    for token in [&chat, &operate, &owner] {
        let found = served.get("/api/notices", token).json();
        let texts: Vec<&Value> =
            found["notices"].as_array().unwrap().iter().map(|one| &one["text"]).collect();
        assert_eq!((texts, &found["unread"]), (vec![&json!("post"), &json!("<b>tea</b>")], &json!(2)));
    }
    for path in ["/api/notices", "/api/notices/events"] {
        served.get(path, &mcp).refused(403, "this token has the scope `mcp`");
        served.ask(&format!("GET {path}"), &[], None).refused(401, "a token or a signed-in browser");
    }

    let tea = served.get("/api/notices", &chat).json()["notices"][1]["id"].clone();
    let read = |token: &str, body: Value| served.post("/api/notices/read", token, &body);
    assert_eq!(read(&ann, json!({"ids": [tea]})).json(), json!({"read": 0, "unread": 1}));
    assert_eq!(read(&chat, json!({"ids": [tea, "none"]})).json(), json!({"read": 1, "unread": 1}));
    let unread = served.get("/api/notices?unread=true", &operate).json();
    assert_eq!(
        (&unread["notices"][0]["text"], unread["notices"].as_array().unwrap().len()),
        (&json!("post"), 1)
    );
    for body in [json!({}), json!({"ids": [], "all": true}), json!({"all": false})] {
        read(&chat, body).refused(400, "either `ids` or");
    }
    read(&chat, json!({"ids": vec!["x"; 501]})).refused(400, "501 notices at once");
    read(&mcp, json!({"all": true})).refused(403, "scope `mcp`");
    assert_eq!(read(&operate, json!({"all": true})).json(), json!({"read": 1, "unread": 0}));
    assert_eq!(served.get("/api/notices", &ann).json()["unread"], 1);
}

#[test]
fn a_stream_announces_a_new_notice_of_its_user_only() {
    let world = World::new();
    let (owner, ann) = (token(&world, "owner", "chat"), token(&world, "ann", "chat"));
    let mut served = Served::start(&world);
    let stream = |token: &str| {
        let bearer = format!("Bearer {token}");
        served.begin("GET /api/notices/events", &[("authorization", &bearer)], None)
    };
    let (mut owners, mut anns) = (stream(&owner), stream(&ann));
    for stream in [&mut owners, &mut anns] {
        assert_eq!(stream.until("notices").data, json!({"unread": 0}));
    }
    add(&world, "owner", "tea");
    assert_eq!(owners.until("notices").data, json!({"unread": 1}));
    world.run(&["notices", "read", "--all"]).ok();
    assert_eq!(owners.until("notices").data, json!({"unread": 0}));
    // The first event of Ann after her own is about hers: nothing came of the owner's.
    add(&world, "ann", "of Ann");
    assert_eq!(anns.until("notices").data, json!({"unread": 1}));

    // A revoked token ends the stream, and so does the end of the process.
    let listed = world.run(&["token", "list", "--json"]).ok().json();
    let id = listed["tokens"].as_array().unwrap().iter().find(|one| one["user"] == "ann").unwrap();
    world.run(&["token", "revoke", id["id"].as_str().unwrap()]).ok();
    assert!(anns.event().is_none());
    served.signal("-TERM");
    assert!(owners.event().is_none());
    assert_eq!(served.process.wait().unwrap().code(), Some(0));
}
