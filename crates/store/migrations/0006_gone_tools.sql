-- Tools that their server had no longer when it listed its tools last. Their pins stay.

ALTER TABLE tool_pins ADD COLUMN is_gone {int} NOT NULL DEFAULT 0;
-- Every list of tools asks whether a pin is another: without the definitions that stand between.
CREATE INDEX tool_pins_by_change ON tool_pins (changed_at);
