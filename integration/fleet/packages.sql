-- Whose duplicates they are: bytes that a package (or team: join a table of owners) has although another file, or the same one, has
-- them too.  A body counts in full for each package but the one with the first file.
WITH first AS (
	SELECT hash, hash_version, arch, min(file) AS file, min(size) AS size
	FROM functions
	GROUP BY hash, hash_version, arch
	HAVING count(*) > 1
)
SELECT coalesce(f.package, '') AS package, count(*) AS duplicates, sum(f.size) AS bytes
FROM functions f
JOIN first ON first.hash = f.hash AND first.hash_version = f.hash_version AND first.arch = f.arch
WHERE f.file <> first.file
	OR f.address <> (SELECT min(g.address) FROM functions g WHERE g.file = first.file AND g.hash = first.hash)
GROUP BY coalesce(f.package, '')
ORDER BY bytes DESC, package
LIMIT 20;
