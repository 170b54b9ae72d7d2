#!/bin/bash
# growth.sh [KIND[/COMMAND]]...: time and memory of every command for N, 2N, 4N and 8N of everything that a file can have many of
# (tests/growth/gen.py); not ok if either grows faster than n^1.2.  SCALE=X begins with X times as much; LIMIT=S gives each run S
# seconds.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need_tool growth
have python3 || { skip growth "no python3"; finish; }
make_work
cp "$ICFOLD" "$WORK/icfold"
python3 "$TESTS/growth/run.py" --tool "$WORK/icfold" --work "$WORK/files" --scale "${SCALE:-1}" --limit "${LIMIT:-60}" "$@" || failures=1
finish
