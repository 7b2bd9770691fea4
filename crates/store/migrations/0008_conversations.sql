-- A session without a connection of its own holds one conversation after the other. They are counted; a contract that was
-- written or delivered in an earlier one does not count for the one that runs. `calls`, `written_call` and `delivered_call`
-- are not used any more; SQLite cannot drop or rename a column while some other view in the file is broken.

ALTER TABLE broker_sessions ADD COLUMN conversation {int} NOT NULL DEFAULT 0;
ALTER TABLE broker_sessions ADD COLUMN written_in {int};
-- The digest of the call in whose place it was written.
ALTER TABLE broker_sessions ADD COLUMN bounced {text};
ALTER TABLE broker_sessions ADD COLUMN delivered_in {int};
