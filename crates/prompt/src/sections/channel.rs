//! The channel that the reply goes to, and how to write for it.

use crate::section::{Frame, Kind, Section};

pub(crate) static CHANNEL: Section = Section {
    write: |view, block| {
        let Some(channel) = view.text(&view.input().channel) else { return };
        block.text("You are responding via ");
        block.inline(channel);
        block.text(".\n");
        block.text(guidance(channel.value.trim()));
    },
    ..Section::new(Kind::Channel, Frame::Heading("Channel"))
};

fn guidance(channel: &str) -> &'static str {
    match channel {
        name if name.starts_with("telegram") => {
            "The user reads this on Telegram, mostly on a phone: keep it short, one thought per paragraph, simple lists, \
             no tables and no headings."
        }
        "scheduled" => {
            "This is a scheduled run and nobody is waiting. Ask nothing back: decide, do the whole job, and report what \
             you did and what you found."
        }
        _ => "The user reads this in a web page. Markdown is rendered, tables and code blocks included.",
    }
}
