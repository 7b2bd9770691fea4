//! Which texts give orders to the agent. Owns the line between an order and a statement; refuses certainty: a text that is
//! held back is kept for the owner to look at, and what is let through is still only data in a frame.
//!
//! Dangerous is what makes the agent do, reveal or obey something, or change its own rules. A restriction relaxes nothing
//! and passes, as do to-dos, recipes, quotations and talk about orders. The lint of `embody-prompt` knows texts that relax a
//! rule; `rules.txt` has the orders.

use std::sync::LazyLock;

use embody_prompt::lint::{self, Rule};
use embody_prompt::without_hidden;
use embody_text::fold::fold;
use embody_text::rules::RuleSet;
use embody_text::tokenize::{Document, Options, tokenize};

/// Orders stand at the beginning of a text or after some padding, not behind a book.
const MAX_BYTES: usize = 64 * 1024;
/// Checking more would block other tasks of the thread.
const LONG_BYTES: usize = 4 * 1024;

static RULES: LazyLock<RuleSet> = LazyLock::new(|| RuleSet::parse(&[include_str!("rules.txt")]));

pub fn gives_orders(text: &str) -> bool {
    let text = text.get(..text.floor_char_boundary(MAX_BYTES)).unwrap_or(text);
    // Quoted words of others are a statement.
    let own = without_quotations(text);
    relaxes_rule(text) && (own == text || relaxes_rule(&own)) || !orders(&own).is_empty()
}

/// Whether any of the texts gives orders. Long texts are checked off the runtime threads; a check that fails counts as yes.
pub(crate) async fn any_gives_orders(texts: Vec<String>) -> bool {
    let bytes: usize = texts.iter().map(String::len).sum();
    let check = move || texts.iter().any(|text| gives_orders(text));
    if bytes < LONG_BYTES {
        return check();
    }
    tokio::task::spawn_blocking(check).await.unwrap_or(true)
}

/// The rules that a text matches.
fn orders(text: &str) -> Vec<String> {
    let clean = without_hidden(text);
    let options = Options { inner: "_-", addresses: true, lines: true, ..Options::default() };
    let mut doc = tokenize(&clean, options);
    RULES.annotate(&mut doc);
    let spaced = RULES.matches(&doc).filter(|found| !is_forbidden(&doc, found.start));
    let unspaced = RULES.unspaced_matches(&clean).map(|(rule, _, _)| rule.id.clone());
    spaced.map(|found| found.rule.id.clone()).chain(unspaced).collect()
}

/// What is listed under "never:" is what not to do.
fn is_forbidden(doc: &Document<'_>, at: usize) -> bool {
    let listed = doc.sentence(at).filter(|sentence| sentence.listed);
    let lead = listed.and_then(|sentence| doc.sentences.get(sentence.lead?));
    lead.is_some_and(|lead| lead.classes.has(RULES.lexicon.class("NEG")))
}

fn relaxes_rule(text: &str) -> bool {
    let mut found = lint::override_attempts(text).into_iter().map(|finding| finding.rule);
    found.any(|rule| is_dangerous(rule) && !(rule == Rule::RoleChange && is_about_obedience(text)))
}

/// "Rex obeys every command": somebody obeys, and neither the reader nor a machine is spoken of.
fn is_about_obedience(text: &str) -> bool {
    const AGENT: &str = "you your youre yourself assistant agent ai bot model llm chatbot";
    let doc = tokenize(text, Options::default());
    let has = |from: usize, list: &str| (from..doc.tokens.len()).any(|at| doc.one_of(at, list));
    has(1, "obey obeys obeyed obeying") && !has(0, AGENT)
}

/// Frames cannot be closed and what is hidden is taken out, so marks and invisible characters alone are no reason.
fn is_dangerous(rule: Rule) -> bool {
    matches!(
        rule,
        Rule::IgnoreRules
            | Rule::ClaimPrecedence
            | Rule::RoleChange
            | Rule::FakeAuthority
            | Rule::SkipApproval
            | Rule::HideFromOwner
            | Rule::RevealSecrets
            | Rule::EncodedOrder
    )
}

/// Words that introduce a quotation.
const REPORTS: &str = "wrote writes said says saying asked told quote quoted lyric poem line joke called titled title reads \
     sign song film book motto slogan laughed reported screenshot example subject phrase word words schrieb sagt sagte \
     ecrit dit dijo escribio";
/// Whose words count even when they are only quoted.
const CHIEFS: &str = "owner user system admin administrator developer operator";

/// The text without what it quotes, where its line says that it does.
fn without_quotations(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, quoted, after)) = quotation(rest) {
        out.push_str(before);
        let line = before.rsplit('\n').next().unwrap_or_default();
        let next = after.split('\n').next().unwrap_or_default();
        let around = [bounded_end(line), bounded_start(next)];
        let names = |list: &str| {
            let words = around.iter().flat_map(|part| part.split(|c: char| !c.is_alphanumeric()));
            words.map(fold).any(|word| !word.is_empty() && list.split(' ').any(|one| one == word))
        };
        if names(REPORTS) && !names(CHIEFS) {
            out.push(',');
        } else {
            out.extend([" ", quoted, " "]);
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// How much of the line around a quotation counts: a line of quotations is read in linear time.
const AROUND_BYTES: usize = 400;

fn bounded_start(line: &str) -> &str {
    line.get(..line.floor_char_boundary(AROUND_BYTES)).unwrap_or(line)
}

fn bounded_end(line: &str) -> &str {
    line.get(line.ceil_char_boundary(line.len().saturating_sub(AROUND_BYTES))..).unwrap_or(line)
}

/// What stands before, in and after the first quotation marks.
fn quotation(text: &str) -> Option<(&str, &str, &str)> {
    let open = text.find(['"', '“', '„', '«'])?;
    let mark = text.get(open..)?.chars().next()?;
    let inside = text.get(open + mark.len_utf8()..)?;
    let closing: &[char] = match mark {
        '“' => &['”'],
        '„' => &['“', '”'],
        '«' => &['»'],
        _ => &['"'],
    };
    let close = inside.find(closing)?;
    let end = inside.get(close..)?.chars().next()?.len_utf8();
    Some((text.get(..open)?, inside.get(..close)?, inside.get(close + end..)?))
}

#[cfg(test)]
mod tests {
    use super::{RULES, orders};

    #[test]
    fn every_rule_is_checked_by_its_examples() {
        assert_eq!(RULES.problems(), [""; 0]);
        assert_eq!(RULES.failing_examples(orders), [""; 0]);
    }
}
