//! Runs a token command: 30 seconds at most, its output a secret, its whole process group gone afterwards.

use std::process::Stdio;
use std::time::Duration;

use embody_wire::Secret;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

use crate::config::resolved::CommandLine;

/// How long a token command may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);
const SIZE_LIMIT: u64 = 64 * 1024;
const LINGER: Duration = Duration::from_millis(250);

/// Why there is no token. Never holds the command's output or arguments: both may be secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("the token command `{program}` cannot be run")]
    Start { program: String, source: std::io::Error },
    #[error("the token command `{program}` gave no answer within {} ms", limit.as_millis())]
    Slow { program: String, limit: Duration },
    #[error("the token command `{program}` failed with {status}")]
    Failed { program: String, status: std::process::ExitStatus },
    #[error("the token command `{program}` printed no usable token")]
    Empty { program: String },
}

/// The token that the command prints.
pub(crate) async fn mint(command: &CommandLine, limit: Duration) -> Result<Secret, TokenError> {
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
        // What the command left running would outlive it; no such group means that there is nothing left.
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

/// What the command printed by the time it ended. Something it left running may hold its output open, so the end of
/// the output is not waited for much longer than the command itself.
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
                // Too late is no error: what has arrived is there.
                let _ = tokio::time::timeout(LINGER, rest).await;
                Some(status)
            }
        }
    };
    // A command that prints without end is told that nobody reads.
    drop(stdout);
    match status {
        Some(status) => Ok((bytes, status)),
        None => Ok((bytes, child.wait().await?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: B-07
    #[tokio::test]
    async fn a_command_that_takes_too_long_is_ended_with_what_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("child");
        let script = format!("sleep 600 & echo $! > {}; sleep 600", note.display());
        let command = CommandLine { program: "sh".into(), args: vec!["-c".into(), script] };
        let error = mint(&command, Duration::from_secs(1)).await.unwrap_err();
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
