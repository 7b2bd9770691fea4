//! Users. A user needs no row; a row has a display name, or disables the user. A new name has no hidden characters
//! and cannot be confused with a known one; a known name stays valid.

use embody_text::look_alike::skeleton;
use embody_text::visible::{is_hidden, push_code};
use icu_normalizer::ComposingNormalizerBorrowed;

use crate::areas::Users;
use crate::audit::Action;
use crate::db::{Conn, args, audited, from_row};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{check_name, now};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Key of all their data.
    pub id: String,
    /// Display name.
    pub name: Option<String>,
    pub created_at: i64,
    pub disabled_at: Option<i64>,
}

from_row! { User { id, name, created_at, disabled_at } }

const LOCK_OUT: &str = "UPDATE users SET disabled_at = $2 WHERE id = $1 AND disabled_at IS NULL";
const LET_IN: &str = "UPDATE users SET disabled_at = NULL WHERE id = $1 AND disabled_at IS NOT NULL";

const KNOWN: &str = "SELECT id FROM users UNION SELECT user_id FROM broker_sessions \
     UNION SELECT user_id FROM threads UNION SELECT user_id FROM schedules UNION SELECT user_id FROM memory_scopes \
     UNION SELECT user_id FROM user_agent_prompt_customizations UNION SELECT user_id FROM tasks ORDER BY 1";
const IS_KNOWN: &str = "SELECT id FROM users WHERE id = $1 \
     UNION SELECT user_id FROM broker_sessions WHERE user_id = $1 \
     UNION SELECT user_id FROM threads WHERE user_id = $1 UNION SELECT user_id FROM schedules WHERE user_id = $1 \
     UNION SELECT user_id FROM memory_scopes WHERE user_id = $1 \
     UNION SELECT user_id FROM user_agent_prompt_customizations WHERE user_id = $1 \
     UNION SELECT user_id FROM tasks WHERE user_id = $1";

impl Users<'_> {
    /// Disables or enables a user; the tokens of a disabled user are invalid. Doing it twice changes nothing. For
    /// operators.
    pub async fn set_disabled(self, id: &str, disabled: bool) -> Result<()> {
        let id = id.to_owned();
        audited!(self.store, |tx| {
            let changed = match disabled {
                true => tx.conn.execute(LOCK_OUT, args![&id, now()]).await?,
                false => tx.conn.execute(LET_IN, args![&id]).await?,
            };
            if changed > 0 {
                let action = if disabled { Action::UserLockedOut } else { Action::UserLetIn };
                return tx.operation(&id, action, &id, None);
            }
            let known: Option<(String,)> =
                tx.conn.fetch_optional("SELECT id FROM users WHERE id = $1", args![&id]).await?;
            known.map(drop).ok_or_else(|| Error::new(ErrorKind::NotFound, format!("unknown user `{id}`")))
        })
    }

    /// All users with a row, by name. For operators.
    pub async fn list(self) -> Result<Vec<User>> {
        let sql = "SELECT id, name, created_at, disabled_at FROM users ORDER BY id";
        self.store.fetch_all(sql, Vec::new()).await
    }

    pub async fn is_known(self, id: &str) -> Result<bool> {
        is_known(&mut self.store.reader().await?, id).await
    }

    /// Every name with a row, a session, a thread, a schedule, memories, instructions or tasks. For operators.
    pub async fn list_known(self) -> Result<Vec<String>> {
        let rows: Vec<(String,)> = self.store.fetch_all(KNOWN, Vec::new()).await?;
        Ok(rows.into_iter().map(|(id,)| id).collect())
    }
}

/// Rejects a new name with hidden characters, or that could be confused with a known one.
pub(crate) async fn check_new(conn: &mut Conn, id: &str) -> Result<()> {
    if is_known(conn, id).await? {
        return check_name("user", id);
    }
    let known: Vec<(String,)> = conn.fetch_all(KNOWN, Vec::new()).await?;
    let known: Vec<String> = known.into_iter().map(|(known,)| known).collect();
    check_user_name(id, &known)
}

async fn is_known(conn: &mut Conn, id: &str) -> Result<bool> {
    let row: Option<(String,)> = conn.fetch_optional(IS_KNOWN, args![id]).await?;
    Ok(row.is_some())
}

/// Rejects a name that is not known and has hidden characters, or that could be confused with a known one.
///
pub fn check_user_name(id: &str, known: &[String]) -> Result<()> {
    check_name("user", id)?;
    if known.iter().any(|known| known == id) {
        return Ok(());
    }
    if id.trim() != id {
        let message = format!("the name of the user `{}` starts or ends with a space", coded(id));
        return Err(Error::invalid(message).hint("leave the space out"));
    }
    if id.contains(is_hidden) {
        let message = format!("the name of the user `{}` has an invisible character", coded(id));
        return Err(Error::invalid(message).hint("remove it: the name could be mistaken for another"));
    }
    match known.iter().find(|known| pass_for_each_other(known, id)) {
        Some(known) => {
            let message =
                format!("the name of the user `{}` looks like that of `{}`", coded(id), coded(known));
            let hint = "use the known name, or a name that cannot be mistaken for it; `embody user list` lists the names";
            Err(Error::invalid(message).hint(hint))
        }
        None => Ok(()),
    }
}

/// Whether two different names look the same. Names that differ only in case do not.
fn pass_for_each_other(one: &str, other: &str) -> bool {
    let skeleton = |name: &str| skeleton(&ComposingNormalizerBorrowed::new_nfkc().normalize(name));
    one.to_lowercase() != other.to_lowercase() && skeleton(one) == skeleton(other)
}

/// The name with every character that is not plain ASCII as its code.
fn coded(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_ascii_graphic() || c == ' ' { out.push(c) } else { push_code(c, &mut out) }
    }
    out
}

pub(crate) async fn ensure(conn: &mut Conn, id: &str) -> Result<()> {
    let sql = "INSERT INTO users (id, created_at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING";
    conn.execute(sql, args![id, now()]).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_name_hides_nothing_and_passes_for_no_other() {
        let known =
            ["ann".to_owned(), "\u{43e}wner".to_owned(), "bob\u{200b}".to_owned(), "ren\u{e9}".to_owned()];
        for name in [
            "ann",
            "Ann",
            "telegram:123",
            "Анна",
            "Jörg",
            "東京",
            "anna",
            "\u{43e}wner",
            "bob\u{200b}",
            "a b",
        ] {
            assert!(check_user_name(name, &known).is_ok(), "{name}");
        }
        for (name, words) in [
            ("\u{430}nn", "`⟨U+0430⟩nn` looks like that of `ann`"),
            ("\u{410}NN", "looks like that of `ann`"),
            ("\u{ff41}nn", "looks like that of `ann`"),
            ("owner", "looks like that of `⟨U+043E⟩wner`"),
            ("rene\u{301}", "looks like that of `ren⟨U+00E9⟩`"),
            ("bob\u{200d}", "`bob⟨U+200D⟩` has an invisible character"),
            ("\u{202e}bob", "has an invisible character"),
            ("b\u{a0}b", "has an invisible character"),
            ("bob\u{7}", "has control characters"),
            (" carl", "starts or ends with a space"),
            ("carl\u{3000}", "starts or ends with a space"),
            ("", "has no name"),
        ] {
            let refused = check_user_name(name, &known).unwrap_err().to_string();
            assert!(refused.contains(words), "{refused}");
        }
    }
}
