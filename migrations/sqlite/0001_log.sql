-- The log and its index. One rising revision orders every write of the database.

-- The revision of the newest change, and the one that the log reaches back to. Both begin at 2: clients read
-- resourceVersion 0 as "any", and 1 is too old on a kube-apiserver, where it is before every watch cache.
CREATE TABLE meta (
    id                 INTEGER PRIMARY KEY CHECK (id = 1),
    current_revision   INTEGER NOT NULL,
    compacted_revision INTEGER NOT NULL
);
INSERT INTO meta VALUES (1, 2, 2);

-- Every change, with the bytes that it stored; a deletion has none, its last state is the row that it names as previous.
-- Key is `namespace/name`, or the name alone in cluster scope, compared byte by byte.
CREATE TABLE changes (
    resource_version  INTEGER PRIMARY KEY,
    resource          TEXT    NOT NULL,
    key               TEXT    NOT NULL,
    operation         INTEGER NOT NULL, -- 0 create, 1 update, 2 delete
    uid               TEXT    NOT NULL,
    created_version   INTEGER NOT NULL,
    stored_version    TEXT    NOT NULL,
    schema_generation INTEGER NOT NULL,
    writer            TEXT    NOT NULL,
    batch             INTEGER NOT NULL,
    bytes             BLOB    NOT NULL,
    previous_version  INTEGER,
    expires_at_ms     INTEGER,
    checksum          INTEGER NOT NULL -- CRC-32 of revision, key and bytes
);
CREATE INDEX changes_of_resource ON changes (resource, resource_version);
CREATE INDEX changes_expiring ON changes (expires_at_ms) WHERE expires_at_ms IS NOT NULL;

-- Which change holds the present state of an object: the index of what is live.
CREATE TABLE objects (
    resource         TEXT    NOT NULL,
    key              TEXT    NOT NULL,
    resource_version INTEGER NOT NULL,
    PRIMARY KEY (resource, key)
) WITHOUT ROWID;

-- The CA and the keys that every process on this database shares.
CREATE TABLE secrets (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
);
