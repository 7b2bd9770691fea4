//! Converts the Markdown that models write to messages that Telegram accepts: valid, escaped, within the length limit.
//! Pure.
//!
//! Formatting is kept as runs of styled text, so that a message can be split anywhere and each part opens and closes
//! its own tags. Nothing is hidden: what Telegram cannot format is shown as text.
//!
//! | file | owns |
//! |---|---|
//! | `markdown` | Markdown to blocks of styled text, a table to text of fixed width |
//! | `rich` | runs of styled text, cleaned as Telegram would, and the gaps between blocks |
//! | this file | splitting a long text, and Telegram's HTML |

mod markdown;
mod rich;

use unicode_segmentation::UnicodeSegmentation;

use self::rich::{Rich, Run, Style};

/// The maximum visible text of one message, in UTF-16 units.
pub const PART_UNITS: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// For Telegram's HTML mode.
    pub html: String,
    /// The visible text, used if Telegram rejects the HTML.
    pub plain: String,
}

/// The messages that show this Markdown, in order. Deterministic; text without visible content gives none.
pub fn parts(markdown: &str) -> Vec<Part> {
    split(&markdown::read(markdown))
}

/// The messages that show this text literally.
pub fn verbatim(text: &str) -> Vec<Part> {
    let mut rich = Rich::default();
    rich.push(text, &Style::default());
    rich.end();
    split(&rich)
}

fn split(rich: &Rich) -> Vec<Part> {
    let text = rich.text();
    let mut start = 0;
    let mut parts = Vec::new();
    for end in cuts(&text, |at| rich.is_pre(at)) {
        let runs = rich.between(start, end);
        parts.push(Part {
            html: render_html(&runs),
            plain: text.get(start..end).unwrap_or_default().to_owned(),
        });
        start = end;
    }
    parts
}

/// From the worst boundary to the best.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Border {
    Character,
    Word,
    Sentence,
    Line,
    Paragraph,
}

/// The ends of the parts; the last one is the end of the text. An empty text has none.
fn cuts(text: &str, is_pre: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut cuts = Vec::new();
    let mut start = 0;
    while let Some(rest) = text.get(start..).filter(|rest| !rest.is_empty()) {
        let length = first(rest, |at| is_pre(start + at));
        start += length.max(rest.chars().next().map_or(1, char::len_utf8));
        cuts.push(start);
    }
    cuts
}

/// The length of the first part.
fn first(text: &str, is_pre: impl Fn(usize) -> bool) -> usize {
    let mut units = 0;
    let mut best: Option<(Border, usize)> = None;
    let mut end = 0;
    let mut before = Before::default();
    for (at, cluster) in text.grapheme_indices(true) {
        if at > 0 {
            let border = before.border(cluster, || is_pre(at.saturating_sub(1)) && is_pre(at));
            // A boundary near the start would make a very short message.
            if units * 2 >= PART_UNITS && best.is_none_or(|(known, _)| border >= known) {
                best = Some((border, at));
            }
            end = at;
        }
        units += cluster.encode_utf16().count();
        if units > PART_UNITS {
            return best.map(|(_, at)| at).or((end > 0).then_some(end)).unwrap_or_else(|| fitting(cluster));
        }
        before.update(cluster);
    }
    text.len()
}

/// The length of one part of a grapheme cluster that is longer than a message.
fn fitting(cluster: &str) -> usize {
    let mut units = 0;
    let fits = cluster.chars().take_while(|c| {
        units += c.len_utf16();
        units <= PART_UNITS
    });
    fits.map(char::len_utf8).sum()
}

/// The text before a position.
#[derive(Default)]
struct Before {
    lines: usize,
    is_space: bool,
    is_stop: bool,
    is_wide_stop: bool,
}

impl Before {
    fn update(&mut self, cluster: &str) {
        let c = cluster.chars().next().unwrap_or_default();
        self.lines = if c == '\n' { self.lines + 1 } else { 0 };
        self.is_space = c.is_whitespace();
        // A space, a bracket or a quote after a full stop still ends the sentence.
        self.is_stop = matches!(c, '.' | '!' | '?' | '…' | ':' | ';')
            || self.is_stop && (self.is_space || matches!(c, ')' | '"' | '”' | '’' | '»'));
        self.is_wide_stop = matches!(c, '。' | '！' | '？' | '；');
    }

    fn border(&self, next: &str, is_in_code: impl Fn() -> bool) -> Border {
        // White space belongs to the text before it.
        if next.starts_with(char::is_whitespace) {
            return Border::Character;
        }
        match self.lines {
            0 if self.is_wide_stop || self.is_space && self.is_stop => Border::Sentence,
            0 if self.is_space => Border::Word,
            0 => Border::Character,
            1 => Border::Line,
            _ if is_in_code() => Border::Line,
            _ => Border::Paragraph,
        }
    }
}

/// The HTML of these runs; all open tags are closed at the end.
fn render_html(runs: &[Run<'_>]) -> String {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

        #[test]
        fn cuts_add_nothing_and_take_nothing(
            pieces in prop::collection::vec((0..900_usize, "[a-z*_`>\n #-]{0,12}👍🏽?"), 0..12)
        ) {
            let text: String = pieces.iter().map(|(times, piece)| piece.repeat(*times)).collect();
            let rich = markdown::read(&text);
            prop_assert_eq!(split(&rich).iter().map(|part| part.plain.as_str()).collect::<String>(), rich.text());
        }
    }

    fn html(markdown: &str) -> String {
        let parts = parts(markdown);
        assert_eq!(parts.len(), 1, "{parts:?}");
        parts[0].html.clone()
    }

    #[test]
    fn what_models_write_is_what_telegram_shows() {
        for (markdown, expected) in [
            ("plain", "plain"),
            ("a < b & c > d \"e\"", "a &lt; b &amp; c &gt; d \"e\""),
            (
                "**bold** and *bold* and _italic_ and ~~gone~~",
                "<b>bold</b> and <b>bold</b> and <i>italic</i> and <s>gone</s>",
            ),
            ("***both***", "<b><i>both</i></b>"),
            ("snake_case_name and 2*3*4", "snake_case_name and 2<b>3</b>4"),
            ("`a<b>` **x `y` z**", "<code>a&lt;b&gt;</code> <b>x </b><code>y</code><b> z</b>"),
            ("# Title\ntext", "<b>Title</b>\n\ntext"),
            ("a\nb", "a\nb"),
            ("a\n\n\n\nb", "a\n\nb"),
            ("- a\n- b\n  - c\n    more\n- d", "• a\n• b\n  • c\n    more\n• d"),
            ("3. a\n4. b", "3. a\n4. b"),
            ("- [ ] a\n- [x] b", "• ☐ a\n• ☑ b"),
            ("- a\n\n- b", "• a\n\n• b"),
            ("- \n- b", "•\n• b"),
            ("> a\n> b\n\nc", "<blockquote>a\nb</blockquote>\n\nc"),
            ("> a\n>\n> > b", "<blockquote>a\n\nb</blockquote>"),
            (
                "> a\n\n<!-- -->\n\n> b",
                "<blockquote>a</blockquote>\n\n&lt;!-- --&gt;\n\n<blockquote>b</blockquote>",
            ),
            ("a\n\n---\n\nb", "a\n\n———\n\nb"),
            ("a<br>b <u>c</u>", "a\nb &lt;u&gt;c&lt;/u&gt;"),
        ] {
            assert_eq!(html(markdown), expected, "{markdown}");
        }
    }

    #[test]
    fn code_keeps_its_language_and_its_lines() {
        assert_eq!(
            html("```rust\nfn a() -> &str {\n    \"<b>\"\n}\n```\nafter"),
            "<pre><code class=\"language-rust\">fn a() -&gt; &amp;str {\n    \"&lt;b&gt;\"\n}</code></pre>\n\nafter"
        );
        assert_eq!(html("```\na\n\n\n\nb\n```"), "<pre>a\n\n\n\nb</pre>");
        assert_eq!(html("```\"><script>\na\n```"), "<pre>a</pre>");
        assert_eq!(
            html("- a\n  ```sh\n  ls\n  ```"),
            "• a\n\n<pre><code class=\"language-sh\">ls</code></pre>"
        );
        // An unclosed block extends to the end.
        assert_eq!(html("```py\nx = 1"), "<pre><code class=\"language-py\">x = 1</code></pre>");
    }

    #[test]
    fn links_go_only_where_links_may_go() {
        for (markdown, expected) in [
            (
                "[a](https://x.example/?b=1&c=\"2\")",
                "<a href=\"https://x.example/?b=1&amp;c=&quot;2&quot;\">a</a>",
            ),
            ("<https://x.example>", "<a href=\"https://x.example\">https://x.example</a>"),
            ("[**a** `b`](tg://user?id=1)", "<a href=\"tg://user?id=1\"><b>a</b> b</a>"),
            ("<me@x.example>", "<a href=\"mailto:me@x.example\">me@x.example</a>"),
            ("[a](javascript:alert(1))", "a (javascript:alert(1))"),
            ("[a](file:///etc/passwd)", "a (file:///etc/passwd)"),
            ("[a](/b)", "a (/b)"),
            ("| a |\n|---|\n| <https://x.example> |", "<pre>a\n─────────────────\nhttps://x.example</pre>"),
            ("[](javascript:x) ![](/i)", "javascript:x image (/i)"),
            ("[](https://x.example)", "<a href=\"https://x.example\">https://x.example</a>"),
            ("![alt](https://x.example/i.png)", "<a href=\"https://x.example/i.png\">alt</a>"),
            ("[a][1]\n\n[1]: https://x.example", "<a href=\"https://x.example\">a</a>"),
            ("see\n\n[1]: https://x.example", "see\n\n[1]: https://x.example"),
        ] {
            assert_eq!(html(markdown), expected, "{markdown}");
        }
    }

    #[test]
    fn a_table_is_text_of_fixed_width() {
        assert_eq!(
            html("| a | long head |\n|---|---:|\n| **x** & y | 1 |\n| [l](https://x.example) | 22 |"),
            "<pre>a                     │ long head\n\
             ──────────────────────┼──────────\n\
             x &amp; y                 │         1\n\
             l (https://x.example) │        22</pre>"
        );
    }

    #[test]
    fn what_shows_nothing_is_no_message() {
        for text in ["", " \n\t ", "\u{200b}\u{feff}", "\0"] {
            assert_eq!(parts(text), [], "{text:?}");
            assert_eq!(verbatim(text), [], "{text:?}");
        }
        assert_eq!(verbatim("a *b*\r\n<c>\u{7}")[0].html, "a *b*\n&lt;c&gt;");
    }

    #[test]
    fn a_long_text_is_cut_where_a_reader_would() {
        let paragraph = format!("**{}**", "word ".repeat(300).trim_end());
        let parts = parts(&[paragraph.as_str(); 4].join("\n\n"));
        assert_eq!(parts.len(), 2, "{parts:?}");
        for part in &parts {
            assert!(part.html.starts_with("<b>word") && part.plain.trim_end().ends_with("word"));
        }
        assert!(parts[0].plain.ends_with("\n\n"));
    }

    #[test]
    fn code_that_is_cut_stays_code_in_its_language() {
        let code: String = (0..400).map(|n| format!("line number {n}\n")).collect();
        let parts = parts(&format!("```c\n{code}```"));
        assert!(parts.len() > 1);
        for part in &parts {
            assert!(part.html.starts_with("<pre><code class=\"language-c\">line"), "{}", part.html);
            assert!(part.html.ends_with("</code></pre>"));
        }
    }

    #[test]
    fn nothing_is_cut_inside_a_character() {
        let family = "👨‍👩‍👧‍👦";
        for parts in
            [parts(&family.repeat(800)), verbatim(&"e\u{301}".repeat(5000)), parts(&"&".repeat(9000))]
        {
            assert!(parts.len() > 1);
            for part in &parts {
                let whole = |text: &str| part.plain.chars().count() % text.chars().count() == 0;
                assert!(part.plain.encode_utf16().count() <= PART_UNITS);
                assert!(
                    whole(family) && part.plain.starts_with(family)
                        || whole("e\u{301}")
                        || part.plain.starts_with('&')
                );
            }
        }
        // A cluster that is longer than a message must be split.
        assert!(parts(&format!("a{}", "\u{301}".repeat(9000))).len() > 2);
    }
}
