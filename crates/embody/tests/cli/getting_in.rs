//! Getting in and staying in: `embody open`, sessions that survive a restart, one `up` per workspace, quiet commands, `embody mcp`
//! typed by a person, and `embody run` on a terminal.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::app::{eventually, kill};
use crate::support::model::{Model, WireFormat, rule};
use crate::support::served::{Served, token};
use crate::support::stores::database;
use crate::support::world::{CommandOutput, World, finish};

/// A command in a terminal of its own; its stdin is over. What it prints is `stdout` here, whether to stdout or stderr.
fn in_terminal(world: &World, line: &str) -> Command {
    let alone = world.command();
    let line =
        format!("'{}' --workspace '{}' {line}", alone.get_program().display(), world.workspace().display());
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env_clear();
    command.envs(alone.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn typed(world: &World, line: &str) -> CommandOutput {
    let mut done = finish(in_terminal(world, line));
    done.stdout = done.stdout.replace('\r', "");
    done
}

/// A command as the shell tool of a host runs it.
fn without_terminal(world: &World, arguments: &[&str]) -> CommandOutput {
    let alone = world.command();
    let mut command = Command::new("setsid");
    command.arg("--wait").arg(alone.get_program()).env_clear();
    command.envs(alone.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.arg("--workspace").arg(world.workspace()).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(command)
}

fn code<'a>(link: &'a str, served: &Served) -> &'a str {
    let line = link.lines().find(|line| line.starts_with("http")).unwrap_or_else(|| panic!("{link}"));
    line.strip_prefix(&format!("http://{}/#code=", served.host)).unwrap_or_else(|| panic!("{link}"))
}

fn a_link_works_once(world: &World) {
    let served = Served::start(world);
    for command in ["open", "login"] {
        let printed = typed(world, command).ok().stdout;
        let code = code(&printed, &served);
        assert_ne!(code, served.code);
        let cookie = served.sign_in(code);
        let me = served.ask("GET /api/me", &[("cookie", &cookie)], None).json();
        assert_eq!((&me["user"], &me["is_owner"]), (&json!("owner"), &json!(true)));
        served.ask("POST /api/login", &[], Some(&json!({ "code": code }))).refused(401, "was used already");
    }
    let report: Value = serde_json::from_str(&typed(world, "open --json").ok().stdout).unwrap();
    assert_eq!(report["address"], format!("http://{}", served.host));
    served.sign_in(code(report["url"].as_str().unwrap(), &served));
}

#[test]
fn a_link_of_a_running_up_signs_in_once() {
    a_link_works_once(&World::new());
}

#[test]
fn a_link_of_a_running_up_on_postgres_signs_in_once() {
    a_link_works_once(&World::new().env("EMBODY_STORE__URL", &database()));
}

#[test]
fn without_a_terminal_there_is_no_link() {
    let world = World::new();
    let _served = Served::start(&world);
    for arguments in [&["open"][..], &["open", "--json"], &["open", "--browser"]] {
        let refused = without_terminal(&world, arguments).ended(1);
        assert_eq!(refused.stdout, "");
        refused
            .says(&["error: `embody open` needs a terminal, and stdin is not one", "hint: run it yourself"]);
    }
    // A terminal that does not see the link is not enough.
    let piped = typed(&world, "open | cat").stdout;
    assert!(piped.contains("needs a terminal as its output") && !piped.contains("code="), "{piped}");
}

#[test]
fn open_needs_an_up_on_the_same_store() {
    let world = World::new();
    let refused = typed(&world, "open").ended(1).stdout;
    assert!(refused.contains("`embody up` does not run in the workspace"), "{refused}");
    let served = Served::start(&world);
    let elsewhere = format!("--store sqlite:{} open", world.path("other.db").display());
    let refused = typed(&world, &elsewhere).ended(2).stdout;
    assert!(refused.contains("embody.db`, and this command `") && refused.contains("other.db"), "{refused}");
    assert!(!world.path("other.db").exists());
    kill(served);
    typed(&world, "open").ended(1);
}

#[test]
fn a_browser_gets_the_link() {
    let world = World::new();
    let (browser, opened) = (world.outside("browser"), world.outside("opened"));
    world.file_outside(
        "browser",
        format!("#!/bin/sh\necho \"$2\" > '{0}.new'; mv '{0}.new' '{0}'\n", opened.display()),
    );
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let world = world.env("BROWSER", &format!("'{}' --new-tab", browser.display()));
    let served = Served::start(&world);
    typed(&world, "open --browser").ok();
    let link = eventually("link in the browser", || std::fs::read_to_string(&opened).ok());
    served.sign_in(code(&link, &served));
    let world = world.env("BROWSER", "/no/browser");
    let failed = typed(&world, "open --browser").ended(1).stdout;
    assert!(failed.contains("the browser `/no/browser` cannot be started"), "{failed}");
    served.sign_in(code(&failed, &served));
}

#[test]
fn a_session_survives_a_restart_until_it_is_revoked() {
    let world = World::new();
    let first = Served::start(&world);
    let cookie = first.sign_in(&first.code);
    let (_, secret) = cookie.split_once('=').unwrap();
    let chat = token(&world, "ann", "chat");
    let ann = first.ask("POST /api/login", &[], Some(&json!({ "token": chat })));
    let ann =
        ann.header("set-cookie").unwrap().split(';').next().unwrap().split_once('=').unwrap().1.to_owned();
    kill(first);
    let served = Served::start(&world);
    // Cookies are named by the port, which is another one now.
    let port = served.host.rsplit(':').next().unwrap();
    let me =
        |secret: &str| served.ask("GET /api/me", &[("cookie", &format!("embody-{port}={secret}"))], None);
    assert_eq!(me(secret).json()["is_owner"], true);
    assert_eq!((&me(&ann).json()["user"], &me(&ann).json()["may_operate"]), (&json!("ann"), &json!(false)));
    // The secret of a session is no token, and a token is no session.
    served.get("/api/me", secret).refused(403, "the scope `console`");
    me(&chat).refused(401, "a signed-in browser is required");
    let listed = world.run(&["token", "list", "--json"]).ok().json();
    let sessions: Vec<&Value> =
        listed["tokens"].as_array().unwrap().iter().filter(|one| one["scope"] == "console").collect();
    assert_eq!(sessions.len(), 2, "{listed}");
    let of = |user: &str| sessions.iter().find(|one| one["user"] == user).unwrap()["id"].as_str().unwrap();
    assert!(world.run(&["token", "list"]).ok().stdout.contains("signed in with a link"));
    assert!(!listed.to_string().contains(secret));
    world.run(&["token", "revoke", of("owner")]).ok();
    me(secret).refused(401, "a signed-in browser is required");
    assert_eq!(me(&ann).status, 200);
}

#[test]
fn a_token_of_the_owner_chats_and_decides() {
    let world = World::new();
    let owner = token(&world, "owner", "owner");
    world
        .run(&["token", "add", "--user", "ann", "--scope", "owner"])
        .ended(2)
        .says(&["`--scope owner` is for the owner `owner`, not for `ann`", "hint: "]);
    let served = Served::start(&world);
    for path in ["/api/threads", "/api/approvals", "/api/status", "/api/audit"] {
        assert_eq!(served.get(path, &owner).status, 200, "{path}");
    }
    let me = served.get("/api/me", &owner).json();
    // Calls of other users are decided in the console that was opened with a link.
    assert_eq!(
        (&me["may_chat"], &me["may_operate"], &me["is_owner"]),
        (&json!(true), &json!(true), &json!(false))
    );
    let bearer = format!("Bearer {owner}");
    assert_eq!(served.ask("POST /mcp", &[("authorization", &bearer)], Some(&json!({}))).status, 403);
}

#[test]
fn a_second_up_says_where_the_first_listens() {
    let world = World::new();
    let first = Served::start(&world);
    let pid = format!("(process {})", first.process.id());
    world.run(&["up", "--listen", "127.0.0.1:0"]).ended(1).says(&[
        "error: `embody up` already runs in the workspace",
        &format!("at http://{}", first.host),
        &pid,
        "hint: `embody open`",
    ]);
    assert_eq!(first.ask("GET /healthz", &[], None).status, 200);
    let other = World::new();
    let _elsewhere = Served::start(&other);
    // What a killed process leaves blocks nothing.
    kill(first);
    assert!(world.path("up.lock").exists());
    let _second = Served::start(&world);
}

#[test]
fn commands_are_quiet_and_the_log_file_has_everything() {
    let world = World::with_body("Never send money.\n");
    let quiet = world.run(&["prompt", "show"]).ok();
    assert_eq!(quiet.stderr, "");
    let lines = world.log().len();
    assert!(lines > 0);
    let told = world.run(&["--log", "info", "prompt", "show"]).ok();
    assert!(told.stderr.contains("INFO"), "{}", told.stderr);
    assert_eq!(told.stdout, quiet.stdout);
    assert!(world.log().len() > lines);
}

#[test]
fn up_warns_of_failed_model_requests_and_servers_that_go_away() {
    let world = World::new();
    let rules = json!([rule("hello", 0, json!({"status": 401, "text": ""}))]);
    let model = Model::alone(&world, &rules);
    let body = "[[body]]\nname = \"gone\"\ncommand = [\"sh\", \"-c\", \"exit 3\"]\n";
    world.file("embody.toml", model.config(WireFormat::OpenAi) + body);
    let chat = token(&world, "owner", "chat");
    let mut command = world.command();
    command.arg("--workspace").arg(world.workspace()).args(["up", "--listen", "127.0.0.1:0"]);
    let mut up = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(up.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let host = line.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let bearer = [("authorization", &*format!("Bearer {chat}"))];
    let events =
        crate::support::served::begin(host, "POST /api/chat", &bearer, Some(&json!({"text": "hello"})))
            .events();
    assert_eq!(events.last().unwrap().name, "failed");
    let warned = |words: &str| {
        let is_it =
            |line: &Value| line["level"] == "WARN" && line["message"].as_str().unwrap().contains(words);
        eventually(words, || world.log().into_iter().find(is_it))
    };
    let failed = warned("a request to the model failed");
    assert!(failed["reason"].as_str().unwrap().contains("does not accept"), "{failed}");
    assert_eq!((&failed["attempts"], &failed["retry_after_ms"]), (&json!(1), &Value::Null));
    assert_eq!(warned("the server is unavailable")["upstream"], "gone");
    up.kill().unwrap();
    let mut stderr = String::new();
    up.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    up.wait().unwrap();
    assert!(stderr.contains("a request to the model failed"), "{stderr}");
}

#[test]
fn mcp_in_a_terminal_says_what_it_is_for() {
    let world = World::new();
    let told = typed(&world, "mcp --agent coach").ok().stdout;
    for words in [
        "is started by an MCP host",
        &format!(
            "claude mcp add embody -- embody mcp --workspace {} --agent coach",
            world.workspace().display()
        ),
        "[mcp_servers.embody]",
        "~/.gemini/settings.json",
        "\"mcpServers\":{\"embody\":{",
        "\"servers\":{\"embody\":{",
    ] {
        assert!(told.contains(words), "no {words:?} in {told}");
    }
    // A host gives it a pipe.
    let quiet = world.run(&["mcp"]).ok();
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
}

#[test]
fn a_database_server_that_refuses_is_told_at_once_and_once() {
    let world = World::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("postgres://me:hunter22@127.0.0.1:{port}/x");
    let began = Instant::now();
    let done = world.run(&["--store", &url, "memory", "list", "--user", "ann", "--agent", "coach"]).ended(1);
    // Trying again until the limit takes ten seconds each time.
    assert!(began.elapsed() < Duration::from_secs(8));
    assert_eq!(done.stderr.matches("error:").count(), 1, "{}", done.stderr);
    assert!(!done.stderr.contains("hunter22"), "{}", done.stderr);
    done.says(&["cannot be opened", "refused", "hint: check that it runs"]);
}

#[test]
fn unknown_identity_fields_are_refused_and_known_ones_merge() {
    let world = World::new();
    let set = |identity: &str| world.run(&["agent", "set", "coach", "--identity", identity]);
    set(r#"{"nmae": "Ada"}"#)
        .ended(2)
        .says(&["error: unknown identity field `nmae`", "hint: did you mean `name`?"]);
    set(r#"{"favourite_colour": "red"}"#)
        .ended(2)
        .says(&["`favourite_colour`", "hint: the fields are name, emoji, creature, vibe, description"]);
    set(r#"{"name": 7}"#).ended(2).says(&["error: the identity field `name` is not text"]);
    set(r#"{"name": "Ada", "vibe": "calm"}"#).ok();
    set(r#"{"vibe": "brisk"}"#).ok();
    let identity = || world.run(&["agent", "show", "coach", "--json"]).ok().json()["identity"].clone();
    assert_eq!(identity(), json!({"name": "Ada", "vibe": "brisk"}));
    set(r#"{"vibe": null}"#).ok();
    assert_eq!(identity(), json!({"name": "Ada"}));
}

#[test]
fn a_slip_in_a_name_is_legal_and_gives_a_hint() {
    let world = World::new();
    world.run(&["agent", "set", "coach", "--identity", r#"{"name": "Ada"}"#]).ok();
    world.file("agents/writer/SOUL.md", "I write.");
    let show = |arguments: &[&str]| {
        world.run(&[&["prompt", "show", "--layout", "channel"], arguments].concat()).ok().stderr
    };
    for (arguments, hint) in [
        (["--agent", "coahc"], "hint: the agent `coahc` is new; did you mean `coach`?\n"),
        (["--agent", "wirter"], "hint: the agent `wirter` is new; did you mean `writer`?\n"),
        (["--agent", "asistant"], "hint: the agent `asistant` is new; did you mean `assistant`?\n"),
        (["--channel", "telegarm"], "hint: the channel `telegarm` is new; did you mean `telegram`?\n"),
        (["--agent", "coach"], ""),
        (["--agent", "gardener"], ""),
        (["--channel", "web"], ""),
        (["--channel", "matrix"], ""),
    ] {
        let told: String = show(&arguments)
            .lines()
            .filter(|line| line.starts_with("hint:"))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(told, hint, "{arguments:?}");
    }
}

/// A model that answers one request, and never ends its answer by itself.
struct OpenEnded {
    /// Lets it continue after its first words.
    go: Sender<()>,
    /// How long the client kept the answer open after the end of the reply.
    closed: Receiver<Duration>,
}

impl OpenEnded {
    fn start(world: &World) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        world.file("embody.toml", format!("[model]\nbase_url = \"{url}\"\nmodel = \"m\"\n"));
        let ((go, continued), (report, closed)) = (channel(), channel());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            read_request(&stream);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n").unwrap();
            let mut send = |data: Value| write!(stream, "data: {data}\n\n").unwrap();
            send(json!({"choices": [{"delta": {"content": "Good "}}]}));
            continued.recv().unwrap();
            send(json!({"choices": [{"delta": {"content": "morning."}, "finish_reason": "stop"}]}));
            send(json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}));
            let ended = Instant::now();
            let _ = stream.read(&mut [0]);
            report.send(ended.elapsed()).unwrap();
        });
        Self { go, closed }
    }
}

fn read_request(stream: &TcpStream) {
    let (mut reader, mut length, mut line) = (BufReader::new(stream), 0, String::new());
    while reader.read_line(&mut line).unwrap() > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
}

#[test]
fn run_ends_when_the_model_has_finished() {
    let world = World::new();
    let model = OpenEnded::start(&world);
    model.go.send(()).unwrap();
    let done = world.run(&["run", "--json", "hello"]).ok().json();
    assert_eq!((&done["reply"], &done["usage"]["output"]), (&json!("Good morning."), &json!(2)));
    let kept = model.closed.recv().unwrap();
    assert!(kept < Duration::from_millis(1500), "the answer was kept open for {kept:?}");
}

#[test]
fn run_shows_the_reply_on_a_terminal_as_it_comes() {
    let world = World::new();
    let model = OpenEnded::start(&world);
    let mut run: Child = in_terminal(&world, "run hello 2>/dev/null").spawn().unwrap();
    let mut stdout = run.stdout.take().unwrap();
    let (mut shown, mut bytes) = (String::new(), [0; 64]);
    while !shown.contains("Good ") {
        let read = stdout.read(&mut bytes).unwrap();
        assert!(read > 0, "it ended with {shown:?}");
        shown.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
    }
    // The model has not said the rest yet.
    model.go.send(()).unwrap();
    stdout.read_to_string(&mut shown).unwrap();
    assert!(run.wait().unwrap().success());
    assert_eq!(shown.replace('\r', "").trim_start_matches("^D\u{8}\u{8}"), "Good morning.\n");
}
