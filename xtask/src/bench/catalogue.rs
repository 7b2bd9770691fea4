//! `docs/benchmarks-catalogue.md`: what many tools cost a model, what the search saves, and whether it finds what is asked for.

use std::fmt::Write as _;
use std::path::Path;

use super::{cargo, write};

const PAGE: &str = "docs/benchmarks-catalogue.md";

/// Measures, and writes the page.
pub(super) fn run() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    cargo(root, &["build", "--release", "--package", "embody-broker", "--example", "unruly"])?;
    let output = cargo(root, &["bench", "--package", "embody", "--bench", "catalogue"])?;
    write(root, PAGE, &page(&output).ok_or("the benchmark printed no rows")?)
}

/// Lines of cells between tabs; others are not ours.
fn page(output: &str) -> Option<String> {
    let (mut sizes, mut found) = (Vec::new(), Vec::new());
    for line in output.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        match cells.as_slice() {
            ["size", rest @ ..] => {
                sizes.push(rest.iter().map(|cell| cell.parse::<f64>()).collect::<Result<Vec<_>, _>>().ok()?);
            }
            ["found", size, kind, asked, first, among] => {
                let number = |cell: &str| cell.parse::<f64>();
                let (asked, first, among) = (number(asked).ok()?, number(first).ok()?, number(among).ok()?);
                found.push((*size, *kind, asked, first, among));
            }
            _ => {}
        }
    }
    if sizes.is_empty() {
        return None;
    }
    let mut out = String::from(HEAD);
    for size in &sizes {
        let [tools, whole, short, result, ..] = size.as_slice() else { return None };
        let saved = 100.0 * (1.0 - (short + result) / whole);
        let saved = if short < whole { format!("{saved:.0} %") } else { "-".to_owned() };
        let _ = writeln!(out, "| {tools} | {whole} | {short} | {result} | {saved} |");
    }
    out.push_str(FOUND);
    for (size, kind, asked, first, among) in &found {
        let percent = |hits: &f64| 100.0 * hits / asked;
        let _ = writeln!(
            out,
            "| {size} | {kind} | {asked} | {:.0} % | {:.0} % |",
            percent(first),
            percent(among)
        );
    }
    out.push_str(TIMES);
    for size in &sizes {
        let [tools, _, _, _, first, again, whole, short, first_find, find] = size.as_slice() else {
            return None;
        };
        let _ = writeln!(
            out,
            "| {tools} | {first:.0} | {again:.0} | {whole:.1} | {short:.1} | {first_find:.1} | {find:.1} |"
        );
    }
    Some(out)
}

const HEAD: &str = "# Benchmarks: large catalogues\n\n\
    Written by `cargo xtask bench catalogue`; the numbers are those of the machine it last ran on. Run it on yours.\n\n\
    `embody mcp` in front of one body with so many tools. The first 86 are definitions of well-known servers (those among\n\
    the tests of definitions), the others are made: what 62 services do with what they keep, each with a schema of its own.\n\n\
    ## Tokens\n\n\
    Counted with `o200k_base` over the result of `tools/list`, the tools of the broker, the mind and the embedded body\n\
    included. *Short* is the list with `find_tools` in place of what is not listed (`tools.max_listed`, 100 unless you say\n\
    otherwise), *a search* is one result of it with up to five tools and their schemas, on average. *Saved* is what a model\n\
    that needs one search has less in front of it; the list stands in every request that the host makes, a result in those\n\
    after it.\n\n\
    | tools of the body | whole list | short list | a search | saved |\n|---:|---:|---:|---:|---:|\n";
const FOUND: &str = "\n## What is found\n\n\
    Questions *by hand* are those that a model might ask for the tools of well-known servers. *In other words* are made for\n\
    the other tools, with verbs that those do not use. The same question is asked of larger and larger catalogues.\n\n\
    | tools of the body | questions | asked | the right tool is first | among the first five |\n|---:|---|---:|---:|---:|\n";
const TIMES: &str = "\n## Time\n\n\
    In milliseconds, over stdio. *First sight* is a session from its start to its list when every tool is new and has to be\n\
    pinned, *later* one that finds them pinned; both with the start of all processes. Lists are medians, and so is *a search*;\n\
    the first one reads all definitions, once for all sessions.\n\n\
    | tools of the body | first sight | later | whole list | short list | first search | a search |\n\
    |---:|---:|---:|---:|---:|---:|---:|\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_a_page() {
        let output = "noise\nsize\t10\t3000\t3000\t400\t90\t80\t1\t1\t2\t1\nfound\t10\tby hand\t4\t3\t4\n\
                      size\t500\t100000\t9000\t1000\t900\t300\t20.25\t3\t40\t5.5\n";
        let page = page(output).unwrap_or_default();
        for row in [
            "| 10 | 3000 | 3000 | 400 | - |",
            "| 500 | 100000 | 9000 | 1000 | 90 % |",
            "| 10 | by hand | 4 | 75 % | 100 % |",
            "| 500 | 900 | 300 | 20.2 | 3.0 | 40.0 | 5.5 |",
        ] {
            assert!(page.contains(row), "{row}: {page}");
        }
        assert_eq!(super::page("noise"), None);
    }
}
