//! Runs what the fuzzers have kept: every file of the corpora is a host before a broker, or a state that one brings back.

use std::fs;
use std::path::Path;

#[path = "../../../../fuzz/checks/face/mod.rs"]
mod face;
#[path = "../../../../fuzz/checks/request_state.rs"]
mod request_state;

#[test]
fn every_host_of_the_corpus_is_answered() {
    run("face", face::check);
    face::finish();
}

// spec: N-10
#[test]
fn every_state_of_the_corpus_is_judged() {
    run("request_state", request_state::check);
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
