//! The page in a real browser: `console/tests/*.test.mjs`, driven by Node.

use std::path::Path;
use std::process::Command;

// spec: S-08
#[test]
fn the_page_works_in_a_browser() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let variable = |name: &str, tool: &str| {
        std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set: `./test` sets it, by `{tool}`"))
    };
    let browser = variable("EMBODY_TEST_BROWSER", "tools/browser install target/browser");
    let peers = variable("EMBODY_TEST_PEERS", "tools/mcp-peers install target/mcp-peers");
    let tests = std::env::current_exe().unwrap();
    let scripted = tests.parent().unwrap().parent().unwrap().join("examples/scripted");
    let folder = std::fs::read_dir(here.join("console/tests")).unwrap();
    let files =
        folder.map(|file| file.unwrap().path()).filter(|file| file.to_string_lossy().ends_with(".test.mjs"));
    let output = Command::new(Path::new(&peers).join("bin/node"))
        .args(["--test", "--test-reporter=spec", "--test-concurrency=1"])
        .args(files)
        .env("EMBODY", env!("CARGO_BIN_EXE_embody"))
        .env("EMBODY_SCRIPTED", scripted)
        .env("EMBODY_TEST_BROWSER", browser)
        .output()
        .unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{complained}");
    assert!(said.contains("fail 0") && !said.contains("tests 0"), "{said}");
}
