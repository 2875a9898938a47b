-- +goose Up
-- How a client came here: registered (RFC 7591), document (its id is the URL of its metadata), made (by an
-- administrator, for one organization).
ALTER TABLE clients ADD COLUMN kind TEXT NOT NULL DEFAULT 'registered';
ALTER TABLE clients ADD COLUMN org_id TEXT REFERENCES organizations (id);
ALTER TABLE clients ADD COLUMN auth_method TEXT NOT NULL DEFAULT 'none';
-- The second secret is the one before, good until then.
ALTER TABLE clients ADD COLUMN secret_hash TEXT NOT NULL DEFAULT '';
ALTER TABLE clients ADD COLUMN old_secret_hash TEXT NOT NULL DEFAULT '';
ALTER TABLE clients ADD COLUMN old_secret_until BIGINT;
-- The keys of private_key_jwt, as given or as fetched last.
ALTER TABLE clients ADD COLUMN jwks TEXT NOT NULL DEFAULT '';
ALTER TABLE clients ADD COLUMN jwks_uri TEXT NOT NULL DEFAULT '';
ALTER TABLE clients ADD COLUMN jwks_at BIGINT;
-- Of a document: until when it needs not be fetched again.
ALTER TABLE clients ADD COLUMN fresh_until BIGINT;
CREATE INDEX clients_org ON clients (org_id);

-- A document that asks for keys later does not end what was allowed before.
ALTER TABLE grants ADD COLUMN auth_method TEXT NOT NULL DEFAULT 'none';

-- Clients that an organization does not let in.
CREATE TABLE client_blocks (
  org_id     TEXT NOT NULL REFERENCES organizations (id),
  client_id  TEXT NOT NULL REFERENCES clients (id),
  person_id  TEXT NOT NULL REFERENCES people (id),
  created_at BIGINT NOT NULL,
  PRIMARY KEY (org_id, client_id)
);
CREATE INDEX client_blocks_client ON client_blocks (client_id);

-- Assertions that were used (RFC 7523 section 3, jti), until they would be refused for their age.
CREATE TABLE client_assertions (
  assertion_hash TEXT PRIMARY KEY,
  expires_at     BIGINT NOT NULL
);
CREATE INDEX client_assertions_expiry ON client_assertions (expires_at);

-- +goose Down
DROP TABLE client_assertions;
DROP TABLE client_blocks;
ALTER TABLE grants DROP COLUMN auth_method;
DROP INDEX clients_org;
ALTER TABLE clients DROP COLUMN fresh_until;
ALTER TABLE clients DROP COLUMN jwks_at;
ALTER TABLE clients DROP COLUMN jwks_uri;
ALTER TABLE clients DROP COLUMN jwks;
ALTER TABLE clients DROP COLUMN old_secret_until;
ALTER TABLE clients DROP COLUMN old_secret_hash;
ALTER TABLE clients DROP COLUMN secret_hash;
ALTER TABLE clients DROP COLUMN auth_method;
ALTER TABLE clients DROP COLUMN org_id;
ALTER TABLE clients DROP COLUMN kind;
