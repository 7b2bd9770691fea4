//! Tokens: one secret names one user, until it is revoked, over, or the user is locked out.

use embody_store::ErrorKind;
use embody_store::memories::NewMemory;
use embody_store::tasks::TaskContent;
use embody_store::tokens::{NewToken, TokenScope};

use crate::world::{World, contract, scope};

contract!(
    a_secret_names_its_user,
    a_token_may_approve_only_if_it_was_made_so,
    whether_a_token_counts_is_asked_without_using_it,
    many_tokens_are_looked_up_together,
    revoked_over_or_locked_out_names_nobody,
    what_operators_do_is_recorded_once,
    the_secret_is_kept_nowhere,
    a_user_with_records_of_any_kind_is_known,
);

/// Of the tables that making a token writes to.
const EVERY_COLUMN: &str = "SELECT string_agg(line, ' ') FROM (SELECT row_to_json(tokens)::text AS line FROM tokens \
     UNION ALL SELECT row_to_json(users)::text FROM users UNION ALL SELECT row_to_json(audit)::text FROM audit) AS lines";

pub(crate) fn new(user: &str, scope: TokenScope) -> NewToken {
    NewToken { user: user.into(), scope, label: "laptop".into(), expires_at: None, may_approve: false }
}

async fn a_secret_names_its_user(world: World) {
    let (token, secret) = world.store.tokens().add(new("ann", TokenScope::Mcp)).await.unwrap();
    let (_, other) = world.store.tokens().add(new("bob", TokenScope::Operate)).await.unwrap();
    let ann = world.store.tokens().authenticate(secret.expose()).await.unwrap().unwrap();
    assert_eq!((ann.user.as_str(), ann.scope, ann.token), ("ann", TokenScope::Mcp, token.id.clone()));
    let bob = world.store.tokens().authenticate(other.expose()).await.unwrap().unwrap();
    assert_eq!((bob.user.as_str(), bob.scope), ("bob", TokenScope::Operate));
    assert_eq!(world.store.tokens().authenticate("embody_0000").await.unwrap(), None);
    let listed = world.store.tokens().list().await.unwrap();
    assert_eq!(listed.iter().map(|token| token.user.as_str()).collect::<Vec<_>>(), ["ann", "bob"]);
    assert!(listed[0].last_used_at.is_some());
}

async fn a_token_may_approve_only_if_it_was_made_so(world: World) {
    for may_approve in [false, true] {
        let made = NewToken { may_approve, ..new("owner", TokenScope::Mcp) };
        let (token, secret) = world.store.tokens().add(made).await.unwrap();
        let principal = world.store.tokens().authenticate(secret.expose()).await.unwrap().unwrap();
        assert_eq!((token.may_approve, principal.may_approve), (may_approve, may_approve));
    }
    let listed: Vec<bool> =
        world.store.tokens().list().await.unwrap().iter().map(|one| one.may_approve).collect();
    assert_eq!(listed, [false, true]);
}

async fn whether_a_token_counts_is_asked_without_using_it(world: World) {
    let (token, secret) = world.store.tokens().add(new("ann", TokenScope::Chat)).await.unwrap();
    assert!(world.store.tokens().is_valid(secret.expose()).await);
    assert!(!world.store.tokens().is_valid("embody_0000").await);
    assert_eq!(world.store.tokens().list().await.unwrap()[0].last_used_at, None);
    world.store.users().set_disabled("ann", true).await.unwrap();
    assert!(!world.store.tokens().is_valid(secret.expose()).await);
    world.store.users().set_disabled("ann", false).await.unwrap();
    world.store.tokens().revoke(&token.id).await.unwrap();
    assert!(!world.store.tokens().is_valid(secret.expose()).await);
}

async fn many_tokens_are_looked_up_together(world: World) {
    let (_, good) = world.store.tokens().add(new("ann", TokenScope::Mcp)).await.unwrap();
    let (revoked, lost) = world.store.tokens().add(new("ann", TokenScope::Mcp)).await.unwrap();
    let over = NewToken { expires_at: Some(1), ..new("ann", TokenScope::Mcp) };
    let (_, over) = world.store.tokens().add(over).await.unwrap();
    let (_, locked) = world.store.tokens().add(new("bob", TokenScope::Mcp)).await.unwrap();
    assert_eq!(world.store.tokens().are_valid(&[]).await, [true; 0]);
    let secrets =
        [good.expose(), lost.expose(), over.expose(), "embody_0000", locked.expose(), good.expose()];
    assert_eq!(world.store.tokens().are_valid(&secrets).await, [true, true, false, false, true, true]);
    world.store.tokens().revoke(&revoked.id).await.unwrap();
    world.store.users().set_disabled("bob", true).await.unwrap();
    assert_eq!(world.store.tokens().are_valid(&secrets).await, [true, false, false, false, false, true]);
    // More than one statement looks up.
    let unknown: Vec<String> = (0..1_200).map(|number| format!("embody_{number}")).collect();
    let mut many: Vec<&str> = unknown.iter().map(String::as_str).collect();
    many[700] = good.expose();
    let valid = world.store.tokens().are_valid(&many).await;
    assert_eq!(valid.iter().position(|is_valid| *is_valid), Some(700));
    assert_eq!((valid.len(), valid.iter().filter(|is_valid| **is_valid).count()), (1_200, 1));
    assert!(
        world.store.tokens().list().await.unwrap().iter().all(|token| token.last_used_at.is_none()),
        "no use"
    );
}

async fn revoked_over_or_locked_out_names_nobody(world: World) {
    let (token, secret) = world.store.tokens().add(new("ann", TokenScope::Chat)).await.unwrap();
    world.store.users().set_disabled("ann", true).await.unwrap();
    assert_eq!(world.store.tokens().authenticate(secret.expose()).await.unwrap(), None);
    world.store.users().set_disabled("ann", false).await.unwrap();
    assert!(world.store.tokens().authenticate(secret.expose()).await.unwrap().is_some());
    world.store.tokens().revoke(&token.id).await.unwrap();
    world.store.tokens().revoke(&token.id).await.unwrap();
    assert_eq!(world.store.tokens().authenticate(secret.expose()).await.unwrap(), None);
    let over = NewToken { expires_at: Some(1), ..new("ann", TokenScope::Chat) };
    let (_, secret) = world.store.tokens().add(over).await.unwrap();
    assert_eq!(world.store.tokens().authenticate(secret.expose()).await.unwrap(), None);
    let error = world.store.tokens().revoke("nope").await.unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::NotFound, "unknown token `nope`"));
}

async fn what_operators_do_is_recorded_once(world: World) {
    let store = &world.store;
    let (token, _) = store.tokens().add(new("ann", TokenScope::Chat)).await.unwrap();
    for disabled in [false, true, true, false, false] {
        store.users().set_disabled("ann", disabled).await.unwrap();
    }
    store.tokens().revoke(&token.id).await.unwrap();
    store.tokens().revoke(&token.id).await.unwrap();
    let error = store.users().set_disabled("eve", true).await.unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::NotFound, "unknown user `eve`"));
    let tail = store.audit().tail(20, Some("ann")).await.unwrap();
    let seen: Vec<_> =
        tail.iter().map(|record| (record.text("action").unwrap(), record.text("subject").unwrap())).collect();
    let (ann, id) = ("ann".to_owned(), token.id);
    let told =
        [("token_made", &id), ("user_locked_out", &ann), ("user_let_in", &ann), ("token_revoked", &id)];
    assert_eq!(seen, told.map(|(action, subject)| (action.to_owned(), subject.clone())));
    assert_eq!(store.audit().tail(20, None).await.unwrap().len(), 4);
}

async fn the_secret_is_kept_nowhere(world: World) {
    let (token, secret) = world.store.tokens().add(new("ann", TokenScope::Mcp)).await.unwrap();
    assert_eq!(format!("{secret:?}"), "TokenSecret(…)");
    assert!(!format!("{token:?}").contains(secret.expose()));
    if let Some(hash) = world.postgres_text("SELECT encode(hash, 'hex') FROM tokens").await {
        assert_eq!(hash, blake3::hash(secret.expose().as_bytes()).to_hex().as_str());
        let columns = world.postgres_text(EVERY_COLUMN).await.unwrap();
        // Bytes are written as hexadecimal digits there, as the secret is: what is kept is seen, so would be the secret.
        assert!(columns.contains(&hash) && columns.contains("token_made"), "{columns}");
        assert!(!columns.contains(secret.expose().trim_start_matches("embody_")), "{columns}");
    }
    let words = secret.expose().trim_start_matches("embody_").as_bytes().to_vec();
    world.store.close().await;
    for entry in std::fs::read_dir(world.folder.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(words.len()).any(|window| window == words), "the secret is on the disk");
    }
}

async fn a_user_with_records_of_any_kind_is_known(world: World) {
    let store = &world.store;
    let scope = |user: &str| scope(user, "assistant");
    let task = TaskContent {
        agent: "assistant".into(),
        title: "one".into(),
        description: String::new(),
        status: "open".into(),
        steps: Vec::new(),
        trust: "agent".into(),
    };
    for user in ["ann\u{200b}", "dora"] {
        store.memories().save(&scope(user), NewMemory::note("a cat", "owner", "owner")).await.unwrap();
    }
    for user in ["bob\u{200b}", "emma"] {
        store.instructions().set(&scope(user), crate::changes::change("Be kind.".into())).await.unwrap();
    }
    for user in ["carl\u{200b}", "fran"] {
        store.tasks().add(user, task.clone()).await.unwrap();
    }
    assert!(store.users().is_known("dora").await.unwrap() && !store.users().is_known("Dora").await.unwrap());
    for known in ["ann\u{200b}", "bob\u{200b}", "carl\u{200b}"] {
        store.tokens().add(new(known, TokenScope::Mcp)).await.unwrap();
    }
    for look_alike in ["dor\u{430}", "emm\u{430}", "fr\u{430}n"] {
        let refused = store.tokens().add(new(look_alike, TokenScope::Mcp)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{look_alike:?}");
    }
    let known = store.users().list_known().await.unwrap();
    assert_eq!(known, ["ann\u{200b}", "bob\u{200b}", "carl\u{200b}", "dora", "emma", "fran"]);
}
