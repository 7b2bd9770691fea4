//! Who the agent is, in three forms: sentences (`full`), its own text (`tagged`), one line (`channel`).

use super::DEFAULT_SOUL;
use super::soul::soul;
use crate::audience::{Visible, VisibleInput};
use crate::block::Block;
use crate::input::Identity;
use crate::section::{Frame, Kind, Layer, Section, TruncationPriority};

const ROW: Section =
    Section { layer: Layer::Agent, ..Section::new(Kind::Identity, Frame::Heading("Identity")) };

pub(crate) static IDENTITY_FULL: Section = Section { write: write_full, ..ROW };

pub(crate) static IDENTITY_CHANNEL: Section = Section { write: write_channel, ..ROW };

pub(crate) static IDENTITY_TAGGED: Section = Section {
    frame: Frame::Tag("Identity"),
    truncation_priority: TruncationPriority::new(10, 256),
    when: |view| {
        view.text(&view.input().agent.role).is_none() && (has_identity(view) || is_unconfigured(view))
    },
    write: write_tagged,
    ..ROW
};

pub(super) fn has_identity(view: &VisibleInput<'_>) -> bool {
    view.text(&view.input().agent.identity).is_some() || identity(view).is_some() || soul(view).is_some()
}

/// An agent without configuration gets the built-in soul.
fn is_unconfigured(view: &VisibleInput<'_>) -> bool {
    !view.input().agent.configured
}

fn identity<'a>(view: &VisibleInput<'a>) -> Option<Visible<'a, Identity>> {
    view.reveal_optional(&view.input().identity).filter(|identity| !identity.value.is_empty())
}

fn write_full<'a>(view: &VisibleInput<'a>, block: &mut Block<'a>) {
    let Some(identity) = identity(view) else { return };
    let mut first = true;
    let mut sentence = |block: &mut Block<'a>, start: &'static str, values: [Option<Visible<'a, str>>; 2]| {
        let [Some(value), second] = values else { return };
        block.text(if std::mem::take(&mut first) { "" } else { "\n" });
        block.text(start);
        block.inline(value);
        if let Some(second) = second {
            block.text(" ");
            block.inline(second);
        }
        block.text(".");
    };
    let emoji = identity.text(|identity| identity.emoji.as_deref());
    sentence(block, "Your name is ", [identity.text(|identity| identity.name.as_deref()), emoji]);
    sentence(block, "You are a ", [identity.text(|identity| identity.creature.as_deref()), None]);
    sentence(block, "Your vibe: ", [identity.text(|identity| identity.vibe.as_deref()), None]);
    sentence(block, "What you are for: ", [identity.text(|identity| identity.description.as_deref()), None]);
}

fn write_channel<'a>(view: &VisibleInput<'a>, block: &mut Block<'a>) {
    let Some(identity) = identity(view) else { return };
    block.text("You are ");
    inline_or(block, identity.text(|identity| identity.name.as_deref()), "an AI assistant");
    block.text(" — ");
    inline_or(block, identity.text(|identity| identity.description.as_deref()), "a personal assistant");
    block.text(".");
    if let Some(vibe) = identity.text(|identity| identity.vibe.as_deref()) {
        block.text("\n");
        block.line(vibe);
    }
}

fn inline_or<'a>(block: &mut Block<'a>, value: Option<Visible<'a, str>>, default: &'static str) {
    match value {
        Some(value) => block.inline(value),
        None => block.text(default),
    }
}

fn write_tagged<'a>(view: &VisibleInput<'a>, block: &mut Block<'a>) {
    if let Some(own) = view.text(&view.input().agent.identity) {
        return block.lines(own);
    }
    write_full(view, block);
    let named = identity(view).is_some();
    match soul(view) {
        Some(soul) => {
            block.text(if named { "\n\n" } else { "" });
            block.lines(soul);
        }
        None if !named => block.text(DEFAULT_SOUL),
        None => {}
    }
}
