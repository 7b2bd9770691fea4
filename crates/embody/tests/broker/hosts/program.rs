//! The hosts that `tools/hosts` installs, each run with one MCP entry, a scripted model and a home of its own.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::model::Model;
use crate::support::world::World;

/// The limit of one run, for a busy machine.
const RUN_TIMEOUT: Duration = Duration::from_secs(150);
const PROMPT: &str = "Send the parcel.";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    Codex,
    Opencode,
    Claude,
    Gemini,
}

/// The one entry.
#[derive(Debug, Clone)]
pub(super) enum Entry {
    Command(Vec<String>),
    Http { url: String, token: String },
}

impl Program {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::Claude => "claude",
            Self::Gemini => "gemini",
        }
    }

    fn path(self) -> PathBuf {
        let hosts = std::env::var_os("EMBODY_TEST_HOSTS").expect(
            "EMBODY_TEST_HOSTS is not set: run ./test, or \
             EMBODY_TEST_HOSTS=$(tools/hosts install target/hosts) cargo nextest run",
        );
        let program = PathBuf::from(hosts).join("bin").join(self.name());
        assert!(program.exists(), "`{}` is missing: run `tools/hosts install`", program.display());
        program
    }

    /// Runs it to its end with one prompt; returns its output.
    pub(super) fn run(self, world: &World, model: &Model, entry: &Entry) -> String {
        for folder in ["host/work", "host/tmp"] {
            fs::create_dir_all(world.outside(folder)).unwrap();
        }
        let mut command = Command::new(self.path());
        let home = world.outside("host");
        command
            .env_clear()
            .envs([("PATH", "/usr/bin:/bin"), ("TERM", "dumb"), ("LANG", "C.UTF-8"), ("NO_COLOR", "1")])
            .env("HOME", &home)
            .env("TMPDIR", home.join("tmp"))
            .current_dir(home.join("work"));
        match self {
            Self::Codex => codex(world, model, entry, &mut command),
            Self::Opencode => opencode(world, model, entry, &mut command),
            Self::Claude => claude(world, model, entry, &mut command),
            Self::Gemini => gemini(world, model, entry, &mut command),
        }
        let (output, errors) = (home.join("output"), home.join("errors"));
        command.stdin(Stdio::null());
        command.stdout(File::create(&output).unwrap()).stderr(File::create(&errors).unwrap());
        let mut group = Group(command.process_group(0).spawn().unwrap());
        let deadline = Instant::now() + RUN_TIMEOUT;
        let status = loop {
            if let Some(status) = group.0.try_wait().unwrap() {
                break Some(status);
            }
            if Instant::now() > deadline {
                break None;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let read = |path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        let (output, errors) = (read(output), read(errors));
        assert!(status.is_some_and(|status| status.success()), "{status:?}\n{output}\n{errors}");
        output
    }
}

fn codex(world: &World, model: &Model, entry: &Entry, command: &mut Command) {
    let text = |text: &str| Value::from(text).to_string();
    let entry = match entry {
        Entry::Command(words) => {
            format!("command = {}\nargs = {}\n", text(&words[0]), Value::from(&words[1..]))
        }
        Entry::Http { url, token } => {
            command.env("EMBODY_TOKEN", token);
            format!("url = {}\nbearer_token_env_var = \"EMBODY_TOKEN\"\n", text(url))
        }
    };
    let config = format!(
        "model = \"scripted\"\nmodel_provider = \"scripted\"\napproval_policy = \"never\"\nsandbox_mode = \"read-only\"\n\
         check_for_update_on_startup = false\n[analytics]\nenabled = false\n[feedback]\nenabled = false\n\
         [model_providers.scripted]\nname = \"scripted\"\nbase_url = {}\nenv_key = \"MODEL_KEY\"\nwire_api = \"responses\"\n\
         request_max_retries = 0\nstream_max_retries = 0\nsupports_websockets = false\n\
         [mcp_servers.embody]\n{entry}startup_timeout_sec = 30\ntool_timeout_sec = 60\nrequired = true\n\
         default_tools_approval_mode = \"approve\"\n",
        text(&model.url())
    );
    world.file_outside("host/.codex/config.toml", config);
    command.env("CODEX_HOME", world.outside("host/.codex")).env("MODEL_KEY", "none");
    command.args(["exec", "--skip-git-repo-check", "--json", PROMPT]);
}

fn opencode(world: &World, model: &Model, entry: &Entry, command: &mut Command) {
    let entry = match entry {
        Entry::Command(words) => json!({"type": "local", "command": words, "enabled": true}),
        Entry::Http { url, token } => json!({
            "type": "remote",
            "url": url,
            "enabled": true,
            "oauth": false,
            "headers": {"Authorization": format!("Bearer {token}")},
        }),
    };
    let limit = json!({"context": 200_000, "output": 8000});
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible",
        "name": "scripted",
        "options": {"baseURL": model.url(), "apiKey": "none"},
        "models": {"scripted": {"name": "scripted", "tool_call": true, "limit": limit}},
    });
    let config = json!({
        "autoupdate": false,
        "share": "disabled",
        "model": "scripted/scripted",
        "small_model": "scripted/scripted",
        "enabled_providers": ["scripted"],
        "provider": {"scripted": provider},
        "permission": "allow",
        "mcp": {"embody": entry},
    });
    world.file_outside("host/.config/opencode/opencode.json", config.to_string());
    for what in ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE"] {
        command.env(format!("OPENCODE_DISABLE_{what}"), "1");
    }
    command.args(["run", PROMPT]);
}

fn claude(world: &World, model: &Model, entry: &Entry, command: &mut Command) {
    let entry = match entry {
        Entry::Command(words) => json!({"type": "stdio", "command": words[0], "args": words[1..]}),
        Entry::Http { url, token } => {
            json!({"type": "http", "url": url, "headers": {"Authorization": format!("Bearer {token}")}})
        }
    };
    world.file_outside("host/mcp.json", json!({"mcpServers": {"embody": entry}}).to_string());
    command
        .env("CLAUDE_CONFIG_DIR", world.outside("host/.claude"))
        .env("ANTHROPIC_BASE_URL", model.origin())
        .envs([("ANTHROPIC_API_KEY", "none"), ("ANTHROPIC_MODEL", "claude-sonnet-4-5")])
        .envs([("ANTHROPIC_SMALL_FAST_MODEL", "claude-haiku-4-5")])
        .envs([("MCP_TIMEOUT", "30000"), ("MCP_TOOL_TIMEOUT", "60000")])
        // All tools are in the first request, as with few tools; otherwise the model would have to search for them.
        .env("ENABLE_TOOL_SEARCH", "false");
    for what in [
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_AUTOUPDATER",
        "DISABLE_TELEMETRY",
        "DISABLE_ERROR_REPORTING",
    ] {
        command.env(what, "1");
    }
    command.args([
        "-p",
        PROMPT,
        "--strict-mcp-config",
        "--setting-sources",
        "",
        "--allowedTools",
        "mcp__embody",
    ]);
    command.args(["--output-format", "stream-json", "--verbose", "--mcp-config"]);
    command.arg(world.outside("host/mcp.json"));
}

fn gemini(world: &World, model: &Model, entry: &Entry, command: &mut Command) {
    let entry = match entry {
        Entry::Command(words) => json!({"command": words[0], "args": words[1..], "trust": true}),
        Entry::Http { url, token } => {
            json!({"httpUrl": url, "headers": {"Authorization": format!("Bearer {token}")}, "trust": true})
        }
    };
    let settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
        "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
        "mcpServers": {"embody": entry},
    });
    world.file_outside("host/.gemini/settings.json", settings.to_string());
    command.env("GOOGLE_GEMINI_BASE_URL", model.origin()).envs([
        ("GEMINI_API_KEY", "none"),
        ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
        ("GEMINI_TELEMETRY_ENABLED", "false"),
        // It would start itself a second time.
        ("GEMINI_CLI_NO_RELAUNCH", "true"),
    ]);
    command.args(["-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-o", "json", "-p", PROMPT]);
}

/// A process and what it has started; ends them all.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-s", "KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.0.wait();
    }
}
