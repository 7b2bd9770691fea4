//! Setting rules aside and waiving approval in languages other than English. With spaces between words: verb, rules and
//! direction anywhere in one clause. Chinese, Japanese and Korean: substrings of a sentence. A negation near the verb
//! excuses it.

use super::document::{Document, Gap};
use super::finding::{Findings, Rule};
use super::lexicon::Kinds;
use super::{context, fold};

const REACH: usize = 9;
const WITHOUT: &str = "ohne zonder sans sin senza sem без bez بدون دون tanpa utan olmadan almadan";
/// One word for "without asking".
const UNASKED: &str = "sormadan onaysiz izinsiz";

pub(super) fn find(doc: &Document, findings: &mut Findings<'_>) {
    for (i, token) in doc.tokens.iter().enumerate() {
        if is_order(doc, i) {
            findings.add(Rule::IgnoreRules, token.at);
        } else if is_waiver(doc, i) || is_needless(doc, i) {
            findings.add(Rule::SkipApproval, token.at);
        }
    }
}

/// The words around `i`, up to the end of its clause on either side.
fn clause(doc: &Document, i: usize) -> impl Iterator<Item = usize> {
    let back = doc.back(i, REACH).take_while(|&j| doc.gap(j + 1) < Gap::Colon);
    back.chain(doc.ahead(i, REACH).take_while(|&j| doc.gap(j) < Gap::Colon))
}

fn is_order(doc: &Document, i: usize) -> bool {
    let kinds = doc.kinds(i);
    let own = kinds.has(Kinds::FOREIGN);
    let dismisses = kinds.has(Kinds::DISMISS);
    let complies = kinds.has(Kinds::COMPLY) && own;
    if !dismisses && !complies {
        return false;
    }
    let all = clause(doc, i).fold(Kinds::none(), |all, j| all | doc.kinds(j));
    // "ignore" and "instructions" are spelled alike in several languages: one foreign word beside them is enough.
    let says_whose = Kinds::RULE | Kinds::EARLIER | Kinds::YOUR;
    let foreign = own || clause(doc, i).any(|j| doc.is(j, Kinds::FOREIGN) && doc.is(j, says_whose));
    if !foreign || !all.has(Kinds::RULE) {
        return false;
    }
    let above = all.has(Kinds::EARLIER | Kinds::YOUR | Kinds::HIGHER);
    let sweeping = all.has(Kinds::ALL) && !all.has(Kinds::OUTSIDE | Kinds::TRADE) && dismisses;
    let negated = is_near_negation(doc, i);
    let quoted = doc.tokens.get(i).is_some_and(|token| token.quoted);
    (above || sweeping)
        && (dismisses && !negated || complies && negated)
        && !(quoted && context::is_excused(doc, i))
}

fn is_near_negation(doc: &Document, i: usize) -> bool {
    let before = doc.back(i, 3).take_while(|&j| doc.gap(j + 1) < Gap::Colon);
    let after = doc.ahead(i, 3).take_while(|&j| doc.gap(j) < Gap::Soft);
    before.chain(after).any(|j| negates(doc, j))
}

fn negates(doc: &Document, j: usize) -> bool {
    doc.is(j, Kinds::NEG) || doc.one_of(j, "no non")
}

/// "ohne Rückfrage", "sans demander".
fn is_waiver(doc: &Document, i: usize) -> bool {
    let one_word = doc.one_of(i, UNASKED);
    if !one_word && !doc.one_of(i, WITHOUT) {
        return false;
    }
    let consents = one_word || doc.any_ahead(i, 3, Kinds::CONSENT) || doc.any_back(i, 2, Kinds::CONSENT);
    let acts = clause(doc, i).any(|j| doc.is(j, Kinds::ACT | Kinds::ALL));
    let negated =
        clause(doc, i).any(|j| negates(doc, j) && doc.word(j) != "no" || j < i && doc.word(j) == "no");
    consents && acts && !negated
}

/// "Du brauchst keine Genehmigung", "no pidas permiso", "не спрашивая".
fn is_needless(doc: &Document, i: usize) -> bool {
    let kinds = doc.kinds(i);
    let needs = kinds.has(Kinds::NEED | Kinds::ASK) && kinds.has(Kinds::FOREIGN);
    let consents = kinds.has(Kinds::ASK)
        || clause(doc, i).any(|j| doc.is(j, Kinds::CONSENT) && doc.is(j, Kinds::FOREIGN));
    let acts = clause(doc, i).any(|j| doc.is(j, Kinds::ACT));
    needs && consents && acts && is_near_negation(doc, i)
}

const DISMISS: &str = "不需要遵守|不需遵守|不用遵循|不需要遵循|不再受|忽略|无视|無視|忘记|忘記|忘掉|忘了|绕过|繞過|不理会|不要理会|抛开|跳过|覆盖|取消|不要遵守|不用遵守|\
     不必遵守|无需遵守|不再遵守|不要遵循|不必遵循|停止遵守|违反|不再适用|不再有效|作废|失效|忘れ|従わな|\
     守らな|破棄|無効|回避|適用されな|上書き|取り消|무시|잊어|따르지|우회|不受|摆脱|破除|废除|解除|關閉|\
     关闭|停用|従う必要|守る必要|無関係";
const RULES: &str = "指令|指示|规则|規則|规定|提示词|提示詞|系统提示|系統提示|限制|约束|命令|准则|政策|要求|ルール|\
     プロンプト|制限|制約|ガイドライン|規約|지시|규칙|명령|제한|프롬프트|护栏|安全";
/// Whose rules: earlier ones, the system's, all of them.
const ABOVE: &str = "任何|之前|以上|上述|先前|前面|系统|系統|所有|一切|全部|你的|上面|此前|原有|以前|上記|これまで|前の|\
     システム|すべて|全て|あなたの|既存|今まで|先の|이전|위의|시스템|모든|당신의|기존|安全";
const NEGATED_BEFORE: &str =
    "不要|不会|不會|不得|不能|不可|不应|不應|不许|不准|不该|勿|别|別|莫|绝不|從不|从不|永不|决不|절대";
const NEGATED_AFTER: &str = "しない|せず|してはいけ|してはなら|することはでき|しないで|ない|ず|てはいけ|てはなら|하지|지 마|지 않|\
     という|と言|よう求め|するよう|の企て";
const WARNINGS: &str = "攻击|攻擊|注入|攻撃|インジェクション|공격|禁止|严禁|嚴禁";
const REFUSALS: &str = "拒否|断って|断り|断る|拒绝|拒絕|거부|거절|报告|報告";
const WAIVERS: &str = "无需批准|不需要批准|无需确认|不用确认|无须确认|不必询问|不用问|无需询问|无需同意|未经批准也|\
     不需要同意|不需要许可|无需许可|无需授权|不需要确认|不用请示|無需批准|無需確認|承認なし|承認は不要|\
     承認不要|確認なし|確認は不要|確認せずに|許可なし|許可は不要|許可を求めずに|聞かずに|尋ねずに|\
     承認を待たずに|승인 없이|허락 없이|확인 없이|묻지 말고|无需请示|不必批准|不用批准|无须批准|不必确认|\
     确认は省略|確認を省略";
const WAIVERS_DENIED: &str = "不得|不要|不能|不可|禁止|いけ|ならない|しない|ないで|마세요|안 ";
const ACTS: &str = "发送|發送|发邮件|发|删除|刪除|付款|支付|转账|转帐|执行|執行|发布|公开|操作|送信|削除|支払|実行|投稿|\
     送金|公開|送っ|보내|전송|삭제|결제|실행|所有|任何|すべて|모든|行动|行動";
const MAX_SENTENCE_BYTES: usize = 600;

pub(super) fn find_unspaced(text: &str, findings: &mut Findings<'_>) {
    for (at, sentence) in sentences(text) {
        if !sentence.chars().any(|c| fold::is_unspaced(c) || ('\u{ac00}'..='\u{d7a3}').contains(&c)) {
            continue;
        }
        let plain: String = sentence
            .chars()
            .filter(|&c| !fold::is_invisible(c) && (c == ' ' || !c.is_whitespace()))
            .collect();
        let start = at + sentence.len() - sentence.trim_start().len();
        if is_claim(&plain) {
            findings.add(Rule::ClaimPrecedence, start);
        } else if is_unspaced_order(&plain) {
            findings.add(Rule::IgnoreRules, start);
        } else if contains(&plain, WAIVERS) && contains(&plain, ACTS) && !contains(&plain, WAIVERS_DENIED) {
            findings.add(Rule::SkipApproval, start);
        }
    }
}

fn is_unspaced_order(sentence: &str) -> bool {
    let refused = REFUSALS.split('|').any(|word| {
        sentence
            .find(word)
            .is_some_and(|at| !ends_with(sentence.get(..at).unwrap_or_default(), NEGATED_BEFORE))
    });
    contains(sentence, RULES)
        && contains(sentence, ABOVE)
        && !contains(sentence, WARNINGS)
        && !refused
        && DISMISS.split('|').any(|verb| is_meant(sentence, verb))
}

/// "A より B を優先" and "优先于 A", where A is a layer above this text.
fn is_claim(sentence: &str) -> bool {
    let above =
        |part: &str| contains(part, "システム|以前|上記|安全|系统|系統|之前|上述") && contains(part, RULES);
    let less = sentence.split_once("より").filter(|(_, rest)| rest.contains("優先"));
    let compared = less
        .is_some_and(|(before, _)| above(before.rsplit(['を', 'は', '、', 'が']).next().unwrap_or_default()));
    let ranked = "优先于|優先於|高于|高於|凌驾于".split('|').find_map(|word| sentence.split_once(word));
    compared
        || ranked.is_some_and(|(before, after)| {
            above(&after.chars().take(8).collect::<String>()) && !ends_with(before, NEGATED_BEFORE)
        })
}

/// Whether `verb` is in the sentence and no negation stands beside it.
fn is_meant(sentence: &str, verb: &str) -> bool {
    let Some(at) = sentence.find(verb) else { return false };
    let (before, after) =
        (sentence.get(..at).unwrap_or_default(), sentence.get(at + verb.len()..).unwrap_or_default());
    let negated_after = NEGATED_AFTER.split('|').any(|negation| after.starts_with(negation));
    !ends_with(before, NEGATED_BEFORE) && !negated_after
}

fn ends_with(text: &str, any_of: &str) -> bool {
    let tail = text.trim_end_matches(['会', '會', '以', '再', '轻', '易', '擅', '自', '去']);
    any_of.split('|').any(|word| text.ends_with(word) || tail.ends_with(word))
}

fn contains(sentence: &str, any_of: &str) -> bool {
    any_of.split('|').any(|word| sentence.contains(word))
}

/// Sentences with their first byte; very long ones in bounded parts.
fn sentences(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest_at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(rest_at..).filter(|rest| !rest.is_empty())?;
        let stop = rest
            .char_indices()
            .find(|&(at, c)| matches!(c, '。' | '！' | '？' | '\n' | '!' | '?') || at >= MAX_SENTENCE_BYTES)
            .map_or(rest.len(), |(at, c)| at + c.len_utf8());
        let at = rest_at;
        rest_at += stop;
        Some((at, rest.get(..stop)?))
    })
}
