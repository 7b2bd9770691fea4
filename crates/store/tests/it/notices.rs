//! Notices: entries of their own with an unread mark, each user's apart, and the newest of them.

use embody_store::notices::{KEPT, NewNotice, Notice, NoticeFilter, NoticeOrigin};
use embody_store::outgoing::NewOutgoing;
use embody_store::threads::NewThread;
use embody_store::{ErrorKind, Store};

use crate::world::{World, contract, scope};

contract!(
    a_notice_is_unread_until_its_user_reads_it,
    a_notice_knows_where_it_comes_from,
    a_notice_and_its_message_are_stored_together,
    the_newest_notices_are_kept
);

pub(crate) fn new(user: &str, text: &str) -> NewNotice {
    NewNotice {
        scope: scope(user, "assistant"),
        text: text.into(),
        urgency: "normal".into(),
        origin: NoticeOrigin { channel: "scheduled".into(), ..NoticeOrigin::default() },
    }
}

async fn add(store: &Store, user: &str, text: &str) -> String {
    store.notices().add(new(user, text), None).await.unwrap()
}

async fn texts(store: &Store, user: &str, filter: NoticeFilter) -> Vec<String> {
    let found = store.notices().list(user, filter, 1000).await.unwrap();
    found.into_iter().map(|notice| notice.text).collect()
}

async fn a_notice_is_unread_until_its_user_reads_it(world: World) {
    let (store, second) = (&world.store, world.second().await);
    let one = add(store, "ann", "one").await;
    add(&second, "ann", "two").await;
    add(store, "ann", "three").await;
    let bobs = add(store, "bob", "a secret of Bob").await;
    assert_eq!(texts(&second, "ann", NoticeFilter::All).await, ["three", "two", "one"]);
    let newest = store.notices().list("ann", NoticeFilter::All, 1).await.unwrap().remove(0).id;
    let unread = store.notices().unread("ann").await.unwrap();
    assert_eq!((unread.count, unread.newest), (3, Some(newest)));

    let three = store.notices().list("ann", NoticeFilter::All, 1).await.unwrap().remove(0).id;
    assert_eq!(store.notices().mark_read("ann", vec![three.clone(), "none".into()]).await.unwrap(), 1);
    assert_eq!(second.notices().mark_read("ann", vec![three]).await.unwrap(), 0, "once");
    // The unread ones are first.
    assert_eq!(texts(store, "ann", NoticeFilter::All).await, ["two", "one", "three"]);
    assert_eq!(texts(store, "ann", NoticeFilter::Unread).await, ["two", "one"]);
    let read: Vec<Notice> = store.notices().list("ann", NoticeFilter::All, 3).await.unwrap();
    assert!(read[2].read_at.unwrap() >= read[2].created_at && read[0].read_at.is_none());

    // Bob's are Bob's.
    assert_eq!(store.notices().mark_read("ann", vec![bobs]).await.unwrap(), 0);
    assert_eq!(store.notices().mark_read("bob", vec![one]).await.unwrap(), 0);
    assert_eq!(store.notices().mark_all_read("ann").await.unwrap(), 2);
    let unread = store.notices().unread("ann").await.unwrap();
    assert_eq!((unread.count, unread.newest), (0, None));
    assert_eq!(texts(&second, "bob", NoticeFilter::Unread).await, ["a secret of Bob"]);

    let many = vec![String::from("x"); KEPT as usize + 1];
    assert_eq!(store.notices().mark_read("ann", many).await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(store.notices().add(new("ann", ""), None).await.unwrap_err().kind(), ErrorKind::Invalid);
    let huge = "x".repeat(256 * 1024 + 1);
    assert_eq!(store.notices().add(new("ann", &huge), None).await.unwrap_err().kind(), ErrorKind::Invalid);
}

async fn a_notice_knows_where_it_comes_from(world: World) {
    let store = &world.store;
    let thread = NewThread {
        channel: "scheduled".into(),
        external: Some("schedule 1".into()),
        title: Some("Digest".into()),
    };
    let thread = store.threads().open(&scope("ann", "assistant"), thread).await.unwrap().id;
    for user in ["ann", "bob"] {
        let origin = NoticeOrigin {
            channel: "scheduled".into(),
            thread: Some(thread.clone()),
            schedule: Some("schedule 1".into()),
        };
        store.notices().add(NewNotice { origin, ..new(user, "tea") }, None).await.unwrap();
    }
    let origin = async |user: &str| {
        let found = store.notices().list(user, NoticeFilter::All, 1).await.unwrap().remove(0);
        assert_eq!(found.origin.thread.as_deref(), Some(&*thread));
        assert_eq!(found.origin.schedule.as_deref(), Some("schedule 1"));
        (found.agent, found.origin.channel, found.title)
    };
    assert_eq!(origin("ann").await, ("assistant".into(), "scheduled".into(), Some("Digest".into())));
    assert_eq!(origin("bob").await.2, None, "the title of Ann's thread is hers");
}

async fn a_notice_and_its_message_are_stored_together(world: World) {
    let store = &world.store;
    let message = |text: &str| NewOutgoing {
        scope: scope("ann", "assistant"),
        channel: "telegram".into(),
        to: "42".into(),
        text: text.into(),
        kind: "notice".into(),
        urgency: "normal".into(),
        about: None,
    };
    store.notices().add(new("ann", "tea"), Some(message("Notice: tea"))).await.unwrap();
    let sent = store.outgoing().list("ann", 10).await.unwrap();
    assert_eq!(sent.iter().map(|one| &*one.text).collect::<Vec<_>>(), ["Notice: tea"]);
    assert!(store.notices().add(new("ann", "more"), Some(message(""))).await.is_err());
    assert_eq!(texts(store, "ann", NoticeFilter::All).await, ["tea"]);
}

async fn the_newest_notices_are_kept(world: World) {
    let store = &world.store;
    add(store, "bob", "of Bob").await;
    for number in 0..KEPT + 3 {
        add(store, "ann", &number.to_string()).await;
    }
    let kept = texts(store, "ann", NoticeFilter::All).await;
    assert_eq!((kept.len(), &*kept[0], &*kept[499]), (500, "502", "3"));
    assert_eq!(texts(store, "bob", NoticeFilter::All).await, ["of Bob"]);
}
