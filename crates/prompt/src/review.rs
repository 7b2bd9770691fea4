//! Runs the lint over every value of an input, as the owner's eyes: where it is, and what it tries.

use crate::lint::{Finding, Rule, override_attempts, secrets};
use crate::{Audience, PromptInput, Source, Value, hidden_characters};

#[derive(Clone, Debug)]
pub struct Review {
    pub source: Source,
    pub finding: Finding,
}

/// Everything in the lower layers that tries to relax a body rule, and credentials anywhere.
pub fn review(input: &PromptInput) -> Vec<Review> {
    let mut found = Vec::new();
    for part in input.body.iter().flat_map(|body| &body.parts) {
        collect(&mut found, &part.source, secrets(&part.text));
    }
    for (source, text) in lower_layers(input) {
        collect(&mut found, source, attempts(text));
        collect(&mut found, source, secrets(text));
    }
    found
}

/// What the text tries; and if the lint saw nothing in what it hides, that it hides something at all.
fn attempts(text: &str) -> Vec<Finding> {
    let mut findings = override_attempts(text);
    let known = findings.iter().any(|finding| finding.rule == Rule::HiddenText);
    if let Some(index) = text.lines().position(|line| hidden_characters(line) > 0).filter(|_| !known) {
        findings.push(Finding { rule: Rule::HiddenText, line: index + 1, excerpt: String::new() });
    }
    findings
}

fn collect(found: &mut Vec<Review>, source: &Source, findings: Vec<Finding>) {
    found.extend(findings.into_iter().map(|finding| {
        let below = u32::try_from(finding.line.saturating_sub(1)).unwrap_or(0);
        let line = if source.line() == 0 { 0 } else { source.line().saturating_add(below) };
        Review { source: source.clone().at_line(line), finding }
    }));
}

fn lower_layers(input: &PromptInput) -> Vec<(&Source, &str)> {
    let mut texts = Vec::new();
    let agent = &input.agent;
    for value in [
        &input.persona,
        &input.soul,
        &agent.identity,
        &agent.instructions,
        &agent.role,
        &input.instructions,
        &input.channel,
    ] {
        texts.extend(value.iter().flat_map(|value| pieces(value, |text| vec![text.as_str()])));
    }
    texts.extend(input.identity.iter().flat_map(|value| {
        pieces(value, |identity| {
            let fields = [&identity.name, &identity.creature, &identity.vibe, &identity.description];
            fields.into_iter().flatten().map(String::as_str).collect()
        })
    }));
    texts.extend(
        input.user.iter().flat_map(|value| pieces(value, |user| user.name.as_deref().into_iter().collect())),
    );
    texts.extend(
        agent
            .responsibilities
            .iter()
            .flat_map(|value| pieces(value, |duty| vec![&duty.title, &duty.content])),
    );
    texts.extend(input.project.iter().flat_map(|value| pieces(value, |file| vec![file.text.as_str()])));
    texts.extend(
        input.workspace_files.iter().flat_map(|value| pieces(value, |file| vec![file.text.as_str()])),
    );
    texts.extend(
        input.skills.iter().flat_map(|value| pieces(value, |skill| vec![&skill.name, &skill.description])),
    );
    texts.extend(
        input.servers.iter().flat_map(|value| pieces(value, |server| vec![server.description.as_str()])),
    );
    texts.extend(input.tools.iter().flat_map(|value| pieces(value, |tool| vec![tool.description.as_str()])));
    texts.extend(
        input.memories.iter().flat_map(|value| pieces(value, |all| all.iter().map(String::as_str).collect())),
    );
    texts.extend(input.task.iter().flat_map(|value| {
        pieces(value, |task| {
            let steps = task.steps.iter().map(|step| step.text.as_str());
            [task.title.as_str()].into_iter().chain(task.description.as_deref()).chain(steps).collect()
        })
    }));
    texts
}

fn pieces<'a, T>(value: &'a Value<T>, parts: impl Fn(&'a T) -> Vec<&'a str>) -> Vec<(&'a Source, &'a str)> {
    // The owner may see everything that is in their own workspace.
    let Some(seen) = value.reveal(Audience::Owner) else { return Vec::new() };
    parts(seen.value).into_iter().map(|text| (seen.source, text)).collect()
}
