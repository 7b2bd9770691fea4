//! The token of a server behind us: from a command of the operator's, kept until it is refused.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use embody_wire::Secret;
use embody_wire::upstream::{Fresh, TokenSource};
use tokio::sync::watch;

use crate::config::resolved::CommandLine;
use crate::token;

/// Runs the command for the first token, and again when that one is refused.
pub(crate) fn tokens(command: CommandLine) -> TokenSource {
    let purse = Arc::new(Purse { command, held: Mutex::default() });
    TokenSource::new(move |fresh| {
        let purse = Arc::clone(&purse);
        async move { purse.fetch(fresh).await }
    })
}

/// The token of one server. The command may take longer than an attempt to connect: whoever gives up leaves it running,
/// and the next one finds what came of it.
struct Purse {
    command: CommandLine,
    held: Mutex<Held>,
}

type Minted = Option<Result<Secret, String>>;

#[derive(Default)]
struct Held {
    token: Option<Secret>,
    /// The command that runs, or what came of it as long as nobody has heard that.
    minting: Option<watch::Receiver<Minted>>,
}

impl Purse {
    async fn fetch(self: &Arc<Self>, fresh: Fresh) -> Result<Secret, String> {
        let mut minting = {
            let mut held = self.held();
            match (&held.minting, fresh, &held.token) {
                (Some(minting), ..) => minting.clone(),
                (None, Fresh::Any, Some(token)) => return Ok(token.clone()),
                _ => {
                    let minting = self.mint();
                    *held = Held { token: None, minting: Some(minting.clone()) };
                    minting
                }
            }
        };
        let minted = minting.wait_for(Option::is_some).await.ok().and_then(|minted| minted.clone());
        let minted = minted.unwrap_or_else(|| Err("the token command was not run to its end".to_owned()));
        let mut held = self.held();
        if held.minting.as_ref().is_some_and(|other| other.same_channel(&minting)) {
            *held = Held { token: minted.clone().ok(), minting: None };
        }
        minted
    }

    fn mint(self: &Arc<Self>) -> watch::Receiver<Minted> {
        let (done, minting) = watch::channel(None);
        let purse = Arc::clone(self);
        tokio::spawn(async move {
            let minted = token::mint(&purse.command, token::LIMIT).await;
            done.send_replace(Some(minted.map_err(|error| error.to_string())));
        });
        minting
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A command that notes that it runs, and prints how often it did, once it may.
    fn slow(folder: &std::path::Path, ending: &str) -> Arc<Purse> {
        let script = format!(
            "cd {} && echo x >> runs && until [ -e go ]; do sleep 0.02; done; {ending}",
            folder.display()
        );
        let command = CommandLine { program: "sh".into(), args: vec!["-c".into(), script] };
        Arc::new(Purse { command, held: Mutex::default() })
    }

    /// Asks, and gives up when the command runs.
    async fn give_up(purse: &Arc<Purse>, folder: &std::path::Path) {
        let runs = async {
            while !folder.join("runs").exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            _ = purse.fetch(Fresh::Any) => panic!("it may not end yet"),
            () = runs => {}
        }
    }

    // spec: B-07
    #[tokio::test]
    async fn a_token_that_comes_too_late_is_there_for_the_next_attempt() {
        let folder = tempfile::tempdir().unwrap();
        let purse = slow(folder.path(), "wc -l < runs");
        give_up(&purse, folder.path()).await;
        std::fs::write(folder.path().join("go"), "").unwrap();
        assert_eq!(purse.fetch(Fresh::Any).await.unwrap().expose(), "1", "it ran on, and ran once");
        assert_eq!(purse.fetch(Fresh::Any).await.unwrap().expose(), "1", "it is kept");
        assert_eq!(purse.fetch(Fresh::New).await.unwrap().expose(), "2", "it was refused");
        assert_eq!(purse.fetch(Fresh::Any).await.unwrap().expose(), "2");
    }

    #[tokio::test]
    async fn a_failure_that_comes_too_late_is_heard_once() {
        let folder = tempfile::tempdir().unwrap();
        let purse = slow(folder.path(), "[ $(wc -l < runs) -gt 1 ] && echo good");
        give_up(&purse, folder.path()).await;
        std::fs::write(folder.path().join("go"), "").unwrap();
        assert!(purse.fetch(Fresh::Any).await.unwrap_err().contains("failed"));
        assert_eq!(purse.fetch(Fresh::Any).await.unwrap().expose(), "good");
    }
}
