//! A plot of time over size as a small SVG, both axes logarithmic.

use std::fmt::Write as _;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 40.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 50.0;
/// More names than these would hide the lines: they stand beside the plot.
const INSIDE: usize = 4;
/// The room that names beside the plot take.
const BESIDE: f64 = 200.0;

/// What to draw.
pub(super) struct Plot<'a> {
    pub(super) title: &'a str,
    /// What the sizes are sizes of.
    pub(super) sizes: &'a str,
    /// What the times are times of.
    pub(super) times: &'a str,
    pub(super) series: &'a [Series],
}

/// One line: points of (size, microseconds), smallest first.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

const COLOURS: [&str; 10] =
    ["#06c", "#c50", "#283", "#92a", "#b8860b", "#555", "#0aa", "#e4a", "#7a3", "#a33"];

/// The plot. A lone series gets a dashed line for linear growth, several get their names.
pub(super) fn svg(plot: &Plot<'_>) -> String {
    let points = || plot.series.iter().flat_map(|series| &series.points);
    let x = Axis::new(points().map(|point| point.0), LEFT, WIDTH - RIGHT);
    let y = Axis::new(points().map(|point| point.1), HEIGHT - BOTTOM, TOP);
    let (title, sizes, times) = (plot.title, plot.sizes, plot.times);
    let width = if plot.series.len() > INSIDE { WIDTH + BESIDE } else { WIDTH };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<title>{title}</title>\n\
         <rect width=\"{width}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
    );
    grid(&mut svg, &x, &y);
    if let [Series { points, .. }] = plot.series
        && let (Some(first), Some(last)) = (points.first(), points.last())
    {
        // Through the last point, where fixed costs weigh least.
        let linear = last.1 * first.0 / last.0;
        line(&mut svg, &[(first.0, linear), *last], &x, &y, "stroke=\"#999\" stroke-dasharray=\"6 4\"");
    }
    for (series, colour) in plot.series.iter().zip(COLOURS.iter().cycle()) {
        line(&mut svg, &series.points, &x, &y, &format!("stroke=\"{colour}\" stroke-width=\"2\""));
        for (size, time) in &series.points {
            let (cx, cy) = (x.place(*size), y.place(*time));
            push(
                &mut svg,
                format_args!("<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"4\" fill=\"{colour}\"/>\n"),
            );
        }
    }
    names(&mut svg, plot.series);
    let (middle, bottom) = ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 10.0);
    push(
        &mut svg,
        format_args!(
            "<text x=\"{middle}\" y=\"{bottom}\" text-anchor=\"middle\">{sizes}</text>\n\
             <text x=\"{LEFT}\" y=\"18\">{times}</text>\n</svg>\n"
        ),
    );
    svg
}

/// Which line is which: in the upper left corner, where growing times leave room, or beside the plot.
fn names(svg: &mut String, series: &[Series]) {
    if series.len() < 2 {
        return;
    }
    let left = if series.len() > INSIDE { WIDTH - RIGHT + 20.0 } else { LEFT + 10.0 };
    for (index, (series, colour)) in series.iter().zip(COLOURS.iter().cycle()).enumerate() {
        let (top, name) = (TOP + 18.0 + 16.0 * index as f64, &series.name);
        push(svg, format_args!("<text x=\"{left}\" y=\"{top}\" fill=\"{colour}\">{name}</text>\n"));
    }
}

fn grid(svg: &mut String, x: &Axis, y: &Axis) {
    let (right, bottom, label) = (WIDTH - RIGHT, HEIGHT - BOTTOM, HEIGHT - BOTTOM + 18.0);
    for (value, at) in x.ticks() {
        push(
            svg,
            format_args!(
                "<path d=\"M{at:.1} {TOP}V{bottom}\" stroke=\"#ddd\"/><text x=\"{at:.1}\" y=\"{label}\" \
                 text-anchor=\"middle\">{value}</text>\n"
            ),
        );
    }
    for (value, at) in y.ticks() {
        let (end, baseline) = (LEFT - 8.0, at + 4.0);
        push(
            svg,
            format_args!(
                "<path d=\"M{LEFT} {at:.1}H{right}\" stroke=\"#ddd\"/><text x=\"{end}\" y=\"{baseline:.1}\" \
                 text-anchor=\"end\">{value}</text>\n"
            ),
        );
    }
}

fn line(svg: &mut String, points: &[(f64, f64)], x: &Axis, y: &Axis, style: &str) {
    let path: Vec<String> =
        points.iter().map(|(size, time)| format!("{:.1},{:.1}", x.place(*size), y.place(*time))).collect();
    push(svg, format_args!("<polyline points=\"{}\" fill=\"none\" {style}/>\n", path.join(" ")));
}

/// A logarithmic axis that starts and ends at powers of ten.
struct Axis {
    first: f64,
    last: f64,
    start: f64,
    end: f64,
}

impl Axis {
    fn new(values: impl Iterator<Item = f64>, start: f64, end: f64) -> Self {
        let (low, high) = values
            .map(|value| value.max(1e-3).log10())
            .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        // A size that misses its power of ten by a little still belongs to it.
        let first = if low > high { 0.0 } else { (low + 0.02).floor() };
        let last = if low > high { 1.0 } else { (high - 0.02).ceil().max(first + 1.0) };
        Self { first, last, start, end }
    }

    fn place(&self, value: f64) -> f64 {
        let share = (value.max(1e-3).log10() - self.first) / (self.last - self.first);
        self.start + share * (self.end - self.start)
    }

    fn ticks(&self) -> impl Iterator<Item = (f64, f64)> {
        let powers = self.first as i32..=self.last as i32;
        powers.map(|power| 10_f64.powi(power)).map(|value| (value, self.place(value)))
    }
}

fn push(svg: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = svg.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_points_lie_on_the_dashed_line() {
        let svg = drawn(vec![vec![(1_000.0, 3.0), (10_000.0, 30.0), (100_000.0, 300.0)]]);
        let lines: Vec<&str> = svg.lines().filter(|line| line.starts_with("<polyline")).collect();
        let ends = |line: &str| {
            let points = line.split('"').nth(1).unwrap().split(' ').map(str::to_owned).collect::<Vec<_>>();
            (points[0].clone(), points[points.len() - 1].clone())
        };
        assert_eq!(ends(lines[0]), ends(lines[1]));
        assert_eq!(svg.matches("<circle").count(), 3);
    }

    #[test]
    fn nothing_measured_is_an_empty_plot() {
        assert!(!drawn(Vec::new()).contains("NaN"));
        assert!(!drawn(vec![Vec::new()]).contains("NaN"));
    }

    #[test]
    fn several_lines_have_names_and_colours() {
        let svg = drawn(vec![vec![(1.0, 1.0), (10.0, 1.0)], vec![(1.0, 2.0), (10.0, 20.0)]]);
        assert!(svg.contains(">line 0</text>") && svg.contains(">line 1</text>"));
        assert!(!svg.contains("stroke-dasharray"));
    }

    fn drawn(lines: Vec<Vec<(f64, f64)>>) -> String {
        let series: Vec<Series> = lines
            .into_iter()
            .enumerate()
            .map(|(index, points)| Series { name: format!("line {index}"), points })
            .collect();
        svg(&Plot { title: "t", sizes: "s", times: "µs", series: &series })
    }
}
