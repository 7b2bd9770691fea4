//! Which of many tool definitions would be quarantined, and why: `scan_definitions < definitions.jsonl`, one definition per
//! line. To measure the scan, pass the saved `tools/list` results of servers to it.

use std::io::{BufRead, Result, stdin};

use embody_broker::catalogue::{QuarantineReason, quarantine_reason};
use embody_store::pins::{Definition, ToolPin};

#[derive(serde::Deserialize)]
struct Named {
    name: String,
}

fn main() -> Result<()> {
    let (mut all, mut quarantined) = (0_u32, 0_u32);
    for line in stdin().lock().lines() {
        let text = line?;
        let Named { name: tool } = serde_json::from_str(&text)?;
        let reason = quarantine_reason(&ToolPin {
            body: String::new(),
            tool: tool.clone(),
            pinned: Definition { text, hash: String::new() },
            is_new: false,
            accepted: false,
            seen: None,
            first_seen_at: 0,
            changed_at: 0,
            accepted_by: None,
        });
        all += 1;
        if let Some(QuarantineReason::Suspicious(finding)) = reason {
            quarantined += 1;
            println!("{tool}: {finding}");
        }
    }
    println!("{quarantined} of {all} definitions are quarantined");
    Ok(())
}
