//! Logging: to stderr, and to `logs/embody.jsonl` in the workspace. Never writes to stdout; starting it twice changes nothing.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::IsTerminal;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, Once};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// A larger log is renamed at start; one older log is kept.
const FILE_LIMIT: u64 = 4 * 1024 * 1024;

/// Only an existing workspace gets a log file: reading commands must not create one.
pub(crate) fn start(workspace: &Path, on_stderr: LevelFilter, in_file: LevelFilter) {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let colours = std::io::stderr().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let stderr = fmt::layer()
            .with_writer(std::io::stderr)
            .without_time()
            .with_target(false)
            .with_ansi(colours)
            .with_filter(on_stderr);
        let file = open(workspace).map(|file| {
            fmt::layer()
                .json()
                .flatten_event(true)
                .with_span_list(false)
                .with_writer(Mutex::new(file))
                .with_filter(in_file.max(LevelFilter::INFO))
        });
        // A subscriber that is already set, as in a test, stays.
        let _ = tracing_subscriber::registry().with(stderr).with(file).try_init();
    });
}

fn open(workspace: &Path) -> Option<File> {
    if !workspace.is_dir() {
        return None;
    }
    let folder = workspace.join("logs");
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
    let path = folder.join("embody.jsonl");
    if fs::metadata(&path).is_ok_and(|metadata| metadata.len() > FILE_LIMIT) {
        fs::rename(&path, folder.join("embody.jsonl.1")).ok()?;
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: B-08
    #[test]
    fn a_second_start_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        start(folder.path(), LevelFilter::INFO, LevelFilter::INFO);
        start(folder.path(), LevelFilter::TRACE, LevelFilter::TRACE);
        tracing::info!("said once");
        let log = fs::read_to_string(folder.path().join("logs/embody.jsonl")).unwrap();
        assert_eq!(log.matches("said once").count(), 1, "{log}");
    }
}
