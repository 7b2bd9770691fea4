//! Caches token lookups for 100 ms: a host that calls a thousand times a second is looked up ten times.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use embody_store::Store;
use embody_store::tokens::ValidToken;

use crate::session::lock;

/// How long a revoked token is still accepted.
const TTL: Duration = Duration::from_millis(100);
const CAPACITY: usize = 1024;

/// By the hash of the token. An unknown token is looked up each time.
#[derive(Default)]
pub(crate) struct AuthCache(Mutex<HashMap<blake3::Hash, (ValidToken, Instant)>>);

impl AuthCache {
    /// `None` if the token is unknown, revoked or expired, or its user is locked out.
    pub(crate) async fn principal(
        &self,
        store: &Store,
        secret: &str,
    ) -> embody_store::Result<Option<ValidToken>> {
        let hash = blake3::hash(secret.as_bytes());
        if let Some(known) = self.get(&hash) {
            return Ok(Some(known));
        }
        // The entry is as old as the start of the lookup.
        let asked = Instant::now();
        // Boxed because it is rare: inline, it would enlarge the future of every request.
        let found = Box::pin(store.tokens().authenticate(secret)).await?;
        if let Some(principal) = &found {
            self.insert(hash, principal.clone(), asked);
        }
        Ok(found)
    }

    fn get(&self, hash: &blake3::Hash) -> Option<ValidToken> {
        let known = lock(&self.0);
        let (principal, at) = known.get(hash)?;
        (at.elapsed() < TTL).then(|| principal.clone())
    }

    fn insert(&self, hash: blake3::Hash, principal: ValidToken, at: Instant) {
        let mut known = lock(&self.0);
        if known.len() >= CAPACITY {
            known.retain(|_, (_, at)| at.elapsed() < TTL);
        }
        if known.len() < CAPACITY {
            known.insert(hash, (principal, at));
        }
    }
}

#[cfg(test)]
mod tests {
    use embody_store::DatabaseUrl;
    use embody_store::tokens::{NewToken, TokenScope};

    use super::*;

    fn old(cache: &AuthCache) {
        for (_, at) in cache.0.lock().unwrap().values_mut() {
            *at -= TTL;
        }
    }

    #[tokio::test]
    async fn a_revoked_token_counts_no_longer_than_a_moment() {
        let store = Store::open(DatabaseUrl::Memory).await.unwrap();
        let new = NewToken {
            user: "ann".into(),
            scope: TokenScope::Mcp,
            label: String::new(),
            expires_at: None,
            may_approve: false,
        };
        let (token, secret) = store.tokens().add(new).await.unwrap();
        let cache = AuthCache::default();
        let who = async || cache.principal(&store, secret.expose()).await.unwrap().map(|one| one.user);
        assert_eq!(cache.principal(&store, "nobody's").await.unwrap(), None);
        assert!(cache.0.lock().unwrap().is_empty());
        assert_eq!(who().await.as_deref(), Some("ann"));
        store.tokens().revoke(&token.id).await.unwrap();
        old(&cache);
        assert_eq!(who().await, None);
    }

    #[test]
    fn no_more_than_so_many_are_believed() {
        let cache = AuthCache::default();
        let ann = ValidToken {
            user: "ann".into(),
            scope: TokenScope::Mcp,
            token: "one".into(),
            may_approve: false,
            signed_in_with: None,
        };
        let learn = |number: usize| {
            let hash = blake3::hash(&number.to_le_bytes());
            cache.insert(hash, ann.clone(), Instant::now());
            hash
        };
        for number in 0..CAPACITY {
            learn(number);
        }
        old(&cache);
        let last = learn(CAPACITY);
        assert_eq!(cache.get(&last), Some(ann.clone()));
        assert_eq!(cache.0.lock().unwrap().len(), 1);
    }
}
