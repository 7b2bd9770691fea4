//! The task at hand and how far it is.

use crate::input::StepState;
use crate::section::{CacheClass, Frame, Kind, Layer, Section, TruncationPriority};

pub(crate) static TASK: Section = Section {
    cache_class: CacheClass::Volatile,
    layer: Layer::Data,
    // It gives way last: its size changes from turn to turn, and the cuts above it must not.
    truncation_priority: TruncationPriority::new(11, 128),
    write: |view, block| {
        let Some(task) = view.reveal_optional(&view.input().task) else { return };
        block.text("You are working on task #");
        block.inline(task.part(|task| task.id.as_str()));
        block.text(". Do what moves it forward and nothing else.\n");
        if let Some(title) = task.text(|task| Some(task.title.as_str())) {
            block.text("\nTitle: ");
            block.inline(title);
        }
        if let Some(description) = task.text(|task| task.description.as_deref()) {
            block.lines_behind("\nDescription:", description);
        }
        if let Some(status) = task.text(|task| task.status.as_deref()) {
            block.text("\nStatus: ");
            block.volatile(status);
        }
        if !task.value.steps.is_empty() {
            block.text("\nSteps:\n");
        }
        let at_hand = task.value.steps.iter().position(|step| step.state == StepState::Current);
        for (index, step) in task.value.steps.iter().enumerate() {
            // The step at hand stays, whatever else gives way.
            if Some(index) == at_hand {
                block.end_items()
            } else {
                block.item()
            }
            let (sign, end) = match step.state {
                StepState::Current => ("→", "\n"),
                StepState::Open => ("○", "\n"),
                StepState::Done => ("✓", " (done)\n"),
            };
            block.volatile_text(format!("{}. {sign} ", index + 1));
            block.volatile(task.part(|_| step.text.as_str()));
            block.text(end);
        }
        block.end_items();
    },
    ..Section::new(Kind::Task, Frame::Tag("Task"))
};
