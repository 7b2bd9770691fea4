//! Replays the fuzzing corpus: each file is the output of an upstream server while calls are running.

use std::fs;
use std::path::Path;

#[path = "../../../../fuzz/checks/upstream/mod.rs"]
mod upstream;

// spec: N-13
#[test]
fn every_server_of_the_corpus_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/upstream");
    let mut files = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        upstream::check(&fs::read(path).unwrap());
        files += 1;
    }
    assert!(files >= 20, "{files} files are no corpus");
}
