//! Setting rules aside and waiving approval in Chinese, Japanese and Korean, which need no spaces between words.
//! Owns substring matching per sentence; a negated verb is spelled out and does not count.

use super::finding::{Findings, Rule};
use super::fold;

const DISMISS: &[&str] = &[
    "忽略",
    "无视",
    "無視",
    "忘记",
    "忘記",
    "忘掉",
    "忘了",
    "绕过",
    "繞過",
    "不理会",
    "不要理会",
    "抛开",
    "跳过",
    "覆盖",
    "取消",
    "不要遵守",
    "不用遵守",
    "不必遵守",
    "无需遵守",
    "不再遵守",
    "不要遵循",
    "不必遵循",
    "停止遵守",
    "违反",
    "不再适用",
    "不再有效",
    "作废",
    "失效",
    "忘れ",
    "従わな",
    "守らな",
    "破棄",
    "無効",
    "無視",
    "回避",
    "適用されな",
    "上書き",
    "取り消",
    "무시",
    "잊어",
    "따르지",
    "우회",
];
const RULES: &[&str] = &[
    "指令",
    "指示",
    "规则",
    "規則",
    "规定",
    "提示词",
    "提示詞",
    "系统提示",
    "系統提示",
    "限制",
    "约束",
    "命令",
    "准则",
    "政策",
    "要求",
    "ルール",
    "プロンプト",
    "制限",
    "制約",
    "ガイドライン",
    "規約",
    "지시",
    "규칙",
    "명령",
    "제한",
    "프롬프트",
    "护栏",
    "安全",
];
const ABOVE: &[&str] = &[
    "之前",
    "以上",
    "上述",
    "先前",
    "前面",
    "系统",
    "系統",
    "所有",
    "一切",
    "全部",
    "你的",
    "上面",
    "此前",
    "原有",
    "以前",
    "上記",
    "これまで",
    "前の",
    "システム",
    "すべて",
    "全て",
    "あなたの",
    "既存",
    "今まで",
    "先の",
    "이전",
    "위의",
    "시스템",
    "모든",
    "당신의",
    "기존",
    "安全",
];
const NEGATED: &[&str] = &[
    "不要忽略",
    "不得忽略",
    "不能忽略",
    "切勿忽略",
    "不可忽略",
    "绝不忽略",
    "不要忘记",
    "别忘",
    "不要忘記",
    "不要绕过",
    "不得绕过",
    "不能绕过",
    "不可绕过",
    "绝不",
    "切勿",
    "禁止",
    "不得",
    "拒绝",
    "拒絕",
    "严禁",
    "不可",
    "永远不",
    "不会忽略",
    "不應",
    "不应",
    "攻击",
    "攻擊",
    "注入",
    "無視しない",
    "無視せず",
    "無視してはいけ",
    "無視してはなら",
    "忘れない",
    "忘れず",
    "忘れてはいけ",
    "拒否",
    "断",
    "攻撃",
    "無視しないで",
    "無視することはでき",
    "回避しない",
    "回避せず",
    "上書きしない",
    "上書きすることはでき",
    "무시하지",
    "잊지",
    "거부",
    "거절",
    "우회하지",
    "ないでください",
    "してはいけ",
    "してはなら",
    "お忘れなく",
];
const WAIVERS: &[&str] = &[
    "无需批准",
    "不需要批准",
    "无需确认",
    "不用确认",
    "无须确认",
    "不必询问",
    "不用问",
    "无需询问",
    "无需同意",
    "未经批准也",
    "不需要同意",
    "不需要许可",
    "无需许可",
    "无需授权",
    "不需要确认",
    "不用请示",
    "無需批准",
    "無需確認",
    "承認なし",
    "承認は不要",
    "承認不要",
    "確認なし",
    "確認は不要",
    "確認せずに",
    "許可なし",
    "許可は不要",
    "許可を求めずに",
    "聞かずに",
    "尋ねずに",
    "承認を待たずに",
    "승인 없이",
    "허락 없이",
    "확인 없이",
    "묻지 말고",
];
const ACTS: &[&str] = &[
    "发送",
    "發送",
    "发邮件",
    "发",
    "删除",
    "刪除",
    "付款",
    "支付",
    "转账",
    "转帐",
    "执行",
    "執行",
    "发布",
    "公开",
    "操作",
    "送信",
    "削除",
    "支払",
    "実行",
    "投稿",
    "送金",
    "公開",
    "送っ",
    "보내",
    "전송",
    "삭제",
    "결제",
    "실행",
    "所有",
    "任何",
    "すべて",
    "모든",
    "行动",
    "行動",
];
const MAX_SENTENCE_BYTES: usize = 600;

/// Reports orders and waivers, one per sentence at most.
pub(super) fn find(text: &str, findings: &mut Findings<'_>) {
    for (at, sentence) in sentences(text) {
        if !sentence.chars().any(|c| fold::is_unspaced(c) || ('\u{ac00}'..='\u{d7a3}').contains(&c)) {
            continue;
        }
        let plain: String = sentence
            .chars()
            .filter(|&c| !fold::is_invisible(c) && (c == ' ' || !c.is_whitespace()))
            .collect();
        if contains(&plain, NEGATED) {
            continue;
        }
        let start = at + sentence.len() - sentence.trim_start().len();
        if contains(&plain, DISMISS) && contains(&plain, RULES) && contains(&plain, ABOVE) {
            findings.add(Rule::IgnoreRules, start);
        } else if contains(&plain, WAIVERS) && contains(&plain, ACTS) {
            findings.add(Rule::SkipApproval, start);
        }
    }
}

fn contains(sentence: &str, any_of: &[&str]) -> bool {
    any_of.iter().any(|needle| sentence.contains(needle))
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
