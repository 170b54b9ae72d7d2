# elf.sh: sections, symbols and words of ELF files, read by binutils; words written on purpose.  Sourced, behind lib.sh.
# shellcheck shell=bash

# section_header FILE NAME: "ADDRESS OFFSET SIZE" of a section, as hexadecimal digits; nothing when FILE has no such section.
section_header() { readelf -SW "$1" 2>/dev/null | sed 's/^ *\[ *[0-9]*\] //' | awk -v name="$2" '$1 == name { print $3, $4, $5; exit }'; }

# section_size FILE NAME: in bytes, decimal.
section_size() {
	local size
	read -r _ _ size < <(section_header "$1" "$2")
	echo $((0x${size:-0}))
}

# section_bytes FILE NAME: what it holds.
section_bytes() { objcopy -O binary -j "$2" "$1" "$1.section" 2>/dev/null && cat "$1.section"; }

# sections_differ FILE OTHER NAME: whether the bytes of the two sections differ.
sections_differ() { ! cmp -s <(section_bytes "$1" "$3") <(section_bytes "$2" "$3"); }

# address_of FILE SYMBOL: as 0x and hexadecimal digits; of the first symbol that has the name.
address_of() { nm "$1" | awk -v name="$2" '$3 == name { print "0x" $1; exit }'; }

# put_word FILE ADDRESS SIZE VALUE [SECTION]: writes a word of SIZE bytes, least first, at an address in SECTION (default: .rodata).
put_word() {
	local va off i bytes=
	read -r va off _ < <(section_header "$1" "${5:-.rodata}")
	for ((i = 0; i < $3; i++)); do bytes+=$(printf '\\x%02x' $(($4 >> (8 * i) & 255))); done
	printf '%b' "$bytes" | dd of="$1" bs=1 seek=$(($2 - 0x$va + 0x$off)) conv=notrunc 2>/dev/null
}
