//! `docs/benchmarks-agent.md` and its plot: what a turn costs beside the model, and what many at once take.

use std::fmt::Write as _;
use std::path::Path;

use super::plot::{self, Plot, Series};
use super::{cargo, write};

const PAGE: &str = "docs/benchmarks-agent.md";
const PLOT: &str = "docs/benchmarks-agent.svg";

/// Measures, and writes the page and the plot.
pub(super) fn run() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let built = cargo(root, &["build", "--release", "--package", "embody-agent", "--example", "scripted"])?;
    drop(built);
    let results = Results::read(&cargo(root, &["bench", "--package", "embody", "--bench", "agent"])?);
    write(root, PAGE, &page(&results).ok_or("the benchmark printed no rows")?)?;
    let points = results.concurrent.iter().map(|row| (row.chats, row.resident / 1024.0)).collect();
    let series = [Series { name: "embody up".to_owned(), points }];
    let plot = Plot {
        title: "Memory, over the number of chats that are being answered",
        sizes: "chats at once",
        times: "resident MiB",
        series: &series,
    };
    write(root, PLOT, &plot::svg(&plot))
}

#[derive(Debug, Default)]
struct Results {
    turns: Vec<Turn>,
    concurrent: Vec<ConcurrentChats>,
    /// Resident KiB before the first and after the last crowd.
    resident: (f64, f64),
}

/// Times in microseconds.
#[derive(Debug)]
struct Turn {
    what: String,
    count: f64,
    median: f64,
    p99: f64,
}

#[derive(Debug)]
struct ConcurrentChats {
    chats: f64,
    whole: f64,
    seconds: f64,
    resident: f64,
    each: f64,
}

impl Results {
    /// Lines of cells between tabs; others are not ours.
    fn read(output: &str) -> Self {
        let mut results = Self::default();
        for line in output.lines() {
            let cells: Vec<&str> = line.split('\t').collect();
            let number =
                |index: usize| cells.get(index).and_then(|cell| cell.parse::<f64>().ok()).unwrap_or(0.0);
            match cells.as_slice() {
                ["turn", what, ..] => results.turns.push(Turn {
                    what: (*what).to_owned(),
                    count: number(2),
                    median: number(3),
                    p99: number(4),
                }),
                ["crowd", ..] => results.concurrent.push(ConcurrentChats {
                    chats: number(1),
                    whole: number(2),
                    seconds: number(3),
                    resident: number(4),
                    each: number(5),
                }),
                ["resident", ..] => results.resident = (number(1), number(2)),
                _ => {}
            }
        }
        results
    }
}

fn page(results: &Results) -> Option<String> {
    let alone = results.turns.first()?.median;
    let mut out = String::from(
        "# Benchmarks: the agent\n\n\
         Written by `cargo xtask bench agent`; the numbers are those of the machine it last ran on. Run it on yours.\n\n\
         ## One turn\n\n\
         `embody up` on SQLite, a model on the same machine that answers at once, a client that waits for the last event of\n\
         `/api/chat`. *Beside the model* is what is left of the median without the time of the model asked directly, once for\n\
         each time that it was asked: prompt, receipt, store, broker, HTTP. What is said is on the disk before the turn ends.\n\n\
         | | turns | median µs | p99 µs | beside the model, µs |\n|---|---:|---:|---:|---:|\n",
    );
    for Turn { what, count, median, p99 } in &results.turns {
        let asked = if what.contains("tool") { 2.0 } else { 1.0 };
        let beside = median - asked * alone;
        let beside = if what.contains("alone") { "-".to_owned() } else { format!("{beside:.0}") };
        let _ = writeln!(out, "| {what} | {count} | {median:.0} | {p99:.0} | {beside} |");
    }
    out.push_str(
        "\n## Many at once\n\n\
         Chats of many users, all of them being answered at the same time by a model that takes half a minute. *First word* is\n\
         when the last of them had got its first word.\n\n\
         | chats | answered whole | first word, s | resident MiB | KiB for each |\n|---:|---:|---:|---:|---:|\n",
    );
    for ConcurrentChats { chats, whole, seconds, resident, each } in &results.concurrent {
        let _ = writeln!(out, "| {chats} | {whole} | {seconds:.1} | {:.0} | {each:.0} |", resident / 1024.0);
    }
    let (before, after) = results.resident;
    let _ = writeln!(
        out,
        "\nBefore the first of them {:.0} MiB were resident, after the last one {:.0} MiB.\n\n![memory](benchmarks-agent.svg)",
        before / 1024.0,
        after / 1024.0
    );
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_a_page() {
        let output = "noise\nturn\tthe model alone\t9\t500\t900\nturn\tfirst, with one tool call\t9\t4500\t9000\n\
                      crowd\t100\t100\t1.5\t20480\t102\nresident\t10240\t15360\n";
        let page = page(&Results::read(output)).unwrap_or_default();
        assert!(page.contains("| first, with one tool call | 9 | 4500 | 9000 | 3500 |"), "{page}");
        assert!(page.contains("| 100 | 100 | 1.5 | 20 | 102 |"), "{page}");
        assert!(
            page.contains("Before the first of them 10 MiB were resident, after the last one 15 MiB."),
            "{page}"
        );
        assert_eq!(super::page(&Results::default()), None);
    }
}
