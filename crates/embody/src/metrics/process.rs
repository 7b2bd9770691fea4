//! What the kernel says of this process, under the names that every exporter uses. What it does not say is left out.

use std::fs;
use std::time::Instant;

use embody_broker::meter::{Kind, Page};
use rustix::process::{Resource, getrlimit};

/// In which the kernel tells programs of processor time, on every machine.
const TICKS_PER_SECOND: f64 = 100.0;

pub(super) fn put(page: &mut Page, since: Instant) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let mut put = |name, kind, help, value: Option<f64>| {
        if let Some(value) = value {
            page.number(name, kind, help, value);
        }
    };
    put("process_resident_memory_bytes", Kind::Gauge, "Memory that it holds.", bytes(&status, "VmRSS"));
    put("process_virtual_memory_bytes", Kind::Gauge, "Addresses that it holds.", bytes(&status, "VmSize"));
    put("process_cpu_seconds_total", Kind::Counter, "Processor time that it took.", cpu_seconds(&stat));
    let open = fs::read_dir("/proc/self/fd").ok().map(|entries| number(entries.count()));
    put("process_open_fds", Kind::Gauge, "Files and sockets that are open.", open);
    let most = getrlimit(Resource::Nofile).current.and_then(|most| usize::try_from(most).ok());
    put("process_max_fds", Kind::Gauge, "So many may be open.", most.map(number));
    put("process_threads", Kind::Gauge, "Threads that it has.", field(&status, "Threads").map(number));
    let started = jiff::Timestamp::now().as_duration().as_secs_f64() - since.elapsed().as_secs_f64();
    put("process_start_time_seconds", Kind::Gauge, "When it began, in seconds since 1970.", Some(started));
}

/// A line like `VmRSS:     1234 kB`.
fn bytes(status: &str, name: &str) -> Option<f64> {
    field(status, name).map(|kilobytes| number(kilobytes) * 1024.0)
}

fn field(status: &str, name: &str) -> Option<usize> {
    let rest = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The name stands in brackets and may hold anything; after it the twelfth and thirteenth are the time in the program and
/// in the kernel.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut times = rest.split(' ').skip(11).map(|ticks| ticks.parse::<usize>().ok());
    let (user, kernel) = (times.next()??, times.next()??);
    Some(number(user + kernel) / TICKS_PER_SECOND)
}

#[expect(clippy::cast_precision_loss, reason = "no such number is beyond what a float holds exactly")]
fn number(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_read() {
        let status = "Name:\tembody\nVmSize:\t  2048 kB\nVmRSS:\t    12 kB\nThreads:\t3\n";
        assert_eq!(bytes(status, "VmRSS"), Some(12_288.0));
        assert_eq!(field(status, "Threads"), Some(3));
        assert_eq!(bytes(status, "VmSwap"), None);
        let stat = "12 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20";
        assert_eq!(cpu_seconds(stat), Some(2.0));
        assert_eq!(cpu_seconds("12 (a) S 1"), None);
    }

    #[test]
    fn this_process_is_seen() {
        let mut page = Page::default();
        put(&mut page, Instant::now());
        let text = page.into_text();
        for name in ["process_resident_memory_bytes", "process_open_fds", "process_cpu_seconds_total"] {
            let line =
                text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
            let value: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
            assert!(value >= 0.0 && (name == "process_cpu_seconds_total" || value > 1.0), "{line}");
        }
    }
}
