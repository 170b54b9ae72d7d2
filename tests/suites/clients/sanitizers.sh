#!/bin/bash
# sanitizers.sh: the stacks in reports of AddressSanitizer and UndefinedBehaviorSanitizer.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/lib/clients.sh
. "$TESTS/lib/clients.sh"
start_suite clients python3 jq

# sanitized NAME READER MODES FLAG...: report() alone is instrumented, unless FLAG says more
sanitized() {
	local p=$1 reader=$2 modes=$3 m
	shift 3
	if ! link "$p" sanitizer "$@" >log 2>&1; then
		skip "clients/$p/$CONFIG" "does not build: $(grep -m 1 -E 'error|cannot find' log | cut -c 1-160)"
		return
	fi
	for m in $modes; do
		if fold "$m" "$p"; then compare "$reader" "$m" "$p"; else not_ok "clients/$reader/$CONFIG-$m/$p" "folding: $(first_line log)"; fi
	done
}
modes="safe all"
full && modes="safe all inplace split-safe split-all"
for c in gcc clang; do
	[ $c = gcc ] || full || continue
	config "$c-5" $c 5 yes && objects || continue
	sanitized ubsan sanitizer "$modes" -fsanitize=undefined -DOVERFLOW
	sanitized asan sanitizer "$modes" -fsanitize=address
	config "$c-5-all" $c 5 yes && objects -fsanitize=address && sanitized asan fault "$modes" -fsanitize=address
done
finish
