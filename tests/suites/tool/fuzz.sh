#!/bin/bash
# fuzz.sh: every reader gets the seeds and regressions of tests/fuzz, each with MUTATIONS (40) random changes, from the plain runner.
# `make fuzz` does this for longer, with libFuzzer; `make sanitize` runs this suite with sanitizers.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
need_tool fuzz
REPLAY=${REPLAY:-$BUILD/tests/replay}
[ -x "$REPLAY" ] || { not_ok fuzz "no $REPLAY"; finish; }
have python3 || { skip fuzz "no python3"; finish; }
make_work
bash "$TESTS/fuzz/seeds.sh" "$WORK/seeds" || { not_ok fuzz/seeds "seeds.sh failed"; finish; }

one() {
	local name=$1 files=("$WORK/seeds/$1"/*) n=${MUTATIONS:-40}
	[ -e "${files[0]}" ] || { echo "skip fuzz/$name: no seeds"; return; }
	# Harnesses of whole programs take milliseconds for each change.
	case $name in fold | verify | symbolize | symbols | profile | library) n=$((n / 4)) ;; esac
	if ASAN_OPTIONS=allocator_may_return_null=1 timeout 600 "$REPLAY" --mutate "$n" "$name" "${files[@]}" >"$WORK/$name.out" 2>"$WORK/$name.err"; then
		echo "ok fuzz/$name: $(tail -n 1 "$WORK/$name.err")"
	else
		echo "not ok fuzz/$name: exit status $?: $(grep -E 'ERROR|runtime error' "$WORK/$name.err" | head -n 1 | cut -c 1-200)"
	fi
}
export -f one
export REPLAY
if timeout 300 "$REPLAY" --spin >/dev/null 2>"$WORK/spin" || ! grep -q 'fuzz: slow' "$WORK/spin"; then
	not_ok fuzz/limit "an input that takes for ever is not told"
else
	ok fuzz/limit
fi
"$REPLAY" --list | xargs -P "$JOBS" -I NAME bash -c 'one NAME' >"$WORK/result"
cat "$WORK/result"
grep -q '^not ok' "$WORK/result" && failures=1
[ -s "$WORK/result" ] || not_ok fuzz "no harness"
finish
