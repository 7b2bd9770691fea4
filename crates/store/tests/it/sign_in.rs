//! Sign-in codes work once, for one user and a while; sessions of browsers are tokens that end with what they began with.

use std::time::{SystemTime, UNIX_EPOCH};

use embody_store::sign_in::{MAX_CODES, MAX_SESSIONS};
use embody_store::tokens::{NewToken, TokenScope};
use embody_store::users::User;

use crate::tokens::new;
use crate::world::{World, contract};

contract!(
    a_code_signs_its_user_in_once_and_before_it_expires,
    the_oldest_code_is_dropped_when_there_are_too_many,
    codes_used_at_the_same_moment_sign_in_once,
    a_session_ends_when_it_is_revoked_or_signed_out_or_over,
    a_session_ends_with_the_token_that_it_began_with,
    sessions_of_one_user_do_not_end_those_of_others,
    neither_codes_nor_secrets_of_sessions_are_stored,
);

/// In an hour.
fn later() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_micros()).unwrap() + 3_600_000_000
}

async fn a_code_signs_its_user_in_once_and_before_it_expires(world: World) {
    let sign_in = world.store.sign_in();
    let code = sign_in.add_code("owner", later()).await.unwrap();
    for (user, code) in [("owner", ""), ("owner", &code.expose()[1..]), ("ann", code.expose())] {
        assert!(!sign_in.use_code(user, code).await.unwrap(), "{user} {code}");
    }
    assert!(sign_in.use_code("owner", code.expose()).await.unwrap());
    assert!(!sign_in.use_code("owner", code.expose()).await.unwrap());
    let old = sign_in.add_code("owner", 1).await.unwrap();
    assert!(!sign_in.use_code("owner", old.expose()).await.unwrap());
}

async fn the_oldest_code_is_dropped_when_there_are_too_many(world: World) {
    let sign_in = world.store.sign_in();
    let mut codes = Vec::new();
    for number in 0..=MAX_CODES {
        codes.push(sign_in.add_code("owner", later() + i64::from(number)).await.unwrap());
    }
    let others = sign_in.add_code("ann", later()).await.unwrap();
    assert!(!sign_in.use_code("owner", codes[0].expose()).await.unwrap());
    assert!(sign_in.use_code("owner", codes[1].expose()).await.unwrap());
    assert!(sign_in.use_code("ann", others.expose()).await.unwrap());
}

async fn codes_used_at_the_same_moment_sign_in_once(world: World) {
    let code = world.store.sign_in().add_code("owner", later()).await.unwrap();
    let uses = (0..8).map(|_| {
        let (store, code) = (world.store.clone(), code.expose().to_owned());
        tokio::spawn(async move { store.sign_in().use_code("owner", &code).await.unwrap() })
    });
    let mut worked = 0;
    for one in uses.collect::<Vec<_>>() {
        worked += usize::from(one.await.unwrap());
    }
    assert_eq!(worked, 1);
}

async fn a_session_ends_when_it_is_revoked_or_signed_out_or_over(world: World) {
    let store = &world.store;
    let begin = async |until: i64| store.sign_in().begin("owner", None, until).await.unwrap();
    let (revoked, left, kept) = (begin(later()).await, begin(later()).await, begin(later()).await);
    let session = store.tokens().authenticate(kept.expose()).await.unwrap().unwrap();
    assert_eq!(
        (session.user.as_str(), session.scope, session.signed_in_with, session.may_approve),
        ("owner", TokenScope::Console, None, false)
    );
    let listed = store.tokens().list().await.unwrap();
    assert_eq!(listed.len(), 3);
    assert!(listed.iter().all(|one| one.label == "signed in with a link" && one.expires_at.is_some()));
    store.tokens().revoke(&listed[0].id).await.unwrap();
    store.sign_in().end(left.expose()).await.unwrap();
    for (secret, id, expected) in [
        (&revoked, &listed[0].id, Some(false)),
        (&left, &listed[1].id, None),
        (&kept, &listed[2].id, Some(true)),
    ] {
        let is_valid = expected == Some(true);
        assert_eq!(store.tokens().authenticate(secret.expose()).await.unwrap().is_some(), is_valid);
        assert_eq!(store.tokens().is_valid(secret.expose()).await, is_valid);
        assert_eq!(store.tokens().validity("owner", id).await.unwrap(), expected);
        assert_eq!(store.tokens().validity("ann", id).await.unwrap(), None);
    }
    let over = begin(1).await;
    assert_eq!(store.tokens().authenticate(over.expose()).await.unwrap(), None);
    // What is over is not kept.
    begin(later()).await;
    assert_eq!(store.tokens().list().await.unwrap().len(), 2);
    // Signing out ends no token.
    let (_, token) = store.tokens().add(new("owner", TokenScope::Chat)).await.unwrap();
    store.sign_in().end(token.expose()).await.unwrap();
    assert!(store.tokens().is_valid(token.expose()).await);
    // A locked-out owner is out.
    assert!(matches!(store.users().list().await.unwrap().as_slice(), [User { id, .. }] if id == "owner"));
    store.users().set_disabled("owner", true).await.unwrap();
    assert!(!store.tokens().is_valid(kept.expose()).await);
}

async fn a_session_ends_with_the_token_that_it_began_with(world: World) {
    let store = &world.store;
    let soon = later() - 1_000_000_000;
    let (chat, _) = store.tokens().add(new("ann", TokenScope::Chat)).await.unwrap();
    let expiring = NewToken { expires_at: Some(soon), ..new("ann", TokenScope::Owner) };
    let (expiring, _) = store.tokens().add(expiring).await.unwrap();
    let begin = async |token: &str| store.sign_in().begin("ann", Some(token), later()).await.unwrap();
    let (first, second) = (begin(&chat.id).await, begin(&expiring.id).await);
    let scope = async |secret: &str| {
        store.tokens().authenticate(secret).await.unwrap().map(|one| (one.scope, one.signed_in_with))
    };
    assert_eq!(scope(first.expose()).await, Some((TokenScope::Console, Some(TokenScope::Chat))));
    assert_eq!(scope(second.expose()).await, Some((TokenScope::Console, Some(TokenScope::Owner))));
    let listed = store.tokens().list().await.unwrap();
    assert_eq!(listed[3].expires_at, Some(soon), "a session lasts no longer than its token");
    assert_eq!(listed[2].label, format!("signed in with {}", chat.id));
    store.tokens().revoke(&chat.id).await.unwrap();
    assert_eq!(scope(first.expose()).await, None);
    assert!(scope(second.expose()).await.is_some());
    let revoked = store.tokens().list().await.unwrap().iter().filter(|one| one.revoked_at.is_some()).count();
    assert_eq!(revoked, 2, "the token and its session");
    // A token that was revoked in between lets nobody in, and neither does one that never was.
    for token in [chat.id.as_str(), "missing"] {
        let late = begin(token).await;
        assert_eq!(scope(late.expose()).await, None, "{token}");
    }
}

async fn sessions_of_one_user_do_not_end_those_of_others(world: World) {
    let store = &world.store;
    let owner = store.sign_in().begin("owner", None, later()).await.unwrap();
    let mut theirs = Vec::new();
    for _ in 0..MAX_SESSIONS + 3 {
        theirs.push(store.sign_in().begin("ann", None, later()).await.unwrap());
    }
    assert!(store.tokens().is_valid(owner.expose()).await);
    let secrets: Vec<&str> = theirs.iter().map(|secret| secret.expose()).collect();
    let valid = store.tokens().are_valid(&secrets).await;
    let expected: Vec<bool> = (0..secrets.len()).map(|number| number >= 3).collect();
    assert_eq!(valid, expected, "the newest remain");
}

async fn neither_codes_nor_secrets_of_sessions_are_stored(world: World) {
    let code = world.store.sign_in().add_code("owner", later()).await.unwrap();
    let session = world.store.sign_in().begin("owner", None, later()).await.unwrap();
    assert_eq!(format!("{code:?}"), "TokenSecret(…)");
    let words = [code.expose().to_owned(), session.expose().trim_start_matches("embody_").to_owned()];
    if let Some(hash) = world.postgres_text("SELECT encode(hash, 'hex') FROM sign_in_codes").await {
        assert_eq!(hash, blake3::hash(words[0].as_bytes()).to_hex().as_str());
    }
    world.store.close().await;
    for entry in std::fs::read_dir(world.folder.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let has = |word: &String| bytes.windows(word.len()).any(|window| window == word.as_bytes());
        assert!(!words.iter().any(has), "a secret is on the disk");
    }
}
