-- The log and its index. One rising revision orders every write of the database.

-- How many migrations were made.
CREATE TABLE schema_version (
    id      BIGINT PRIMARY KEY CHECK (id = 1),
    version BIGINT NOT NULL
);
INSERT INTO schema_version VALUES (1, 0);

-- The revision of the newest change. Who writes locks this row, first and alone, until its transaction ends.
-- It begins at 2: clients read resourceVersion 0 as "any", and 1 is too old on a kube-apiserver, where it is before every
-- watch cache.
CREATE TABLE counter (
    id               BIGINT PRIMARY KEY CHECK (id = 1),
    current_revision BIGINT NOT NULL
) WITH (fillfactor = 10);
INSERT INTO counter VALUES (1, 2);

-- The revision that the log reaches back to. A row of its own, so that compaction never waits for writers, nor they for it.
CREATE TABLE compaction (
    id                 BIGINT PRIMARY KEY CHECK (id = 1),
    compacted_revision BIGINT NOT NULL
);
INSERT INTO compaction VALUES (1, 2);

-- Every change, with the bytes that it stored; a deletion has none, its last state is the row that it names as previous.
-- Key is `namespace/name`, or the name alone in cluster scope, compared byte by byte.
CREATE TABLE changes (
    resource_version  BIGINT PRIMARY KEY,
    resource          TEXT   COLLATE "C" NOT NULL,
    key               TEXT   COLLATE "C" NOT NULL,
    operation         BIGINT NOT NULL, -- 0 create, 1 update, 2 delete
    uid               TEXT   NOT NULL,
    created_version   BIGINT NOT NULL,
    stored_version    TEXT   NOT NULL,
    schema_generation BIGINT NOT NULL,
    writer            TEXT   NOT NULL,
    batch             BIGINT NOT NULL,
    bytes             BYTEA  NOT NULL,
    previous_version  BIGINT,
    expires_at_ms     BIGINT,
    checksum          BIGINT NOT NULL -- CRC-32 of revision, key and bytes
);
CREATE INDEX changes_of_resource ON changes (resource, resource_version);
CREATE INDEX changes_expiring ON changes (expires_at_ms) WHERE expires_at_ms IS NOT NULL;

-- Which change holds the present state of an object: the index of what is live.
CREATE TABLE objects (
    resource         TEXT   COLLATE "C" NOT NULL,
    key              TEXT   COLLATE "C" NOT NULL,
    resource_version BIGINT NOT NULL,
    PRIMARY KEY (resource, key)
);

-- The newest batch of each process: whether a COMMIT whose answer was lost took place.
CREATE TABLE writers (
    writer     TEXT PRIMARY KEY,
    batch      BIGINT NOT NULL,
    written_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

-- The CA and the keys that every process on this database shares.
CREATE TABLE secrets (
    name  TEXT PRIMARY KEY,
    value BYTEA NOT NULL
);

-- Which process does what only one may do, until when by the database's clock.
CREATE TABLE leases (
    name       TEXT PRIMARY KEY,
    holder     TEXT NOT NULL,
    writer     TEXT NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL
);
