#!/bin/bash
# system_jobs.sh: programs of this machine, folded with all the libraries they load, do real work with the same results.
#
#   system_jobs.sh [JOB...]    bash text perl python git gdb gcc clang cmake sqlite openssl nginx qemu mono; without: all
#
# Each job runs three times: with copies of the programs, folded (--icf=safe), and folded --in-place.  Programs and libraries are in
# the same folder each time, so that the paths in outputs are the same; outputs must be equal to the last byte.
# OPTS are more options for the fold, such as --gc-functions.  PYTHON_TESTS: these of Python's own tests.
# TARGET=aarch64 ARM64=DIR: the same with Debian's arm64 packages, which are fetched to DIR once, run by qemu: each program that a job
# needs is a script here.  What a job runs besides is of this machine.
# Functions of jobs are called by name; in their texts, other programs expand what the shell does not.
# shellcheck disable=SC2317,SC2016,SC2329,SC2094,SC2238
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/results.sh
. "$TESTS/lib/results.sh"
need_tool jobs
make_work
always_fold
mirror=${ICFOLD_CORPUS:-$HOME/.cache/icfold-corpus}
export TZ=UTC HOME=$WORK/home
mkdir -p "$HOME" "$WORK/lib.safe" "$WORK/lib.in-place" "$WORK/in"
TOOL=$WORK/tool # bin, lib
jobs=("$@")
[ $# = 0 ] && jobs=(bash text perl python git gdb gcc clang cmake sqlite openssl nginx qemu mono)

# The folder of the other machine's programs, empty for those of this one.
TREE=
if [ "$MACHINE" != "$(uname -m)" ]; then
	# shellcheck source=tests/lib/arm64.sh
	. "$TESTS/lib/arm64.sh"
	if [ "$MACHINE" != aarch64 ] || [ -z "${ARM64:-}" ] || ! have qemu-aarch64 || ! arm64_system "$ARM64"; then
		skip jobs "no programs of $MACHINE here (ARM64=DIR), or no qemu-aarch64"
		finish
	fi
	TREE=$(realpath "$ARM64/tree")
fi

fold() { # VARIANT IN OUT
	local opts=()
	read -ra opts <<<"${OPTS:-}"
	[ "$1" = in-place ] && opts+=(--in-place)
	"$ICFOLD" -q ${opts[@]+"${opts[@]}"} "$2" -o "$3" 2>"$WORK/log" || { echo "fold $2: $(first_line "$WORK/log")"; return 1; }
}

# tree_libraries FILE...: the same in $TREE.
tree_libraries() {
	local n d
	local -A seen=()
	while [ $# -gt 0 ]; do
		for n in $(readelf -dW "$1" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
			case ${seen[$n]:-}$n in 1* | ld-linux-*) continue ;; esac
			seen[$n]=1
			for d in "$TREE/usr/lib/$MACHINE-linux-gnu" "$TREE/usr/lib"; do
				[ -e "$d/$n" ] || continue
				echo "$n $d/$n"
				set -- "$@" "$d/$n"
				break
			done
		done
		shift
	done
}

# libraries FILE...: what they load, the dynamic linker left out: "NAME PATH" lines.
libraries() {
	if [ "$TREE" ]; then tree_libraries "$@"; else own_libraries "$@"; fi
}
own_libraries() { ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// && !seen[$1]++ { print $1, $3 }'; }

# provide VARIANT PROGRAM...: fills $TOOL with these programs and their libraries; prints what went wrong.
provide() {
	local variant=$1 p name path
	shift
	local to=$TOOL/bin
	rm -rf "$TOOL"
	[ -z "$TREE" ] || to=$TOOL/real
	mkdir -p "$TOOL/bin" "$TOOL/lib" "$to"
	for p; do
		if [ "$variant" = plain ]; then
			cp "$p" "$to/"
		else
			fold "$variant" "$(realpath "$p")" "$to/${p##*/}" || return 1
		fi
		[ -z "$TREE" ] || run_by_qemu "${p##*/}"
	done
	[ "$variant" = plain ] && return
	while read -r name path; do
		if [ ! -e "$WORK/lib.$variant/$name" ]; then
			fold "$variant" "$(realpath "$path")" "$WORK/lib.$variant/$name" || return 1
		fi
		ln -s "$WORK/lib.$variant/$name" "$TOOL/lib/$name"
	done < <(libraries "$@")
}

# run_by_qemu PROGRAM: $TOOL/bin/PROGRAM, which runs $TOOL/real/PROGRAM under its own name.
run_by_qemu() {
	printf '#!/bin/sh\nunset LD_LIBRARY_PATH\nexec %s -L %s -E LD_LIBRARY_PATH=%s -0 "$0" %s "$@"\n' "$(command -v "qemu-$MACHINE")" "$TREE" "$TOOL/lib" "$TOOL/real/$1" \
		>"$TOOL/bin/$1"
	chmod +x "$TOOL/bin/$1"
}

# with COMMAND...: runs it with what $TOOL has.
with() { PATH=$TOOL/bin:$PATH LD_LIBRARY_PATH=$TOOL/lib "$@"; }

# Programs that a job needs, or the reason why it cannot be.
find_programs() { # NAME...
	programs=()
	local n p
	for n; do
		p=$(PATH=$TREE/usr/bin:$TREE/usr/sbin:$TREE/bin:$TREE/sbin command -v "$n")
		case $TREE:$n in
		:cc1 | :cc1plus | :collect2) p=$(gcc -print-prog-name="$n") ;;
		*:cc1 | *:cc1plus | *:collect2) p=$TREE/usr/lib/gcc/$MACHINE-linux-gnu/12/$n ;;
		esac
		if [ ! -x "$p" ]; then
			echo "$n is not installed"
			return 1
		fi
		programs+=("$p")
	done
}

# --- the jobs: need_NAME sets programs, or says why it cannot; do_NAME works in the folder where it stands, and writes to the file
# `bad` there what is wrong without any comparison --------------------------------------------------------------------------

need_bash() { find_programs bash; }
do_bash() {
	cat >script <<'SH'
set -u
trap 'echo "leaving with $?"' EXIT
trap 'echo "failed: $BASH_COMMAND"' ERR
declare -A count
words=(the quick brown fox jumps over the lazy dog and the fox runs)
for w in "${words[@]}"; do count[$w]=$((${count[$w]:-0} + 1)); done
for w in "${!count[@]}"; do echo "$w ${count[$w]}"; done | sort
while IFS=: read -r a b c; do printf '%-10s|%5s|%s\n' "$a" "$b" "${c^^}"; done <<EOT
alpha:1:first line
beta:22:second $((1 << 5)) line
gamma:333:${words[*]:2:3}
EOT
fib() { local n=$1; ((n < 2)) && { echo "$n"; return; }; echo $(($(fib $((n - 1))) + $(fib $((n - 2))))); }
echo "fib $(fib 11)"
[[ "2024-05-06 text" =~ ^([0-9]+)-([0-9]+)-([0-9]+)\ (.*)$ ]] && printf '%s\n' "${BASH_REMATCH[@]}"
coproc UP { while read -r l; do echo "<${l@U}>"; done; }
up=$UP_PID # it is gone as soon as the coprocess is
echo "to the coprocess" >&"${UP[1]}"; read -r answer <&"${UP[0]}"; echo "$answer"
eval "exec ${UP[1]}>&-"; wait "$up" 2>/dev/null
false
case ${words[3]} in f?x) echo glob;; *) echo none;; esac
shopt -s extglob; v=aaabbb; echo "${v//+(a)/x} ${v%%b*} ${#v} ${v:2:2}"
diff <(seq 5) <(seq 2 6) || true
select x in one two; do echo "chose $x"; break; done <<<2
trap 'echo usr1' USR1; kill -USR1 $$
for ((i = 0, s = 0; i < 20000; i++)); do ((s = (s * 31 + i) % 65521)); done; echo "$s"
printf '%q %x %o %e %b\n' "a b'c" 255 8 1234.5 'x\ty'
type -t fib; compgen -A builtin | sort | head -5; help cd | head -2
exit 7
SH
	with bash script >out 2>&1
	echo "status $?" >>out
}

need_text() { find_programs cat sort ls sha256sum md5sum b2sum wc cut tr uniq join od base64 seq factor numfmt date split tac shuf paste comm fmt pr nl stat tsort cksum expr dd cp mv head tail csplit grep sed gawk xz gzip bzip2 tar diff find xargs; }
do_text() {
	with seq 1 60000 | with gawk 'BEGIN { srand(7) } { x = (x * 1103515245 + 12345 + $1) % 2147483648; printf "%d\t%s\t%s\n", x, substr("abcdefghij", 1 + x % 10, 1 + x % 3), $1 }' >data
	with sort -n data >sorted
	with sort -k 2,2 -k 3,3rn -S 1M --parallel=2 data | with uniq -c -f 2 | with head -500 >keys
	with sort -V -u -t "$(printf '\t')" -k 1.3,1.5 data >version
	with cut -f 2 data | with sort | with uniq -c >freq
	with gawk -F '\t' '{ n[$2]++; s[$2] += $1 } END { m = asorti(n, k); for (i = 1; i <= m; i++) printf "%s %d %.3f %s\n", k[i], n[k[i]], s[k[i]] / n[k[i]], toupper(k[i]); print strftime("%F %T", 86400, 1), gensub(/(.)(.)/, "\\2\\1", "g", "abcdef"), length("text") }' data >awk
	with grep -E '(ab|ba)+c?' data >grep1
	with grep -nP '^(\d)\d+\t[a-f]+\t\d*\1$' data >grep2
	with grep -cFf <(with head -50 awk | with cut -d ' ' -f 1) data >grep3
	with sed -nE 's/^([0-9]{3})([0-9]*)\t(.*)\t/\3:\2-\1 /; /^[a-d]/{h;N;G;p}; $!d; s/[aeiou]/<&>/gp; y/abc/xyz/; l' data >sed
	for f in sha256sum md5sum b2sum "cksum" "sha256sum --tag"; do
		# shellcheck disable=SC2086
		with $f data
	done >sums
	with od -A x -t x2z -N 4000 data >od
	with base64 data | with base64 -d | cmp - data
	with factor 1234567890123 600851475143 9007199254740993 18446744073709551557 1000000007000000049 >factor
	with numfmt --to=iec 1000 123456789 1e15 >numfmt
	with date -u -d '2024-02-29 12:34:56 + 1 year 3 days' '+%F %T %j %U %A' >date
	with shuf --random-source=data data | with tac | with tail -1000 >shuf
	with join <(with sort -k 1b,1 freq) <(with sort -k 1b,1 awk) >join
	with paste -d, <(with head -20 data) <(with seq 20) | with pr -2 -t -w 100 | with expand >pr
	with fmt -w 60 "$ROOT/README.md" | with nl -b a >fmt
	with split -n r/3 -d data part.
	with csplit -s -f piece "$ROOT/README.md" '/^## /' '{3}'
	printf 'a b\nb c\na d\nd c\n' | with tsort >tsort
	with comm -12 <(with head -3000 sorted | with sort) <(with sort data) | with wc >comm
	with ls -l --time-style=+ -R -I ls . | with sed -E 's/^([^ ]+ +[0-9]+ )[^ ]+ +[^ ]+/\1/' >ls
	with find . -type f -size -50k -name '*r*[!d]' -printf '%f %s\n' | with sort >find
	for z in xz gzip bzip2; do
		with cat data | with $z -9 -c >data.$z
		with $z -d -c data.$z | cmp - data || echo "$z differs"
	done
	with tar --sort=name --mtime=@0 --owner=0 --group=0 -cf all.tar part.* piece* freq awk
	mkdir x && with tar -C x -xf all.tar && with diff -ru x/freq freq && with diff -u --label a --label b sorted version | with head -3000 >diff
	with stat -c '%s %n' data freq >stat
	with dd if=data of=dd bs=777 skip=3 count=9 conv=ucase 2>/dev/null
}

need_perl() { find_programs perl; }
do_perl() {
	export PERL_HASH_SEED=0 PERL_PERTURB_KEYS=0
	cat >script <<'PL'
use strict; use warnings; use Data::Dumper; use List::Util qw(sum reduce shuffle first); use POSIX qw(floor strftime); use Storable qw(dclone); use Digest::MD5 qw(md5_hex); use Encode; use Time::Local; use Scalar::Util qw(weaken blessed); use Math::BigInt;
$Data::Dumper::Sortkeys = 1; local $| = 1;
package Shape { sub new { my ($c, %a) = @_; bless { %a }, $c } sub area { 0 } sub DESTROY { print "gone ", ref shift, "\n" } use overload '""' => sub { ref($_[0]) . '=' . $_[0]->area }, '<=>' => sub { $_[0]->area <=> $_[1]->area }; }
package Circle { our @ISA = 'Shape'; sub area { sprintf '%.4f', 3.14159265 * $_[0]{r} ** 2 } }
package Square { our @ISA = 'Shape'; sub area { $_[0]{a} ** 2 } our $AUTOLOAD; sub AUTOLOAD { my $n = $AUTOLOAD; $n =~ s/.*:://; return if $n eq 'DESTROY'; "auto $n(@_[1..$#_])" } }
package main;
{ my @s = map { $_ % 2 ? Circle->new(r => $_) : Square->new(a => $_) } 1 .. 5; print "$_\n" for sort { $a <=> $b } @s; print $s[1]->anything(1, 2), "\n"; }
my %h; open my $in, '<', $0 or die; while (<$in>) { $h{lc $1}++ while /\b(\w{3,})\b/g } close $in;
print Dumper({ map { $_ => $h{$_} } grep { $h{$_} > 2 } keys %h });
my @primes = grep { my $n = $_; $n > 1 && !first { $n % $_ == 0 } 2 .. sqrt $n } 1 .. 400; print "@primes\n", sum(@primes), "\n";
my $re = qr/(?<y>\d{4})-(?<m>\d\d)(?:-(?<d>\d\d))?/x; while ("2021-03-04 x 1999-12 y" =~ /$re/g) { print join('/', map { $_ // '-' } @+{qw(y m d)}), "\n" }
(my $t = "nested (a (b) (c (d))) end") =~ s/(\((?:[^()]++|(?1))*\))/length $1/e; print "$t\n";
eval { eval { die { code => 42 } }; print "inner $@->{code}\n"; die "outer\n" }; print "caught $@";
my @p = unpack 'N n C a* ', pack 'N n C a*', 0xdeadbeef, 4660, 7, "tail"; print "@p\n"; printf "%s %e %g %08.3f %x %b %v d\n", 'str', 12345.678, 1e-7, 3.14159, 255, 10, '1.2.3';
my $c = do { my $n = 0; sub { ++$n } }; $c->() for 1 .. 1000; print $c->(), "\n";
print Math::BigInt->new(2)->bpow(300)->badd(1), "\n", md5_hex(join ',', 1 .. 10000), "\n", length(encode('UTF-8', "\x{263a}\x{20ac}")), "\n";
print strftime('%Y-%m-%d', gmtime timegm(0, 0, 0, 29, 1, 2024)), "\n"; my $d = dclone(\%h); print scalar(keys %$d), "\n";
our ($name, $val) = ('x', 3.5); format STDOUT =
@<<<<<<<< @>>>>>> @##.##
$name, $val, $val
.
write; my $s = join '', map { chr(97 + $_ % 26) } 1 .. 5000; my %f; $f{$_}++ for split //, $s; print join(' ', map { "$_$f{$_}" } sort keys %f), "\n"; $s =~ tr/a-m/N-Z/; print md5_hex($s), "\n";
print join(',', sort { $a <=> $b || $a cmp $b } map { int(($_ * 7919) % 1009) } 1 .. 500), "\n"; local $_ = "a,b;c d"; print join('|', split /[,; ]/), "\n"; print "wantarray ", (sub { wantarray ? 'list' : 'scalar' })->(), "\n"; sub ack { my ($m, $n) = @_; $m == 0 ? $n + 1 : $n == 0 ? ack($m - 1, 1) : ack($m - 1, ack($m, $n - 1)) } { no warnings 'recursion'; print ack(2, 30), "\n"; }
PL
	with perl script >out 2>&1
	echo "status $?" >>out
	with perl -MPod::Text -e 'Pod::Text->new->parse_from_file($INC{"Pod/Text.pm"})' >pod 2>&1
	with perl -MO=Deparse script >deparse 2>&1
	# Perl's own tests, where they are.
	for t in /usr/share/perl/5.*/t /usr/lib/x86_64-linux-gnu/perl/5.*/t; do
		[ -d "$t/op" ] && (cd "$t" && with perl TEST op/sprintf.t op/sort.t re/regexp.t) >tests 2>&1
	done
	return 0
}

need_python() { find_programs python3.11 2>/dev/null || find_programs python3; }
do_python() {
	local py=${programs[0]##*/} t
	unset PYTHONHOME PYTHONPATH
	export PYTHONDONTWRITEBYTECODE=1
	cat >script <<'PY'
import json, re, hashlib, collections, itertools, functools, decimal, fractions, random, zlib, struct, ast, dis, io, sys, threading, asyncio, xml.etree.ElementTree as ET
random.seed(5)
d = {k: [random.random() for _ in range(5)] for k in "abcdef"}
print(json.dumps(d, indent=1, sort_keys=True)); print(hashlib.sha256(json.dumps(d).encode()).hexdigest())
print(collections.Counter(re.findall(r"\w+", open(__file__).read())).most_common(9))
decimal.getcontext().prec = 60; print(decimal.Decimal(2).sqrt(), fractions.Fraction(355, 113) ** 5, 3 ** 500 % 10 ** 40)
print(zlib.crc32(b"x" * 99999), len(zlib.compress(bytes(range(256)) * 99)), struct.pack("<IqdH", 1, -2, 3.5, 4).hex())
class M(type):
    def __new__(m, n, b, ns): ns["tag"] = n.lower(); return super().__new__(m, n, b, ns)
class A(metaclass=M):
    def __getattr__(self, n): return f"<{n}>"
    @functools.cached_property
    def p(self): return sum(range(1000))
print(A.tag, A().zzz, A().p, [*itertools.islice(itertools.permutations("abcd"), 5, 9)])
dis.dis(compile("for i in range(9):\n  try: x[i] += f(*a, **k)\n  except* E as e: raise", "s", "exec"), file=(o := io.StringIO())); print(hashlib.md5(re.sub("0x[0-9a-f]+", "", o.getvalue()).encode()).hexdigest())
print(ast.dump(ast.parse("match x:\n case {'a': [1, *r]} if r: pass\n case A(b=c) | None: ...")))
async def w(n): await asyncio.sleep(0); return n * n
async def main(): return await asyncio.gather(*map(w, range(20)))
print(asyncio.run(main())); r = []; l = threading.Lock()
def th(n):
    for _ in range(2000):
        with l: r.append(n)
ts = [threading.Thread(target=th, args=(i,)) for i in range(8)]; [t.start() for t in ts]; [t.join() for t in ts]; print(len(r), sum(r))
print(ET.tostring(ET.fromstring("<a x='1'><b>t&amp;</b><!-- c --><c/></a>")).decode())
def gen(n):
    try:
        while True: n = (yield n) or n + 1
    finally: print("closed")
g = gen(3); print(next(g), g.send(40), next(g)); g.close()
try: (lambda f: f(f))(lambda f: f(f))
except RecursionError as e: print(type(e).__name__)
print(f"{1e100:.3g} {12345678:,} {255:#x} {'é'!a:>10} {3.0!r}", sorted("the quick brown".split(), key=lambda s: s[::-1]))
PY
	with "$py" script >out 2>&1
	echo "status $?" >>out
	# The tests of the same version, if they are here as a source only.
	if ! with "$py" -c 'import test.test_descr' 2>/dev/null && [ -d "$mirror/src/$py/Lib/test" ]; then
		mkdir -p "$WORK/in/$py"
		ln -sfn "$mirror/src/$py/Lib/test" "$WORK/in/$py/test"
		export PYTHONPATH=$WORK/in/$py
	fi
	if with "$py" -c 'import test.test_descr' 2>/dev/null; then
		for t in ${PYTHON_TESTS:-test_descr test_types test_dict test_generators test_re test_struct test_grammar test_syntax}; do
			with "$py" -m test "$t" >log 2>&1 || { echo "$t failed"; tail -n 5 log; } >>bad
			sed -nE '/^(Result|Tests result|== Tests)/p' log >>tests
		done
		rm -f log
	else
		echo "no test package: libpython3.11-testsuite has it" >&3
	fi
}

need_git() { find_programs git; }
do_git() {
	mkdir -p "$TOOL/git-core"
	for f in "$TREE"/usr/lib/git-core/*; do
		if [ -L "$f" ] && [ "$(basename "$(readlink "$f")")" = git ]; then
			ln -s "$TOOL/bin/git" "$TOOL/git-core/${f##*/}"
		elif [ -e "$f" ]; then
			ln -s "$f" "$TOOL/git-core/${f##*/}"
		fi
	done
	ln -sf "$TOOL/bin/git" "$TOOL/git-core/git"
	export GIT_EXEC_PATH=$TOOL/git-core GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='@1700000000 +0000' GIT_COMMITTER_DATE='@1700000000 +0000' GIT_PAGER=cat \
		GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
	with git -c protocol.file.allow=always clone -q "$WORK/in/repo" clone
	cd clone || return
	with git config pack.threads 1
	with git log --stat -p >../log
	with git log --graph --oneline --decorate --all >../graph
	with git blame -C README.md >../blame
	with git gc -q --aggressive
	with git fsck --full --strict >../fsck 2>&1
	with git rev-list --objects --all | sort >../objects
	with git grep -n -E 'static .*(void|int)' >../grep
	with git diff --word-diff --patience HEAD~2 -- . >../diff
	with git checkout -q -b other HEAD~2
	echo change >>README.md
	with git commit -q -a -m "A change"
	with git rebase -q master 2>/dev/null || with git rebase -q main >/dev/null 2>&1
	with git merge -q --no-edit --no-ff HEAD~1 >/dev/null 2>&1
	with git format-patch -q --stdout -3 >../patches
	with git archive --format=tar HEAD | sha256sum >../archive
	with git shortlog -sne --all >../shortlog
	with git for-each-ref >../refs
	cd .. && rm -rf clone
	unset GIT_EXEC_PATH
}

need_gdb() { find_programs gdb; }
do_gdb() {
	cat >prog.c <<'C'
#include <stdio.h>
struct node { int value; struct node *next; };
static int sum(const struct node *n) { int s = 0; for (; n; n = n->next) s += n->value; return s; }
static int deep(int n) { return n ? deep(n - 1) + 1 : 0; }
int main(void) { struct node a = { 1, 0 }, b = { 2, &a }, c = { 3, &b }; printf("%d %d\n", sum(&c), deep(5)); return 0; }
C
	"${TREE:+$MACHINE-linux-gnu-}gcc" -g -O0 -no-pie prog.c -o prog || return
	setarch -R true 2>/dev/null
	# qemu lets no program trace another.
	[ "$TREE" ] || with gdb -nx -q -batch -ex 'set debuginfod enabled off' -ex 'set width 0' -ex 'unset environment LD_LIBRARY_PATH' -ex 'break sum' -ex 'break deep if n == 2' -ex run -ex bt -ex 'info args' -ex 'print *n' -ex 'print *n->next' -ex 'ptype n' \
		-ex 'watch s' -ex continue -ex continue -ex 'delete 3' -ex continue -ex bt -ex 'info frame' -ex 'disassemble /r sum' -ex 'info line deep' -ex 'list main' -ex 'x/8i $pc' -ex finish \
		-ex 'python print([str(f) for f in [gdb.selected_frame().name()]], gdb.parse_and_eval("n"), gdb.lookup_type("struct node").sizeof)' \
		-ex 'python import re, json; print(json.dumps({s.name: str(s.type) for s in gdb.selected_frame().block()}))' -ex 'info source' -ex 'maint info breakpoints' -ex delete -ex continue -ex 'info symbol main' -ex 'help breakpoints' ./prog >out 2>&1
	[ "$TREE" ] || sed -i -E 's/process [0-9]+/process N/; s/0x7ff[0-9a-f]+/STACK/g' out
	with gdb -nx -q -batch -ex 'maint print msymbols' -ex 'info functions' -ex 'info types' -ex 'info scope sum' -ex 'ptype struct node' -ex 'disassemble /s sum' \
		-ex 'info line deep' -ex 'python print(gdb.lookup_type("struct node").sizeof)' -ex 'print sizeof(struct node) * 3' -ex 'maint print psymbols' ./prog >symbols 2>&1
	with gdb --version >version
	with gdb --configuration >>version
	grep -q next symbols || echo "gdb does not read the program" >bad
	rm -f prog
}

# A C++ program of some size.
write_program() {
	cat >more.cc <<'CC'
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <vector>
#include <functional>
template <int N> struct F { static constexpr long v = F<N - 1>::v + F<N - 2>::v; };
template <> struct F<1> { static constexpr long v = 1; };
template <> struct F<0> { static constexpr long v = 0; };
struct B { virtual ~B() = default; virtual int f() const = 0; };
template <typename T> struct D : B { T t; int f() const override { return sizeof(T); } };
int main()
{
	std::map<std::string, std::vector<std::unique_ptr<B>>> m;
	m["a"].push_back(std::make_unique<D<int>>());
	m["b"].push_back(std::make_unique<D<std::string>>());
	std::regex re("([a-z]+)[0-9]*");
	for (auto &[k, v] : m)
		for (auto &p : v)
			std::cout << k << p->f() << std::regex_replace("abc12 d3", re, "<$1>") << F<60>::v << '\n';
	std::function<int(int)> g = [&](int n) { return n < 2 ? n : g(n - 1) + g(n - 2); };
	std::cout << g(20) << '\n';
	try { throw std::runtime_error("x"); } catch (const std::exception &e) { std::cout << e.what() << '\n'; }
}
CC
}

need_gcc() {
	find_programs cc1 cc1plus as ld || return
	[ -z "$TREE" ] || find_programs cc1 cc1plus as ld collect2 "$MACHINE-linux-gnu-gcc-12" "$MACHINE-linux-gnu-g++-12"
}
# gnu COMPILER ARGUMENT...: the compiler, with the parts that are in $TOOL.
gnu() {
	local c=$1
	shift
	if [ "$TREE" ]; then
		with "$MACHINE-linux-gnu-$c-12" -B"$TOOL/bin/" "$@"
	else
		LD_LIBRARY_PATH=$TOOL/lib "$c" -B"$TOOL/bin/" "$@"
	fi
}
# built PROGRAM: runs what a job has built.
built() { ${TREE:+qemu-$MACHINE -L "$TREE"} "./$1"; }
# Options for a processor with vectors.
case $MACHINE in aarch64) vectors=armv8.2-a+sve ;; *) vectors=x86-64-v3 ;; esac
do_gcc() {
	local f n
	# The compiler looks for its headers from where it lies.
	if [ "$TREE" ]; then ln -sfn "$TREE/usr/lib/gcc" "$TOOL/lib/gcc"; else cp "$(realpath "$TOOL/bin/ld")" "$TOOL/bin/collect-ld" 2>/dev/null; fi
	for f in $(sources); do
		n=$(basename "$(dirname "$f")")_$(basename "$f")
		for o in -O0 "-O2 -g" "-O3 -fPIC -march=$vectors"; do
			# shellcheck disable=SC2086
			gnu gcc -w $o -c "$f" -o "$n.${o//[^a-zA-Z0-9]/}.o" 2>>messages
		done
	done
	write_program
	gnu g++ -std=c++20 -O2 -g more.cc -o more 2>>messages
	gnu g++ -std=c++20 -O2 -static -ffunction-sections -Wl,--gc-sections more.cc -o more.static 2>>messages
	gnu g++ -std=c++20 -O2 -S more.cc -o more.s 2>>messages
	gnu gcc -Wall -Wextra -fanalyzer -O2 -c "$ROOT/elfrw/base/err.c" -I"$ROOT" -D_GNU_SOURCE -std=gnu17 -o err.o 2>>messages
	built more >run && built more.static >>run || echo "the program does not run" >bad
	cat messages
}

need_clang() {
	local index
	find_programs clang-14 ld || return
	index=$(dirname "$(realpath "${programs[0]}")")/c-index-test
	if [ -x "$index" ]; then programs+=("$index"); fi
}
do_clang() {
	local f n o res at
	res=$(clang-14 -print-resource-dir)
	[ -d "$res" ] || return 0
	for f in $(sources); do
		n=$(basename "$(dirname "$f")")_$(basename "$f")
		for o in -O0 "-O2 -g" "-O3 -march=$vectors" "-O2 -S -emit-llvm"; do
			# shellcheck disable=SC2086
			with clang-14 -resource-dir "$res" -w $o -c "$f" -o "$n.${o//[^a-zA-Z0-9]/}.o" 2>>messages
		done
	done
	with clang-14 -resource-dir "$res" --target=aarch64-linux-gnu -O2 -S -ffreestanding -nostdinc -x c - -o arm.s <<<'unsigned f(unsigned *p, int n) { unsigned s = 0; for (int i = 0; i < n; i++) s += p[i] * i; switch (s % 9) { case 1: return n; case 2: return s; case 3: return 7 * s; case 4: return n / 3; case 5: return s ^ n; } return 0; }' 2>>messages
	write_program
	if [ "$TREE" ]; then
		# To link, clang starts programs of the other machine by their own names.
		with clang-14 -resource-dir "$res" --driver-mode=g++ -std=c++17 -O2 -g -c more.cc -o more.o 2>>messages
		[ -s more.o ] || echo "no object" >bad
	else
		with clang-14 -resource-dir "$res" -B"$TOOL/bin" --driver-mode=g++ -std=c++17 -O2 -g more.cc -o more 2>>messages
		built more >run || echo "the program does not run" >bad
	fi
	# All that libclang tells of a file, and what it would complete.
	if [ -x "$TOOL/bin/c-index-test" ]; then
		at=$(awk 'i = index($0, "m[\"a\"].") { print NR ":" i + 7 }' more.cc)
		with c-index-test -test-load-source all -resource-dir "$res" -std=c++17 more.cc >index 2>&1
		with c-index-test -index-file -resource-dir "$res" -std=c++17 more.cc 2>&1 | sed -E 's/0x[0-9a-f]+/N/g' >symbols
		with c-index-test -code-completion-at="more.cc:$at" -resource-dir "$res" -std=c++17 more.cc >complete 2>&1
		grep -q 'FunctionDecl=main' index && [ -s complete ] || echo "libclang did not read the program" >bad
	else
		echo "no c-index-test: libclang is not called" >&3
	fi
	with clang-14 -resource-dir "$res" --analyze -Xclang -analyzer-output=text -I"$ROOT" -D_GNU_SOURCE -std=gnu17 "$ROOT/elfrw/base/err.c" >analyze 2>&1
	cat messages
}

need_cmake() { find_programs cmake make bash; }
do_cmake() {
	local src=$WORK/in/project
	ln -sfn /usr/share "$TOOL/share"
	cp -a "$src" src
	with cmake -G "Unix Makefiles" -S src -B build -DCMAKE_MAKE_PROGRAM="$TOOL/bin/make" -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-O1 -DBUILD_TESTING=OFF -DCMAKE_VERBOSE_MAKEFILE=ON >configure 2>&1
	with make -C build -j2 SHELL="$TOOL/bin/bash" >/dev/null 2>log || tail -n 5 log
	with make -C build SHELL="$TOOL/bin/bash" -n >again 2>&1
	with make -C build -p -q >/dev/null 2>&1
	find build -name '*.o' -o -type f -perm -100 | grep -vE 'CompilerId|CMakeScratch|CMakeTmp|CMakeLTOTest' | sort | xargs sha256sum >built
	sed -i '/seconds\|(.*s)$/d' configure
	rm -rf build src log
	# The folded make must give the same build as the installed one.
	[ -s built ] || echo "nothing was built" >bad
}

need_sqlite() { find_programs sqlite3; }
do_sqlite() {
	with sqlite3 db >out 2>&1 <<'SQL'
.bail off
CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, v REAL, g INT);
WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 30000) INSERT INTO t SELECT n, printf('%x-%d', n * 2654435761 % 4294967296, n % 97), n * 1.0 / 7, n % 13 FROM c;
CREATE INDEX i1 ON t(name); CREATE INDEX i2 ON t(g, v DESC) WHERE g > 3;
SELECT g, count(*), round(avg(v), 4), max(name) FROM t GROUP BY g HAVING count(*) > 1 ORDER BY 3 DESC;
SELECT a.id, b.id FROM t a JOIN t b ON a.id = b.id * 2 WHERE a.name LIKE '%7%' AND b.g IN (1, 5, 9) ORDER BY b.name LIMIT 40;
SELECT id, sum(v) OVER (PARTITION BY g ORDER BY id ROWS 3 PRECEDING), rank() OVER (ORDER BY g) FROM t WHERE id < 60;
CREATE TRIGGER tr AFTER UPDATE ON t BEGIN INSERT INTO log VALUES (old.id, new.v - old.v); END; CREATE TABLE log(i, d);
BEGIN; UPDATE t SET v = v * 2 WHERE g = 4; SAVEPOINT s; DELETE FROM t WHERE id % 3 = 0; ROLLBACK TO s; COMMIT;
SELECT count(*), total(d) FROM log; CREATE VIRTUAL TABLE f USING fts5(x); INSERT INTO f SELECT name || ' ' || g FROM t WHERE id < 2000; SELECT count(*) FROM f WHERE f MATCH '5 OR 7*';
SELECT json_group_array(json_object('k', g, 'n', n)) FROM (SELECT g, count(*) n FROM t GROUP BY g); SELECT hex(zeroblob(4)), quote(x'0102'), strftime('%J', '2024-01-01'), date('2024-02-29', '+1 year');
EXPLAIN QUERY PLAN SELECT * FROM t WHERE g = 5 ORDER BY v DESC; SELECT * FROM nowhere; PRAGMA integrity_check; VACUUM; .mode csv
SELECT * FROM t WHERE id BETWEEN 100 AND 140; .schema
.dump log
SQL
}

need_openssl() { find_programs openssl; }
do_openssl() {
	local c
	for c in sha256 sha512 sha3-256 md5 blake2b512 sm3; do with openssl dgst -$c "$WORK/in/blob"; done >digests 2>&1
	for c in aes-128-cbc aes-256-ctr aes-256-gcm camellia-256-cbc chacha20 des-ede3-cbc aria-256-cbc; do
		with openssl enc -$c -K 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f -iv 00112233445566778899aabbccddeeff -in "$WORK/in/blob" -out enc.$c 2>/dev/null
	done
	with openssl dgst -sha256 -sign "$WORK/in/rsa.pem" -out sig "$WORK/in/blob" 2>&1
	with openssl dgst -sha256 -verify "$WORK/in/rsa.pub" -signature sig "$WORK/in/blob" >verify 2>&1
	for c in P-256 P-384 secp521r1 X25519; do
		case $c in
		X*) with openssl genpkey -algorithm $c -out key ;;
		*) with openssl ecparam -name $c -genkey -noout -out key ;;
		esac 2>>made
		[ $c = X25519 ] && continue
		with openssl dgst -sha384 -sign key -out ecsig "$WORK/in/blob" && with openssl pkey -in key -pubout -out pub && with openssl dgst -sha384 -verify pub -signature ecsig "$WORK/in/blob"
	done >made 2>&1
	with openssl genrsa -out new 2048 2>/dev/null && with openssl rsa -in new -check -noout >>made 2>&1
	with openssl req -x509 -key new -subj /CN=localhost -days 30 -out cert -batch 2>&1
	with openssl verify -CAfile cert cert >>made 2>&1
	with openssl x509 -in cert -noout -subject -issuer -ext basicConstraints >>made 2>&1
	grep -q 'Verified OK' verify || echo "no signature" >bad
	with openssl prime -generate -bits 256 >prime && with openssl prime "$(cat prime)" | grep -c 'is prime' >>made
	with openssl asn1parse -in "$WORK/in/rsa.pem" >asn1
	with openssl kdf -keylen 24 -kdfopt digest:SHA2-256 -kdfopt pass:a -kdfopt salt:b -kdfopt iter:999 PBKDF2 >kdf
	rm -f key pub ecsig new cert prime
}

need_nginx() {
	have curl || { echo "curl is not installed"; return 1; }
	find_programs nginx 2>/dev/null || find_programs python3.11 2>/dev/null || find_programs python3
}
do_nginx() {
	local port=$((20000 + RANDOM % 20000)) pid i site=$WORK/in/site
	mkdir -p logs tmp
	# The folder is its owner's alone.
	local user=
	[ "$(id -u)" = 0 ] && user="user root;"
	if [ "${programs[0]##*/}" = nginx ]; then
		cat >conf <<CONF
daemon off; $user worker_processes 2; pid $PWD/tmp/pid; error_log $PWD/logs/error; thread_pool default threads=4 max_queue=65536;
events { worker_connections 256; }
http { access_log off; gzip on; gzip_types *; aio threads; sendfile off; default_type text/plain;
client_body_temp_path $PWD/tmp/a; proxy_temp_path $PWD/tmp/b; fastcgi_temp_path $PWD/tmp/c; uwsgi_temp_path $PWD/tmp/d; scgi_temp_path $PWD/tmp/e;
server { listen 127.0.0.1:$port; root $site; location ~ ^/re/(\w+)/(\d+)\$ { return 200 "\$1:\$2\n"; } location /old { rewrite ^/old/(.*)\$ /\$1 last; } location /px/ { proxy_pass http://127.0.0.1:$port/; } error_page 404 =404 /index; } }
CONF
		LD_LIBRARY_PATH=$TOOL/lib "$TOOL/bin/nginx" -p "$PWD" -c "$PWD/conf" -e "$PWD/logs/start" >/dev/null 2>&1 &
	else
		LD_LIBRARY_PATH=$TOOL/lib "$TOOL/bin/${programs[0]##*/}" -m http.server -b 127.0.0.1 -d "$site" "$port" >/dev/null 2>&1 &
	fi
	pid=$!
	for ((i = 0; i < 1200; i++)); do curl -s -o /dev/null "http://127.0.0.1:$port/index" && break; sleep 0.1; done
	for i in 1 2 3 4 5 6 7 8; do
		(for f in "$site"/*; do for u in "" old/ px/; do curl -s --compressed "http://127.0.0.1:$port/$u${f##*/}"; done; done | sha256sum) >"served.$i" &
		fetch[i]=$!
	done
	wait "${fetch[@]}"
	curl -s -r 100-299 "http://127.0.0.1:$port/file1" | sha256sum >range
	curl -s "http://127.0.0.1:$port/re/word/123" >regex
	curl -s -o body -w '%{http_code}\n' "http://127.0.0.1:$port/none" >none
	[ "$(sort -u served.* | wc -l)" = 1 ] && grep -q 404 none || echo "the server did not serve" >bad
	kill -QUIT $pid 2>/dev/null
	[ "${programs[0]##*/}" = nginx ] || kill $pid 2>/dev/null
	wait $pid 2>/dev/null
	rm -rf logs tmp conf
}

need_qemu() { find_programs "qemu-$MACHINE"; }
do_qemu() {
	write_program
	"${TREE:+$MACHINE-linux-gnu-}g++" -std=c++17 -O1 -static more.cc -o more || return
	with "qemu-$MACHINE" ./more >out 2>&1 || echo "status $?" >>bad
	with "qemu-$MACHINE" -d in_asm -D asm ./more >/dev/null 2>&1
	with "qemu-$MACHINE" -cpu help >cpus 2>&1
	# qemu in qemu is slow.
	[ "$TREE" ] || with "qemu-$MACHINE" -strace ./more 2>&1 >/dev/null | sed -E 's/^[0-9]+ //; s/0x[0-9a-f]+/N/g' | grep -v 'random\|time' >calls
	grep -q 6765 out || echo "the program did not run" >bad
	rm -f more
}

# Mono's compiler and class library are libraries of compiled code, whose functions are listed in data as calls; Mono looks for them at a
# fixed place, so the folded ones are put there for these commands alone.
mono_images() { find /usr/lib/mono/aot-cache -name mscorlib.dll.so -o -name mcs.exe.so 2>/dev/null; }
need_mono() {
	find_programs mono || return 1
	if ! command -v mcs >/dev/null || [ "$(mono_images | wc -l)" != 2 ]; then echo "mcs or its compiled libraries are not installed"; return 1; fi
	if ! unshare -rm true 2>/dev/null; then echo "no mount namespaces here"; return 1; fi
}
do_mono() {
	cat >hello.cs <<'CS'
using System; using System.Collections.Generic; using System.Globalization; using System.Linq; using System.Text;
class Hello {
	interface IShape { double Area(); }
	struct Square : IShape { public double Side; public double Area() { return Side * Side; } }
	static IEnumerable<int> Count(int n) { for (int i = 0; i < n; i++) yield return i; }
	static void Main() {
		var d = new SortedDictionary<string, List<int>>();
		foreach (int i in Count(50)) {
			string k = (i * 7919 % 13).ToString("x4", CultureInfo.InvariantCulture);
			if (!d.ContainsKey(k)) d[k] = new List<int>();
			d[k].Add(i);
		}
		foreach (var p in d) Console.WriteLine("{0}: {1}", p.Key, string.Join(",", p.Value.Select(x => x.ToString()).ToArray()));
		IShape s = new Square { Side = 1.5 };
		Console.WriteLine(s.Area().ToString("F3", CultureInfo.InvariantCulture) + " " + decimal.Parse("1.10", CultureInfo.InvariantCulture) * 3);
		try { object o = "text"; Console.WriteLine((int)o); } catch (InvalidCastException e) { Console.WriteLine(e.GetType().Name); }
		Console.WriteLine(new StringBuilder().AppendFormat("{0:yyyy-MM-dd}|{1,8:N2}", new DateTime(2001, 2, 3), 1234.5).ToString().Normalize());
		Console.WriteLine(Convert.ToBase64String(Encoding.UTF8.GetBytes("\u00e4\u00f6\u00fc \u20ac")) + " " + Math.Pow(2, 0.5).ToString("R", CultureInfo.InvariantCulture));
	}
}
CS
	cat >work <<'SH'
set -e
for f in images/*; do [ ! -e "$f" ] || mount --bind "$f" "$(find /usr/lib/mono/aot-cache -name "${f##*/}")"; done
MONO_LOG_LEVEL=info MONO_LOG_MASK=aot mono /usr/lib/mono/4.5/mcs.exe -optimize hello.cs >log 2>&1
mono hello.exe
SH
	local f
	mkdir images
	for f in $([ "$variant" = plain ] || mono_images); do fold "$variant" "$f" "images/${f##*/}" || echo "$f does not fold" >bad; done
	with unshare -rm sh work >out 2>&1 || echo "status $?" >>bad
	# Compiled code differs a little each time; this only asks whether the compiled library was used.
	grep -q 'AOT.*mscorlib' log || echo "mscorlib.dll.so is not used" >>bad
	rm -rf images log hello.exe
}

# Some of the fixtures' sources, of each language; qemu is slow.
# Assembler in them may be of another machine; what is wrong with it is said of a file with a random name.
sources() { grep -LE '\b(asm|__asm__)\b' "$FIXTURES"/*/*.cc "$FIXTURES"/*/*.c | awk -v n="${TREE:+30}" 'NR % (n ? n : 6) == 1'; }

# --- what the jobs read ------------------------------------------------------------------------------------------------------
prepare() { # JOB
	case $1 in
	git)
		if git -C "$ROOT" rev-parse HEAD >/dev/null 2>&1; then
			git clone -q --no-hardlinks "$ROOT" "$WORK/in/repo" && git -C "$WORK/in/repo" fsck >/dev/null 2>&1 && return
		fi
		rm -rf "$WORK/in/repo" && git init -q "$WORK/in/repo" && cp -r "$ROOT/icf" "$ROOT/README.md" "$WORK/in/repo" &&
			for n in 1 2 3; do
				echo "$n" >>"$WORK/in/repo/README.md"
				git -C "$WORK/in/repo" add . && git -C "$WORK/in/repo" -c user.name=a -c user.email=a@b commit -q -m "$n" || return
			done
		;;
	cmake)
		if [ -e "$mirror/src/ninja-build/CMakeLists.txt" ]; then
			cp -a "$mirror/src/ninja-build" "$WORK/in/project"
		else
			mkdir -p "$WORK/in/project" && cp "$FIXTURES"/demo/*.cc "$FIXTURES"/demo/*.h "$WORK/in/project" 2>/dev/null
			{
				echo 'cmake_minimum_required(VERSION 3.10)'
				echo 'project(demo CXX)'
				echo 'set(CMAKE_CXX_STANDARD 17)'
				echo 'file(GLOB files ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)'
				echo 'add_executable(demo ${files})'
			} >"$WORK/in/project/CMakeLists.txt"
			echo "# cmake: the source of ninja is not there; a small project instead"
		fi
		;;
	openssl)
		seq 1 200000 >"$WORK/in/blob"
		openssl genrsa -out "$WORK/in/rsa.pem" 2048 2>/dev/null
		openssl rsa -in "$WORK/in/rsa.pem" -pubout -out "$WORK/in/rsa.pub" 2>/dev/null
		;;
	nginx)
		mkdir -p "$WORK/in/site"
		echo start >"$WORK/in/site/index"
		for n in 1 2 3 4 5 6 7 8; do seq 1 $((n * 9000)) >"$WORK/in/site/file$n"; done
		;;
	esac
}

for job in "${jobs[@]}"; do
	if ! declare -F "need_$job" >/dev/null; then
		not_ok "jobs/$job" "no such job"
		continue
	fi
	if ! why=$(need_"$job"); then
		skip "jobs/$job" "$why"
		continue
	fi
	need_"$job" >/dev/null
	prepare "$job" || { not_ok "jobs/$job" "cannot be prepared"; continue; }
	for variant in plain safe in-place; do
		rm -rf "$WORK/run"
		mkdir -p "$WORK/run"
		if ! why=$(provide "$variant" "${programs[@]}"); then
			not_ok "jobs/$job/$variant" "$why"
			continue
		fi
		(cd "$WORK/run" && do_"$job") >"$WORK/said.$variant" 2>&1 3>"$WORK/note" </dev/null
		[ "$variant" = plain ] && [ -s "$WORK/note" ] && sed "s/^/skip jobs\/$job\/tests: /" "$WORK/note"
		rm -rf "$WORK/result.$variant"
		mv "$WORK/run" "$WORK/result.$variant"
		check_no_complaint "jobs/$job" "$variant" || continue
		[ "$variant" = plain ] && continue
		if ! check_results "jobs/$job" "$variant" && [ -n "${KEEP:-}" ]; then
			mkdir -p "$WORK/failed.$job"
			cp -a "$WORK/result.plain" "$WORK/result.$variant" "$WORK/failed.$job/"
		fi
	done
	rm -rf "$WORK"/result.* "$TOOL"
done
finish
