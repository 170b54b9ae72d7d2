#!/bin/bash
# check.sh: runs every unit test ($BUILD/tests/unit) and every suite (tests/suites), shows what is not ok or skipped, and ends
# with one line: N passed, N failed, N skipped.  V=1 shows the passed ones too.  Arguments: only these, by any part of
# their paths: `tool/cli`, `unit/dwarf`, `tests/suites/debug`.
# As many suites run at a time as there are processors (SUITES=N: that many); each one's lines are shown when it is done.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
mkdir -p "$BUILD"
logs=$(mktemp -d "$BUILD/check-log.XXXXXX") || exit 1
trap 'rm -rf "$logs"' EXIT
trap 'kill $(jobs -p) 2>/dev/null; exit 130' INT TERM
SUITES=${SUITES:-$(nproc 2>/dev/null || echo 2)}

# suite NAME COMMAND...: a suite that fails without saying why is one failure.  Its lines go to $logs/NAME, what is shown to NAME.shown.
suite() {
	local name=$1 start=$SECONDS rc p f s log=$logs/$1
	shift
	mkdir -p "${log%/*}"
	"$@" >"$log" 2>"$log.err"
	rc=$?
	p=$(grep -c '^ok ' "$log") f=$(grep -c '^not ok ' "$log") s=$(grep -c '^skip ' "$log")
	if [ $rc != 0 ] && [ "$f" = 0 ]; then
		echo "not ok $name: exit status $rc: $(tail -n 1 "$log.err" | cut -c 1-200)" >>"$log"
		f=1
	elif [ $((p + f + s)) = 0 ]; then
		echo "not ok $name: no result" >>"$log"
		f=1
	fi
	{
		if [ -n "${V:-}" ]; then grep -E '^(ok|not ok|skip) ' "$log"; else grep -E '^(not ok|skip) ' "$log"; fi
		[ "$f" != 0 ] && sed 's/^/# /' "$log.err" | tail -n 20
		printf '# %-28s %4d passed %4d failed %4d skipped %5d s\n' "$name" "$p" "$f" "$s" $((SECONDS - start))
	} >"$log.shown"
	cat "$log.shown"
}

# start NAME COMMAND...: runs a suite in the background, as soon as fewer than $SUITES run.
running=0
start() {
	if [ $running -ge "$SUITES" ]; then
		wait -n
		running=$((running - 1))
	fi
	suite "$@" &
	running=$((running + 1))
}

# unit PROGRAM: runs a cmocka program; its TAP lines become lines of our form.
unit() {
	local prog=$1 name rc tap
	name=unit/${prog#"$BUILD"/tests/unit/}
	tap=$logs/$name.tap
	CMOCKA_MESSAGE_OUTPUT=TAP timeout 300 "$prog" >"$tap" 2>"$tap.err"
	rc=$?
	sed -nE "s|^ok [0-9]+ - ([^#]*[^# ]) *# *SKIP.*|skip $name/\1: skipped by the test|p; t
		s|^ok [0-9]+ - (.*)|ok $name/\1|p; s|^not ok [0-9]+ - (.*)|not ok $name/\1: see below|p" "$tap"
	if [ $rc != 0 ]; then
		cat "$tap.err" >&2
		grep '^#' "$tap" >&2
	fi
	return $rc
}

only=("$@")
wanted() { # NAME
	[ ${#only[@]} = 0 ] && return
	local o
	for o in "${only[@]}"; do
		o=${o%.sh}
		case /${1%.sh}/ in *"/${o#tests/}/"*) return ;; esac
	done
	return 1
}
left_out() { # NAME WHY
	mkdir -p "$(dirname "$logs/$1")"
	echo "skip $1: $2" | tee "$logs/$1"
}

# Long suites begin first, so that no processor waits for the last of them.
long=" suites/program/matrix.sh suites/program/unused.sh suites/program/fool.sh suites/debug/dwarf.sh suites/tool/mutants.sh suites/debug/symbolize.sh suites/debug/aarch64.sh \
suites/clients/walkers.sh suites/tool/names.sh suites/program/norelocs.sh suites/program/languages.sh suites/tool/hostile.sh suites/program/aarch64.sh suites/debug/gdb.sh "
scripts=()
for n in $long; do scripts+=("$n"); done
for t in "$TESTS"/suites/*/*.sh; do
	t=${t#"$TESTS"/}
	case "$long" in *" $t "*) ;; *) scripts+=("$t") ;; esac
done
for t in "$BUILD"/tests/unit/*/*; do
	[ -x "$t" ] && [ ! -d "$t" ] && wanted "${t#"$BUILD"/tests/}" && start "${t#"$BUILD"/tests/}" unit "$t"
done
for t in "${scripts[@]}"; do
	wanted "$t" || continue
	# These suites build programs from Debian's source packages, which takes hours.
	case $t in
	suites/real/corpus.sh | suites/real/corpus_stack.sh | suites/tool/size.sh | suites/debug/debug.sh)
		if [ -z "${CORPUS:-}" ] && [ ${#only[@]} = 0 ]; then
			left_out "$t" "needs programs built from source packages; CORPUS=1 runs it"
			continue
		fi
		;;
	esac
	case $t in
	suites/real/system_jobs.sh | suites/real/system_apps.sh)
		if [ "${SYSTEM:-}" != full ] && [ ${#only[@]} = 0 ]; then
			left_out "$t" "minutes of work by programs of this machine; SYSTEM=full, or make system-check, runs it"
			continue
		fi
		;;
	esac
	start "${t#suites/}" bash "$TESTS/$t"
done
wait
all=$(find "$logs" -type f ! -name '*.err' ! -name '*.tap' ! -name '*.shown' -exec cat {} +)
p=$(grep -c '^ok ' <<<"$all") f=$(grep -c '^not ok ' <<<"$all") s=$(grep -c '^skip ' <<<"$all")
echo "$p passed, $f failed, $s skipped"
[ "$f" = 0 ] && [ "$p" != 0 ]
