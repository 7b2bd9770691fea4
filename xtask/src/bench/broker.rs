//! `docs/benchmarks-broker.md` and its plot: what a call costs through the broker, against the same call made directly.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::plot::{self, Plot, Series};
use super::write;

const PAGE: &str = "docs/benchmarks-broker.md";
const WAYS: [&str; 3] = ["direct", "bare hop", "embody"];
const PLOT: &str = "docs/benchmarks-broker.svg";

/// Measures, and writes the page and the plot.
pub(super) fn run() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let measured = Measured::read(&measure(root)?);
    let page = page(&measured).ok_or("the benchmark printed no rows")?;
    write(root, PAGE, &page)?;
    let series: Vec<Series> =
        WAYS.iter().map(|who| Series { name: (*who).to_owned(), points: measured.growth(who) }).collect();
    let plot = Plot {
        title: "Time of a call, over the size of its argument",
        sizes: "bytes of the argument, which comes back in the result",
        times: "median µs of a call",
        series: &series,
    };
    write(root, PLOT, &plot::svg(&plot))
}

fn measure(root: &Path) -> Result<String, String> {
    let output = Command::new(env!("CARGO"))
        .args(["bench", "--package", "embody", "--bench", "broker"])
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("`cargo bench` did not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("the benchmark ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| "the benchmark printed no text".into())
}

/// Times in microseconds; of several rounds the middle one counts.
#[derive(Debug, Default)]
struct Measured {
    /// Who, kind, calls, and the percentiles of one round; the rounds in their order.
    calls: Vec<(String, String, String, [f64; 3])>,
    rates: Vec<(String, f64)>,
    sizes: Vec<(String, f64, f64)>,
}

impl Measured {
    fn read(output: &str) -> Self {
        let mut measured = Self::default();
        let number = |text: &str| text.parse().unwrap_or(0.0);
        for line in output.lines() {
            match line.split('\t').collect::<Vec<_>>().as_slice() {
                ["call", _, who, kind, count, p50, p90, p99] => measured.calls.push((
                    (*who).to_owned(),
                    (*kind).to_owned(),
                    (*count).to_owned(),
                    [number(p50), number(p90), number(p99)],
                )),
                ["rate", _, who, rate] => measured.rates.push(((*who).to_owned(), number(rate))),
                ["size", _, who, bytes, median] => {
                    measured.sizes.push(((*who).to_owned(), number(bytes), number(median)));
                }
                _ => {}
            }
        }
        measured
    }

    fn call(&self, who: &str, kind: &str) -> Option<(&str, [f64; 3])> {
        let rounds: Vec<_> = self.calls.iter().filter(|call| call.0 == who && call.1 == kind).collect();
        let of = |place: usize| middle(rounds.iter().filter_map(|call| call.3.get(place).copied()).collect());
        Some((rounds.first()?.2.as_str(), [of(0)?, of(1)?, of(2)?]))
    }

    /// The median against that of the direct call in the same round: what else the machine does comes and goes.
    fn ratio(&self, who: &str, kind: &str) -> Option<f64> {
        let medians = |who: &str| {
            let rounds = self.calls.iter().filter(|call| call.0 == who && call.1 == kind);
            rounds.map(|call| call.3[0]).collect::<Vec<_>>()
        };
        middle(medians(who).into_iter().zip(medians("direct")).map(|(one, direct)| one / direct).collect())
    }

    fn rates(&self, who: &str) -> Vec<f64> {
        self.rates.iter().filter(|rate| rate.0 == who).map(|rate| rate.1).collect()
    }

    fn growth(&self, who: &str) -> Vec<(f64, f64)> {
        let mut sizes: Vec<f64> = self.sizes.iter().map(|size| size.1).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        let of = |bytes: f64| {
            let rounds = self.sizes.iter().filter(|size| size.0 == who && (size.1 - bytes).abs() < 0.5);
            Some((bytes, middle(rounds.map(|size| size.2).collect())?))
        };
        sizes.into_iter().filter_map(of).collect()
    }
}

fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn page(measured: &Measured) -> Option<String> {
    let mut page = String::from(HEAD);
    for kind in ["read", "write"] {
        for who in WAYS {
            let (count, [p50, p90, p99]) = measured.call(who, kind)?;
            let ratio = measured.ratio(who, kind)?;
            // Writing to a string cannot fail.
            let _ =
                writeln!(page, "| {kind} | {who} | {count} | {p50:.1} | {p90:.1} | {p99:.1} | {ratio:.2} |");
        }
    }
    page.push_str("\n| 32 reads at once | calls per second | ratio |\n|---|---:|---:|\n");
    for who in WAYS {
        let (rates, direct) = (measured.rates(who), measured.rates("direct"));
        let ratio = middle(rates.iter().zip(&direct).map(|(one, direct)| one / direct).collect())?;
        let _ = writeln!(page, "| {who} | {:.0} | {ratio:.2} |", middle(rates)?);
    }
    page.push_str("\n![Time of a call over the size of its argument](benchmarks-broker.svg)\n");
    Some(page)
}

const HEAD: &str = "# Benchmarks: the broker

Written by `cargo xtask bench broker`; the numbers are those of the machine it last ran on. Run it on yours. The same tool
call over stdio: directly to a server on an asynchronous runtime that does as little as one can; through a *bare hop*, a
program on the same runtime that exchanges the id of each message and does nothing else; and through `embody mcp` with gates, audit and observation on,
SQLite, embedded mind. All processes share one core, so that the ratio does not depend on where the scheduler puts them.
Of nine rounds the middle one is shown, and the middle one of the nine ratios to the direct call of the same round. A
*read* is answered before its record is on the disk. A *write* waits for its audit record: one flush of the disk.

| call | to | calls | median µs | p90 µs | p99 µs | ratio |
|---|---|---:|---:|---:|---:|---:|
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_a_page_with_ratios_of_the_middle_round() {
        let mut rows = String::new();
        for (round, embody) in [(0, 90.0), (1, 30.0), (2, 40.0)] {
            for kind in ["read", "write"] {
                let _ = writeln!(rows, "call\t{round}\tdirect\t{kind}\t9\t10\t11\t12");
                let _ = writeln!(rows, "call\t{round}\tbare hop\t{kind}\t9\t20\t21\t22");
                let _ = writeln!(rows, "call\t{round}\tembody\t{kind}\t9\t{embody}\t99\t99");
            }
            let _ = writeln!(
                rows,
                "rate\t{round}\tdirect\t100\nrate\t{round}\tbare hop\t70\nrate\t{round}\tembody\t50\nsize\t{round}\tembody\t100\t7"
            );
        }
        let measured = Measured::read(&rows);
        let page = page(&measured).unwrap_or_default();
        assert!(page.contains("| read | embody | 9 | 40.0 | 99.0 | 99.0 | 4.00 |"), "{page}");
        assert!(page.contains("| embody | 50 | 0.50 |"), "{page}");
        assert_eq!(measured.growth("embody"), [(100.0, 7.0)]);
        assert_eq!(super::page(&Measured::default()), None);
    }
}
