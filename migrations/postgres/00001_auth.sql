-- +goose Up
-- Times are microseconds since 1970 in UTC: one total order, the same in both dialects.
-- What is called *_hash or *_sig is "<key id>:<keyed hash>"; no token, code, key or link is stored in clear.

-- Which server keys have worked on this database: starting with a foreign key file would strand every token.
CREATE TABLE server_keys (
  id         TEXT PRIMARY KEY,
  proof      TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE organizations (
  id           TEXT PRIMARY KEY,
  name         TEXT NOT NULL,
  home_country TEXT NOT NULL,
  timezone     TEXT NOT NULL,
  locale       TEXT NOT NULL,
  created_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX organizations_name ON organizations (lower(name));

CREATE TABLE people (
  id            TEXT PRIMARY KEY,
  email         TEXT NOT NULL UNIQUE,
  name          TEXT NOT NULL,
  password_hash TEXT NOT NULL,
  created_at    BIGINT NOT NULL
);

CREATE TABLE memberships (
  org_id     TEXT NOT NULL REFERENCES organizations (id),
  person_id  TEXT NOT NULL REFERENCES people (id),
  role       TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (org_id, person_id)
);
CREATE INDEX memberships_person ON memberships (person_id);

CREATE TABLE browser_sessions (
  id         TEXT PRIMARY KEY,
  token_hash TEXT NOT NULL UNIQUE,
  person_id  TEXT NOT NULL REFERENCES people (id),
  org_id     TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX browser_sessions_person ON browser_sessions (person_id);
CREATE INDEX browser_sessions_expiry ON browser_sessions (expires_at);

CREATE TABLE setup_links (
  link_hash   TEXT PRIMARY KEY,
  created_at  BIGINT NOT NULL,
  expires_at  BIGINT NOT NULL,
  consumed_at BIGINT
);

CREATE TABLE clients (
  id            TEXT PRIMARY KEY,
  name          TEXT NOT NULL,
  redirect_uris TEXT NOT NULL,
  metadata      TEXT NOT NULL,
  created_at    BIGINT NOT NULL,
  used_at       BIGINT
);

-- What a client asked for at /oauth/authorize and a person has not answered yet, or has.
CREATE TABLE consent_requests (
  id_hash      TEXT PRIMARY KEY,
  browser_hash TEXT NOT NULL,
  client_id    TEXT NOT NULL REFERENCES clients (id),
  query        TEXT NOT NULL,
  decision     TEXT,
  grant_id     TEXT,
  created_at   BIGINT NOT NULL,
  expires_at   BIGINT NOT NULL
);
CREATE INDEX consent_requests_expiry ON consent_requests (expires_at);

-- person x organization x client: the row that an administrator sees and revokes.
CREATE TABLE connections (
  id             TEXT PRIMARY KEY,
  org_id         TEXT NOT NULL REFERENCES organizations (id),
  person_id      TEXT NOT NULL REFERENCES people (id),
  client_id      TEXT NOT NULL REFERENCES clients (id),
  created_at     BIGINT NOT NULL,
  used_at        BIGINT,
  revoked_at     BIGINT,
  revoked_reason TEXT
);
CREATE UNIQUE INDEX connections_live ON connections (org_id, person_id, client_id) WHERE revoked_at IS NULL;
CREATE INDEX connections_client ON connections (client_id);

-- One sign-in under a connection: a token family with its scopes and its audience.
CREATE TABLE grants (
  id            TEXT PRIMARY KEY,
  connection_id TEXT NOT NULL REFERENCES connections (id),
  scope         TEXT NOT NULL,
  resource      TEXT NOT NULL,
  redirect_uri  TEXT NOT NULL,
  created_at    BIGINT NOT NULL,
  expires_at    BIGINT NOT NULL,
  revoked_at    BIGINT
);
CREATE INDEX grants_connection ON grants (connection_id);

CREATE TABLE codes (
  code_hash      TEXT PRIMARY KEY,
  grant_id       TEXT NOT NULL REFERENCES grants (id),
  client_id      TEXT NOT NULL,
  redirect_uri   TEXT NOT NULL,
  code_challenge TEXT NOT NULL,
  expires_at     BIGINT NOT NULL,
  used_at        BIGINT
);
CREATE INDEX codes_grant ON codes (grant_id);
CREATE INDEX codes_expiry ON codes (expires_at);

-- One row per rotation: the hashes of one refresh token and of the access token that came with it.
CREATE TABLE generations (
  refresh_hash       TEXT PRIMARY KEY,
  access_hash        TEXT NOT NULL UNIQUE,
  grant_id           TEXT NOT NULL REFERENCES grants (id),
  scope              TEXT NOT NULL,
  issued_at          BIGINT NOT NULL,
  access_expires_at  BIGINT NOT NULL,
  refresh_expires_at BIGINT NOT NULL,
  used_at            BIGINT,
  next_hash          TEXT,
  next_salt          TEXT,
  next_key           TEXT
);
CREATE INDEX generations_grant ON generations (grant_id);
CREATE INDEX generations_salted ON generations (used_at) WHERE next_salt <> '';
CREATE INDEX generations_expiry ON generations (refresh_expires_at);

CREATE TABLE api_keys (
  id         TEXT PRIMARY KEY,
  org_id     TEXT NOT NULL REFERENCES organizations (id),
  person_id  TEXT NOT NULL REFERENCES people (id),
  name       TEXT NOT NULL,
  key_hash   TEXT NOT NULL UNIQUE,
  hint       TEXT NOT NULL,
  scope      TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  used_at    BIGINT,
  revoked_at BIGINT
);
CREATE INDEX api_keys_org ON api_keys (org_id);

-- +goose Down
DROP TABLE api_keys;
DROP TABLE generations;
DROP TABLE codes;
DROP TABLE grants;
DROP TABLE connections;
DROP TABLE consent_requests;
DROP TABLE clients;
DROP TABLE setup_links;
DROP TABLE browser_sessions;
DROP TABLE memberships;
DROP TABLE people;
DROP TABLE organizations;
DROP TABLE server_keys;
