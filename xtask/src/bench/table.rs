//! Reads the table that divan prints. Knows its shape and nothing of what was measured.

/// One measured case.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    /// The function that was measured.
    pub(super) function: String,
    /// What it was measured with.
    pub(super) case: String,
    pub(super) fastest_us: f64,
    pub(super) median_us: f64,
    /// The median of the slowest run; the same as `median_us` where there was one run.
    pub(super) slowest_run_us: f64,
    /// How often memory was asked for, in the median; 0 where divan prints nothing.
    pub(super) allocations: f64,
}

/// The rows of a table of functions that take arguments, in the order of the table.
pub(super) fn read(output: &str) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut function = "";
    let mut label = "";
    for line in output.lines().filter(|line| line.contains('│')) {
        let cells = cells(line);
        let [first, _, median, _, samples, ..] = cells.as_slice() else { continue };
        if median.is_empty() {
            label = first;
            if !label.ends_with(':') {
                function = label;
            }
        } else if let (Some(median_us), false) = (microseconds(median), samples.is_empty()) {
            let Some((case, fastest)) = first.rsplit_once("  ") else { continue };
            let fastest_us = microseconds(fastest).unwrap_or(median_us);
            let (function, case) = (function.to_owned(), case.trim().to_owned());
            let slowest_run_us = median_us;
            rows.push(Row { function, case, fastest_us, median_us, slowest_run_us, allocations: 0.0 });
        } else if label == "alloc:" {
            // The count comes first, the bytes follow.
            label = "";
            if let (Some(row), Some(count)) = (rows.last_mut(), plain(median)) {
                row.allocations = count;
            }
        }
    }
    rows
}

/// Several runs of the same table as one: the middle of the medians, the fastest sample, the slowest median.
pub(super) fn join(runs: &[Vec<Row>]) -> Vec<Row> {
    let Some((first, others)) = runs.split_first() else { return Vec::new() };
    let joined = first.iter().map(|row| {
        let same = |other: &Row| other.function == row.function && other.case == row.case;
        let rows: Vec<&Row> = [row]
            .into_iter()
            .chain(others.iter().filter_map(|run| run.iter().find(|other| same(other))))
            .collect();
        let mut medians: Vec<f64> = rows.iter().map(|row| row.median_us).collect();
        medians.sort_by(f64::total_cmp);
        let middle = medians.get(medians.len() / 2).copied();
        Row {
            fastest_us: rows.iter().map(|row| row.fastest_us).fold(row.fastest_us, f64::min),
            median_us: middle.unwrap_or(row.median_us),
            slowest_run_us: medians.last().copied().unwrap_or(row.median_us),
            ..row.clone()
        }
    });
    joined.collect()
}

fn cells(line: &str) -> Vec<&str> {
    let line = line.trim_start_matches(['│', '├', '╰', '─', ' ']);
    line.split('│').map(str::trim).collect()
}

fn microseconds(text: &str) -> Option<f64> {
    let (number, unit) = text.trim().split_once(' ')?;
    let factor = match unit {
        "ns" => 1e-3,
        "µs" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

fn plain(text: &str) -> Option<f64> {
    let (number, factor) = match text.split_once(' ') {
        None => (text, 1.0),
        Some((number, "K")) => (number, 1e3),
        Some((number, "M")) => (number, 1e6),
        Some(_) => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
Timer precision: 20 ns
prompt                      fastest       │ slowest       │ median        │ mean          │ samples │ iters
├─ build                                  │               │               │               │         │
│  ├─ growth/1000           3.291 µs      │ 17.75 µs      │ 3.331 µs      │ 3.671 µs      │ 100     │ 100
│  │                        max alloc:    │               │               │               │         │
│  │                          14          │ 14            │ 14            │ 14            │         │
│  │                          5.137 KB    │ 5.137 KB      │ 5.137 KB      │ 5.137 KB      │         │
│  │                        alloc:        │               │               │               │         │
│  │                          12          │ 12            │ 12            │ 12            │         │
│  │                          5.137 KB    │ 5.137 KB      │ 5.137 KB      │ 5.137 KB      │         │
│  ╰─ over budget/45713     3.654 ms      │ 6.964 ms      │ 3.76 ms       │ 3.89 ms       │ 100     │ 100
╰─ concatenate                            │               │               │               │         │
   ╰─ growth/1000           55.94 ns      │ 63.3 ns       │ 57.34 ns      │ 57.45 ns      │ 100     │ 6400
";

    fn row(function: &str, case: &str, fastest_us: f64, median_us: f64, allocations: f64) -> Row {
        let (function, case, slowest_run_us) = (function.into(), case.into(), median_us);
        Row { function, case, fastest_us, median_us, slowest_run_us, allocations }
    }

    #[test]
    fn rows_have_their_function_their_case_and_the_median_of_their_allocations() {
        let expected = [
            row("build", "growth/1000", 3.291, 3.331, 12.0),
            row("build", "over budget/45713", 3654.0, 3760.0, 0.0),
            row("concatenate", "growth/1000", 55.94e-3, 57.34e-3, 0.0),
        ];
        assert_eq!(read(OUTPUT), expected);
    }

    #[test]
    fn runs_join_to_the_middle_median_and_keep_their_extremes() {
        let run = |fastest, median| vec![row("build", "a/1", fastest, median, 3.0)];
        let joined = join(&[run(2.0, 9.0), run(1.0, 4.0), run(3.0, 5.0)]);
        let expected = Row { slowest_run_us: 9.0, ..row("build", "a/1", 1.0, 5.0, 3.0) };
        assert_eq!(joined, [expected]);
    }
}
