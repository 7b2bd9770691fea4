//! What must hold of the states that hosts bring back, whatever they are: a state is good as it was written, for whom it was
//! written, for the call that it was written for, under the same policy and in time; and nothing else is.
//!
//! The bytes are fields, separated by NUL. The first one holds a choice per byte: who was given the state, who brings it,
//! before which broker, how much later, and how it is changed. Then the ticket, the parameters of the call that it was
//! given for, and those of the call that brings it (empty: the same). What follows is the change: edits of three bytes
//! each, or a whole state.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use embody_broker::{Broker, BrokerConfig};
use embody_store::Principal;
use embody_wire::server::{
    AuthError, Call, CancellationToken, Credentials, Host, MultiRoundService, Service, lines,
};
use embody_wire::{Limits, Outcome, Request};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::AsyncWriteExt;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::stage::{Server, setup};

/// How long a state is good, in microseconds.
const LIFE: i64 = 900 * 1_000_000;
const START: i64 = 1_800_000_000_000_000;
const LATER: [i64; 8] = [0, 1, LIFE / 2, LIFE, LIFE + 1, 2 * LIFE, -1, i64::MAX / 2];
const METHODS: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];
const LONGEST_TICKET: usize = 64;

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// Panics when something does not hold.
pub(crate) fn check(data: &[u8]) {
    let case = Case::read(data);
    WORLD.with_borrow_mut(|world| world.get_or_insert_with(World::new).check(&case));
}

struct Case {
    giver: usize,
    bringer: usize,
    given_before: usize,
    brought_before: usize,
    later: i64,
    given_for: Request,
    brought_for: Request,
    ticket: String,
    change: Change,
}

enum Change {
    Edits(Vec<[u8; 3]>),
    Whole(String),
}

impl Case {
    fn read(data: &[u8]) -> Self {
        let mut fields = data.splitn(5, |byte| *byte == 0);
        let choices = fields.next().unwrap_or_default();
        let choice = |at: usize, count: usize| {
            choices.get(at).map_or(0, |byte| usize::from(byte.wrapping_sub(b'0')) % count)
        };
        let mut text = || String::from_utf8_lossy(fields.next().unwrap_or_default()).into_owned();
        let ticket: String =
            text().chars().filter(char::is_ascii_alphanumeric).take(LONGEST_TICKET).collect();
        let (given, brought) = (text(), text());
        let request = |method: usize, params: &str| Request {
            id: 1.into(),
            method: METHODS[method].to_owned(),
            params: RawValue::from_string(params.to_owned()).ok(),
        };
        let change = fields.next().unwrap_or_default();
        Self {
            giver: choice(0, HOSTS.len()),
            bringer: choice(1, HOSTS.len()),
            given_before: choice(2, 2),
            brought_before: choice(3, 2),
            later: LATER[choice(4, LATER.len())],
            given_for: request(choice(6, 3), &given),
            brought_for: request(choice(7, 3), if brought.is_empty() { &given } else { &brought }),
            ticket,
            change: match choice(5, 2) {
                0 => Change::Edits(change.as_chunks().0.to_vec()),
                _ => Change::Whole(String::from_utf8_lossy(change).into_owned()),
            },
        }
    }
}

/// User, agent, channel, room: no two alike, and none the other with its parts divided elsewhere.
const HOSTS: [(&str, &str, &str, Option<&str>); 7] = [
    ("ann", "one", "mcp", None),
    ("bob", "one", "mcp", None),
    ("ann", "two", "mcp", None),
    ("ann", "one", "web", None),
    ("ann", "one", "mcp", Some("kitchen")),
    ("ann", "one", "mcp", Some("")),
    ("anno", "ne", "mcp", None),
];

struct World {
    runtime: Runtime,
    /// The same store and another policy.
    brokers: [Arc<Broker>; 2],
    hosts: Vec<Arc<Host<Principal>>>,
    now: Arc<AtomicI64>,
}

impl World {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let now = Arc::new(AtomicI64::new(START));
        let (brokers, hosts) = runtime.block_on(async {
            let first = BrokerConfig { clock: clock(&now), ..setup(&Server::silent("mind"), &[]).await };
            let second = BrokerConfig {
                clock: clock(&now),
                store: first.store.clone(),
                ..setup(&Server::silent("mind"), &[]).await
            };
            second.settings.edit(|settings| settings.policy_version = "2".to_owned());
            let mut hosts = Vec::new();
            for (user, agent, channel, room) in HOSTS {
                let plain = Principal::new(user, agent, channel).unwrap();
                hosts.push(
                    met(if let Some(room) = room { plain.in_shared_conversation(room) } else { plain }).await,
                );
            }
            ([first, second].map(|setup| Arc::new(Broker::start(setup))), hosts)
        });
        Self { runtime, brokers, hosts, now }
    }

    fn check(&self, case: &Case) {
        self.now.store(START, Ordering::SeqCst);
        let giver = &self.hosts[case.giver];
        let sealed = self.brokers[case.given_before].sign_state(giver, &case.given_for, &case.ticket);
        let sealed = self.runtime.block_on(sealed);
        let other = self.runtime.block_on(self.brokers[0].sign_state(
            &self.hosts[0],
            &Request { id: 1.into(), method: "tools/call".to_owned(), params: None },
            "other",
        ));
        let other = other.unwrap_or_else(|refused| panic!("a plain call is sealed: {refused:?}"));
        let given = match &sealed {
            Ok(state) => state.as_str(),
            // A call that can be read in two ways gets no state.
            Err(refused) => {
                check_refusal(refused);
                &other
            }
        };
        let brought = match &case.change {
            Change::Edits(edits) => edited(given, &other, edits),
            Change::Whole(state) => state.clone(),
        };
        self.now.store(START.saturating_add(case.later), Ordering::SeqCst);
        let bringer = &self.hosts[case.bringer];
        let opened = self.brokers[case.brought_before].verify_state(bringer, &case.brought_for, &brought);
        let opened = self.runtime.block_on(opened);
        let is_in_time = case.later <= LIFE;
        let is_theirs = case.bringer == case.giver && case.brought_before == case.given_before;
        let is_whole = sealed.as_ref().is_ok_and(|state| *state == brought);
        match &opened {
            Ok(ticket) if is_whole => {
                assert!(is_in_time, "{brought:?} is too old");
                assert!(is_theirs, "{brought:?} was given to somebody else");
                assert!(
                    is_same(&case.given_for, &case.brought_for),
                    "{brought:?} was given for another call"
                );
                assert_eq!(*ticket, case.ticket, "the ticket comes back");
            }
            Ok(ticket) => {
                let plain = Request { id: 1.into(), method: "tools/call".to_owned(), params: None };
                assert_eq!(brought, other, "{brought:?} was never given, {given:?} was");
                assert!(is_in_time && case.bringer == 0 && case.brought_before == 0, "{brought:?}");
                assert!(is_same(&plain, &case.brought_for) && ticket == "other", "{brought:?}");
            }
            Err(refused) => {
                check_refusal(refused);
                let is_repeated = case.given_for.method == case.brought_for.method
                    && text(&case.given_for) == text(&case.brought_for);
                let is_good = is_whole && is_theirs && is_in_time && is_repeated;
                assert!(!is_good, "{brought:?} is good, and refused: {refused:?}");
            }
        }
    }
}

fn clock(now: &Arc<AtomicI64>) -> Box<dyn Fn() -> i64 + Send + Sync> {
    let now = Arc::clone(now);
    Box::new(move || now.load(Ordering::SeqCst))
}

/// What is refused is refused in words, for what the host has sent: the store is there.
fn check_refusal(refused: &Outcome) {
    let Outcome::Error(error) = refused else { panic!("a refusal is an error: {refused:?}") };
    let error: Value = serde_json::from_str(error.get()).unwrap();
    assert_eq!(error["code"], -32602, "{error}");
    assert!(error["message"].as_str().is_some_and(|message| message.contains("requestState")), "{error}");
}

fn text(request: &Request) -> Option<&str> {
    request.params.as_deref().map(RawValue::get)
}

/// Whether two requests ask for the same, as any reader of JSON would say.
fn is_same(one: &Request, other: &Request) -> bool {
    let what = |request: &Request| {
        let params: Value = serde_json::from_str(text(request).unwrap_or("{}")).unwrap_or_default();
        let word = |name: &str| params.get(name).cloned().unwrap_or_else(|| "".into());
        let arguments = params.get("arguments").filter(|given| !given.is_null());
        let arguments = arguments.cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        (word("name"), word("uri"), arguments)
    };
    one.method == other.method && what(one) == what(other)
}

/// A state after some edits: what to do, where, and with what.
fn edited(state: &str, other: &str, edits: &[[u8; 3]]) -> String {
    let mut bytes = state.as_bytes().to_vec();
    for [what, place, with] in edits {
        let at = usize::from(*place) % bytes.len().max(1);
        match what.wrapping_sub(b'0') % 8 {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << (with % 8),
            1 => bytes.truncate(at),
            2 => bytes.insert(at.min(bytes.len()), *with),
            3 if !bytes.is_empty() => drop(bytes.remove(at)),
            4 => bytes.make_ascii_uppercase(),
            5 => exchange_part(&mut bytes, other, *place, *with),
            6 => bytes.extend_from_slice(other.as_bytes()),
            _ => bytes.push(*with),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Puts a part of the other state, or of the same one, in the place of a part.
fn exchange_part(bytes: &mut Vec<u8>, other: &str, place: u8, with: u8) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut parts: Vec<&str> = text.split('.').collect();
    let theirs: Vec<&str> = other.split('.').collect();
    let (count, from) = (parts.len(), usize::from(with));
    let taken = if with < 128 { theirs[from % theirs.len()] } else { parts[from % count] };
    parts[usize::from(place) % count] = taken;
    *bytes = parts.join(".").into_bytes();
}

/// A host as the broker meets it, through a face of its own.
async fn met(principal: Principal) -> Arc<Host<Principal>> {
    struct Door(mpsc::UnboundedSender<Arc<Host<Principal>>>);
    impl Service for Door {
        type Principal = Principal;

        async fn authenticate(&self, _: Credentials) -> Result<Principal, AuthError> {
            Err(AuthError::Unknown("nobody comes over HTTP".to_owned()))
        }

        async fn call(&self, call: Call<Principal>) -> Outcome {
            self.0.send(Arc::clone(&call.host)).unwrap();
            Outcome::Result(RawValue::NULL.to_owned())
        }
    }
    let (mut ours, theirs) = tokio::io::duplex(1 << 12);
    let (sender, mut hosts) = mpsc::unbounded_channel();
    ours.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}\n").await.unwrap();
    let ending = CancellationToken::new();
    let streams = tokio::io::split(theirs);
    // It is not waited for: it lasts as long as anybody holds its host.
    tokio::spawn(lines::serve(Arc::new(Door(sender)), principal, streams, Limits::default(), ending));
    hosts.recv().await.unwrap()
}
