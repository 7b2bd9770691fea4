//! The rows that the benchmark printed, and the medians of its rounds.

use super::Series;

/// A program that was results, and the transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) transport: String,
}

impl Subject {
    pub(super) fn new(name: &str, transport: &str) -> Self {
        Self { name: name.to_owned(), transport: transport.to_owned() }
    }

    /// The baseline.
    pub(super) fn direct() -> Self {
        Self::new("direct", "stdio")
    }

    pub(super) fn embody(transport: &str) -> Self {
        Self::new("embody", transport)
    }

    /// Whether it is a proxy of others.
    fn is_peer(&self) -> bool {
        !matches!(&*self.name, "direct" | "bare hop" | "embody")
    }
}

/// Calls of one kind in one round.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Calls {
    pub(super) count: f64,
    pub(super) p50_us: f64,
    pub(super) p90_us: f64,
    pub(super) p99_us: f64,
    pub(super) per_second: f64,
}

/// One start, with so many servers behind it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Start {
    pub(super) servers: f64,
    pub(super) initialized_ms: f64,
    pub(super) listed_ms: f64,
    pub(super) resident: Resident,
}

/// The resident memory of a process and of its helper processes, without the servers behind it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Resident {
    pub(super) own_mb: f64,
    pub(super) others_mb: f64,
    /// Pages of both that belong to no file.
    pub(super) anonymous_mb: f64,
}

impl Resident {
    fn read(own: &str, others: &str, anonymous: &str) -> Self {
        let mb = |text: &str| number(text) / 1024.0;
        Self { own_mb: mb(own), others_mb: mb(others), anonymous_mb: mb(anonymous) }
    }

    pub(super) fn all_mb(&self) -> f64 {
        self.own_mb + self.others_mb
    }
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or(0.0)
}

/// `embody` with `count` sessions, servers or tools.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GrowthRow {
    pub(super) what: String,
    pub(super) count: f64,
    pub(super) call_us: f64,
    /// To list all tools; of a session, to open it.
    pub(super) other_ms: f64,
    pub(super) resident: Resident,
}

/// All rows, the rounds in their order.
#[derive(Debug, Default)]
pub(super) struct Results {
    calls: Vec<(Subject, String, Calls)>,
    sizes: Vec<(Subject, f64, f64)>,
    starts: Vec<(Subject, Start)>,
    flushes: Vec<f64>,
    /// How often the disk is flushed for a write, if that could be counted.
    pub(super) flushed: Option<f64>,
    pub(super) growth_rows: Vec<GrowthRow>,
}

impl Results {
    pub(super) fn has_peers(&self) -> bool {
        self.calls.iter().any(|(subject, ..)| subject.is_peer())
    }

    /// The proxy of others with the shortest reads over this transport, and their ratio to a direct call.
    pub(super) fn fastest_peer(&self, transport: &str) -> Option<(String, f64)> {
        let peers = self
            .subjects("read")
            .into_iter()
            .filter(|subject| subject.is_peer() && subject.transport == transport);
        let ratio = |subject: Subject| {
            Some((subject.name.clone(), self.ratio(&subject, "read", |calls| calls.p50_us)?))
        };
        peers.filter_map(ratio).min_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// Parses the output of the benchmark; ignores other lines.
    pub(super) fn read(output: &str) -> Self {
        let mut results = Self::default();
        for line in output.lines() {
            match line.split('\t').collect::<Vec<_>>().as_slice() {
                ["call", _, name, transport, kind, count, p50, p90, p99, rate] => {
                    let calls = Calls {
                        count: number(count),
                        p50_us: number(p50),
                        p90_us: number(p90),
                        p99_us: number(p99),
                        per_second: number(rate),
                    };
                    results.calls.push((Subject::new(name, transport), (*kind).to_owned(), calls));
                }
                ["size", _, name, transport, bytes, median] => {
                    results.sizes.push((Subject::new(name, transport), number(bytes), number(median)));
                }
                ["start", _, name, transport, servers, initialized, listed, own, others, anonymous] => {
                    let start = Start {
                        servers: number(servers),
                        initialized_ms: number(initialized),
                        listed_ms: number(listed),
                        resident: Resident::read(own, others, anonymous),
                    };
                    results.starts.push((Subject::new(name, transport), start));
                }
                ["flush", _, micros] => results.flushes.push(number(micros)),
                ["flushes", count] => results.flushed = Some(number(count)),
                ["grow", what, count, call, other, own, others, anonymous] => {
                    results.growth_rows.push(GrowthRow {
                        what: (*what).to_owned(),
                        count: number(count),
                        call_us: number(call),
                        other_ms: number(other),
                        resident: Resident::read(own, others, anonymous),
                    })
                }
                _ => {}
            }
        }
        results
    }

    /// The subjects of calls of this kind, in the order of the first round.
    pub(super) fn subjects(&self, kind: &str) -> Vec<Subject> {
        let mut subjects: Vec<Subject> = Vec::new();
        for (subject, _, _) in self.calls.iter().filter(|call| call.1 == kind) {
            if !subjects.contains(subject) {
                subjects.push(subject.clone());
            }
        }
        subjects
    }

    fn rounds(&self, subject: &Subject, kind: &str) -> Vec<Calls> {
        self.calls.iter().filter(|call| call.0 == *subject && call.1 == kind).map(|call| call.2).collect()
    }

    /// The middle of each column.
    pub(super) fn calls(&self, subject: &Subject, kind: &str) -> Option<Calls> {
        let rounds = self.rounds(subject, kind);
        let of = |column: fn(&Calls) -> f64| median(rounds.iter().map(column).collect());
        Some(Calls {
            count: rounds.first()?.count,
            p50_us: of(|calls| calls.p50_us)?,
            p90_us: of(|calls| calls.p90_us)?,
            p99_us: of(|calls| calls.p99_us)?,
            per_second: of(|calls| calls.per_second)?,
        })
    }

    /// A column against that of the direct call in the same round: the load of the machine varies between rounds.
    pub(super) fn ratio(&self, subject: &Subject, kind: &str, column: fn(&Calls) -> f64) -> Option<f64> {
        let (rounds, direct) = (self.rounds(subject, kind), self.rounds(&Subject::direct(), kind));
        median(rounds.iter().zip(&direct).map(|(one, direct)| column(one) / column(direct)).collect())
    }

    /// The subjects that were started, in the order of the first round.
    pub(super) fn started(&self) -> Vec<Subject> {
        let mut started: Vec<Subject> = Vec::new();
        for (subject, _) in &self.starts {
            if !started.contains(subject) {
                started.push(subject.clone());
            }
        }
        started
    }

    /// The middle of each column.
    pub(super) fn start(&self, subject: &Subject) -> Option<Start> {
        let rounds: Vec<Start> =
            self.starts.iter().filter(|start| start.0 == *subject).map(|start| start.1).collect();
        let of = |column: fn(&Start) -> f64| median(rounds.iter().map(column).collect());
        Some(Start {
            servers: rounds.first()?.servers,
            initialized_ms: of(|start| start.initialized_ms)?,
            listed_ms: of(|start| start.listed_ms)?,
            resident: Resident {
                own_mb: of(|start| start.resident.own_mb)?,
                others_mb: of(|start| start.resident.others_mb)?,
                anonymous_mb: of(|start| start.resident.anonymous_mb)?,
            },
        })
    }

    /// The time to flush a page to the disk.
    pub(super) fn flush_us(&self) -> Option<f64> {
        median(self.flushes.clone())
    }

    /// How many such flushes a write takes more than a read: the middle of the rounds.
    pub(super) fn flushes_of_a_write(&self, subject: &Subject) -> Option<f64> {
        let (writes, reads) = (self.rounds(subject, "write"), self.rounds(subject, "read"));
        let more = writes.iter().zip(&reads).zip(&self.flushes);
        median(more.map(|((write, read), flush)| (write.p50_us - read.p50_us) / flush).collect())
    }

    /// Medians over sizes, a line for each.
    pub(super) fn series(&self) -> Vec<Series> {
        let mut sizes: Vec<f64> = self.sizes.iter().map(|size| size.1).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        let line = |subject: Subject| {
            let of = |bytes: f64| {
                let rounds =
                    self.sizes.iter().filter(|size| size.0 == subject && (size.1 - bytes).abs() < 0.5);
                Some((bytes, median(rounds.map(|size| size.2).collect())?))
            };
            let points = sizes.iter().copied().filter_map(of).collect();
            Series { name: format!("{}, {}", subject.name, subject.transport), points }
        };
        self.subjects("read").into_iter().map(line).collect()
    }

    /// How the time of a call grows, and that of listing the tools.
    pub(super) fn growth_of_times(&self) -> Vec<Series> {
        let mut series = self.growth(|what| format!("a read, over {what}"), |row| row.call_us);
        let lists = self.growth_rows.iter().filter(|row| row.what == "tools");
        let points = lists.map(|row| (row.count, row.other_ms * 1e3)).collect();
        series.push(Series { name: "listing all tools, over tools".into(), points });
        series
    }

    /// How memory grows, with that of the processes that stand beside each server.
    pub(super) fn growth_of_memory(&self) -> Vec<Series> {
        let mut series = self.growth(|what| format!("the process, over {what}"), |row| row.resident.own_mb);
        let all = |row: &GrowthRow| row.resident.all_mb();
        series.extend(self.growth(|what| format!("with its guards, over {what}"), all));
        series
    }

    fn growth(&self, name: impl Fn(&str) -> String, value: fn(&GrowthRow) -> f64) -> Vec<Series> {
        let line = |what: &str| {
            let rows = self.growth_rows.iter().filter(|row| row.what == what);
            Series { name: name(what), points: rows.map(|row| (row.count, value(row))).collect() }
        };
        ["sessions", "servers", "tools"].into_iter().map(line).collect()
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
