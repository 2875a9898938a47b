-- +goose Up
-- "search" is name and email with case folded away: the databases fold letters differently, or ASCII only.
CREATE TABLE contacts (
  id          TEXT PRIMARY KEY,
  org_id      TEXT NOT NULL,
  phone       TEXT NOT NULL,
  name        TEXT,
  email       TEXT,
  attributes  TEXT NOT NULL,
  notes       TEXT NOT NULL,
  do_not_call BOOLEAN NOT NULL,
  memory      TEXT NOT NULL,
  call_count  BIGINT NOT NULL,
  search      TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL
);
CREATE UNIQUE INDEX contacts_phone ON contacts (org_id, phone);
CREATE INDEX contacts_newest ON contacts (org_id, created_at, id);

-- A tag is a row, so that a filter by tag is exact.
CREATE TABLE contact_tags (
  contact_id TEXT NOT NULL REFERENCES contacts (id) ON DELETE CASCADE,
  tag        TEXT NOT NULL,
  org_id     TEXT NOT NULL,
  position   BIGINT NOT NULL,
  PRIMARY KEY (contact_id, tag)
);
CREATE INDEX contact_tags_tag ON contact_tags (org_id, tag);

-- +goose Down
DROP TABLE contact_tags;
DROP TABLE contacts;
