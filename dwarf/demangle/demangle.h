/* demangle.h: mangled names (Itanium C++, Rust, D) made readable; the only way to libiberty's
 * demanglers, which take what any file says for a name and bound neither their time nor their
 * memory. */
#ifndef DWARF_DEMANGLE_DEMANGLE_H
#define DWARF_DEMANGLE_DEMANGLE_H
#include <stdbool.h>

enum dwr_spelling {
	DWR_SPELLING_LLVM, /* as llvm-symbolizer: "a<b<c>>", "f() (.cold)" */
	DWR_SPELLING_GNU, /* as c++filt, gdb and perf -v: "a<b<c> >", "f() [clone .cold]", the older
			     Rust names without a hash */
	DWR_SPELLING_GNU_SHORT, /* the same without parameters, as perf */
};

/* NAME spelled so in *RET, which the caller frees; NULL: it is not a mangled name, or one whose
 * readable form would take too much time or room, and is to be shown as it is.  false: out of
 * memory. */
bool dwr_demangle(const char *name, enum dwr_spelling spelling, char **ret);
#endif
