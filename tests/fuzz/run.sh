#!/bin/bash
# run.sh BUILD [HARNESS...]: every harness in turn for FUZZ_SECONDS (60) seconds each, BUILD being where `make fuzz` put them.
#
# Prints a line a harness: runs, runs per second, coverage; exit status 1 when one found something (the input is then in
# BUILD/fuzz/found/HARNESS-*).  The corpus grows in BUILD/fuzz/corpus and is used again.  Without libFuzzer (BUILD/fuzz has no
# programs) BUILD/tests/replay makes random changes of the seeds for as long.
set -u
build=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
seconds=${FUZZ_SECONDS:-60}
work=$build/fuzz
mkdir -p "$work/found" "$work/log"
ICFOLD=${ICFOLD:-$build/icfold} bash "$here/seeds.sh" "$work/seeds" || exit 1
names=("$@")
[ ${#names[@]} = 0 ] && mapfile -t names < <("$build/tests/replay" --list)
status=0
export ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
for n in "${names[@]}"; do
	log=$work/log/$n
	mkdir -p "$work/corpus/$n" "$work/seeds/$n"
	if [ -x "$work/$n" ]; then
		"$work/$n" "$work/corpus/$n" "$work/seeds/$n" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=1024 \
			-max_len=65536 -artifact_prefix="$work/found/$n-" -print_final_stats=1 -close_fd_mask=1 >"$log" 2>&1
		rc=$?
		awk -v n="$n" '/ cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") cov = $(i + 1) } /number_of_executed_units/ { runs = $2 } /average_exec_per_sec/ { rate = $2 }
			END { printf "%-12s %10d runs %8d a second, coverage %d\n", n, runs, rate, cov }' "$log"
	else
		"$build/tests/replay" --seconds "$seconds" "$n" "$work/seeds/$n"/* >"$log" 2>&1
		rc=$?
		printf '%-12s %s\n' "$n" "$(tail -n 1 "$log")"
	fi
	if [ $rc != 0 ]; then
		echo "$n: exit status $rc: $(grep -E 'SUMMARY|runtime error|Test unit written' "$log" | head -n 3 | tr '\n' ' ')"
		status=1
	fi
done
exit $status
