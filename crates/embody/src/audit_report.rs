//! The report of a verification of the audit chains, for people.

use std::fmt::Write;

use anstyle::AnsiColor;
use embody_store::audit::{AuditReport, ChainReport, ChainState};

use crate::output::{pluralize, printable};
use crate::time;

pub(crate) fn report_text(report: &AuditReport) -> String {
    let is_new = |chain: &ChainReport| chain.records == 0 && chain.state == ChainState::Intact;
    if report.chains.iter().all(is_new) {
        return "The audit chain has no records yet.\n".to_owned();
    }
    report.chains.iter().map(chain_text).collect()
}

fn chain_text(chain: &ChainReport) -> String {
    let (state, style, more) = match &chain.state {
        ChainState::Intact => ("intact", AnsiColor::Green.on_default(), String::new()),
        ChainState::Broken(found) => ("BROKEN", AnsiColor::Red.on_default().bold(), format!(" at {found}")),
        ChainState::KeyAway => {
            ("not verified", AnsiColor::Yellow.on_default(), ": its key is not on this machine".to_owned())
        }
    };
    let since = chain.first_at.map_or(String::new(), |at| format!(" since {}", time::display(at)));
    let mut out = format!(
        "{style}{state}{style:#}  chain {}, {}{since}{}\n",
        printable(&chain.chain),
        pluralize(chain.records, "record"),
        printable(&more)
    );
    if chain.beyond_head > 0 {
        let _ = writeln!(
            out,
            "  newer than the head outside the database: {}",
            pluralize(chain.beyond_head, "record")
        );
    }
    if let Some(trouble) = &chain.head_trouble {
        let _ = writeln!(out, "  head: {}", printable(trouble));
    }
    out
}
