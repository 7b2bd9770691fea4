-- What was sent besides the system prompt. A part of a receipt is one of the system prompt (0), a tool definition (1) or a
-- message (2); and the tokens that the model reported for the request, as JSON.

ALTER TABLE prompt_receipt_parts ADD COLUMN kind {int} NOT NULL DEFAULT 0;
ALTER TABLE prompt_receipts ADD COLUMN usage {text};
