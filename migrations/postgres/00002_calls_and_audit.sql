-- +goose Up
-- A mutating tool call: started before any effect, done in the transaction of the effect. A row that stays
-- "started" is a call whose outcome nobody knows.
CREATE TABLE tool_calls (
  id              TEXT PRIMARY KEY,
  org_id          TEXT NOT NULL,
  tool            TEXT NOT NULL,
  idempotency_key TEXT,
  arguments_hash  TEXT NOT NULL,
  status          TEXT NOT NULL,
  result          TEXT,
  started_at      BIGINT NOT NULL,
  finished_at     BIGINT
);
CREATE UNIQUE INDEX tool_calls_idempotency ON tool_calls (org_id, tool, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX tool_calls_started ON tool_calls (started_at);

-- Append-only. Never holds a token, a key, a phone number or the text of a message.
CREATE TABLE audit (
  id          TEXT PRIMARY KEY,
  org_id      TEXT NOT NULL,
  at          BIGINT NOT NULL,
  action      TEXT NOT NULL,
  outcome     TEXT NOT NULL,
  code        TEXT NOT NULL,
  person_id   TEXT NOT NULL,
  person_name TEXT NOT NULL,
  via         TEXT NOT NULL,
  via_id      TEXT NOT NULL,
  via_name    TEXT NOT NULL,
  subject     TEXT NOT NULL,
  call_id     TEXT NOT NULL,
  request_id  TEXT NOT NULL,
  detail      TEXT NOT NULL
);
CREATE INDEX audit_org ON audit (org_id, at, id);

-- +goose Down
DROP TABLE audit;
DROP TABLE tool_calls;
