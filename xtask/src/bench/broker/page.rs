//! Writes the page from the results of the benchmark.

use std::fmt::Write as _;

use super::goals;
use super::results::{Calls, GrowthRow, Resident, Results, Subject};

/// `None` if something was not measured.
pub(super) fn build(results: &Results) -> Option<String> {
    let mut page = String::from(HEAD);
    page.push_str("## One read after another\n\n");
    calls(&mut page, results, "read")?;
    page.push_str("\n## 32 reads at once\n\n");
    calls(&mut page, results, "32 reads")?;
    page.push_str(if results.has_peers() { TRANSPORTS } else { ALONE });
    page.push_str("![Time of a call over the size of its argument](benchmarks-broker.svg)\n");
    page.push_str(WRITES);
    calls(&mut page, results, "write")?;
    // Writing to a string cannot fail.
    let _ = writeln!(
        page,
        "\nOne page, appended to a file and flushed: {:.0} µs. A write takes as long as a read and {:.1} of them.",
        results.flush_us()?,
        results.flushes_of_a_write(&Subject::embody("stdio"))?
    );
    if results.flushed.is_none() {
        page.push_str(UNCOUNTED);
    }
    starts(&mut page, results)?;
    page.push_str(GOALS);
    page.push_str("| goal | aimed at | measured | |\n|---|---:|---:|---|\n");
    for goal in goals::all(results)? {
        let _ =
            writeln!(page, "| {} | {} | {} | {} |", goal.what, goal.aim(), goal.measured(), goal.verdict());
    }
    page.push_str(WHY);
    if let Some((name, ratio)) = results.fastest_peer("HTTP") {
        let _ = writeln!(
            page,
            "\nOf the others {name} is the fastest over HTTP: {ratio:.2}×, without a gate, a record or a mind."
        );
    }
    growth(&mut page, results);
    Some(page)
}

fn calls(page: &mut String, results: &Results, kind: &str) -> Option<()> {
    page.push_str(
        "| to | over | calls | median µs | p99 µs | calls/s | median, ratio | p99, ratio | calls/s, ratio |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for subject in results.subjects(kind) {
        let Calls { count, p50_us, p99_us, per_second, .. } = results.calls(&subject, kind)?;
        let ratio = |column| results.ratio(&subject, kind, column);
        let (p50, p99) = (ratio(|calls| calls.p50_us)?, ratio(|calls| calls.p99_us)?);
        let rate = ratio(|calls| calls.per_second)?;
        let Subject { name, transport } = &subject;
        let _ = writeln!(
            page,
            "| {name} | {transport} | {count} | {p50_us:.1} | {p99_us:.1} | {per_second:.0} | {p50:.2} | {p99:.2} | {rate:.3} |"
        );
    }
    Some(())
}

fn starts(page: &mut String, results: &Results) -> Option<()> {
    page.push_str(STARTS);
    page.push_str(
        "| who | over | servers behind | first answer ms | tools ms | memory MB | of it, guards | of it, no file's |\n\
         |---|---|---:|---:|---:|---:|---:|---:|\n",
    );
    for subject in results.started() {
        let start = results.start(&subject)?;
        let Subject { name, transport } = &subject;
        let _ = writeln!(
            page,
            "| {name} | {transport} | {} | {:.1} | {:.1} | {} |",
            start.servers,
            start.initialized_ms,
            start.listed_ms,
            memory(&start.resident)
        );
    }
    Some(())
}

fn memory(resident: &Resident) -> String {
    format!("{:.1} | {:.1} | {:.1}", resident.all_mb(), resident.others_mb, resident.anonymous_mb)
}

fn growth(page: &mut String, results: &Results) {
    page.push_str(GROWTH);
    page.push_str(
        "| of | how many | a read, median µs | open or list ms | memory MB | of it, guards | of it, no file's |\n\
         |---|---:|---:|---:|---:|---:|---:|\n",
    );
    for GrowthRow { what, count, call_us, other_ms, resident } in &results.growth_rows {
        let memory = memory(resident);
        let _ = writeln!(page, "| {what} | {count} | {call_us:.1} | {other_ms:.2} | {memory} |");
    }
    page.push_str("\n![Time of a read over what grows](benchmarks-broker-growth.svg)\n");
    page.push_str("\n![Resident memory over what grows](benchmarks-broker-memory.svg)\n");
}

const HEAD: &str = "# Benchmarks: the broker

Written by `cargo xtask bench broker`; the numbers are those of the machine it last ran on. Run it on yours. The same tool
call goes directly to a server that does as little as one can; through a *bare hop*, a program on the same runtime as ours that
exchanges the id of each message and does nothing else; through `embody mcp` with gates, audit and observation on, SQLite,
embedded mind; and through the proxies of others, at the versions that `tools/bench-peers` pins, each with its log turned
down. The server behind everybody is the same, over stdio. So is the host in front: raw JSON-RPC of the session
era, over stdio or over streamable HTTP with connections that stay open.

All processes share one core, so that a ratio does not depend on where the scheduler puts them. The rounds are interleaved.
The middle one is shown, and the middle one of the ratios to the direct call over stdio of the same round.

";

const TRANSPORTS: &str = "
What is missing is not offered: the crate's and npm's `mcp-proxy` have no stdio in front, PyPI's has it only for a server
that is reached over HTTP. None of the others keeps a record, asks anybody, or tells a mind.

";

const ALONE: &str = "
The proxies of others were left out of this run.

";

const WRITES: &str = "
## Writes

A *read* is answered before its record is on the disk. A *write* waits for its audit record, which goes to the disk
in one commit with what is still to be written of the calls before it: one flush, of several pages.

";

const UNCOUNTED: &str = "
The flushes were not counted: `strace` is not installed.
";

const STARTS: &str = "
## Starting, and at rest

From the start of the process to its first answer (`initialize`), and to the list of the tools of the servers behind it. *Memory*
is what is resident a second later: of the process, and of what it started itself, the servers left out. Beside
us stands a *guard*, a process that ends the servers if we are killed. *No file's* are the pages that are no part of a program or
a library: those of a file are in memory once, however many processes count them, and can be dropped and read again.

";

const GOALS: &str = "
## Goals

";

const WHY: &str = "
What stands between us and these goals:

- *Many reads at once.* The server behind does next to nothing, and takes hundreds of thousands of calls a second when they
  come together. Each read through us leaves a record in a chain of hashes and a row for the mind, in SQLite, on the core
  that everybody shares: [where the time goes](decisions/0012-where-a-calls-time-goes.md). Of one user, 10,000 calls at most
  wait for the mind; what comes faster than it listens, for longer, is on record and not observed.
- *HTTP.* There are six calls of the kernel for a read, which is as few as there can be, and they are two fifths of its time. Then
  there is HTTP itself, and each request names its token, its session and its version, and each of them is checked; a token is
  looked up ten times a second at most.
- *Memory.* Most of it are pages of the program, which is large. What we allocate ourselves is among those that are
  no file's. The guard is the same program once more.
- *First answer.* The servers behind and the guard are started meanwhile, on the core that everybody shares. Without servers it
  comes after about 10 ms. It differs from run to run, since the middle of five starts is shown: 13.9, 17.1 and 20.2 ms in three runs
  on one machine.
- *Flushes.* A write waits for one. The others that were counted are of what is written down afterwards, and of moving the log
  into the database from time to time.
";

const GROWTH: &str = "
## Growth

Each session over HTTP has its own connection to the server behind, so with 1,000 sessions there are 1,000 servers.
*Open* is what a new session takes until its first call is answered, `tools/list` and the start of the server included;
*list* is one `tools/list`, all pages.

";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_a_page_with_ratios_of_the_middle_round() {
        let mut rows = String::new();
        for (round, embody) in [(0, 90.0), (1, 30.0), (2, 40.0)] {
            for kind in ["read", "write", "32 reads"] {
                let _ = writeln!(rows, "call\t{round}\tdirect\tstdio\t{kind}\t9\t10\t11\t12\t1000");
                let _ = writeln!(rows, "call\t{round}\tembody\tstdio\t{kind}\t9\t{embody}\t99\t99\t50");
                let _ = writeln!(rows, "call\t{round}\tembody\tHTTP\t{kind}\t9\t{embody}\t99\t99\t50");
            }
            let _ = writeln!(rows, "size\t{round}\tembody\tstdio\t100\t7\nflush\t{round}\t500");
            let _ = writeln!(rows, "start\t{round}\tembody\tstdio\t2\t12.5\t20\t20480\t2048\t5120");
        }
        let page = build(&Results::read(&rows)).unwrap_or_default();
        assert!(page.contains("strace") && !page.contains("Of the others"), "{page}");
        for (round, slow) in [(0, 80), (1, 90), (2, 85)] {
            let _ = writeln!(rows, "call\t{round}\tother 1\tHTTP\tread\t9\t{slow}\t99\t99\t50");
        }
        rows.push_str("flushes\t0.995\n");
        rows.push_str("grow\ttools\t10\t30\t0.5\t20480\t1024\t2048\n");
        let results = Results::read(&rows);
        let page = build(&results).unwrap_or_default();
        assert!(page.contains("| embody | stdio | 9 | 40.0 | 99.0 | 50 | 4.00 | 8.25 | 0.050 |"), "{page}");
        assert!(
            page.contains("of a direct call's | ≤ 3.5× | 4.00× | falls short: 1.14 times the aim |"),
            "{page}"
        );
        assert!(page.contains("first answer | ≤ 15 ms | 12.50 ms | holds |"), "{page}");
        assert!(page.contains("| tools | 10 | 30.0 | 0.50 | 21.0 | 1.0 | 2.0 |"), "{page}");
        assert!(page.contains("has none of its own | ≤ 1 | 0.99 | holds |"), "{page}");
        assert!(page.contains("Of the others other 1 is the fastest over HTTP: 8.50×"), "{page}");
        assert_eq!(results.series()[1].points, [(100.0, 7.0)]);
        assert_eq!(build(&Results::default()), None);
    }
}
