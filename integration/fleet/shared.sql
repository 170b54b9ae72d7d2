-- What a shared library would save that holds all that two or more files have: of each function one body in it, and none in the
-- files.  A call through the library costs about 16 bytes in each file (an entry of the PLT); smaller functions are not worth it.
SELECT count(*) AS functions, sum(size) AS library, sum(files * size) AS now,
	sum(files * size) - sum(size) - sum(files * 16) AS saving
FROM (
	SELECT hash, hash_version, arch, size, count(DISTINCT file) AS files
	FROM functions
	WHERE size > 32
	GROUP BY hash, hash_version, arch, size
	HAVING count(DISTINCT file) > 1
) AS common;
