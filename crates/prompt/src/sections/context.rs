//! The time: a tag of its own in `tagged`, a heading in `channel`.

use crate::Source;
use crate::audience::{Visible, VisibleInput};
use crate::block::Block;
use crate::section::{CacheClass, Frame, Kind, Section};

const ROW: Section = Section {
    cache_class: CacheClass::Volatile,
    write: |view, block| {
        block.text("Current time: ");
        write_time(view, block);
    },
    ..Section::new(Kind::Context, Frame::Tag("Context"))
};

pub(crate) static CONTEXT: Section = ROW;

pub(crate) static CURRENT_TIME: Section =
    Section { kind: Kind::CurrentTime, frame: Frame::Heading("Current Time"), write: write_time, ..ROW };

fn write_time<'a>(view: &VisibleInput<'a>, block: &mut Block<'a>) {
    let Some(now) = view.reveal(&view.input().now) else { return write_utc(view, block) };
    block.volatile_line(now.part(|now| now.local.as_str()));
    block.text(" (");
    let source = now.value.zone_source.as_ref().unwrap_or(now.source);
    block.volatile(Visible { value: now.value.zone.as_str(), source });
    block.text(")");
}

/// The zone tells where the user is; UTC tells nothing.
fn write_utc<'a>(view: &VisibleInput<'a>, block: &mut Block<'a>) {
    const CLOCK: &Source = &Source::fixed("clock");
    match view.input().utc.as_str() {
        "" => block.text("unknown"),
        utc => {
            block.volatile_line(Visible { value: utc, source: CLOCK });
            block.text(" (UTC)");
        }
    }
}
