//! Runs the lint over every value of an input, with the owner's view: the source of each finding, and what it attempts.

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
    let mut texts = Texts::default();
    let agent = &input.agent;
    let plain = [
        &input.persona,
        &input.soul,
        &agent.identity,
        &agent.instructions,
        &agent.role,
        &input.instructions,
        &input.channel,
    ];
    texts.add(plain.into_iter().flatten(), |text| vec![text]);
    texts.add(&input.identity, |identity| {
        let fields = [&identity.name, &identity.creature, &identity.vibe, &identity.description];
        fields.into_iter().flatten().map(String::as_str).collect()
    });
    texts.add(&input.user, |user| user.name.as_deref().into_iter().chain(user.location.as_deref()).collect());
    texts.add(&agent.responsibilities, |duty| vec![&duty.title, &duty.content]);
    texts.add(&input.project, |file| vec![&file.text]);
    texts.add(&input.workspace_files, |file| vec![&file.text]);
    texts.add(&input.skills, |skill| vec![&skill.name, &skill.description]);
    texts.add(&input.servers, |server| vec![&server.description]);
    texts.add(&input.tools, |tool| vec![&tool.description]);
    texts.add(&input.memories, |all| all.iter().map(String::as_str).collect());
    texts.add(&input.task, |task| {
        let steps = task.steps.iter().map(|step| step.text.as_str());
        [task.title.as_str()].into_iter().chain(task.description.as_deref()).chain(steps).collect()
    });
    texts.0
}

#[derive(Default)]
struct Texts<'a>(Vec<(&'a Source, &'a str)>);

impl<'a> Texts<'a> {
    fn add<T: 'a>(
        &mut self,
        values: impl IntoIterator<Item = &'a Value<T>>,
        parts: impl Fn(&'a T) -> Vec<&'a str>,
    ) {
        // The owner may see everything that is in their own workspace.
        for seen in values.into_iter().filter_map(|value| value.reveal(Audience::Owner)) {
            self.0.extend(parts(seen.value).into_iter().map(|text| (seen.source, text)));
        }
    }
}
