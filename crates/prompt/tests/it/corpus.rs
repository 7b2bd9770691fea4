//! Runs what the fuzzer has kept: every file of the corpus is a prompt whose account and frames must hold.

use std::fs;
use std::path::Path;

#[path = "../../../../fuzz/checks/layout_rendering/mod.rs"]
mod layout_rendering;

// spec: B-06, B-10, T-01, T-02
#[test]
fn every_prompt_of_the_corpus_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/layout_rendering");
    let mut files = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        layout_rendering::check(&fs::read(path).unwrap());
        files += 1;
    }
    assert!(files >= 20, "{files} files are no corpus");
}
