#!/bin/bash
# bench.sh [NAME...]: time and memory of folding, beside cp and beside a linker's whole link of the same objects, in one run.
#
# NAMEs are programs of corpus.sh (default: those of llc, protoc, ninja that are there already; without any, a generated
# C program of GENERATED functions, 20000 unless set).  Each step runs RUNS times (default 3), the fastest counts.
# The columns after the seconds are ratios: to lld's link with --icf=all, and of peak memory to the size of the input.
#
# Then, for programs with debug information, the symbolizers: ADDRESSES (10000) random addresses at once, one alone (the mean of
# 20 calls), and both with zlib-compressed sections.  Ratios there: the other's time and memory to icfold's; more is better.
# eu-addr2line gets a hundredth of the addresses, since it looks at all functions of a unit each time.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need_tool bench
make_work
corpus=${ICFOLD_CORPUS:-$HOME/.cache/icfold-corpus}
runs=${RUNS:-3}

timer=
if have /usr/bin/time && /usr/bin/time -f %e true 2>/dev/null; then timer=/usr/bin/time; fi

# measure COMMAND...: sets secs and kib (0 when unknown) of the fastest run; fails when the command does.
measure() {
	local i best_s='' best_k=0 s k start
	for ((i = 0; i < runs; i++)); do
		if [ -n "$timer" ]; then
			"$timer" -q -f '%e %M' -o "$WORK/time" "$@" >"$WORK/bench.out" 2>"$WORK/bench.err" || return 1
			read -r s k <"$WORK/time"
		else
			start=$EPOCHREALTIME
			"$@" >"$WORK/bench.out" 2>"$WORK/bench.err" || return 1
			s=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }') k=0
		fi
		if [ -z "$best_s" ] || awk -v a="$s" -v b="$best_s" 'BEGIN { exit !(a < b) }'; then best_s=$s best_k=$k; fi
	done
	secs=$best_s kib=$best_k
}
row() { # NAME STEP SIZE REFERENCE
	awk -v n="$1" -v step="$2" -v s="$secs" -v k="$kib" -v size="$3" -v ref="$4" -v out="$5" 'BEGIN {
		printf "%-10s %-22s %7.2f s %7s %8s MB %6s %12s\n", n, step, s, (ref > 0 ? sprintf("%.2f", s / ref) : ""), (k ? sprintf("%.0f", k / 1024) : ""),
			(k ? sprintf("%.2f", k * 1024 / size) : ""), out }'
}

generate() {
	mkdir -p "$WORK/gen"
	awk -v n="${GENERATED:-20000}" 'BEGIN {
		print "int sink(int);"
		for (i = 0; i < n; i++) {
			g = i % 5 ? int(i / 7) : i
			tail = ""; if (i > 10 && i % 3 == 0) tail = sprintf(" + f%d(s, p)", i - 10)
			printf "int f%d(int a, int *p) { int i, s = a; for (i = 0; i < (a & 15); i++) { s += p[i] * %d; if (s & 64) s ^= sink(s + %d); } return s%s; }\n", i, g % 911, g, tail
		}
		print "int sink(int a) { return a * 3; }"
		printf "int main(void) { int v[16] = {1, 2, 3}; int r = 0;"
		for (i = 0; i < n; i += 97) printf " r += f%d(%d, v);", i, i
		print " return r & 1; }"
	}' >"$WORK/gen/generated.c"
	(cd "$WORK/gen" && gcc -O1 -ffunction-sections -c generated.c -o generated.o && gcc -Wl,--emit-relocs generated.o -o generated) || exit 1
	echo "gcc @LD@ generated.o -o @OUT@" >"$WORK/gen/generated.link"
	echo "$WORK/gen" >"$WORK/gen/generated.dir"
	corpus=$WORK/gen
}

# random_addresses FILE COUNT: places in its code.
random_addresses() {
	readelf -SW "$1" 2>/dev/null | sed 's/^ *\[ *[0-9]*\] //' | awk -v n="$2" '
		function hex(s, i, v) { v = 0; for (i = 1; i <= length(s); i++) v = v * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1; return v }
		$7 ~ /AX/ && hex($5) { lo[++k] = hex($3); size[k] = hex($5); sum += size[k] }
		END { srand(1); for (; n > 0 && k; n--) { x = int(rand() * sum); for (i = 1; x >= size[i]; i++) x -= size[i]; printf "0x%x\n", lo[i] + x } }'
}
# symbolizer NAME STEP COUNT COMMAND...: one row; the first one of a STEP is icfold's.
symbolizer() {
	local name=$1 step=$2 count=$3
	shift 3
	have "$1" || return 0
	# shellcheck disable=SC2016
	measure bash -c 'for ((i = 0; i < $1; i++)); do "${@:3}" <"$2" || exit; done' - "$([ "${step%,*}" = one ] && echo 20 || echo 1)" "$WORK/addresses.$count" "$@" || return 0
	awk -v n="$name" -v step="$step" -v tool="${1##*/}" -v count="$count" -v s="$secs" -v k="$kib" -v ref="${reference[$step]:-}" 'BEGIN {
		per = step ~ /^one/ ? 1e3 * s / 20 : 1e6 * s / count; split(ref, r)
		printf "%-10s %-9s %-20s %10.2f %s %8.1f MB", n, step, tool, per, (step ~ /^one/ ? "ms" : "us/address"), k / 1024
		if (ref != "") printf "   x %.1f time, x %.1f memory", (r[1] > 0 ? per / r[1] : 0), (r[2] > 0 ? k / r[2] : 0)
		printf "\n" }'
	[ -n "${reference[$step]:-}" ] || reference[$step]=$(awk -v s="$secs" -v k="$kib" -v step="$step" -v c="$count" 'BEGIN { print (step ~ /^one/ ? 1e3 * s / 20 : 1e6 * s / c), k }')
}
symbolizers() { # NAME FILE
	local -A reference=()
	local n=${ADDRESSES:-10000} f all one t
	random_addresses "$2" "$n" >"$WORK/addresses.$n"
	head -n $(((n + 99) / 100)) "$WORK/addresses.$n" >"$WORK/addresses.$(((n + 99) / 100))"
	head -n 1 "$WORK/addresses.$n" >"$WORK/addresses.1"
	printf '%-10s %-9s %-20s %10s\n' program addresses symbolizer time
	for f in "$2" "$WORK/compressed"; do
		all=all one=one
		if [ "$f" != "$2" ]; then
			objcopy --compress-debug-sections=zlib "$2" "$f" 2>/dev/null || return 0
			all=all,zlib one=one,zlib
		fi
		symbolizer "$1" $all "$n" "$ICFOLD" symbolize --obj="$f"
		for t in llvm-symbolizer-19 llvm-symbolizer; do if have $t; then symbolizer "$1" $all "$n" $t --obj="$f"; break; fi; done
		symbolizer "$1" $all "$n" addr2line -i -f -C -e "$f"
		symbolizer "$1" $all $(((n + 99) / 100)) eu-addr2line -i -f -C -e "$f"
		symbolizer "$1" $one 1 "$ICFOLD" symbolize --obj="$f"
		symbolizer "$1" $one 1 eu-addr2line -i -f -C -e "$f"
		for t in llvm-symbolizer-19 llvm-symbolizer; do if have $t; then symbolizer "$1" $one 1 $t --obj="$f"; break; fi; done
		symbolizer "$1" $one 1 addr2line -i -f -C -e "$f"
	done
	rm -f "$WORK/compressed"
}

names=("$@")
if [ ${#names[@]} = 0 ]; then
	for n in llc protoc ninja; do [ -s "$corpus/$n" ] && names+=("$n"); done
fi
if [ ${#names[@]} = 0 ]; then
	echo "bench: no programs in $corpus (tests/corpus.sh llc builds one); generating one"
	generate
	names=(generated)
fi
printf '%-10s %-22s %9s %7s %11s %6s %12s\n' program step time /lld peak /input output
status=0
for n in "${names[@]}"; do
	if [ ! -s "$corpus/$n" ]; then
		"$TESTS/corpus.sh" "$n" >/dev/null || { status=1; continue; }
	fi
	in=$corpus/$n
	size=$(file_bytes "$in")
	ref=0
	measure cp "$in" "$WORK/out" && row "$n" "cp" "$size" 0 "$size"
	if have ld.lld && [ -s "$in.link" ]; then
		link=$(sed "s#@LD@#-fuse-ld=lld -Wl,--icf=all#; s#@OUT@#$WORK/linked#" "$in.link")
		if (cd "$(cat "$in.dir")" && measure bash -c "$link" && echo "$secs $kib" >"$WORK/linked.time"); then
			read -r secs kib <"$WORK/linked.time"
			ref=$secs
			row "$n" "lld --icf=all" "$size" "$ref" "$(file_bytes "$WORK/linked")"
		else
			echo "$n: lld does not link it: $(first_line "$WORK/bench.err")"
		fi
	fi
	# A program with debug information is folded with it, and once without it.
	ways=("--icf=none" "--icf=safe" "--icf=all" "--icf=all --threads=1")
	readelf -SW "$in" | grep -q ' \.debug_info' && ways+=("--icf=all --strip-debug")
	for way in "${ways[@]}"; do
		# shellcheck disable=SC2086
		if measure "$ICFOLD" -q $way "$in" -o "$WORK/out"; then
			row "$n" "icfold ${way//--/}" "$size" "$ref" "$(file_bytes "$WORK/out")"
		else
			echo "$n: icfold $way: $(first_line "$WORK/bench.err")"
			status=1
		fi
	done
	if "$ICFOLD" -q --icf=all --stats=json "$in" -o "$WORK/out" >"$WORK/json" 2>/dev/null; then
		awk -F'[:,]' '/"text_before"/ { b = $2 } /"text_after"/ { a = $2 } END { if (b) printf "%-10s .text %d -> %d bytes (%.2f %%)\n", "'"$n"'", b, a, 100 * (a - b) / b }' "$WORK/json"
	fi
	"$ICFOLD" -q --icf=all --time-passes "$in" -o "$WORK/out" 2>&1 | sed "s/^/$n: /"
	rm -f "$WORK/out" "$WORK/linked"
done
for n in "${names[@]}"; do
	if [ -s "$corpus/$n" ] && readelf -SW "$corpus/$n" | grep -q ' \.debug_info'; then symbolizers "$n" "$corpus/$n"; fi
done
exit $status
