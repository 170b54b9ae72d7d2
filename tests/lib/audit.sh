# audit.sh: runs `icfold audit` and looks at what it says.  Sourced, behind lib.sh and make_work, in $WORK.
# shellcheck shell=bash

# run NAME [ARG...]: its output is in NAME.out, errors in NAME.err, the exit status in $rc.
run() {
	local name=$1
	shift
	"$ICFOLD" audit "$@" >"$name.out" 2>"$name.err" </dev/null
	# shellcheck disable=SC2034 # for those who source this file
	rc=$?
}

# py NAME CODE [FILE...]: ok when CODE, which has the JSON of each FILE in J, says nothing.
py() {
	local name=$1 code=$2 said
	shift 2
	said=$(python3 - "$code" "$@" 2>&1 <<'END'
import json, sys, csv
J = [json.load(open(f)) for f in sys.argv[2:]]
def expect(what, got, want):
	if got != want: print("%s: %s instead of %s" % (what, got, want))
exec(sys.argv[1])
END
	)
	check "$name" "$(echo "$said" | tail -n 1 | cut -c 1-200)" test -z "$said"
}
