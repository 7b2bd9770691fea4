//! Converts the Markdown that models write to messages that Telegram accepts: valid, escaped, within the length limit.
//! Pure.
//!
//! Formatting is kept as runs of styled text, so that a message can be split anywhere and each part opens and closes
//! its own tags. Nothing is hidden: what Telegram cannot format is shown as text.
//!
//! | file | owns |
//! |---|---|
//! | `markdown` | Markdown to blocks of styled text |
//! | `flow` | gaps, lists and quotes |
//! | `table` | a table as text of fixed width |
//! | `rich` | runs of styled text, cleaned as Telegram would |
//! | `cut` | splits a long text |
//! | `html` | runs to Telegram's HTML |

mod cut;
mod flow;
mod html;
mod markdown;
mod rich;
mod table;

use self::rich::{Rich, Style};

/// The maximum visible text of one message, in UTF-16 units.
pub const PART_UNITS: usize = 4096;

/// The text of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// For Telegram's HTML mode.
    pub html: String,
    /// The visible text, used if Telegram rejects the HTML.
    pub plain: String,
}

/// The messages that show this Markdown, in order. Deterministic; text without visible content gives none.
#[must_use]
pub fn parts(markdown: &str) -> Vec<Part> {
    split(&markdown::read(markdown))
}

/// The messages that show this text literally.
#[must_use]
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
    for end in cut::cuts(&text, |at| rich.is_pre(at)) {
        let runs = rich.between(start, end);
        parts.push(Part {
            html: html::render(&runs),
            plain: text.get(start..end).unwrap_or_default().to_owned(),
        });
        start = end;
    }
    parts
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
