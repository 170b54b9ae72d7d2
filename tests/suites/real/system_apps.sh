#!/bin/bash
# system_apps.sh: large programs of this machine, folded where they are installed, do real work with the same results.
#
#   system_apps.sh [JOB...]    node sbcl emacs erlang ffmpeg postgresql java mariadb libreoffice firefox chromium; without: all
#   system_apps.sh --install   installs the Debian packages of these jobs
#
# These programs find their parts by fixed paths.  So folded copies are mounted over the installed files, in a mount namespace for
# the job alone.  Each job runs three times: as installed, folded, and folded in place (also if that does not pay).  What it prints,
# and what it leaves in its folder, must be the same.
# A line tells what was folded and how many bytes it saved.  OPTS: more options for the fold (--gc-functions).  FOLD_LIMIT, JOB_LIMIT: seconds for one file, for one job (600, 900).
# Functions of jobs are called by name; in their texts, other programs expand what the shell does not.
# shellcheck disable=SC2317,SC2016,SC2329
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/results.sh
. "$TESTS/lib/results.sh"
all_jobs=(node sbcl emacs erlang ffmpeg postgresql java mariadb libreoffice firefox chromium)
packages="nodejs sbcl emacs-nox erlang-base ffmpeg postgresql postgresql-contrib openjdk-17-jdk-headless mariadb-server mariadb-test
	libreoffice-writer libreoffice-calc libreoffice-draw firefox-esr chromium fonts-dejavu-core util-linux"
FOLD_LIMIT=${FOLD_LIMIT:-600} JOB_LIMIT=${JOB_LIMIT:-900}

if [ "${1:-}" = --install ]; then
	sudo=()
	[ "$(id -u)" = 0 ] || sudo=(sudo)
	# shellcheck disable=SC2086
	exec ${sudo[@]+"${sudo[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages
fi

# --- the jobs: files_NAME prints the files to fold, or says why the job cannot be, and fails; do_NAME works in the folder where it
# stands, in the mount namespace, and writes to the file `bad` there what is wrong without any comparison ------------------------

# installed NAME...: where these programs really are.
installed() {
	local n p
	for n; do
		p=$(PATH=/usr/bin:/bin:/usr/sbin:/sbin command -v "$n") || { echo "$n is not installed"; return 1; }
		realpath "$p"
	done
}
# loaded PATTERN FILE...: the libraries that FILEs load whose paths match.
loaded() {
	local pattern=$1
	shift
	ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | grep -E "$pattern" | sort -u | xargs -r realpath
}

files_node() { installed node && loaded 'lib(node|v8|uv|nghttp2|cares|icu)' "$(realpath "$(command -v node)")"; }
do_node() {
	cat >work.js <<'JS'
const crypto = require('crypto'), zlib = require('zlib'), http = require('http'), vm = require('vm'), assert = require('assert');
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
if (!isMainThread) {
	let x = workerData;
	for (let i = 0; i < 2e6; i++) x = (Math.imul(x, 1103515245) + 12345) >>> 0;
	parentPort.postMessage(x);
} else (async () => {
	const sha = s => crypto.createHash('sha256').update(s).digest('hex');
	console.log(sha('text'), crypto.pbkdf2Sync('a', 'b', 1000, 32, 'sha512').toString('base64'));
	const big = Array.from({ length: 40000 }, (_, i) => ({ id: i, name: 'n' + (i * 7919 % 1009), v: Math.sin(i) }));
	console.log(sha(JSON.stringify(big)), JSON.parse(JSON.stringify(big)).sort((a, b) => a.name < b.name ? -1 : a.name > b.name ? 1 : a.id - b.id)[777]);
	for (const f of ['gzip', 'deflate', 'brotliCompress']) console.log(f, sha(zlib[f + 'Sync'](JSON.stringify(big))));
	console.log((2n ** 521n - 1n) % 1000000007n, (123456789012345678901234567890n ** 9n).toString(36));
	console.log('x1y22z333'.replace(/(?<l>[a-z])(\d+)/g, (m, l, d) => d + l), /(?<=\$)\d+(?!\.)/u.exec('$123')[0], 'Grüße'.normalize('NFD').length);
	console.log(new Intl.NumberFormat('de-DE').format(1234567.891), new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', dateStyle: 'full' }).format(0));
	console.log(await Promise.all([1, 2, 3].map(n => new Promise(r => new Worker(__filename, { workerData: n }).on('message', r)))));
	const wasm = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 6, 1, 96, 1, 126, 1, 126, 3, 2, 1, 0, 7, 7, 1, 3, 102, 97, 99, 0, 0, 10, 23, 1, 21, 0,
		32, 0, 80, 4, 126, 66, 1, 5, 32, 0, 32, 0, 66, 1, 125, 16, 0, 126, 11, 11]);
	console.log((await WebAssembly.instantiate(wasm)).instance.exports.fac(20n));
	console.log(vm.runInNewContext('class A { #p = 3; get q() { return this.#p ** 2 } }; [new A().q, ...function* () { yield* [1, 2] }()].join()'));
	try { null.f(); } catch (e) { console.log(e.message); }
	let deep = 0; (function f() { deep++; f(); }).call === 0 || (() => { try { (function f() { deep++; f(); })(); } catch (e) { console.log(e.constructor.name); } })();
	function hot(n) { let m = new Map(), s = 0; for (let i = 0; i < n; i++) { m.set(i % 997, (m.get(i % 997) || 0) + i * 0.5); s += [i, i + 1].map(x => x & 7)[1]; } return s + m.get(5); }
	console.log(hot(3e6));
	const keys = crypto.createECDH('prime256v1'), other = crypto.createECDH('prime256v1');
	assert(keys.generateKeys() && other.generateKeys() && keys.computeSecret(other.getPublicKey()).equals(other.computeSecret(keys.getPublicKey())));
	const server = http.createServer((q, r) => q.pipe(zlib.createGzip()).pipe(r)).listen(0, '127.0.0.1', () => {
		const q = http.request({ port: server.address().port, method: 'POST' }, r => {
			const h = crypto.createHash('md5'); r.pipe(zlib.createGunzip()).on('data', d => h.update(d)).on('end', () => { console.log(r.statusCode, h.digest('hex')); server.close(); });
		});
		q.end(JSON.stringify(big));
	});
})();
JS
	node work.js >out 2>&1 || echo "status $?" >>bad
	node --jitless work.js 2>&1 | head -n 4 >jitless
	node --expose-gc --max-semi-space-size=1 -e 'let k = []; for (let i = 0; i < 300; i++) { k[i % 50] = Array.from({ length: 5000 }, (_, j) => ({ j, s: "t" + j })); if (i % 100 == 0) gc(); } console.log(k.map(a => a[77].s).join("").length)' >gc 2>&1 || echo "gc: status $?" >>bad
}

files_sbcl() { installed sbcl; }
do_sbcl() {
	cat >work.lisp <<'LISP'
(defstruct node key left right)
(defgeneric area (s)) (defclass square () ((side :initarg :side))) (defclass disc () ((r :initarg :r)))
(defmethod area ((s square)) (expt (slot-value s 'side) 2)) (defmethod area ((s disc)) (* 22/7 (expt (slot-value s 'r) 2)))
(defun add (n k) (cond ((null n) (make-node :key k)) ((< k (node-key n)) (setf (node-left n) (add (node-left n) k)) n) (t (setf (node-right n) (add (node-right n) k)) n)))
(defun walk (n) (if n (+ (walk (node-left n)) (* 3 (node-key n)) (walk (node-right n))) 0))
(defun main ()
  (let ((tree nil) (x 1)) (dotimes (i 20000) (setf x (mod (+ (* x 1103515245) 12345) 2147483648) tree (add tree x))) (print (walk tree)))
  (print (mapcar #'area (list (make-instance 'square :side 3/2) (make-instance 'disc :r 7))))
  (print (mod (expt 7 4001) (1- (expt 2 127)))) (print (isqrt (expt 10 101))) (print (list (sqrt -2d0) (exp 1d0) (/ 1 3f0)))
  (let ((h (make-hash-table :test 'equal))) (dotimes (i 30000) (incf (gethash (format nil "k~a" (mod (* i 7919) 101)) h 0) i)) (print (gethash "k77" h)))
  (dotimes (i 20) (let ((l (loop for j below 100000 collect (cons j (format nil "~r" (mod j 13)))))) (when (= i 19) (print (length l)))))
  (sb-ext:gc :full t)
  (print (handler-case (error "an ~a" 'error) (error (c) (princ-to-string c))))
  (print (handler-case (/ 1 (- (length (list 1)) 1)) (division-by-zero () :zero)))
  (print (handler-case (labels ((f (n) (+ 1 (f (1+ n))))) (f 0)) (storage-condition () :deep)))
  (print (handler-case (funcall (compile nil '(lambda (x) (declare (optimize (safety 3))) (car x))) 3) (type-error () :type)))
  #+sb-thread (print (mapcar #'sb-thread:join-thread (loop for i below 4 collect (let ((i i)) (sb-thread:make-thread (lambda () (reduce #'+ (loop for k below 50000 collect (* i k)))))))))
  (print (with-output-to-string (s) (sb-ext:run-program "/bin/echo" '("from a program") :output s)))
  (print (map 'list #'char-code (sb-ext:octets-to-string (sb-ext:string-to-octets "aäö€" :external-format :utf-8) :external-format :utf-8)))
  (terpri))
LISP
	sbcl --noinform --non-interactive --no-sysinit --no-userinit --eval '(compile-file "work.lisp")' --load work.fasl --eval '(main)' 2>&1 |
		grep -vE '^; (compil|wrote)|0:00:0|Control stack|WARNING|INFO|recommended|error' >out
	sbcl --noinform --non-interactive --no-sysinit --no-userinit --load work.fasl --eval '(save-lisp-and-die "image" :executable t :toplevel (lambda () (main) (exit)))' >saved.log 2>&1
	./image >image.out 2>&1 || echo "image: status $?" >>bad
	grep -q ':DEEP' out && grep -q 29997 out || grep -q ':ZERO' out || echo "not all was done" >>bad
	rm -f image saved.log work.fasl
}

files_emacs() { installed emacs && find /usr/lib/emacs -name '*.eln' -path '*/preloaded/*' | programs; }
do_emacs() {
	cat >work.el <<'EL'
;;; -*- lexical-binding: t -*-
(require 'cl-lib) (require 'calc) (require 'json) (require 'subr-x)
(defun work-fib (n) (if (< n 2) n (+ (work-fib (- n 1)) (work-fib (- n 2)))))
(defun work ()
  (dolist (e (list (work-fib 20) (expt 3 200) (calc-eval "deriv(sin(x)^3, x)") (calc-eval "200!") (format "%.10g %S" (exp 1.5) '(a . [b "c"]))
                   (secure-hash 'sha256 "text") (md5 (make-string 100000 ?x)) (json-encode '((a . 1) (b . [1 2 3])))
                   (with-temp-buffer
                     (dotimes (i 3000) (insert (format "line %d %s\n" i (make-string (% i 7) ?z))))
                     (goto-char (point-min))
                     (while (re-search-forward "\\(line\\) \\([0-9]+\\) \\(z*\\)$" nil t) (replace-match "\\2:\\3-\\1"))
                     (sort-lines t (point-min) (point-max)) (let ((s (buffer-hash))) (undo-boundary) s))
                   (condition-case e (car 3) (error e)) (condition-case e (let ((max-lisp-eval-depth 300)) (work-fib-deep 0)) (error (car e)))
                   (decode-coding-string (encode-coding-string "äö€" 'utf-16) 'utf-16) (string-trim (shell-command-to-string "echo from a program"))
                   (let ((h (make-hash-table :test 'equal))) (dotimes (i 20000) (cl-incf (gethash (number-to-string (% i 101)) h 0) i)) (gethash "77" h))))
    (princ (format "%s\n" e)))
  (with-temp-buffer
    (insert "int f(int x)\n{\nif (x)\n{\nreturn x;\n}\nreturn 0;\n}\n") (c-mode) (indent-region (point-min) (point-max)) (font-lock-ensure)
    (princ (buffer-string)) (princ (get-text-property 1 'face)))
  (garbage-collect)
  (with-temp-buffer
    (insert "* Head\n| a | b |\n|---+---|\n| 1 | 2 |\n** Sub\n- x /y/ *z*\n") (org-mode) (princ (org-export-as 'ascii nil nil t)) (princ (org-export-as 'html nil nil t))))
(defun work-fib-deep (n) (+ 1 (work-fib-deep (1+ n))))
(require 'org) (require 'ox-ascii) (require 'ox-html)
EL
	emacs -Q --batch --eval '(setq native-comp-deferred-compilation nil)' --eval '(byte-compile-file "work.el")' >compile 2>&1
	emacs -Q --batch -l work.elc --eval '(work)' 2>&1 | sed -E 's/org[0-9a-f]{7}/ORG/g' >out
	grep -q 6765 out && grep -q '<table' out || echo "not all was done: $(tail -n 1 out)" >>bad
	rm -f work.elc
}

files_erlang() {
	installed erl >/dev/null || { echo "erl is not installed"; return 1; }
	local root
	root=$(dirname "$(dirname "$(realpath "$(command -v erl)")")")
	find "$root" -type f \( -path '*/bin/*' -o -name '*.so' \) | programs
}
do_erlang() {
	cat >work.erl <<'ERL'
-module(work).
-export([main/0, ring/2]).
ring(0, Next) -> Next ! done;
ring(N, Next) -> receive done -> Next ! done; X -> Next ! X + 1, ring(N - 1, Next) end.
fact(0) -> 1; fact(N) -> N * fact(N - 1).
main() ->
	io:format("~p~n~p~n", [fact(200) rem 1000000007, erlang:md5(integer_to_binary(fact(3000)))]),
	T = ets:new(t, [ordered_set, public]),
	Self = self(),
	[spawn(fun() -> [ets:insert(T, {{I, K}, K * K rem (I + 7)}) || K <- lists:seq(1, 3000)], Self ! {did, I} end) || I <- lists:seq(1, 8)],
	[receive {did, I} -> ok end || I <- lists:seq(1, 8)],
	io:format("~p ~p~n", [ets:info(T, size), ets:foldl(fun({_, V}, A) -> A + V end, 0, T)]),
	Last = lists:foldl(fun(_, P) -> spawn(?MODULE, ring, [50, P]) end, self(), lists:seq(1, 1000)),
	Last ! 0, receive V -> io:format("~p~n", [V]) end,
	L = [(X * 1103515245 + 12345) rem 65537 || X <- lists:seq(1, 100000)],
	io:format("~p~n", [erlang:phash2(lists:sort(L))]),
	B = term_to_binary({L, #{a => 1.5, "b" => <<1:3, 5:5>>}}, [compressed]),
	io:format("~p ~p~n", [erlang:crc32(B), binary_to_term(B) =:= {L, #{a => 1.5, "b" => <<1:3, 5:5>>}}]),
	io:format("~p~n", [re:run("x12y345", "([a-z])(\\d+)", [global, {capture, all, list}])]),
	io:format("~p~n", [catch erlang:error(badarg)] -- [x]) , io:format("~.6f ~w ~ts~n", [math:pow(2, 0.5), 1 / 3, [228, 8364]]),
	{ok, S} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]), {ok, P} = inet:port(S),
	spawn(fun() -> {ok, C} = gen_tcp:connect({127, 0, 0, 1}, P, [binary]), gen_tcp:send(C, zlib:gzip(B)), gen_tcp:close(C) end),
	{ok, A} = gen_tcp:accept(S), io:format("~p~n", [erlang:md5(zlib:gunzip(all(A, <<>>)))]),
	io:format("~s", [os:cmd("echo from a program")]),
	try lists:nth(5, [1]) catch C1:E -> io:format("~p ~p~n", [C1, E]) end,
	garbage_collect().
all(A, Acc) -> case gen_tcp:recv(A, 0) of {ok, D} -> all(A, <<Acc/binary, D/binary>>); _ -> Acc end.
ERL
	erlc +deterministic work.erl >compile 2>&1 || echo "erlc: status $?" >>bad
	erl -noshell -eval 'work:main(), halt().' 2>&1 | sed -E 's/<[0-9]+\.[0-9]+\.[0-9]+>/PID/g' >out
	erl -noshell +S 1 -eval 'io:format("~p~n", [lists:sum(lists:seq(1, 1000000))]), halt(3).' >one 2>&1
	echo "status $?" >>one
	grep -q 'from a program' out || echo "not all was done: $(tail -n 1 out)" >>bad
}

files_ffmpeg() {
	installed ffmpeg ffprobe || return
	loaded '/lib(av|sw|postproc|x26|vpx|mp3lame|opus|vorbis|theora|aom|dav1d|SvtAv1|webp|speex|twolame|openjp2|xvid|zimg)' /usr/bin/ffmpeg
}
do_ffmpeg() {
	local c v="testsrc2=size=320x240:rate=25:duration=2" a="sine=frequency=440:sample_rate=44100:duration=2"
	one() { ffmpeg -nostdin -v error -threads 1 -bitexact "$@"; }
	for c in mpeg4 mpeg2video mjpeg ffv1 libx264 libvpx libvpx-vp9 libx265 libtheora huffyuv prores libaom-av1 libsvtav1; do
		ffmpeg -v quiet -encoders | grep -q " $c " || continue
		case $c in libaom-av1 | libsvtav1 | libvpx-vp9) v="testsrc2=size=160x120:rate=10:duration=0.6" ;; esac
		one -f lavfi -i "$v" -c:v "$c" -threads 1 -x265-params log-level=error -fflags +bitexact -flags:v +bitexact "$c.mkv" 2>"$c.err"
		one -i "$c.mkv" -f framemd5 "$c.frames" 2>>"$c.err"
		sed -i -E 's/ @ 0x[0-9a-f]+//; /^Svt\[/d' "$c.err"
	done
	for c in aac flac libmp3lame libopus libvorbis ac3 mp2 wavpack alac; do
		ffmpeg -v quiet -encoders | grep -q " $c " || continue
		one -f lavfi -i "$a" -c:a "$c" -fflags +bitexact -flags:a +bitexact "$c.mka" 2>"$c.err"
		one -i "$c.mka" -f md5 "$c.md5" 2>>"$c.err"
		sed -i -E 's/ @ 0x[0-9a-f]+//' "$c.err"
	done
	one -f lavfi -i "testsrc2=size=320x240:rate=25:duration=2" -vf "scale=200:150:flags=lanczos,hue=h=40,unsharp,rotate=0.3,format=yuv420p,yadif,eq=contrast=1.2" -f framemd5 filters >filters.err 2>&1
	one -f lavfi -i "$a" -af "aresample=48000,aecho,equalizer=f=1000:width_type=o:width=2:g=6,volume=0.5,atempo=1.3" -f md5 sound >sound.err 2>&1
	ffprobe -v error -show_streams -show_format -of json mpeg4.mkv >probe 2>&1
	[ "$(find . -name '*.frames' -size +100c | wc -l)" -ge 4 ] && [ -s filters ] || echo "nothing decoded: $(head -n 2 mpeg4.err | tr '\n' ' ')" >>bad
	sha256sum ./*.mk[av] >sums && rm -f ./*.mk[av]
}

pg_folder() { find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1; }
files_postgresql() {
	local d
	d=$(pg_folder)
	[ -x "$d/initdb" ] || { echo "PostgreSQL is not installed"; return 1; }
	[ "$(id -u)" = 0 ] && id postgres >/dev/null 2>&1 || { echo "the server wants another user than root, and root to become it"; return 1; }
	{ printf '%s\n' "$d"/*; find "$d/../lib" -maxdepth 1 -name '*.so'; loaded 'libpq' "$d/psql"; } | programs
}
do_postgresql() {
	local d data=/var/lib/postgresql/data
	d=$(pg_folder)
	mount -t tmpfs -o mode=755 tmpfs /var/lib/postgresql && chown postgres /var/lib/postgresql || { echo "no place for the data" >bad; return; }
	as() { (cd / && PATH=$d:$PATH HOME=/var/lib/postgresql PGHOST=/var/lib/postgresql PGDATABASE=postgres PGUSER=postgres setpriv --reuid=postgres --regid=postgres --clear-groups "$@"); }
	as initdb -D $data -A trust --locale=C -E UTF8 --data-checksums >init 2>&1 || echo "initdb: $(tail -n 1 init)" >>bad
	run() { as pg_ctl -w -D $data -l /var/lib/postgresql/log -o "-c listen_addresses='' -c unix_socket_directories=/var/lib/postgresql -c fsync=off" "$@" >>ctl 2>&1 || echo "pg_ctl $1: $(tail -n 1 /var/lib/postgresql/log)" >>bad; }
	run start
	cat >work.sql <<'SQL'
create extension hstore; create extension pg_trgm; create extension btree_gist; create extension pgcrypto; create extension amcheck;
create extension citext; create extension ltree; create extension intarray; create extension fuzzystrmatch; create extension tablefunc;
create table t (id serial primary key, k int, name text, d numeric, ts timestamp, j jsonb, tags text[], h hstore);
insert into t (k, name, d, ts, j, tags, h) select i % 97, 'name ' || md5(i::text), i / 7.0, timestamp '2020-01-01' + i * interval '1 hour',
  jsonb_build_object('a', i, 'b', array[i, i + 1]), array['x' || i % 5, 'y'], hstore('k', (i % 11)::text) from generate_series(1, 20000) i;
create index on t (k, name); create index on t using gin (name gin_trgm_ops); create index on t using gin (j); create index on t using gist (ts, k);
create index on t using hash (name); create index on t using brin (ts); create index on t using gin (tags); analyze t;
select k, count(*), sum(d)::numeric(20, 4), max(name), avg((j->>'a')::int)::int from t group by k order by k limit 9;
select id from t where name % 'name 1234567890' order by similarity(name, 'name 1234567890') desc, id limit 5; select count(*) from t where j @> '{"a": 77}';
select id, rank() over w, lag(d) over w from t where k = 5 window w as (partition by tags order by d desc) order by id limit 6;
with recursive f(a, b, n) as (select 0::numeric, 1::numeric, 0 union all select b, a + b, n + 1 from f where n < 300) select max(a) from f;
explain (costs off) select * from t a join t b on a.k = b.id left join lateral (select count(*) from t c where c.k = b.k) x on true where a.name like 'name a%';
set max_parallel_workers_per_gather = 2; set parallel_setup_cost = 0; set parallel_tuple_cost = 0; set min_parallel_table_scan_size = 0;
select count(*), sum(a.k) from t a join t b using (k) where a.id % 10 = 0 and b.id % 10 = 0;
set jit_above_cost = 0; set jit_inline_above_cost = 0; set jit_optimize_above_cost = 0; select sum(k * 3 + length(name)) from t where d > 100;
create function f(n int) returns text language plpgsql as $$ declare r text := ''; begin for i in 1 .. n loop begin
  if i % 3 = 0 then raise division_by_zero; end if; r := r || i; exception when division_by_zero then r := r || 'x'; end; end loop; return r; end $$;
select f(20), encode(digest('text', 'sha256'), 'hex'), levenshtein('kitten', 'sitting'), 'Top.A.B'::ltree <@ 'Top', regexp_replace('a1b2', '\d', '#', 'g');
select to_tsvector('english', 'the quick brown foxes were jumping') @@ to_tsquery('jump & fox'), xmlelement(name a, 'b'), '[1,5)'::int4range * '[3,9)';
create function trg() returns trigger language plpgsql as $$ begin new.name := upper(new.name); return new; end $$;
create trigger g before update on t for each row execute function trg(); update t set d = d + 1 where k < 3; delete from t where k = 4; vacuum t;
begin; savepoint a; insert into t (k) select 1 / 0; rollback to a; select count(*) from t; commit;
select bt_index_check(c.oid, true) from pg_class c where relname in ('t_pkey', 't_k_name_idx'); select 1 / 0; select nothing;
SQL
	as psql -X -a -q <work.sql >out 2>&1
	as pgbench -i -q -s 1 >/dev/null 2>&1 || echo "pgbench -i fails" >>bad
	as pgbench -n -c 1 -t 300 --random-seed=7 >bench 2>&1 || echo "pgbench: $(tail -n 1 bench)" >>bad
	as psql -X -A -t -c 'select sum(abalance), (select sum(tbalance) from pgbench_tellers), (select sum(delta) from pgbench_history) from pgbench_accounts' >balance 2>&1
	as pgbench -n -c 4 -j 2 -t 200 -M prepared --random-seed=7 >bench 2>&1 || echo "pgbench: $(tail -n 1 bench)" >>bad
	run stop -m immediate # what it did must be found again in its log
	run start
	as psql -X -A -t -c 'select (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history), count(*) from pgbench_history' >again 2>&1
	as pg_dump -t t --no-owner 2>&1 | sed '/^.\(un\)*restrict /d' >dump
	as pg_amcheck -a --heapallindexed >amcheck 2>&1 || echo "pg_amcheck: $(head -n 1 amcheck)" >>bad
	run stop
	as pg_checksums -D $data -c >checksums 2>&1 || echo "pg_checksums: $(tail -n 1 checksums)" >>bad
	grep -q 't|1100' again && [ "$(wc -l <dump)" -gt 15000 ] || echo "not all was done: $(cat again)" >>bad
	sed -i '/scanned/d' checksums
	rm -f bench ctl init
}

java_folder() { dirname "$(dirname "$(realpath "$(command -v javac)")")"; }
files_java() {
	installed java javac >/dev/null || { echo "java or javac is not installed"; return 1; }
	find "$(java_folder)" -type f \( -name '*.so' -o -path '*/bin/*' -o -name jspawnhelper \) | programs
}
do_java() {
	cat >Work.java <<'JAVA'
import java.math.*; import java.nio.file.*; import java.security.*; import java.util.*; import java.util.concurrent.*; import java.util.regex.*; import java.util.stream.*; import java.util.zip.*;
public class Work {
	interface Shape { double area(); }
	record Square(double s) implements Shape { public double area() { return s * s; } }
	record Disc(double r) implements Shape { public double area() { return Math.PI * r * r; } }
	static int depth; static void deep() { depth++; deep(); }
	static long churn(int n) { Object[] keep = new Object[500]; long s = 0; for (int i = 0; i < n; i++) { byte[] b = new byte[64 + i % 3000]; b[3] = (byte) i; keep[(i * 31) % 500] = b; s += b[3]; } for (Object o : keep) if (o != null) s += ((byte[]) o).length; return s; }
	static String hex(byte[] b) { return new BigInteger(1, b).toString(16); }
	public static void main(String[] a) throws Exception {
		System.out.println(churn(600000));
		List<Shape> l = IntStream.range(0, 5000).mapToObj(i -> i % 2 == 0 ? (Shape) new Square(i) : new Disc(i)).collect(Collectors.toList());
		System.out.printf("%.4f %s%n", l.stream().mapToDouble(Shape::area).sum(), l.get(7));
		Map<String, Integer> m = new TreeMap<>(); for (int i = 0; i < 100000; i++) m.merge("k" + i * 7919 % 1009, i, (x, y) -> x * 31 + y); System.out.println(m.hashCode());
		System.out.println(new BigInteger("7").modPow(BigInteger.TEN.pow(40), BigInteger.TWO.pow(521).subtract(BigInteger.ONE)).toString(36) + new BigDecimal(1).divide(new BigDecimal(7), 60, RoundingMode.HALF_EVEN));
		System.out.println(hex(MessageDigest.getInstance("SHA-256").digest(m.toString().getBytes("UTF-8"))));
		CRC32 c = new CRC32(); Deflater d = new Deflater(); d.setInput(m.toString().getBytes()); d.finish(); byte[] z = new byte[1 << 20]; c.update(z, 0, d.deflate(z)); System.out.println(c.getValue());
		try { String s = a.length == 9 ? "" : null; s.length(); } catch (NullPointerException e) { System.out.println(e.getStackTrace()[0]); }
		try { deep(); } catch (StackOverflowError e) { System.out.println("deep " + (depth > 1000)); }
		try { long[][] x = new long[1000][]; for (int i = 0; i < 1000; i++) x[i] = new long[1 << 20]; } catch (OutOfMemoryError e) { System.out.println("no memory"); }
		try { Object o = "x"; System.out.println((Integer) o); } catch (ClassCastException e) { System.out.println("cast"); }
		try { System.out.println(1 / (a.length - a.length)); } catch (ArithmeticException e) { System.out.println(e.getMessage()); }
		ExecutorService x = Executors.newFixedThreadPool(4); List<Future<Long>> f = new ArrayList<>(); for (int i = 0; i < 8; i++) { final int k = i; f.add(x.submit(() -> churn(50000 + k))); } for (Future<Long> g : f) System.out.print(g.get() + " "); x.shutdown();
		Matcher r = Pattern.compile("(?<w>[a-z]+)(\\d+)").matcher("ab12 cd345"); while (r.find()) System.out.print(r.group("w") + r.group(2).length() + " ");
		System.out.println(String.format(Locale.GERMANY, "%,.2f", 1234567.891) + " " + java.time.LocalDate.of(2024, 2, 29).plusYears(1).getDayOfWeek() + " " + "Grüße".toUpperCase());
		System.out.println(Work.class.getDeclaredMethod("churn", int.class).invoke(null, 100)); synchronized (m) { m.wait(5); }
		Path p = Paths.get("file"); Files.write(p, m.toString().getBytes()); System.out.println(Files.size(p)); Files.delete(p);
		System.out.println(new String(new ProcessBuilder("echo", "from a program").start().getInputStream().readAllBytes()).trim());
	}
}
JAVA
	javac -encoding UTF-8 Work.java >compile 2>&1 || echo "javac: status $?" >>bad
	local o
	for o in -XX:+UseSerialGC -XX:+UseG1GC -XX:+UseParallelGC -XX:+UseZGC -XX:+UseShenandoahGC -Xint -XX:TieredStopAtLevel=1 -Xshare:off -Xcomp; do
		case $o in -XX:+Use*) java "$o" -version >/dev/null 2>&1 || continue ;; esac
		java "$o" -Xmx192m -XX:-UsePerfData Work >"out$o" 2>&1 || echo "java $o: status $?" >>bad
	done
	java -Xlog:gc:file=gc.log -Xmx64m -XX:+UseG1GC -version >version 2>&1
	jar cf work.jar ./*.class >jar 2>&1 && jar tf work.jar >>jar 2>&1
	java -cp work.jar Work 2>&1 | head -n 3 >fromjar
	javap -c -p Work >javap 2>&1
	grep -q 'from a program' out-XX:+UseSerialGC || echo "not all was done: $(tail -n 1 out-XX:+UseSerialGC)" >>bad
	rm -f work.jar gc.log
}

files_mariadb() {
	installed mariadbd mariadb mariadb-dump mariadb-admin >/dev/null || { echo "MariaDB is not installed"; return 1; }
	[ -e /usr/share/mysql/mysql-test/mtr ] || { echo "MariaDB's tests are not installed"; return 1; }
	installed mariadbd mariadb mariadb-dump mariadb-admin mariadb-test mariadb-check mariadb-binlog my_print_defaults aria_chk myisamchk
	find /usr/lib/mysql/plugin -name '*.so' | programs
	loaded 'libmariadb' "$(command -v mariadb)"
}
do_mariadb() {
	local all=/usr/share/mysql/mysql-test v=/run/mysqld tests
	mkdir -p $v && mount -t tmpfs -o mode=777 tmpfs $v || { echo "no place for the data" >bad; return; }
	tests=$(cd $all/main && for t in $MARIADB_TESTS; do [ -e "$t.test" ] && echo "main.$t"; done)
	# shellcheck disable=SC2086
	(cd $all && ./mtr --vardir=$v/var --force --max-test-fail=0 --retry=0 --parallel=2 --suite-timeout=10 --user=root $tests) >log 2>&1
	sed -nE 's/^(main\.[^ ]+ .*\[ (pass|fail|skipped|disabled) \]).*/\1/p' log | sed -E 's/ w[0-9]+ / /; s/ +/ /g' | sort >results
	grep -A 12 'CURRENT_TEST' log | head -n 60 >failures
	[ "$(grep -c 'pass' results)" -ge 20 ] || echo "not all was done: $(tail -n 2 log | tr '\n' ' ')" >>bad
	rm -f log
}
MARIADB_TESTS="1st alias alter_table analyze auto_increment bigint binary bool brackets case cast check_constraint compare concat count_distinct
	create cte_nonrecursive cte_recursive ctype_latin1 ctype_ucs ctype_utf8 date_formats delete derived distinct empty_table explain flush
	func_concat func_crypt func_date_add func_default func_digest func_group func_if func_in func_json func_like func_math func_regexp func_str
	func_time gis group_by group_min_max having insert insert_select intersect join join_outer key limit loaddata lock merge multi_update null
	order_by partition ps range select sp subselect trigger type_datetime type_decimal type_float type_newdecimal union update variables view
	win win_lead_lag window_functions xml"

files_libreoffice() {
	installed soffice >/dev/null || { echo "LibreOffice is not installed"; return 1; }
	local d
	d=$(dirname "$(realpath "$(command -v soffice)")")
	find "$d" -maxdepth 1 -type f | programs
}
do_libreoffice() {
	python3 - <<'PY'
rows = "".join("%d,name %d,%.3f,=A%d*2+SUM(A1:A%d)\n" % (i, i * 7919 % 101, i / 7, i, i) for i in range(1, 200))
open("table.csv", "w").write(rows)
body = "".join("<h%d>Head %d</h%d><p>Some <b>bold</b>, <i>slanted</i> and plain text, number %d. %s</p>" % (1 + i % 3, i, 1 + i % 3, i, "word " * (i * 13 % 90)) for i in range(60))
table = "<table border=1>" + "".join("<tr>" + "".join("<td>%d</td>" % (r * c) for c in range(6)) + "</tr>" for r in range(12)) + "</table>"
open("text.html", "w").write("<html><head><title>T</title></head><body>" + body + table + "<ul><li>one<li>two</ul></body></html>")
head = '<?xml version="1.0" encoding="UTF-8"?><office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.%s"><office:body>'
open("flat.fodt", "w").write(head % "text" + "<office:text>" + "".join("<text:h text:outline-level='%d'>Part %d</text:h><text:p>Paragraph %d %s</text:p>" % (1 + i % 4, i, i, "long " * (i * 7 % 50)) for i in range(80)) + "</office:text></office:body></office:document>")
cell = '<table:table-cell table:formula="of:=%s" office:value-type="float"/>'
open("sheet.fods", "w").write(head % "spreadsheet" + '<office:spreadsheet><table:table table:name="S">' + "".join("<table:table-row><table:table-cell office:value-type='float' office:value='%d'/>" % i + cell % "[.A1]*3+SIN([.A1])" + cell % "STDEV([.A1:.A9])" + cell % "VLOOKUP(3;[.A1:.B9];2;0)" + "</table:table-row>" for i in range(1, 40)) + "</table:table></office:spreadsheet></office:body></office:document>")
PY
	convert() { # TO FILE...
		timeout 150 soffice --headless --norestore "-env:UserInstallation=file://$WORK/home/office" --convert-to "$1" --outdir made "${@:2}" >>log 2>&1 || echo "$1 of ${*:2}: status $?" >>bad
	}
	convert pdf text.html flat.fodt
	convert odt:writer8 text.html
	convert ods table.csv
	convert txt:Text made/text.odt flat.fodt
	convert docx:"MS Word 2007 XML" made/text.odt flat.fodt
	convert rtf flat.fodt
	convert csv sheet.fods
	convert xlsx made/table.ods
	convert pdf made/table.ods
	convert png made/text.odt
	# Times and random numbers are left out.
	python3 - <<'PY'
import glob, hashlib, re, zipfile
out = open("sums", "w")
for f in sorted(glob.glob("made/*")):
    if f.endswith(".pdf"):
        # The order of the fonts depends on their addresses in memory, so the streams are compared in any order.
        b = b"".join(sorted(re.findall(rb"stream\n.*?\nendstream", open(f, "rb").read(), flags=re.S)))
        open(f, "wb").write(b)
        parts = [("", b)]
    elif zipfile.is_zipfile(f):
        parts = [(n, zipfile.ZipFile(f).read(n)) for n in sorted(zipfile.ZipFile(f).namelist())]
        parts = [(n, re.sub(rb"\d{4}-\d\d-\d\dT[\d:.]+Z?|PT[\dHMS.]+|<config:config-item config:name=.Rsid.*?>\d+<", b"", b)) for n, b in parts]
    else:
        parts = [("", re.sub(rb"\\(creatim|revtim|printim)[^}]*|\\rsid\w*", b"", open(f, "rb").read()))]
    for n, b in parts:
        out.write("%s %s %d %s\n" % (f, n, len(b), hashlib.sha256(b).hexdigest()))
PY
	[ "$(find made -type f | wc -l)" -ge 11 ] || echo "not all was converted: $(find made -type f | tr '\n' ' ') $(tail -n 1 log)" >>bad
	rm -rf log made/*.od[ts] made/*.docx made/*.xlsx made/*.rtf
}

page() {
	cat >page.html <<'HTML'
<!DOCTYPE html><html><head><meta charset="utf-8"><style>
body { font: 16px "DejaVu Sans", sans-serif; background: linear-gradient(45deg, #fde, #def) } .g { display: grid; grid-template-columns: repeat(4, 1fr); gap: 6px }
.g div { border-radius: 9px; background: hsl(calc(var(--n) * 40), 70%, 70%); padding: 6px; box-shadow: 2px 3px 4px #0008; transform: rotate(calc(var(--n) * 1deg)) }
</style></head><body><h1>A page</h1><p id="t">text</p><div class="g" id="g"></div><canvas id="c" width="300" height="120"></canvas>
<svg width="200" height="120"><circle cx="60" cy="60" r="50" fill="teal" stroke="#222" stroke-width="4"/><path d="M10 80 C 40 10, 65 10, 95 80 S 150 150, 180 80" stroke="red" fill="none"/><text x="90" y="60">svg &#228;</text></svg>
<table border="1"><tr><td>1<td>two</tr><tr><td colspan="2">wide</tr></table><script>
let o = []; for (let i = 0; i < 12; i++) { const d = document.createElement('div'); d.style.setProperty('--n', i); d.textContent = 'cell ' + (i * 7919 % 101); g.append(d); }
const f = n => n < 2 ? n : f(n - 1) + f(n - 2); o.push(f(24), (3n ** 99n).toString(36), 'x1y2'.replace(/\d/g, d => d * 2), JSON.stringify({ a: [1, { b: null }] }));
o.push(new Date(0).toISOString(), [3, 1, 2].toSorted?.().join(), Math.hypot(3, 4), btoa('text'), new Intl.NumberFormat('de').format(12345.6)); t.textContent = o.join(' | ');
const k = c.getContext('2d'); for (let i = 0; i < 30; i++) { k.fillStyle = `hsl(${i * 12}, 80%, 50%)`; k.beginPath(); k.arc(10 + i * 9, 60 + 40 * Math.sin(i / 3), 9, 0, 7); k.fill(); } k.font = '20px DejaVu Sans'; k.fillText('canvas', 90, 110);
</script></body></html>
HTML
}
files_firefox() {
	local p
	p=$(PATH=/usr/bin command -v firefox-esr || PATH=/usr/bin command -v firefox) || { echo "Firefox is not installed"; return 1; }
	p=$(dirname "$(realpath "$p")")
	[ -e "$p/libxul.so" ] || p=$(dirname "$(find /usr/lib /opt -maxdepth 3 -name libxul.so 2>/dev/null | head -n 1)")
	[ -e "$p/libxul.so" ] || { echo "Firefox has no libxul.so"; return 1; }
	find "$p" -type f | programs
}
do_firefox() {
	local p
	p=$(command -v firefox-esr || command -v firefox)
	page
	mkdir "$WORK/home/profile"
	MOZ_HEADLESS=1 timeout 200 "$p" --headless --no-remote --profile "$WORK/home/profile" --window-size=900,700 --screenshot "$PWD/page.png" "file://$PWD/page.html" >"$WORK/home/log" 2>&1
	[ -s page.png ] || echo "no picture: $(tail -n 1 "$WORK/home/log")" >>bad
}
files_chromium() {
	local p
	installed chromium >/dev/null || { echo "Chromium is not installed"; return 1; }
	for p in /usr/lib/chromium /opt/google/chrome; do [ -d $p ] && find $p -type f | programs && return; done
	echo "Chromium's files are not known"
	return 1
}
do_chromium() {
	page
	local o=(--headless --no-sandbox --disable-gpu --hide-scrollbars --disable-dev-shm-usage "--user-data-dir=$WORK/home/profile" "--window-size=900,700")
	timeout 200 chromium "${o[@]}" --screenshot="$PWD/page.png" "file://$PWD/page.html" >"$WORK/home/log" 2>&1
	timeout 200 chromium "${o[@]}" --dump-dom "file://$PWD/page.html" 2>/dev/null >dom
	[ -s page.png ] && grep -q 46368 dom || echo "no picture: $(tail -n 1 "$WORK/home/log")" >>bad
}

# --- the rest --------------------------------------------------------------------------------------------------------------------

# programs: of the paths on standard input, those that are 64-bit x86-64 programs or libraries, each once, by its real path.
programs() {
	local f
	xargs -r -d '\n' realpath | sort -u | while read -r f; do
		[ -f "$f" ] && head -c 20 "$f" | od -A n -v -t x1 | tr -d ' \n' | grep -qE '^7f454c460201.{20}0[23]003e00$' && echo "$f"
	done
	true
}

if [ "${1:-}" = --inside ]; then # JOB, in its namespace; WORK and MOUNTS are the caller's
	export TZ=UTC HOME=$WORK/home XDG_RUNTIME_DIR=$WORK/home
	while IFS=$'\t' read -r from to; do mount --bind "$from" "$to" || { echo "cannot mount over $to" >"$WORK/run/bad"; exit; }; done <"$MOUNTS"
	cd "$WORK/run" && "do_$2"
	exit
fi

need_tool apps
make_work
chmod 755 "$WORK"
jobs=("$@")
[ $# = 0 ] && jobs=("${all_jobs[@]}")
apart=(unshare -m -p -f --mount-proc --kill-child --propagation private)
if [ "$(id -u)" != 0 ] || ! "${apart[@]}" true 2>/dev/null; then
	for job in "${jobs[@]}"; do skip "apps/$job" "needs root and unshare, for mounts of its own"; done
	finish
fi

fold_one() { # IN OUT OPTION...: what is wrong with it goes to OUT.no
	timeout "$FOLD_LIMIT" "$ICFOLD" -q "${@:3}" "$1" -o "$2" 2>"$2.no"
}
# fold_all VARIANT FILE...: folds them, each once for all jobs, lists "FOLDED PATH" in $WORK/mounts, and prints what became of them;
# fails when none is another than before.
fold_all() {
	local variant=$1 f n out opts=() folded=0 paid=0 same=0 refused=0 saved=0 ms t=${EPOCHREALTIME/[.,]/}
	shift
	read -ra opts <<<"${OPTS:-}"
	[ "$variant" = in-place ] && opts+=(--in-place --allow-growth)
	: >"$WORK/mounts"
	: >"$WORK/refused"
	for f; do
		out=$WORK/$variant$f
		if [ ! -e "$out" ] && [ ! -e "$out.no" ]; then
			mkdir -p "${out%/*}"
			fold_one "$f" "$out" ${opts[@]+"${opts[@]}"} && { ! cmp -s "$f" "$out" || fold_one "$f" "$out" --allow-growth; }
			case $? in
			0) rm -f "$out.no" && chmod --reference="$f" "$out" && chown --reference="$f" "$out" ;;
			1) rm -f "$out" ;;
			124) rm -f "$out" && echo "$f: more than $FOLD_LIMIT seconds to fold" >>"$WORK/crashed" ;;
			*) rm -f "$out" && echo "$f: the fold fails: $(tail -n 1 "$out.no")" >>"$WORK/crashed" ;;
			esac
		fi
		if [ ! -e "$out" ]; then
			refused=$((refused + 1))
			head -n 1 "$out.no" >>"$WORK/refused"
		elif cmp -s "$f" "$out"; then
			same=$((same + 1))
		else
			folded=$((folded + 1)) n=$(($(file_bytes "$f") - $(file_bytes "$out")))
			[ $n -gt 0 ] && paid=$((paid + 1)) saved=$((saved + n))
			printf '%s\t%s\n' "$out" "$f" >>"$WORK/mounts"
		fi
	done
	ms=$(((${EPOCHREALTIME/[.,]/} - t) / 1000))
	echo "# apps/$job/$variant: $folded files folded, $same have nothing to fold, $refused refused; $paid get smaller, by $saved bytes; $((ms / 1000)) s"
	sed 's/^/#   /' "$WORK/refused" | cut -c 1-200 | head -n 5
	[ $folded != 0 ]
}

# run VARIANT: the job's results are in $WORK/result.VARIANT afterwards, what it said in $WORK/said.VARIANT.
run() {
	rm -rf "$WORK/run" "${WORK:?}/home" "$WORK/result.$1"
	mkdir -p "$WORK/run" "$WORK/home"
	chmod 700 "$WORK/home"
	MOUNTS=$WORK/mounts timeout -k 10 "$JOB_LIMIT" "${apart[@]}" bash "${BASH_SOURCE[0]}" --inside "$job" >"$WORK/said.$1" 2>&1 </dev/null ||
		[ $? -lt 124 ] || echo "more than $JOB_LIMIT seconds" >>"$WORK/run/bad"
	mv "$WORK/run" "$WORK/result.$1"
}

for job in "${jobs[@]}"; do
	if ! declare -F "files_$job" >/dev/null; then
		not_ok "apps/$job" "no such job"
		continue
	fi
	if ! list=$(files_"$job"); then
		skip "apps/$job" "${list##*$'\n'}"
		continue
	fi
	mapfile -t files < <(sort -u <<<"$list")
	for variant in plain safe in-place; do
		: >"$WORK/mounts"
		rm -f "$WORK/crashed"
		folded=yes
		[ "$variant" = plain ] || fold_all "$variant" "${files[@]}" || folded=no
		if [ $folded = no ] && [ ! -s "$WORK/crashed" ]; then
			skip "apps/$job/$variant" "nothing of it is folded"
			continue
		fi
		if [ -s "$WORK/crashed" ]; then
			not_ok "apps/$job/$variant" "$(first_line "$WORK/crashed")"
			continue
		fi
		run "$variant"
		if ! check_no_complaint "apps/$job" "$variant"; then
			[ "$variant" = plain ] && break
			continue
		fi
		[ "$variant" = plain ] && continue
		check_results "apps/$job" "$variant"
	done
	[ -n "${KEEP:-}" ] && mkdir -p "$WORK/kept.$job" && cp -a "$WORK"/result.* "$WORK"/said.* "$WORK/kept.$job/"
	rm -rf "$WORK"/result.*
done
finish
