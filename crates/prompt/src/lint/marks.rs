//! Frame marks: role labels, chat-template tokens, banners and headings that pretend to be part of the prompt's frame.
//! Owns line structure and tags; a mark that is only mentioned (in code or as a setting) stays quiet.

use embody_text::fold::fold;
use embody_text::lexicon::Classes;

use super::RULES;
use super::finding::{Findings, Rule};

/// Marks stand at the start of a line, so the rest of a very long one does not matter.
const MAX_LINE_CHARS: usize = 400;

pub(super) fn find(text: &str, findings: &mut Findings<'_>) {
    find_tags(text, findings);
    let mut line_at = 0;
    let mut after_separator = false;
    let mut fenced = false;
    let mut lines = text.split('\n').peekable();
    while let Some(line) = lines.next() {
        let shown = plain(line);
        let next = lines.peek().map(|next| plain(next)).unwrap_or_default();
        let quoted = line.trim_start().starts_with(['"', '`', '\'', '“']);
        if !quoted && (has_template_token(&shown) || is_heading(&shown, after_separator) || is_banner(&shown))
        {
            findings.add(Rule::FrameMark, line_at);
        } else if !quoted
            && let Some(rest) = after_label(&shown)
            && speaks_to_agent(if rest.trim().is_empty() { &next } else { rest }, is_loud(line) && !fenced)
        {
            findings.add(Rule::FakeAuthority, line_at);
        }
        if shown.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if let Some(at) = shown.find("[system").filter(|&at| at > 0)
            && let Some(rest) = shown.get(at..).and_then(after_label)
            && speaks_to_agent(rest, true)
        {
            findings.add(Rule::FakeAuthority, line_at);
        }
        if !shown.trim().is_empty() {
            after_separator = is_separator(&shown);
        }
        line_at += line.len() + 1;
    }
}

fn plain(line: &str) -> String {
    let end = line.char_indices().nth(MAX_LINE_CHARS).map_or(line.len(), |(at, _)| at);
    fold(line.get(..end).unwrap_or(line))
}

fn meanings(words: &[&str]) -> Classes {
    words.iter().fold(Classes::NONE, |all, word| all.with(RULES.lexicon.lookup(word)))
}

fn words(line: &str) -> Vec<&str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty()).collect()
}

fn is_one_of(word: &str, list: &str) -> bool {
    list.split(' ').any(|one| one == word)
}

const TEMPLATE_TOKENS: &str = "<<sys>> <</sys>> [/inst] [inst] <start_of_turn> <end_of_turn> <s>[ [system_prompt] \
     [/system_prompt] <|im_start|> <|im_end|> <|system|> <|user|> <|assistant|> <|developer|> <|endoftext|> <|eot_id|> \
     <|begin_of_text|> <|start_header_id|> <|end_header_id|> <|end|> <|start|> <|message|> <|channel|> <|endofprompt|>";

fn has_template_token(line: &str) -> bool {
    let hit = TEMPLATE_TOKENS.split_whitespace().find_map(|token| Some((line.find(token)?, token)));
    hit.is_some_and(|(at, token)| !is_mentioned(line, at, token.len()))
}

fn is_mentioned(line: &str, at: usize, length: usize) -> bool {
    let before = line.get(..at).is_some_and(|before| before.ends_with('`'));
    before && line.get(at + length..).is_some_and(|after| after.starts_with('`'))
}

/// `---` or `===`, as between body and layers.
fn is_separator(line: &str) -> bool {
    let line = line.trim();
    line.len() >= 3 && line.chars().all(|c| matches!(c, '-' | '=' | '*' | '_'))
}

/// `# New system rules`, or `# New rules` right after a separator.
fn is_heading(line: &str, after_separator: bool) -> bool {
    let line = line.trim();
    let bold = line.starts_with("**") && line.trim_end_matches(':').ends_with("**");
    let titled = after_separator && line.ends_with(':');
    if !line.starts_with('#') && !bold && !titled {
        return false;
    }
    let words = words(line);
    if words.is_empty() || words.len() > 7 {
        return false;
    }
    let volatile = words.iter().any(|word| {
        is_one_of(
            word,
            "new updated revised real true actual corrected final replacement amended neue nouvelles nuevas",
        )
    });
    let higher = words.iter().any(|word| is_one_of(word, "system body safety core"));
    let meaning = meanings(&words);
    let class = |name: &str| meaning.has(RULES.lexicon.class(name));
    let rules = class("RULE") && !class("TRADE");
    let ends_in_rules =
        words.last().is_some_and(|word| RULES.lexicon.lookup(word).has(RULES.lexicon.class("RULE")));
    let whole = after_separator && words.len() <= 3 && ends_in_rules;
    rules && volatile && (higher && words.len() <= 5 || whole)
}

/// `end of system prompt`, `BEGIN BODY RULES`, `new system prompt:`.
fn is_banner(line: &str) -> bool {
    const BOUNDS: &str = "end begin start new close open updated ende fin beginning stop revised";
    const FRAMES: &str = "prompt rules instructions body message section policy layer identity directives";
    const OWNERS: &str = "system body developer identity operator admin";
    let words = words(line);
    let Some(first) = words.iter().position(|word| is_one_of(word, BOUNDS)) else { return false };
    let after = || words.iter().skip(first + 1);
    let owned = after().any(|word| is_one_of(word, OWNERS));
    let framed = after().any(|word| is_one_of(word, FRAMES));
    let nothing_else = words
        .iter()
        .all(|word| [BOUNDS, FRAMES, OWNERS, "of the now here"].iter().any(|list| is_one_of(word, list)));
    owned && framed && nothing_else
}

/// What follows `SYSTEM:`, `[system]`, `### System` or `ADMIN NOTE:` at the start of a line.
fn after_label(line: &str) -> Option<&str> {
    const SPEAKERS: &str =
        "system developer admin administrator root operator sysadmin moderator anthropic openai";
    const TEAMS: &str = "security safety policy body owner context trust editor";
    const NOUNS: &str = "message notice override update prompt instruction instructions note alert memo command announcement directive team";
    let line = line.trim_start_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '[' | '('));
    let bracketed = line.starts_with(['[', '(']);
    let line = line.trim_start_matches(['[', '(']);
    let end = line.find(|c: char| !c.is_alphanumeric() && c != ' ').unwrap_or(line.len());
    let label = words(line.get(..end)?);
    let mut rest_of_label = label.iter().filter(|word| !is_one_of(word, "important urgent new the"));
    let first = rest_of_label.next()?;
    let mut nouns = rest_of_label.peekable();
    let speaker = is_one_of(first, SPEAKERS)
        || is_one_of(first, TEAMS)
            && nouns.peek().is_some_and(|word| is_one_of(word, "override update notice message alert"));
    if !speaker || !nouns.all(|word| is_one_of(word, NOUNS)) {
        return None;
    }
    let after = line.get(end..)?.trim_start_matches(['"', '*', ' ', '\'']);
    let marked = if bracketed { after.starts_with([']', ')', ':']) } else { after.starts_with(':') };
    marked.then(|| after.trim_start_matches([']', ')', ':', '*', ' ', '"', '}']))
}

/// A label that poses as one: in capitals, in brackets, as a heading, or before plain prose.
fn is_loud(line: &str) -> bool {
    let line = line.trim_start();
    let label: String = line.chars().take_while(|c| *c != ':').collect();
    let prose = line.get(label.len() + 1..).unwrap_or_default().trim_start();
    let capitals = label.chars().any(char::is_alphabetic) && !label.chars().any(char::is_lowercase);
    capitals
        || line.starts_with(['[', '#', '('])
        || line.starts_with('S') && prose.starts_with(char::is_alphabetic) && !prose.contains('(')
}

/// Whether what a label introduces is said to the agent: prose with "you", an order or talk of rules.
fn speaks_to_agent(rest: &str, loud: bool) -> bool {
    let words = words(rest);
    if words.len() < 3 || rest.contains(" = ") {
        return false;
    }
    let second_person = words.iter().any(|word| is_one_of(word, "you your you're du vous tu"));
    let meaning = meanings(words.get(..40).unwrap_or(&words));
    let any = |names: &str| meaning.has(RULES.lexicon.classes(names));
    loud && second_person
        || any("UNBOUND")
        || any("RULE GUARD LOOSE") && any("DISMISS CHANGE GONE EARLIER")
        || any("CONSENT") && any("ACT GONE CHANGE")
        || any("ACT") && any("SECRET ALL")
        || loud && any("DISMISS")
}

/// Parts of a prompt; opened and closed by the same text they are its own business.
const FRAME_TAGS: &str = "identity instructions responsibilities directories storage formatting context memories task background role \
     available_skills skill body soul persona user_instructions rules policy safety user assistant human prompt project \
     memory tools tool data untrusted guidelines layer";

/// Tags that only a system writes.
const RESERVED_TAGS: &str = "system system_prompt system-prompt systemprompt system_message system-message system_instructions \
     system-reminder system_reminder sys body_rules body-rules system_rules developer_message";

const MAX_NAME_BYTES: usize = 40;

/// Reports closing tags of frames that this text never opened, and tags that are the system's own.
fn find_tags(text: &str, findings: &mut Findings<'_>) {
    let mut open: Vec<(String, usize)> = Vec::new();
    for (at, _) in text.match_indices('<') {
        let Some(tag) = Tag::at(text, at) else { continue };
        let reserved = is_one_of(&tag.name, RESERVED_TAGS);
        if !reserved && !is_one_of(&tag.name, FRAME_TAGS) {
            continue;
        }
        let mentioned = text.get(..at).is_some_and(|before| before.ends_with('`'));
        if reserved && tag.bare && !tag.closing && !mentioned {
            findings.add(Rule::FrameMark, at);
        }
        let count = open.iter_mut().find(|(name, _)| *name == tag.name);
        match (tag.closing, count) {
            (false, Some((_, count))) => *count += 1,
            (false, None) => open.push((tag.name, 1)),
            (true, Some((_, count))) if *count > 0 => *count -= 1,
            (true, _) if !mentioned => findings.add(Rule::FrameMark, at),
            _ => {}
        }
    }
}

struct Tag {
    name: String,
    closing: bool,
    bare: bool,
}

impl Tag {
    fn at(text: &str, at: usize) -> Option<Self> {
        let inside = text.get(at + 1..)?;
        let closing = inside.starts_with('/');
        let inside = inside.strip_prefix('/').unwrap_or(inside).trim_start_matches(' ');
        let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        let length = inside.bytes().take(MAX_NAME_BYTES).take_while(is_name).count();
        let name = inside.get(..length).filter(|name| !name.is_empty())?.to_ascii_lowercase();
        let after = inside.get(length..)?;
        let bare = after.trim_start_matches(' ').starts_with('>');
        (bare || after.starts_with([' ', '/'])).then_some(Self { name, closing, bare })
    }
}
