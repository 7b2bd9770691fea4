//! Nasty content: it comes out whole, in order, the same on every backend.

use super::old::{BARE, Old, exported, on_each, table};
use crate::world::scope;

on_each!(
    joins_by_priority,
    a_long_text_is_kept_whole,
    what_is_no_string_becomes_compact_json,
    odd_names_stay_apart,
    many_rows_come_through,
);

async fn customization(old: &Old, id: usize, content: Option<&str>, priority: &str) {
    let content = content.map_or_else(|| "NULL".to_owned(), |text| format!("'{}'", text.replace('\'', "''")));
    old.run(&format!(
        "INSERT INTO user_agent_prompt_customizations VALUES ({id}, 'ann', 'a', 't{id}', {content}, {priority})"
    ))
    .await;
}

async fn text(old: &Old) -> String {
    let store = old.open().await;
    let text = store.instructions().get(&scope("ann", "a")).await.unwrap().text;
    store.close().await;
    text
}

// spec: S-03. AC-6: one text per user and agent
async fn joins_by_priority(old: Old) {
    old.run(BARE).await;
    customization(&old, 9, Some("\"tie, later id\""), "3").await;
    customization(&old, 1, Some("\"last\""), "NULL").await;
    customization(&old, 2, Some("\"biggest\""), "9223372036854775807").await;
    customization(&old, 3, Some("\"big\""), "9223372036854775806").await;
    customization(&old, 4, Some("\"smallest\""), "-9223372036854775808").await;
    customization(&old, 5, Some("\"ten\""), "10").await;
    customization(&old, 6, Some("\"tie, first id\""), "3").await;
    customization(&old, 7, Some("null"), "0").await;
    customization(&old, 8, Some("\"\""), "0").await;
    customization(&old, 10, None, "0").await;
    customization(&old, 11, Some("\"ten\""), "10").await;
    let report = old.upgrade().await;
    let joined = "smallest\n\nnull\n\ntie, first id\n\ntie, later id\n\nten\n\nten\n\nbig\n\nbiggest\n\nlast";
    assert_eq!(text(&old).await, joined);
    assert_eq!((report.instructions[0].rows, report.instructions[0].joined), (11, 9));
    assert_eq!(
        report.instructions[0].notes,
        ["2 rows without any text", "1 row not a JSON string: kept as compact JSON"]
    );
    assert_eq!(table(&exported(&old.path("export.json")), "user_agent_prompt_customizations").len(), 11);
}

// spec: S-03
async fn a_long_text_is_kept_whole(old: Old) {
    old.run(BARE).await;
    let long: String = "näïve \u{1f600} \\ \" \t\n".chars().cycle().take(1 << 20).collect();
    customization(&old, 1, Some(&serde_json::to_string(&long).unwrap()), "1").await;
    old.run(&format!("INSERT INTO agent_configurations VALUES ('a', '{long}')")).await;
    let report = old.upgrade().await;
    assert!(text(&old).await == long);
    assert!(old.text("SELECT soul FROM agent_configurations").await.unwrap() == long);
    assert_eq!((report.agents[0].characters, report.instructions[0].characters), (1 << 20, 1 << 20));
    assert!(
        report.instructions[0].notes[0].ends_with("bytes; a new one may have 65536"),
        "{:?}",
        report.instructions[0].notes
    );
    assert!(
        table(&exported(&old.path("export.json")), "agent_configurations")[0]["system_prompt"]
            == long.as_str()
    );
}

// spec: S-03
async fn what_is_no_string_becomes_compact_json(old: Old) {
    old.run(BARE).await;
    let nested = r#"{"a": {"b": [1, 2.50, null, {"ü": "it's  \"quoted\" \\ \u0001"}]}, "zz": 12345678901234567890123}"#;
    for (at, json) in [nested, "[]", "true", "-0.5", "{\"only\": \"x y\"}"].into_iter().enumerate() {
        customization(&old, at, Some(json), &at.to_string()).await;
    }
    let report = old.upgrade().await;
    let compact =
        r#"{"a":{"b":[1,2.50,null,{"ü":"it's  \"quoted\" \\ \u0001"}]},"zz":12345678901234567890123}"#;
    assert_eq!(text(&old).await, format!("{compact}\n\n[]\n\ntrue\n\n-0.5\n\n{{\"only\":\"x y\"}}"));
    assert_eq!(report.instructions[0].notes, ["5 rows not a JSON string: kept as compact JSON"]);
}

async fn odd_names_stay_apart(old: Old) {
    old.run(BARE).await;
    for (at, (user, agent)) in
        [("ann", "b"), ("ann ", "b"), ("ANN", "b"), ("änn", "b"), ("ann", "B"), ("", "b"), ("o''x", "b; --")]
            .into_iter()
            .enumerate()
    {
        old.run(&format!(
            "INSERT INTO user_agent_prompt_customizations VALUES ({at}, '{user}', '{agent}', 't', '\"{at}\"', 1)"
        ))
        .await;
    }
    old.run("INSERT INTO user_agent_prompt_customizations VALUES (90, NULL, 'b', 't', '\"nobody\"', 1)")
        .await;
    let report = old.upgrade().await;
    let seen: Vec<&str> = report.instructions.iter().map(|one| one.user.as_str()).collect();
    assert_eq!(seen, ["", "ANN", "ann", "ann", "ann ", "o'x", "änn"]);
    let left_out = "1 row of `user_agent_prompt_customizations` without a name: only in the export";
    assert!(report.notes.iter().any(|note| note == left_out), "{report:?}");
    let store = old.open().await;
    assert_eq!(store.instructions().get(&scope("ann ", "b")).await.unwrap().text, "1");
    assert_eq!(store.instructions().get(&scope("o'x", "b; --")).await.unwrap().text, "6");
    store.close().await;
}

async fn many_rows_come_through(old: Old) {
    old.run(BARE).await;
    let values: Vec<String> = (0..1000)
        .map(|at| format!("({at}, 'user {:03}', 'a', 't{at}', '\"{at}\"', {})", at % 250, -at))
        .collect();
    old.run(&format!("INSERT INTO user_agent_prompt_customizations VALUES {}", values.join(","))).await;
    let report = old.upgrade().await;
    assert_eq!(report.instructions.len(), 250);
    assert!(report.instructions.iter().all(|one| one.rows == 4 && one.notes.is_empty()));
    assert_eq!(table(&exported(&old.path("export.json")), "user_agent_prompt_customizations").len(), 1000);
    let store = old.open().await;
    assert_eq!(
        store.instructions().get(&scope("user 007", "a")).await.unwrap().text,
        "757\n\n507\n\n257\n\n7"
    );
    store.close().await;
}
