# results.sh: for suites whose jobs leave files in $WORK/result.VARIANT and words in $WORK/said.VARIANT.  Sourced, behind lib.sh.
# shellcheck shell=bash

# check_results NAME VARIANT: VARIANT left and said what `plain` left and said.  Fails, too, when it did not.
check_results() {
	local why said
	why=$(diff -rq --no-dereference "$WORK/result.plain" "$WORK/result.$2" 2>&1 | head -n 3 | tr '\n' ' ')
	said=$(diff "$WORK/said.plain" "$WORK/said.$2" | head -n 4 | tr '\n' ' ')
	check "$1/$2" "${why//$WORK\//} ${said:0:300}" test -z "$why$said"
	[ -z "$why$said" ]
}

# check_no_complaint NAME VARIANT: the job VARIANT wrote no file `bad`.  Fails, too, when it did.
check_no_complaint() {
	[ ! -s "$WORK/result.$2/bad" ] && return
	not_ok "$1/$2" "$(head -n 3 "$WORK/result.$2/bad" | tr '\n' ' ')"
	return 1
}
