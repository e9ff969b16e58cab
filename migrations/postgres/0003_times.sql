-- When a revision was the newest, noted now and then until it is compacted: so states also grow old if no process runs for long.
CREATE TABLE revision_times (
    resource_version BIGINT PRIMARY KEY,
    newest_at        TIMESTAMPTZ NOT NULL
);
