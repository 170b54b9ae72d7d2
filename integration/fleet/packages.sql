-- Whose duplicates they are: bytes that a package (or team: join a table of owners) has although another file, or the same one, has
-- them too.  A body counts in full for each package but the one with the first file.
WITH first AS (
	SELECT hash, hash_version, arch, min(file) AS file
	FROM functions
	GROUP BY hash, hash_version, arch
	HAVING count(*) > 1
), body AS (
	SELECT first.hash, first.hash_version, first.arch, first.file, min(f.address) AS address
	FROM first
	JOIN functions f ON f.hash = first.hash AND f.hash_version = first.hash_version AND f.arch = first.arch AND f.file = first.file
	GROUP BY first.hash, first.hash_version, first.arch, first.file
)
SELECT coalesce(f.package, '') AS package, count(*) AS duplicates, sum(f.size) AS bytes
FROM functions f
JOIN body ON body.hash = f.hash AND body.hash_version = f.hash_version AND body.arch = f.arch
WHERE f.file <> body.file OR f.address <> body.address
GROUP BY coalesce(f.package, '')
ORDER BY bytes DESC, package
LIMIT 20;
