-- What a writer has read that the owner did not write: the latest origins, such as `mail/read_inbox`.

CREATE TABLE untrusted_read_origins (
  user_id {text} NOT NULL,
  agent {text} NOT NULL,
  writer {text} NOT NULL,
  origin {text} NOT NULL,
  at {int} NOT NULL,
  PRIMARY KEY (user_id, agent, writer, origin)
) {clustered};

-- The same of the agent that created a schedule, as it was then: JSON, the latest first. Of older schedules it is not known.

ALTER TABLE schedules ADD COLUMN origins {text} NOT NULL DEFAULT '[]';

-- Tasks have a trust as memories do. Of older tasks of a user with an agent that ever had read such text, neither the order nor
-- which agent changed them last is known.

ALTER TABLE tasks ADD COLUMN trust {text} NOT NULL DEFAULT 'agent';
UPDATE tasks SET trust = 'exposed' WHERE EXISTS (SELECT 1 FROM mind_exposures known
  WHERE known.user_id = tasks.user_id);
