//! Replaces what differs between two runs, and nothing else. Equal ids, tokens and hashes get equal placeholders within a
//! snapshot; the numbers begin anew in the next one. Ids that a test has given a name keep it in all of its snapshots.
//!
//! | in the text | in the record |
//! |---|---|
//! | a UUID, one cut to 11 or 12 characters and `…`, its first 13 characters | `[id-1]`, `[id…]`, `[beginning of id-1]` |
//! | the short form of an id in a list | `[id…]` |
//! | an RFC 3339 time from 2025 to 2089, or such a time in microseconds as a member `at` or `…_at`; the weekday and the offset of a time for people | `[time]`, or `[later]`, `[earlier]` if it is more than 20 minutes away |
//! | a token, at least 16 hexadecimal digits, the code in `[embody CODE]`, a `requestState` | `[token-1]`, `[hash-1]`, `[code-1]`, `[state-1]` |
//! | the process's part of the id of a turn, `ID.1.89abcdef`, and of a request to the host, `embody-89abcdef-1` | `[id-1].1.[process]`, `embody-[process]-1` |
//! | a number behind one of [`MEASURED`], as in `"pid": 7` and `pid=7` | `[number]` |
//! | what the test registers: paths, the server's address, the version | the name given there |

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

/// Members of JSON objects and of log lines that measure something: time or the process.
const MEASURED: [&str; 4] = ["uptime_s", "pid", "elapsed_us", "since"];

/// Words before such a number.
const MEASURED_TEXT: [&str; 1] = ["last active "];

/// Before a time for people, which ends with an offset.
const WEEKDAYS: [&str; 7] = ["Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun "];

/// Times in messages that say how to write one.
const EXAMPLES: [&str; 4] =
    ["2026-11-15T21:30:00Z", "2026-11-15 21:30", "2026-11-15T22:30:00+01:00", "2027-01-31T00:00:00Z"];

/// Fixed times of the tests are before the first or from the second year on.
const YEARS: std::ops::Range<i16> = 2025..2090;

#[derive(Default)]
pub(super) struct Normalizer {
    /// Texts and what stands for them, in the order in which they are replaced.
    literals: Vec<(String, String)>,
    /// The same for texts that count only as whole words.
    words: Vec<(String, String)>,
    /// Ids, tokens and hashes with a name.
    names: HashMap<String, String>,
    /// Those without, since the last snapshot.
    numbered: HashMap<String, String>,
    counts: HashMap<&'static str, usize>,
    keeps_hashes: bool,
}

impl Normalizer {
    /// From now on this text is shown like that.
    pub(super) fn literal(&mut self, text: &str, shown: &str) {
        self.literals.push((text.to_owned(), shown.to_owned()));
    }

    /// The same where it is not a part of a longer word or number.
    pub(super) fn word(&mut self, text: &str, shown: &str) {
        self.words.push((text.to_owned(), shown.to_owned()));
    }

    /// From now on this id, token or hash is shown as `[NAME]`.
    pub(super) fn name(&mut self, value: &str, name: &str) {
        self.names.insert(value.to_owned(), format!("[{name}]"));
    }

    /// Whether hashes are shown as they are.
    pub(super) fn keep_hashes(&mut self, keep: bool) {
        self.keeps_hashes = keep;
    }

    /// Numbers begin anew.
    pub(super) fn next_snapshot(&mut self) {
        self.numbered.clear();
        self.counts.clear();
    }

    pub(super) fn normalize(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (from, to) in &self.literals {
            text = text.replace(from, to);
        }
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            let found = if begins_word(&out) { self.found(&out, rest) } else { None };
            if let Some((length, shown)) = found {
                out += &shown;
                at += length;
            } else {
                let letter = rest.chars().next().unwrap();
                out.push(letter);
                at += letter.len_utf8();
            }
        }
        out
    }

    /// What the text begins with that is replaced: its length, and what stands for it.
    fn found(&mut self, before: &str, rest: &str) -> Option<(usize, String)> {
        let is_word =
            |(word, _): &&(String, String)| rest.strip_prefix(&**word).is_some_and(|rest| !continues(rest));
        if let Some((word, shown)) = self.words.iter().find(is_word) {
            return Some((word.len(), shown.clone()));
        }
        if let Some(length) = measured(before, rest) {
            return Some((length, "[number]".to_owned()));
        }
        if let Some(length) = micros(before, rest) {
            let shown = stored_time(rest[..length].parse().ok()?)?;
            return Some((length, shown.to_owned()));
        }
        if before.ends_with(r#""requestState":""#) {
            let length = rest.find('"').filter(|length| *length > 16)?;
            return Some((length, self.numbered("state", &rest[..length])));
        }
        let is_request = before.ends_with("\"embody-") && begins_like(rest, "xxxxxxxx-");
        let is_turn = before.ends_with("].1.") && begins_like(rest, "xxxxxxxx") && !continues(&rest[8..]);
        if is_request || is_turn {
            return Some((8, "[process]".to_owned()));
        }
        if before.ends_with("[embody ") {
            let length = rest.find(']').filter(|length| (4..=32).contains(length))?;
            return Some((length, self.numbered("code", &rest[..length])));
        }
        if let Some(length) = rest.strip_prefix("embody_").and_then(token) {
            let length = length + "embody_".len();
            return Some((length, self.numbered("token", &rest[..length])));
        }
        if let Some(length) = uuid(rest) {
            return Some((length, self.numbered("id", &rest[..length])));
        }
        if let Some(length) = cut_uuid(rest) {
            return Some((length, "[id…]".to_owned()));
        }
        if let Some(length) = short_uuid(before, rest) {
            return Some((length, "[id…]".to_owned()));
        }
        if let Some((length, name)) = self.beginning(rest) {
            return Some((length, name));
        }
        if let Some((length, shown)) = time(rest) {
            return Some((length, shown.to_owned()));
        }
        if let Some((length, shown)) =
            rest.get(4..).filter(|_| WEEKDAYS.iter().any(|day| rest.starts_with(day))).and_then(time)
        {
            return Some((length + 4, shown.to_owned()));
        }
        let length = run(rest, |letter| letter.is_ascii_digit() || matches!(letter, 'a'..='f'));
        let is_hash = length >= 16 && !rest[..length].chars().all(|digit| digit.is_ascii_digit());
        if is_hash && !self.keeps_hashes && !continues(&rest[length..]) {
            return Some((length, self.numbered("hash", &rest[..length])));
        }
        None
    }

    /// The first 13 characters of an id with a name, or 12 of a hash and `…`.
    fn beginning(&self, rest: &str) -> Option<(usize, String)> {
        let id =
            begins_like(rest, "xxxxxxxx-xxxx") && !continues(&rest[13..]) && !rest[13..].starts_with('-');
        let hash = begins_like(rest, "xxxxxxxxxxxx…");
        let length = if id {
            13
        } else if hash {
            12
        } else {
            return None;
        };
        let (_, name) = self.names.iter().find(|(value, _)| value.starts_with(&rest[..length]))?;
        Some((length, format!("[beginning of {}", &name[1..])))
    }

    fn numbered(&mut self, kind: &'static str, value: &str) -> String {
        if let Some(name) = self.names.get(value) {
            return name.clone();
        }
        if let Some(known) = self.numbered.get(value) {
            return known.clone();
        }
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        let shown = format!("[{kind}-{count}]");
        self.numbered.insert(value.to_owned(), shown.clone());
        shown
    }
}

/// A time as the database has it, in microseconds.
pub(super) fn stored_time(micros: i64) -> Option<&'static str> {
    shown_time(Timestamp::from_microsecond(micros).ok()?)
}

fn shown_time(at: Timestamp) -> Option<&'static str> {
    if !YEARS.contains(&at.to_zoned(jiff::tz::TimeZone::UTC).year()) {
        return None;
    }
    let away = at.duration_since(Timestamp::now());
    let most = SignedDuration::from_mins(20);
    Some(match away {
        away if away > most => "[later]",
        away if away < -most => "[earlier]",
        _ => "[time]",
    })
}

/// Whether a value can begin here: not within a word, but behind an escape such as `\n`.
fn begins_word(before: &str) -> bool {
    let mut letters = before.chars().rev();
    match letters.next() {
        Some(last) if last.is_ascii_alphanumeric() => {
            matches!(last, 'n' | 't' | 'r') && letters.next() == Some('\\')
        }
        Some('-') => {
            before.ends_with("\"embody-") || !letters.next().is_some_and(|letter| letter.is_ascii_hexdigit())
        }
        _ => true,
    }
}

fn run(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|letter| !is_part(letter)).unwrap_or(text.len())
}

fn continues(rest: &str) -> bool {
    rest.starts_with(|letter: char| letter.is_ascii_alphanumeric())
}

fn measured(before: &str, rest: &str) -> Option<usize> {
    let is_member = |name: &&str| {
        member(before).is_some_and(|key| key == *name) || before.ends_with(&format!(" {name}="))
    };
    if !MEASURED.iter().any(is_member) && !MEASURED_TEXT.iter().any(|words| before.ends_with(words)) {
        return None;
    }
    Some(run(rest, |letter| letter.is_ascii_digit() || letter == '.')).filter(|length| *length > 0)
}

/// The name of the member whose value comes next, also in JSON within a text.
fn member(before: &str) -> Option<&str> {
    let key = before.trim_end_matches(' ').strip_suffix(':')?.strip_suffix('"')?;
    let key = key.strip_suffix('\\').unwrap_or(key);
    key.rsplit('"').next()
}

fn micros(before: &str, rest: &str) -> Option<usize> {
    let is_time = member(before).is_some_and(|key| key == "at" || key.ends_with("_at"));
    (is_time && begins_like(rest, "0000000000000000") && !continues(&rest[16..])).then_some(16)
}

fn token(rest: &str) -> Option<usize> {
    let length = run(rest, |letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'));
    let digits = rest[..length].chars().filter(char::is_ascii_digit).count();
    (length >= 32 && digits > 0).then_some(length)
}

/// Whether the text begins like this pattern: `x` is a hexadecimal digit, `0` a decimal one, everything else itself.
fn begins_like(rest: &str, pattern: &str) -> bool {
    let mut letters = rest.chars();
    pattern.chars().all(|expected| {
        letters.next().is_some_and(|letter| match expected {
            'x' => letter.is_ascii_hexdigit() && !letter.is_ascii_uppercase(),
            '0' => letter.is_ascii_digit(),
            _ => letter == expected,
        })
    })
}

fn uuid(rest: &str) -> Option<usize> {
    const SHAPE: &str = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    (begins_like(rest, SHAPE) && !continues(&rest[SHAPE.len()..])).then_some(SHAPE.len())
}

fn cut_uuid(rest: &str) -> Option<usize> {
    ["xxxxxxxx-xx…", "xxxxxxxx-xxx…"].into_iter().find(|shape| begins_like(rest, shape)).map(str::len)
}

/// A short id of a list: its length, and that of the column, differs from run to run.
fn short_uuid(before: &str, rest: &str) -> Option<usize> {
    let length = run(rest, |letter| letter.is_ascii_digit() || matches!(letter, 'a'..='f' | '-'));
    let is_id = (8..36).contains(&length) && begins_like(rest, "xxxxxxxx") && !continues(&rest[length..]);
    let spaces = run(&rest[length..], |letter| letter == ' ');
    let line = before.rsplit('\n').next().unwrap_or_default();
    // A score may be before it.
    let is_column = line.is_empty() || line.len() == 7 && begins_like(line, "0.000  ");
    let is_in_list = line.contains(" ids are ") || line.contains("more than one id matches");
    (is_id && (spaces > 1 && is_column || is_in_list)).then_some(length + spaces.saturating_sub(2))
}

/// A date and a time of the day, with or without seconds, a fraction and an offset.
fn time(rest: &str) -> Option<(usize, &'static str)> {
    if !begins_like(rest, "0000-00-00T00:00") && !begins_like(rest, "0000-00-00 00:00") {
        return None;
    }
    let mut length = "0000-00-00T00:00".len();
    if begins_like(&rest[length..], ":00") {
        length += 3;
        if begins_like(&rest[length..], ".0") {
            length += 1 + run(&rest[length + 1..], |digit| digit.is_ascii_digit());
        }
    }
    let clock = rest[..length].replace(' ', "T");
    let (length, offset) = match rest.as_bytes().get(length) {
        Some(b'Z') => (length + 1, "Z"),
        Some(b'+' | b'-') if begins_like(&rest[length + 1..], "00:00") => {
            (length + 6, &rest[length..length + 6])
        }
        Some(b' ') if begins_like(&rest[length + 1..], "+00:00") => {
            (length + 7, &rest[length + 1..length + 7])
        }
        _ => (length, "Z"),
    };
    if EXAMPLES.contains(&&rest[..length]) {
        return None;
    }
    let at: Timestamp = format!("{clock}{offset}").parse().ok()?;
    Some((length, shown_time(at)?))
}

#[test]
fn only_what_differs_between_two_runs_is_replaced() {
    let mut normalizer = Normalizer::default();
    normalizer.literal("/tmp/x", "[root]");
    normalizer.name("019a8b3e-0000-7000-8000-000000000001", "tea");
    let now = Timestamp::now();
    let past = now.as_microsecond() - 3_600_000_000;
    let text = format!(
        "/tmp/x/a 019a8b3e-0000-7000-8000-000000000001\\n019a8b3e-0000-7000-8000-000000000002 \
         019a8b3e-0000-7000-8000-000000000002, 019a8b3e-000… {now} 2020-01-02T03:04:05Z {now:.0} 2099-01-01T00:00:00+01:00 \
         {{\"pid\":123,\"kid\":123}} {{\\\"at\\\": {past}}} 1234567890123456 embody_calls_total abcdefabcdef1234 [embody q7Fz2k] q7Fz2k"
    );
    assert_eq!(
        normalizer.normalize(&text),
        "[root]/a [tea]\\n[id-1] [id-1], [id…] [time] 2020-01-02T03:04:05Z [time] 2099-01-01T00:00:00+01:00 \
         {\"pid\":[number],\"kid\":123} {\\\"at\\\": [earlier]} 1234567890123456 embody_calls_total [hash-1] [embody [code-1]] q7Fz2k"
    );
}
