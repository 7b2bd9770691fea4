//! `docs/benchmarks-store.md` and its plot: durable records, memories, and how they grow on both databases.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::plot::{self, Plot, Series};
use super::write;

const PAGE: &str = "docs/benchmarks-store.md";
const PLOT: &str = "docs/benchmarks-store.svg";

/// Measures, and writes the page and the plot.
pub(super) fn run() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let results = Results::read(&measure(root)?);
    if results.memories.is_empty() {
        return Err("the benchmark printed no rows".into());
    }
    write(root, PAGE, &page(&results))?;
    let series = results.growth();
    let plot = Plot {
        title: "Time to search, over the number of memories",
        sizes: "memories in the table",
        times: "median µs of a search",
        series: &series,
    };
    write(root, PLOT, &plot::svg(&plot))
}

fn measure(root: &Path) -> Result<String, String> {
    let output = Command::new(root.join("tools/postgres"))
        .args(["with", env!("CARGO"), "bench", "--package", "embody-store", "--bench", "store"])
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("`tools/postgres` did not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("the benchmark ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| "the benchmark printed no text".into())
}

/// Times in microseconds.
#[derive(Debug, Default, PartialEq)]
struct Results {
    sync: (f64, f64),
    audits: Vec<Audit>,
    memories: Vec<Memories>,
}

#[derive(Debug, PartialEq)]
struct Audit {
    backend: String,
    tasks: f64,
    rate: f64,
    median: f64,
    p99: f64,
}

#[derive(Debug, PartialEq)]
struct Memories {
    backend: String,
    users: f64,
    size: f64,
    search: (f64, f64),
    /// The p99 of the quietest round.
    quietest: f64,
    save: (f64, f64),
    load_rate: f64,
}

impl Results {
    /// Lines of cells between tabs; others are not ours.
    fn read(output: &str) -> Self {
        let mut results = Self::default();
        for line in output.lines() {
            let cells: Vec<&str> = line.split('\t').collect();
            let number =
                |index: usize| cells.get(index).and_then(|cell| cell.parse::<f64>().ok()).unwrap_or(0.0);
            let backend = cells.get(1).copied().unwrap_or_default().to_owned();
            match cells.first().copied() {
                Some("sync") => results.sync = (number(1), number(2)),
                Some("audit") => results.audits.push(Audit {
                    backend,
                    tasks: number(2),
                    rate: number(3),
                    median: number(4),
                    p99: number(5),
                }),
                Some("memory") => results.memories.push(Memories {
                    backend,
                    users: number(2),
                    size: number(3),
                    search: (number(4), number(5)),
                    save: (number(6), number(7)),
                    load_rate: number(8),
                    quietest: number(9),
                }),
                _ => {}
            }
        }
        results
    }

    fn growth(&self) -> Vec<Series> {
        let mut series: Vec<Series> = Vec::new();
        for row in &self.memories {
            let users = if row.users > 1.0 { "100 memories each" } else { "one user" };
            let name = format!("{}, {users}", row.backend);
            let point = (row.size, row.search.0);
            match series.iter_mut().find(|series| series.name == name) {
                Some(series) => series.points.push(point),
                None => series.push(Series { name, points: vec![point] }),
            }
        }
        series
    }
}

fn page(results: &Results) -> String {
    let mut out = String::from(
        "# Benchmarks: the store\n\n\
         Written by `cargo xtask bench store`; the numbers are those of the machine it last ran on. Run it on yours.\n\n\
         ## Durable audit records\n\n\
         Each append returns when its record is on the disk. ",
    );
    let (median, p99) = results.sync;
    let _ = writeln!(
        out,
        "The disk itself takes {median:.0} µs (p99 {p99:.0} µs) to sync\n4 KiB in the same run; *ratio* is to that.\n\n\
         | database | tasks | appends/s | median µs | p99 µs | ratio |\n|---|---:|---:|---:|---:|---:|"
    );
    for row in &results.audits {
        let Audit { backend, tasks, rate, median: time, p99 } = row;
        let ratio = time / median.max(1.0);
        let _ = writeln!(out, "| {backend} | {tasks} | {rate:.0} | {time:.0} | {p99:.0} | {ratio:.1} |");
    }
    out.push_str(
        "\n## Memories\n\n\
         Twelve words each, with actor, session and time; words are as frequent as in people's conversations. Questions of\n\
         five words, ten answers, ranked. *Save* is one memory with its index, durable. *Loading* is by the thousand for one\n\
         user and by the hundred for many. *Quietest* is the p99 of the quietest of five rounds of searches: what else the\n\
         machine does spoils some rounds, seldom all.\n\n\
         | database | users | memories | search median µs | search p99 µs | quietest | save median µs | save p99 µs | loading/s |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for row in &results.memories {
        let Memories { backend, users, size, search, quietest, save, load_rate } = row;
        let _ = writeln!(
            out,
            "| {backend} | {users} | {size} | {:.0} | {:.0} | {quietest:.0} | {:.0} | {:.0} | {load_rate:.0} |",
            search.0, search.1, save.0, save.1
        );
    }
    out.push_str(
        "\n![Time of a search over the number of memories, both axes logarithmic](benchmarks-store.svg)\n\n",
    );
    out.push_str(&growth(results));
    out
}

/// How much a search costs in the largest table, against the smallest.
fn growth(results: &Results) -> String {
    let mut out = String::new();
    for series in results.growth() {
        if let (Some(first), Some(last)) = (series.points.first(), series.points.last()) {
            let (name, sizes, times) = (&series.name, last.0 / first.0, last.1 / first.1.max(1.0));
            let _ = writeln!(out, "- {name}: {sizes:.0} times the memories, {times:.2} times the time");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "noise\nsync\t200\t300\naudit\tsqlite\t8\t9000\t800\t900\n\
                          memory\tsqlite\t10\t1000\t100\t200\t300\t400\t5000\t150\n\
                          memory\tsqlite\t10000\t1000000\t110\t220\t330\t440\t5500\t160\n";

    #[test]
    fn rows_become_a_page() {
        let page = page(&Results::read(OUTPUT));
        assert!(page.contains("| sqlite | 8 | 9000 | 800 | 900 | 4.0 |"), "{page}");
        assert!(page.contains("| sqlite | 10000 | 1000000 | 110 | 220 | 160 | 330 | 440 | 5500 |"), "{page}");
        assert!(
            page.contains("- sqlite, 100 memories each: 1000 times the memories, 1.10 times the time"),
            "{page}"
        );
    }
}
