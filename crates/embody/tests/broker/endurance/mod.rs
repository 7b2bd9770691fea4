//! A long day of the broker: hosts of every kind come and go, bodies are slow, loud, mortal and dead, processes are killed.
//! Nothing that was started may be left, memory and open files stay what they were, and every write is accounted for.
//!
//! - `server`: the workspace, its bodies and the one `embody up`
//! - `client`: a host over HTTP
//! - `session`: the calls of one host
//! - `ledger`: every write, as its host, the bodies and the audit have it
//! - `census`: processes, and what one holds
//!
//! First the broker itself is killed, again and again. Then one broker serves all the others: in it growth would be seen.

mod client;
mod ledger;
mod resources;
mod server;
mod session;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use serde_json::json;

use self::client::Client;
use self::ledger::{Ledger, SeenOutcome};
use self::resources::{Process, Resources, Usage};
use self::server::Server;
use self::session::{REGULARS, Transport, regular, session, way};
use super::host::{Reply, SOON};
use super::setup::host;

/// Hosts that are there at the same time.
const AT_ONCE: usize = 8;
/// Quiet moments of the broker that is not killed: no host is connected, and its resources are measured.
const QUIET_MOMENTS: usize = 6;
/// The one that the later ones are compared with: what is made once and kept has been made by then.
const SETTLED: usize = 3;
/// One of this many sessions kills the broker, in the first part; one of this many kills a body.
const VISITS_PER_KILL: usize = 12;
const VISITS_PER_BODY_KILL: usize = 4;
/// Connections to the store and threads come and go with the work. If each session left one behind, there would be more than
/// eighty.
const HANDLES_MORE: usize = 16;
const THREADS_MORE: usize = 8;
/// Pieces of memory that are free but not given back come and go too, up to three MiB of them. Between the moments that are
/// compared there are up to seventy-five visits, and in an hour five hundred: a leak of 100 KiB a visit is seen, and by the same
/// count one of 15 KiB in the long form.
const MEMORY_MORE_KIB: usize = 5 * 1024;
/// How long an idle session may be kept, and how long its expiry may take.
const FORGOTTEN: Duration = Duration::from_secs(300 + 60);

/// How long it takes and how many come: five minutes in `./test`, an hour in `cargo xtask soak`.
struct Form {
    visits: usize,
    /// They are spread over this time; a slow machine may take longer.
    span: Duration,
    /// Long enough that sessions are forgotten, and that calls come to the end of their time.
    is_long: bool,
}

impl Form {
    fn read() -> Self {
        let number = |name: &str, otherwise: u64| {
            std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
        };
        let seconds = number("EMBODY_ENDURANCE_S", 240);
        let visits = usize::try_from(number("EMBODY_ENDURANCE_SESSIONS", 200)).unwrap();
        let is_long = seconds >= 600;
        // What the quiet moments and the end take.
        let rest = if is_long { 480 } else { 60 };
        Self { visits, span: Duration::from_secs(seconds.saturating_sub(rest)), is_long }
    }
}

/// What is measured in a quiet moment.
#[derive(Debug, Clone, Copy)]
struct Moment {
    processes: usize,
    zombies: usize,
    held: Usage,
}

struct Schedule {
    form: Form,
    server: Server,
    ledger: Ledger,
    resources: Resources,
    began: Instant,
}

// spec: N-13, N-14, N-15
#[test]
fn hosts_connect_and_disconnect_and_nothing_is_left_or_lost() {
    let form = Form::read();
    let server = Server::open();
    let resources = Resources::new(server.world.workspace().parent().unwrap());
    let mut day = Schedule { form, server, ledger: Ledger::default(), resources, began: Instant::now() };
    day.learn_tools();
    let storm = day.form.visits / 4;
    day.receive(0..storm, storm / VISITS_PER_KILL);
    let moments = day.one_broker(storm..day.form.visits);
    flat(&moments);
    day.send_observations();
    let lost = day.ledger.check(&day.server);
    day.end(lost);
}

impl Schedule {
    /// One host sees every body, also the one that will not be there again.
    fn learn_tools(&mut self) {
        let mut client = Client::initialize(&self.server).unwrap();
        let names = ["good", "slow", "mortal", "loud", "late", "deaf"].map(|name| format!("\"{name}_keep\""));
        let deadline = Instant::now() + SOON;
        loop {
            let listed = client.ask("tools/list", &json!({})).unwrap().to_string();
            if names.iter().all(|name| listed.contains(name)) {
                break;
            }
            assert!(Instant::now() < deadline, "{listed}");
            sleep(Duration::from_millis(50));
        }
        assert_eq!(self.server.end_session(client.session().unwrap()).unwrap(), 204);
        self.server.end_slowly();
    }

    /// Receives hosts, and kills the broker so many times meanwhile.
    fn receive(&mut self, visits: Range<usize>, kills: usize) {
        let Self { form, server, ledger, resources, .. } = self;
        let (form, server, ledger) = (&*form, &*server, &*ledger);
        let pace = form.span / u32::try_from(form.visits).unwrap();
        let (next, start) = (&AtomicUsize::new(visits.start), Instant::now());
        let work = |end: usize| loop {
            let number = next.fetch_add(1, Ordering::AcqRel);
            if number >= end {
                return;
            }
            let due = start + pace * u32::try_from(number - visits.start).unwrap();
            sleep(due.saturating_duration_since(Instant::now()));
            session(server, ledger, number, form.is_long && number % 400 == 261);
        };
        thread::scope(|scope| {
            let hosts: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(|| work(visits.end))).collect();
            let (mut killed, mut bodies_killed, mut looked_at) = (0, 0, start);
            while hosts.iter().any(|host| !host.is_finished()) {
                let connect = next.load(Ordering::Acquire).min(visits.end) - visits.start;
                // During a write, and while sessions have just begun.
                if killed < kills
                    && connect > (killed + 1) * visits.len() / (kills + 1)
                    && ledger.under_way() > 0
                {
                    server.kill();
                    killed += 1;
                }
                if connect / VISITS_PER_BODY_KILL > bodies_killed {
                    bodies_killed += 1;
                    server.kill_a_body(bodies_killed);
                }
                if looked_at.elapsed() > Duration::from_secs(1) {
                    resources.inspect();
                    looked_at = Instant::now();
                }
                sleep(Duration::from_millis(5));
            }
            assert_eq!(killed, kills, "the visits were over before the broker was killed often enough");
        });
        assert_eq!(ledger.under_way(), 0);
    }

    /// One broker for the rest of the day, with its quiet moments.
    fn one_broker(&mut self, visits: Range<usize>) -> Vec<Moment> {
        self.server.kill();
        let mut client = Client::initialize(&self.server).unwrap();
        client.call("good_peek", &json!({})).unwrap();
        assert_eq!(self.server.end_session(client.session().unwrap()).unwrap(), 204);
        let empty = self.quiet(0, SOON, None);
        self.print_state("empty", &empty);
        let mut moments: Vec<Moment> = Vec::new();
        let mut begin = visits.start;
        for number in 1..=QUIET_MOMENTS {
            let end = visits.start + visits.len() * number / QUIET_MOMENTS;
            self.receive(begin..end, 0);
            begin = end;
            self.server.end_abandoned();
            self.open_regular_sessions();
            let moment = self.quiet(REGULARS, SOON, moments.first().copied());
            self.print_state(&format!("after {end} visits"), &moment);
            moments.push(moment);
        }
        if self.form.is_long {
            // Those that vanish now and those without sessions are forgotten by the broker itself.
            for _ in 0..AT_ONCE {
                Client::initialize(&self.server).unwrap().call("good_peek", &json!({})).unwrap();
            }
            let forgotten = self.quiet(0, FORGOTTEN, Some(empty));
            self.print_state("forgotten", &forgotten);
        }
        moments
    }

    /// Waits until nobody is there but so many hosts without sessions, and nothing is left of the others. What is there
    /// then may be as much as at an earlier moment.
    fn quiet(&mut self, regulars: usize, model_timeouts: Duration, before: Option<Moment>) -> Moment {
        let deadline = Instant::now() + model_timeouts;
        loop {
            let numbers = self.server.numbers();
            let is_quiet = numbers.sessions("session") == 0
                && numbers.sessions("stateless") == regulars
                // Without a session no observation is delivered.
                && (regulars == 0 || numbers.get("embody_observations_waiting") == 0)
                && ["good", "mortal"].iter().all(|body| numbers.connected(body) == regulars)
                && ["slow", "loud", "late", "deaf"].iter().all(|body| numbers.connected(body) == 0);
            if is_quiet {
                let moment = self.inspect();
                if before.is_none_or(|before| moment.is_within(&before)) {
                    return moment;
                }
                let mut names = || self.resources.names().join("\n");
                assert!(Instant::now() < deadline, "{moment:?} is more than {before:?}:\n{}", names());
            }
            assert!(Instant::now() < deadline, "it does not become quiet:\n{}", numbers.about("embody_"));
            sleep(Duration::from_millis(100));
        }
    }

    /// All hosts without sessions are there, whether it was long ago that they came last or not.
    fn open_regular_sessions(&self) {
        for number in 0..REGULARS {
            Client::alone(&self.server, regular(number)).call("good_peek", &json!({})).unwrap();
        }
    }

    /// Observations of killed processes are delivered by running ones: one session for each user.
    fn send_observations(&self) {
        self.open_regular_sessions();
        let owner = host(&self.server.world, &json!({}), |_, _| Reply::Error(-32601, "no such method"));
        let deadline = Instant::now() + SOON;
        while self.server.numbers().get("embody_outbox_observations") > 0 {
            assert!(Instant::now() < deadline, "{}", self.server.numbers().about("embody_outbox"));
            sleep(Duration::from_millis(100));
        }
        assert!(owner.close().success());
    }

    /// The least of each in two seconds: a body that cannot be started is tried again and again.
    fn inspect(&mut self) -> Moment {
        let id = self.server.process();
        let looks = (0..20).map(|_| {
            sleep(Duration::from_millis(100));
            let ours = self.resources.inspect();
            let processes = ours.iter().filter(|process| !process.is_zombie).count();
            // What a body does not collect is its own affair, and what a killed broker had is collected by others.
            let is_ours = |process: &&Process| process.is_zombie && process.parent == id;
            let zombies = ours.iter().filter(is_ours).count();
            Moment { processes, zombies, held: Usage::by(id) }
        });
        let least = looks.reduce(|one, other| Moment {
            processes: one.processes.min(other.processes),
            zombies: one.zombies.min(other.zombies),
            held: one.held.least(&other.held),
        });
        least.unwrap()
    }

    fn print_state(&self, when: &str, moment: &Moment) {
        let Moment { processes, zombies, held } = moment;
        println!(
            "{:>5} s  {when}: {processes} processes, {zombies} zombies, {held:?}",
            self.began.elapsed().as_secs()
        );
    }

    /// Ends everything and checks the exit codes.
    fn end(mut self, lost: usize) {
        assert!(self.server.close(), "it does not end well");
        let deadline = Instant::now() + SOON;
        while self.resources.inspect().iter().any(|process| !process.is_zombie) {
            assert!(Instant::now() < deadline, "processes are left:\n{}", self.resources.names().join("\n"));
            sleep(Duration::from_millis(50));
        }
        self.server.world.run(&["audit", "verify"]).ok();
        let counts = self.ledger.counts();
        let (visits, kills) = (self.form.visits, self.server.address().0);
        let bodies_killed = self.server.bodies_killed.load(Ordering::Relaxed);
        println!(
            "{visits} visits, {kills} brokers and {bodies_killed} bodies killed, {} processes seen, writes {counts:?}, {lost} outcomes \
             lost with their broker, {} s",
            self.resources.ever(),
            self.began.elapsed().as_secs()
        );
        // It was a day with everything in it.
        for seen in [
            SeenOutcome::Done,
            SeenOutcome::Failed,
            SeenOutcome::Refused,
            SeenOutcome::Unknown,
            SeenOutcome::Nothing,
        ] {
            assert!(counts.contains_key(&seen), "no write was {seen:?}: {counts:?}");
        }
        assert!(counts[&SeenOutcome::Done] >= visits, "{counts:?}");
        assert!(bodies_killed > 0 && kills > 0);
        // The next write of a host commits what became of the last.
        let killed = kills + visits.div_ceil(40);
        assert!(lost <= killed * AT_ONCE, "{lost} outcomes were lost with {killed} brokers");
        for kind in [Transport::Session, Transport::Stateless, Transport::Stdio] {
            assert!((0..visits).any(|number| way(number) == kind), "{kind:?}");
        }
    }
}

impl Moment {
    /// Whether it did not grow, within the tolerance.
    fn is_within(&self, before: &Self) -> bool {
        self.processes <= before.processes
            && self.zombies == 0
            && self.held.handles <= before.held.handles + HANDLES_MORE
            && self.held.threads <= before.held.threads + THREADS_MORE
    }
}

/// Memory does not grow with the sessions: in the second half it stays at the level of the first.
fn flat(moments: &[Moment]) {
    let memory: Vec<usize> = moments.iter().map(|moment| moment.held.anonymous_kib).collect();
    let most = memory[SETTLED - 1] + MEMORY_MORE_KIB;
    let later = &memory[QUIET_MOMENTS / 2..];
    assert!(later.iter().all(|now| *now <= most), "it grows beyond {most} KiB: {memory:?}");
}
