# fool.sh: builds the programs of fixtures/fool, which are made to mislead whoever infers references without relocations.
# Sourced, behind lib.sh.
# shellcheck shell=bash
FOOL=$FIXTURES/fool

# fool_directive FILE NAME: the directives NAME of a source file; fixtures/fool/fool.h explains them.
fool_directive() {
	sed -n "s/^ \* $2: *\(.*[^ ]\) *\(\*\/\)\{0,1\}$/\1/p; s/^\/\* $2: *\(.*\)/\1/p" "$1" | sed 's/ *\*\/$//' | tr '\n' ' '
}

# build_fool COMPILER SOURCE FOLDER OUTPUT [FLAG...]: the program OUTPUT, linked without --emit-relocs, with objects in FOLDER.
# FLAGs are for compiling SOURCE; what SOURCE's directives ask for comes on top.
build_fool() {
	local cc=$1 src=$2 d=$3 out=$4 driver part
	shift 4
	driver=$(compiler_of "$cc" "$src")
	for part in before after; do
		"$cc" -O2 -fPIE -w -DPART=$part -c "$FOOL/twins.c" -o "$d/$part.o" || return
	done
	# shellcheck disable=SC2046
	"$driver" -O2 -fPIE -w "-I$FOOL" "$@" $(fool_directive "$src" flags) -c "$src" -o "$d/x.o" &&
		"$driver" -pie $(fool_directive "$src" ldflags) "$d/before.o" "$d/x.o" "$d/after.o" -o "$out"
}

# map_of FILE NAME: "OLD NEW", the addresses of a unit, from a file that --map wrote.
map_of() { awk -v name="$2" '$4 == name { print $1, $3 }' "$1"; }
