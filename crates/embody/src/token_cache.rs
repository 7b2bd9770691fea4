//! Access tokens of upstreams: runs the token command (30 seconds at most, its output is a secret, its process group is killed
//! afterwards) and caches the token until the server rejects it.

use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use embody_wire::Secret;
use embody_wire::upstream::{Freshness, TokenSource};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::sync::watch;

use crate::config::settings::CommandLine;

/// Runs the command for the first token, and again when the server rejects it.
pub(crate) fn token_source(command: CommandLine) -> TokenSource {
    let cache = Arc::new(TokenCache { command, state: Mutex::default() });
    TokenSource::new(move |fresh| {
        let cache = Arc::clone(&cache);
        async move { cache.fetch(fresh).await }
    })
}

/// The token of one server. The command may take longer than an attempt to connect: it keeps running when the caller gives up,
/// and the next caller gets its result.
struct TokenCache {
    command: CommandLine,
    state: Mutex<CacheState>,
}

type TokenResult = Option<Result<Secret, String>>;

#[derive(Default)]
struct CacheState {
    token: Option<Secret>,
    /// The running command, or its result until a caller has taken it.
    pending: Option<watch::Receiver<TokenResult>>,
}

impl TokenCache {
    async fn fetch(self: &Arc<Self>, fresh: Freshness) -> Result<Secret, String> {
        let mut pending = {
            let mut state = self.lock();
            match (&state.pending, fresh, &state.token) {
                (Some(pending), ..) => pending.clone(),
                (None, Freshness::Any, Some(token)) => return Ok(token.clone()),
                _ => {
                    let pending = self.spawn_command();
                    *state = CacheState { token: None, pending: Some(pending.clone()) };
                    pending
                }
            }
        };
        let result = pending.wait_for(Option::is_some).await.ok().and_then(|result| result.clone());
        let result = result.unwrap_or_else(|| Err("the token command did not finish".to_owned()));
        let mut state = self.lock();
        if state.pending.as_ref().is_some_and(|other| other.same_channel(&pending)) {
            *state = CacheState { token: result.clone().ok(), pending: None };
        }
        result
    }

    fn spawn_command(self: &Arc<Self>) -> watch::Receiver<TokenResult> {
        let (sender, pending) = watch::channel(None);
        let cache = Arc::clone(self);
        tokio::spawn(async move {
            let result = run_token_command(&cache.command, TOKEN_COMMAND_TIMEOUT).await;
            sender.send_replace(Some(result.map_err(|error| error.to_string())));
        });
        pending
    }

    fn lock(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) const TOKEN_COMMAND_TIMEOUT: Duration = Duration::from_secs(30);
const SIZE_LIMIT: u64 = 64 * 1024;
const LINGER: Duration = Duration::from_millis(250);

/// Never contains the output or the arguments of the command: both may be secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("the token command `{program}` cannot be run")]
    Start { program: String, source: std::io::Error },
    #[error("the token command `{program}` did not finish within {} ms", limit.as_millis())]
    Slow { program: String, limit: Duration },
    #[error("the token command `{program}` failed with {status}")]
    Failed { program: String, status: std::process::ExitStatus },
    #[error("the token command `{program}` printed no usable token")]
    Empty { program: String },
}

pub(crate) async fn run_token_command(command: &CommandLine, limit: Duration) -> Result<Secret, TokenError> {
    let program = command.program.clone();
    let start = |source| TokenError::Start { program: program.clone(), source };
    let mut child = Command::new(&command.program)
        .args(&command.args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(start)?;
    let group = child.id();
    let answer = tokio::time::timeout(limit, read(&mut child)).await;
    if let Some(group) = group.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
        // Kills what the command left running; an error means that nothing is left.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let (bytes, status) =
        answer.map_err(|_| TokenError::Slow { program: program.clone(), limit })?.map_err(start)?;
    if !status.success() {
        return Err(TokenError::Failed { program, status });
    }
    let token = String::from_utf8(bytes).ok().map(|text| text.trim().to_owned());
    let usable = |token: &String| !token.is_empty() && token.chars().all(|c| c.is_ascii_graphic());
    token.filter(usable).map(Secret::new).ok_or(TokenError::Empty { program })
}

/// The output of the command when it ended. A process that it left running may hold the pipe open, so the end of the output
/// is not awaited much longer than the command itself.
async fn read(child: &mut Child) -> std::io::Result<(Vec<u8>, std::process::ExitStatus)> {
    let mut bytes = Vec::new();
    let Some(stdout) = child.stdout.take() else { return Ok((bytes, child.wait().await?)) };
    let mut stdout = stdout.take(SIZE_LIMIT);
    let status = {
        let rest = stdout.read_to_end(&mut bytes);
        tokio::pin!(rest);
        tokio::select! {
            ended = &mut rest => {
                ended?;
                None
            }
            status = child.wait() => {
                let status = status?;
                // A timeout is not an error: `bytes` has what arrived.
                let _ = tokio::time::timeout(LINGER, rest).await;
                Some(status)
            }
        }
    };
    // Closes the pipe, so that a command that prints without end stops.
    drop(stdout);
    match status {
        Some(status) => Ok((bytes, status)),
        None => Ok((bytes, child.wait().await?)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A command that appends to `runs`, waits for the file `go`, and then runs `ending`.
    fn slow(folder: &std::path::Path, ending: &str) -> Arc<TokenCache> {
        let script = format!(
            "cd {} && echo x >> runs && until [ -e go ]; do sleep 0.02; done; {ending}",
            folder.display()
        );
        let command = CommandLine { program: "sh".into(), args: vec!["-c".into(), script] };
        Arc::new(TokenCache { command, state: Mutex::default() })
    }

    /// Requests a token, and gives up when the command runs.
    async fn give_up(cache: &Arc<TokenCache>, folder: &std::path::Path) {
        let runs = async {
            while !folder.join("runs").exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            _ = cache.fetch(Freshness::Any) => panic!("it may not end yet"),
            () = runs => {}
        }
    }

    // spec: B-07
    #[tokio::test]
    async fn a_late_token_is_used_by_the_next_attempt() {
        let folder = tempfile::tempdir().unwrap();
        let cache = slow(folder.path(), "wc -l < runs");
        give_up(&cache, folder.path()).await;
        std::fs::write(folder.path().join("go"), "").unwrap();
        assert_eq!(cache.fetch(Freshness::Any).await.unwrap().expose(), "1", "it ran on, and ran once");
        assert_eq!(cache.fetch(Freshness::Any).await.unwrap().expose(), "1", "it is kept");
        assert_eq!(cache.fetch(Freshness::New).await.unwrap().expose(), "2", "it was refused");
        assert_eq!(cache.fetch(Freshness::Any).await.unwrap().expose(), "2");
    }

    #[tokio::test]
    async fn a_late_failure_is_returned_once() {
        let folder = tempfile::tempdir().unwrap();
        let cache = slow(folder.path(), "[ $(wc -l < runs) -gt 1 ] && echo good");
        give_up(&cache, folder.path()).await;
        std::fs::write(folder.path().join("go"), "").unwrap();
        assert!(cache.fetch(Freshness::Any).await.unwrap_err().contains("failed"));
        assert_eq!(cache.fetch(Freshness::Any).await.unwrap().expose(), "good");
    }

    // spec: B-07
    #[tokio::test]
    async fn a_slow_token_command_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("child");
        let script = format!("sleep 600 & echo $! > {}; sleep 600", note.display());
        let command = CommandLine { program: "sh".into(), args: vec!["-c".into(), script] };
        let error = run_token_command(&command, Duration::from_secs(1)).await.unwrap_err();
        assert!(matches!(error, TokenError::Slow { .. }), "{error}");
        let child = std::fs::read_to_string(note).unwrap();
        let stat = format!("/proc/{}/stat", child.trim());
        let lives = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
        for _ in 0..500 {
            if !lives() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("a child of the command outlived it");
    }
}
