//! Makes values printable: URLs without user, password and query, bounded and without control characters. `keys` decides
//! which keys are secret.

/// Replaces hidden text.
pub(crate) const HIDDEN: &str = "***";

/// The longest text that is printed completely, in characters.
const MAX_CHARS: usize = 120;

/// Makes a text printable: masks URLs, escapes control characters, truncates.
pub(crate) fn text(text: &str) -> String {
    cut(&without_control(&addresses(text)))
}

/// Masks every URL in a text.
pub(crate) fn addresses(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        let end = after.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>'));
        let (body, tail) = after.split_at(end.unwrap_or(after.len()));
        out.push_str(before);
        out.push_str("://");
        out.push_str(&address_body(body));
        rest = tail;
    }
    out.push_str(rest);
    out
}

/// The value of a key that contains a URL. Stricter than [`addresses`]: masks malformed values.
pub(crate) fn address(text: &str) -> String {
    let shown = match text.split_once("://") {
        Some((scheme, body)) => format!("{scheme}://{}", address_body(body)),
        None if text.contains(['@', '=', '?']) => HIDDEN.to_owned(),
        None => text.to_owned(),
    };
    without_control(&shown)
}

/// One line of a file that is not valid TOML. `plain_key` returns whether the line's key never contains a secret; otherwise
/// only the key is shown.
pub(crate) fn line(line: &str, plain_key: impl Fn(&str) -> bool) -> String {
    // A broken quote can end a URL anywhere, so mask everything after `://`.
    let (head, hidden) = match line.split_once("://") {
        Some((head, _)) => (format!("{head}://{HIDDEN}"), true),
        None => (line.to_owned(), false),
    };
    let shown = match line.find(['=', ':']) {
        Some(at) => {
            let (key, rest) = line.split_at(at);
            let plain = plain_key(key.trim().trim_matches(['"', '\'']));
            let sign = if rest.starts_with('=') { "=" } else { ":" };
            if plain { head } else { format!("{key}{sign} {HIDDEN}") }
        }
        None if hidden => HIDDEN.to_owned(),
        None => head,
    };
    cut(&without_control(&shown))
}

/// Masks the part after `://`.
fn address_body(body: &str) -> String {
    let query = body.find(['?', '#']);
    let user = body.rfind('@');
    match (user, query) {
        (None, None) => body.to_owned(),
        // An `@` after a `?` may be in the query or in a password with a raw `?`: mask everything.
        (Some(at), Some(cut)) if cut < at => HIDDEN.to_owned(),
        _ => {
            let start = user.map_or(0, |at| at + 1);
            let end = query.unwrap_or(body.len());
            let user = if user.is_some() { format!("{HIDDEN}@") } else { String::new() };
            let sign = body.get(end..).and_then(|tail| tail.chars().next());
            let tail = sign.map_or_else(String::new, |sign| format!("{sign}{HIDDEN}"));
            format!("{user}{}{tail}", body.get(start..end).unwrap_or_default())
        }
    }
}

/// Escapes control and other invisible characters.
pub(crate) fn without_control(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\'' | '\\' => out.push(c),
            _ => out.extend(c.escape_debug()),
        }
    }
    out
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lose_user_and_query() {
        for (written, shown) in [
            ("postgres://bob:pw@db/x", "postgres://***@db/x"),
            ("postgres://bob:p/w@db/x", "postgres://***@db/x"),
            ("postgres://bob:p?w@db/x", "postgres://***"),
            ("postgres://bob:p#w@db/x?a=b", "postgres://***"),
            ("postgres://bob:p@w@db/x", "postgres://***@db/x"),
            ("http://h/p?token=pw", "http://h/p?***"),
            ("http://h/p#pw", "http://h/p#***"),
            ("http://h/?a=x@y&token=pw", "http://***"),
            ("http://h:1/p", "http://h:1/p"),
            ("bob:pw@db", "***"),
            ("host=db password=pw", "***"),
            ("plain", "plain"),
            ("http://h\n/\u{202e}x", "http://h\\n/\\u{202e}x"),
            ("", ""),
            ("://", "://"),
        ] {
            assert_eq!(address(written), shown, "{written:?}");
            assert!(!address(written).contains("pw"));
        }
    }

    #[test]
    fn addresses_inside_text_are_masked_each() {
        assert_eq!(
            addresses("curl 'http://a:b@c/d?e' \"ftp://f@g\" http://h"),
            "curl 'http://***@c/d?***' \"ftp://***@g\" http://h"
        );
        assert_eq!(text(&"é".repeat(200)).chars().count(), 121);
        assert_eq!(text("a\u{1b}[31m"), "a\\u{1b}[31m");
    }

    #[test]
    fn broken_lines_show_no_secret() {
        let plain = |key: &str| key == "layout" || key == "url";
        for (written, shown) in [
            ("layout = full", "layout = full"),
            ("[prompt", "[prompt"),
            ("url = \"postgres://u:pw\"x@h\"", "url = \"postgres://***"),
            ("API_TOKEN = \"pw", "API_TOKEN = ***"),
            ("API_TOKEN: pw", "API_TOKEN: ***"),
            ("env = { A = \"pw }", "env = ***"),
            ("postgres://u:pw@h", "postgres: ***"),
        ] {
            assert_eq!(line(written, plain), shown, "{written:?}");
        }
    }
}
