//! One small test for each requirement on layering, the full, the tagged and the channel prompt.

mod body;
mod channel;
mod full;
mod tagged;

use embody_prompt::{
    Audience, DEFAULT_SOUL, Directories, Frame, Identity, Kind, Layout, NoteKind, ProjectFile, PromptInput,
    Responsibility, SEPARATOR, Sandbox, Server, Skill, Source, Step, StepState, Task, Tool, UserProfile,
    Value, WorkspaceFile, assemble, render,
};

use crate::given::{self, content, shown};

fn kinds(input: &PromptInput, layout: &Layout) -> Vec<&'static str> {
    shown(input, layout).spans.iter().map(|span| span.kind.name()).collect()
}

/// Something for every section there is.
fn everything() -> PromptInput {
    let mut input = crate::hostile::fill(crate::hostile::Shape::FULL, str::to_owned);
    input.body = None;
    input.channel = given::text("telegram", "--channel");
    input.tools.push(given::tool("read_memory", "Reads."));
    input.tools.push(given::tool("save_memory", "Saves."));
    input
}

/// A value reaches only the rooms that it is meant for, and the operator hears of it once.
#[test]
fn wider_rooms_see_less() {
    for (meant, audience) in
        Audience::ALL.into_iter().flat_map(|meant| Audience::ALL.map(|audience| (meant, audience)))
    {
        let secret = |words: &str| Some(Value::new(words.to_owned(), Source::file("SOUL.md"), meant));
        let mut input = given::empty();
        input.audience = audience;
        input.soul = secret("PRIVATE SOUL");
        input.instructions = secret("PRIVATE WISH");
        input.host.location = secret("PRIVATE PLACE");
        for layout in [Layout::FULL, Layout::TAGGED, Layout::CHANNEL] {
            let prompt = assemble(&input, &layout);
            let visible = render(&prompt).text.contains("PRIVATE");
            assert_eq!(visible, meant >= audience, "{meant:?} in {audience:?}, {}", layout.name);
            let withheld: usize = prompt.notes.iter().filter(|note| note.kind == NoteKind::Withheld).count();
            assert_eq!(
                withheld,
                usize::from(!visible),
                "{meant:?} in {audience:?}, {}: {:?}",
                layout.name,
                prompt.notes
            );
            assert!(!format!("{:?} {input:?}", prompt.notes).contains("PRIVATE"));
        }
    }
}
