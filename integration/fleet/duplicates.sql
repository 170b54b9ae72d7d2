-- The code that most products have more than once: `saving` is what one shared body would save.
SELECT hash, max(name) AS name, size, count(*) AS bodies, count(DISTINCT file) AS files,
	count(DISTINCT package) AS packages, (count(*) - 1) * size AS saving
FROM functions
GROUP BY hash, hash_version, arch, size
HAVING count(*) > 1
ORDER BY saving DESC, hash
LIMIT 20;
