//! The generated pages are what the program would write today.

use std::process::Command;

fn page(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_embody"))
        .args(["--workspace", "nowhere"])
        .args(args)
        .env_clear()
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_command_line_page_is_fresh() {
    assert!(
        page(&["man", "--markdown"]) == include_str!("../../../../docs/cli.md"),
        "run `cargo xtask docs`"
    );
}

#[test]
fn the_configuration_page_is_fresh() {
    assert!(
        page(&["config", "reference"]) == include_str!("../../../../docs/config.md"),
        "run `cargo xtask docs`"
    );
}
