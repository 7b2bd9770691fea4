//! What the lint reports: the closed list of rules, one finding, and the collection that keeps findings bounded.
//! Refuses multi-line or invisible excerpts, so that a report can be printed anywhere.

use embody_text::{fold, secrets};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// Orders the agent to set rules of a higher layer aside.
    IgnoreRules,
    ClaimPrecedence,
    RoleChange,
    /// Speaks as the system, its makers or an administrator.
    FakeAuthority,
    /// Opens, closes or imitates a frame of the prompt.
    FrameMark,
    SkipApproval,
    /// Keeps something from the owner or from the record.
    HideFromOwner,
    /// Asks for the prompt, credentials or private files to be handed out.
    RevealSecrets,
    /// Carries characters that people cannot see.
    HiddenText,
    EncodedOrder,
    PrivateKey,
    /// A token with the prefix of a known service.
    ApiKey,
    SignedToken,
    PasswordLiteral,
}

impl Rule {
    pub const ALL: [Self; 14] = [
        Self::IgnoreRules,
        Self::ClaimPrecedence,
        Self::RoleChange,
        Self::FakeAuthority,
        Self::FrameMark,
        Self::SkipApproval,
        Self::HideFromOwner,
        Self::RevealSecrets,
        Self::HiddenText,
        Self::EncodedOrder,
        Self::PrivateKey,
        Self::ApiKey,
        Self::SignedToken,
        Self::PasswordLiteral,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::IgnoreRules => "ignore_rules",
            Self::ClaimPrecedence => "claim_precedence",
            Self::RoleChange => "role_change",
            Self::FakeAuthority => "fake_authority",
            Self::FrameMark => "frame_mark",
            Self::SkipApproval => "skip_approval",
            Self::HideFromOwner => "hide_from_owner",
            Self::RevealSecrets => "reveal_secrets",
            Self::HiddenText => "hidden_text",
            Self::EncodedOrder => "encoded_order",
            Self::PrivateKey => "private_key",
            Self::ApiKey => "api_key",
            Self::SignedToken => "signed_token",
            Self::PasswordLiteral => "password_literal",
        }
    }

    /// One line for people: what the text seems to do.
    pub const fn why(self) -> &'static str {
        match self {
            Self::IgnoreRules => "tells the agent to set aside rules that stand above this text",
            Self::ClaimPrecedence => "claims to outrank rules that stand above this text",
            Self::RoleChange => "gives the agent a role that is free of its rules",
            Self::FakeAuthority => "speaks in the name of the system or of someone who may change its rules",
            Self::FrameMark => "opens, closes or imitates a frame of the prompt",
            Self::SkipApproval => "waives an approval that only the owner can give",
            Self::HideFromOwner => "keeps an action from the owner or out of the record",
            Self::RevealSecrets => "asks for the prompt, credentials or private files to be handed out",
            Self::HiddenText => "contains characters that people cannot see but a model reads",
            Self::EncodedOrder => "contains encoded text that is meant to be decoded and followed",
            Self::PrivateKey => "contains a private key",
            Self::ApiKey => "contains what looks like an access key of a service",
            Self::SignedToken => "contains what looks like a signed token (JWT)",
            Self::PasswordLiteral => "assigns a password or secret as a literal",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub rule: Rule,
    pub line: usize,
    /// The text around it: one line, at most 120 characters, nothing invisible; secrets are masked.
    pub excerpt: String,
}

const MAX_FINDINGS: usize = 200;
const EXCERPT_BEFORE: usize = 24;
const EXCERPT_CHARS: usize = 120;

pub(super) struct Findings<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
    found: Vec<Finding>,
}

impl<'a> Findings<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut line_starts = vec![0];
        line_starts.extend(text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(at, _)| at + 1));
        Self { text, line_starts, found: Vec::new() }
    }

    pub(super) fn add(&mut self, rule: Rule, at: usize) {
        let line = self.line_of(at);
        if self.is_new(rule, line) {
            let excerpt = secrets::mask(&excerpt(self.text, self.start_of(line), at));
            self.found.push(Finding { rule, line, excerpt });
        }
    }

    /// Reports `rule` at byte `at` with an excerpt that the caller made safe to show.
    pub(super) fn add_masked(&mut self, rule: Rule, at: usize, excerpt: String) {
        let line = self.line_of(at);
        if self.is_new(rule, line) {
            self.found.push(Finding { rule, line, excerpt });
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(super) fn in_order(mut self) -> Vec<Finding> {
        self.found.sort_by_key(|finding| (finding.line, finding.rule));
        self.found
    }

    fn line_of(&self, at: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= at)
    }

    fn start_of(&self, line: usize) -> usize {
        self.line_starts.get(line.saturating_sub(1)).copied().unwrap_or(0)
    }

    fn is_new(&self, rule: Rule, line: usize) -> bool {
        self.found.len() < MAX_FINDINGS
            && !self.found.iter().any(|known| known.rule == rule && known.line == line)
    }
}

fn excerpt(text: &str, line_start: usize, at: usize) -> String {
    let before = text.get(line_start..at).unwrap_or_default();
    let kept = before.chars().rev().take(EXCERPT_BEFORE).map(char::len_utf8).sum::<usize>();
    let from = at - kept;
    let mut out = String::new();
    if kept < before.len() {
        out.push('…');
    }
    let mut chars = 0;
    let mut rest = text.get(from..).unwrap_or_default().chars().peekable();
    while let Some(c) = rest.next() {
        if chars >= EXCERPT_CHARS - 2 {
            out.push('…');
            break;
        }
        if c == '\n' && rest.peek().is_none_or(|next| next.is_whitespace()) {
            break;
        }
        let shown = if c.is_whitespace() { ' ' } else { c };
        if shown == ' ' && out.ends_with(' ') {
            continue;
        }
        out.push(if fold::is_unseen(c) || c.is_control() && !c.is_whitespace() { '·' } else { shown });
        chars += 1;
    }
    out.trim().to_owned()
}
