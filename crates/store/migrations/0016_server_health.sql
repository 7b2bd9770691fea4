-- What the last contact with each server was: by a session of any process, or by `embody server test`. The last error stays
-- after a recovery, with its time.

CREATE TABLE server_health (
  body {text} NOT NULL PRIMARY KEY,
  is_ok {int} NOT NULL,
  checked_at {int} NOT NULL,
  error {text},
  error_at {int}
) {clustered};
