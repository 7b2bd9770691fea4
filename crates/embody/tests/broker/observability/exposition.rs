//! Prometheus' text format 0.0.4, read strictly: what its own parser forgives is an error here.

use std::collections::{BTreeMap, BTreeSet};

/// A page that was read.
#[derive(Debug)]
pub(super) struct Exposition {
    samples: BTreeMap<Series, f64>,
    kinds: BTreeMap<String, String>,
}

/// A name and its labels, in their order.
pub(super) type Series = (String, Labels);

type Labels = Vec<(String, String)>;

impl Exposition {
    pub(super) fn read(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line does not end");
        let mut page = Self { samples: BTreeMap::new(), kinds: BTreeMap::new() };
        let (mut helped, mut family) = (BTreeSet::new(), String::new());
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap_or_else(|| panic!("no help: {line:?}"));
                assert!(is_name(name) && !help.trim().is_empty(), "{line:?}");
                assert!(helped.insert(name.to_owned()), "two families are called {name}");
                name.clone_into(&mut family);
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert_eq!(name, family, "the type stands behind the help");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line:?}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line:?}");
                assert!(page.kinds.insert(name.to_owned(), kind.to_owned()).is_none());
            } else {
                let ((name, labels), value) = sample(line);
                let kind = page.kinds.get(&family).unwrap_or_else(|| panic!("no family yet: {line:?}"));
                let suffix =
                    name.strip_prefix(&family).unwrap_or_else(|| panic!("not of {family}: {line:?}"));
                let suffixes: &[&str] =
                    if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
                assert!(suffixes.contains(&suffix), "{line:?}");
                assert!(value.is_finite() && (kind == "gauge" || value >= 0.0), "{line:?}");
                assert!(page.samples.insert((name, labels), value).is_none(), "twice: {line:?}");
            }
        }
        assert_eq!(helped.len(), page.kinds.len());
        page.check_histograms();
        page
    }

    /// Buckets grow with their bounds, and the last one has everything.
    fn check_histograms(&self) {
        for name in self.kinds.iter().filter(|(_, kind)| *kind == "histogram").map(|(name, _)| name) {
            let mut buckets: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
            for ((_, labels), count) in self.of(&format!("{name}_bucket")) {
                let (bound, others) = labels.split_last().unwrap();
                assert_eq!(bound.0, "le", "{name}");
                let limit = if bound.1 == "+Inf" { f64::INFINITY } else { bound.1.parse().unwrap() };
                buckets.entry(others.to_vec()).or_default().push((limit, *count));
            }
            for (labels, mut buckets) in buckets {
                buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
                assert!(buckets.is_sorted_by(|one, other| one.1 <= other.1), "{name} {labels:?}");
                let last = *buckets.last().unwrap();
                let series = |suffix: &str| self.samples[&(format!("{name}{suffix}"), labels.clone())];
                assert_eq!(last, (f64::INFINITY, series("_count")), "{name} {labels:?}");
                assert_eq!(series("_sum") > 0.0, last.1 > 0.0, "{name} {labels:?}");
            }
        }
    }

    fn of(&self, name: &str) -> impl Iterator<Item = (&Series, &f64)> {
        self.samples.iter().filter(move |((known, _), _)| known == name)
    }

    /// The sample of this name and labels, which must be there.
    pub(super) fn get(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let labels: Vec<(String, String)> =
            labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let series = (name.to_owned(), labels);
        *self.samples.get(&series).unwrap_or_else(|| panic!("no {series:?} in {:#?}", self.samples.keys()))
    }

    /// The sum of all samples of this name.
    pub(super) fn sum(&self, name: &str) -> f64 {
        self.of(name).map(|(_, value)| value).sum()
    }

    /// Every value of a label.
    pub(super) fn values(&self, label: &str) -> BTreeSet<String> {
        let labels = self.samples.keys().flat_map(|(_, labels)| labels);
        labels.filter(|(name, _)| name == label).map(|(_, value)| value.clone()).collect()
    }

    /// Every name of a label.
    pub(super) fn labels(&self) -> BTreeSet<String> {
        self.samples.keys().flat_map(|(_, labels)| labels).map(|(name, _)| name.clone()).collect()
    }
}

fn sample(line: &str) -> (Series, f64) {
    let end = line.find(['{', ' ']).unwrap_or_else(|| panic!("no sample: {line:?}"));
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name), "{line:?}");
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("no label: {line:?}"));
            assert!(is_name(label) && !label.contains(':'), "{line:?}");
            let (value, after) = quoted(after);
            assert!(!labels.iter().any(|(known, _)| known == label), "{line:?}");
            labels.push((label.to_owned(), value));
            match after.split_at(1) {
                (",", after) => rest = after,
                ("}", after) => {
                    rest = after;
                    break;
                }
                _ => panic!("{line:?}"),
            }
        }
    }
    let value = rest.strip_prefix(' ').unwrap_or_else(|| panic!("no value: {line:?}"));
    let value = value.parse().unwrap_or_else(|_| panic!("no number: {line:?}"));
    ((name.to_owned(), labels), value)
}

/// A label's value up to its quote, and what follows.
fn quoted(text: &str) -> (String, &str) {
    let (mut value, mut characters) = (String::new(), text.char_indices());
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.push(match characters.next().map(|(_, escaped)| escaped) {
                Some('n') => '\n',
                Some(same @ ('\\' | '"')) => same,
                other => panic!("{other:?} is no escape: {text:?}"),
            }),
            other => value.push(other),
        }
    }
    panic!("a quote is open: {text:?}");
}

fn is_name(name: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':');
    !name.is_empty() && name.bytes().all(is_good) && !name.as_bytes()[0].is_ascii_digit()
}
