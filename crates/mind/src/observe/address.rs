//! Addresses, links and files by their shape, and what each belongs to.

/// An address, a link or a path is not longer than this.
const LONGEST_CHARS: usize = 120;

/// The address in a text like `bob@example.com` or `Bob <bob@example.com>`, folded.
pub(super) fn address(text: &str) -> Option<String> {
    let inner =
        text.rsplit_once('<').and_then(|(_, rest)| rest.split_once('>')).map_or(text, |(inner, _)| inner);
    let inner = inner.trim().trim_start_matches("mailto:");
    let (local, domain) = inner.split_once('@')?;
    let plain = !local.is_empty() && domain.contains('.') && !domain.contains('@');
    let short = inner.chars().count() <= LONGEST_CHARS && !inner.contains(char::is_whitespace);
    (plain && short).then(|| inner.to_lowercase())
}

/// Each recipient of a list like `Eve <eve@x.org>, al@x.com; Carol`: an address by itself if it has one. A list without
/// commas is one too when it has several addresses.
pub(super) fn recipients(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in text.split([',', ';', '\n']).map(str::trim).filter(|part| !part.is_empty()) {
        if address(part).is_some() && part.matches('@').count() == 1 || !part.contains('@') {
            found.push(part.to_owned());
            continue;
        }
        let before = found.len();
        let bare = part.split(|letter: char| letter.is_whitespace() || "<>()[]\"'".contains(letter));
        found.extend(bare.filter_map(address));
        if found.len() == before {
            found.push(part.to_owned());
        }
    }
    found
}

/// What a value belongs to: an address to its domain, a link to its host, a file to its folder.
pub(super) fn belongs_to(text: &str) -> Option<(&'static str, String)> {
    if let Some(address) = address(text) {
        return address.split_once('@').map(|(_, domain)| ("domain", domain.to_owned()));
    }
    if text.contains(char::is_whitespace) || text.chars().count() > LONGEST_CHARS {
        return None;
    }
    if let Some((_, rest)) = text.split_once("://") {
        return Some(("host", rest.split(['/', '?', '#']).next().unwrap_or_default().to_lowercase()));
    }
    let (folder, _) = text.rsplit_once('/')?;
    let top: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).take(2).collect();
    Some(("folder", top.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_recipients() {
        assert_eq!(recipients("a@x.org"), ["a@x.org"]);
        assert_eq!(
            recipients("Eve <a@x.org>,Al <al@x.com> ;Carol"),
            ["Eve <a@x.org>", "Al <al@x.com>", "Carol"]
        );
        assert_eq!(recipients("a@x.org b@x.org\nEve c@x.org"), ["a@x.org", "b@x.org", "c@x.org"]);
        assert_eq!(recipients("Eve <a@x.org> Al <al@x.com>"), ["a@x.org", "al@x.com"]);
        assert_eq!(recipients("@home, the @channel"), ["@home", "the @channel"]);
        assert_eq!(recipients(" ,; "), Vec::<String>::new());
    }

    #[test]
    fn a_value_belongs_somewhere() {
        let belongs = |text| belongs_to(text).map(|(what, whom)| format!("{what} {whom}"));
        assert_eq!(belongs("Bob <Bob@X.org>").as_deref(), Some("domain x.org"));
        assert_eq!(belongs("https://x.org/a?b").as_deref(), Some("host x.org"));
        assert_eq!(belongs("/home/ann/docs/a.txt").as_deref(), Some("folder home/ann"));
        assert_eq!(belongs("see you at 3/4 past"), None);
        assert_eq!(belongs("budget"), None);
    }
}
