-- Requests of embody's own agents to their models. Counts are NULL where the provider reported none; `input_tokens` include
-- those read from and written to its cache.

CREATE TABLE model_requests (
  user_id {text} NOT NULL,
  id {text} NOT NULL,
  agent {text} NOT NULL,
  channel {text} NOT NULL,
  schedule_id {text},
  model {text} NOT NULL,
  input_tokens {int},
  output_tokens {int},
  cache_read_tokens {int},
  cache_write_tokens {int},
  created_at {int} NOT NULL,
  PRIMARY KEY (user_id, id)
) {clustered};

CREATE INDEX model_requests_by_time ON model_requests (created_at);

-- Notices about a budget that were sent: each is sent once a day, whichever process finds the reason.
CREATE TABLE budget_notices (
  day {text} NOT NULL,
  budget {text} NOT NULL,
  percent {int} NOT NULL,
  created_at {int} NOT NULL,
  PRIMARY KEY (day, budget, percent)
) {clustered};
