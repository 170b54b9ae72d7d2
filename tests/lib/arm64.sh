# shellcheck shell=bash
# arm64.sh: programs and libraries of Debian's arm64, unpacked in a folder; apt of this machine is not touched.

# Programs in many languages, with the libraries that they need: 3,700 ELF files, a download of 1.1 GB, 5 GB unpacked.
ARM64_PACKAGES=${ARM64_PACKAGES:-"coreutils bash perl python3 git gdb gcc g++ clang-14 libllvm14 cmake sqlite3 openssl nginx qemu-system-arm
	qemu-user libgl1-mesa-dri mesa-vulkan-drivers gfortran gnat-12 ghc golang-1.19-go redis-server emacs-nox util-linux vim-nox ffmpeg imagemagick
	postgresql-15 nodejs ruby lua5.4 php-cli samba systemd procps ninja-build protobuf-compiler make gawk zstd rsync openssh-client openssh-server
	curl wget libboost-all-dev gstreamer1.0-plugins-good lld-14 busybox e2fsprogs btrfs-progs iproute2 tcpdump strace valgrind libgtk-3-0
	libqt5widgets5 ocaml-nox mariadb-server libreoffice-core rustc luajit webkit2gtk-driver libopenblas0-pthread bind9 default-jre-headless
	grep sed tar gzip bzip2 xz-utils diffutils findutils libpython3.11-testsuite"}

# arm64_apt DIR ARGUMENT...: apt-get for arm64, which keeps all that it writes in DIR.
arm64_apt() {
	local dir=$1
	shift
	mkdir -p "$dir/state/lists/partial" "$dir/cache/archives/partial" "$dir/etc/parts"
	: >>"$dir/status"
	[ -e "$dir/etc/sources.list" ] ||
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian ${ARM64_SUITE:-bookworm} main" \
			>"$dir/etc/sources.list"
	cat >"$dir/apt.conf" <<-END
		APT::Architecture "arm64";
		APT::Architectures { "arm64"; };
		Dir::State "$dir/state";
		Dir::State::status "$dir/status";
		Dir::Cache "$dir/cache";
		Dir::Etc::sourcelist "$dir/etc/sources.list";
		Dir::Etc::sourceparts "$dir/etc/parts";
		Dir::Etc::parts "$dir/etc/parts";
	END
	APT_CONFIG=$dir/apt.conf apt-get "$@"
}

# arm64_unpack DIR: unpacks the packages that apt fetched into DIR/tree.
arm64_unpack() {
	local dir=$1 name deb
	for name in bin sbin lib; do
		mkdir -p "$dir/tree/usr/$name"
		[ -e "$dir/tree/$name" ] || ln -s "usr/$name" "$dir/tree/$name"
	done
	for deb in "$dir"/apt/cache/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$dir/tree" --keep-directory-symlink --exclude='./dev/*' 2>>"$dir/log"
	done
	touch "$dir/complete"
}

# arm64_system DIR [PACKAGES]: fetches the packages, and unpacks them into DIR/tree, unless they are there.
arm64_system() {
	local dir=$1
	[ -e "$dir/complete" ] && return
	mkdir -p "$dir" && dir=$(realpath "$dir") || return
	# shellcheck disable=SC2086
	arm64_apt "$dir/apt" update >"$dir/log" 2>&1 &&
		arm64_apt "$dir/apt" install -d -y --no-install-recommends ${2:-$ARM64_PACKAGES} >>"$dir/log" 2>&1 || {
		tail -n 5 "$dir/log" >&2
		return 1
	}
	arm64_unpack "$dir"
}
