#!/bin/bash
# load.sh DATABASE ROWS.csv...: puts rows of `icfold audit --rows=ROWS.csv` into the table `functions` of an SQLite database, which is
# made if need be.  DuckDB reads the files where they are:
#   CREATE TABLE functions AS SELECT * FROM read_csv('rows/*.csv', header = true);
#   CREATE TABLE functions AS SELECT * FROM read_json('rows/*.jsonl', format = 'newline_delimited');
set -e
here=$(dirname "$(readlink -f "$0")")
db=$1
# Else sqlite3 would take it for an option.
case $db in -*) db=./$db ;; esac
shift
sqlite3 "$db" "SELECT 1 FROM functions LIMIT 1" >/dev/null 2>&1 || sqlite3 "$db" <"$here/schema.sql"
for rows; do
	# Empty values are NULL; truth is 0 and 1.  The shell opens the file, since .import takes names apart: quotes, options, commands.
	sqlite3 -bail "$db" 3<"$rows" <<'END'
CREATE TEMP TABLE raw(file, build_id, package, arch, name, linkage_name, source_file, source_line, address, size, hash,
	hash_version, class, foldable, reason, used);
.mode csv
.import --skip 1 /dev/fd/3 raw
INSERT INTO functions SELECT file, nullif(build_id, ''), nullif(package, ''), arch, nullif(name, ''), nullif(linkage_name, ''),
	nullif(source_file, ''), nullif(source_line, ''), address, size, hash, hash_version, class, foldable = 'true', reason,
	CASE used WHEN '' THEN NULL ELSE used = 'true' END
FROM raw;
END
done
sqlite3 "$db" "CREATE INDEX IF NOT EXISTS functions_hash ON functions(hash);
CREATE INDEX IF NOT EXISTS functions_name ON functions(linkage_name);"
