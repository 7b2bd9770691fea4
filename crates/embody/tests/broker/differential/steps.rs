//! What is asked of each server: every tool, resource, template and prompt at least once. As text, with numbers, escapes
//! and spaces that another writer of JSON would write differently.

use super::super::servers::{Server, Servers};

type Step = (&'static str, String);

/// The requests, in order. The last one is answered by the server itself, after everything that it had to say.
pub(super) fn steps(server: Server, servers: &Servers<'_>) -> Vec<Step> {
    match server {
        Server::Everything => everything(),
        Server::Filesystem => filesystem(servers),
        Server::Memory => memory(),
    }
}

fn call(tool: &str, arguments: &str) -> Step {
    ("tools/call", format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#))
}

fn everything() -> Vec<Step> {
    let mut steps = vec![
        ("logging/setLevel", r#"{"level":"debug"}"#.to_owned()),
        call("echo", r#"{ "message" : "a\u00e9\ud83e\udded\/ \u2028 \"q\" \\ \u0007é🧭" }"#),
        call("echo", r#"{"message":""}"#),
        call("echo", "{}"),
        call("echo", r#"{"message":"x","more":{"deep":[1,2.50,-0,1e3,null,12345678901234567890]}}"#),
        call("get-annotated-message", r#"{"messageType":"error","includeImage":true}"#),
        call("get-annotated-message", r#"{"messageType":"debug"}"#),
        call("get-env", "{}"),
        call("get-resource-links", r#"{"count":10}"#),
        call("get-resource-reference", r#"{"resourceType":"Blob","resourceId":3}"#),
        call("get-resource-reference", "{}"),
        call("get-structured-content", r#"{"location":"Chicago"}"#),
        call("get-sum", r#"{"a":1.0,"b":0.10}"#),
        call("get-sum", r#"{"a":12345678901234567890,"b":-1e-7}"#),
        call("get-sum", r#"{"a":"1","b":null}"#),
        call("get-tiny-image", "{}"),
        call(
            "gzip-file-as-resource",
            r#"{"name":"a.gz","data":"data:text/plain;base64,aGVsbG8=","outputType":"resource"}"#,
        ),
        call("gzip-file-as-resource", r#"{"name":"b.gz","data":"data:text/plain,hi"}"#),
        ("resources/read", r#"{"uri":"demo://resource/session/b.gz"}"#.to_owned()),
        call("get-roots-list", "{}"),
        call("trigger-elicitation-request", "{}"),
        call("trigger-url-elicitation", r#"{"url":"https://example.com/a?b=c"}"#),
        call("trigger-url-elicitation", r#"{"url":"https://example.com/","errorPath":true}"#),
        call("trigger-sampling-request", r#"{"prompt":"say „hm“","maxTokens":7}"#),
        call("trigger-sampling-request-async", r#"{"prompt":"later"}"#),
        call("trigger-elicitation-request-async", "{}"),
        (
            "tools/call",
            r#"{"_meta":{"progressToken":"token ä"},"name":"trigger-long-running-operation","arguments":{"duration":0.4,"steps":4}}"#
                .to_owned(),
        ),
        (
            "tools/call",
            r#"{"name":"trigger-long-running-operation","arguments":{"duration":0.2,"steps":2},"_meta":{"progressToken":0,"x/y":[1.0]}}"#
                .to_owned(),
        ),
        call("toggle-simulated-logging", "{}"),
        call("toggle-simulated-logging", "{}"),
        call("simulate-research-query", r#"{"topic":"without a task"}"#),
    ];
    steps.extend(tasks());
    steps.extend(resources());
    steps.extend(prompts());
    steps.push(call("echo", r#"{"message":"the end"}"#));
    steps
}

/// Stands for the id of the task that was begun last.
pub(super) const TASK: &str = "THE-TASK";

fn tasks() -> Vec<Step> {
    let begin = |arguments: &str| {
        let task = r#"{"ttl":60000}"#;
        (
            "tools/call",
            format!(r#"{{"name":"simulate-research-query","arguments":{arguments},"task":{task}}}"#),
        )
    };
    let last = format!(r#"{{"taskId":"{TASK}"}}"#);
    vec![
        begin(r#"{"topic":"herons"}"#),
        ("tasks/result", last.clone()),
        ("tasks/get", last.clone()),
        begin(r#"{"topic":"python","ambiguous":true}"#),
        ("tasks/result", last.clone()),
        ("tasks/get", last.clone()),
        ("tasks/list", "{}".to_owned()),
        ("tasks/cancel", last),
    ]
}

fn resources() -> Vec<Step> {
    let read = |uri: &str| ("resources/read", format!(r#"{{"uri":"{uri}"}}"#));
    let page = |name: &str| read(&format!("demo://resource/static/document/{name}.md"));
    let mut steps: Vec<Step> =
        ["architecture", "extension", "features", "how-it-works", "instructions", "startup", "structure"]
            .map(page)
            .to_vec();
    let observability = r#"{"uri":"demo://resource/dynamic/text/7"}"#;
    steps.extend([
        read("demo://resource/dynamic/text/7"),
        read("demo://resource/dynamic/blob/8"),
        read("demo://resource/dynamic/text/none"),
        ("resources/subscribe", observability.to_owned()),
        call("toggle-subscriber-updates", "{}"),
        call("toggle-subscriber-updates", "{}"),
        ("resources/unsubscribe", observability.to_owned()),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/resource","uri":"demo://resource/dynamic/text/{resourceId}"},"argument":{"name":"resourceId","value":"12"}}"#
                .to_owned(),
        ),
    ]);
    steps
}

fn prompts() -> Vec<Step> {
    let get = |name: &str, arguments: &str| {
        ("prompts/get", format!(r#"{{"name":"{name}","arguments":{arguments}}}"#))
    };
    let complete = |argument: &str, value: &str, more: &str| {
        let reference = r#"{"type":"ref/prompt","name":"completable-prompt"}"#;
        (
            "completion/complete",
            format!(r#"{{"ref":{reference},"argument":{{"name":"{argument}","value":"{value}"}}{more}}}"#),
        )
    };
    vec![
        get("simple-prompt", "{}"),
        get("args-prompt", r#"{"city":"Zürich","state":"\u005a"}"#),
        get("args-prompt", "{}"),
        get("completable-prompt", r#"{"department":"Sales","name":"David"}"#),
        get("resource-prompt", r#"{"resourceType":"Blob","resourceId":"4"}"#),
        complete("department", "S", ""),
        complete("name", "", r#","context":{"arguments":{"department":"Sales"}}"#),
    ]
}

fn filesystem(servers: &Servers<'_>) -> Vec<Step> {
    let path = |name: &str| format!("{:?}", servers.path(name).display().to_string());
    let with_path =
        |tool: &str, name: &str, more: &str| call(tool, &format!(r#"{{"path":{}{more}}}"#, path(name)));
    vec![
        call("list_allowed_directories", "{}"),
        with_path("read_file", "files/a.txt", ""),
        with_path("read_text_file", "files/b.md", ""),
        with_path("read_text_file", "files/a.txt", r#","head":1"#),
        with_path("read_text_file", "files/a.txt", r#","tail":1"#),
        with_path("read_text_file", "files/empty.txt", ""),
        with_path("read_text_file", "files/none.txt", ""),
        with_path("read_text_file", "../home", ""),
        with_path("read_media_file", "files/picture.png", ""),
        with_path("read_media_file", "files/sound.mp3", ""),
        with_path("read_media_file", "files/blob.bin", ""),
        call(
            "read_multiple_files",
            &format!(
                r#"{{"paths":[{},{},{}]}}"#,
                path("files/a.txt"),
                path("files/no.txt"),
                path("files/b.md")
            ),
        ),
        with_path("write_file", "files/new.txt", r#","content":"ä\n\u0000\tend""#),
        with_path("edit_file", "files/a.txt", r#","edits":[{"oldText":"two","newText":"2"}],"dryRun":true"#),
        with_path("edit_file", "files/a.txt", r#","edits":[{"oldText":"two","newText":"zwei"}]"#),
        with_path("edit_file", "files/a.txt", r#","edits":[{"oldText":"four","newText":"4"}]"#),
        with_path("create_directory", "files/made/deep", ""),
        with_path("list_directory", "files", ""),
        with_path("list_directory_with_sizes", "files", ""),
        with_path("list_directory_with_sizes", "files/sub", r#","sortBy":"size""#),
        with_path("directory_tree", "files", r#","excludePatterns":["deeper"]"#),
        call(
            "move_file",
            &format!(r#"{{"source":{},"destination":{}}}"#, path("files/new.txt"), path("files/moved.txt")),
        ),
        with_path("search_files", "files", r#","pattern":"**/*.txt""#),
        with_path("get_file_info", "kept/kept.txt", ""),
        with_path("read_file", "files/a.txt", ""),
    ]
}

/// Without its resource: `memory://` is the mind's.
fn memory() -> Vec<Step> {
    const RELATIONS: &str = r#"{"relations":[{"from":"Ann","to":"Böb","relationType":"knows"}]}"#;
    vec![
        call("read_graph", "{}"),
        call(
            "create_entities",
            r#"{"entities":[{"name":"Ann","entityType":"person","observations":["likes tea","\u00fc"]},{"name":"Böb","entityType":"person","observations":[]}]}"#,
        ),
        call("create_relations", RELATIONS),
        call(
            "add_observations",
            r#"{"observations":[{"entityName":"Ann","contents":["is late","is late"]}]}"#,
        ),
        call("add_observations", r#"{"observations":[{"entityName":"Nobody","contents":["x"]}]}"#),
        call("search_nodes", r#"{"query":"TEA"}"#),
        call("open_nodes", r#"{"names":["Böb","Nobody"]}"#),
        call("delete_observations", r#"{"deletions":[{"entityName":"Ann","observations":["likes tea"]}]}"#),
        call("delete_relations", RELATIONS),
        call("delete_entities", r#"{"entityNames":["Böb"]}"#),
        call("read_graph", "{}"),
    ]
}
