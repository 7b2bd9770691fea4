//! Renders runs as Telegram's HTML. Tags are opened in a fixed order and closed in reverse, so the result is always
//! well formed.

use super::rich::{Run, Style};

/// The HTML of these runs; all open tags are closed at the end.
pub(super) fn render(runs: &[Run<'_>]) -> String {
    let mut out = String::new();
    let mut open: Vec<Tag> = Vec::new();
    for run in runs {
        let wanted = tags(&run.style);
        let kept = open.iter().zip(&wanted).take_while(|(one, other)| one == other).count();
        close(&mut open, kept, &mut out);
        for tag in wanted.into_iter().skip(kept) {
            out.push_str(&tag.open);
            open.push(tag);
        }
        escape(&run.text, &mut out);
    }
    close(&mut open, 0, &mut out);
    out
}

#[derive(PartialEq, Eq)]
struct Tag {
    /// Distinguishes adjacent blocks of the same kind.
    number: usize,
    open: String,
    close: &'static str,
}

fn tags(style: &Style) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut tag = |number: usize, open: String, close| tags.push(Tag { number, open, close });
    if let Some(number) = style.quote {
        tag(number, "<blockquote>".to_owned(), "</blockquote>");
    }
    if let Some(pre) = &style.pre {
        match &pre.language {
            Some(language) => {
                let open = format!("<pre><code class=\"language-{}\">", escaped(language));
                tag(pre.number, open, "</code></pre>");
            }
            None => tag(pre.number, "<pre>".to_owned(), "</pre>"),
        }
    }
    if let Some(link) = &style.link {
        tag(0, format!("<a href=\"{}\">", escaped(link)), "</a>");
    }
    let plain = [
        (style.bold, "<b>", "</b>"),
        (style.italic, "<i>", "</i>"),
        (style.strike, "<s>", "</s>"),
        (style.code, "<code>", "</code>"),
    ];
    plain
        .into_iter()
        .filter(|(is_on, ..)| *is_on)
        .for_each(|(_, open, close)| tag(0, open.to_owned(), close));
    tags
}

fn close(open: &mut Vec<Tag>, kept: usize, out: &mut String) {
    while open.len() > kept {
        if let Some(tag) = open.pop() {
            out.push_str(tag.close);
        }
    }
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c => out.push(c),
        }
    }
}

/// Escapes an attribute value.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    escape(text, &mut out);
    out.replace('"', "&quot;")
}
