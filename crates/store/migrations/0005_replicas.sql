-- What processes on one database need to serve the same hosts: the keys by which they know what any of them has sealed for
-- a host to bring back, what a host said when its session began, calls that wait for their host, and word from one to another.

CREATE TABLE seal_keys (
  id {text} NOT NULL PRIMARY KEY,
  secret {text} NOT NULL,
  created_at {int} NOT NULL
) {table};

ALTER TABLE broker_sessions ADD COLUMN hello {text};

CREATE TABLE parked_calls (
  user_id {text} NOT NULL,
  ticket {text} NOT NULL,
  holder {text} NOT NULL,
  state {text} NOT NULL,
  anew {text},
  expires_at {int} NOT NULL,
  PRIMARY KEY (user_id, ticket)
) {table};
CREATE INDEX parked_calls_by_expiry ON parked_calls (expires_at);

CREATE TABLE letters (
  id {text} NOT NULL PRIMARY KEY,
  sender {text} NOT NULL,
  recipient {text} NOT NULL,
  content {text} NOT NULL,
  created_at {int} NOT NULL
) {table};
CREATE INDEX letters_by_time ON letters (created_at);
