//! Secret text, and its removal from other text.
//!
//! A [`Secret`] cannot be displayed or serialized: the only access is [`Secret::expose`], which is easy to search for.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{PoisonError, RwLock};

use reqwest::Url;
use serde::Deserialize;

const MASK: &str = "[secret]";

/// Shorter users and query values are not masked: masking `1` would garble every message.
const PART_MIN_BYTES: usize = 6;

/// Number of recent tokens that are masked. Older ones are long expired.
const TOKENS_MOST: usize = 16;

/// A token or a password: text that must not reach a log, a prompt or an error.
#[derive(Clone, PartialEq, Eq, Hash, Deserialize)]
pub struct Secret(String);

impl Secret {
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the code that has to send it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The text with every occurrence of the secret masked.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(&self.0, MASK) }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// All secrets of one connection: its bearer, and the secret parts of its URL.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    secrets: Vec<Secret>,
    tokens: RwLock<VecDeque<Secret>>,
}

impl Redactor {
    pub(crate) fn new(url: &Url) -> Self {
        let mut secrets = Vec::new();
        secrets.extend(url.password().map(Secret::new));
        secrets.extend(url.query().map(Secret::new));
        // Some services take a token as the user, others as a query value.
        let parts = url.query_pairs().map(|(_, value)| value.into_owned()).chain([url.username().to_owned()]);
        secrets.extend(parts.filter(|part| part.len() >= PART_MIN_BYTES).map(Secret));
        Self { secrets, tokens: RwLock::default() }
    }

    pub(crate) fn learn(&self, token: &Secret) {
        let is_known = |tokens: &VecDeque<Secret>| tokens.iter().any(|known| known.0 == token.0);
        if is_known(&self.tokens.read().unwrap_or_else(PoisonError::into_inner)) {
            return;
        }
        let mut tokens = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= TOKENS_MOST {
            tokens.pop_front();
        }
        tokens.push_back(token.clone());
    }

    pub(crate) fn redact(&self, text: &str) -> String {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let mut secrets: Vec<&Secret> = self.secrets.iter().chain(tokens.iter()).collect();
        // Longest first, so that a secret within a secret leaves no remainder.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.0.len()));
        secrets.into_iter().fold(text.to_owned(), |text, secret| secret.redact(&text))
    }

    /// Prepares foreign text for an error: secrets masked, control characters removed, truncated.
    pub(crate) fn quote(&self, text: &str) -> String {
        const MAX_CHARS: usize = 200;
        // Masked before it is truncated: truncation could leave the first half of a secret.
        let text = self.redact(text);
        let mut shown: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        shown.retain(|c| !c.is_control());
        if let Some((end, _)) = shown.char_indices().nth(MAX_CHARS) {
            shown.truncate(end);
            shown.push('…');
        }
        shown
    }

    /// The URL that a server refers to from `base`, prepared for an error.
    pub(crate) fn quote_url(&self, base: &Url, reference: &str) -> String {
        // Masked before it is parsed: parsing lowers the host and escapes the path, which would hide a secret.
        let reference = self.redact(reference);
        let shown = base.join(&reference).map_or_else(|_| bare_url_text(&reference), |url| bare_url(&url));
        self.quote(&shown)
    }

    /// A URL's scheme, host, port and path.
    pub(crate) fn bare_url(&self, url: &Url) -> String {
        self.redact(&bare_url(url))
    }
}

/// A URL without user, password, query and fragment.
pub(crate) fn bare_url(url: &Url) -> String {
    let mut bare = url.clone();
    bare.set_query(None);
    bare.set_fragment(None);
    // Both fail only for URLs that cannot have a user.
    let _ = bare.set_username("");
    let _ = bare.set_password(None);
    bare.into()
}

/// The same for text that may not be a valid URL, as a best effort.
pub(crate) fn bare_url_text(text: &str) -> String {
    let address = text.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = address.split_once("://").map_or(("", address), |(scheme, rest)| (scheme, rest));
    let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    if scheme.is_empty() { rest.to_owned() } else { format!("{scheme}://{rest}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor(url: &str) -> Redactor {
        let redactor = Redactor::new(&Url::parse(url).unwrap());
        redactor.learn(&Secret::new("tok-123"));
        redactor
    }

    #[test]
    fn a_secret_is_never_shown() {
        let secret = Secret::new("tok-123");
        assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)), "[secret] [secret] Some([secret])");
        assert_eq!(secret.expose(), "tok-123");
    }

    #[test]
    fn redaction_masks_every_occurrence_and_an_empty_secret_masks_nothing() {
        assert_eq!(Secret::new("ab").redact("ab cab"), "[secret] c[secret]");
        assert_eq!(Secret::new("").redact("text"), "text");
    }

    #[test]
    fn a_place_has_no_user_query_or_fragment() {
        let url = Url::parse("https://me:pass@h.example:8443/a/tok-123/b?token=abcdef#x").unwrap();
        assert_eq!(bare_url(&url), "https://h.example:8443/a/tok-123/b");
        assert_eq!(redactor(url.as_str()).bare_url(&url), "https://h.example:8443/a/[secret]/b");
        assert_eq!(bare_url_text("me:pass@h/a?token=x"), "h/a");
        assert_eq!(bare_url_text("ftp://me:p@ss@h/a?token=x"), "ftp://h/a");
    }

    #[test]
    fn a_quote_hides_what_the_url_carries() {
        let redactor = redactor("http://usertoken:hunter2@h/sse?key=longvalue&n=1");
        let shown =
            redactor.quote("no /sse?key=longvalue&n=1\u{7}\n for usertoken, hunter2, tok-123, longvalue, 1");
        assert_eq!(shown, "no /sse?[secret] for [secret], [secret], [secret], [secret], 1");
    }

    #[test]
    fn a_place_is_masked_before_it_is_read() {
        let base = Url::parse("http://h/a/b").unwrap();
        let redactor = Redactor::new(&base);
        redactor.learn(&Secret::new("Tok 1"));
        assert_eq!(redactor.quote_url(&base, "c/Tok 1?x=y"), "http://h/a/c/[secret]");
        assert_eq!(redactor.quote_url(&base, "//me:p@Tok 1.example/x?y"), "[secret].example/x");
        assert_eq!(redactor.quote_url(&base, "https://o.example/x?y"), "https://o.example/x");
    }

    #[test]
    fn a_long_quote_is_masked_before_it_is_cut() {
        let shown = redactor("http://h/").quote(&format!("{}tok-123", "x".repeat(197)));
        assert_eq!(shown, format!("{}[se…", "x".repeat(197)));
    }
}
