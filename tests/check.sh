#!/bin/bash
# check.sh: runs every unit test ($BUILD/tests/test_*) and every tests/run_*.sh, shows what is not ok or skipped, and ends
# with one line: N passed, N failed, N skipped.  V=1 shows the passed ones too.  Arguments: only these (names or paths).
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
mkdir -p "$BUILD"
log=$(mktemp "$BUILD/check-log.XXXXXX") || exit 1
trap 'rm -f "$log" "$log.one"' EXIT
: >"$log"

# suite NAME COMMAND...: its lines go to the log; a suite that fails without saying why is one failure.
suite() {
	local name=$1 start=$SECONDS rc p f s
	shift
	"$@" >"$log.one" 2>"$log.err"
	rc=$?
	p=$(grep -c '^ok ' "$log.one") f=$(grep -c '^not ok ' "$log.one") s=$(grep -c '^skip ' "$log.one")
	if [ $rc != 0 ] && [ "$f" = 0 ]; then
		echo "not ok $name: exit status $rc: $(tail -n 1 "$log.err" | cut -c 1-200)" >>"$log.one"
		f=1
	elif [ $((p + f + s)) = 0 ]; then
		echo "not ok $name: no result" >>"$log.one"
		f=1
	fi
	if [ -n "${V:-}" ]; then grep -E '^(ok|not ok|skip) ' "$log.one"; else grep -E '^(not ok|skip) ' "$log.one"; fi
	[ "$f" != 0 ] && sed 's/^/# /' "$log.err" | tail -n 20
	printf '# %-28s %4d passed %4d failed %4d skipped %5d s\n' "$name" "$p" "$f" "$s" $((SECONDS - start))
	cat "$log.one" >>"$log"
	rm -f "$log.err"
}

# A cmocka program speaks TAP; its lines become ours.
unit() {
	local prog=$1 name rc
	name=${prog##*/}
	CMOCKA_MESSAGE_OUTPUT=TAP timeout 300 "$prog" >"$log.tap" 2>"$log.tap.err"
	rc=$?
	sed -nE "s|^ok [0-9]+ - ([^#]*[^# ]) *# *SKIP.*|skip $name/\1: skipped by the test|p; t
		s|^ok [0-9]+ - (.*)|ok $name/\1|p; s|^not ok [0-9]+ - (.*)|not ok $name/\1: see below|p" "$log.tap"
	if [ $rc != 0 ]; then
		cat "$log.tap.err" >&2
		grep '^#' "$log.tap" >&2
	fi
	rm -f "$log.tap" "$log.tap.err"
	return $rc
}

wanted() { # NAME
	[ ${#only[@]} = 0 ] && return
	local o
	for o in "${only[@]}"; do [ "${o##*/}" = "$1" ] && return; done
	return 1
}
only=("$@")
for t in "$BUILD"/tests/test_*; do
	[ -x "$t" ] && [ ! -d "$t" ] && wanted "${t##*/}" && suite "${t##*/}" unit "$t"
done
for t in "$TESTS"/run_*.sh; do
	wanted "${t##*/}" || continue
	# These build programs from Debian's source packages: hours, not minutes.
	case ${t##*/} in
	run_corpus.sh | run_corpus_stack.sh | run_size.sh | run_debug.sh)
		if [ -z "${CORPUS:-}" ] && [ ${#only[@]} = 0 ]; then
			echo "skip ${t##*/}: needs programs built from source packages; CORPUS=1 runs it" | tee -a "$log"
			continue
		fi
		;;
	esac
	if [ "${t##*/}" = run_system_jobs.sh ] && [ "${SYSTEM:-}" != full ] && [ ${#only[@]} = 0 ]; then
		echo "skip ${t##*/}: minutes of work by programs of this machine; SYSTEM=full, or make system-check, runs it" | tee -a "$log"
		continue
	fi
	suite "${t##*/}" bash "$t"
done
p=$(grep -c '^ok ' "$log") f=$(grep -c '^not ok ' "$log") s=$(grep -c '^skip ' "$log")
echo "$p passed, $f failed, $s skipped"
[ "$f" = 0 ] && [ "$p" != 0 ]
