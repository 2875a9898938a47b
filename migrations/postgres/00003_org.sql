-- +goose Up
-- What an organization decided about calling out. An organization without a row has the defaults of tools/org.
CREATE TABLE outbound_settings (
  org_id            TEXT PRIMARY KEY,
  allowed_countries TEXT NOT NULL,
  window_start      TEXT NOT NULL,
  window_end        TEXT NOT NULL,
  window_days       TEXT NOT NULL,
  consent_text      TEXT NOT NULL,
  acknowledged_at   BIGINT,
  updated_at        BIGINT NOT NULL
);

-- +goose Down
DROP TABLE outbound_settings;
