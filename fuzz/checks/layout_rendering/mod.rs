//! What must hold for every prompt, whatever its input: bytes become an input and a layout (`decode`), the prompt is
//! assembled and rendered, and its account (`account`) and its frames (`frames`) are checked with readers of their own.

mod account;
mod decode;
mod fragments;
mod frames;

use embody_prompt::{RenderedPrompt, assemble, render};

/// Panics when something does not hold.
pub(crate) fn check(data: &[u8]) {
    let case = decode::case(data);
    let prompt = assemble(&case.input, &case.layout);
    let rendered = render(&prompt);
    account::check(&case, &prompt.notes, &rendered);
    frames::check(&case, &rendered);

    let again = render(&assemble(&case.input, &case.layout));
    assert_eq!(rendered.text, again.text, "assembled twice, the same twice");
    assert_eq!(rendered.hash, again.hash, "the same text, the same hash");
    assert_eq!(rendered.stable_len, again.stable_len, "the same text, the same border");
}

/// Where what stands below the body starts, separator included; 0 without a body.
fn body_end(rendered: &RenderedPrompt) -> usize {
    rendered.spans.first().filter(|span| span.kind == embody_prompt::Kind::Body).map_or(0, |span| span.end)
}

/// The text below the body, separator included.
fn below_body(rendered: &RenderedPrompt) -> &str {
    &rendered.text[body_end(rendered)..]
}
