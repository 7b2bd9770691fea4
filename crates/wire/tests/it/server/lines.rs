//! One message per line.

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

use super::*;

struct Pipe {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    seen: Seen,
    switch: CancellationToken,
    done: tokio::task::JoinHandle<std::io::Result<()>>,
}

fn pipe(limits: Limits) -> Pipe {
    let (service, seen) = odd();
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let ending = CancellationToken::new();
    let switch = ending.clone();
    let streams = tokio::io::split(theirs);
    let done =
        tokio::spawn(embody_wire::server::lines::serve(service, "owner".to_owned(), streams, limits, ending));
    let (output, input) = tokio::io::split(ours);
    Pipe { input, output: BufReader::new(output).lines(), seen, switch, done }
}

impl Pipe {
    async fn say(&mut self, message: &Value) {
        self.write(&message.to_string()).await;
    }

    async fn write(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        let line = tokio::time::timeout(SOON, self.output.next_line()).await.expect("silence").unwrap();
        serde_json::from_str(&line.expect("the end")).unwrap()
    }

    async fn initialize(&mut self) {
        self.say(&request(1, "initialize")).await;
        assert_eq!(self.receive().await["id"], 1);
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        assert_eq!(next(&mut self.seen).await, "notifications/initialized from owner");
    }
}

#[tokio::test]
async fn progress_arrives_in_order_and_before_the_answer() {
    let mut pipe = pipe(Limits::default());
    pipe.initialize().await;
    pipe.say(&request(2, "count")).await;
    for number in 0..1000 {
        assert_eq!(pipe.receive().await["params"]["progress"], number);
    }
    assert_eq!(pipe.receive().await["result"]["counted"], 1000);
}

#[tokio::test]
async fn a_host_that_does_not_wait_for_the_greeting_is_understood() {
    let mut pipe = pipe(Limits::default());
    for message in [request(1, "initialize"), request(2, "whoami")] {
        pipe.say(&message).await;
    }
    assert_eq!(pipe.receive().await["id"], 1);
    assert_eq!(pipe.receive().await["result"]["principal"], "owner");
}

#[tokio::test]
async fn nothing_is_served_before_the_greeting_but_the_stateless_era() {
    let mut pipe = pipe(Limits::default());
    pipe.say(&request(1, "whoami")).await;
    let refused = pipe.receive().await;
    assert_eq!(refused["error"]["code"], code::INVALID_REQUEST);
    assert_eq!(refused["error"]["message"], "`whoami` arrived before `initialize`");
    pipe.say(&modern(2, "whoami")).await;
    assert_eq!(pipe.receive().await["result"], json!({"principal": "owner", "session": false}));
    pipe.say(&request(3, "server/discover")).await;
    assert_eq!(pipe.receive().await["error"]["code"], code::INVALID_PARAMS);
}

#[tokio::test]
async fn a_cancelled_call_gets_no_answer() {
    let mut pipe = pipe(Limits::default());
    pipe.initialize().await;
    pipe.say(&request(2, "wait")).await;
    assert_eq!(next(&mut pipe.seen).await, "waiting");
    pipe.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}))
        .await;
    let mut events = [next(&mut pipe.seen).await, next(&mut pipe.seen).await];
    events.sort();
    assert_eq!(events, ["notifications/cancelled from owner", "unwanted, cancelled: true"]);
    pipe.say(&request(3, "whoami")).await;
    assert_eq!(pipe.receive().await["id"], 3);
}

#[tokio::test]
async fn a_question_reaches_the_host_and_its_answer_the_call() {
    let mut pipe = pipe(Limits::default());
    pipe.initialize().await;
    pipe.say(&request(2, "ask")).await;
    let question = pipe.receive().await;
    assert_eq!(question["method"], "elicitation/create");
    pipe.say(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}})).await;
    assert_eq!(pipe.receive().await["result"]["answer"]["action"], "accept");
    pipe.say(&modern(3, "ask")).await;
    assert_eq!(pipe.receive().await["result"]["answer"], "stateless");
}

#[tokio::test]
async fn a_service_that_panics_still_answers() {
    let mut pipe = pipe(Limits::default());
    pipe.initialize().await;
    pipe.say(&request(2, "panic")).await;
    let answer = pipe.receive().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(2), &json!(code::INTERNAL_ERROR)));
}

#[tokio::test]
async fn an_id_in_use_and_too_many_calls_are_refused() {
    let mut pipe = pipe(Limits { calls_max: 2, ..Limits::default() });
    pipe.initialize().await;
    pipe.say(&request(2, "wait")).await;
    assert_eq!(next(&mut pipe.seen).await, "waiting");
    pipe.say(&request(2, "whoami")).await;
    assert_eq!(pipe.receive().await["error"]["message"], "a request with the id 2 is still running");
    pipe.say(&request(3, "wait")).await;
    assert_eq!(next(&mut pipe.seen).await, "waiting");
    pipe.say(&request(4, "whoami")).await;
    assert_eq!(
        pipe.receive().await["error"]["message"],
        "2 requests are already running; wait for one to end"
    );
}

#[tokio::test]
async fn what_cannot_be_read_is_answered_and_the_rest_goes_on() {
    let mut pipe = pipe(Limits { message_max_bytes: 200, ..Limits::default() });
    pipe.write("{nonsense").await;
    let answer = pipe.receive().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(code::PARSE_ERROR)));
    pipe.write("").await;
    let long = "x".repeat(100_000);
    pipe.say(&json!({"id": "mine", "jsonrpc": "2.0", "method": "echo", "params": {"long": long}})).await;
    let answer = pipe.receive().await;
    assert_eq!(answer["id"], "mine");
    assert_eq!(answer["error"]["message"], "a message is longer than 200 bytes");
    pipe.initialize().await;
}

#[tokio::test]
async fn a_payload_comes_back_as_it_was_written() {
    let mut pipe = pipe(Limits::default());
    pipe.initialize().await;
    let payload = r#"{"b":1.0,"a":12345678901234567890123,"n":null,"a":"\u00e9"}"#;
    pipe.write(&format!(r#"{{"jsonrpc":"2.0","id":2,"method":"echo","params":{payload}}}"#)).await;
    let line = pipe.output.next_line().await.unwrap().unwrap();
    assert_eq!(line, format!(r#"{{"jsonrpc":"2.0","id":2,"result":{payload}}}"#));
}

#[tokio::test]
async fn when_the_host_closes_its_end_the_server_ends() {
    let mut pipe = pipe(Limits::default());
    pipe.initialize().await;
    pipe.say(&request(2, "count")).await;
    pipe.input.shutdown().await.unwrap();
    for _ in 0..1000 {
        pipe.receive().await;
    }
    assert_eq!(pipe.receive().await["result"]["counted"], 1000);
    assert_eq!(next(&mut pipe.seen).await, "owner is gone");
    pipe.done.await.unwrap().unwrap();
}

#[tokio::test]
async fn when_the_host_closes_its_end_whatever_waits_is_let_go() {
    let mut pipe = pipe(Limits::default());
    pipe.initialize().await;
    pipe.say(&request(2, "ask")).await;
    assert_eq!(pipe.receive().await["method"], "elicitation/create");
    pipe.say(&request(3, "wait")).await;
    assert_eq!(next(&mut pipe.seen).await, "waiting");
    pipe.input.shutdown().await.unwrap();
    assert_eq!(next(&mut pipe.seen).await, "unwanted, cancelled: false");
    let mut answers = [pipe.receive().await, pipe.receive().await];
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(answers[0]["result"]["answer"], "the host has disconnected");
    assert_eq!(answers[1]["result"]["waited"], true);
    pipe.done.await.unwrap().unwrap();
}

#[tokio::test]
async fn when_the_host_no_longer_reads_it_is_gone() {
    let (service, mut seen) = odd();
    let (mut input, theirs) = tokio::io::duplex(1 << 16);
    let (output, closed) = tokio::io::duplex(1 << 16);
    drop(closed);
    let ending = CancellationToken::new();
    let streams = (theirs, output);
    let serving =
        embody_wire::server::lines::serve(service, "owner".to_owned(), streams, Limits::default(), ending);
    let serving = tokio::spawn(serving);
    input.write_all(format!("{}\n", modern(1, "wait")).as_bytes()).await.unwrap();
    assert_eq!(next(&mut seen).await, "waiting");
    input.write_all(format!("{}\n", request(2, "initialize")).as_bytes()).await.unwrap();
    let mut both = [next(&mut seen).await, next(&mut seen).await];
    both.sort();
    assert_eq!(both, ["owner is gone", "unwanted, cancelled: true"]);
    assert!(serving.await.unwrap().is_err());
}

#[tokio::test]
async fn when_the_server_ends_running_calls_finish() {
    let mut pipe = pipe(Limits::default());
    pipe.initialize().await;
    pipe.say(&request(2, "wait")).await;
    assert_eq!(next(&mut pipe.seen).await, "waiting");
    pipe.switch.cancel();
    assert_eq!(next(&mut pipe.seen).await, "unwanted, cancelled: false");
    assert_eq!(pipe.receive().await["result"]["waited"], true);
    pipe.done.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_host_that_writes_and_never_reads_cannot_hold_up_the_end() {
    let mut pipe = pipe(Limits::default());
    let nonsense = format!("{}\n", "x".repeat(4000));
    // Fills the pipe until the server waits for this host to read.
    let full = Duration::from_millis(200);
    while tokio::time::timeout(full, pipe.input.write_all(nonsense.as_bytes())).await.is_ok() {}
    pipe.switch.cancel();
    assert_eq!(next(&mut pipe.seen).await, "owner is gone");
    tokio::time::timeout(SOON, pipe.done).await.expect("it never ended").unwrap().unwrap();
}

#[tokio::test]
async fn requests_are_numbered_as_they_were_read_and_an_answer_is_known_to_be_written() {
    let mut pipe = pipe(Limits::default());
    pipe.initialize().await;
    pipe.say(&request(2, "number")).await;
    assert_eq!(pipe.receive().await["result"], json!({"number": 2, "arrived": 2}));
    // One line with three requests: all are read before the first is answered.
    let batch = json!([request(3, "number"), modern(4, "number"), request(5, "number")]);
    pipe.say(&batch).await;
    let mut numbers = Vec::new();
    for _ in 0..3 {
        let answer = pipe.receive().await;
        numbers.push((answer["id"].as_u64().unwrap(), answer["result"]["number"].as_u64().unwrap()));
    }
    numbers.sort_unstable();
    assert_eq!(numbers, [(3, 3), (4, 4), (5, 5)]);
    pipe.say(&request(6, "written")).await;
    assert_eq!(pipe.receive().await["id"], 6);
    assert_eq!(next(&mut pipe.seen).await, "written");
}

#[tokio::test]
async fn an_answer_that_no_host_takes_was_not_written() {
    // A pipe of one byte, and a host that never reads.
    let (service, mut seen) = odd();
    let (ours, theirs) = tokio::io::duplex(1);
    let ending = CancellationToken::new();
    let streams = tokio::io::split(theirs);
    let limits = Limits::default();
    let done =
        tokio::spawn(embody_wire::server::lines::serve(service, "owner".to_owned(), streams, limits, ending));
    let (output, mut input) = tokio::io::split(ours);
    let lines = format!("{}\n{}\n", request(1, "initialize"), request(2, "written"));
    input.write_all(lines.as_bytes()).await.unwrap();
    drop((output, input));
    let _ = tokio::time::timeout(SOON, done).await.expect("it does not end");
    assert_eq!(next(&mut seen).await, "owner is gone");
    assert!(seen.recv().await.is_none(), "nothing was written");
}

#[tokio::test]
async fn a_question_whose_call_was_cancelled_is_taken_back() {
    let mut pipe = pipe(Limits::default());
    pipe.initialize().await;
    pipe.say(&request(2, "ask")).await;
    let question = pipe.receive().await;
    assert_eq!(question["method"], "elicitation/create");
    pipe.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}))
        .await;
    let taken_back = pipe.receive().await;
    assert_eq!(taken_back["method"], "notifications/cancelled");
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
    // A request that was answered is not cancelled.
    pipe.say(&request(3, "ask")).await;
    let question = pipe.receive().await;
    pipe.say(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {}})).await;
    assert_eq!(pipe.receive().await["id"], 3);
    pipe.say(&request(4, "whoami")).await;
    assert_eq!(pipe.receive().await["id"], 4);
}

#[tokio::test]
async fn the_bytes_of_one_pipe_that_wait_for_an_answer_are_bounded() {
    let limits = Limits { in_flight_each_max_bytes: 150_000, ..Limits::default() };
    let mut pipe = pipe(limits);
    let large = |id: u64, method: &str| {
        let mut message = modern(id, method);
        message["params"]["x"] = json!("y".repeat(100_000));
        message
    };
    pipe.say(&large(1, "wait")).await;
    assert_eq!(next(&mut pipe.seen).await, "waiting");
    pipe.say(&large(2, "whoami")).await;
    let refused = pipe.receive().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(2), &json!(code::INVALID_REQUEST)));
    assert!(refused["error"]["message"].to_string().contains("too large in total"), "{refused}");
    pipe.say(&modern(3, "whoami")).await;
    assert_eq!(pipe.receive().await["result"]["principal"], "owner", "small ones pass");
    pipe.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}))
        .await;
    let mut id = 3;
    let passes = tokio::time::timeout(SOON, async {
        loop {
            id += 1;
            pipe.say(&large(id, "whoami")).await;
            if pipe.receive().await["result"]["principal"] == "owner" {
                return;
            }
        }
    });
    passes.await.expect("the bytes are given back");
}
