//! The process of a server while a link to it is open: watched until it exits, and ended when the link closes.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::child::{Child, Errors, lines};

const WORDS_MAX_CHARS: usize = 200;

/// A process and its watching task. Dropping it kills the process with everything it started.
pub(super) struct Process {
    pid: Option<u32>,
    errors: Errors,
    stop: watch::Sender<bool>,
    over: watch::Receiver<Option<Over>>,
    watcher: JoinHandle<()>,
}

#[derive(Debug, Clone)]
pub(super) struct Over {
    pub(super) how: String,
    pub(super) words: String,
}

impl Process {
    /// Watches a process. `patience` is the time it gets to exit, applied twice (see [`Child::end`]).
    pub(super) fn watch(child: Child, patience: Duration) -> Self {
        let (stop, stopping) = watch::channel(false);
        let (ended, over) = watch::channel(None);
        let (pid, errors) = (child.id(), child.kept());
        let watcher = tokio::spawn(watch(child, stopping, ended, patience));
        Self { pid, errors, stop, over, watcher }
    }

    /// Reports how the process exited, once it has.
    pub(super) fn over(&self) -> watch::Receiver<Option<Over>> {
        self.over.clone()
    }

    pub(super) fn errors(&self) -> Vec<String> {
        lines(&self.errors)
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.pid.filter(|_| self.over.borrow().is_none())
    }

    /// Ends the process; its input must be closed already.
    pub(super) async fn end(&self) {
        self.stop.send_replace(true);
        let mut over = self.over.clone();
        // On error the watching task is gone, and the process with it.
        let _ = over.wait_for(Option::is_some).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

async fn watch(
    mut child: Child,
    mut stopping: watch::Receiver<bool>,
    ended: watch::Sender<Option<Over>>,
    patience: Duration,
) {
    let errors = child.kept();
    let how = tokio::select! {
        how = child.ended() => Some(how),
        _ = stopping.wait_for(|stopping| *stopping) => None,
    };
    let how = match how {
        Some(how) => how,
        None => {
            child.end(patience).await;
            "it was told to".to_owned()
        }
    };
    let last = lines(&errors).into_iter().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    let words = last.chars().filter(|c| !c.is_control()).take(WORDS_MAX_CHARS).collect();
    ended.send_replace(Some(Over { how, words }));
}
