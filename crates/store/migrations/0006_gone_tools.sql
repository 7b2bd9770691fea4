-- Tools that their server had no longer when it listed its tools last. Their pins stay.

ALTER TABLE tool_pins ADD COLUMN is_gone {int} NOT NULL DEFAULT 0;
