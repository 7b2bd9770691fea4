-- What one process does for all: whoever holds the lease.

CREATE TABLE posts (
  name {text} PRIMARY KEY,
  lease_owner {text},
  lease_until {int} NOT NULL DEFAULT 0,
  fence {int} NOT NULL DEFAULT 0
) {table};
