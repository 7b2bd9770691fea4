//! Whether a URI may match a template (RFC 6570). Pure. May return false positives, because it only selects candidates.

/// Expressions per template; a template with more matches nothing.
const MOST: usize = 16;

enum Part<'a> {
    Text(&'a str),
    /// `{name}`: at least one character, no slash.
    Name,
    /// `{+name}`, `{?name}` and the like: anything.
    Anything,
}

pub(super) fn fits(template: &str, uri: &str) -> bool {
    let Some(parts) = parts(template) else { return false };
    // A template without expressions is a plain URI.
    if !parts.iter().any(|part| !matches!(part, Part::Text(_))) {
        return template == uri;
    }
    let bytes = uri.as_bytes();
    // The positions where the parts so far may end.
    let mut ends = vec![false; bytes.len() + 1];
    if let Some(start) = ends.first_mut() {
        *start = true;
    }
    for part in parts {
        ends = match part {
            Part::Text(text) => after_text(&ends, bytes, text.as_bytes()),
            Part::Name => after_any(&ends, bytes, 1, |byte| byte != b'/'),
            Part::Anything => after_any(&ends, bytes, 0, |_| true),
        };
    }
    ends.last().copied().unwrap_or(false)
}

fn after_text(ends: &[bool], uri: &[u8], text: &[u8]) -> Vec<bool> {
    let mut after = vec![false; ends.len()];
    for (at, _) in ends.iter().enumerate().filter(|(_, is_end)| **is_end) {
        let is_connected = uri.get(at..).is_some_and(|rest| rest.starts_with(text));
        if let Some(end) = after.get_mut(at + text.len()).filter(|_| is_connected) {
            *end = true;
        }
    }
    after
}

fn after_any(ends: &[bool], uri: &[u8], least: usize, may_be: impl Fn(u8) -> bool) -> Vec<bool> {
    let mut after = Vec::with_capacity(ends.len());
    // Whether an earlier end is reachable without a forbidden character in between.
    let mut reaches = false;
    for (at, is_end) in ends.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| uri.get(at));
        reaches = reaches && before.is_none_or(|byte| may_be(*byte));
        let reached = reaches;
        // A part may end where it begins only if it may be empty.
        after.push(reached || (least == 0 && *is_end));
        reaches |= *is_end;
    }
    after
}

fn parts(template: &str) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((text, behind)) = rest.split_once('{') {
        let (expression, behind) = behind.split_once('}')?;
        if parts.len() >= 2 * MOST {
            return None;
        }
        parts.push(Part::Text(text));
        let is_name = expression.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_');
        parts.push(if is_name { Part::Name } else { Part::Anything });
        rest = behind;
    }
    parts.push(Part::Text(rest));
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_fits_or_does_not() {
        for (template, uri, expected) in [
            ("note://{id}", "note://7", true),
            ("note://{id}", "note://", false),
            ("note://{id}", "note://7/8", false),
            ("note://{id}", "nota://7", false),
            ("note://{id}/text", "note://7/text", true),
            ("note://{id}/text", "note://7/texts", false),
            ("note://{a}-{b}", "note://1-2-3", true),
            ("note://{a}{b}", "note://12", true),
            ("note://{a}{b}", "note://1", false),
            ("file:///{+path}", "file:///a/b/c", true),
            ("file:///{+path}", "file:///", true),
            ("file:///{+path}.txt", "file:///a/b.txt", true),
            ("file:///{+path}.txt", "file:///a/b.md", false),
            ("search://all{?q,page}", "search://all", true),
            ("search://all{?q,page}", "search://all?q=x/y", true),
            ("plain://x", "plain://x", true),
            ("plain://x", "plain://xy", false),
            ("odd://{x", "odd://7", false),
            ("日本://{x}", "日本://é", true),
            ("", "", true),
            ("{x}", "", false),
        ] {
            assert_eq!(fits(template, uri), expected, "{template} {uri}");
        }
    }

    #[test]
    fn what_has_too_many_expressions_fits_nothing() {
        assert!(fits(&"{+a}".repeat(MOST), "x"));
        assert!(!fits(&"{+a}".repeat(MOST + 1), "x"));
    }
}
