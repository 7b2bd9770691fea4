//! Tokens that authenticate a user over HTTP. Only their hash is stored; the secret is shown once.

use std::collections::HashSet;
use std::fmt;

use crate::areas::Tokens;
use crate::audit::Action;
use crate::db::{Sql, args, audited, flag, from_row, names, transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{check_name, hex, new_id, now, random_bytes};
use crate::users;

/// `last_used_at` is written at most this often: reading must not mean writing.
const USE_STEP_US: i64 = 60_000_000;

/// Tokens of one statement.
const LOOKED_UP: usize = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenScope {
    Mcp,
    Chat,
    /// See and decide approvals, read the audit and the configuration.
    Operate,
    /// Both of them.
    Owner,
    /// The session of a browser, see [`crate::sign_in`].
    Console,
}

impl TokenScope {
    /// Those that an operator can give to a token.
    pub const ALL: [Self; 4] = [Self::Mcp, Self::Chat, Self::Operate, Self::Owner];
}

names! {
    pub TokenScope { Mcp = "mcp", Chat = "chat", Operate = "operate", Owner = "owner", Console = "console" }
}

#[derive(Clone, Debug)]
pub struct NewToken {
    pub user: String,
    pub scope: TokenScope,
    pub label: String,
    pub expires_at: Option<i64>,
    /// Whether a form that its host answers counts as the owner's answer.
    pub may_approve: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Not secret.
    pub id: String,
    pub user: String,
    pub scope: TokenScope,
    pub label: String,
    pub created_at: i64,
    pub expires_at: Option<i64>,
    /// To the minute.
    pub last_used_at: Option<i64>,
    pub revoked_at: Option<i64>,
    /// Whether a form that its host answers counts as the owner's answer.
    pub may_approve: bool,
}

/// Its `Debug` does not print it.
#[derive(Clone)]
pub struct TokenSecret(String);

impl TokenSecret {
    pub(crate) fn random(prefix: &str) -> Result<Self> {
        Ok(Self(format!("{prefix}{}", hex(&random_bytes()?))))
    }

    /// To be shown once to the person who asked for it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSecret(…)")
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidToken {
    pub user: String,
    pub scope: TokenScope,
    /// Token id.
    pub token: String,
    /// Whether a form that their host answers counts as the owner's answer.
    pub may_approve: bool,
    /// The scope of the token that a browser signed in with.
    pub signed_in_with: Option<TokenScope>,
}

from_row! {
    Token {
        id, user, scope: read_scope, label, created_at, expires_at, last_used_at, revoked_at, may_approve: flag,
    }
}

const LIST: &str = "SELECT id, user_id, scope, label, created_at, expires_at, last_used_at, revoked_at, may_approve \
     FROM tokens ORDER BY user_id, id";

/// A valid token: its user, id, scope, last use, whether it may approve, and the scope of the token it signed in with.
type Valid = (String, String, String, Option<i64>, i64, Option<String>);

/// The rest of a condition: the token is valid at this time.
macro_rules! valid_at {
    ($moment:literal) => {
        concat!(
            " AND tokens.revoked_at IS NULL AND users.disabled_at IS NULL \
             AND (tokens.signed_in_with IS NULL OR EXISTS (SELECT 1 FROM tokens AS parents \
             WHERE parents.user_id = tokens.user_id AND parents.id = tokens.signed_in_with \
             AND parents.revoked_at IS NULL)) AND (tokens.expires_at IS NULL OR tokens.expires_at > ",
            $moment,
            ")"
        )
    };
}

const VALID: &str = concat!(
    "SELECT tokens.user_id, tokens.id, tokens.scope, tokens.last_used_at, tokens.may_approve, \
     (SELECT parents.scope FROM tokens AS parents WHERE parents.user_id = tokens.user_id \
     AND parents.id = tokens.signed_in_with) FROM tokens JOIN users ON users.id = tokens.user_id WHERE tokens.hash = $1",
    valid_at!("$2")
);

/// The hashes among these, in hexadecimal, of tokens that are valid at this time.
const VALID_HASHES: Sql = Sql {
    sqlite: concat!(
        "SELECT tokens.hash FROM tokens JOIN users ON users.id = tokens.user_id \
         WHERE tokens.hash IN (SELECT unhex(value) FROM json_each($1))",
        valid_at!("$2")
    ),
    pg: concat!(
        "SELECT tokens.hash FROM tokens JOIN users ON users.id = tokens.user_id \
         WHERE tokens.hash IN (SELECT decode(value, 'hex') FROM unnest($1::text[]) AS wanted (value))",
        valid_at!("$2")
    ),
};

const VALID_ID: &str = concat!(
    "SELECT tokens.id FROM tokens JOIN users ON users.id = tokens.user_id \
     WHERE tokens.user_id = $1 AND tokens.id = $2",
    valid_at!("$3")
);

/// Of a stored token: 1 if it is valid, else 0.
const VALIDITY: &str = concat!(
    "SELECT CAST(CASE WHEN tokens.user_id = users.id",
    valid_at!("$3"),
    " THEN 1 ELSE 0 END AS bigint) FROM tokens JOIN users ON users.id = tokens.user_id \
     WHERE tokens.user_id = $1 AND tokens.id = $2"
);

impl Tokens<'_> {
    /// Creates a token. For operators.
    pub async fn add(self, new: NewToken) -> Result<(Token, TokenSecret)> {
        check_name("user", &new.user)?;
        if !new.label.is_empty() {
            check_name("label", &new.label)?;
        }
        let secret = TokenSecret::random("embody_")?;
        let token = Token {
            id: new_id(),
            user: new.user,
            scope: new.scope,
            label: new.label,
            created_at: now(),
            expires_at: new.expires_at,
            last_used_at: None,
            revoked_at: None,
            may_approve: new.may_approve,
        };
        let (row, hash) = (token.clone(), hash(&secret.0).as_slice().to_vec());
        audited!(self.store, |tx| {
            users::check_new(&mut tx.conn, &row.user).await?;
            tx.operation(&row.user, Action::TokenMade, &row.id, Some(row.scope.name()))?;
            users::ensure(&mut tx.conn, &row.user).await?;
            let sql = "INSERT INTO tokens \
                 (user_id, id, scope, label, hash, created_at, expires_at, may_approve) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
            let values = args![
                row.user,
                row.id,
                row.scope.name(),
                row.label,
                hash,
                row.created_at,
                row.expires_at,
                i64::from(row.may_approve)
            ];
            tx.conn.execute(sql, values).await.map(drop)
        })?;
        Ok((token, secret))
    }

    /// All tokens and sessions of browsers, by user and age. For operators.
    pub async fn list(self) -> Result<Vec<Token>> {
        self.store.fetch_all(LIST, Vec::new()).await
    }

    /// Revoking twice changes nothing. For operators.
    pub async fn revoke(self, id: &str) -> Result<()> {
        let id = id.to_owned();
        audited!(self.store, |tx| {
            let sql =
                "UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL RETURNING user_id";
            let owner: Option<(String,)> = tx.conn.fetch_optional(sql, args![&id, now()]).await?;
            if let Some((owner,)) = owner {
                // The sessions that began with it are invalid already; this shows it.
                let sql = "UPDATE tokens SET revoked_at = $3 \
                     WHERE user_id = $1 AND signed_in_with = $2 AND revoked_at IS NULL";
                tx.conn.execute(sql, args![&owner, &id, now()]).await?;
                return tx.operation(&owner, Action::TokenRevoked, &id, None);
            }
            let known: Option<(String,)> =
                tx.conn.fetch_optional("SELECT id FROM tokens WHERE id = $1", args![&id]).await?;
            known.map(drop).ok_or_else(|| {
                Error::new(ErrorKind::NotFound, format!("unknown token `{id}`"))
                    .hint("`embody token list` shows the ids")
            })
        })
    }

    /// The user and the rights of a secret; `None` if it is unknown, revoked, expired, or its user is disabled.
    pub async fn authenticate(self, secret: &str) -> Result<Option<ValidToken>> {
        let at = now();
        let Some((user, token, scope, last_used_at, may_approve, signed_in_with)) =
            self.valid_token(secret, at).await?
        else {
            return Ok(None);
        };
        let (scope, signed_in_with) = (read_scope(scope)?, signed_in_with.map(read_scope).transpose()?);
        let valid = ValidToken { scope, user, token, may_approve: may_approve != 0, signed_in_with };
        if last_used_at.is_none_or(|last| at - last > USE_STEP_US) {
            let (user, token) = (valid.user.clone(), valid.token.clone());
            let stamped = transaction!(self.store, |conn| {
                let sql = "UPDATE tokens SET last_used_at = $3 WHERE user_id = $1 AND id = $2";
                conn.execute(sql, args![user, token, at]).await.map(drop)
            });
            // A valid token is accepted even if its use cannot be recorded.
            if let Err(error) = stamped {
                tracing::warn!(reason = %error, "the last use of a token could not be stored");
            }
        }
        Ok(Some(valid))
    }

    /// Whether a secret is still valid. Unlike [`Tokens::authenticate`] this does not count as a use. While the store
    /// does not answer, a valid token stays valid.
    pub async fn is_valid(self, secret: &str) -> bool {
        self.are_valid(&[secret]).await.first().is_none_or(|is_valid| *is_valid)
    }

    /// The same for many, in their order, with few statements.
    pub async fn are_valid(self, secrets: &[&str]) -> Vec<bool> {
        let mut are_valid = Vec::with_capacity(secrets.len());
        for secrets in secrets.chunks(LOOKED_UP) {
            let hashes: Vec<blake3::Hash> = secrets.iter().map(|secret| hash(secret)).collect();
            match self.valid_hashes(&hashes).await {
                Ok(valid) => are_valid.extend(hashes.iter().map(|hash| valid.contains(hash.as_slice()))),
                Err(error) => {
                    tracing::warn!(reason = %error, "cannot look up whether tokens were revoked");
                    are_valid.extend(hashes.iter().map(|_| true));
                }
            }
        }
        are_valid
    }

    async fn valid_hashes(self, hashes: &[blake3::Hash]) -> Result<HashSet<Vec<u8>>> {
        let written: Vec<String> = hashes.iter().map(|hash| hash.to_hex().to_string()).collect();
        let found: Vec<(Vec<u8>,)> = self.store.fetch_all(VALID_HASHES, args![written, now()]).await?;
        Ok(found.into_iter().map(|(hash,)| hash).collect())
    }

    /// Whether the token of this id is still valid for this user. This does not count as a use.
    pub async fn is_valid_id(self, user: &str, id: &str) -> Result<bool> {
        let found: Option<(String,)> = self.store.fetch_optional(VALID_ID, args![user, id, now()]).await?;
        Ok(found.is_some())
    }

    /// Whether the token of this id is still valid; `None` if there is no such token, as after a browser has signed out.
    pub async fn validity(self, user: &str, id: &str) -> Result<Option<bool>> {
        // One statement: a sign-out between two would look like a revocation.
        let found: Option<(i64,)> = self.store.fetch_optional(VALIDITY, args![user, id, now()]).await?;
        Ok(found.map(|(is_valid,)| is_valid != 0))
    }

    async fn valid_token(self, secret: &str, at: i64) -> Result<Option<Valid>> {
        self.store.fetch_optional(VALID, args![hash(secret).as_slice(), at]).await
    }
}

/// The secrets are random and long, so a plain hash cannot be reversed.
pub(crate) fn hash(secret: &str) -> blake3::Hash {
    blake3::hash(secret.as_bytes())
}

fn read_scope(name: String) -> Result<TokenScope> {
    TokenScope::from_name(&name)
        .ok_or_else(|| Error::new(ErrorKind::Schema, format!("a token has the unknown scope `{name}`")))
}
