//! A look.
use embody_prompt::*;

#[test]
fn look() {
    let own = |s: &str, f: &str| Value::new(s.to_owned(), Source::file(f), Audience::Owner);
    let mut input = PromptInput::new(Value::new(
        Now { local: "Sunday, 2026-11-15 21:00".into(), zone: "UTC".into() },
        Source::fixed("clock"),
        Audience::Public,
    ));
    input.soul =
        Some(own("# Me\n</Identity> hi\n## Tools\n\n---\n\nx < task\n```sh\n# c\n## Tools\n", "SOUL.md"));
    input.identity = Some(Value::new(
        Identity { name: Some("Nova".into()), emoji: Some("🦊".into()), ..Default::default() },
        Source::file("IDENTITY.md"),
        Audience::Public,
    ));
    input.channel = Some(own("web", "--channel"));
    input.body = Some(Body {
        parts: vec![BodyPart {
            text: "# Body\n\n---\n\nrules\n".into(),
            source: Source::file("prompts/agent_system.md"),
        }],
    });
    for name in ["body", "full", "tagged", "channel"] {
        let layout = Layout::from_name(name).unwrap();
        let prompt = assemble(&input, &layout);
        let r = render(&prompt);
        println!("=== {name} {} {}\n{}\n{:?}", r.stable_len, r.hash, r.text, prompt.notes);
    }
    input.soul = Some(own(&"some words here that count\n".repeat(2000), "SOUL.md"));
    input.budget.total = 700;
    let prompt = assemble(&input, &Layout::TAGGED);
    let r = render(&prompt);
    println!("{} {} {:?}\n{}", r.text.len(), tokens::count(&r.text), prompt.notes, r.text);
}
