//! Frame marks: role labels, chat-template tokens, tags and headings that pretend to be part of the prompt's frame.
//! Owns line structure and tags; a mark that is only mentioned (in code, balanced, or as a setting) stays quiet.

use super::finding::{Findings, Rule};
use super::fold;
use super::kinds::Kinds;
use super::lexicon;

/// Reports marks that open, close or imitate a frame.
pub(super) fn find(text: &str, findings: &mut Findings<'_>) {
    tags(text, findings);
    let mut line_at = 0;
    let mut after_rule = false;
    let mut lines = text.split('\n').peekable();
    while let Some(line) = lines.next() {
        let plain = plain(line);
        let next = lines.peek().map(|next| self::plain(next)).unwrap_or_default();
        if has_template_token(&plain) {
            findings.add(Rule::FrameMark, line_at);
        } else if is_heading(&plain, after_rule) || is_banner(&plain) {
            findings.add(Rule::FrameMark, line_at);
        } else if let Some(rest) = role_label(&plain)
            && speaks_to_agent(if rest.trim().is_empty() { &next } else { rest })
        {
            findings.add(Rule::FakeAuthority, line_at);
        }
        if !plain.trim().is_empty() {
            after_rule = is_rule_line(&plain);
        }
        line_at += line.len() + 1;
    }
}

/// A line in plain characters; long lines are cut, since marks stand at their start.
fn plain(line: &str) -> String {
    let mut out = String::new();
    for c in line.chars().take(400) {
        match fold::fold(c) {
            fold::Folded::Nothing => {}
            fold::Folded::One(c) => out.push(c),
            fold::Folded::Two(a, b) => out.extend([a, b]),
        }
    }
    out
}

fn has_template_token(line: &str) -> bool {
    const TOKENS: &[&str] = &[
        "<|im_start|>",
        "<|im_end|>",
        "<|system|>",
        "<|user|>",
        "<|assistant|>",
        "<|endoftext|>",
        "<|eot_id|>",
        "<|begin_of_text|>",
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<<sys>>",
        "<</sys>>",
        "[/inst]",
        "[inst]",
        "<start_of_turn>",
        "<end_of_turn>",
        "<|end|>",
        "<|start|>",
        "<|message|>",
        "<|channel|>",
        "[system_prompt]",
        "[/system_prompt]",
        "<|endofprompt|>",
        "<s>[",
        "<|developer|>",
    ];
    let hit = TOKENS.iter().find_map(|token| Some((line.find(token)?, *token)));
    hit.is_some_and(|(at, token)| !is_in_code(line, at, token.len()))
}

/// Between backticks that hold nothing else: a mention.
fn is_in_code(line: &str, at: usize, length: usize) -> bool {
    let before = line.get(..at).is_some_and(|s| s.ends_with('`'));
    before && line.get(at + length..).is_some_and(|s| s.starts_with('`'))
}

/// `---` or `===`: the separator that stands between body and layers.
fn is_rule_line(line: &str) -> bool {
    let line = line.trim();
    line.len() >= 3 && line.chars().all(|c| matches!(c, '-' | '=' | '*' | '_'))
}

/// `# New system rules`, or `# New rules` right after a separator.
fn is_heading(line: &str, after_rule: bool) -> bool {
    let line = line.trim();
    let bold = line.starts_with("**") && line.trim_end_matches(':').ends_with("**");
    if !line.starts_with('#') && !bold && !(after_rule && line.ends_with(':')) {
        return false;
    }
    let words: Vec<&str> =
        line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    if words.is_empty() || words.len() > 7 {
        return false;
    }
    let fresh = [
        "new",
        "updated",
        "revised",
        "real",
        "true",
        "actual",
        "corrected",
        "final",
        "replacement",
        "amended",
        "neue",
        "nouvelles",
        "nuevas",
    ];
    let is_fresh = words.iter().any(|word| fresh.contains(word));
    let kinds = words.iter().fold(Kinds::none(), |all, word| all | lexicon::kinds_of(word));
    let higher = words.iter().any(|word| ["system", "body", "safety", "core"].contains(word));
    let rules = kinds.has(Kinds::RULE) && !kinds.has(Kinds::TRADE);
    let whole = after_rule
        && words.len() <= 3
        && words.last().is_some_and(|word| lexicon::kinds_of(word).has(Kinds::RULE));
    rules && is_fresh && (higher || whole) || whole && higher
}

/// `end of system prompt`, `BEGIN BODY RULES`, `new system prompt:`.
fn is_banner(line: &str) -> bool {
    let letters = line.trim().trim_matches(|c: char| !c.is_alphanumeric());
    let words: Vec<&str> =
        letters.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let framed = line.trim().len() > letters.len() || words.len() <= 5;
    let bounds = [
        "end",
        "begin",
        "start",
        "new",
        "close",
        "open",
        "updated",
        "ende",
        "fin",
        "beginning",
        "stop",
        "revised",
    ];
    let frames = [
        "prompt",
        "rules",
        "instructions",
        "body",
        "message",
        "section",
        "policy",
        "layer",
        "identity",
        "directives",
    ];
    let Some(first) = words.iter().position(|word| bounds.contains(word)) else { return false };
    let owned = words
        .iter()
        .skip(first)
        .any(|word| ["system", "body", "developer", "identity", "operator", "admin"].contains(word));
    let frame = words.iter().skip(first + 1).any(|word| frames.contains(word));
    let small = words.iter().all(|word| {
        bounds.contains(word)
            || frames.contains(word)
            || ["of", "the", "system", "body", "developer", "operator", "admin", "now", "here"].contains(word)
    });
    framed && owned && frame && small && words.len() >= 2
}

/// What follows `SYSTEM:`, `[system]` or `### System` at the start of a line.
fn role_label(line: &str) -> Option<&str> {
    let line = line.trim_start_matches(|c: char| {
        c.is_whitespace() || matches!(c, '#' | '*' | '>' | '-' | '"' | '!' | '<' | '/' | '{' | '\'')
    });
    let bracketed = line.starts_with('[') || line.starts_with('(');
    let line = line.trim_start_matches(['[', '(', '{']);
    const LABELS: &[&str] = &[
        "system message",
        "system notice",
        "system override",
        "system update",
        "system prompt",
        "system instruction",
        "system instructions",
        "system note",
        "system alert",
        "system",
        "developer message",
        "developer",
        "admin override",
        "admin message",
        "admin",
        "administrator",
        "root",
        "operator",
        "body",
        "assistant",
        "sysadmin",
        "important system message",
        "security override",
        "policy update",
        "owner override",
        "anthropic",
        "openai",
    ];
    let label = LABELS.iter().filter(|label| line.starts_with(**label)).max_by_key(|label| label.len())?;
    let rest = line.get(label.len()..)?;
    let after = rest.trim_start_matches(['"', '*', ' ', '\'']);
    let marked = if bracketed { after.starts_with([']', ')', ':']) } else { after.starts_with(':') };
    marked.then(|| after.trim_start_matches([']', ')', ':', '*', ' ', '"', '}']))
}

/// Whether what a label introduces is said to the agent: prose with "you", an order or talk of rules.
fn speaks_to_agent(rest: &str) -> bool {
    let words: Vec<&str> =
        rest.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty()).collect();
    if words.len() < 3 || rest.contains(" = ") {
        return false;
    }
    let second_person = words.iter().any(|word| ["you", "your", "you're", "du", "vous", "tu"].contains(word));
    let kinds = words.iter().take(40).map(|word| lexicon::kinds_of(word)).collect::<Vec<_>>();
    let any = |wanted: Kinds| kinds.iter().any(|kinds| kinds.has(wanted));
    second_person
        || any(Kinds::RULE | Kinds::GUARD | Kinds::LOOSE)
            && any(Kinds::DISMISS | Kinds::CHANGE | Kinds::GONE | Kinds::EARLIER)
        || any(Kinds::UNBOUND)
        || any(Kinds::CONSENT) && any(Kinds::ACT | Kinds::GONE | Kinds::CHANGE)
        || any(Kinds::ACT) && any(Kinds::SECRET | Kinds::ALL)
}

/// Tags that name a part of the prompt's frame.
const FRAMES: &[&str] = &[
    "identity",
    "instructions",
    "responsibilities",
    "directories",
    "storage",
    "formatting",
    "context",
    "memories",
    "task",
    "background",
    "role",
    "available_skills",
    "skill",
    "system",
    "body",
    "soul",
    "persona",
    "user_instructions",
    "rules",
    "policy",
    "safety",
    "user",
    "assistant",
    "human",
    "prompt",
    "project",
    "memory",
    "tools",
    "tool",
    "data",
    "untrusted",
    "guidelines",
];
/// Tags that only a system writes, balanced or not.
const RESERVED: &[&str] = &[
    "system",
    "system_prompt",
    "system-prompt",
    "systemprompt",
    "system_message",
    "system-message",
    "system_instructions",
    "system-reminder",
    "sys",
    "body_rules",
    "body-rules",
    "system_rules",
    "developer",
    "developer_message",
    "admin",
    "root",
    "override",
];

/// Closing tags of frames that this text never opened, and tags that are the system's own.
fn tags(text: &str, findings: &mut Findings<'_>) {
    let mut open: Vec<(String, usize)> = Vec::new();
    for (at, _) in text.match_indices('<') {
        let rest = text.get(at + 1..).unwrap_or_default();
        let closing = rest.starts_with('/');
        let body = rest.trim_start_matches('/');
        let length = body
            .bytes()
            .take(40)
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
            .count();
        let name = body.get(..length).unwrap_or_default().to_ascii_lowercase();
        let after = body.get(length..).unwrap_or_default();
        if !after.trim_start().starts_with(['>', '/']) && !after.starts_with(' ') || name.is_empty() {
            continue;
        }
        let mentioned = text.get(..at).is_some_and(|s| s.ends_with('`'));
        if RESERVED.contains(&name.as_str()) && !mentioned && !closing && after.trim_start().starts_with('>')
        {
            findings.add(Rule::FrameMark, at);
        }
        let known = FRAMES.contains(&name.as_str()) || RESERVED.contains(&name.as_str());
        let count = open.iter_mut().find(|(known, _)| *known == name);
        match (closing, count) {
            (false, Some((_, count))) => *count += 1,
            (false, None) if known => open.push((name, 1)),
            (true, Some((_, count))) if *count > 0 => *count -= 1,
            (true, _) if known && !mentioned => findings.add(Rule::FrameMark, at),
            _ => {}
        }
    }
}
