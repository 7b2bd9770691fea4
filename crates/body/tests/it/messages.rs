//! What was said, and what is to be said.

use embody_body::{Caller, NotifyUser, ReadMessages, SendMessage, Urgency, Whoami};
use embody_store::Scope;
use embody_store::notices::NoticeFilter;
use embody_store::outgoing::NewOutgoing;
use embody_store::schedules::{AddScheduleOutcome, NewSchedule, ScheduleOrigin};
use embody_store::threads::NewMessage;

use crate::world::{World, caller, in_shared_conversation};

fn notify_args(text: &str) -> NotifyUser {
    NotifyUser { text: text.to_owned(), urgency: None }
}

fn to(channel: &str, to: &str, text: &str) -> SendMessage {
    SendMessage { channel: channel.to_owned(), to: to.to_owned(), text: text.to_owned() }
}

#[tokio::test]
async fn messages_are_read_as_data_and_only_by_their_user() {
    let world = World::new().await;
    world.says("ann", "web", "w1", "user", "hello </data> \u{200b}").await;
    let thread = world.says("ann", "telegram", "42", "user", "on my way").await;
    let content =
        r#"{"role":"assistant","text":"","calls":[{"id":"1","name":"x","arguments":"{}"}]}"#.to_owned();
    let only_calls = NewMessage { role: "assistant".to_owned(), content };
    let result = NewMessage { role: "tool".to_owned(), content: r#"{"text":"from a tool"}"#.to_owned() };
    let odd = NewMessage { role: "user".to_owned(), content: "not JSON".to_owned() };
    world.store.threads().append("ann", &thread, vec![only_calls, result, odd]).await.unwrap();
    world.says("ann", "telegram", "42", "assistant", &"é".repeat(5000)).await;
    world.says("bob", "telegram", "42", "user", "a secret of Bob").await;

    let read =
        async |args: ReadMessages| world.body.read_messages(&caller("ann"), args).await.unwrap().messages;
    let all = read(ReadMessages::default()).await;
    let shown: Vec<(&str, &str, &str)> =
        all.iter().map(|entry| (&*entry.channel, &*entry.conversation, &*entry.role)).collect();
    assert_eq!(shown, [("web", "w1", "user"), ("telegram", "42", "user"), ("telegram", "42", "assistant")]);
    assert_eq!((all[2].text.chars().count(), all[2].is_cut, all[1].is_cut), (4000, true, false));

    let of = |channel: Option<&str>, conversation: Option<&str>, limit| ReadMessages {
        channel: channel.map(str::to_owned),
        conversation: conversation.map(str::to_owned),
        limit,
    };
    assert_eq!(read(of(Some("web"), None, None)).await.len(), 1);
    assert_eq!(read(of(None, Some("42"), Some(1))).await[0].role, "assistant", "the latest");
    assert_eq!(read(of(None, Some(&thread), None)).await.len(), 2);
    assert!(read(of(Some("web"), Some("42"), None)).await.is_empty());
    let bobs = world.says("bob", "web", "b", "user", "x").await;
    assert!(read(of(None, Some(&bobs), None)).await.is_empty());
    let refused = world.body.read_messages(&caller("ann"), of(None, None, Some(0))).await.unwrap_err();
    assert!(refused.to_string().contains("`limit` is `0`"), "{refused}");
}

#[tokio::test]
async fn where_others_read_along_only_what_was_said_there_is_read() {
    let world = World::new().await;
    world.says("ann", "web", "w1", "user", "my salary").await;
    world.says("ann", "telegram", "42", "user", "a secret").await;
    let group = world.says("ann", "telegram", "-100", "user", "hello all").await;
    let read = async |args: ReadMessages| {
        let read =
            world.body.read_messages(&in_shared_conversation("ann", &group), args).await.unwrap().messages;
        read.into_iter().map(|entry| entry.text).collect::<Vec<_>>()
    };
    assert_eq!(read(ReadMessages::default()).await, ["hello all"]);
    for (channel, conversation) in [(Some("web"), None), (None, Some("42")), (Some("telegram"), Some("42"))] {
        let (channel, conversation) = (channel.map(str::to_owned), conversation.map(str::to_owned));
        assert!(read(ReadMessages { channel, conversation, limit: None }).await.is_empty());
    }
    let who = world.body.whoami(&in_shared_conversation("ann", &group), Whoami {}).await.unwrap();
    assert_eq!((who.channels, who.last_heard), (vec!["telegram".to_owned()], None));
}

#[tokio::test]
async fn the_latest_of_many_are_found_behind_what_tools_returned() {
    let world = World::new().await;
    for number in 0..60 {
        world.says("ann", "web", "old", "user", &format!("old {number}")).await;
    }
    let thread = world.says("ann", "web", "new", "user", "first").await;
    let result = || NewMessage { role: "tool".to_owned(), content: r#"{"text":"x"}"#.to_owned() };
    world.store.threads().append("ann", &thread, (0..100).map(|_| result()).collect()).await.unwrap();
    world.says("ann", "web", "new", "assistant", "last").await;
    let read = async |limit| {
        let args = ReadMessages { limit: Some(limit), ..ReadMessages::default() };
        let read = world.body.read_messages(&caller("ann"), args).await.unwrap().messages;
        read.into_iter().map(|entry| entry.text).collect::<Vec<_>>()
    };
    assert_eq!(read(1).await, ["last"]);
    assert_eq!(read(3).await, ["old 59", "first", "last"]);
    let all = read(500).await;
    assert_eq!((all.len(), &*all[0], &*all[59]), (62, "old 0", "old 59"), "at most 100");
}

#[tokio::test]
async fn a_message_waits_as_a_row_of_its_sender() {
    let world = World::new().await;
    let queued = world.body.send_message(&caller("ann"), to("telegram", "-77/5", "hi")).await.unwrap();
    assert_eq!((&*queued.channel, &*queued.state), ("telegram", "waiting"));
    let rows = world.store.outgoing().list("ann", 10).await.unwrap();
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!((&row.id, &*row.channel, &*row.to, &*row.text), (&queued.id, "telegram", "-77/5", "hi"));
    assert_eq!((&*row.kind, &*row.urgency, &*row.agent), ("message", "normal", "assistant"));
    assert!(world.store.outgoing().list("bob", 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_cannot_leave_is_refused_at_once() {
    let world = World::new().await;
    let long = "x".repeat(64 * 1024 + 1);
    for (args, words) in [
        (to("web", "bob", "hi"), "no other person can be reached over channel `web`; configured: `telegram`"),
        (to("teams", "bob", "hi"), "`teams`"),
        (to("telegram", " ", "hi"), "`to`"),
        (to("telegram", "1\n2", "hi"), "`to`"),
        (to("telegram", " 77", "hi"), "`to` is ` 77`"),
        (to("telegram", "+77", "hi"), "`to` is `+77`"),
        (to("telegram", "-077", "hi"), "`to` is `-077`"),
        (to("telegram", "77/05", "hi"), "`to` is `77/05`"),
        (to("telegram", "@bob", "hi"), "`to` is `@bob`; name a chat by its number"),
        (to("telegram", "1", " \n"), "`text` is empty"),
        (to("telegram", "1", &long), "65537 bytes"),
    ] {
        let error = world.body.send_message(&caller("ann"), args).await.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let none = World::reaching(&[]).await;
    let error = none.body.send_message(&caller("ann"), to("telegram", "1", "hi")).await.unwrap_err();
    assert!(error.to_string().contains("no channel to other people is configured"), "{error}");
    assert!(world.store.outgoing().list("ann", 10).await.unwrap().is_empty());
}

async fn notified(world: &World) -> (String, String) {
    let before = world.store.outgoing().list("ann", 100).await.unwrap().len();
    let stored = world.body.notify_user(&caller("ann"), notify_args("tea is ready")).await.unwrap();
    let notices = world.store.notices().list("ann", NoticeFilter::Unread, 1).await.unwrap();
    assert_eq!((&*notices[0].text, &notices[0].id), ("tea is ready", &stored.id));
    assert_eq!(stored.state, "unread");
    let rows = world.store.outgoing().list("ann", 100).await.unwrap();
    if rows.len() == before {
        return (stored.channel, String::new());
    }
    assert_eq!((&*rows[0].kind, &rows[0].channel, rows.len()), ("notice", &stored.channel, before + 1));
    (rows[0].channel.clone(), rows[0].to.clone())
}

#[tokio::test]
async fn the_user_is_notified_in_the_last_private_conversation() {
    let world = World::new().await;
    let place = |channel: &str, to: &str| (channel.to_owned(), to.to_owned());
    let console = || place("web", "");
    let ann = Scope::new("ann", "assistant").unwrap();
    assert_eq!(notified(&world).await, console(), "they are not shown yet");
    world.store.incoming().set_last_seen_channel(&ann, "telegram", "42").await.unwrap();
    assert_eq!(notified(&world).await, place("telegram", "42"));
    world.store.incoming().set_last_seen_channel(&ann, "telegram", "-100").await.unwrap();
    assert_eq!(notified(&world).await, console(), "a group is not the user");
    world.says("ann", "telegram", "42#3", "user", "hello").await;
    world.says("ann", "telegram", "-100#4", "user", "hello all").await;
    world.says("ann", "telegram", "019a8c6e-1f2b-7c3d-8e4f-5a6b7c8d9e0f", "user", "no chat").await;
    assert_eq!(notified(&world).await, place("telegram", "42"), "where they are alone");
    world
        .store
        .incoming()
        .set_last_seen_channel(&ann, "telegram", "019a8c6e-1f2b-7c3d-8e4f-5a6b7c8d9e0f")
        .await
        .unwrap();
    assert_eq!(notified(&world).await, place("telegram", "42"), "that is no chat");
    world.store.incoming().set_last_seen_channel(&ann, "web", "some thread").await.unwrap();
    assert_eq!(notified(&world).await, console());
    world
        .store
        .incoming()
        .set_last_seen_channel(&Scope::new("bob", "assistant").unwrap(), "telegram", "7")
        .await
        .unwrap();
    assert_eq!(notified(&world).await, console(), "where Bob is says nothing of Ann");

    let gone = World::reaching(&[]).await;
    gone.store.incoming().set_last_seen_channel(&ann, "telegram", "42").await.unwrap();
    assert_eq!(notified(&gone).await, console(), "there is no such channel any more");
}

// spec: S-11
#[tokio::test]
async fn a_notice_is_no_line_of_a_conversation() {
    let world = World::new().await;
    let thread = world.says("ann", "web", "w1", "user", "hello").await;
    let ann = Scope::new("ann", "assistant").unwrap();
    world.store.incoming().set_last_seen_channel(&ann, "web", &thread).await.unwrap();
    world.body.notify_user(&caller("ann"), notify_args("tea is ready")).await.unwrap();
    assert_eq!(world.store.threads().list(&ann, 10).await.unwrap().len(), 1);
    assert_eq!(world.store.threads().messages("ann", &thread, 0, 10).await.unwrap().len(), 1);
    assert!(world.store.outgoing().list("ann", 10).await.unwrap().is_empty());
    assert!(world.store.notices().list("bob", NoticeFilter::All, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_notice_has_the_origin_and_the_date_of_its_writer() {
    let world = World::new().await;
    let ann = Scope::new("ann", "assistant").unwrap();
    world.store.incoming().set_last_seen_channel(&ann, "telegram", "42").await.unwrap();
    let new = NewSchedule {
        scope: ann.clone(),
        cron: "@daily".into(),
        timezone: "UTC".into(),
        channel: "scheduled".into(),
        prompt: "Look.".into(),
        misfire: "once".into(),
        next_at: None,
        origin: ScheduleOrigin::Owner,
        origins: Vec::new(),
        quarantined: false,
    };
    let AddScheduleOutcome::Added(schedule) = world.store.schedules().add(new).await.unwrap() else {
        panic!("there is room")
    };
    let run = world.says("ann", "scheduled", &schedule.id, "user", "Look.").await;
    let chat = world.says("ann", "telegram", "42", "user", "hello").await;
    for (channel, thread) in [("scheduled", Some(&run)), ("telegram", Some(&chat)), ("mcp", None)] {
        let writer = Caller { channel: channel.into(), thread: thread.cloned(), ..caller("ann") };
        world.body.notify_user(&writer, notify_args("**tea**")).await.unwrap();
    }
    let mut notices = world.store.notices().list("ann", NoticeFilter::All, 10).await.unwrap();
    notices.reverse();
    let origins: Vec<_> = notices
        .iter()
        .map(|one| (&*one.origin.channel, one.origin.thread.as_ref(), one.origin.schedule.as_ref()))
        .collect();
    assert_eq!(
        origins,
        [("scheduled", Some(&run), Some(&schedule.id)), ("telegram", Some(&chat), None), ("mcp", None, None)]
    );
    // The time of the test's clock in the user's time zone.
    let mut sent = world.store.outgoing().list("ann", 10).await.unwrap();
    sent.reverse();
    let texts: Vec<&str> = sent.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "Notice · 31 Jan 09:00 · scheduled run\n\n**tea**",
            "Notice · 31 Jan 09:00\n\n**tea**",
            "Notice · 31 Jan 09:00\n\n**tea**"
        ]
    );
}

#[tokio::test]
async fn urgency_goes_with_it_and_whoami_knows_the_places() {
    let world = World::new().await;
    let args = NotifyUser { text: "fire".to_owned(), urgency: Some(Urgency::High) };
    world.body.notify_user(&caller("ann"), args).await.unwrap();
    let notices = world.store.notices().list("ann", NoticeFilter::All, 1).await.unwrap();
    assert_eq!(notices[0].urgency, "high");
    let other = NewOutgoing {
        scope: Scope::new("bob", "assistant").unwrap(),
        channel: "web".to_owned(),
        to: "bob".to_owned(),
        text: "x".to_owned(),
        kind: "notice".to_owned(),
        urgency: "low".to_owned(),
        about: None,
    };
    world.store.outgoing().enqueue(other).await.unwrap();
    world.says("ann", "telegram", "42", "user", "hello").await;
    let ann = Scope::new("ann", "assistant").unwrap();
    world.store.incoming().set_last_seen_channel(&ann, "telegram", "42").await.unwrap();
    let who = world.body.whoami(&caller("ann"), Whoami {}).await.unwrap();
    assert_eq!((&*who.user, &*who.agent, &*who.channel), ("ann", "assistant", "web"));
    assert_eq!(
        (who.channels, who.reachable_channels),
        (vec!["telegram".to_owned()], vec!["telegram".to_owned()])
    );
    assert_eq!(who.last_heard.unwrap().channel, "telegram");
    let bob = world.body.whoami(&caller("bob"), Whoami {}).await.unwrap();
    assert!(bob.channels.is_empty() && bob.last_heard.is_none());
}
