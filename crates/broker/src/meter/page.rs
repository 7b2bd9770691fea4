//! The Prometheus text format 0.0.4: its grammar and escapes. The callers own the metrics.

use std::fmt::{Display, Write};

use super::count::{Histogram, HistogramSnapshot};

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only increases.
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

#[derive(Debug, Default)]
pub struct Page {
    text: String,
    /// The only bodies whose samples are included; `None` for all.
    bodies: Option<Vec<String>>,
}

impl Page {
    /// A page with the samples of these bodies only.
    #[must_use]
    pub fn of_bodies(bodies: Vec<String>) -> Self {
        Self { text: String::new(), bodies: Some(bodies) }
    }

    /// Begins a family: all samples of one name.
    pub fn family(&mut self, name: &'static str, kind: Kind, help: &str) -> Family<'_> {
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
        Family { text: &mut self.text, name, bodies: self.bodies.as_deref() }
    }

    /// A family of one sample without labels.
    pub fn number(&mut self, name: &'static str, kind: Kind, help: &str, value: impl Display) {
        self.family(name, kind, help).sample(&[], value);
    }

    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }
}

pub type Label<'a> = (&'static str, &'a str);

#[derive(Debug)]
pub struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
    bodies: Option<&'a [String]>,
}

impl Family<'_> {
    /// Whether a sample with these labels is included.
    fn shows(&self, labels: &[Label<'_>]) -> bool {
        let is_hidden = |&(name, value): &Label<'_>| {
            name == "body" && self.bodies.is_some_and(|bodies| !bodies.iter().any(|body| body == value))
        };
        !labels.iter().any(is_hidden)
    }

    pub fn sample(&mut self, labels: &[Label<'_>], value: impl Display) {
        if !self.shows(labels) {
            return;
        }
        self.line("", labels, None, value);
    }

    pub(super) fn histogram(&mut self, labels: &[Label<'_>], histogram: &Histogram) {
        if !self.shows(labels) {
            return;
        }
        let HistogramSnapshot { up_to, count, sum } = histogram.read();
        for (bound, count) in up_to {
            self.line("_bucket", labels, Some(&bound.to_string()), count);
        }
        self.line("_bucket", labels, Some("+Inf"), count);
        self.line("_sum", labels, None, sum);
        self.line("_count", labels, None, count);
    }

    fn line(&mut self, suffix: &str, labels: &[Label<'_>], bound: Option<&str>, value: impl Display) {
        let _ = write!(self.text, "{}{suffix}", self.name);
        let all = labels.iter().copied().chain(bound.map(|bound| ("le", bound)));
        for (place, (name, value)) in all.enumerate() {
            let _ = write!(self.text, "{}{name}=\"", if place == 0 { '{' } else { ',' });
            self.escaped(value);
            self.text.push('"');
        }
        if !labels.is_empty() || bound.is_some() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    fn escaped(&mut self, value: &str) {
        for character in value.chars() {
            match character {
                '\\' => self.text.push_str("\\\\"),
                '"' => self.text.push_str("\\\""),
                '\n' => self.text.push_str("\\n"),
                other => self.text.push(other),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn samples_stand_under_what_they_are() {
        let mut page = Page::default();
        page.number("a_total", Kind::Counter, "Things\nthat \\ happened.", 3);
        let mut family = page.family("b", Kind::Gauge, "State.");
        family.sample(&[("x", "say \"no\"\n\\"), ("y", "ü")], 0.5);
        assert_eq!(
            page.into_text(),
            "# HELP a_total Things\\nthat \\\\ happened.\n# TYPE a_total counter\na_total 3\n\
             # HELP b State.\n# TYPE b gauge\nb{x=\"say \\\"no\\\"\\n\\\\\",y=\"ü\"} 0.5\n"
        );
    }

    #[test]
    fn a_histogram_ends_with_everything() {
        let histogram = Histogram::default();
        histogram.record(Duration::from_micros(20));
        let mut page = Page::default();
        page.family("t_seconds", Kind::Histogram, "Time.").histogram(&[("body", "desk")], &histogram);
        let text = page.into_text();
        for line in [
            "t_seconds_bucket{body=\"desk\",le=\"0.00001\"} 0",
            "t_seconds_bucket{body=\"desk\",le=\"0.000025\"} 1",
            "t_seconds_bucket{body=\"desk\",le=\"300\"} 1",
            "t_seconds_bucket{body=\"desk\",le=\"+Inf\"} 1",
            "t_seconds_sum{body=\"desk\"} 0.00002",
            "t_seconds_count{body=\"desk\"} 1",
        ] {
            assert!(text.lines().any(|known| known == line), "no {line:?} in\n{text}");
        }
    }
}
