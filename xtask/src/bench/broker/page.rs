//! The page, from what was measured.

use std::fmt::Write as _;

use super::measured::{Calls, Grown, Measured, Resident, Who};
use super::{goals, words};

/// The page; none if something was not measured.
pub(super) fn of(measured: &Measured) -> Option<String> {
    let mut page = String::from(words::HEAD);
    page.push_str("## One read after another\n\n");
    calls(&mut page, measured, "read")?;
    page.push_str("\n## 32 reads at once\n\n");
    calls(&mut page, measured, "32 reads")?;
    page.push_str(if measured.has_peers() { words::TRANSPORTS } else { words::ALONE });
    page.push_str("![Time of a call over the size of its argument](benchmarks-broker.svg)\n");
    page.push_str(words::WRITES);
    calls(&mut page, measured, "write")?;
    // Writing to a string cannot fail.
    let _ = writeln!(
        page,
        "\nOne page, appended to a file and flushed: {:.0} µs. A write takes as long as a read and {:.1} of them.",
        measured.flush_us()?,
        measured.flushes_of_a_write(&Who::embody("stdio"))?
    );
    if measured.flushed.is_none() {
        page.push_str(words::UNCOUNTED);
    }
    starts(&mut page, measured)?;
    page.push_str(words::GOALS);
    page.push_str("| goal | aimed at | measured | |\n|---|---:|---:|---|\n");
    for goal in goals::all(measured)? {
        let _ =
            writeln!(page, "| {} | {} | {} | {} |", goal.what, goal.aim(), goal.measured(), goal.verdict());
    }
    page.push_str(words::WHY);
    if let Some((name, ratio)) = measured.fastest_peer("HTTP") {
        let _ = writeln!(
            page,
            "\nOf the others {name} is the fastest over HTTP: {ratio:.2}×, without a gate, a record or a mind."
        );
    }
    growth(&mut page, measured);
    Some(page)
}

fn calls(page: &mut String, measured: &Measured, kind: &str) -> Option<()> {
    page.push_str(
        "| to | over | calls | median µs | p99 µs | calls/s | median, ratio | p99, ratio | calls/s, ratio |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for who in measured.everybody(kind) {
        let Calls { count, p50_us, p99_us, per_second, .. } = measured.calls(&who, kind)?;
        let ratio = |column| measured.ratio(&who, kind, column);
        let (p50, p99) = (ratio(|calls| calls.p50_us)?, ratio(|calls| calls.p99_us)?);
        let rate = ratio(|calls| calls.per_second)?;
        let Who { name, transport } = &who;
        let _ = writeln!(
            page,
            "| {name} | {transport} | {count} | {p50_us:.1} | {p99_us:.1} | {per_second:.0} | {p50:.2} | {p99:.2} | {rate:.3} |"
        );
    }
    Some(())
}

fn starts(page: &mut String, measured: &Measured) -> Option<()> {
    page.push_str(words::STARTS);
    page.push_str(
        "| who | over | servers behind | first answer ms | tools ms | memory MB | of it, guards | of it, no file's |\n\
         |---|---|---:|---:|---:|---:|---:|---:|\n",
    );
    for who in measured.started() {
        let start = measured.start(&who)?;
        let Who { name, transport } = &who;
        let _ = writeln!(
            page,
            "| {name} | {transport} | {} | {:.1} | {:.1} | {} |",
            start.servers,
            start.greeted_ms,
            start.listed_ms,
            memory(&start.resident)
        );
    }
    Some(())
}

fn memory(resident: &Resident) -> String {
    format!("{:.1} | {:.1} | {:.1}", resident.all_mb(), resident.others_mb, resident.anonymous_mb)
}

fn growth(page: &mut String, measured: &Measured) {
    page.push_str(words::GROWTH);
    page.push_str(
        "| of | how many | a read, median µs | open or list ms | memory MB | of it, guards | of it, no file's |\n\
         |---|---:|---:|---:|---:|---:|---:|\n",
    );
    for Grown { what, count, call_us, other_ms, resident } in &measured.grown {
        let memory = memory(resident);
        let _ = writeln!(page, "| {what} | {count} | {call_us:.1} | {other_ms:.2} | {memory} |");
    }
    page.push_str("\n![Time of a read over what grows](benchmarks-broker-growth.svg)\n");
    page.push_str("\n![Resident memory over what grows](benchmarks-broker-memory.svg)\n");
}

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
        let page = of(&Measured::read(&rows)).unwrap_or_default();
        assert!(page.contains("strace") && !page.contains("Of the others"), "{page}");
        for (round, slow) in [(0, 80), (1, 90), (2, 85)] {
            let _ = writeln!(rows, "call\t{round}\tother 1\tHTTP\tread\t9\t{slow}\t99\t99\t50");
        }
        rows.push_str("flushes\t0.995\n");
        rows.push_str("grow\ttools\t10\t30\t0.5\t20480\t1024\t2048\n");
        let measured = Measured::read(&rows);
        let page = of(&measured).unwrap_or_default();
        assert!(page.contains("| embody | stdio | 9 | 40.0 | 99.0 | 50 | 4.00 | 8.25 | 0.050 |"), "{page}");
        assert!(
            page.contains("of a direct call's | ≤ 3.5× | 4.00× | falls short: 1.14 times the aim |"),
            "{page}"
        );
        assert!(page.contains("first answer | ≤ 15 ms | 12.50 ms | holds |"), "{page}");
        assert!(page.contains("| tools | 10 | 30.0 | 0.50 | 21.0 | 1.0 | 2.0 |"), "{page}");
        assert!(page.contains("has none of its own | ≤ 1 | 0.99 | holds |"), "{page}");
        assert!(page.contains("Of the others other 1 is the fastest over HTTP: 8.50×"), "{page}");
        assert_eq!(measured.series()[1].points, [(100.0, 7.0)]);
        assert_eq!(of(&Measured::default()), None);
    }
}
