-- When a revision was the newest, noted now and then until it is compacted: so states also grow old if no process runs for long.
CREATE TABLE revision_times (
    resource_version INTEGER PRIMARY KEY,
    at_ms            INTEGER NOT NULL
);
