//! What the benchmark printed, and the middle of its rounds.

use super::Series;

/// Who was measured, and over which transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Who {
    pub(super) name: String,
    pub(super) transport: String,
}

impl Who {
    pub(super) fn new(name: &str, transport: &str) -> Self {
        Self { name: name.to_owned(), transport: transport.to_owned() }
    }

    /// What everything is compared with.
    pub(super) fn direct() -> Self {
        Self::new("direct", "stdio")
    }

    pub(super) fn embody(transport: &str) -> Self {
        Self::new("embody", transport)
    }

    /// Whether it is one of the others.
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
    pub(super) greeted_ms: f64,
    pub(super) listed_ms: f64,
    pub(super) resident: Resident,
}

/// What is resident of a process and of what it started itself, the servers behind it left out.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Resident {
    pub(super) own_mb: f64,
    pub(super) others_mb: f64,
    /// What of both is no page of a file.
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

/// `embody` with so many of something.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Grown {
    pub(super) what: String,
    pub(super) count: f64,
    pub(super) call_us: f64,
    /// To list all tools; of a session, to open it.
    pub(super) other_ms: f64,
    pub(super) resident: Resident,
}

/// All rows, the rounds in their order.
#[derive(Debug, Default)]
pub(super) struct Measured {
    calls: Vec<(Who, String, Calls)>,
    sizes: Vec<(Who, f64, f64)>,
    starts: Vec<(Who, Start)>,
    flushes: Vec<f64>,
    /// How often the disk is flushed for a write, if that could be counted.
    pub(super) flushed: Option<f64>,
    pub(super) grown: Vec<Grown>,
}

impl Measured {
    /// Whether others were measured.
    pub(super) fn has_peers(&self) -> bool {
        self.calls.iter().any(|(who, ..)| who.is_peer())
    }

    /// Who of the others answers a read soonest over this transport, and how much later than a direct call is answered.
    pub(super) fn fastest_peer(&self, transport: &str) -> Option<(String, f64)> {
        let peers =
            self.everybody("read").into_iter().filter(|who| who.is_peer() && who.transport == transport);
        let ratio = |who: Who| Some((who.name.clone(), self.ratio(&who, "read", |calls| calls.p50_us)?));
        peers.filter_map(ratio).min_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// Reads what the benchmark printed; what is no row is left out.
    pub(super) fn read(output: &str) -> Self {
        let mut measured = Self::default();
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
                    measured.calls.push((Who::new(name, transport), (*kind).to_owned(), calls));
                }
                ["size", _, name, transport, bytes, median] => {
                    measured.sizes.push((Who::new(name, transport), number(bytes), number(median)));
                }
                ["start", _, name, transport, servers, greeted, listed, own, others, anonymous] => {
                    let start = Start {
                        servers: number(servers),
                        greeted_ms: number(greeted),
                        listed_ms: number(listed),
                        resident: Resident::read(own, others, anonymous),
                    };
                    measured.starts.push((Who::new(name, transport), start));
                }
                ["flush", _, micros] => measured.flushes.push(number(micros)),
                ["flushes", count] => measured.flushed = Some(number(count)),
                ["grow", what, count, call, other, own, others, anonymous] => measured.grown.push(Grown {
                    what: (*what).to_owned(),
                    count: number(count),
                    call_us: number(call),
                    other_ms: number(other),
                    resident: Resident::read(own, others, anonymous),
                }),
                _ => {}
            }
        }
        measured
    }

    /// Everybody who made calls of this kind, in the order of the first round.
    pub(super) fn everybody(&self, kind: &str) -> Vec<Who> {
        let mut everybody: Vec<Who> = Vec::new();
        for (who, _, _) in self.calls.iter().filter(|call| call.1 == kind) {
            if !everybody.contains(who) {
                everybody.push(who.clone());
            }
        }
        everybody
    }

    fn rounds(&self, who: &Who, kind: &str) -> Vec<Calls> {
        self.calls.iter().filter(|call| call.0 == *who && call.1 == kind).map(|call| call.2).collect()
    }

    /// The middle of each column.
    pub(super) fn calls(&self, who: &Who, kind: &str) -> Option<Calls> {
        let rounds = self.rounds(who, kind);
        let of = |column: fn(&Calls) -> f64| middle(rounds.iter().map(column).collect());
        Some(Calls {
            count: rounds.first()?.count,
            p50_us: of(|calls| calls.p50_us)?,
            p90_us: of(|calls| calls.p90_us)?,
            p99_us: of(|calls| calls.p99_us)?,
            per_second: of(|calls| calls.per_second)?,
        })
    }

    /// A column against that of the direct call in the same round: what else the machine does comes and goes.
    pub(super) fn ratio(&self, who: &Who, kind: &str, column: fn(&Calls) -> f64) -> Option<f64> {
        let (rounds, direct) = (self.rounds(who, kind), self.rounds(&Who::direct(), kind));
        middle(rounds.iter().zip(&direct).map(|(one, direct)| column(one) / column(direct)).collect())
    }

    /// Everybody who was started, in the order of the first round.
    pub(super) fn started(&self) -> Vec<Who> {
        let mut started: Vec<Who> = Vec::new();
        for (who, _) in &self.starts {
            if !started.contains(who) {
                started.push(who.clone());
            }
        }
        started
    }

    /// The middle of each column.
    pub(super) fn start(&self, who: &Who) -> Option<Start> {
        let rounds: Vec<Start> =
            self.starts.iter().filter(|start| start.0 == *who).map(|start| start.1).collect();
        let of = |column: fn(&Start) -> f64| middle(rounds.iter().map(column).collect());
        Some(Start {
            servers: rounds.first()?.servers,
            greeted_ms: of(|start| start.greeted_ms)?,
            listed_ms: of(|start| start.listed_ms)?,
            resident: Resident {
                own_mb: of(|start| start.resident.own_mb)?,
                others_mb: of(|start| start.resident.others_mb)?,
                anonymous_mb: of(|start| start.resident.anonymous_mb)?,
            },
        })
    }

    /// What it takes to bring a page to the disk.
    pub(super) fn flush_us(&self) -> Option<f64> {
        middle(self.flushes.clone())
    }

    /// How many such flushes a write takes more than a read: the middle of the rounds.
    pub(super) fn flushes_of_a_write(&self, who: &Who) -> Option<f64> {
        let (writes, reads) = (self.rounds(who, "write"), self.rounds(who, "read"));
        let more = writes.iter().zip(&reads).zip(&self.flushes);
        middle(more.map(|((write, read), flush)| (write.p50_us - read.p50_us) / flush).collect())
    }

    /// Medians over sizes, a line for each.
    pub(super) fn series(&self) -> Vec<Series> {
        let mut sizes: Vec<f64> = self.sizes.iter().map(|size| size.1).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        let line = |who: Who| {
            let of = |bytes: f64| {
                let rounds = self.sizes.iter().filter(|size| size.0 == who && (size.1 - bytes).abs() < 0.5);
                Some((bytes, middle(rounds.map(|size| size.2).collect())?))
            };
            let points = sizes.iter().copied().filter_map(of).collect();
            Series { name: format!("{}, {}", who.name, who.transport), points }
        };
        self.everybody("read").into_iter().map(line).collect()
    }

    /// How the time of a call grows, and that of listing the tools.
    pub(super) fn growth_of_times(&self) -> Vec<Series> {
        let mut series = self.growth(|what| format!("a read, over {what}"), |grown| grown.call_us);
        let lists = self.grown.iter().filter(|grown| grown.what == "tools");
        let points = lists.map(|grown| (grown.count, grown.other_ms * 1e3)).collect();
        series.push(Series { name: "listing all tools, over tools".into(), points });
        series
    }

    /// How memory grows, with that of the processes that stand beside each server.
    pub(super) fn growth_of_memory(&self) -> Vec<Series> {
        let mut series =
            self.growth(|what| format!("the process, over {what}"), |grown| grown.resident.own_mb);
        let all = |grown: &Grown| grown.resident.all_mb();
        series.extend(self.growth(|what| format!("with its guards, over {what}"), all));
        series
    }

    fn growth(&self, name: impl Fn(&str) -> String, value: fn(&Grown) -> f64) -> Vec<Series> {
        let line = |what: &str| {
            let grown = self.grown.iter().filter(|grown| grown.what == what);
            Series { name: name(what), points: grown.map(|grown| (grown.count, value(grown))).collect() }
        };
        ["sessions", "servers", "tools"].into_iter().map(line).collect()
    }
}

fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
