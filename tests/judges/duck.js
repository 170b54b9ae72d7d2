// duck.js QUERY.sql ROWS.csv...: asks DuckDB (npm's @duckdb/node-api) the query about the rows; prints a line a row, with spaces.
const fs = require('fs');
const { DuckDBInstance } = require('@duckdb/node-api');
(async () => {
	const [query, ...rows] = process.argv.slice(2);
	const db = await (await DuckDBInstance.create(':memory:')).connect();
	const list = rows.map((name) => `'${name.replaceAll("'", "''")}'`).join(', ');
	await db.run(`CREATE TABLE functions AS SELECT * FROM read_csv([${list}], header = true)`);
	const result = await db.runAndReadAll(fs.readFileSync(query, 'utf8').replace(/;\s*$/, ''));
	for (const row of result.getRows()) console.log(row.map((v) => (v === null ? '' : String(v))).join(' '));
})().catch((e) => { console.error(String(e)); process.exit(1); });
