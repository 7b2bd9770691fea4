-- What agents tell their users outside of a conversation: entries of their own, with a date and an unread mark.

CREATE TABLE notices (
  user_id {text} NOT NULL,
  id {text} NOT NULL,
  agent {text} NOT NULL,
  text {text} NOT NULL,
  urgency {text} NOT NULL,
  channel {text} NOT NULL,
  thread_id {text},
  schedule_id {text},
  created_at {int} NOT NULL,
  read_at {int},
  PRIMARY KEY (user_id, id)
) {clustered};

-- Notices that waited to become a message of a conversation on the web.
INSERT INTO notices (user_id, id, agent, text, urgency, channel, created_at)
  SELECT user_id, id, agent, text, urgency, '', created_at FROM outgoing
  WHERE channel = 'web' AND kind = 'notice' AND finished_at IS NULL;
DELETE FROM outgoing WHERE channel = 'web' AND finished_at IS NULL;
