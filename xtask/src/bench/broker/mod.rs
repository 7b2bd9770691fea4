//! `docs/benchmarks-broker.md` and its plots: what a call costs through the broker, against the same call made directly and
//! through the proxies of others.

mod goals;
mod page;
mod results;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use self::results::Results;
use super::plot::{self, Plot, Series};
use super::write;

const PAGE: &str = "docs/benchmarks-broker.md";
const SIZES: &str = "docs/benchmarks-broker.svg";
const GROWTH: &str = "docs/benchmarks-broker-growth.svg";
const MEMORY: &str = "docs/benchmarks-broker-memory.svg";

/// Installs the proxies of others if necessary, measures, and writes the page and the plots.
pub(super) fn run(mut arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let peers = match arguments.next().as_deref() {
        None => true,
        Some("--without-peers") => false,
        Some(other) => return Err(format!("`{other}` is not known: `--without-peers` leaves others out")),
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let peers = if peers { Some(install(root)?) } else { None };
    let results = Results::read(&measure(root, peers.as_deref())?);
    let page = page::build(&results).ok_or("the benchmark printed no rows")?;
    write(root, PAGE, &page)?;
    write(root, SIZES, &plot::svg(&sizes(&results.series())))?;
    let (times, memory) = (results.growth_of_times(), results.growth_of_memory());
    write(root, GROWTH, &plot::svg(&growth("Time, over what grows", "microseconds", &times)))?;
    write(root, MEMORY, &plot::svg(&growth("Resident memory, over what grows", "megabytes", &memory)))
}

fn sizes(series: &[Series]) -> Plot<'_> {
    Plot {
        title: "Time of a call, over the size of its argument",
        sizes: "bytes of the argument, which comes back in the result",
        times: "median µs of a call",
        series,
    }
}

fn growth<'a>(title: &'a str, times: &'a str, series: &'a [Series]) -> Plot<'a> {
    Plot { title, sizes: "how many there are", times, series }
}

/// The folder with the proxies of others.
fn install(root: &Path) -> Result<PathBuf, String> {
    let output = Command::new(root.join("tools/bench-peers"))
        .args(["install", "target/bench-peers"])
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("`tools/bench-peers` did not start: {error}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    match stdout.lines().last().filter(|_| output.status.success()) {
        Some(folder) => Ok(PathBuf::from(folder)),
        None => Err("the proxies of others are not there: `--without-peers` leaves them out".into()),
    }
}

fn measure(root: &Path, peers: Option<&Path>) -> Result<String, String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["bench", "--package", "embody", "--bench", "broker"]);
    match peers {
        Some(folder) => command.env("EMBODY_BENCH_PEERS", folder),
        None => command.env_remove("EMBODY_BENCH_PEERS"),
    };
    let output = command
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("`cargo bench` did not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("the benchmark ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| "the benchmark printed no text".into())
}
