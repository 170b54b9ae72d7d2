-- Functions whose code changed between the packages 'old' and 'new': one name in both, and no hash in common.  A function also counts
-- when something that it calls changed.
SELECT o.linkage_name, max(o.name) AS name, min(o.size) AS old_size, min(n.size) AS new_size
FROM functions o
JOIN functions n ON n.linkage_name = o.linkage_name AND n.arch = o.arch AND n.hash_version = o.hash_version
WHERE o.package = 'old' AND n.package = 'new'
GROUP BY o.linkage_name
HAVING sum(CASE WHEN o.hash = n.hash THEN 1 ELSE 0 END) = 0
ORDER BY o.linkage_name;
