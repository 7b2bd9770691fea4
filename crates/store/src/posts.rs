//! Posts: what one process does for all that share the store, such as reading a channel. Whoever holds the post does it.

use std::time::Duration;

use crate::db::args;
use crate::error::Result;
use crate::leases::{Fenced, Lease, check_duration, clock, later};
use crate::store::{Store, check_name};

/// A post that is ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// Its name.
    pub name: String,
    /// Proves that it is ours.
    pub fence: i64,
}

impl Store {
    /// Takes a post that nobody holds; `None`: somebody does.
    pub async fn take_post(&self, name: &str, lease: &Lease) -> Result<Option<Post>> {
        check_name("post", name)?;
        lease.check()?;
        let (name, lease) = (name.to_owned(), lease.clone());
        self.db()
            .write(move |conn| {
                Box::pin(async move {
                    let now = clock(conn).await?;
                    let taken: Option<(i64,)> = conn
                        .maybe(
                            "INSERT INTO posts AS this (name, lease_owner, lease_until, fence) VALUES ($1, $2, $3, 1) \
                             ON CONFLICT (name) DO UPDATE SET lease_owner = excluded.lease_owner, \
                             lease_until = excluded.lease_until, fence = this.fence + 1 WHERE this.lease_until <= $4 \
                             RETURNING fence",
                            args![&name, &lease.owner, lease.until(now), now],
                        )
                        .await?;
                    Ok(taken.map(|(fence,)| Post { name, fence }))
                })
            })
            .await
    }

    /// Keeps a post for so long from now.
    pub async fn keep_post(&self, post: &Post, duration: Duration) -> Result<Fenced> {
        check_duration(duration)?;
        let post = post.clone();
        self.db()
            .write(move |conn| {
                Box::pin(async move {
                    let now = clock(conn).await?;
                    let kept = conn
                        .run(
                            "UPDATE posts SET lease_until = $3 WHERE name = $1 AND fence = $2 AND lease_until > $4",
                            args![post.name, post.fence, later(now, duration), now],
                        )
                        .await?;
                    Ok(Fenced::by(kept))
                })
            })
            .await
    }

    /// Leaves a post: the next one can take it at once.
    pub async fn leave_post(&self, post: &Post) -> Result<Fenced> {
        let post = post.clone();
        self.db()
            .write(move |conn| {
                Box::pin(async move {
                    let left = conn
                        .run(
                            "UPDATE posts SET lease_owner = NULL, lease_until = 0 WHERE name = $1 AND fence = $2",
                            args![post.name, post.fence],
                        )
                        .await?;
                    Ok(Fenced::by(left))
                })
            })
            .await
    }
}
