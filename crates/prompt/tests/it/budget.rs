//! The budget: never over but for what is never cut, and that is said.

use embody_prompt::{
    Budget, INSTRUCTIONS_LIMIT, Kind, Layout, NoteKind, PromptInput, Responsibility, assemble, render, tokens,
};
use proptest::prelude::*;

use crate::given;
use crate::hostile::{self, Chosen};

fn long(words: &str, lines: usize) -> String {
    (1..=lines).map(|line| format!("{line}. {words}\n")).collect()
}

/// An agent with too much of everything.
fn crowded() -> PromptInput {
    let mut input = given::empty();
    input.body = given::body(&long("A rule that holds.", 60));
    input.identity = given::nova();
    input.soul =
        given::text(&long("Something about how I am, in a sentence of some length.", 400), "SOUL.md");
    input.instructions = given::text(&"Always answer in rhyme. ".repeat(83), "instructions");
    input.agent.instructions = given::text(&long("How to work.", 300), "agent");
    for number in 0..40 {
        let duty = Responsibility { title: format!("Duty {number}"), content: long("Look after it.", 12) };
        input.agent.responsibilities.push(given::open(duty, "agent"));
    }
    input.memories = Some(given::open(
        (0..300).map(|number| format!("Fact number {number} about the work.")).collect(),
        "memories",
    ));
    input.tools =
        (0..80).map(|number| given::tool(&format!("tool_{number}"), "Does one thing well.")).collect();
    input.channel = given::text("web", "--channel");
    input
}

fn size_with(input: &PromptInput, layout: &Layout, total: usize) -> (usize, Vec<NoteKind>) {
    let mut input = input.clone();
    input.budget.total = total;
    let prompt = assemble(&input, layout);
    let kinds = prompt.notes.iter().map(|note| note.kind).collect();
    (tokens::count(&render(&prompt).text), kinds)
}

/// As soon as the floors fit, the prompt fits.
#[test]
fn a_prompt_fits_whenever_its_floors_do() {
    let input = crowded();
    for layout in [Layout::FULL, Layout::TAGGED, Layout::CHANNEL] {
        let (least, notes) = size_with(&input, &layout, 0);
        assert!(notes.contains(&NoteKind::OverBudget), "{}", layout.name);
        let (all, notes) = size_with(&input, &layout, usize::MAX);
        assert!(!notes.contains(&NoteKind::Cut) && all > 2 * least, "{}: {least} of {all}", layout.name);
        for total in [least, least + 1, least + 100, (least + all) / 2, all - 100, all - 1] {
            let (size, notes) = size_with(&input, &layout, total);
            assert!(size <= total, "{}: {size} tokens of {total}", layout.name);
            assert!(
                !notes.contains(&NoteKind::OverBudget) && notes.contains(&NoteKind::Cut),
                "{}",
                layout.name
            );
        }
        // Fresh values count in steps of 64 tokens, so that cuts stay where they are.
        assert_eq!(
            size_with(&input, &layout, all + 64).1,
            [],
            "{}: nothing is cut from what fits",
            layout.name
        );
    }
}

/// A cut keeps most of what the budget allows: it is no axe.
#[test]
fn a_cut_uses_the_budget() {
    let mut input = given::empty();
    input.soul =
        given::text(&long("Something about how I am, in a sentence of some length.", 2_000), "SOUL.md");
    for total in [1_000, 4_000, 12_000] {
        let (size, _) = size_with(&input, &Layout::CHANNEL, total);
        assert!(size <= total && size * 10 >= total * 9, "{size} tokens of {total}");
    }
}

/// Body and standing instructions are whole in every prompt, however small its budget.
// spec: S-07, B-06
#[test]
fn body_and_instructions_are_never_cut() {
    let mut input = crowded();
    let instructions = "é".repeat(INSTRUCTIONS_LIMIT);
    input.instructions = given::text(&instructions, "instructions");
    for total in [0, 1, 500, 5_000] {
        input.budget = Budget { total, sections: vec![(Kind::Body, 1), (Kind::UserInstructions, 1)] };
        let prompt = assemble(&input, &Layout::CHANNEL);
        let rendered = render(&prompt);
        assert!(rendered.text.starts_with(long("A rule that holds.", 60).trim_end()));
        assert!(rendered.text.contains(&instructions));
        let uncut = |kind| rendered.spans.iter().any(|span| span.kind == kind && !span.truncated);
        assert!(uncut(Kind::Body) && uncut(Kind::UserInstructions));
        assert!(given::note_names(&prompt).contains(&"over_budget"));
    }
}

/// What is cut says so, in the text, in its span and in a note that names the source.
#[test]
fn every_cut_is_marked_and_noted() {
    let mut input = crowded();
    input.budget.total = 3_000;
    let prompt = assemble(&input, &Layout::TAGGED);
    let rendered = render(&prompt);
    let cut: Vec<Kind> = rendered.spans.iter().filter(|span| span.truncated).map(|span| span.kind).collect();
    assert!(!cut.is_empty());
    for span in rendered.spans.iter() {
        let text = &rendered.text[span.start..span.end];
        assert_eq!(text.contains("<!-- embody: "), span.truncated, "{text}");
    }
    let noted: Vec<&str> = prompt
        .notes
        .iter()
        .filter(|note| note.kind == NoteKind::Cut)
        .map(|note| note.message.as_str())
        .collect();
    assert_eq!(noted.len(), cut.len());
    for (message, kind) in noted.iter().zip(&cut) {
        assert!(message.contains(&format!("`{}`", kind.name())), "{message}");
    }
}

/// The least important goes first: the agent's own self stays whole while memories give way.
#[test]
fn sections_give_way_in_their_order() {
    let mut input = crowded();
    let whole = size_with(&input, &Layout::TAGGED, usize::MAX).0;
    input.budget.total = whole - 500;
    let rendered = given::shown(&input, &Layout::TAGGED);
    let cut: Vec<Kind> = rendered.spans.iter().filter(|span| span.truncated).map(|span| span.kind).collect();
    assert_eq!(cut, [Kind::Memories]);
}

/// A limit for one section holds, and leaves the others alone.
#[test]
fn a_section_keeps_to_its_own_limit() {
    let mut input = crowded();
    input.budget = Budget { total: 1_000_000, sections: vec![(Kind::Soul, 600), (Kind::Tools, 300)] };
    let prompt = assemble(&input, &Layout::FULL);
    let rendered = render(&prompt);
    for span in &rendered.spans {
        let size = tokens::count(&rendered.text[span.start..span.end]);
        match span.kind {
            Kind::Soul => assert!(size <= 600 && size > 500 && span.truncated, "{size}"),
            Kind::Tools => assert!(size <= 300 && size > 200 && span.truncated, "{size}"),
            _ => assert!(!span.truncated, "{:?}", span.kind),
        }
    }
    assert_eq!(given::note_names(&prompt), ["cut", "cut"]);
}

/// A section that was cut to its own limit still gives way to the whole.
#[test]
fn both_limits_hold_together() {
    let mut input = given::empty();
    input.soul =
        given::text(&long("Something about how I am, in a sentence of some length.", 1_000), "SOUL.md");
    input.memories =
        Some(given::open((0..900).map(|number| format!("Fact number {number}.")).collect(), "memories"));
    for layout in [Layout::CHANNEL, Layout::TAGGED] {
        input.budget = Budget {
            total: 1_500,
            sections: vec![(Kind::Soul, 3_000), (Kind::Identity, 3_000), (Kind::Memories, 2_000)],
        };
        let prompt = assemble(&input, &layout);
        let text = render(&prompt).text;
        assert!(tokens::count(&text) <= 1_500, "{}: {} tokens", layout.name, tokens::count(&text));
        assert!(!given::note_names(&prompt).contains(&"over_budget"), "{}: {:?}", layout.name, prompt.notes);
        assert!(text.matches("<!-- embody: ").count() <= 2, "{text}");
    }
}

/// Head and tail stay, and a cut falls between lines.
#[test]
fn a_cut_leaves_whole_lines_from_both_ends() {
    let mut input = given::empty();
    input.soul =
        given::text(&long("Something about how I am, in a sentence of some length.", 500), "SOUL.md");
    input.budget.total = 1_200;
    let rendered = given::shown(&input, &Layout::CHANNEL);
    let soul = given::content(&rendered, "soul").unwrap();
    assert!(soul.starts_with("1. Something") && soul.contains("\n500. Something"), "{soul}");
    for line in soul.lines().filter(|line| !line.is_empty()) {
        assert!(line.ends_with("length.") || line.starts_with("<!-- embody: "), "{line}");
    }
}

/// A fence that the cut would leave open is closed on both sides of it.
#[test]
fn a_cut_inside_code_leaves_no_open_fence() {
    let mut input = given::empty();
    let code = format!("Before.\n```sh\n{}```\nAfter.\n", "echo one more line of it\n".repeat(600));
    input.soul = given::text(&code, "SOUL.md");
    input.budget.total = 900;
    let rendered = given::shown(&input, &Layout::CHANNEL);
    let soul = given::content(&rendered, "soul").unwrap();
    assert!(!crate::parse::ends_in_code(soul), "{soul}");
    let (head, _) = soul.split_once("<!-- embody: ").unwrap();
    assert!(!crate::parse::ends_in_code(head), "{head}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn over_the_budget_only_with_a_note(
        strings in prop::collection::vec(hostile::string(), 1..8),
        repeat in 1..40_usize,
        shape in hostile::shape(),
        Chosen(layout) in hostile::layout(),
        budget in hostile::budget(),
    ) {
        let long: Vec<String> = strings.iter().map(|words| format!("{words}\n").repeat(repeat)).collect();
        let mut input = hostile::input(&long, shape);
        input.budget = budget;
        let prompt = assemble(&input, &layout);
        let rendered = render(&prompt);
        let over = tokens::count(&rendered.text) > input.budget.total;
        let noted = |source: &str| {
            prompt.notes.iter().any(|note| note.kind == NoteKind::OverBudget && note.source.name() == source)
        };
        prop_assert_eq!(over, noted("budget"));
        if over {
            let least = size_with(&Budgetless(&input).floors(), &layout, 0).0;
            prop_assert!(least > input.budget.total, "{least} tokens would fit into {}", input.budget.total);
        }
    }
}

/// The same input without limits for sections.
struct Budgetless<'a>(&'a PromptInput);

impl Budgetless<'_> {
    fn floors(&self) -> PromptInput {
        let mut input = self.0.clone();
        input.budget.sections.clear();
        input
    }
}
