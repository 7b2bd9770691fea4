-- Times are microseconds since 1970 in UTC. Ids are texts that sort by age. Tables that grow are keyed by the user first.

-- One row: which database this is. The files of its audit chain are named after it.
CREATE TABLE embody_database (
  row {int} PRIMARY KEY,
  id {text} NOT NULL
) {table};

CREATE TABLE users (
  id {text} PRIMARY KEY,
  name {text},
  created_at {int} NOT NULL,
  disabled_at {int}
) {table};

CREATE TABLE tokens (
  user_id {text} NOT NULL,
  id {text} NOT NULL,
  scope {text} NOT NULL,
  label {text} NOT NULL,
  hash {bytes} NOT NULL,
  created_at {int} NOT NULL,
  expires_at {int},
  last_used_at {int},
  revoked_at {int},
  PRIMARY KEY (user_id, id)
) {table};
CREATE UNIQUE INDEX tokens_by_hash ON tokens (hash);

-- These two may be here already, upgraded from the old shape.
CREATE TABLE IF NOT EXISTS agent_configurations (
  agent_name {text} PRIMARY KEY,
  soul {text},
  identity {json},
  version {int} NOT NULL DEFAULT 1,
  changed_at {int} NOT NULL DEFAULT 0
) {table};

CREATE TABLE IF NOT EXISTS user_agent_prompt_customizations (
  user_id {text} NOT NULL,
  agent_name {text} NOT NULL,
  instructions {text} NOT NULL,
  version {int} NOT NULL DEFAULT 1,
  changed_at {int} NOT NULL DEFAULT 0,
  UNIQUE (user_id, agent_name)
) {table};

CREATE TABLE IF NOT EXISTS instruction_history (
  user_id {text} NOT NULL,
  agent_name {text} NOT NULL,
  version {int} NOT NULL,
  instructions {text} NOT NULL,
  writer {text} NOT NULL,
  changed_at {int} NOT NULL,
  PRIMARY KEY (user_id, agent_name, version)
) {table};

-- What the ranking needs to know of a scope, and the numbers given out so far. Its row is the lock of the scope's writers.
CREATE TABLE memory_scopes (
  user_id {text} NOT NULL,
  agent {text} NOT NULL,
  memories {int} NOT NULL,
  chunks {int} NOT NULL,
  terms {int} NOT NULL,
  last_seq {int} NOT NULL,
  last_session {int} NOT NULL,
  actors {int} NOT NULL,
  PRIMARY KEY (user_id, agent)
) {clustered};

CREATE TABLE memory_sessions (
  user_id {text} NOT NULL,
  agent {text} NOT NULL,
  session {text} NOT NULL,
  ordinal {int} NOT NULL,
  last_seq {int} NOT NULL,
  PRIMARY KEY (user_id, agent, session)
) {clustered};

-- Each actor under the words of their name, and once under 0.
CREATE TABLE memory_actors (
  user_id {text} NOT NULL,
  agent {text} NOT NULL,
  name {int} NOT NULL,
  actor {text} NOT NULL,
  PRIMARY KEY (user_id, agent, name, actor)
) {clustered};

-- The text comes last: what ranking reads of a row is then never behind it on another page.
CREATE TABLE agent_long_term_memory (
  user_id {text} NOT NULL,
  agent {text} NOT NULL,
  seq {int} NOT NULL,
  session_ordinal {int} NOT NULL,
  previous_seq {int},
  next_seq {int},
  asks {int} NOT NULL,
  occurred_at {int} NOT NULL,
  status {text} NOT NULL,
  kind {text} NOT NULL,
  actor {text},
  id {text} NOT NULL,
  version {int} NOT NULL,
  digest {int} NOT NULL,
  session {text},
  writer {text} NOT NULL,
  source {text},
  trust {text} NOT NULL,
  created_at {int} NOT NULL,
  changed_at {int} NOT NULL,
  tags {text} NOT NULL,
  text {text} NOT NULL,
  PRIMARY KEY (user_id, agent, seq)
) {clustered};
CREATE UNIQUE INDEX memory_by_id ON agent_long_term_memory (user_id, agent, id);
CREATE INDEX memory_by_digest ON agent_long_term_memory (user_id, agent, digest);
CREATE INDEX memory_by_time ON agent_long_term_memory (user_id, agent, status, occurred_at, seq);
CREATE INDEX memory_by_kind ON agent_long_term_memory (user_id, agent, status, kind, occurred_at, seq);

-- Versions of the past; the present one is in the table above.
CREATE TABLE memory_history (
  user_id {text} NOT NULL,
  agent {text} NOT NULL,
  id {text} NOT NULL,
  version {int} NOT NULL,
  state {text} NOT NULL,
  PRIMARY KEY (user_id, agent, id, version)
) {table};

-- Where each term occurs: blocks of postings, the last of a term open under the highest number there is.
CREATE TABLE memory_postings (
  user_id {text} NOT NULL,
  agent {text} NOT NULL,
  term {int} NOT NULL,
  block {int} NOT NULL,
  data {bytes} NOT NULL,
  PRIMARY KEY (user_id, agent, term, block)
) {clustered};

CREATE TABLE tasks (
  user_id {text} NOT NULL,
  number {int} NOT NULL,
  agent {text} NOT NULL,
  title {text} NOT NULL,
  description {text} NOT NULL,
  status {text} NOT NULL,
  steps {text} NOT NULL,
  version {int} NOT NULL,
  created_at {int} NOT NULL,
  changed_at {int} NOT NULL,
  PRIMARY KEY (user_id, number)
) {table};

CREATE TABLE task_numbers (
  user_id {text} PRIMARY KEY,
  last {int} NOT NULL
) {table};

CREATE TABLE schedules (
  user_id {text} NOT NULL,
  id {text} NOT NULL,
  agent {text} NOT NULL,
  cron {text} NOT NULL,
  timezone {text} NOT NULL,
  channel {text} NOT NULL,
  prompt {text} NOT NULL,
  misfire {text} NOT NULL,
  enabled {int} NOT NULL,
  next_at {int},
  lease_owner {text},
  lease_until {int} NOT NULL DEFAULT 0,
  fence {int} NOT NULL DEFAULT 0,
  created_at {int} NOT NULL,
  changed_at {int} NOT NULL,
  PRIMARY KEY (user_id, id)
) {table};
CREATE INDEX schedules_due ON schedules (next_at) WHERE enabled = 1;

CREATE TABLE schedule_runs (
  user_id {text} NOT NULL,
  schedule_id {text} NOT NULL,
  due_at {int} NOT NULL,
  fence {int} NOT NULL,
  lease_until {int} NOT NULL,
  started_at {int} NOT NULL,
  finished_at {int},
  outcome {text},
  output {text},
  PRIMARY KEY (user_id, schedule_id, due_at)
) {table};
CREATE INDEX schedule_runs_open ON schedule_runs (lease_until) WHERE finished_at IS NULL;
CREATE INDEX schedule_runs_unknown ON schedule_runs (started_at) WHERE outcome = 'unknown';

CREATE TABLE threads (
  user_id {text} NOT NULL,
  id {text} NOT NULL,
  agent {text} NOT NULL,
  channel {text} NOT NULL,
  external {text},
  title {text},
  messages {int} NOT NULL DEFAULT 0,
  created_at {int} NOT NULL,
  changed_at {int} NOT NULL,
  PRIMARY KEY (user_id, id)
) {table};
CREATE INDEX threads_newest ON threads (user_id, agent, changed_at);
CREATE UNIQUE INDEX threads_by_external ON threads (user_id, agent, channel, external);

CREATE TABLE messages (
  user_id {text} NOT NULL,
  thread_id {text} NOT NULL,
  seq {int} NOT NULL,
  id {text} NOT NULL,
  role {text} NOT NULL,
  content {text} NOT NULL,
  created_at {int} NOT NULL,
  PRIMARY KEY (user_id, thread_id, seq)
) {clustered};

CREATE TABLE broker_sessions (
  user_id {text} NOT NULL,
  id {text} NOT NULL,
  agent {text} NOT NULL,
  channel {text} NOT NULL,
  host {text},
  packet {text},
  reasons {text} NOT NULL,
  lease_owner {text},
  lease_until {int} NOT NULL DEFAULT 0,
  fence {int} NOT NULL DEFAULT 0,
  -- Calls are counted, not timed: two processes' clocks cannot say which call came first.
  calls {int} NOT NULL DEFAULT 0,
  contract {text},
  written_call {int},
  delivered_call {int},
  created_at {int} NOT NULL,
  seen_at {int} NOT NULL,
  PRIMARY KEY (user_id, id)
) {table};
CREATE INDEX broker_sessions_idle ON broker_sessions (seen_at);

CREATE TABLE approvals (
  user_id {text} NOT NULL,
  id {text} NOT NULL,
  agent {text} NOT NULL,
  session {text} NOT NULL,
  channel {text} NOT NULL,
  body {text} NOT NULL,
  tool {text} NOT NULL,
  class {text} NOT NULL,
  args {text} NOT NULL,
  digest {text} NOT NULL,
  pin {text} NOT NULL,
  policy {text} NOT NULL,
  reason {text} NOT NULL,
  flags {text} NOT NULL,
  status {text} NOT NULL,
  created_at {int} NOT NULL,
  expires_at {int} NOT NULL,
  decided_at {int},
  decided_by {text},
  used_at {int},
  -- When the call that asked was told that the time is over.
  told_at {int},
  PRIMARY KEY (user_id, id)
) {table};
CREATE INDEX approvals_open ON approvals (status, expires_at);
CREATE INDEX approvals_pending ON approvals (user_id, expires_at) WHERE status = 'pending';
CREATE INDEX approvals_by_id ON approvals (id);
CREATE INDEX approvals_by_call ON approvals (user_id, agent, digest);
-- Asking for the same call twice is asking once.
CREATE UNIQUE INDEX approvals_once ON approvals (user_id, agent, body, tool, digest, pin, policy) WHERE status IN ('pending', 'approved');

CREATE TABLE audit_chains (
  chain {text} PRIMARY KEY,
  seq {int} NOT NULL,
  mac {bytes} NOT NULL
) {table};

CREATE TABLE audit (
  chain {text} NOT NULL,
  seq {int} NOT NULL,
  id {text} NOT NULL,
  at {int} NOT NULL,
  user_id {text} NOT NULL,
  agent {text},
  session {text},
  channel {text},
  event {text} NOT NULL,
  detail {text} NOT NULL,
  mac {bytes} NOT NULL,
  PRIMARY KEY (chain, seq)
) {clustered};
CREATE INDEX audit_by_user ON audit (user_id, at);
CREATE INDEX audit_by_time ON audit (at);

-- Writes with an intent and no outcome: a short list into the chain, not a part of it.
CREATE TABLE audit_open (
  user_id {text} NOT NULL,
  call_id {text} NOT NULL,
  chain {text} NOT NULL,
  seq {int} NOT NULL,
  at {int} NOT NULL,
  PRIMARY KEY (user_id, call_id)
) {table};
CREATE INDEX audit_open_by_age ON audit_open (at);

CREATE TABLE observation_outbox (
  user_id {text} NOT NULL,
  id {text} NOT NULL,
  agent {text} NOT NULL,
  session {text} NOT NULL,
  idempotency_key {text} NOT NULL,
  payload {text} NOT NULL,
  created_at {int} NOT NULL,
  available_at {int} NOT NULL,
  attempts {int} NOT NULL DEFAULT 0,
  lease_owner {text},
  lease_until {int} NOT NULL DEFAULT 0,
  fence {int} NOT NULL DEFAULT 0,
  PRIMARY KEY (user_id, id)
) {table};
CREATE UNIQUE INDEX observation_outbox_once ON observation_outbox (user_id, idempotency_key);
CREATE INDEX observation_outbox_by_session ON observation_outbox (user_id, session, id);
CREATE INDEX observation_outbox_by_age ON observation_outbox (id);

CREATE TABLE tool_pins (
  body {text} NOT NULL,
  tool {text} NOT NULL,
  definition {text} NOT NULL,
  hash {text} NOT NULL,
  accepted {int} NOT NULL,
  seen_definition {text},
  seen_hash {text},
  first_seen_at {int} NOT NULL,
  changed_at {int} NOT NULL,
  accepted_by {text},
  PRIMARY KEY (body, tool)
) {table};

CREATE TABLE prompt_sections (
  user_id {text} NOT NULL,
  hash {bytes} NOT NULL,
  text {text} NOT NULL,
  PRIMARY KEY (user_id, hash)
) {table};

CREATE TABLE prompt_receipts (
  user_id {text} NOT NULL,
  id {text} NOT NULL,
  agent {text} NOT NULL,
  layout {text} NOT NULL,
  hash {text} NOT NULL,
  detail {text} NOT NULL,
  created_at {int} NOT NULL,
  PRIMARY KEY (user_id, id)
) {table};
CREATE INDEX prompt_receipts_by_hash ON prompt_receipts (user_id, hash);
CREATE INDEX prompt_receipts_by_age ON prompt_receipts (created_at, user_id, id);

CREATE TABLE prompt_receipt_parts (
  user_id {text} NOT NULL,
  receipt_id {text} NOT NULL,
  position {int} NOT NULL,
  hash {bytes} NOT NULL,
  PRIMARY KEY (user_id, receipt_id, position)
) {clustered};
CREATE INDEX prompt_receipt_parts_by_hash ON prompt_receipt_parts (user_id, hash);

-- What an agent is used to, packed: a row for each tool, and one for the order in which they follow each other.
CREATE TABLE mind_habits (
  user_id {text} NOT NULL,
  agent {text} NOT NULL,
  subject {text} NOT NULL,
  data {bytes} NOT NULL,
  changed_at {int} NOT NULL,
  PRIMARY KEY (user_id, agent, subject)
) {clustered};

-- The few memories that forbid or restrict something, with what a call needs of them: they are read at every one, so they
-- lie together. Whatever changes a memory changes its row here. The lane is 2 for what the owner wrote, 1 for what others
-- wrote, 0 for what does not count. One that was rewritten since it was looked at is not judged.
CREATE TABLE mind_cautions (
  user_id {text} NOT NULL,
  agent {text} NOT NULL,
  seq {int} NOT NULL,
  lane {int} NOT NULL,
  judged {int} NOT NULL,
  id {text} NOT NULL,
  version {int} NOT NULL,
  occurred_at {int} NOT NULL,
  trust {text} NOT NULL,
  beginning {text} NOT NULL,
  PRIMARY KEY (user_id, agent, seq)
) {clustered};
CREATE INDEX mind_cautions_by_lane ON mind_cautions (user_id, agent, lane, seq);

-- The last memory that was looked through for the table above.
CREATE TABLE mind_caution_marks (
  user_id {text} NOT NULL,
  agent {text} NOT NULL,
  seq {int} NOT NULL,
  PRIMARY KEY (user_id, agent)
) {clustered};

-- What a mind was told. The row of a scope gives out the numbers, is the lock of those who write there, and carries the
-- lease of its consolidation, how far that has looked at memories, and how far it has pruned the log.
CREATE TABLE mind_log_scopes (
  user_id {text} NOT NULL,
  agent {text} NOT NULL,
  last_seq {int} NOT NULL,
  last_at {int} NOT NULL,
  looked_seq {int} NOT NULL DEFAULT 0,
  pruned_seq {int} NOT NULL DEFAULT 0,
  lease_owner {text},
  lease_until {int} NOT NULL DEFAULT 0,
  fence {int} NOT NULL DEFAULT 0,
  PRIMARY KEY (user_id, agent)
) {clustered};

CREATE TABLE mind_log (
  user_id {text} NOT NULL,
  agent {text} NOT NULL,
  seq {int} NOT NULL,
  at {int} NOT NULL,
  session {text},
  kind {text} NOT NULL,
  writer {text} NOT NULL,
  trust {text} NOT NULL,
  -- Brought back by somebody: it stays.
  pinned {int} NOT NULL DEFAULT 0,
  -- Reads like an order: only the owner sees it.
  held {int} NOT NULL DEFAULT 0,
  text {text} NOT NULL,
  PRIMARY KEY (user_id, agent, seq)
) {clustered};

-- What consolidations pruned, for a while.
CREATE TABLE mind_log_archive (
  user_id {text} NOT NULL,
  agent {text} NOT NULL,
  run_id {text} NOT NULL,
  seq {int} NOT NULL,
  at {int} NOT NULL,
  session {text},
  kind {text} NOT NULL,
  writer {text} NOT NULL,
  trust {text} NOT NULL,
  held {int} NOT NULL DEFAULT 0,
  pruned_at {int} NOT NULL,
  text {text} NOT NULL,
  PRIMARY KEY (user_id, agent, run_id, seq)
) {clustered};
CREATE INDEX mind_log_archive_by_age ON mind_log_archive (user_id, agent, pruned_at);

-- Who has read what the owner did not write, and when last.
CREATE TABLE mind_exposures (
  user_id {text} NOT NULL,
  agent {text} NOT NULL,
  writer {text} NOT NULL,
  at {int} NOT NULL,
  PRIMARY KEY (user_id, agent, writer)
) {clustered};

CREATE TABLE commitments (
  user_id {text} NOT NULL,
  agent {text} NOT NULL,
  id {text} NOT NULL,
  status {text} NOT NULL,
  who {text} NOT NULL,
  text {text} NOT NULL,
  words {text} NOT NULL,
  due_at {int},
  sentence {text} NOT NULL,
  session {text},
  writer {text} NOT NULL,
  trust {text} NOT NULL,
  created_at {int} NOT NULL,
  changed_at {int} NOT NULL,
  PRIMARY KEY (user_id, agent, id)
) {table};
CREATE INDEX commitments_by_due ON commitments (user_id, agent, status, due_at);

-- Changes of the standing instructions that the owner may accept.
CREATE TABLE instruction_proposals (
  user_id {text} NOT NULL,
  agent {text} NOT NULL,
  id {text} NOT NULL,
  status {text} NOT NULL,
  line {text} NOT NULL,
  text {text} NOT NULL,
  diff {text} NOT NULL,
  base_version {int} NOT NULL,
  sentence {text} NOT NULL,
  writer {text} NOT NULL,
  trust {text} NOT NULL,
  created_at {int} NOT NULL,
  decided_at {int},
  decided_by {text},
  PRIMARY KEY (user_id, agent, id)
) {table};
CREATE INDEX instruction_proposals_by_status ON instruction_proposals (user_id, agent, status, id);

CREATE TABLE consolidations (
  user_id {text} NOT NULL,
  agent {text} NOT NULL,
  id {text} NOT NULL,
  at {int} NOT NULL,
  merged {int} NOT NULL,
  lapsed {int} NOT NULL,
  pruned {int} NOT NULL,
  undone_at {int},
  PRIMARY KEY (user_id, agent, id)
) {table};

-- What a consolidation did to what: a memory that another one stands for, a commitment that lapsed.
CREATE TABLE consolidation_items (
  user_id {text} NOT NULL,
  agent {text} NOT NULL,
  run_id {text} NOT NULL,
  subject {text} NOT NULL,
  what {text} NOT NULL,
  kept {text},
  version {int} NOT NULL,
  PRIMARY KEY (user_id, agent, run_id, subject)
) {table};
CREATE INDEX consolidation_items_by_subject ON consolidation_items (user_id, agent, subject);

-- Memories by what they say when nobody minds case, accents and punctuation, as far as a consolidation has looked.
CREATE TABLE memory_likeness (
  user_id {text} NOT NULL,
  agent {text} NOT NULL,
  likeness {int} NOT NULL,
  seq {int} NOT NULL,
  PRIMARY KEY (user_id, agent, likeness, seq)
) {clustered};
CREATE INDEX memory_likeness_by_memory ON memory_likeness (user_id, agent, seq);
