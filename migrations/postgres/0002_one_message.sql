-- A batch in one message, without a lock held over several.

-- Rises where a batch whose answer was lost is found not to have been made: then it can't be made any more.
ALTER TABLE counter ADD COLUMN fence BIGINT NOT NULL DEFAULT 0;

-- Room on each page for the next version of its rows, so that an update leaves the primary key alone.
ALTER TABLE objects SET (fillfactor = 50);

-- Compresses several times faster than the default. Not every server was built with it.
DO $$ BEGIN
    ALTER TABLE changes ALTER COLUMN bytes SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
    NULL;
END $$;
