//! Stores which servers need `initialize`, so that the next process does not probe them again: servers on old SDKs exit when they
//! read `server/discover`. An entry expires after a day, so an upgraded server is noticed.

use std::path::Path;
use std::time::Duration;

use embody_store::Store;
use embody_wire::upstream::{EraCache, Route};
use tokio::time::timeout;

const ENTRY_TTL: Duration = Duration::from_secs(24 * 60 * 60);
/// A slow store does not delay a connection: the server is probed instead.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) fn cache(store: &Store, name: &str, route: &Route) -> EraCache {
    let Some(digest) = digest(route) else { return EraCache::default() };
    let key = (store.clone(), name.to_owned(), digest);
    let same_key = key.clone();
    let load = move || {
        let (store, name, digest) = key.clone();
        async move {
            let known =
                timeout(STORE_TIMEOUT, store.session_servers().contains(&name, &digest, ENTRY_TTL)).await;
            match known {
                Ok(Ok(is_known)) => is_known,
                Ok(Err(error)) => {
                    tracing::warn!(body = name, %error, "the protocol era of a server could not be read");
                    false
                }
                Err(_) => false,
            }
        }
    };
    let save = move |is_session_era: bool| {
        let (store, name, digest) = same_key.clone();
        async move {
            let saved = timeout(STORE_TIMEOUT, async {
                match is_session_era {
                    true => store.session_servers().add(&name, &digest, ENTRY_TTL).await,
                    false => store.session_servers().remove(&name, &digest).await,
                }
            });
            if let Ok(Err(error)) = saved.await {
                tracing::warn!(body = name, %error, "the protocol era of a server could not be stored");
            }
        }
    };
    EraCache::stored(load, save)
}

/// A digest of the command or the URL, without the secrets of a URL.
fn digest(route: &Route) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    let mut add = |part: &[u8]| {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    };
    match route {
        Route::Child(child) => {
            add(child.program.as_encoded_bytes());
            child.arguments.iter().for_each(|argument| add(argument.as_encoded_bytes()));
            add(child.folder.as_deref().unwrap_or(Path::new("")).as_os_str().as_encoded_bytes());
        }
        Route::Http { url } | Route::Sse { url } | Route::Probe { url } => {
            add(url.origin().ascii_serialization().as_bytes());
            add(url.path().as_bytes());
        }
        Route::InProcess(_) => return None,
    }
    Some(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use embody_wire::Url;
    use embody_wire::upstream::ChildSpec;

    use super::*;

    #[test]
    fn a_digest_differs_with_the_command_and_the_address_but_not_with_secrets() {
        let child = |arguments: &[&str], folder: Option<&str>| {
            digest(&Route::Child(ChildSpec {
                program: "uvx".into(),
                arguments: arguments.iter().map(Into::into).collect(),
                environment: Vec::new(),
                folder: folder.map(Into::into),
                secrets: Vec::new(),
                reaper: None,
                stderr: None,
            }))
        };
        let url = |url: &str| digest(&Route::Probe { url: Url::parse(url).unwrap() });
        let all = [
            child(&["a", "b"], None),
            child(&["ab"], None),
            child(&["a", "b"], Some("/tmp")),
            url("https://h/mcp"),
            url("https://h/other"),
            url("https://h:8443/mcp"),
        ];
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
        assert_eq!(url("https://h/mcp"), url("https://u:secret@h/mcp?token=secret"));
        assert_eq!(child(&["a", "b"], None), child(&["a", "b"], None));
    }
}
