//! `docs/benchmarks.md` and its plot: what a prompt costs, against putting the same strings together by hand.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::plot::{self, Plot, Series};
use super::table::{self, Row};
use super::write;

const PAGE: &str = "docs/benchmarks.md";
/// A busy machine can slow down a whole run, so the page shows the middle one of several, and the slowest.
const RUNS: usize = 5;
const PLOT: &str = "docs/benchmarks-prompt.svg";

/// Measures, and writes the page and the plot.
pub(super) fn run() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let mut runs = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        runs.push(table::read(&measure(root)?));
    }
    let cases = cases(&table::join(&runs));
    if cases.is_empty() {
        return Err("the benchmark printed no table".into());
    }
    let points: Vec<(f64, f64)> =
        named(&cases, "growth").map(|case| (case.characters, case.median_us)).collect();
    write(root, PAGE, &page(&cases))?;
    let series = [Series { name: "channel".to_owned(), points }];
    let plot = Plot {
        title: "Time to build a prompt, over its length",
        sizes: "characters",
        times: "median µs; dashed: linear growth",
        series: &series,
    };
    write(root, PLOT, &plot::svg(&plot))
}

fn measure(root: &Path) -> Result<String, String> {
    let output = Command::new(env!("CARGO"))
        .args(["bench", "--package", "embody-prompt", "--bench", "prompt"])
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("`cargo bench` did not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("`cargo bench` ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| "`cargo bench` printed no text".into())
}

/// One prompt, built, and put together by hand.
#[derive(Clone, Debug, PartialEq)]
struct Case {
    name: String,
    characters: f64,
    fastest_us: f64,
    median_us: f64,
    slowest_run_us: f64,
    allocations: f64,
    by_hand_us: f64,
    hash_us: f64,
}

fn cases(rows: &[Row]) -> Vec<Case> {
    let median = |function: &str, case: &str| {
        rows.iter().find(|row| row.function == function && row.case == case).map(|row| row.median_us)
    };
    let mut cases: Vec<Case> = rows
        .iter()
        .filter(|row| row.function == "build")
        .filter_map(|row| {
            let (name, characters) = row.case.rsplit_once('/')?;
            Some(Case {
                name: name.to_owned(),
                characters: characters.parse().ok()?,
                fastest_us: row.fastest_us,
                median_us: row.median_us,
                slowest_run_us: row.slowest_run_us,
                allocations: row.allocations,
                by_hand_us: median("concatenate", &row.case)?,
                hash_us: median("hash", &row.case)?,
            })
        })
        .collect();
    cases.sort_by(|a, b| order(a).cmp(&order(b)).then(a.characters.total_cmp(&b.characters)));
    cases
}

/// The order of the page: everyday prompts, long ones, growth, the bad days.
fn order(case: &Case) -> (usize, &str) {
    const KINDS: [&str; 5] = ["typical", "long", "growth", "hostile", "over budget"];
    let kind = KINDS.iter().position(|kind| case.name.starts_with(kind)).unwrap_or(KINDS.len());
    (kind, &case.name)
}

fn named<'a>(cases: &'a [Case], name: &str) -> impl Iterator<Item = &'a Case> {
    cases.iter().filter(move |case| case.name == name)
}

fn page(cases: &[Case]) -> String {
    let mut page = String::from(HEAD);
    for case in cases {
        let Case { name, characters, fastest_us, median_us, slowest_run_us, allocations, by_hand_us, .. } =
            case;
        let ratio = median_us / by_hand_us;
        // Writing to a string cannot fail.
        let _ = writeln!(
            page,
            "| {name} | {characters} | {} | {} | {} | {allocations:.0} | {ratio:.0} |",
            short(*median_us),
            short(*fastest_us),
            short(*slowest_run_us)
        );
    }
    page.push_str(PLOT_SECTION);
    page.push_str("## What limits it\n\n");
    for case in cases.iter().filter(|case| case.name.starts_with("typical") || case.name.starts_with("long"))
    {
        let share = 100.0 * case.hash_us / case.median_us;
        let _ = writeln!(page, "- {}: {} µs of hashing, {share:.0} %", case.name, short(case.hash_us));
    }
    page.push_str(LIMITS);
    page
}

fn short(us: f64) -> String {
    if us < 100.0 { format!("{us:.1}") } else { format!("{us:.0}") }
}

const HEAD: &str = "# Benchmarks

Pages of their own: [the broker](benchmarks-broker.md), what a call costs through it, against a direct call and the proxies of
others; [the agent](benchmarks-agent.md); [the store](benchmarks-store.md); [finding memories](benchmarks-memory.md). This one
is about prompts.

Written by `cargo xtask bench prompt`; the numbers are those of the machine it last ran on. Run it on yours.

## A prompt

Assembled and rendered, with the account of its bytes and its hash, from values that are already read. *Ratio* is to
the least that anybody could do: appending the very same strings, already escaped, to a text of known length.
Five runs: *median* is that of the middle run, *fastest* the fastest sample of all, *slowest run* the largest of the
five medians.

| prompt | characters | median µs | fastest µs | slowest run µs | allocations | ratio |
|---|---:|---:|---:|---:|---:|---:|
";

const PLOT_SECTION: &str = "
- *typical*, *long*: a workspace with body rules, identity, project file, tools and skills, in three layouts.
- *growth*: one layout, one section that grows.
- *hostile*: nothing but false frames, headings, marks, hidden characters and terminal escapes; all of it is escaped.
- *over budget*: 100,000 characters cut down to 12,000 tokens; the time is that of counting tokens.

![Time over size, both axes logarithmic](benchmarks-prompt.svg)

";

const LIMITS: &str = "
The text is hashed once (BLAKE3); the hashes of single sections are made when a receipt asks for them. What is left is looking at each line once or twice for frames, and copying. Time grows with the
length; text that has to be rewritten, like the hostile one, costs several times as much per character. Tokens are counted
only when a prompt has more bytes than its budget has tokens.
";

#[cfg(test)]
mod tests {
    use super::*;

    fn row(function: &str, case: &str, median_us: f64) -> Row {
        Row {
            function: function.into(),
            case: case.into(),
            fastest_us: 1.0,
            median_us,
            slowest_run_us: 30.0,
            allocations: 7.0,
        }
    }

    #[test]
    fn everyday_prompts_come_first_and_the_ratio_is_to_the_same_strings() {
        let rows: Vec<Row> = ["growth/3000", "growth/1000", "typical full/6000", "never finished/1"]
            .into_iter()
            .flat_map(|case| {
                [row("build", case, 20.0), row("hash", case, 10.0), row("concatenate", case, 0.5)]
            })
            .filter(|row| !(row.case == "never finished/1" && row.function == "hash"))
            .collect();
        let cases = cases(&rows);
        let names: Vec<String> =
            cases.iter().map(|case| format!("{} {}", case.name, case.characters)).collect();
        assert_eq!(names, ["typical full 6000", "growth 1000", "growth 3000"]);
        let page = page(&cases);
        assert!(page.contains("| typical full | 6000 | 20.0 | 1.0 | 30.0 | 7 | 40 |"), "{page}");
        assert!(page.contains("- typical full: 10.0 µs of hashing, 50 %"), "{page}");
    }
}
