//! What the system says about processes: where they run, how much memory they take, what a flush of the disk costs.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::time::Instant;

/// Everything that is started from here stays on one core.
pub(crate) fn pin() {
    let core = rustix::thread::sched_getcpu();
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    if let Err(error) = rustix::thread::sched_setaffinity(None, &set) {
        eprintln!("the processes are not kept on one core: {error}");
    }
}

/// A port that nobody listens on.
pub(crate) fn port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// What is resident of a process and of those that it started, in kilobytes; the servers behind it are left out.
pub(crate) struct Resident {
    pub(crate) own: u64,
    pub(crate) others: u64,
    /// What of both is no page of a file: it cannot be shared, nor read again.
    pub(crate) anonymous: u64,
}

/// What is resident now.
pub(crate) fn resident_kb(process: u32) -> Resident {
    let this = std::env::current_exe().unwrap();
    let parents: HashMap<u32, u32> = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|process: u32| Some((process, status(process, "PPid:")? as u32)))
        .collect();
    let is_under = |mut one: u32| {
        while let Some(parent) = parents.get(&one) {
            if *parent == process {
                return true;
            }
            one = *parent;
        }
        false
    };
    let is_server = |one: u32| fs::read_link(format!("/proc/{one}/exe")).is_ok_and(|program| program == this);
    let sum = |field, of: &[u32]| of.iter().filter_map(|one| status(*one, field)).sum::<u64>();
    let others: Vec<u32> = parents.keys().copied().filter(|one| is_under(*one) && !is_server(*one)).collect();
    let anonymous = sum("RssAnon:", &[process]) + sum("RssAnon:", &others);
    Resident { own: sum("VmRSS:", &[process]), others: sum("VmRSS:", &others), anonymous }
}

fn status(process: u32, field: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(field)?.split_whitespace().next()?.parse().ok())
}

/// What it takes to append a page to a file and to bring it to the disk, in microseconds: the middle one of some.
pub(crate) fn flush_micros(folder: &Path) -> f64 {
    let mut file = File::create(folder.join("flushed")).unwrap();
    let mut micros: Vec<f64> = (0..100)
        .map(|_| {
            let began = Instant::now();
            file.write_all(&[7; 4096]).unwrap();
            file.sync_data().unwrap();
            began.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    micros.sort_by(f64::total_cmp);
    micros[micros.len() / 2]
}
