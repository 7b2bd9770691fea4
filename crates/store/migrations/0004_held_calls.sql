-- Calls of our own agents that wait for an approval when their turn has ended.

CREATE TABLE held_calls (
  user_id {text} NOT NULL,
  approval {text} NOT NULL,
  agent {text} NOT NULL,
  thread {text} NOT NULL,
  tool {text} NOT NULL,
  arguments {text} NOT NULL,
  content {text} NOT NULL,
  created_at {int} NOT NULL,
  PRIMARY KEY (user_id, approval)
) {table};
CREATE INDEX held_calls_by_thread ON held_calls (user_id, thread);
