//! `embody usage`, prices and budgets: what a person sees of what the model took, and what happens at a limit.

use embody_store::notices::NoticeFilter;
use serde_json::{Value, json};

use crate::support::model::{Model, WireFormat, calls, rule, says};
use crate::support::served::{Served, token};
use crate::support::stores::{StoreFixture, on_each_store};
use crate::support::world::World;

on_each_store!(
    each_request_is_on_record_under_all_its_names,
    a_used_up_budget_refuses_the_next_request_and_says_how_to_go_on,
    the_owner_is_told_once_at_each_level,
    the_owner_is_told_once_that_a_budget_counts_nothing
);

const PRICES: &str = "[prices.scripted]\ninput = 3.0\noutput = 15\ncached = 0.3\n";

fn greeting(stored: &StoreFixture) -> Model {
    let rules = json!([rule("hello", 0, says("Good morning.")), rule("digest", 0, says("Two mails."))]);
    Model::start(&stored.world, WireFormat::OpenAi, &rules)
}

fn config(stored: &StoreFixture, model: &Model, more: &str) {
    stored.world.file("embody.toml", model.config(WireFormat::OpenAi) + more);
}

fn rows(stored: &StoreFixture, by: &str) -> Vec<Value> {
    let report = stored.run(&["usage", "--json", "--by", by]).ok().json();
    assert_eq!(report["by"], by);
    report["rows"].as_array().unwrap().clone()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

fn used(stored: &StoreFixture) -> u64 {
    let total = stored.run(&["usage", "--json"]).ok().json()["total"].take();
    number(&total["input_tokens"]) + number(&total["output_tokens"])
}

fn each_request_is_on_record_under_all_its_names(stored: &StoreFixture) {
    assert_eq!(stored.run(&["usage"]).ok().stdout, "Nothing has run in this workspace yet.\n");
    let model = greeting(stored);
    config(stored, &model, PRICES);
    let run = stored.run(&["run", "--json", "hello"]).ok().json();
    let (input, output) = (number(&run["usage"]["input"]), number(&run["usage"]["output"]));
    assert!(input > 0 && output > 0, "{run}");
    stored.run(&["run", "--channel", "telegram", "--user", "ann", "--agent", "clerk", "hello"]).ok();
    let added =
        stored.run(&["schedule", "add", "--json", "--cron", "@yearly", "Write the digest."]).ok().json();
    let schedule = added["id"].as_str().unwrap();
    stored.run(&["schedule", "run", schedule]).ok();

    for (by, keys) in [
        ("agent", vec![json!("assistant"), json!("clerk")]),
        ("user", vec![json!("ann"), json!("owner")]),
        ("channel", vec![json!("scheduled"), json!("telegram"), json!("web")]),
        ("schedule", vec![Value::Null, json!(schedule)]),
        ("model", vec![json!("scripted")]),
    ] {
        let rows = rows(stored, by);
        assert_eq!(rows.iter().map(|row| row[by].clone()).collect::<Vec<_>>(), keys, "{by}");
        assert_eq!(rows.iter().map(|row| number(&row["requests"])).sum::<u64>(), 3, "{by}");
    }
    let web = rows(stored, "channel").pop().unwrap();
    assert_eq!((number(&web["input_tokens"]), number(&web["output_tokens"])), (input, output));
    // Millionths of the price of a million: 3 for input, 15 for output.
    let millionths = input * 3 + output * 15;
    let cost = format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000);
    let shown = web["cost"].as_str().unwrap();
    assert_eq!(cost.trim_end_matches('0'), shown.trim_end_matches('0'), "{web}");

    let text = stored.run(&["usage"]).ok().stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("day") && lines[0].ends_with("cost"), "{text}");
    let today = rows(stored, "day");
    assert_eq!(today.len(), 1, "{today:?}");
    assert!(lines[1].starts_with(today[0]["day"].as_str().unwrap()), "{text}");

    // Before the first and after the last there is nothing.
    let before = stored.run(&["usage", "--since", "2020-01-01", "--until", "2020-01-31"]).ok().stdout;
    assert_eq!(before, "No model was asked in this time.\n");
    // Without a price there are tokens, and a line that says why there is no money.
    config(stored, &model, "");
    let text = stored.run(&["usage", "--by", "model"]).ok().stdout;
    assert!(text.contains("counted in tokens only: `scripted`. Add it below `[prices]`"), "{text}");
    assert_eq!(rows(stored, "model")[0]["cost"], Value::Null);
    // A price that is added later counts for what was used before.
    config(stored, &model, "[prices]\nscripted = { input = 0, output = 0 }\n");
    assert_eq!(rows(stored, "model")[0]["cost"], "0.00");
    for wrong in [["--since", "soon"], ["--until", "2020-01-01"], ["--by", "week"]] {
        stored.run(&["usage", wrong[0], wrong[1]]).ended(2).says(&[wrong[1]]);
    }
}

fn a_used_up_budget_refuses_the_next_request_and_says_how_to_go_on(stored: &StoreFixture) {
    let model = greeting(stored);
    config(stored, &model, "[budget]\ndaily_tokens = 1\n");
    stored.run(&["run", "hello"]).ok();
    let asked = model.requests().len();
    stored.run(&["run", "hello"]).ended(1).says(&[
        "the daily budget is used up:",
        "of 1 tokens used today; it resets at ",
        " 00:00 (",
        "raise `daily_tokens` below `[budget]` in embody.toml",
    ]);
    assert_eq!(model.requests().len(), asked, "the model was not asked");

    // A limit of money, and one of an agent in its place.
    config(
        stored,
        &model,
        &format!("{PRICES}[budget]\ndaily = 0.000001\nagents = {{ clerk = {{ daily = 1 }} }}\n"),
    );
    stored
        .run(&["run", "hello"])
        .ended(1)
        .says(&[" of 0.000001 used today", "raise `daily` below `[budget]`"]);
    stored.run(&["run", "--agent", "clerk", "hello"]).ok();
    config(stored, &model, &format!("{PRICES}[budget]\nagents = {{ clerk = {{ daily_tokens = 1 }} }}\n"));
    stored
        .run(&["run", "--agent", "clerk", "hello"])
        .ended(1)
        .says(&["the daily budget of agent `clerk` is used up"]);
    stored.run(&["run", "hello"]).ok();

    // A run that is not made is on record as skipped, with the reason; the schedule's own limit lets it run.
    let added =
        stored.run(&["schedule", "add", "--json", "--cron", "@yearly", "Write the digest."]).ok().json();
    let id = added["id"].as_str().unwrap();
    config(stored, &model, "[budget]\ndaily_tokens = 1\n");
    let asked = model.requests().len();
    stored.run(&["schedule", "run", id]).ended(1).says(&["the daily budget is used up"]);
    assert_eq!(model.requests().len(), asked);
    let runs = stored.run(&["schedule", "runs", "--json", id]).ok().json();
    assert_eq!(runs["runs"][0]["outcome"], "skipped");
    let output = runs["runs"][0]["output"].as_str().unwrap();
    assert!(output.contains("is used up") && output.contains("hint: raise `daily_tokens`"), "{output}");
    config(
        stored,
        &model,
        &format!("[budget]\ndaily_tokens = 1\nschedules = {{ \"{id}\" = {{ daily_tokens = 1000000 }} }}\n"),
    );
    assert_eq!(stored.run(&["schedule", "run", id]).ok().stdout, "Two mails.\n");
    let report = stored.run(&["usage", "--json"]).ok().json();
    let sections: Vec<_> = report["budgets"].as_array().unwrap().iter().map(|one| &one["section"]).collect();
    assert_eq!(sections, [&json!("[budget]"), &json!(format!("[budget.schedules.\"{id}\"]"))]);
    let text = stored.run(&["usage"]).ok().stdout;
    assert!(text.contains("the daily budget: ") && text.contains(" of 1 tokens used today ("), "{text}");
}

fn notices(stored: &StoreFixture) -> Vec<String> {
    let all =
        stored.directly(async |store| store.notices().list("owner", NoticeFilter::Unread, 10).await.unwrap());
    assert!(all.iter().all(|notice| notice.origin.channel == "budget" && notice.urgency == "high"));
    all.into_iter().map(|notice| notice.text).collect()
}

fn the_owner_is_told_once_that_a_budget_counts_nothing(stored: &StoreFixture) {
    let rules = json!([rule("hello", 0, json!({"text": "Good morning.", "no_usage": true}))]);
    let model = Model::start(&stored.world, WireFormat::OpenAi, &rules);
    config(stored, &model, "");
    stored.run(&["run", "hello"]).ok();
    assert_eq!(notices(stored), [""; 0], "no budget is set");
    config(stored, &model, "[budget]\ndaily_tokens = 1\n");
    let expected =
        "the provider reported no tokens for a request to `scripted`; the daily budget cannot count it";
    stored.run(&["run", "hello"]).ok().says(&[expected]);
    stored.run(&["run", "hello"]).ok();
    let told = notices(stored);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with(&format!("{expected}. `embody usage` shows")), "{told:?}");
}

fn the_owner_is_told_once_at_each_level(stored: &StoreFixture) {
    let notices = || notices(stored);
    let model = greeting(stored);
    stored.run(&["run", "hello"]).ok();
    let one = used(stored);
    // Two turns are 90 percent of it.
    config(stored, &model, &format!("[budget]\ndaily_tokens = {}\n", one * 20 / 9));
    let second = stored.run(&["run", "hello"]).ok();
    assert!(second.stderr.contains("the daily budget is nearly used up"), "{}", second.stderr);
    let told = notices();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("the daily budget is nearly used up: "), "{told:?}");
    assert!(told[0].contains("raise `daily_tokens` below `[budget]`"), "{told:?}");
    stored.run(&["run", "hello"]).ok();
    assert_eq!(notices().len(), 2, "it is used up now");
    for _ in 0..2 {
        stored.run(&["run", "hello"]).ended(1).says(&["is used up"]);
    }
    assert_eq!(notices().len(), 2, "each is said once a day");
}

#[test]
fn a_turn_that_reaches_the_limit_stops_before_its_next_request() {
    let world = World::new();
    let rules = json!([rule("look", 0, calls("whoami", json!({}))), rule("look", 1, says("Done."))]);
    let model = Model::alone(&world, &rules);
    world.file("embody.toml", model.config(WireFormat::Anthropic) + "[budget]\ndaily_tokens = 1\n");
    world.run(&["run", "look"]).ended(1).says(&["error: stopped: the daily budget is used up"]);
    assert_eq!(model.requests().len(), 1);
    let report = world.run(&["usage", "--json"]).ok().json();
    assert_eq!(report["total"]["requests"], 1);
}

#[test]
fn an_operator_reads_usage_and_counters_over_http() {
    let world = World::new();
    let model = Model::alone(&world, &json!([rule("hello", 0, says("Good morning."))]));
    world.file("embody.toml", model.config(WireFormat::OpenAi) + PRICES + "[budget]\ndaily = 5.00\n");
    world.run(&["run", "hello"]).ok();
    world.run(&["run", "--user", "ann", "hello"]).ok();
    let (owner, ann, chat) =
        (token(&world, "owner", "operate"), token(&world, "ann", "operate"), token(&world, "owner", "chat"));
    let served = Served::start(&world);
    let report = served.get("/api/usage?by=user", &owner).json();
    let printed = world.run(&["usage", "--json", "--by", "user"]).ok().json();
    for key in ["rows", "total", "budgets", "timezone"] {
        assert_eq!(report[key], printed[key], "{key}");
    }
    assert_eq!(report["budgets"][0]["limit"], "5.00");
    let own = served.get("/api/usage?by=user", &ann).json();
    assert_eq!((own["rows"].as_array().unwrap().len(), &own["rows"][0]["user"]), (1, &json!("ann")));
    assert_eq!(own["budgets"], json!([]));
    served.get("/api/usage", &chat).refused(403, "the scope `operate` is required");
    served.get("/api/usage?by=week", &owner).refused(400, "unknown `by`: `week`");
    served.get("/api/usage?since=soon", &owner).refused(400, "invalid `since`: `soon`");

    // Counters belong to the process: a turn of its own.
    let thread = served.post("/api/chat", &chat, &json!({"text": "hello"}));
    assert_eq!(thread.status, 200, "{}", thread.body);
    let metrics = served.get("/metrics", &owner).body;
    let line = |start: &str| {
        metrics.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {metrics}"))
    };
    assert!(line("embody_model_requests_total{model=\"scripted\",result=\"done\"}").ends_with(" 1"));
    let input = line("embody_model_tokens_total{model=\"scripted\",type=\"input\"}");
    assert!(input.rsplit(' ').next().unwrap().parse::<u64>().unwrap() > 0, "{input}");
}

#[test]
fn a_wrong_price_or_budget_is_named_with_what_to_do() {
    let world = World::new();
    let model = Model::alone(&world, &json!([]));
    for (written, words) in [
        (
            "[prices.scripted]\ninput = -1\noutput = 2\n",
            ["`prices.scripted.input` is `-1`", "from 0 to 1000000"],
        ),
        ("[prices.scripted]\ninput = 0.1234567\noutput = 2\n", ["0.1234567", "at most six decimals"]),
        ("[prices.scripted]\ninput = \"3\"\noutput = 2\n", ["must be a number", "without quotes"]),
        ("[prices.scripted]\ninput = 3.0\n", ["`prices.scripted` has no `output`", "add `output = …`"]),
        ("[prices.scripted]\ninptu = 3.0\n", ["unknown key `inptu`", "did you mean `input`"]),
        ("[budget]\ndaily = 5\n", ["the model `scripted` has no price", "add `[prices.scripted]`"]),
        ("[budget.agents.clerk]\ndaily = 5\n", ["the model `scripted` has no price", "`daily_tokens`"]),
        ("[budget]\ndaily_token = 5\n", ["unknown key `daily_token`", "did you mean `daily_tokens`"]),
    ] {
        world.file("embody.toml", model.config(WireFormat::OpenAi) + written);
        world.run(&["usage"]).ended(2).says(&words);
    }
}
