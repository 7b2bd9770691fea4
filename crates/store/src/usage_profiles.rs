//! Usage profiles of an agent: small encoded states by subject, read and changed together. The mind defines their
//! format; the store checks only their sizes.

use std::collections::BTreeMap;

use crate::areas::UsageProfiles;
use crate::db::{Conn, Sql, args, from_row, listed, transaction};
use crate::error::{Error, Result};
use crate::store::{Scope, check_name};

const DATA_LIMIT: usize = 64 * 1024;
const SUBJECTS_LIMIT: usize = 64;
/// The subject whose row is locked while others of the scope are changed.
const LOCK: &str = "\u{1}lock";

pub(crate) const READ: Sql = listed!(
    "SELECT subject, data FROM mind_habits WHERE user_id = $1 AND agent = $2 AND subject",
    "$3",
    " ORDER BY subject"
);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageProfile {
    pub subject: String,
    /// In the mind's own format.
    pub data: Vec<u8>,
}

from_row! { UsageProfile { subject, data } }

impl UsageProfiles<'_> {
    /// By subject, without those that were never written.
    pub async fn list(self, scope: &Scope, subjects: &[String]) -> Result<Vec<UsageProfile>> {
        check_subjects(subjects.iter())?;
        read(&mut self.store.reader().await?, scope, subjects.to_vec()).await
    }

    /// Reads the states of these subjects and writes the result of `change`, in one transaction: of two callers the
    /// second sees what the first wrote. An empty state is removed.
    pub async fn update<F>(self, scope: &Scope, subjects: Vec<String>, at: i64, change: F) -> Result<()>
    where
        F: FnOnce(BTreeMap<String, Vec<u8>>) -> Vec<UsageProfile> + Send + 'static,
    {
        check_subjects(subjects.iter())?;
        let scope = scope.clone();
        transaction!(self.store, |conn| {
            lock(conn, &scope, at).await?;
            let before = read(conn, &scope, subjects).await?;
            let after = change(before.into_iter().map(|habit| (habit.subject, habit.data)).collect());
            write(conn, &scope, after, at).await
        })
    }
}

fn check_subjects<'a>(subjects: impl ExactSizeIterator<Item = &'a String>) -> Result<()> {
    if subjects.len() > SUBJECTS_LIMIT {
        let count = subjects.len();
        return Err(Error::invalid(format!("{count} usage profiles at once; {SUBJECTS_LIMIT} are allowed")));
    }
    subjects.into_iter().try_for_each(|subject| check_name("subject of the usage profile", subject))
}

/// Creates and locks a row of the scope, whether the other rows exist or not.
async fn lock(conn: &mut Conn, scope: &Scope, at: i64) -> Result<()> {
    let sql = "INSERT INTO mind_habits AS this (user_id, agent, subject, data, changed_at) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (user_id, agent, subject) DO UPDATE SET changed_at = this.changed_at";
    conn.execute(sql, args![scope.user(), scope.agent(), LOCK, Vec::<u8>::new(), at]).await.map(drop)
}

async fn read(conn: &mut Conn, scope: &Scope, subjects: Vec<String>) -> Result<Vec<UsageProfile>> {
    conn.fetch_all(READ, args![scope.user(), scope.agent(), subjects]).await
}

async fn write(conn: &mut Conn, scope: &Scope, habits: Vec<UsageProfile>, at: i64) -> Result<()> {
    check_subjects(habits.iter().map(|habit| &habit.subject))?;
    for UsageProfile { subject, data } in habits {
        if data.len() > DATA_LIMIT {
            return Err(Error::invalid(format!(
                "the usage profile `{subject}` has {} bytes; {DATA_LIMIT} are allowed",
                data.len()
            )));
        }
        let (sql, values) = if data.is_empty() {
            (
                "DELETE FROM mind_habits WHERE user_id = $1 AND agent = $2 AND subject = $3",
                args![scope.user(), scope.agent(), subject],
            )
        } else {
            (
                "INSERT INTO mind_habits (user_id, agent, subject, data, changed_at) VALUES ($1, $2, $3, $4, $5) \
                 ON CONFLICT (user_id, agent, subject) DO UPDATE SET data = excluded.data, changed_at = excluded.changed_at",
                args![scope.user(), scope.agent(), subject, data, at],
            )
        };
        conn.execute(sql, values).await?;
    }
    Ok(())
}
