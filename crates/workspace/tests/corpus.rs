//! Runs what the fuzzers have kept: every file of the corpora is a body or a file with front matter that must hold.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may fail loudly"
)]

use std::fs;
use std::path::Path;

#[path = "../../../fuzz/checks/frontmatter.rs"]
mod frontmatter;
#[path = "../../../fuzz/checks/include_expansion.rs"]
mod include_expansion;

// spec: B-02, B-03, B-04
#[test]
fn every_body_of_the_corpus_holds() {
    run("include_expansion", include_expansion::check);
}

// spec: P-02, P-03
#[test]
fn every_front_matter_of_the_corpus_holds() {
    run("frontmatter", frontmatter::check);
}

fn run(corpus: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(corpus);
    let mut files = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        check(&fs::read(path).unwrap());
        files += 1;
    }
    assert!(files >= 20, "{files} files are no corpus");
}
