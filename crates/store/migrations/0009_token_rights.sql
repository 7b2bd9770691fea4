-- Whether forms that the host of this token answers count as the owner's answers. Only a token of the owner may have it.

ALTER TABLE tokens ADD COLUMN may_approve {int} NOT NULL DEFAULT 0;
