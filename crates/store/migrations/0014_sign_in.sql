-- Sign-in links of the console, valid once; and the browsers that are signed in, as tokens of the scope `console`. One that
-- signed in with a token names it, and is valid as long as that.

CREATE TABLE sign_in_codes (
  user_id {text} NOT NULL,
  hash {bytes} NOT NULL,
  expires_at {int} NOT NULL,
  PRIMARY KEY (user_id, hash)
) {clustered};

ALTER TABLE tokens ADD COLUMN signed_in_with {text};
