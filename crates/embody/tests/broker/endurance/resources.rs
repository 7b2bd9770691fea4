//! What belongs to the test, as the kernel knows it: every process with the world's folder in its command line or
//! environment, and everything that one of those has started. Who was seen once stays known: a process that outlives its
//! parent and hides where it came from is found all the same.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// All processes that were ever seen.
pub(super) struct Resources {
    /// What marks them.
    root: String,
    known: HashSet<Key>,
}

/// A number may be given to another process later; with the time of its start it is one.
type Key = (u32, u64);

/// A process of ours.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) id: u32,
    pub(super) parent: u32,
    started: u64,
    /// It has ended, and its parent has not collected it.
    pub(super) is_zombie: bool,
}

impl Resources {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.display().to_string(), known: HashSet::new() }
    }

    /// Those that are there now.
    pub(super) fn inspect(&mut self) -> Vec<Process> {
        let mut others: Vec<Process> = processes().collect();
        let mut ours: Vec<Process> = Vec::new();
        let mut parents: HashSet<u32> = HashSet::new();
        // Until no process is left whose parent is one of ours.
        loop {
            let is_ours = |process: &mut Process| {
                parents.contains(&process.parent)
                    || self.known.contains(&(process.id, process.started))
                    || is_marked(process.id, &self.root)
            };
            let found: Vec<Process> = others.extract_if(.., is_ours).collect();
            if found.is_empty() {
                return ours;
            }
            parents.extend(found.iter().map(|process| process.id));
            self.known.extend(found.iter().map(|process| (process.id, process.started)));
            ours.extend(found);
        }
    }

    /// How many were ever there.
    pub(super) fn ever(&self) -> usize {
        self.known.len()
    }

    /// The current processes.
    pub(super) fn names(&mut self) -> Vec<String> {
        let words = |process: &Process| {
            let words = fs::read(format!("/proc/{}/cmdline", process.id)).unwrap_or_default();
            format!("{process:?} {}", String::from_utf8_lossy(&words).replace('\0', " "))
        };
        self.inspect().iter().map(words).collect()
    }
}

fn processes() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name stands in brackets and may hold anything.
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let (parent, started) = (fields.get(1)?.parse().ok()?, fields.get(19)?.parse().ok()?);
        Some(Process { id, parent, started, is_zombie: matches!(*fields.first()?, "Z" | "X") })
    })
}

fn is_marked(id: u32, root: &str) -> bool {
    ["cmdline", "environ"].iter().any(|name| {
        let text = fs::read(format!("/proc/{id}/{name}")).unwrap_or_default();
        text.windows(root.len()).any(|part| part == root.as_bytes())
    })
}

/// What a process holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) handles: usize,
    pub(super) threads: usize,
    /// Memory that is its own and no file's: what a leak fills.
    pub(super) anonymous_kib: usize,
}

impl Usage {
    /// The least of each.
    pub(super) fn least(&self, other: &Self) -> Self {
        Self {
            handles: self.handles.min(other.handles),
            threads: self.threads.min(other.threads),
            anonymous_kib: self.anonymous_kib.min(other.anonymous_kib),
        }
    }

    /// What a process holds now.
    pub(super) fn by(id: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let field = |name: &str| {
            let rest = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
            rest.split_whitespace().next().unwrap().parse().unwrap()
        };
        let handles = fs::read_dir(format!("/proc/{id}/fd")).unwrap().count();
        Self { handles, threads: field("Threads"), anonymous_kib: field("RssAnon") }
    }
}
