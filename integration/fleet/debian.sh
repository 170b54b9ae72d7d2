#!/bin/bash
# debian.sh DATABASE [ROOT]: files below ROOT that dpkg installed there get the names of their packages, in an SQLite database of load.sh.
# Rows of packages (icfold audit --rows=rows.csv *.deb) have them already.
set -e
db=$1
# Else sqlite3 would take it for an option.
case $db in -*) db=./$db ;; esac
root=${2:-}
root=${root%/}
owners=$(mktemp)
trap 'rm -f "$owners"' EXIT
for list in "$root"/var/lib/dpkg/info/*.list; do
	package=$(basename "$list" .list)
	# /bin, /lib and /sbin are links to the folders of /usr, which dpkg does not know.
	awk -v root="$root" -v package="${package%%:*}" '
		/^\/(bin|lib|lib64|sbin)\// { print root "/usr" $0 "\t" package }
		{ print root $0 "\t" package }' "$list"
done >"$owners"
# The shell opens the file: .import would take its name apart.
sqlite3 -bail "$db" 3<"$owners" <<'SQL'
CREATE TEMP TABLE owner(file TEXT, package TEXT);
.mode tabs
.import /dev/fd/3 owner
CREATE INDEX temp.owner_file ON owner(file);
UPDATE functions SET package = (SELECT min(package) FROM owner WHERE owner.file = functions.file)
WHERE package IS NULL AND file IN (SELECT file FROM owner);
SQL
