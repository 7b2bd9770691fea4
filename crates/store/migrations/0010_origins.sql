-- Who created a schedule (`owner`, `agent`, or `exposed`: an agent that had read text that the owner did not write), and
-- whether it waits for the owner because its text gives orders. Of older schedules the creator is not known.

ALTER TABLE schedules ADD COLUMN origin {text} NOT NULL DEFAULT 'unknown';
ALTER TABLE schedules ADD COLUMN quarantined {int} NOT NULL DEFAULT 0;

-- What an agent wrote after it had read text that the owner did not write has the trust `exposed`. Of older records of an agent
-- that ever had, the order is not known.

UPDATE agent_long_term_memory SET trust = 'exposed' WHERE trust = 'agent' AND EXISTS (SELECT 1 FROM mind_exposures known
  WHERE known.user_id = agent_long_term_memory.user_id AND known.agent = agent_long_term_memory.agent);
UPDATE mind_cautions SET trust = 'exposed' WHERE trust = 'agent' AND EXISTS (SELECT 1 FROM mind_exposures known
  WHERE known.user_id = mind_cautions.user_id AND known.agent = mind_cautions.agent);
UPDATE mind_log SET trust = 'exposed' WHERE trust = 'agent' AND EXISTS (SELECT 1 FROM mind_exposures known
  WHERE known.user_id = mind_log.user_id AND known.agent = mind_log.agent);
UPDATE mind_log_archive SET trust = 'exposed' WHERE trust = 'agent' AND EXISTS (SELECT 1 FROM mind_exposures known
  WHERE known.user_id = mind_log_archive.user_id AND known.agent = mind_log_archive.agent);
UPDATE commitments SET trust = 'exposed' WHERE trust = 'agent' AND EXISTS (SELECT 1 FROM mind_exposures known
  WHERE known.user_id = commitments.user_id AND known.agent = commitments.agent);
UPDATE instruction_proposals SET trust = 'exposed' WHERE trust = 'agent' AND EXISTS (SELECT 1 FROM mind_exposures known
  WHERE known.user_id = instruction_proposals.user_id AND known.agent = instruction_proposals.agent);
