-- What arrives on channels and what leaves on them. A finished row has its time in `finished_at`; only the others are
-- looked through for work. `seq` orders those of one conversation, or to one recipient, that are not finished.

CREATE TABLE incoming (
  user_id {text} NOT NULL,
  id {text} NOT NULL,
  agent {text} NOT NULL,
  channel {text} NOT NULL,
  conversation {text} NOT NULL,
  external {text} NOT NULL,
  seq {int} NOT NULL,
  state {text} NOT NULL,
  reason {text},
  lease_owner {text},
  lease_until {int} NOT NULL DEFAULT 0,
  fence {int} NOT NULL DEFAULT 0,
  created_at {int} NOT NULL,
  started_at {int},
  finished_at {int},
  content {text} NOT NULL,
  PRIMARY KEY (user_id, id)
) {table};
-- Whoever it is taken for: the same one is taken once.
CREATE UNIQUE INDEX incoming_once ON incoming (channel, external);
CREATE INDEX incoming_open ON incoming (channel, conversation, seq) WHERE finished_at IS NULL;
CREATE INDEX incoming_open_by_user ON incoming (user_id) WHERE finished_at IS NULL;
CREATE INDEX incoming_working ON incoming (channel, lease_until) WHERE state = 'working';
CREATE INDEX incoming_unknown ON incoming (id) WHERE state = 'unknown';
CREATE INDEX incoming_finished ON incoming (finished_at) WHERE finished_at IS NOT NULL;

-- A part that was begun and is not sent may have been sent: it is never begun again.
CREATE TABLE outgoing (
  user_id {text} NOT NULL,
  id {text} NOT NULL,
  agent {text} NOT NULL,
  channel {text} NOT NULL,
  recipient {text} NOT NULL,
  kind {text} NOT NULL,
  urgency {text} NOT NULL,
  about {text},
  seq {int} NOT NULL,
  state {text} NOT NULL,
  parts_begun {int} NOT NULL DEFAULT 0,
  parts_sent {int} NOT NULL DEFAULT 0,
  attempts {int} NOT NULL DEFAULT 0,
  available_at {int} NOT NULL DEFAULT 0,
  reason {text},
  lease_owner {text},
  lease_until {int} NOT NULL DEFAULT 0,
  fence {int} NOT NULL DEFAULT 0,
  created_at {int} NOT NULL,
  finished_at {int},
  text {text} NOT NULL,
  PRIMARY KEY (user_id, id)
) {table};
CREATE INDEX outgoing_open ON outgoing (channel, recipient, seq) WHERE finished_at IS NULL;
CREATE INDEX outgoing_open_by_user ON outgoing (user_id) WHERE finished_at IS NULL;
CREATE INDEX outgoing_sending ON outgoing (channel, lease_until) WHERE state = 'sending';
CREATE INDEX outgoing_unknown ON outgoing (id) WHERE state = 'unknown';
CREATE INDEX outgoing_finished ON outgoing (finished_at) WHERE finished_at IS NOT NULL;

-- How far each channel has read at its source.
CREATE TABLE channel_cursors (
  name {text} PRIMARY KEY,
  value {int} NOT NULL
) {table};

-- Where each user last spoke to each agent.
CREATE TABLE heard (
  user_id {text} NOT NULL,
  agent {text} NOT NULL,
  channel {text} NOT NULL,
  conversation {text} NOT NULL,
  at {int} NOT NULL,
  PRIMARY KEY (user_id, agent)
) {clustered};
