//! The opening packet, whole and degraded.

use embody_mcp::read_arguments;
use embody_mind::{
    BootstrapSession, Caller, Contract, ContractSource, Error, GetSystemPrompt, Mind, SaveMemory, Tool,
};
use embody_prompt::{Audience, Identity, LocalTime, Note, NoteKind, PromptInput, Source, UserProfile, Value};
use embody_store::{DatabaseUrl, Store};
use serde_json::json;

use crate::world::{CONTRACT, host, mind, now, owner};

async fn mind_with(contract: ContractSource) -> Mind {
    Mind::new(Store::open(DatabaseUrl::Memory).await.unwrap(), contract)
}

// spec: N-03
#[tokio::test]
async fn the_packet_is_version_1_to_the_letter() {
    let mind = mind().await;
    for (text, kind) in
        [("Bob likes tea.", "person"), ("Ann likes rain.", "person"), ("Rent is due.", "note")]
    {
        let args = SaveMemory { text: text.into(), kind: Some(kind.into()), ..SaveMemory::default() };
        mind.save_memory(&host("ann"), args, &now()).await.unwrap();
    }
    let packet = mind.bootstrap_session(&host("ann"), BootstrapSession::default(), &now()).await.unwrap();
    let protocol = packet.cognition_protocol;
    let limits = packet.host_limitations.clone();
    assert_eq!(
        json!(packet),
        json!({
            "schema_version": 1,
            "required_first_call": "bootstrap_session",
            "session_id": "s1",
            "mind_contract": CONTRACT,
            "mind_contract_available": true,
            "available_mind_tools": [
                "bootstrap_session", "save_memory", "read_memory", "forget_memory", "recall", "update_instructions",
                "observe", "reflect", "context", "list_memory_files", "get_system_prompt"
            ],
            "cognition_protocol": protocol,
            "context": {
                "user": "ann", "agent": "assistant", "local_time": "2026-11-16T05:00:00+01:00",
                "time_zone": "Europe/Berlin", "instructions_version": 0
            },
            "memory_catalog": { "total_count": 3, "category_counts": { "note": 1, "person": 2 } },
            "degraded_mode": { "persona_available": true, "mind_contract_available": true, "reasons": [] },
            "host_limitations": limits,
        })
    );
    assert!(protocol.starts_with("1. Call bootstrap_session first") && protocol.lines().count() == 7);
    assert!(["read_memory", "save_memory", "observe", "reflect"].iter().all(|tool| protocol.contains(tool)));
    let whole = serde_json::to_string(&packet).unwrap();
    assert!(!whole.contains("tea") && !whole.contains("Rent"), "the catalog quotes memories: {whole}");
}

// spec: N-03
#[tokio::test]
async fn the_session_is_the_given_one_else_the_connections_else_new() {
    let mind = mind().await;
    let begin = async |caller: &Caller, given: serde_json::Value| {
        let args = read_arguments(Tool::BootstrapSession.name(), &given).unwrap();
        mind.bootstrap_session(caller, args, &now()).await.map(|packet| packet.session_id)
    };
    assert_eq!(begin(&host("ann"), json!({ "session_id": "mine" })).await.unwrap(), "mine");
    assert_eq!(begin(&host("ann"), json!({ "session_id": null })).await.unwrap(), "s1");
    let (one, two) =
        (begin(&owner("ann"), json!({})).await.unwrap(), begin(&owner("ann"), json!({})).await.unwrap());
    assert!(one.len() == 36 && one != two, "{one}");
    let refused = begin(&host("ann"), json!({ "session_id": "a\nb" })).await.unwrap_err();
    assert!(refused.to_string().contains(r"`session_id` is `a\nb"), "{refused}");
    assert!(begin(&host("ann"), json!({ "session_id": "x".repeat(300) })).await.is_err());
}

// spec: N-03
#[tokio::test(start_paused = true)]
async fn a_contract_that_cannot_be_had_is_never_pretended() {
    let failing = ContractSource::new(async |_, _| Err("SOUL.md cannot be read".to_owned()));
    let empty = ContractSource::new(async |_, _| {
        Ok(Contract { text: " \n".into(), persona_available: true, reasons: Vec::new() })
    });
    let endless = ContractSource::new(async |_, _| std::future::pending().await);
    for (source, reason) in [
        (failing, "the mind contract is not available: SOUL.md cannot be read"),
        (empty, "the mind contract is not available: the contract is empty"),
        (endless, "the mind contract is not available: the contract was not available within 10 s"),
    ] {
        let mind = mind_with(source).await;
        let packet = mind.bootstrap_session(&host("ann"), BootstrapSession::default(), &now()).await.unwrap();
        assert_eq!((packet.mind_contract.as_str(), packet.mind_contract_available), ("", false));
        assert_eq!(
            json!(packet.degraded_mode),
            json!({ "persona_available": false, "mind_contract_available": false, "reasons": [reason] })
        );
        let refused = mind.get_system_prompt(&host("ann"), GetSystemPrompt {}, &now()).await.unwrap_err();
        assert!(matches!(refused, Error::NoContract { .. }), "{refused}");
    }
}

fn input() -> PromptInput {
    let clock = LocalTime { local: "5:00".into(), zone: "Europe/Berlin".into(), zone_source: None };
    let source = || Source::fixed("test");
    let mut input = PromptInput::new(Value::new(clock, source(), Audience::Public), Audience::Owner);
    let identity = Identity { name: Some("Nia".into()), ..Identity::default() };
    input.identity = Some(Value::new(identity, source(), Audience::Public));
    input.soul = Some(Value::new("Calm and dry.".into(), source(), Audience::Public));
    input.user =
        Some(Value::new(UserProfile { name: Some("Ann".into()), location: None }, source(), Audience::User));
    input.instructions = Some(Value::new("Be brief.".into(), source(), Audience::User));
    input
}

// spec: B-06, S-06
#[tokio::test]
async fn the_contract_is_identity_soul_user_and_instructions() {
    let contract = Contract::assemble(&input());
    let headings: Vec<&str> = contract.text.lines().filter(|line| line.starts_with("## ")).collect();
    assert_eq!(headings, ["## Identity", "## Soul", "## User", "## Memory", "## User Instructions"]);
    for part in ["Your name is Nia.", "Calm and dry.", "The user's name is Ann.", "Be brief."] {
        assert!(contract.text.contains(part), "{}", contract.text);
    }
    assert!(!contract.text.contains("5:00"), "the time would make it stale");
    assert!(contract.persona_available && contract.reasons.is_empty());
    let mind = mind_with(ContractSource::new(async |_, _| Ok(Contract::assemble(&input())))).await;
    assert_eq!(
        mind.get_system_prompt(&host("ann"), GetSystemPrompt {}, &now()).await.unwrap(),
        contract.text
    );
}

// spec: B-07, N-03
#[tokio::test]
async fn a_missing_persona_is_told_and_the_rest_still_given() {
    let mut input = input();
    let missing = "the remote persona is left out: it does not answer";
    input.notes.push(Note::new(NoteKind::PersonaUnavailable, missing, Source::fixed("persona")));
    let contract = Contract::assemble(&input);
    let mind = mind_with(ContractSource::new(move |_, _| std::future::ready(Ok(contract.clone())))).await;
    let packet = mind.bootstrap_session(&host("ann"), BootstrapSession::default(), &now()).await.unwrap();
    assert!(packet.mind_contract_available && packet.mind_contract.contains("Nia"));
    assert_eq!(
        json!(packet.degraded_mode),
        json!({ "persona_available": false, "mind_contract_available": true, "reasons": [missing] })
    );
}
