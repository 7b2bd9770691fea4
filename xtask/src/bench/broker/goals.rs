//! The goals of the benchmark, and whether the results meet them.

use super::results::{Results, Subject};

pub(super) struct Goal {
    pub(super) what: &'static str,
    aim: Aim,
    measured: f64,
    unit: &'static str,
}

#[derive(Clone, Copy)]
enum Aim {
    AtMost(f64),
    AtLeast(f64),
}

/// With gates, audit and observation on; `None` if something was not measured.
pub(super) fn all(results: &Results) -> Option<Vec<Goal>> {
    let (stdio, http) = (Subject::embody("stdio"), Subject::embody("HTTP"));
    let goal = |what, aim, measured, unit| Goal { what, aim, measured, unit };
    let start = results.start(&stdio)?;
    let flushed = results.flushed.map(|flushed| {
        goal(
            "flushes of the disk for a write, where a read has none of its own",
            Aim::AtMost(1.0),
            flushed,
            "",
        )
    });
    let goals = vec![
        goal(
            "a read over stdio, median, of a direct call's",
            Aim::AtMost(3.5),
            results.ratio(&stdio, "read", |calls| calls.p50_us)?,
            "×",
        ),
        goal(
            "32 reads at once over stdio, calls per second, of direct ones'",
            Aim::AtLeast(0.32),
            results.ratio(&stdio, "32 reads", |calls| calls.per_second)?,
            "×",
        ),
        goal(
            "a read over HTTP, median, of a direct call's over stdio",
            Aim::AtMost(5.5),
            results.ratio(&http, "read", |calls| calls.p50_us)?,
            "×",
        ),
        goal(
            "resident memory with two idle servers behind it, the servers left out",
            Aim::AtMost(17.0),
            start.resident.all_mb(),
            " MB",
        ),
        goal(
            "from the start of the process to its first answer",
            Aim::AtMost(15.0),
            start.initialized_ms,
            " ms",
        ),
    ];
    Some(goals.into_iter().chain(flushed).collect())
}

impl Goal {
    pub(super) fn aim(&self) -> String {
        match self.aim {
            Aim::AtMost(aim) => format!("≤ {aim}{}", self.unit),
            Aim::AtLeast(aim) => format!("≥ {aim}{}", self.unit),
        }
    }

    pub(super) fn measured(&self) -> String {
        format!("{:.2}{}", self.measured, self.unit)
    }

    /// Whether it is met, or by how much it is missed.
    pub(super) fn verdict(&self) -> String {
        match self.aim {
            Aim::AtMost(aim) if self.measured <= aim => "holds".to_owned(),
            Aim::AtLeast(aim) if self.measured >= aim => "holds".to_owned(),
            Aim::AtMost(aim) => format!("falls short: {:.2} times the aim", self.measured / aim),
            Aim::AtLeast(aim) => format!("falls short: {:.2} of the aim", self.measured / aim),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_says_by_how_much_it_is_missed() {
        let goal = |aim, measured| Goal { what: "", aim, measured, unit: "×" };
        assert_eq!(goal(Aim::AtMost(3.5), 3.5).verdict(), "holds");
        assert_eq!(goal(Aim::AtMost(3.5), 7.0).verdict(), "falls short: 2.00 times the aim");
        assert_eq!(goal(Aim::AtLeast(0.32), 0.4).verdict(), "holds");
        assert_eq!(goal(Aim::AtLeast(0.32), 0.08).verdict(), "falls short: 0.25 of the aim");
    }
}
