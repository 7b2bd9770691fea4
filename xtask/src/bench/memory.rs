//! `docs/benchmarks-memory.md`: how well memories are found. The data is licensed separately and is not in the repository.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::write;

const PAGE: &str = "docs/benchmarks-memory.md";

/// Measures on the data file of `--data FILE`, and writes the page.
pub(super) fn run(mut options: impl Iterator<Item = String>) -> Result<(), String> {
    let (Some("--data"), Some(data), None) = (options.next().as_deref(), options.next(), options.next())
    else {
        return Err("`bench memory` needs `--data FILE`, a file of LoCoMo's conversations".into());
    };
    let data = std::fs::canonicalize(&data).map_err(|error| format!("cannot read `{data}`: {error}"))?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let page = page(&measure(root, &data)?).ok_or("the benchmark printed no rows")?;
    write(root, PAGE, &page)
}

fn measure(root: &Path, data: &Path) -> Result<String, String> {
    let output = Command::new(env!("CARGO"))
        .args(["bench", "--package", "embody", "--bench", "memory", "--"])
        .arg(data)
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("`cargo bench` did not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("`cargo bench` ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| "`cargo bench` printed no text".into())
}

/// The page, from lines of cells between tabs.
fn page(output: &str) -> Option<String> {
    let mut page = String::from(HEAD);
    let mut rows = String::new();
    let mut memories = None;
    for line in output.lines() {
        // Writing to a string cannot fail.
        match line.split('\t').collect::<Vec<_>>().as_slice() {
            ["quality", group, questions, recall_5, recall_10, gain] => {
                let _ = writeln!(page, "| {group} | {questions} | {recall_5} | {recall_10} | {gain} |");
            }
            ["time", what, count, median, p99, quietest] => {
                let _ = writeln!(rows, "| {what} | {count} | {median} | {p99} | {quietest} |");
            }
            ["memories", count] => memories = Some(*count),
            _ => {}
        }
    }
    let _ = write!(
        page,
        "\n{} memories in one SQLite file, release build. *Quietest* is the p99 of the quietest of three rounds: what else the\n\
         machine does spoils some.\n\n| | calls | median µs | p99 µs | quietest |\n|---|---:|---:|---:|---:|\n{rows}",
        memories?
    );
    Some(page)
}

const HEAD: &str = "# Benchmarks: finding memories

Written by `cargo xtask bench memory --data FILE`, where FILE is `locomo10.json` of the public LoCoMo benchmark (CC BY-NC
4.0; not part of this repository). Ten long conversations, questions whose evidence is known turn by turn. Each turn is
one memory with its speaker, session and date, each conversation one user who has an `embody mind` process of their own:
what is measured is what a host gets over MCP. No language model anywhere. *R@5* and *R@10*
are the shares of the evidence among the first five and ten memories found, *nDCG@10* rewards finding it early. The
weights of the ranking lie between those that a search found on either half of the conversations, so neither half is
unseen; weights found on one half alone and measured on the other give R@5 .744, R@10 .809 and nDCG@10 .651 over all.

| questions | count | R@5 | R@10 | nDCG@10 |
|---|---:|---:|---:|---:|
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_a_page() {
        let rows = "noise\nquality\tall\t9\t0.1\t0.2\t0.3\nmemories\t70\ntime\tread\t9\t800\t900\t850\n";
        let page = page(rows).unwrap_or_default();
        assert!(page.contains("| all | 9 | 0.1 | 0.2 | 0.3 |"), "{page}");
        assert!(page.contains("\n70 memories in one SQLite file"), "{page}");
        assert!(page.ends_with("| read | 9 | 800 | 900 | 850 |\n"), "{page}");
        assert_eq!(super::page("nothing"), None);
    }

    #[test]
    fn the_data_must_be_named() {
        assert!(run(std::iter::empty()).is_err());
        assert!(run(["--data", "/nowhere"].map(str::to_owned).into_iter()).is_err());
    }
}
