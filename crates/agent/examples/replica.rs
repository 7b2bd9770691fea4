//! One of several processes that run the schedules of one store, for tests that kill it. A run logs its start, takes a
//! moment, and logs its end. `replica URL KEYS LOG` runs until it is killed or signalled. Each line of LOG is `START|END PID
//! SCHEDULE DUE MILLIS`.

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use embody_agent::schedule::{JobHandler, Scheduler, SchedulerSettings};
use embody_store::schedules::ScheduleClaim;
use embody_store::{DatabaseUrl, Store};
use embody_wire::server::CancellationToken;
use tokio::signal::unix::{SignalKind, signal};

/// Longer than any pause of a busy machine; the test moves the clock.
const LEASE: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "failed: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Vec<String>) -> Result<(), Box<dyn Error>> {
    let [url, keys, log] = args.as_slice() else { return Err("usage: replica URL KEYS LOG".into()) };
    let store = Store::open(DatabaseUrl::Postgres {
        url: url.clone(),
        direct_url: Some(url.clone()),
        keys: PathBuf::from(keys),
    })
    .await?;
    let log = Arc::new(OpenOptions::new().append(true).create(true).open(log)?);
    let work = JobHandler::new(move |claim: ScheduleClaim| {
        let log = Arc::clone(&log);
        async move {
            note(&log, "START", &claim)?;
            // Runs take different times, so that they do not end together.
            let took = 20 + (claim.due_at / 1_000_000 + claim.fence * 37).rem_euclid(180).unsigned_abs();
            tokio::time::sleep(Duration::from_millis(took)).await;
            note(&log, "END", &claim)?;
            Ok(format!("took {took} ms"))
        }
    });
    let settings = SchedulerSettings { lease: LEASE, ..SchedulerSettings::default() };
    let ending = CancellationToken::new();
    let switch = ending.clone();
    let mut term = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        term.recv().await;
        switch.cancel();
    });
    Scheduler::new(store.clone(), work, settings).run(ending).await;
    store.close().await;
    Ok(())
}

/// One write, so that lines of several processes do not mix.
fn note(mut log: &File, word: &str, claim: &ScheduleClaim) -> Result<(), String> {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let line = format!("{word} {} {} {} {millis}\n", std::process::id(), claim.schedule.id, claim.due_at);
    log.write_all(line.as_bytes()).map_err(|error| error.to_string())
}
