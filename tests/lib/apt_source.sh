# apt_source.sh: apt with lists of source packages in a folder of one's own; the machine's lists stay as they are.  Sourced.
# shellcheck shell=bash

# apt_source_lists DIR: makes DIR/apt.conf, whose lists are the machine's with source packages instead of binary ones.  With
# APT_CONFIG=DIR/apt.conf, `apt-get update` and `apt-get source` use it.
apt_source_lists() {
	local dir=$1 f
	mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial" "$dir/parts"
	for f in /etc/apt/sources.list /etc/apt/sources.list.d/debian*.list; do
		if [ -f "$f" ]; then sed -n 's/^deb /deb-src /p' "$f"; fi
	done >"$dir/parts/d.list"
	for f in /etc/apt/sources.list.d/debian*.sources; do
		if [ -f "$f" ]; then sed 's/^Types:.*/Types: deb-src/' "$f"; echo; fi
	done >"$dir/parts/d.sources"
	cat >"$dir/apt.conf" <<-END
	Dir::Etc::sourcelist "/dev/null";
	Dir::Etc::sourceparts "$dir/parts";
	Dir::State::lists "$dir/lists";
	Dir::Cache "$dir/cache";
	APT::Sandbox::User "";
	END
}
