#!/bin/sh
# deps.sh build|aarch64|check: installs the Debian packages that building (or also programs for AArch64; or all tests) need and that
# are not there yet.
# Prints what it is about to do; does nothing when nothing is missing, or when ICFOLD_NO_DEPS is set.
set -u

build="gcc g++ make binutils libc6-dev libxxhash-dev zlib1g-dev libzstd-dev libelf-dev libdw-dev libiberty-dev libarchive-dev"
# clang, lld, mold: what the test programs are built with; the rest judges the results.
# What the recipes are for, the shells that have completions, and what reads manual pages.
recipes="cmake ninja-build meson autoconf automake libtool debhelper rpm zsh fish mandoc groff-base"
# Small readers of programs (suites/clients).  If they are there, that suite also uses perf, bpftrace, lldb, rustc,
# libboost-stacktrace-dev, heaptrack and uftrace.
clients="valgrind ltrace patchelf dwarves abigail-tools debugedit dwarfdump libunwind-dev systemtap-sdt-dev strace dwz"
aarch64="binutils-aarch64-linux-gnu g++-aarch64-linux-gnu qemu-user"
# On that machine g++ has the names of the cross compiler.  Debian has neither a cross compiler nor ltrace there.
if [ "$(uname -m)" = aarch64 ]; then
	aarch64=
	clients=$(echo "$clients" | sed 's/ ltrace / /')
fi
check="$build $recipes $clients $aarch64 clang lld mold elfutils libcmocka-dev libzydis-dev gdb libdebuginfod1 jq time llvm python3 gdb-multiarch"

case ${1:-check} in
build) want=$build ;;
aarch64) want="$build $aarch64" ;;
check) want=$check ;;
*) echo "usage: deps.sh build|aarch64|check" >&2; exit 2 ;;
esac
[ -n "${ICFOLD_NO_DEPS:-}" ] && exit 0
if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
	echo "deps: not a Debian system; these packages (or their likes) are needed: $want"
	exit 0
fi
missing=
for p in $want; do
	[ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing="$missing $p"
done
[ -z "$missing" ] && exit 0
sudo=
if [ "$(id -u)" != 0 ]; then
	if ! command -v sudo >/dev/null 2>&1; then
		echo "deps: missing:$missing; neither root nor sudo: install them by hand" >&2
		exit 1
	fi
	sudo=sudo
fi
echo "deps: installing with ${sudo:+sudo }apt-get:$missing"
log=$(mktemp) || exit 1
# shellcheck disable=SC2086
if ! { $sudo apt-get update && DEBIAN_FRONTEND=noninteractive $sudo ${sudo:+-E} apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1; then
	tail -n 20 "$log" >&2
	rm -f "$log"
	echo "deps: apt-get failed; install by hand:$missing" >&2
	exit 1
fi
rm -f "$log"
