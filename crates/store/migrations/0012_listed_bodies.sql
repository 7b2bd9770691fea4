-- Bodies that have listed their tools at least once, also those that listed none: a tool that appears later is new.

CREATE TABLE listed_bodies (
  body {text} NOT NULL PRIMARY KEY,
  first_listed_at {int} NOT NULL
) {clustered};

INSERT INTO listed_bodies (body, first_listed_at)
  SELECT body, min(first_seen_at) FROM tool_pins WHERE tool <> 'server:instructions' GROUP BY body;
