/* demangle.h: readable forms of mangled names (Itanium C++, Rust, D).  This is the only user of
 * libiberty's demanglers, which accept arbitrary input and bound neither time nor memory. */
#ifndef DWARF_DEMANGLE_DEMANGLE_H
#define DWARF_DEMANGLE_DEMANGLE_H
#include <stdbool.h>

enum dwr_spelling {
	DWR_SPELLING_LLVM, /* as llvm-symbolizer: "a<b<c>>", "f() (.cold)" */
	DWR_SPELLING_GNU, /* as c++filt, gdb and perf -v: "a<b<c> >", "f() [clone .cold]", the older
			     Rust names without a hash */
	DWR_SPELLING_GNU_SHORT, /* the same without parameters, as perf */
};

/* *RET: NAME in that spelling, which the caller frees; NULL: NAME is not mangled, or its readable
 * form would take too much time or memory, and NAME is shown unchanged.  false: out of memory. */
bool dwr_demangle(const char *name, enum dwr_spelling spelling, char **ret);
#endif
