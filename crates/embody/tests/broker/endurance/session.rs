//! One host that comes, does some work and leaves, well-behaved or not. What it does follows from its number.

use std::io::Result;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::host::{Answer, Host, SOON};
use super::super::setup::broker;
use super::client::{Client, seen};
use super::ledger::{Ledger, SeenOutcome, Writer};
use super::server::Server;

/// Hosts without sessions: these come again and again, under the same names.
pub(super) const REGULARS: usize = 4;
/// The calls of one session, besides a first write.
const STEPS: u64 = 5;

/// How a host comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Transport {
    Session,
    Stateless,
    Stdio,
}

pub(super) fn way(number: usize) -> Transport {
    match number % 20 {
        0 => Transport::Stdio,
        4 | 7 | 11 | 14 | 18 => Transport::Stateless,
        _ => Transport::Session,
    }
}

/// The name of one of those without sessions.
pub(super) fn regular(number: usize) -> String {
    format!("regular {}", number % REGULARS)
}

/// One session. If the broker is killed meanwhile, it is repeated with the next one.
pub(super) fn session(server: &Server, ledger: &Ledger, number: usize, is_patient: bool) {
    if way(number) == Transport::Stdio {
        return on_a_pipe(server, ledger, number);
    }
    for attempt in 0.. {
        let generation = server.address().0;
        let (maker, name) = (Writer::Up(generation), format!("{number}.{attempt}"));
        let visitor = HostSession { server, ledger, maker, number, name };
        let Err(error) = visitor.connect(is_patient) else { return };
        // Only the end of a broker excuses a broken connection.
        let deadline = Instant::now() + SOON;
        while server.address().0 == generation {
            assert!(Instant::now() < deadline, "visit {number}: {error}, and nobody was killed");
            sleep(Duration::from_millis(10));
        }
    }
}

struct HostSession<'a> {
    server: &'a Server,
    ledger: &'a Ledger,
    /// The broker that it found when it came; when there is another it comes again.
    maker: Writer,
    number: usize,
    /// By which its writes are known.
    name: String,
}

impl HostSession<'_> {
    fn connect(&self, is_patient: bool) -> Result<()> {
        let mut client = match way(self.number) {
            Transport::Stateless => Client::alone(self.server, regular(self.number)),
            _ => Client::initialize(self.server)?,
        };
        client.call("runtime_bootstrap", &json!({}))?;
        self.write(&mut client, "first", "good_keep", &json!({}))?;
        for step in 0..STEPS {
            self.step(&mut client, step)?;
        }
        if is_patient {
            // The host waits for as long as the broker does.
            let answer = client.call("deaf_peek", &json!({"trick": "hang"}))?;
            assert_eq!(seen("deaf_peek", &answer), SeenOutcome::Unknown, "{answer}");
            assert!(answer.to_string().contains("did not answer in time"), "{answer}");
        }
        match client.session() {
            Some(session) if self.number % 5 == 2 => self.server.abandon(session.to_owned()),
            Some(session) => {
                let status = self.server.end_session(session)?;
                // A broker that was just started does not know it.
                assert!([204, 404].contains(&status), "{status}");
            }
            None => {}
        }
        Ok(())
    }

    fn step(&self, client: &mut Client<'_>, step: u64) -> Result<()> {
        let dice = dice(self.number as u64 * STEPS + step);
        let (name, amount) = (step.to_string(), dice / 64 % 1000);
        match dice % 16 {
            0..=3 => self.write(client, &name, "good_keep", &json!({})),
            4 => self.read(client, "good_peek", &json!({})),
            5 => self.read(client, "slow_peek", &json!({"trick": "slow", "amount": amount})),
            6 => self.write(client, &name, "slow_keep", &json!({"trick": "slow", "amount": amount})),
            7 => {
                let trick = if amount % 2 == 0 { "crash" } else { "half" };
                self.write(client, &name, "mortal_keep", &json!({ "trick": trick }))
            }
            8 => self.write(client, &name, "mortal_keep", &json!({})),
            9 => self.read(client, "loud_peek", &json!({"trick": "huge", "amount": 1000 * (amount + 2)})),
            10 => {
                let trick = ["flood", "stderr", "progress", "twice"][amount as usize % 4];
                self.write(client, &name, "loud_keep", &json!({"trick": trick, "amount": amount}))
            }
            11 => self.cancel(client, &name, amount),
            12 => self.disconnect(client, &name, amount),
            13 => {
                let answer = self.write_once(client, &name, "late_keep", &json!({}))?;
                assert_eq!(answer, SeenOutcome::Refused);
                Ok(())
            }
            14 => {
                let trick = if amount % 2 == 0 { "fail" } else { "error" };
                self.write(client, &name, "good_keep", &json!({ "trick": trick }))
            }
            _ => self.read_everything(client, amount),
        }
    }

    /// A write, once more if the contract had to be read first.
    fn write(&self, client: &mut Client<'_>, name: &str, tool: &str, manner: &Value) -> Result<()> {
        if self.write_once(client, name, tool, manner)? == SeenOutcome::Refused {
            self.write_once(client, &format!("{name} again"), tool, manner)?;
        }
        Ok(())
    }

    fn write_once(
        &self,
        client: &mut Client<'_>,
        name: &str,
        tool: &str,
        manner: &Value,
    ) -> Result<SeenOutcome> {
        let entry = self.ledger.begin(self.maker, &format!("{} {name}", self.name));
        let mut arguments = manner.clone();
        arguments["text"] = json!(entry.text);
        let answer = client.call(tool, &arguments)?;
        let seen = seen(tool, &answer);
        entry.record_seen(seen);
        Ok(seen)
    }

    fn read(&self, client: &mut Client<'_>, tool: &str, arguments: &Value) -> Result<()> {
        seen(tool, &client.call(tool, arguments)?);
        Ok(())
    }

    /// A write that is never answered, and that the host does not wait for.
    fn cancel(&self, client: &mut Client<'_>, name: &str, patience_ms: u64) -> Result<()> {
        let entry = self.ledger.begin(self.maker, &format!("{} {name}", self.name));
        let asked = client.begin_call("slow_keep", &json!({"text": entry.text, "trick": "hang"}))?;
        sleep(Duration::from_millis(patience_ms));
        client.cancel(asked)
    }

    /// The connection breaks in the middle of a write.
    fn disconnect(&self, client: &mut Client<'_>, name: &str, amount: u64) -> Result<()> {
        let entry = self.ledger.begin(self.maker, &format!("{} {name}", self.name));
        let manner = json!({"text": entry.text, "trick": "slow", "amount": amount / 4});
        let asked = client.begin_call("good_keep", &manner)?;
        sleep(Duration::from_millis(amount / 8));
        drop(asked);
        Ok(())
    }

    /// What is the broker's own, the mind's and the embedded body's.
    fn read_everything(&self, client: &mut Client<'_>, amount: u64) -> Result<()> {
        let answer = match amount % 5 {
            0 => client.call("whoami", &json!({})),
            1 => client.call("list_tasks", &json!({})),
            2 => client.call("runtime_status", &json!({})),
            3 => client.call("reflect_user_message", &json!({"text": format!("I am host {}.", self.number)})),
            _ => client.ask("tools/list", &json!({})),
        }?;
        assert!(answer["result"].is_object() && answer["result"]["isError"] != true, "{answer}");
        Ok(())
    }
}

/// A host that starts a broker of its own on the same store. Every other one kills it in the middle of a write.
fn on_a_pipe(server: &Server, ledger: &Ledger, number: usize) {
    let maker = Writer::Pipe { is_killed: number.is_multiple_of(40) };
    let mut host = Host::start(broker(&server.world));
    host.initialize(&json!({}));
    let bootstrap = host.begin_call("runtime_bootstrap", &json!({}));
    host.answer(bootstrap).result();
    for step in 0..3 {
        let entry = ledger.begin(maker, &format!("{number} {step}"));
        let id = host.begin_call("good_keep", &json!({"text": entry.text}));
        let answer = match host.answer(id) {
            Answer::Result(text) => json!({"result": serde_json::from_str::<Value>(&text).unwrap()}),
            Answer::Error(text) => json!({"error": serde_json::from_str::<Value>(&text).unwrap()}),
        };
        entry.record_seen(seen("good_keep", &answer));
    }
    if maker == (Writer::Pipe { is_killed: true }) {
        let entry = ledger.begin(maker, &format!("{number} last"));
        host.begin_call("good_keep", &json!({"text": entry.text, "trick": "slow", "amount": 50}));
        sleep(Duration::from_millis(dice(number as u64) % 100));
        host.kill();
    } else {
        assert!(host.close().success());
    }
}

/// A deterministic pseudo-random number.
fn dice(of: u64) -> u64 {
    let mixed = (of + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 27)) >> 8
}
