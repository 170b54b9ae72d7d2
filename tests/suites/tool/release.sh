#!/bin/bash
# release.sh: the tarball, what install and uninstall do, and that versions agree.  RELEASE=full also builds the Debian and RPM packages
# and installs the former in a new system.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite release make
version=$(sed -n 's/.*ICF_VERSION "\(.*\)"/\1/p' "$ROOT/icf/cli/version.h")
check release/version/debian "$(head -n 1 "$ROOT/debian/changelog")" [ "$(sed -n '1s/^icfold (\(.*\)) .*/\1/p' "$ROOT/debian/changelog")" = "$version" ]
check release/version/rpm "$(grep '^Version' "$ROOT/rpm/icfold.spec")" [ "$(sed -n 's/^Version: //p' "$ROOT/rpm/icfold.spec")" = "$version" ]
check release/version/changes "$(sed -n 3p "$ROOT/CHANGELOG.md")" grep -q "^## $version" "$ROOT/CHANGELOG.md"
check release/version/man "$(grep -l '^\.Os icfold' "$ROOT"/man/* | head -n 1)" [ "$(grep -h '^\.Os icfold' "$ROOT"/man/*.? | sort -u)" = ".Os icfold $version" ]
# What the program says: the version alone in the first line; then what it can do, without gaps.
for c in "" profile verify; do "$ICFOLD" $c --version; done | sort | uniq -c >said
check release/version/program "$(head -n 2 said)" awk -v v="icfold $version" '$1 != 3 { exit 1 } { sub(/^ *3 /, ""); n += $0 == v } END { exit n != 1 }' said
"$ICFOLD" --version >said
check release/version/first "$(head -n 1 said)" [ "$(head -n 1 said)" = "icfold $version" ]
check release/version/architectures "$(grep Arch said)" [ "$(grep -c 'extern const struct elfrw_arch ' "$ROOT/elfrw/arch/arch.h")" = "$(sed -n 's/^Architectures: //p' said | wc -w)" ]
check release/version/profiles "$(grep Prof said)" [ "$(sed -n 's/^Profiles: //p' said)" = "$("$ICFOLD" profile --help | sed -n 's/.*--to=\([a-z]*\).*/\1/p' | tr '\n' ' ' | sed 's/ $//')" ]
check release/version/libraries "$(grep Lib said)" grep -qE '^Libraries: elfutils/[0-9.]+ zlib/[0-9.]+ zstd/[0-9.]+ xxhash/[0-9.]+$' said

# --- the tarball ------------------------------------------------------------------------------------------------------------
if have git && have xz && git -C "$ROOT" rev-parse HEAD >/dev/null 2>&1; then
	for n in 1 2; do make -s -C "$ROOT" dist BUILD="$WORK/dist$n" >log 2>&1 || not_ok release/dist "$(tail -n 1 log)"; done
	tar=dist1/icfold-$version.tar.xz
	check release/dist/same "two tarballs of one commit differ" cmp -s "$tar" "dist2/icfold-$version.tar.xz"
	tar tf "$tar" | grep -v '/$' | sed 's,^[^/]*/,,' | sort >in.tar
	git -C "$ROOT" ls-tree -r --name-only HEAD | sort >in.git
	check release/dist/complete "$(diff in.tar in.git | head -n 3)" cmp -s in.tar in.git
else
	skip release/dist "no git here, or this is no clone"
fi

# --- install and uninstall -------------------------------------------------------------------------------------------------
to="$WORK/a place"
mkdir -p "$to/usr/share/icfold" "$to/usr/bin"
echo mine >"$to/usr/share/icfold/mine"
echo other >"$to/usr/bin/other"
(cd "$to" && find . ! -type d | sort) >before
if (umask 077 && make -s -C "$ROOT" -o all install BUILD="$BUILD" DESTDIR="$to" PREFIX=/usr GDBINIT_DIR=/etc/none/gdb) >log 2>&1; then
	(cd "$to" && find . ! -type d | sort) >installed
	check release/install/gdb "no start file for gdb" [ -s "$to/etc/none/gdb/icfold.py" ]
	check release/install/umask "a file that others cannot read" [ -z "$(find "$to/usr" "$to/etc" -type f ! -perm -444 | grep -v mine)" ]
	make -s -C "$ROOT" -o all uninstall BUILD="$BUILD" DESTDIR="$to" PREFIX=/usr GDBINIT_DIR=/etc/none/gdb >log 2>&1
	(cd "$to" && find . ! -type d | sort) >after
	check release/uninstall "$(diff before after | head -n 3)" cmp -s before after
	check release/installed "$(wc -l <installed)" [ "$(wc -l <installed)" -gt 25 ]
else
	not_ok release/install "$(tail -n 1 log)"
fi

# A prefix with spaces: what pkg-config says of it, there and wherever the tree is moved to.
place="$WORK/its own"
if ! have pkg-config; then
	skip release/pkg-config "no pkg-config"
elif make -s -C "$ROOT" -o all install BUILD="$BUILD" PREFIX="$place" GDBINIT_DIR="$place/gdb" >log 2>&1; then
	printf '#include <icfold.h>\nint main(void) { return !icfold_open; }\n' >use.c
	# said ENVIRONMENT...: the flags, in words of the shell.
	said() { env PKG_CONFIG_PATH="$place/lib/pkgconfig" "$@" icfold; }
	eval "flags=($(said pkg-config --cflags --libs 2>log))"
	check release/pkg-config "${flags[*]} $(first_line log)" gcc use.c -o use "${flags[@]}"
	check release/pkg-config/runs "$("$place/bin/icfold" --version 2>&1 | head -n 1)" env LD_LIBRARY_PATH="$place/lib" ./use
	check release/pkg-config/sysroot "$(said env PKG_CONFIG_SYSROOT_DIR=/root.d pkg-config --cflags)" [ "$(said env PKG_CONFIG_SYSROOT_DIR=/root.d pkg-config --cflags --libs | tr -d '\\' | sed 's, -I/root.d/usr/include,,; s/ *$//')" = "-I/root.d$place/include -L/root.d$place/lib -licfold" ]
	check release/pkg-config/moved "$(said pkg-config --define-variable=prefix=/else --libs)" [ "$(said pkg-config --define-variable=prefix=/else --libs | sed 's/ *$//')" = "-L/else/lib -licfold" ]
else
	not_ok release/pkg-config "$(tail -n 1 log)"
fi

# --- packages --------------------------------------------------------------------------------------------------------------
packages() {
	mkdir -p deb/icfold
	tar xf "$tar" -C deb/icfold --strip-components=1
	if ! (cd deb/icfold && unset BUILD ICFOLD MAKEFLAGS && dpkg-buildpackage -us -uc -b) >deb.log 2>&1; then not_ok release/deb "$(grep -m 1 -i error deb.log)"; return; fi
	ok release/deb
	if have lintian; then
		lintian --allow-root --fail-on error,warning deb/*.changes >lintian.log 2>&1
		rc=$?
		check release/lintian "$(head -n 1 lintian.log)" [ $rc = 0 ]
	else
		skip release/lintian "no lintian"
	fi
	if ! have debootstrap || [ "$(id -u)" != 0 ] || ! debootstrap --variant=minbase bookworm system "${MIRROR:-}" >boot.log 2>&1; then
		skip release/system "no debootstrap, not root, or no packages: $(tail -n 1 boot.log 2>/dev/null)"
		return
	fi
	cp /etc/apt/sources.list system/etc/apt/ 2>/dev/null
	cp deb/*.deb deb/icfold/debian/tests/smoke system/tmp/
	inside() { chroot system env DEBIAN_FRONTEND=noninteractive "$@"; }
	if ! { inside apt-get update && inside sh -c 'apt-get install -y --no-install-recommends g++ pkgconf python3 man-db /tmp/icfold_*.deb /tmp/libicfold*.deb /tmp/python3-icfold_*.deb'; } >in.log 2>&1; then
		not_ok release/system/install "$(grep -m 1 '^E:' in.log)"
		return
	fi
	ok release/system/install
	inside sh /tmp/smoke >smoke.log 2>&1
	rc=$?
	check release/system/smoke "$(tail -n 1 smoke.log)" [ $rc = 0 ]
	check release/system/man "no manual page" [ "$(inside man -w icfold icfold-verify 3 icfold 2>/dev/null | grep -c gz)" = 3 ]
	inside apt-get purge -y icfold libicfold1 libicfold-dev python3-icfold >in.log 2>&1
	# Nothing is left: no file of the name, none that packages did not bring, and no word of it in a configuration or an index.
	left=$(find system -xdev -name '*icfold*' -not -path 'system/tmp/*' -not -path 'system/proc/*' | head -n 3
		grep -rslI icfold system/etc system/var/lib/dpkg/status system/var/lib/dpkg/triggers system/var/cache/man | head -n 3
		grep -sl libicfold system/etc/ld.so.cache)
	check release/system/purge "$(tr '\n' ' ' <<<"$left")" [ -z "$left" ]
}
rpms() {
	mkdir -p rpm/SOURCES
	cp "$tar" rpm/SOURCES
	if env -u BUILD -u ICFOLD -u MAKEFLAGS rpmbuild -bb --nodeps --define "_topdir $PWD/rpm" "$ROOT/rpm/icfold.spec" >rpm.log 2>&1; then ok release/rpm; else not_ok release/rpm "$(grep -m 1 -i error rpm.log)"; return; fi
	check release/rpm/files "$(find rpm/RPMS -name '*.rpm' | wc -l)" [ "$(find rpm/RPMS -name '*.rpm' | wc -l)" = 4 ]
}
if [ "${RELEASE:-}" = full ]; then
	if have dpkg-buildpackage && have dh; then packages; else skip release/deb "no debhelper"; fi
	if have rpmbuild; then rpms; else skip release/rpm "no rpmbuild"; fi
fi
finish
