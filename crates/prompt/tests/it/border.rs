//! The border between what is stable and what is fresh: what lies before it is the same in every turn.

use embody_prompt::{
    Layout, ProjectFile, PromptInput, RenderedPrompt, Responsibility, Step, StepState, Task,
};
use proptest::prelude::*;

use crate::hostile::{self, Chosen, Shape};
use crate::{given, parse};

/// The values that may differ in every turn, with `mark` in each of them.
fn with_fresh(mut input: PromptInput, mark: &str) -> PromptInput {
    input.now = given::now(&format!("{mark} 21:00"), &format!("{mark}/Zone"));
    let host = &mut input.host;
    for (slot, name) in [
        (&mut host.session, "session"),
        (&mut host.accept_language, "accept_language"),
        (&mut host.remote_ip, "remote_ip"),
        (&mut host.location, "location"),
    ] {
        *slot = given::text(&format!("{mark}-{name}"), name);
    }
    let states = [StepState::Current, StepState::Open, StepState::Done];
    let step = |index: usize| Step {
        text: format!("{mark} step {index}"),
        state: states[(index + mark.len()) % states.len()],
    };
    let task = Task {
        id: "7".into(),
        title: "Ship it".into(),
        description: Some("All of it.".into()),
        status: Some(format!("{mark} status")),
        steps: (0..3).map(step).collect(),
    };
    input.task = Some(given::open(task, "task"));
    input
}

/// A prompt as people have them: some kilobytes of rules and self, tools, a task.
fn typical() -> PromptInput {
    let mut input = given::empty();
    input.body = given::body(
        &"- Credentials never leave this machine. Ask before anything that others see.\n".repeat(40),
    );
    input.identity = given::nova();
    input.soul =
        given::text(&"I keep things short, and I say what I know and how I know it.\n".repeat(20), "SOUL.md");
    input.agent.instructions =
        given::text(&"Work in small steps and check each one of them.\n".repeat(20), "agent");
    let duty = Responsibility { title: "Inbox".into(), content: "Sort it every morning. ".repeat(10) };
    input.agent.responsibilities.push(given::open(duty, "agent"));
    input.memories = Some(given::open(vec!["The user likes tea.".to_owned(); 10], "memories"));
    input.instructions = given::text(&"Always answer in German. ".repeat(20), "instructions");
    input.tools = (0..20)
        .map(|number| given::tool(&format!("tool_{number}"), "Does one thing, and says what it did."))
        .chain([given::tool("read_memory", "Reads."), given::tool("save_memory", "Saves.")])
        .collect();
    let rules = "- Run the tests before you push, and say in the commit why, not what.\n".repeat(40);
    input.project.push(given::open(ProjectFile { path: "CLAUDE.md".into(), text: rules }, "CLAUDE.md"));
    input.channel = given::text("telegram", "--channel");
    for (slot, value) in [
        (&mut input.host.host, "box"),
        (&mut input.host.os, "linux"),
        (&mut input.host.shell, "bash"),
        (&mut input.host.model, "some-model"),
    ] {
        *slot = given::text(value, "host");
    }
    input
}

fn both(input: &PromptInput, layout: &Layout) -> (RenderedPrompt, RenderedPrompt) {
    let one = given::shown(&with_fresh(input.clone(), "@@one@@"), layout);
    let two = given::shown(&with_fresh(input.clone(), "@@another one@@"), layout);
    (one, two)
}

/// Two prompts that differ only in fresh values share everything before the border.
// spec: T-12
#[test]
fn nothing_fresh_stands_before_the_border() {
    for layout in Layout::ALL.into_iter().flat_map(|layout| [layout, layout.with_volatile_last(true)]) {
        let (one, two) = both(&typical(), &layout);
        assert_eq!(one.stable_len, two.stable_len, "{}", layout.name);
        assert_eq!(one.text[..one.stable_len], two.text[..two.stable_len], "{}", layout.name);
        assert!(!one.text[..one.stable_len].contains("@@"), "{}", layout.name);
        match one.text.contains("@@") {
            true => assert!(one.text[one.stable_len..].starts_with("@@one@@"), "{}", layout.name),
            false => assert_eq!(one.stable_len, one.text.len(), "{}", layout.name),
        }
    }
}

/// The border is where the seed's order puts the first fresh value, or behind all stable sections.
// spec: T-12
#[test]
fn fresh_last_moves_fresh_sections_behind_stable_ones() {
    let names = |layout: Layout| -> Vec<&str> {
        let rendered = given::shown(&with_fresh(typical(), "@@"), &layout.with_body(false));
        rendered.spans.iter().map(|span| span.kind.name()).collect()
    };
    assert_eq!(
        names(Layout::TAGGED),
        [
            "identity",
            "instructions",
            "responsibilities",
            "storage",
            "formatting",
            "context",
            "memories",
            "task"
        ]
    );
    assert_eq!(
        names(Layout::TAGGED.with_volatile_last(true)),
        [
            "identity",
            "instructions",
            "responsibilities",
            "storage",
            "formatting",
            "memories",
            "context",
            "task"
        ]
    );
    assert_eq!(
        names(Layout::CHANNEL.with_volatile_last(true)),
        ["identity", "soul", "channel", "memory", "user_instructions", "tools", "current_time"]
    );
    assert_eq!(names(Layout::FULL.with_volatile_last(true)).last(), Some(&"runtime"));
    assert_eq!(names(Layout::FULL)[4], "runtime");
}

/// Between turns of one session almost all of a typical prompt can be cached.
// spec: T-12
#[test]
fn with_fresh_last_most_of_a_prompt_is_cacheable() {
    for layout in [Layout::FULL, Layout::TAGGED, Layout::CHANNEL] {
        let (one, _) = both(&typical(), &layout.with_volatile_last(true));
        let share = one.stable_len * 100 / one.text.len();
        assert!(share >= 95, "{}: {share} % of {} bytes", layout.name, one.text.len());
    }
}

/// A cut falls where it fell in the last turn: a longer time of day must not shorten the soul.
// spec: T-12
#[test]
fn a_cut_does_not_move_with_fresh_values() {
    for layout in
        [Layout::FULL, Layout::TAGGED, Layout::CHANNEL].map(|layout| layout.with_volatile_last(true))
    {
        for total in [2_200, 2_600, 3_000] {
            let mut input = typical();
            let lines: String = (0..900).map(|line| format!("{line}. a line of the soul\n")).collect();
            input.soul = given::text(&lines, "SOUL.md");
            input.budget.total = total;
            let (one, two) = both(&input, &layout);
            assert!(one.spans.iter().any(|span| span.truncated), "{}", layout.name);
            assert_eq!(one.text[..one.stable_len], two.text[..two.stable_len], "{} {total}", layout.name);
        }
    }
}

/// The border is a character's start, and what is fresh by its section's pace lies behind what is stable.
#[test]
fn a_withheld_time_leaves_a_whole_prompt_stable() {
    let mut input = given::empty();
    input.now = embody_prompt::Value::new(
        embody_prompt::LocalTime { local: "@@".into(), zone: "@@".into(), zone_source: None },
        embody_prompt::Source::fixed("clock"),
        embody_prompt::Audience::Owner,
    );
    input.audience = embody_prompt::Audience::Public;
    let rendered = given::shown(&input, &Layout::CHANNEL);
    assert_eq!(rendered.stable_len, rendered.text.len());
    assert_eq!(given::content(&rendered, "current_time"), Some("unknown"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    // spec: T-12
    #[test]
    fn hostile_strings_do_not_move_the_border(
        strings in prop::collection::vec(hostile::string(), 1..8),
        shape in hostile::shape(),
        Chosen(layout) in hostile::layout(),
    ) {
        let (one, two) = both(&hostile::input(&strings, shape), &layout);
        prop_assert!(one.text.is_char_boundary(one.stable_len));
        prop_assert_eq!(&one.text[..one.stable_len], &two.text[..two.stable_len]);
        prop_assert!(!one.text[..one.stable_len].contains("@@one@@"));
    }
}

/// The readers agree about where sections are when fresh ones are last.
#[test]
fn sections_in_another_order_are_the_same_sections() {
    let input = hostile::fill(Shape::FULL, str::to_owned);
    for layout in [Layout::TAGGED, Layout::FULL, Layout::CHANNEL].map(|layout| layout.with_body(false)) {
        let sections = |layout: &Layout| {
            let rendered = given::shown(&input, layout);
            let mut texts: Vec<String> =
                rendered.spans.iter().map(|span| rendered.text[span.start..span.end].to_owned()).collect();
            texts.sort();
            (texts, parse::hidden(&rendered.text).len())
        };
        assert_eq!(sections(&layout), sections(&layout.with_volatile_last(true)));
    }
}
