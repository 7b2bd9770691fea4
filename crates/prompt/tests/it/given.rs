//! Short ways to make values for tests. No assertions here.

use embody_prompt::{
    Audience, Body, BodyPart, Budget, Identity, Layout, LocalTime, Prompt, PromptInput, RenderedPrompt,
    Source, Tool, Value, assemble, render,
};

/// A value that every room may see, from a source named after it.
pub(crate) fn open<T>(inner: T, source: &str) -> Value<T> {
    Value::new(inner, Source::named(source), Audience::Public)
}

/// The same for text.
pub(crate) fn text(words: &str, source: &str) -> Option<Value<String>> {
    Some(open(words.to_owned(), source))
}

pub(crate) fn now(local: &str, zone: &str) -> Value<LocalTime> {
    open(LocalTime { local: local.into(), zone: zone.into(), zone_source: None }, "clock")
}

/// Nothing but the time, with a budget that no test reaches by accident.
pub(crate) fn empty() -> PromptInput {
    let mut input =
        PromptInput::new(now("Sunday, 2026-11-15 21:00", "Europe/Berlin"), embody_prompt::Audience::Owner);
    input.budget = Budget { total: 1_000_000, sections: Vec::new() };
    input
}

pub(crate) fn body(words: &str) -> Option<Body> {
    Some(Body {
        parts: vec![BodyPart { text: words.into(), source: Source::file("prompts/agent_system.md") }],
    })
}

pub(crate) fn nova() -> Option<Value<Identity>> {
    let identity = Identity {
        name: Some("Nova".into()),
        emoji: Some("🦊".into()),
        creature: Some("fox".into()),
        vibe: Some("calm and quick".into()),
        description: Some("keeper of the calendar".into()),
    };
    Some(open(identity, "IDENTITY.md"))
}

pub(crate) fn tool(name: &str, description: &str) -> Value<Tool> {
    let schema = r#"{"type":"object","properties":{"query":{"type":"string"}}}"#.into();
    open(Tool { name: name.into(), description: description.into(), schema }, "tools")
}

/// What a model would get.
pub(crate) fn shown(input: &PromptInput, layout: &Layout) -> RenderedPrompt {
    render(&assemble(input, layout))
}

/// The names of a prompt's notes.
pub(crate) fn note_names(prompt: &Prompt<'_>) -> Vec<&'static str> {
    prompt.notes.iter().map(|note| note.kind.name()).collect()
}

/// The content of the section with that heading or tag, without its frame.
pub(crate) fn content<'a>(rendered: &'a RenderedPrompt, kind: &str) -> Option<&'a str> {
    let span = rendered.spans.iter().find(|span| span.kind.name() == kind)?;
    let section = &rendered.text[span.start..span.end];
    let inner = section.split_once('\n').map_or("", |(_, inner)| inner);
    Some(match section.starts_with('<') {
        true => inner.rsplit_once('\n').map_or("", |(inner, _)| inner),
        false => inner,
    })
}
