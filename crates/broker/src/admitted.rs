//! Who comes in with a token, believed for a moment: a host that calls a thousand times a second is looked up ten times.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use embody_store::{Principal, Store};

/// How long a token still counts here after somebody has revoked it.
const BELIEVED: Duration = Duration::from_millis(100);
/// Tokens that are believed at the same time.
const MOST: usize = 1024;

/// The tokens that named somebody a moment ago, by their hash. One that names nobody is looked up each time.
#[derive(Default)]
pub(crate) struct Admitted(Mutex<HashMap<blake3::Hash, (Principal, Instant)>>);

impl Admitted {
    /// Who a secret names; nobody if it is unknown, revoked, over, or its user is locked out.
    pub(crate) async fn principal(
        &self,
        store: &Store,
        secret: &str,
    ) -> embody_store::Result<Option<Principal>> {
        let hash = blake3::hash(secret.as_bytes());
        if let Some(known) = self.known(&hash) {
            return Ok(Some(known));
        }
        // What is found now is as old as this moment, however long it takes.
        let asked = Instant::now();
        // Boxed, as it is seldom: every request is as large as the largest thing that it may do.
        let found = Box::pin(store.principal(secret)).await?;
        if let Some(principal) = &found {
            self.learn(hash, principal.clone(), asked);
        }
        Ok(found)
    }

    fn known(&self, hash: &blake3::Hash) -> Option<Principal> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (principal, at) = known.get(hash)?;
        (at.elapsed() < BELIEVED).then(|| principal.clone())
    }

    fn learn(&self, hash: blake3::Hash, principal: Principal, at: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.retain(|_, (_, at)| at.elapsed() < BELIEVED);
        }
        if known.len() < MOST {
            known.insert(hash, (principal, at));
        }
    }
}

#[cfg(test)]
mod tests {
    use embody_store::{DatabaseUrl, NewToken, TokenScope};

    use super::*;

    fn old(admitted: &Admitted) {
        for (_, at) in admitted.0.lock().unwrap().values_mut() {
            *at -= BELIEVED;
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
        let (token, secret) = store.add_token(new).await.unwrap();
        let admitted = Admitted::default();
        let who = async || admitted.principal(&store, secret.expose()).await.unwrap().map(|one| one.user);
        assert_eq!(admitted.principal(&store, "nobody's").await.unwrap(), None);
        assert!(admitted.0.lock().unwrap().is_empty());
        assert_eq!(who().await.as_deref(), Some("ann"));
        store.revoke_token(&token.id).await.unwrap();
        old(&admitted);
        assert_eq!(who().await, None);
    }

    #[test]
    fn no_more_than_so_many_are_believed() {
        let admitted = Admitted::default();
        let ann =
            Principal { user: "ann".into(), scope: TokenScope::Mcp, token: "one".into(), may_approve: false };
        let learn = |number: usize| {
            let hash = blake3::hash(&number.to_le_bytes());
            admitted.learn(hash, ann.clone(), Instant::now());
            hash
        };
        for number in 0..MOST {
            learn(number);
        }
        old(&admitted);
        let last = learn(MOST);
        assert_eq!(admitted.known(&last), Some(ann.clone()));
        assert_eq!(admitted.0.lock().unwrap().len(), 1);
    }
}
