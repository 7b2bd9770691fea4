-- The keys by which processes on one database know what any of them has sealed for a host to bring back.

CREATE TABLE seal_keys (
  id {text} NOT NULL PRIMARY KEY,
  secret {text} NOT NULL,
  created_at {int} NOT NULL
) {table};
