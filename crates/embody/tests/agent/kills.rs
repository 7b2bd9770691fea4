//! `embody up` killed again and again while people write on Telegram: nobody is answered twice, and whoever is not
//! answered is listed.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use embody_store::{DatabaseUrl, Store};
use serde_json::Value;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, SqliteConnection};

use crate::support::app::{end, kill, ready};
use crate::support::model::{Model, WireFormat};
use crate::support::telegram::{Telegram, private};
use crate::support::world::World;

const CHATS: i64 = 25;
/// Turns at the same time, and messages on their way at the same time: no more can be lost by one kill.
const AT_ONCE: usize = 8;
/// How long one that was started may take to get somewhere before it is killed anyway.
const SOMEWHERE: Duration = Duration::from_secs(3);

/// How many messages are written, 500 or what `cargo xtask soak` says.
fn updates() -> i64 {
    std::env::var("EMBODY_TELEGRAM_UPDATES").map_or(500, |text| text.parse().expect("a number of updates"))
}

fn person(number: i64) -> i64 {
    101 + number % CHATS
}

fn words(number: i64) -> String {
    format!("message {number}")
}

// issue 6, must hold 2
#[test]
fn no_message_is_answered_twice_or_lost_without_being_listed() {
    let (all, world, telegram) = (updates(), Telegram::world(), Telegram::start());
    let kills = (all / 50).clamp(1, 100);
    let people: Vec<i64> = (0..CHATS).map(person).collect();
    let model = Model::alone(&world, &serde_json::json!([{"reply": {"text": "Answer to $USER."}}]));
    world.file("embody.toml", model.config(WireFormat::OpenAi) + &telegram.config(&people));
    let mut up = ready(&world);
    for round in 0..=kills {
        let share = round * all / (kills + 1)..(round + 1) * all / (kills + 1);
        let written: Vec<Value> =
            share.map(|number| private(person(number), number + 1, &words(number))).collect();
        telegram.updates(&written);
        if round == kills {
            break;
        }
        // Now at its first step, now in the middle of everything.
        let (before, begun) = (done(&telegram), Instant::now());
        while done(&telegram) < before + 8 * (round % 5) && begun.elapsed() < SOMEWHERE {
            std::thread::sleep(Duration::from_millis(5));
        }
        kill(up);
        // After the last one it is as it is: what the dead one held is waited for.
        if round + 1 < kills {
            later(&world);
        }
        up = ready(&world);
    }
    let lost = until_quiet(&world, &telegram);
    end(&mut up);
    check(&telegram, &model, &lost, (all, kills));
    listed(&world, &people, &lost);
}

fn done(telegram: &Telegram) -> i64 {
    telegram.state()["sent"].as_i64().unwrap()
}

/// Makes it half a minute later: whatever the dead one held, it holds no more.
fn later(world: &World) {
    directly(async {
        let mut database = database(world).await;
        for sql in [
            "UPDATE posts SET lease_until = lease_until - 30000000",
            "UPDATE incoming SET lease_until = lease_until - 30000000",
            "UPDATE outgoing SET lease_until = lease_until - 30000000",
        ] {
            sqlx::query(sql).execute(&mut database).await.unwrap();
        }
        database.close().await.unwrap();
    });
}

fn directly<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// What got lost: the messages that were worked on, and those whose answer was on its way.
struct LostMessage {
    turns: Vec<String>,
    answers: Vec<String>,
    /// Notices and answers alike.
    sent: usize,
}

/// Waits until everything has an outcome, and returns those that are unknown.
fn until_quiet(world: &World, telegram: &Telegram) -> LostMessage {
    directly(async {
        let mut database = database(world).await;
        let mut progress = (i64::MAX, Instant::now());
        loop {
            let open = open(&mut database).await;
            if open == 0 && telegram.state()["waiting"] == 0 {
                break;
            }
            if open != progress.0 {
                progress = (open, Instant::now());
            }
            assert!(progress.1.elapsed() < Duration::from_secs(60), "{open} messages have no end");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        database.close().await.unwrap();
        let store = Store::open(DatabaseUrl::File(world.path("embody.db"))).await.unwrap();
        let turns = store.incoming().list_unknown(1000).await.unwrap();
        let messages = store.outgoing().list_unknown(1000).await.unwrap();
        store.close().await;
        LostMessage {
            turns: turns.into_iter().map(|one| one.external).collect(),
            sent: messages.len(),
            answers: messages
                .into_iter()
                .filter(|one| one.kind == "reply")
                .filter_map(|one| one.about)
                .collect(),
        }
    })
}

/// How many have no end yet, on their way in or out.
async fn open(database: &mut SqliteConnection) -> i64 {
    let sql = "SELECT (SELECT count(*) FROM incoming WHERE finished_at IS NULL) + \
               (SELECT count(*) FROM outgoing WHERE finished_at IS NULL)";
    sqlx::query_scalar(sql).fetch_one(database).await.unwrap()
}

/// The database itself, behind the store's back.
async fn database(world: &World) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(world.path("embody.db"));
    SqliteConnection::connect_with(&options).await.unwrap()
}

fn check(telegram: &Telegram, model: &Model, lost: &LostMessage, (all, kills): (i64, i64)) {
    let mut seen: BTreeMap<i64, usize> = BTreeMap::new();
    for (chat, text) in telegram.sent() {
        if text.starts_with("Answer to ") {
            let number = last_number(&text);
            assert_eq!(chat, person(number), "`{text}` went to another chat");
            *seen.entry(number).or_default() += 1;
        }
    }
    let mut turns: BTreeMap<i64, usize> = BTreeMap::new();
    for requests in model.requests() {
        let last = requests.0["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
        *turns.entry(last_number(&last)).or_default() += 1;
    }
    for number in 0..all {
        let (chat, said) = (person(number), words(number));
        let answers = seen.get(&number).copied().unwrap_or(0);
        let name = format!("42:{chat}:{}", number + 1);
        assert!(answers <= 1, "`{said}` was answered {answers} times");
        assert!(turns.get(&number).is_none_or(|count| *count == 1), "`{said}` was worked on twice");
        let is_listed = lost.turns.contains(&name) || lost.answers.contains(&name);
        assert!(answers == 1 || is_listed, "`{said}` was not answered, and is not listed");
        assert!(answers == 0 || !lost.turns.contains(&name), "`{said}` was answered by a turn that is lost");
    }
    let most = AT_ONCE * usize::try_from(kills).unwrap();
    assert!(
        lost.turns.len() <= most && lost.sent <= most,
        "{} and {} of {most}",
        lost.turns.len(),
        lost.sent
    );
    println!("{kills} kills: {} turns and {} messages were under way", lost.turns.len(), lost.sent);
}

/// The last message. Unanswered messages of an interrupted turn precede it.
fn last_number(text: &str) -> i64 {
    let (_, number) = text.rsplit_once("message ").unwrap();
    number.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
}

/// What is lost is what the operator is shown.
fn listed(world: &World, people: &[i64], lost: &LostMessage) {
    let of = |person: &i64| {
        let status = world.run(&["--json", "status", "--user", &format!("telegram:{person}")]).ok().json();
        status["lost"].as_array().unwrap().len()
    };
    let shown: usize = people.iter().map(of).sum();
    assert_eq!(shown, lost.turns.len() + lost.sent);
}
