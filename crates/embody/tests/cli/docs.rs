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

// spec: N-17
#[test]
fn the_example_for_hosts_is_strict_json_that_starts_the_broker() {
    let example: serde_json::Value =
        serde_json::from_str(include_str!("../../../../.mcp.json.example")).unwrap();
    let members: Vec<&String> = example.as_object().unwrap().keys().collect();
    assert_eq!(members, ["mcpServers", "note"]);
    assert!(example["note"].is_string());
    assert_eq!(example["mcpServers"]["embody"], serde_json::json!({"command": "embody", "args": ["mcp"]}));
}

// spec: N-17
#[test]
fn the_design_page_has_the_required_statements() {
    let page = include_str!("../../../../docs/architecture/DESIGN-mind-body-nervous-system.md");
    for heading in
        ["Problem", "Goal", "Non-goals", "Responsibilities", "Trust boundaries", "Degraded modes", "Scope"]
    {
        assert!(page.contains(&format!("\n## {heading}\n")), "{heading}");
    }
}
