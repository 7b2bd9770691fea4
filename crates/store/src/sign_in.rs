//! Signing in to the console: codes that are valid once, and the sessions of browsers, which are tokens of the scope
//! `console`. Only hashes of both are stored. An unauthenticated caller can add neither.

use crate::areas::SignIn;
use crate::db::{args, transaction};
use crate::error::Result;
use crate::store::{check_name, new_id, now};
use crate::tokens::{TokenScope, TokenSecret, hash};
use crate::users;

/// Codes of a user that are valid at the same time. A new one ends the oldest.
pub const MAX_CODES: u32 = 8;
/// Sessions of a user at the same time. A new one ends the user's own oldest.
pub const MAX_SESSIONS: u32 = 32;

/// Of this user: codes that have expired by this time, and the oldest but for this many.
const FORGET_CODES: &str = "DELETE FROM sign_in_codes WHERE user_id = $1 AND hash NOT IN \
     (SELECT hash FROM sign_in_codes WHERE user_id = $1 AND expires_at > $2 ORDER BY expires_at DESC LIMIT $3)";

/// The same of sessions, and those that were revoked.
const FORGET_SESSIONS: &str = "DELETE FROM tokens WHERE user_id = $1 AND scope = 'console' AND id NOT IN \
     (SELECT id FROM tokens WHERE user_id = $1 AND scope = 'console' AND revoked_at IS NULL \
     AND expires_at > $2 ORDER BY id DESC LIMIT $3)";

impl SignIn<'_> {
    /// Creates a code that signs this user in once, until `expires_at`.
    pub async fn add_code(self, user: &str, expires_at: i64) -> Result<TokenSecret> {
        check_name("user", user)?;
        let code = TokenSecret::random("")?;
        let (user, hash) = (user.to_owned(), hash(code.expose()).as_slice().to_vec());
        transaction!(self.store, |conn| {
            conn.execute(FORGET_CODES, args![&user, now(), MAX_CODES - 1]).await?;
            let sql = "INSERT INTO sign_in_codes (user_id, hash, expires_at) VALUES ($1, $2, $3)";
            conn.execute(sql, args![user, hash, expires_at]).await.map(drop)
        })?;
        Ok(code)
    }

    /// Uses up a code; returns whether it was one of this user and still valid.
    pub async fn use_code(self, user: &str, code: &str) -> Result<bool> {
        let (user, hash) = (user.to_owned(), hash(code).as_slice().to_vec());
        let sql = "SELECT expires_at FROM sign_in_codes WHERE user_id = $1 AND hash = $2 AND expires_at > $3";
        // A guess must not cost a write.
        let known: Option<(i64,)> =
            self.store.fetch_optional(sql, args![&user, hash.as_slice(), now()]).await?;
        if known.is_none() {
            return Ok(false);
        }
        transaction!(self.store, |conn| {
            let sql = "DELETE FROM sign_in_codes WHERE user_id = $1 AND hash = $2 AND expires_at > $3";
            Ok(conn.execute(sql, args![user, hash, now()]).await? > 0)
        })
    }

    /// Begins the session of a browser until `expires_at`, or until the token that it signed in with expires.
    pub async fn begin(
        self,
        user: &str,
        signed_in_with: Option<&str>,
        expires_at: i64,
    ) -> Result<TokenSecret> {
        check_name("user", user)?;
        let secret = TokenSecret::random("embody_")?;
        let (user, token) = (user.to_owned(), signed_in_with.map(str::to_owned));
        let hash = hash(secret.expose()).as_slice().to_vec();
        transaction!(self.store, |conn| {
            users::ensure(conn, &user).await?;
            conn.execute(FORGET_SESSIONS, args![&user, now(), MAX_SESSIONS - 1]).await?;
            let sql = "SELECT expires_at FROM tokens WHERE user_id = $1 AND id = $2";
            let until: Option<(Option<i64>,)> =
                conn.fetch_optional(sql, args![&user, token.as_deref()]).await?;
            let until = until.and_then(|(until,)| until).unwrap_or(i64::MAX).min(expires_at);
            let sql = "INSERT INTO tokens \
                 (user_id, id, scope, label, hash, created_at, expires_at, signed_in_with) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
            let label = match &token {
                None => "signed in with a link".to_owned(),
                Some(token) => format!("signed in with {token}"),
            };
            let values = args![user, new_id(), TokenScope::Console.name(), label, hash, now(), until, token];
            conn.execute(sql, values).await.map(drop)
        })?;
        Ok(secret)
    }

    /// Ends the session of this secret, if there is one. Not a revocation: turns that it started continue.
    pub async fn end(self, secret: &str) -> Result<()> {
        let hash = hash(secret).as_slice().to_vec();
        transaction!(self.store, |conn| {
            conn.execute("DELETE FROM tokens WHERE hash = $1 AND scope = 'console'", args![hash])
                .await
                .map(drop)
        })
    }
}
