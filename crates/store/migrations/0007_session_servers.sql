-- Servers that are known to open with `initialize`: they are not probed for the stateless era until this is old. `digest`
-- stands for the command or address, so that another server under the same name is probed.

CREATE TABLE session_servers (
  body {text} NOT NULL,
  digest {text} NOT NULL,
  seen_at {int} NOT NULL,
  PRIMARY KEY (body, digest)
) {clustered};
