-- The table that the queries ask.  Types as in schema.json; SQLite and DuckDB take them as they are.
CREATE TABLE functions (
	file TEXT NOT NULL,
	build_id TEXT,
	package TEXT,
	arch TEXT NOT NULL,
	name TEXT,
	linkage_name TEXT,
	source_file TEXT,
	source_line INTEGER,
	address BIGINT NOT NULL,
	size BIGINT NOT NULL,
	hash TEXT NOT NULL,
	hash_version INTEGER NOT NULL,
	class BIGINT NOT NULL,
	foldable BOOLEAN NOT NULL,
	reason TEXT NOT NULL,
	used BOOLEAN
);
