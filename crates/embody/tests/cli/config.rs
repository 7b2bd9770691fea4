//! `embody config show|check|schema`: what is printed where, and the exit codes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn embody(workspace: &Path, arguments: &[&str], env: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_embody"))
        .env_clear()
        .envs(env.iter().copied())
        .arg("--workspace")
        .arg(workspace)
        .args(arguments)
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

#[test]
fn show_names_value_and_origin() {
    let workspace = tempfile::tempdir().unwrap();
    let file = workspace.path().join("embody.toml");
    fs::write(&file, "[store]\nurl = \"postgres://u:hunter2@db/x?y=hunter2\"\n").unwrap();
    let env = [("EMBODY_PROMPT__LAYOUT", "full")];

    let output = embody(workspace.path(), &["config", "show"], &env);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let line = |key: &str| stdout(&output).lines().find(|line| line.starts_with(key)).unwrap().to_owned();
    assert!(line("prompt.layout ").ends_with("env EMBODY_PROMPT__LAYOUT"));
    assert!(line("store.url ").contains("\"postgres://***@db/x?***\""));
    assert!(line("store.url ").ends_with(&format!("file {}:2", file.display())));
    assert!(line("prompt.budget_tokens ").ends_with("default"));
    assert!(!stdout(&output).contains("hunter2"));

    let output = embody(workspace.path(), &["config", "show", "--json"], &env);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let keys = json["keys"].as_array().unwrap();
    let layout = keys.iter().find(|key| key["key"] == "prompt.layout").unwrap();
    assert_eq!(layout["value"], "full");
    assert_eq!(layout["origin"], "env");
    assert_eq!(layout["source"], "EMBODY_PROMPT__LAYOUT");
    assert!(!stdout(&output).contains("hunter2"));
}

#[test]
fn show_keeps_one_line_for_each_key() {
    let workspace = tempfile::tempdir().unwrap();
    let text = "[[policy.rule]]\ntools = [\"x\"]\ngate = \"ask\"\nreason = \"one\\ntwo\\u001b\\u202e\"\n";
    fs::write(workspace.path().join("embody.toml"), text).unwrap();
    let output = embody(workspace.path(), &["config", "show"], &[]);
    for line in stdout(&output).lines() {
        assert!(line.contains("  default") || line.contains("  file "), "{line}");
    }
    assert!(!stdout(&output).contains(['\u{1b}', '\u{202e}']));
}

#[test]
fn config_check_names_the_file() {
    let workspace = tempfile::tempdir().unwrap();
    let output = embody(workspace.path(), &["config", "check"], &[]);
    let file = workspace.path().join("embody.toml");
    let none = format!("ok: {} does not exist; the defaults are used\n", file.display());
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), none.as_str()));

    fs::write(&file, "").unwrap();
    let output = embody(workspace.path(), &["config", "check"], &[]);
    assert_eq!(stdout(&output), format!("ok: {}\n", file.display()));

    let output = embody(workspace.path(), &["--json", "config", "check"], &[]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["ok"], true);
    assert_eq!(json["file"], file.display().to_string());
}

#[test]
fn problems_exit_with_2_and_name_file_and_key() {
    let workspace = tempfile::tempdir().unwrap();
    let file = workspace.path().join("embody.toml");
    fs::write(&file, "[prompt]\nlayout = \"ful\"\n").unwrap();
    for command in [["config", "check"], ["config", "show"]] {
        let output = embody(workspace.path(), &command, &[]);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""));
        let expected = format!("error: {}:2: `prompt.layout` is `ful`", file.display());
        assert!(stderr(&output).starts_with(&expected), "{}", stderr(&output));
        assert!(stderr(&output).contains("\nhint: did you mean `full`"), "{}", stderr(&output));
    }
    let output = embody(workspace.path(), &["config", "check", "--json"], &[]);
    assert_eq!(output.status.code(), Some(2));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["ok"], false);
    assert_eq!(json["problems"][0]["key"], "prompt.layout");
    assert_eq!(json["problems"][0]["source"], format!("{}:2", file.display()));
}

#[test]
fn config_flag_must_name_a_file() {
    let workspace = tempfile::tempdir().unwrap();
    let output = embody(workspace.path(), &["--config", "nowhere.toml", "config", "check"], &[]);
    assert_eq!(output.status.code(), Some(2));
    let expected = "error: the configuration file `nowhere.toml` does not exist\n";
    assert!(stderr(&output).starts_with(expected), "{}", stderr(&output));
}

#[test]
fn schema_is_a_json_schema_even_with_a_broken_file() {
    let workspace = tempfile::tempdir().unwrap();
    fs::write(workspace.path().join("embody.toml"), "=").unwrap();
    let output = embody(workspace.path(), &["config", "schema"], &[]);
    assert_eq!(output.status.code(), Some(0));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(json["properties"]["prompt"]["properties"]["layout"]["default"], "channel");
}

#[cfg(unix)]
#[test]
fn a_path_that_is_not_utf8_is_shown_as_well_as_can_be() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join(OsStr::from_bytes(b"w\xff"));
    fs::create_dir(&workspace).unwrap();
    fs::write(workspace.join("embody.toml"), "[log]\nlevel = \"warn\"\n").unwrap();
    for arguments in [&["config", "show", "--json"][..], &["config", "show"], &["config", "check", "--json"]]
    {
        let output = embody(&workspace, arguments, &[]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stdout(&output).contains("w\u{fffd}"));
    }
}
