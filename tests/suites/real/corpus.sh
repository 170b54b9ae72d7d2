#!/bin/bash
# corpus.sh: real programs do the same job after folding.
#
#   corpus.sh [NAME...]                 folds each program of corpus.sh with --icf=none, safe and all ($MODES), runs its
#                                           job with the input and with each output, compares everything that was written
#   corpus.sh --same NAME IN FOLDED...  the same for outputs that are already there
#   corpus.sh --job NAME PROGRAM DIR    runs the job of NAME with PROGRAM, results in DIR
#
# Without names: ninja and sqlite, the small ones.  ICFOLD (build/icfold), ICFOLD_OPTS (more options for every fold) and
# ICFOLD_CORPUS as in corpus.sh; ICFOLD_WORK keeps the results (default: a folder removed at the end).
# TARGET=aarch64: the programs of corpus.sh for that machine, run by qemu.  EVERY=N: each Nth file for protoc.
# Exit code: 0 all the same, 1 a difference or a failed fold.
#
#   ninja*   -t commands, -t targets all, -t rules, a dry run over protobuf's build graph, and a real build of ninja
#   protoc   C++, Python and Java for every .proto of its source tree, one by one; messages and exit codes too
#   llc      the SQLite amalgamation as LLVM IR to x86-64, AArch64 and RISC-V assembly
#   sqlite*  a script with some hundred thousand rows, and the database file it makes
#   python   test_descr test_types test_typing; test_functools test_ctypes test_exceptions (not by qemu)
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
corpus=${ICFOLD_CORPUS:-$HOME/.cache/icfold-corpus}
icfold=${ICFOLD:-$here/../build/icfold}
export LC_ALL=C TZ=UTC
machine=$(uname -m)
[ "${TARGET:-$machine}" != "$machine" ] || TARGET=
built=$corpus${TARGET:+/$TARGET}

# The inputs of the jobs are made once, so that every version of a program reads the same.
prepare_ninja() {
	[ -s "$built/job/graph/build.ninja" ] && [ -s "$built/job/tree/build.ninja" ] && return
	local src
	rm -rf "$built/job/graph" "$built/job/tree"
	mkdir -p "$built/job"
	src=$corpus/src/protobuf
	[ -d "$src" ] || "$here/corpus.sh" protoc >/dev/null
	[ -x "$1" ] || set -- "$2"
	cmake -G Ninja -DCMAKE_MAKE_PROGRAM="$1" -S "$src" -B "$built/job/graph" -Dprotobuf_BUILD_TESTS=OFF >"$built/job/graph.log" 2>&1
	cmake -G Ninja -DCMAKE_MAKE_PROGRAM="$1" -S "$corpus/src/ninja-build" -B "$built/job/tree" -DCMAKE_BUILD_TYPE=None \
		-DCMAKE_CXX_FLAGS=-O0 -DBUILD_TESTING=OFF >"$built/job/tree.log" 2>&1
}

prepare_llc() {
	[ -s "$built/job/sqlite3.ll" ] && return
	mkdir -p "$built/job"
	"$here/corpus.sh" sqlite >/dev/null
	command -v clang-14 >/dev/null || { echo "corpus.sh: the job of llc needs clang-14" >&2; exit 1; }
	# long double of 64 bits, no target lines: one file that all three targets take.
	clang-14 -O2 -S -emit-llvm -mlong-double-64 "$corpus/sqlite.d/sqlite3.c" -o "$built/job/sqlite3.ll.new"
	sed -i -e '/^target /d' -e 's/"target-cpu"="[^"]*"//g; s/"target-features"="[^"]*"//g; s/"tune-cpu"="[^"]*"//g' \
		"$built/job/sqlite3.ll.new"
	mv "$built/job/sqlite3.ll.new" "$built/job/sqlite3.ll"
}

job_ninja() { # PROGRAM OUT
	local p=$1 out=$2 w=$built/job/run t
	prepare_ninja "$corpus/ninja" "$p"
	for t in commands "targets all" "targets rule" rules "query all" "compdb" "inputs all"; do
		# shellcheck disable=SC2086
		"$p" -C "$built/job/graph" -t $t >"$out/t-${t// /-}" 2>&1 || echo "exit $?" >>"$out/t-${t// /-}"
	done
	"$p" -C "$built/job/graph" -n -v -j1 >"$out/dry-run" 2>&1
	"$p" -C "$built/job/graph" no-such-target >"$out/error" 2>&1 || echo "exit $?" >>"$out/error"
	# A build, always in the same folder, since its path is in the objects and the messages.
	rm -rf "$w" && cp -a "$built/job/tree" "$w"
	sed -i "s#$built/job/tree#$w#g" "$w/build.ninja" "$w/CMakeCache.txt" "$w/CMakeFiles/rules.ninja"
	"$p" -C "$w" -j1 -v ninja >"$out/build" 2>&1
	"$p" -C "$w" -j1 -v ninja >"$out/build-again" 2>&1
	"$p" -C "$w" -t deps >"$out/deps.raw" 2>&1
	sed 's/deps mtime [0-9]*/deps mtime T/' "$out/deps.raw" >"$out/deps" && rm "$out/deps.raw"
	cut -f 4,5 "$w/.ninja_log" >"$out/log"
	rm "$w"/CMakeFiles/libninja.dir/src/graph.cc.o
	"$p" -C "$w" -j2 -d explain ninja 2>&1 | sed 's/([0-9]* vs [0-9]*)/(T)/; s/^.*\r//' >"$out/rebuild"
	"$p" -C "$w" -t clean ninja >"$out/clean" 2>&1
	rm -rf "$w"
}

job_protoc() {
	local p=$1 out=$2 src=$corpus/src/protobuf f i=0 l inc="-I src -I benchmarks -I objectivec/Tests -I ."
	(cd "$src" && find src conformance benchmarks examples objectivec php ruby csharp python -name '*.proto' 2>/dev/null |
		LC_ALL=C sort | sed -n "0~${EVERY:-1}p") >"$out/list"
	mkdir -p "$out/cpp" "$out/python" "$out/java"
	while read -r f; do
		i=$((i + 1))
		for l in cpp python java; do
			# shellcheck disable=SC2086
			(cd "$src" && "$p" $inc --${l}_out="$out/$l" --descriptor_set_out="$out/$l/$i.desc" --include_imports "$f" \
				>"$out/$l/$i.log" 2>&1) || echo "exit $?" >>"$out/$l/$i.log"
		done
	done <"$out/list"
	# Names that collide are numbered in the order of a table of pointers: protoc's own output varies from run to run.
	find "$out/cpp" -name 'books.pb.*' -exec sed -i -E 's/FieldNumber_[0-9]+/FieldNumber/' {} +
}

job_llc() {
	local p=$1 out=$2 t
	prepare_llc
	for t in x86_64-linux-gnu aarch64-linux-gnu riscv64-linux-gnu; do
		"$p" -mtriple=$t "$built/job/sqlite3.ll" -o "$out/$t.s" 2>"$out/$t.err"
	done
	"$p" --version >"$out/version" 2>&1
}

job_sqlite() {
	local p=$1 out=$2
	(cd "$out" && "$p" -batch t.db) >"$out/out" 2>"$out/err" <<-'END'
	.bail on
	CREATE TABLE a(id INTEGER PRIMARY KEY, k INT, t TEXT, r REAL, b BLOB);
	BEGIN;
	WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
	  INSERT INTO a SELECT i, (i * 7919) % 100003, printf('row %08d/%x', i, i * i), i / 7.0, CAST(printf('%c%d', 65 + i % 26, i) AS BLOB) FROM n;
	COMMIT;
	CREATE INDEX ak ON a(k); CREATE INDEX at ON a(t DESC, k);
	ANALYZE;
	SELECT count(*), sum(k), total(r), min(t), max(t), sum(length(b)) FROM a;
	SELECT k % 10 AS g, count(*), avg(r), group_concat(id, ',') FILTER (WHERE id < 200) FROM a GROUP BY g ORDER BY g;
	SELECT x.id, y.id FROM a x JOIN a y ON x.k = y.k AND x.id < y.id WHERE x.id < 20000 ORDER BY 1, 2 LIMIT 3000;
	SELECT id, sum(k) OVER (ORDER BY id ROWS 5 PRECEDING), rank() OVER (PARTITION BY k % 7 ORDER BY k, id), lag(t, 2) OVER (ORDER BY id)
	  FROM a WHERE id BETWEEN 1000 AND 3000 ORDER BY id;
	CREATE TABLE j AS SELECT id, json_object('id', id, 'list', json_array(k, r, t), 'z', NULL) AS doc FROM a WHERE id % 10 = 0;
	CREATE UNIQUE INDEX ji ON j(id);
	SELECT sum(json_extract(doc, '$.list[0]')), count(json_extract(doc, '$.z')) FROM j;
	SELECT j.id, e.key, e.value FROM j, json_each(doc, '$.list') e WHERE j.id < 2000;
	CREATE VIRTUAL TABLE f USING fts5(body);
	INSERT INTO f SELECT t || ' ' || hex(b) FROM a WHERE id % 5 = 0;
	SELECT rowid, highlight(f, 0, '[', ']') FROM f WHERE f MATCH 'row AND 0000*' ORDER BY rank, rowid LIMIT 200;
	CREATE VIRTUAL TABLE g USING rtree(id, x0, x1, y0, y1);
	INSERT INTO g SELECT id, k, k + 3, r, r + 2 FROM a WHERE id % 4 = 0;
	SELECT count(*), sum(id) FROM g WHERE x0 > 1000 AND x1 < 9000 AND y0 BETWEEN 100 AND 30000;
	CREATE TRIGGER tr AFTER UPDATE ON a BEGIN UPDATE j SET doc = json_set(doc, '$.u', new.k) WHERE id = new.id; END;
	BEGIN; UPDATE a SET k = k + 1 WHERE id % 3 = 0; DELETE FROM a WHERE id % 11 = 5; SAVEPOINT s; DELETE FROM j; ROLLBACK TO s; COMMIT;
	SELECT count(*), sum(k) FROM a; SELECT count(*), sum(length(doc)) FROM j;
	SELECT upper(t), replace(t, '0', 'o'), substr(t, 3, 6), instr(t, '/'), round(r, 3), sqrt(k), strftime('%Y-%m-%d %H:%M:%S', id * 3600, 'unixepoch')
	  FROM a WHERE id % 101 = 0;
	EXPLAIN QUERY PLAN SELECT * FROM a WHERE k = 5 AND t > 'row';
	EXPLAIN SELECT a.t, count(*) FROM a JOIN j USING (id) WHERE k BETWEEN 5 AND 50 GROUP BY 1 HAVING count(*) > 0 ORDER BY 2;
	PRAGMA integrity_check;
	VACUUM;
	.mode markdown
	SELECT * FROM a LIMIT 50;
	.mode box
	SELECT id, t, r FROM a WHERE id > 299900;
	.mode json
	SELECT id, t, r FROM a WHERE id > 299900;
	.schema
	.dump j
	END
	(cd "$out" && "$p" -batch t.db "SELEC 1;" >"$out/error" 2>&1) || echo "exit $?" >>"$out/error"
	md5sum <"$out/t.db" >"$out/db.md5"
	rm "$out/t.db"
}

job_python() {
	local p=$1 out=$2 copy
	# python finds its library by the folder of the program.
	copy=$built/python.d/python-under-test
	cp "$p" "$copy.$$" && mv "$copy.$$" "$copy"
	# A cross build gives the file a name of its own.
	[ -z "$TARGET" ] || _PYTHON_SYSCONFIGDATA_NAME=$(basename "$built"/python.d/build/lib*/_sysconfigdata*.py .py)
	[ -z "$TARGET" ] || export _PYTHON_SYSCONFIGDATA_NAME
	# Threads that wait for each other for seconds, and programs that start many others, are not for qemu.
	set -- test_descr test_types test_typing
	[ -n "$TARGET" ] || set -- "$@" test_functools test_ctypes test_exceptions
	(cd "$built/python.d" && "$copy" -m test "$@") \
		>"$out/log" 2>&1 || true
	grep -E '^(Tests result|Result|== Tests result|All [0-9]+ tests)' "$out/log" | sort -u >"$out/result"
	grep -q SUCCESS "$out/result" || { tail -20 "$out/log" >&2; rm -f "$copy"; return 1; }
	rm "$out/log"
	(cd "$built/python.d" && "$copy" -c '
import json, re, decimal, fractions, itertools, collections, dis, ast, pickle, random, hashlib
random.seed(1)
for i in range(300):
    x = [random.random() for _ in range(50)]
    print(hashlib.sha1(repr((sorted(x), sum(x), json.dumps(x), pickle.dumps(x))).encode()).hexdigest())
print(ast.dump(ast.parse(open(dis.__file__).read())))
for n, o in sorted(vars(dis).items()):
    if hasattr(o, "__code__"): print(n, o.__code__.co_code.hex())
print([(t.__name__, sorted(d for d in dir(t))) for t in (int, float, str, bytes, list, dict, set, complex, memoryview)])
') >"$out/script" 2>&1
	rm -f "$copy"
}

# run_job NAME PROGRAM DIR.  Every version runs under one name: a program may print its own.
run_job() {
	local prog kind=${1%%-*} bin
	prog=$(readlink -f "$2")
	mkdir -p "$3" "$built/job/bin"
	bin=$built/job/bin/$kind
	rm -f "$bin"
	if [ -n "$TARGET" ]; then
		printf '#!/bin/sh\nexec qemu-%s -L /usr/%s-linux-gnu -0 "$0" %s "$@"\n' "$TARGET" "$TARGET" "$prog" >"$bin"
		chmod +x "$bin"
	else
		ln -s "$prog" "$bin"
	fi
	"job_$kind" "$bin" "$(cd "$3" && pwd)"
}

now() { date +%s%N; }
since() { local t=$(($(now) - $1)); printf '%d.%02d' $((t / 1000000000)) $((t / 10000000 % 100)); }

# same NAME IN FOLDED...: the number of different versions is added to $bad.
same() {
	local n=$1 in=$2 f t d
	shift 2
	t=$(now)
	d=$work/$n.ref
	rm -rf "$d"
	if ! run_job "$n" "$in" "$d"; then echo "$n: the job fails with the input itself"; bad=$((bad + 1)); return; fi
	echo "$n: input, $(since "$t") s, $(find "$d" -type f | wc -l) files, $(du -sh "$d" | cut -f 1)"
	for f; do
		t=$(now)
		rm -rf "$work/$n.out"
		if ! run_job "$n" "$f" "$work/$n.out"; then
			echo "$n: FAILED: the job fails with $f"; bad=$((bad + 1))
		elif diff -rq "$d" "$work/$n.out" >"$work/$n.diff"; then
			echo "$n: same with $f, $(since "$t") s"
		else
			echo "$n: DIFFERENT with $f"; sed 5q "$work/$n.diff"; bad=$((bad + 1))
		fi
		rm -rf "$work/$n.out"
	done
	rm -rf "$d"
}

work=${ICFOLD_WORK:-}
if [ -z "$work" ]; then work=$(mktemp -d "${TMPDIR:-/tmp}/icfold-corpus.XXXXXX"); trap 'rm -rf "$work"' EXIT; else mkdir -p "$work"; fi
bad=0
case ${1:-} in
-h|--help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit;;
--job) run_job "$2" "$3" "$4"; exit;;
--same) shift; same "$@";;
-*) echo "corpus.sh: unknown option $1" >&2; exit 2;;
*)
	[ $# -gt 0 ] || set -- ninja sqlite
	for n; do
		in=$("$here/corpus.sh" "$n")
		folded=
		for m in ${MODES:-none safe all}; do
			t=$(now)
			# shellcheck disable=SC2086
			if "$icfold" -q --icf="$m" ${ICFOLD_OPTS:-} "$in" -o "$work/$n.$m"; then
				echo "$n: --icf=$m, $(since "$t") s, $(stat -c %s "$in") -> $(stat -c %s "$work/$n.$m") bytes"
				folded="$folded $work/$n.$m"
			else
				echo "$n: FAILED: icfold --icf=$m"; bad=$((bad + 1))
			fi
		done
		# shellcheck disable=SC2086
		same "$n" "$in" $folded
	done;;
esac
[ "$bad" = 0 ] && echo "all the same" || { echo "$bad bad"; exit 1; }
