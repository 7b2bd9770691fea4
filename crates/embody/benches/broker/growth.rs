//! How `embody` grows: with sessions, with servers behind it, with tools.

use std::path::Path;
use std::time::Instant;

use crate::host::{Address, HttpSession, Started};
use crate::process::Resident;
use crate::server::READ;
use crate::subject::Workspace;
use crate::{median, process};

const SESSIONS: [usize; 4] = [1, 10, 100, 1000];
const SERVERS: [usize; 3] = [1, 10, 50];
const TOOLS: [usize; 4] = [10, 100, 1000, 5000];
const CALLS: usize = 1000;
const LISTS: usize = 20;
/// Fewer than one user may have open at once.
const SESSIONS_OF_A_USER: usize = 60;

/// Measures, and prints a line for each size.
pub(crate) fn measure(fresh: &dyn Fn() -> tempfile::TempDir) {
    sessions(fresh().path());
    for servers in SERVERS {
        let folder = fresh();
        let workspace = Workspace::new(folder.path(), &vec![vec!["--echo".to_owned()]; servers]);
        of("servers", servers, Started::new(&mut workspace.over_stdio(), None));
    }
    for tools in TOOLS {
        let folder = fresh();
        let body = vec!["--echo".to_owned(), "--tools".to_owned(), tools.to_string()];
        let workspace = Workspace::new(folder.path(), &[body]);
        of("tools", tools, Started::new(&mut workspace.over_stdio(), None));
    }
}

/// One after another of many sessions calls; all of them stay open.
fn sessions(folder: &Path) {
    let workspace = Workspace::new(folder, &[vec!["--echo".to_owned()]]);
    let tokens: Vec<String> = (0..=SESSIONS[SESSIONS.len() - 1] / SESSIONS_OF_A_USER)
        .map(|user| workspace.token(&format!("user{user}")))
        .collect();
    let port = process::port();
    let address = |session: usize| {
        let token = Some(tokens[session / SESSIONS_OF_A_USER].clone());
        Address { port, path: "/mcp", token }
    };
    let mut started = Started::new(&mut workspace.over_http(port), Some(address(0)));
    let mut sessions: Vec<HttpSession> = Vec::new();
    let arguments = serde_json::json!({"text": "one of many"});
    for count in SESSIONS {
        let (before, began) = (sessions.len(), Instant::now());
        while sessions.len() < count {
            let mut session = started.host.open_session(address(sessions.len() + 1));
            started.host.call_in(&mut session, READ, &arguments);
            sessions.push(session);
        }
        let open = began.elapsed().as_secs_f64() * 1e3 / (count - before) as f64;
        let micros: Vec<f64> = (0..CALLS)
            .map(|call| {
                let began = Instant::now();
                started.host.call_in(&mut sessions[call % count], READ, &arguments);
                began.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        let Resident { own, others, anonymous } = process::resident_kb(started.process.id());
        println!("grow\tsessions\t{count}\t{:.1}\t{open:.2}\t{own}\t{others}\t{anonymous}", median(micros));
    }
    started.end();
}

fn of(what: &str, count: usize, mut started: Started) {
    let host = &mut started.host;
    let name = host.name(READ);
    host.times(&name, CALLS / 2, |_| "warm".to_owned());
    let (micros, _) = host.times(&name, CALLS, |number| format!("call {number}"));
    let lists = (0..LISTS)
        .map(|_| {
            let began = Instant::now();
            host.list();
            began.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    let Resident { own, others, anonymous } = process::resident_kb(started.process.id());
    println!(
        "grow\t{what}\t{count}\t{:.1}\t{:.2}\t{own}\t{others}\t{anonymous}",
        median(micros),
        median(lists)
    );
    started.end();
}
