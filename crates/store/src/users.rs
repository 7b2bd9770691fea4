//! Users: who is known by name. A name that nobody has set up is legal; a row says more about it, or locks it out.

use crate::audit::Action;
use crate::db::{Conn, args};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{Store, check_name, now};

/// A user that was set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name that everything of theirs is kept under.
    pub id: String,
    /// How people call them.
    pub name: Option<String>,
    /// When they were set up, in microseconds since 1970.
    pub created_at: i64,
    /// When they were locked out.
    pub disabled_at: Option<i64>,
}

const LOCK_OUT: &str = "UPDATE users SET disabled_at = $2 WHERE id = $1 AND disabled_at IS NULL";
const LET_IN: &str = "UPDATE users SET disabled_at = NULL WHERE id = $1 AND disabled_at IS NOT NULL";

const KNOWN: &str = "SELECT id FROM users UNION SELECT user_id FROM broker_sessions \
     UNION SELECT user_id FROM threads UNION SELECT user_id FROM schedules ORDER BY 1";

impl Store {
    /// Sets a user up, or changes how they are called. For operators.
    pub async fn put_user(&self, id: &str, name: Option<&str>) -> Result<()> {
        check_name("user", id)?;
        name.map_or(Ok(()), |name| check_name("user", name))?;
        let (id, name) = (id.to_owned(), name.map(str::to_owned));
        self.db()
            .chained()
            .write(move |unit| {
                Box::pin(async move {
                    unit.operation(&id, Action::UserSet, &id, None)?;
                    ensure(&mut unit.conn, &id).await?;
                    unit.conn.run("UPDATE users SET name = $2 WHERE id = $1", args![id, name]).await.map(drop)
                })
            })
            .await
    }

    /// Locks a user out, or lets them in again: none of their tokens counts while they are out. Doing it twice changes
    /// nothing. For operators.
    pub async fn disable_user(&self, id: &str, disabled: bool) -> Result<()> {
        let id = id.to_owned();
        self.db()
            .chained()
            .write(move |unit| {
                Box::pin(async move {
                    let changed = match disabled {
                        true => unit.conn.run(LOCK_OUT, args![&id, now()]).await?,
                        false => unit.conn.run(LET_IN, args![&id]).await?,
                    };
                    if changed > 0 {
                        let action = if disabled { Action::UserLockedOut } else { Action::UserLetIn };
                        return unit.operation(&id, action, &id, None);
                    }
                    let known: Option<(String,)> =
                        unit.conn.maybe("SELECT id FROM users WHERE id = $1", args![&id]).await?;
                    known
                        .map(drop)
                        .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no user `{id}`")))
                })
            })
            .await
    }

    /// Every user that was set up, by name. For operators.
    pub async fn users(&self) -> Result<Vec<User>> {
        let rows: Vec<(String, Option<String>, i64, Option<i64>)> = self
            .db()
            .reader()
            .await?
            .all("SELECT id, name, created_at, disabled_at FROM users ORDER BY id", Vec::new())
            .await?;
        let user = |(id, name, created_at, disabled_at)| User { id, name, created_at, disabled_at };
        Ok(rows.into_iter().map(user).collect())
    }

    /// Every name that has a token, a session, a thread or a schedule, or was set up. For operators.
    pub async fn known_users(&self) -> Result<Vec<String>> {
        let rows: Vec<(String,)> = self.db().reader().await?.all(KNOWN, Vec::new()).await?;
        Ok(rows.into_iter().map(|(id,)| id).collect())
    }
}

/// Makes the user's row if it is not there.
pub(crate) async fn ensure(conn: &mut Conn, id: &str) -> Result<()> {
    conn.run(
        "INSERT INTO users (id, created_at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING",
        args![id, now()],
    )
    .await
    .map(drop)
}
