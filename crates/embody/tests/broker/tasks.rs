//! Calls that become tasks, for hosts of the stateless era: the fixture behind the broker, over HTTP, with real tokens.

mod hostile_server;

use std::process::Command;

use serde_json::{Value, json};

use super::conformance::{READS, fixture};
use super::host::Reply;
use super::setup::{body, broker, decision, host, remote_body};
use super::unruly::Mind;
use crate::peers::{Era, Listening, Target, inspect};
use crate::support::app::eventually;
use crate::support::served::{Reading, begin, token};
use crate::support::world::World;

const TASKS: &str = "io.modelcontextprotocol/tasks";
/// One call waits a moment only; the approval itself lives long.
const SHORT_WAIT: &str = "[policy]\nask_wait_s = 1\nask_timeout_s = 300\n";

/// A broker before the fixture.
struct Scene {
    world: World,
    server: Listening,
    /// The fixture, if it is no process of the broker's.
    _remote: Option<Listening>,
}

const EVERYONE: &str = "users = \"all\"";

/// Where the fixture is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backend {
    Process,
    Remote,
}

impl Scene {
    fn new(backend: Backend, parts: &[&str]) -> Self {
        Self::of("stateless", backend, parts, |_| {})
    }

    fn of(era: &str, backend: Backend, parts: &[&str], prepare: impl Fn(&World)) -> Self {
        let world = World::with_body("Be honest. The rules of the house.");
        let words = fixture(era);
        let (remote, fixture) = match backend {
            Backend::Process => (None, body("fixture", &words, EVERYONE)),
            Backend::Remote => {
                let [program, flag, era] = words;
                let remote =
                    Listening::start(Command::new(program).args([&flag, &era, "--listen", "127.0.0.1:0"]));
                let body = remote_body("fixture", &remote.url, EVERYONE);
                (Some(remote), body)
            }
        };
        world.file("embody.toml", format!("{}{fixture}", parts.concat()));
        prepare(&world);
        let server = serve(&world);
        Self { world, server, _remote: remote }
    }

    /// Ends the broker as nothing can prepare for, and starts another in its place.
    fn restart(&mut self) {
        self.server = serve(&self.world);
    }

    fn user(&self, name: &str) -> User<'_> {
        User { scene: self, token: token(&self.world, name, "mcp") }
    }
}

fn serve(world: &World) -> Listening {
    Listening::start(broker(world).args(["--listen", "127.0.0.1:0"]))
}

/// A host of the stateless era, with the token of one user.
struct User<'a> {
    scene: &'a Scene,
    token: String,
}

/// What a host that knows tasks can do besides.
fn can(more: Value) -> Value {
    let mut capabilities = more;
    capabilities["extensions"] = json!({TASKS: {}});
    capabilities
}

impl User<'_> {
    fn begin(&self, method: &str, params: &Value, capabilities: &Value) -> Reading {
        let mut params = params.clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
            "io.modelcontextprotocol/clientInfo": {"name": "host", "version": "1"},
        });
        let name = params["taskId"].as_str().or(params["name"].as_str()).unwrap_or_default().to_owned();
        let bearer = format!("Bearer {}", self.token);
        let headers = [
            ("authorization", &*bearer),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
            ("mcp-name", &name),
        ];
        let host = self.scene.server.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        begin(host, "POST /mcp", &headers, Some(&message))
    }

    fn ask(&self, method: &str, params: &Value, capabilities: &Value) -> Value {
        let mut reading = self.begin(method, params, capabilities);
        if !reading.is_events() {
            return reading.whole().json();
        }
        let mut last = Value::Null;
        while let Some(message) = reading.message() {
            last = message;
        }
        last
    }

    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = self.ask("tools/call", &params, &can(json!({"elicitation": {}})));
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// The id of the task that a call became.
    fn task(&self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!((&result["resultType"], result.get("content")), (&json!("task"), None), "{result}");
        result["taskId"].as_str().unwrap().to_owned()
    }

    fn about(&self, method: &str, params: &Value) -> Value {
        self.ask(method, params, &can(json!({"elicitation": {}})))
    }

    fn get(&self, task: &str) -> Value {
        self.about("tasks/get", &json!({ "taskId": task }))
    }

    /// How a task is, once it is like this.
    fn once(&self, task: &str, status: &str) -> Value {
        eventually(status, || {
            let state = self.get(task)["result"].clone();
            assert_eq!(state["taskId"], task, "{state}");
            (state["status"] == status).then_some(state)
        })
    }

    fn refuses(&self, method: &str, task: &str) -> String {
        let params = json!({"taskId": task, "inputResponses": {}});
        let answer = self.about(method, &params);
        assert_eq!(answer["error"]["code"], -32602, "{method} of {task}: {answer}");
        answer["error"]["message"].as_str().unwrap().to_owned()
    }
}

// spec: N-09, N-10
#[test]
fn what_destroys_is_approved_before_it_becomes_a_task() {
    let scene = Scene::new(Backend::Process, &[SHORT_WAIT]);
    let ann = scene.user("ann");
    let file = json!({"filename": "all.txt"});
    assert_eq!(decision(&ann.call("test_task_that_destroys", &file)), "bounce");
    let pending = ann.call("test_task_that_destroys", &file);
    assert_eq!(decision(&pending), "pending", "{pending}");
    let approval = pending["_meta"]["embody/decision"]["approval_id"].as_str().unwrap().to_owned();
    scene.world.run(&["approvals", "approve", &approval]).ok();
    let task = ann.task("test_task_that_destroys", &file);
    // It is recorded as done: the server continues it by itself.
    let outcomes = || on_record(&scene, "outcome");
    let outcome = eventually("the outcome on record", || outcomes().pop());
    assert_eq!(outcome["detail"]["outcome"], "done", "{outcome}");
    assert!(outcome.to_string().contains("as the task"), "{outcome}");
    // Its requests name the server and are not approvals.
    let asks = ann.once(&task, "input_required");
    let (key, question) = asks["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let message = question["params"]["message"].as_str().unwrap();
    assert_eq!(message, "`fixture` asks (this is not an approval): Delete `all.txt`?");
    let answers = json!({key.as_str(): {"action": "accept", "content": {"confirm": true}}});
    let taken = ann.about("tasks/update", &json!({"taskId": task, "inputResponses": answers}));
    assert_eq!(taken["result"]["resultType"], "complete", "{taken}");
    let done = ann.once(&task, "completed");
    assert_eq!(done["result"]["content"][0]["text"], "Deleted `all.txt`");
    // So is how it ended, once, under the same call.
    ann.get(&task);
    let ended = eventually("the end on record", || outcomes().into_iter().nth(1));
    assert_eq!(ended["detail"]["call_id"], outcome["detail"]["call_id"], "{ended}");
    assert!(ended.to_string().contains("the task has completed"), "{ended}");
    // The approval was for one call.
    assert_eq!(decision(&ann.call("test_task_that_destroys", &file)), "pending");
    assert_eq!(outcomes().len(), 2);
}

/// A rule that makes the fixture's tasks writes without approval.
const WRITES: &str = "[[policy.rule]]\ntools = [\"*\"]\nclass = \"write\"\ngate = \"allow\"\n";

/// What is on record, of this kind.
fn on_record(scene: &Scene, event: &str) -> Vec<Value> {
    let exported = scene.world.run(&["audit", "export"]).ok().stdout;
    let records = exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.filter(|record| record["event"] == event).collect()
}

// spec: N-14
#[test]
fn the_unknown_outcome_of_a_cancelled_task_is_recorded_with_its_reason() {
    let scene = Scene::new(Backend::Process, &[WRITES]);
    let ann = scene.user("ann");
    let work = json!({"seconds": 60});
    assert_eq!(decision(&ann.call("slow_compute", &work)), "bounce");
    let task = ann.task("slow_compute", &work);
    ann.about("tasks/cancel", &json!({"taskId": task}));
    ann.once(&task, "cancelled");
    let ended = eventually("the end on record", || on_record(&scene, "outcome").into_iter().nth(1));
    assert_eq!(ended["detail"]["outcome"], "unknown", "{ended}");
    let words = ended["detail"]["detail"].as_str().unwrap();
    assert!(words.contains("the host cancelled the task"), "{words}");
    assert!(words.contains("its server reports it as cancelled"), "{words}");
    assert!(words.contains("a part of it may have been done"), "{words}");
}

// spec: N-14
#[test]
fn messages_to_a_task_are_recorded() {
    let mut scene = Scene::new(Backend::Remote, &[WRITES]);
    let ann = scene.user("ann");
    assert_eq!(decision(&ann.call("multi_input", &json!({}))), "bounce");
    let task = ann.task("multi_input", &json!({}));
    ann.once(&task, "input_required");
    let content = json!({"name": "Ann", "password": "swordfish"});
    let answers = json!({"first": {"action": "accept", "content": content}});
    ann.about("tasks/update", &json!({"taskId": task, "inputResponses": answers}));
    let said = eventually("the answers on record", || on_record(&scene, "task").pop());
    let call = on_record(&scene, "intent").pop().unwrap();
    for name in ["user", "session", "agent", "channel"] {
        assert_eq!(said[name], call[name], "{said}");
    }
    let reported = &said["detail"];
    assert_eq!((&reported["said"], &reported["outcome"]), (&json!("update"), &json!("done")), "{said}");
    for name in ["call_id", "body", "tool"] {
        assert_eq!(reported[name], call["detail"][name], "{said}");
    }
    let excerpt = json!({"action": "accept", "content": {"name": "Ann", "password": "[redacted]"}});
    assert_eq!(reported["args_excerpt"]["first"], excerpt, "{said}");
    // A rejected message is not recorded as sent, and neither is a poll.
    scene.user("bob").refuses("tasks/cancel", &task);
    ann.get(&task);
    // Another process does not know the call, but the task has a name that the call's outcome has too.
    let token = ann.token.clone();
    scene.restart();
    let ann = User { scene: &scene, token };
    ann.about("tasks/cancel", &json!({"taskId": task}));
    let all = eventually("the end on record", || Some(on_record(&scene, "task")).filter(|all| all.len() > 1));
    let [_, stop] = &all[..] else { panic!("{all:?}") };
    assert_eq!((&stop["detail"]["said"], &stop["detail"]["outcome"]), (&json!("cancel"), &json!("done")));
    assert!(stop["detail"].get("call_id").is_none() && stop["session"].is_string(), "{stop}");
    assert_eq!(stop["detail"]["task"], reported["task"]);
    let begun = on_record(&scene, "outcome").remove(0);
    assert!(begun.to_string().contains(reported["task"].as_str().unwrap()), "{begun}");
    // What its server refuses is on record as that.
    let refused = ann.about("tasks/update", &json!({"taskId": task, "inputResponses": 7}));
    assert!(refused["error"].is_object(), "{refused}");
    let last = eventually("the refusal on record", || on_record(&scene, "task").into_iter().nth(2));
    assert_eq!(last["detail"]["outcome"], "failed", "{last}");
}

#[test]
fn another_session_cannot_access_a_task() {
    // Both speak to the same process of the fixture, which would answer either.
    let scene = Scene::new(Backend::Remote, &[READS]);
    let (ann, bob) = (scene.user("ann"), scene.user("bob"));
    let task = ann.task("slow_compute", &json!({"seconds": 60}));
    let own = bob.task("slow_compute", &json!({"seconds": 60}));
    assert_eq!(bob.get(&own)["result"]["status"], "working");
    let inner = task.rsplit_once('.').unwrap().1;
    let forged = format!("{}{inner}", own.strip_suffix(own.rsplit_once('.').unwrap().1).unwrap());
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for id in [&*task, inner, &forged, "nonsense", "", ".....", &"x".repeat(9999)] {
            let words = bob.refuses(method, id);
            assert!(words.contains("unknown task `"), "{words}");
        }
    }
    let wanted = json!({"notifications": {"taskIds": [task]}});
    let agreed = bob.begin("subscriptions/listen", &wanted, &can(json!({}))).message().unwrap();
    assert_eq!(agreed["params"]["notifications"], json!({}), "{agreed}");
    assert_eq!(ann.get(&task)["result"]["status"], "working", "nobody has cancelled it");
    // It is the user's, also where the host says otherwise what it can do.
    let cancelled = ann.ask("tasks/cancel", &json!({"taskId": task}), &can(json!({"roots": {}})));
    assert_eq!(cancelled["result"]["resultType"], "complete", "{cancelled}");
    ann.once(&task, "cancelled");
}

#[test]
fn a_task_outlives_the_broker_if_its_server_does() {
    for backend in [Backend::Remote, Backend::Process] {
        let mut scene = Scene::new(backend, &[READS]);
        let ann = scene.user("ann");
        let (token, task) = (ann.token.clone(), ann.task("slow_compute", &json!({"seconds": 60})));
        let elsewhere = ann.ask("tasks/get", &json!({"taskId": task}), &can(json!({})));
        assert_eq!(elsewhere["result"]["status"], "working", "{backend:?}: {elsewhere}");
        scene.restart();
        let ann = User { scene: &scene, token };
        if backend == Backend::Remote {
            assert_eq!(ann.get(&task)["result"]["status"], "working");
            continue;
        }
        let words = ann.refuses("tasks/get", &task);
        assert!(words.contains("no longer exists: the process of `fixture`"), "{words}");
    }
}

#[test]
fn a_task_is_gone_with_its_process() {
    let scene = Scene::new(Backend::Process, &[READS]);
    let ann = scene.user("ann");
    let task = ann.task("slow_compute", &json!({"seconds": 60}));
    let wanted = json!({"notifications": {"taskIds": [task]}});
    let mut listening = ann.begin("subscriptions/listen", &wanted, &can(json!({"elicitation": {}})));
    assert_eq!(listening.message().unwrap()["params"]["notifications"], wanted["notifications"]);
    assert_eq!(listening.message().unwrap()["params"]["status"], "working");
    let lost = ann.call("test_exit", &json!({}));
    assert_eq!(lost["_meta"]["embody/decision"]["outcome_unknown"], true, "{lost}");
    // The next process is not asked: it may have another task of the same name.
    let words = eventually("the next process", || {
        let error = ann.get(&task)["error"].clone();
        (error["code"] == -32602).then(|| error["message"].as_str().unwrap().to_owned())
    });
    assert!(words.contains("no longer exists") && words.contains("was restarted"), "{words}");
    let again = ann.begin("subscriptions/listen", &wanted, &can(json!({"elicitation": {}}))).message();
    assert_eq!(again.unwrap()["params"]["notifications"], json!({}), "nobody promises what nobody will tell");
    let other = ann.task("slow_compute", &json!({"seconds": 60}));
    assert_eq!(ann.get(&other)["result"]["status"], "working");
    ann.refuses("tasks/cancel", &task);
}

// spec: N-10
#[test]
fn what_a_task_may_not_ask_is_not_asked() {
    let scene = Scene::new(Backend::Process, &[READS]);
    let ann = scene.user("ann");
    let task = ann.task("test_task_with_sampling", &json!({}));
    let state = ann.once(&task, "input_required");
    assert_eq!(state["inputRequests"], json!({}), "{state}");
    let words = state["statusMessage"].as_str().unwrap();
    assert!(words.contains("`fixture`") && words.contains("the host's model"), "{words}");
    // A host that shows no forms is not asked for one.
    let call = json!({"name": "multi_input", "arguments": {}});
    let begun = ann.ask("tools/call", &call, &can(json!({})));
    let id = json!({"taskId": begun["result"]["taskId"]});
    let state = eventually("the question", || {
        let state = ann.ask("tasks/get", &id, &can(json!({})))["result"].clone();
        (state["status"] == "input_required").then_some(state)
    });
    assert_eq!(state["inputRequests"], json!({}), "{state}");
    assert!(state["statusMessage"].as_str().unwrap().contains("`elicitation`"), "{state}");
}

#[test]
fn listeners_are_notified_of_their_own_tasks() {
    // What a server does not tell of is asked for.
    let quiet = "test_task_that_tells_nothing";
    for (backend, tool) in
        [(Backend::Process, "multi_input"), (Backend::Remote, "multi_input"), (Backend::Process, quiet)]
    {
        let scene = Scene::new(backend, &[READS]);
        let ann = scene.user("ann");
        let task = ann.task(tool, &json!({}));
        let wanted = json!({"notifications": {"taskIds": [task, "nobody's"]}});
        let refused = ann.ask("subscriptions/listen", &wanted, &json!({}));
        assert_eq!(refused["error"]["code"], -32021, "{refused}");
        let mut listening = ann.begin("subscriptions/listen", &wanted, &can(json!({"elicitation": {}})));
        let agreed = listening.message().unwrap();
        assert_eq!(agreed["params"]["notifications"], json!({"taskIds": [task]}), "{agreed}");
        let mut received = |is_it: &dyn Fn(&Value) -> bool| loop {
            let message = listening.message().unwrap();
            assert_eq!(message["method"], "notifications/tasks", "{message}");
            let state = &message["params"];
            assert_eq!((&state["taskId"], state.get("resultType")), (&json!(task), None), "{state}");
            assert_eq!(state["_meta"]["io.modelcontextprotocol/subscriptionId"], 1, "{state}");
            if is_it(state) {
                return state.clone();
            }
        };
        let asks = received(&|state| state["status"] == "input_required");
        let asked = asks["inputRequests"].as_object().unwrap();
        assert_eq!(asked.len(), 2, "{asks}");
        for question in asked.values() {
            let message = question["params"]["message"].as_str().unwrap();
            assert!(message.starts_with("`fixture` asks"), "{message}");
        }
        // One after the other: what is heard when the following begins is not yet what comes later.
        let answer = |key: &str| {
            let answers = json!({key: {"action": "accept", "content": {"name": key}}});
            ann.about("tasks/update", &json!({"taskId": task, "inputResponses": answers}));
        };
        answer("first");
        received(&|state| state["inputRequests"].as_object().is_some_and(|asked| asked.len() == 1));
        answer("last");
        let done = received(&|state| state["status"] == "completed");
        assert_eq!(done["result"]["content"][0]["text"], "Hello, first last!", "{tool}, {backend:?}");
        assert_eq!(done["result"], ann.get(&task)["result"]["result"]);
    }
}

#[test]
fn a_host_that_we_did_not_write_follows_its_tasks() {
    let scene = Scene::new(Backend::Remote, &[READS]);
    let target = Target { token: Some(scene.user("ann").token), ..Target::from(scene.server.http()) };
    let call = |era, words: &[&str]| inspect(&target, era, &[&["--method", "tools/call"], words].concat());
    let sum = ["--tool-name", "slow_compute", "--tool-arg", "seconds=1", "--tool-arg", "label=a sum"];
    let done = call(Era::Stateless, &sum).unwrap();
    assert_eq!(done["content"][0]["text"], "Computed a sum for 1 s", "{done}");
    // It works only as a task, and the Inspector has come to its end: the tool says itself that it fails.
    let failing = ["--tool-name", "failing_job"];
    let (code, words) = call(Era::Stateless, &failing).unwrap_err();
    assert!(code == 5 && words.contains("as it always does"), "{code}: {words}");
    let (code, words) = call(Era::Session, &failing).unwrap_err();
    assert!(code != 5 && words.contains("io.modelcontextprotocol/tasks"), "{code}: {words}");
}

// spec: N-07
#[test]
fn the_mind_observes_the_outcome_of_a_task() {
    let mind = Mind::new();
    let scene = Scene::of("stateless", Backend::Process, &[READS], |world| mind.serve(world));
    let ann = scene.user("ann");
    let task = ann.task("slow_compute", &json!({"seconds": 0, "label": "a sum"}));
    ann.once(&task, "completed");
    ann.get(&task);
    // Notifications arrive in order: by then all of the task have arrived.
    let initialized = ann.call("greet", &json!({"name": "the last"}));
    assert!(initialized["content"][0]["text"].as_str().unwrap().contains("the last"), "{initialized}");
    let reported = eventually("what the mind hears", || {
        let received = mind.process(&scene.world).calls("observe");
        let results = received.iter().filter_map(|one| one.get("result"));
        let results: Vec<String> = results.map(Value::to_string).collect();
        let count = |words: &str| results.iter().filter(|result| result.contains(words)).count();
        (count("the last") > 0).then(|| (results.len(), count("Computed a sum")))
    });
    assert_eq!(reported, (3, 1), "that it began, once how it ended, and the last call");
}

#[test]
fn sessions_have_no_such_tasks() {
    // A host with sessions gets the answer itself, from a server that would rather make a task of it.
    let world = World::with_body("Be honest. The rules of the house.");
    world.file("embody.toml", format!("{READS}{}", body("fixture", &fixture("stateless"), "")));
    let capabilities = can(json!({}));
    let mut host = host(&world, &capabilities, |_, _| Reply::Error(-32601, "no such method"));
    let done = host.call("slow_compute", &json!({"seconds": 0, "label": "a sum"}));
    assert_eq!(done["content"][0]["text"], "Computed a sum for 0 s", "{done}");
    let call = json!({"name": "failing_job", "arguments": {}}).to_string();
    let refused = host.ask("tools/call", &call).error();
    assert_eq!(refused["code"], -32021, "{refused}");
    assert!(refused["data"]["requiredCapabilities"]["extensions"][TASKS].is_object(), "{refused}");
    assert_eq!(host.ask("tasks/update", "{}").error()["code"], -32601);
    // A server with sessions answers a host without at once, and the parameter of its own kind of tasks does not reach it.
    let scene = Scene::of("sessions", Backend::Process, &[READS], |_| {});
    let ann = scene.user("ann");
    let call = json!({"name": "slow_compute", "arguments": {"seconds": 0}, "task": {"ttl": 1}});
    let done = ann.ask("tools/call", &call, &can(json!({})));
    assert_eq!(done["result"]["resultType"], "complete", "{done}");
    assert!(done["result"]["content"].is_array() && done["result"].get("task").is_none(), "{done}");
    for method in ["tasks/list", "tasks/result"] {
        let answer = ann.about(method, &json!({"taskId": "x"}));
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    }
}
