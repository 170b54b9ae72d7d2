# icfold.bash: completion of icfold's commands, options and values for bash; needs nothing but bash.
_icfold_options() { # COMMAND
	case $1 in
	fold)
		echo "-o --output= --icf= --no-thunks --keep-unique= --keep-unique-file= --gc-functions --gc-functions= --keep= --keep-file= --why-live= --debug-folded= --debug-output= --debug-file= --debug-file-directory= --strip-debug \
			--strip-all --emit-relocs --emit-vtables --in-place --allow-growth --require-compact --keep-build-id --verify --write-if-changed --print-icf-sections \
			--print-icf-sections= --print-gc-functions --print-gc-functions= --map= --depfile= --summary --summary= --stats --stats= --json --threads= --time-passes -q --quiet -v --verbose -h \
			--help -V --version"
		;;
	verify)
		echo "--icf= --gc-functions --json --no-debug --debug-file= --debug-output= --debug-file-directory= --max= --threads= -q --quiet -v --verbose -h --help -V --version"
		;;
	symbolize)
		echo "-e --obj= -i --inlines --no-inlines -f --functions --functions= -C --demangle --demangle= --no-demangle -a --addresses -p \
			--pretty-print -s --basenames --relativenames --output-style= --json --relative-address --adjust-vma= --stack --core= \
			--pid= --perf --log --base= --sysroot= --debug-file= --debug-file-directory= \
			--threads= -q --quiet -v --verbose -h --help -V --version"
		;;
	inlines)
		echo "-C --demangle --no-demangle -s --basenames --relativenames --debug-file-directory= --json --threads= -q --quiet -v --verbose -h --help -V --version"
		;;
	profile)
		echo "--to= --undecided= --event= --forward --debug-file= --debug-file-directory= --threads= -q --quiet -v --verbose -h --help -V --version"
		;;
	symbols)
		echo "--format= -o --output= --debug-file= --debug-file-directory= --threads= -q --quiet -v --verbose -h --help -V --version"
		;;
	dump)
		echo "--map --groups --removed --slots --overlay --dcall --vcall --all --json --threads= -q --quiet -v --verbose -h --help -V --version"
		;;
	audit)
		echo "--icf= --json --csv --format= --html= --rows= --package= --top= --filter= --sort= --full-names --files-from= --memory= --no-sources --why= --diff --max-growth= --max-duplicated= \
			--threads= -q --quiet -v --verbose -h --help -V --version"
		;;
	--linker-wrapper)
		echo "--fatal-warnings --no-warnings -h --help"
		;;
	esac
}

_icfold_values() { # COMMAND OPTION: words, or -f or -d for names of files or directories
	case $1$2 in
	*--output | *--keep-unique-file | *--keep-file | *--print-icf-sections | *--print-gc-functions | *--map | *--depfile | *--debug-file | *--debug-output | *--obj | *--core | *--html | *--rows | *--files-from) echo "-f" ;;
	profile--to) echo "perfscript profgen bolt autofdo pprof collapsed gmon callgrind" ;;
	profile--undecided) echo "kept drop spread" ;;
	symbols--format) echo "breakpad gsym json" ;;
	fold--icf) echo "safe all none" ;;
	fold--gc-functions) echo "objects functions" ;;
	fold--debug-folded) echo "overlay alias drop" ;;
	fold--stats) echo "text json" ;;
	fold--summary) echo "always auto never" ;;
	verify--icf) echo "safe all" ;;
	symbolize--functions) echo "none short linkage" ;;
	symbolize--demangle) echo "llvm gnu" ;;
	symbolize--output-style) echo "LLVM GNU JSON" ;;
	*--debug-file-directory | *--sysroot) echo "-d" ;;
	audit--icf) echo "all safe" ;;
	audit--format) echo "text json csv github gitlab sarif" ;;
	audit--sort) echo "saving count size name" ;;
	*-o | *-e) echo -f ;;
	esac
}

_icfold_files() { # -f or -d, BEGINNING: adds names of files or directories to COMPREPLY, whole where they have line breaks
	local line
	compopt -o filenames 2>/dev/null
	while IFS= read -r line; do
		if [[ $line == //* ]]; then
			COMPREPLY+=("${line#//}")
		elif ((${#COMPREPLY[@]} > 0)); then
			COMPREPLY[-1]+=$'\n'$line
		fi
	done < <(compgen "$1" -P // -- "$2")
	# Some quotes only readline itself can undo.
	((${#COMPREPLY[@]} > 0)) || compopt -o default 2>/dev/null
}

_icfold() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command=fold option='' values i
	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -- && ${COMP_WORDS[1]} == --linker-wrapper ]]; then
			# The linker's own arguments.
			if ((i + 1 == COMP_CWORD)); then mapfile -t COMPREPLY < <(compgen -c -- "$cur"); else _icfold_files -f "$cur"; fi
			compopt -o filenames 2>/dev/null
			return
		elif [[ ${COMP_WORDS[i]} == -- ]]; then
			_icfold_files -f "$cur"
			return
		fi
	done
	case ${COMP_WORDS[1]} in
	fold | verify | symbolize | inlines | profile | symbols | dump | audit | --linker-wrapper) ((COMP_CWORD > 1)) && command=${COMP_WORDS[1]} ;;
	esac
	# "--option=value" is three words, since = separates words.
	if [[ $cur == = ]]; then
		option=$prev cur=
	elif [[ $prev == = ]] && ((COMP_CWORD > 2)); then
		option=${COMP_WORDS[COMP_CWORD - 2]}
	elif [[ $prev == -* && $cur != -* && " $(_icfold_options "$command") " != *" $prev "* || $prev == -[oe] ]]; then
		option=$prev
	fi
	if [[ -n $option ]]; then
		values=$(_icfold_values "$command" "$option")
		if [[ $values == -[fd] ]]; then
			_icfold_files "$values" "$cur"
		else
			mapfile -t COMPREPLY < <(compgen -W "$values" -- "$cur")
		fi
		return
	fi
	if [[ $cur == -* ]]; then
		values=$(_icfold_options "$command")
		[[ $command == --linker-wrapper ]] && values+=" $(_icfold_options fold)"
		((COMP_CWORD == 1)) && values+=" --linker-wrapper"
		mapfile -t COMPREPLY < <(compgen -W "$values" -- "$cur")
		[[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
		return
	fi
	values="fold verify symbolize inlines profile symbols dump audit"
	if ((COMP_CWORD == 2)) && [[ ${COMP_WORDS[1]} == help ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$values --linker-wrapper" -- "$cur")
		return
	fi
	_icfold_files -f "$cur"
	if ((COMP_CWORD == 1)); then
		mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W "$values help" -- "$cur")
	fi
}
complete -F _icfold icfold
