-- What grew from one build to the next, by source file: the packages 'old' and 'new' (--package=old, --package=new).
SELECT coalesce(source_file, '') AS source_file,
	sum(CASE WHEN package = 'new' THEN size ELSE -size END) AS growth,
	sum(CASE WHEN package = 'new' AND hash IN (SELECT hash FROM functions WHERE package = 'old')
		THEN 0 WHEN package = 'new' THEN size ELSE 0 END) AS new_code
FROM functions
WHERE package IN ('old', 'new')
GROUP BY coalesce(source_file, '')
HAVING growth <> 0 OR new_code <> 0
ORDER BY growth DESC, source_file
LIMIT 20;
