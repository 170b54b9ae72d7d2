/* icfold.h: names of code in programs that icfold(1) folded, and in all others; see icfold(3).
 *
 * In a folded program several functions share one body.  Debug information knows the body by one of
 * them; the tables that icfold keeps in the file tell, from the callers on the stack, which of them
 * was really called.
 *
 *	icfold *prog;
 *	const icfold_answer *a;
 *	if (icfold_open("prog", NULL, &prog) == ICFOLD_OK &&
 *	    icfold_stack(prog, address, NULL, n) == ICFOLD_OK)
 *		for (size_t i = 0; i < n; i++)
 *			if (icfold_level(prog, i, &a) == ICFOLD_OK && a->n_frames)
 *				show(icfold_answer_frame(a, a->n_frames - 1)->function);
 *	icfold_close(prog);
 *
 * A handle belongs to one thread at a time; different handles have nothing in common.  The library
 * prints nothing, does not end the program, and has no state of its own.  Structures may get more
 * members at their end, never others: they are made by the library, or tell their size.
 *
 * NULL may stand for a handle or an answer, as there is none without memory: nothing is known of
 * it, and what returns a status fails.  A handle that was closed may not be used. */
#ifndef ICFOLD_H
#define ICFOLD_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ICFOLD_API __attribute__((visibility("default")))
#else
#define ICFOLD_API
#endif

enum icfold_status {
	ICFOLD_OK = 0,
	ICFOLD_ERROR = 1,    /* icfold_message() says what */
	ICFOLD_NO_MEMORY = 2 /* the handle can still be used, and closed */
};

enum {
	ICFOLD_LINKAGE_NAMES = 1,   /* frames' functions as in the symbol table, not demangled */
	ICFOLD_GNU_NAMES = 2,       /* demangled as c++filt does it, not as the LLVM tools do */
	ICFOLD_NO_INLINES = 4,      /* no frames of inlined calls */
	ICFOLD_BASENAMES = 8,       /* files without folders */
	ICFOLD_RELATIVE_NAMES = 16, /* files as the line table has them */
	ICFOLD_OWN_FILE_ONLY = 32   /* do not look for separate debug files */
};

/* Everything in it is borrowed during the opening.  Set `size` to its size and the rest to 0. */
typedef struct icfold_options {
	size_t size;
	unsigned flags;         /* ICFOLD_LINKAGE_NAMES and the like */
	const char *debug_file; /* the separate debug file; NULL: search for it */
	const char *debug_dir;  /* where debug files are; NULL: /usr/lib/debug */
	const char *sysroot;    /* the root folder of both; NULL: / */
} icfold_options;

typedef struct icfold icfold;

/* A function, or a call that was inlined there.  Texts live as long as the handle. */
typedef struct icfold_frame {
	const char *function; /* NULL: not known, as in the following */
	const char *linkage;  /* the name in the symbol table */
	const char *file;
	uint32_t line, column, discriminator; /* 0: not known */
	uint32_t start_line;                  /* where the function is declared; 0: not known */
	uint64_t start_address;               /* 0: not known */
	int inlined;                          /* its code was inlined into the next frame */
} icfold_frame;

/* What is known of an address, valid until the next call with the handle. */
typedef struct icfold_answer {
	size_t n_frames;        /* innermost first; 0: nothing is known */
	int shared;             /* several functions share the code */
	int decided;            /* and the callers tell which one it was */
	size_t n_candidates;    /* of shared code: the functions that it could be */
	const char *decided_by; /* "dcall", "vcall", "tailcall", "unique"; NULL: not decided */
} icfold_answer;

/* The version of the library, as "1.2". */
ICFOLD_API const char *icfold_version(void);

/* Opens the program, library or debug file PATH.  OPTIONS may be NULL.  With ICFOLD_ERROR, *RET is
 * a handle for icfold_message() and icfold_close() only; with ICFOLD_NO_MEMORY it is NULL.  A file
 * is mapped: it must not shrink while it is open. */
ICFOLD_API int icfold_open(const char *path, const icfold_options *options, icfold **ret);

/* The same for an open file, which is not closed, and for SIZE bytes of memory, which are copied.
 */
ICFOLD_API int icfold_open_fd(int fd, const icfold_options *options, icfold **ret);
ICFOLD_API int icfold_open_memory(const void *data, size_t size, const icfold_options *options,
				  icfold **ret);

/* After this PROG, its answers and their texts are gone. */
ICFOLD_API void icfold_close(icfold *prog);

/* What went wrong in the last call that failed; never NULL; valid until the next call.  Of no
 * handle: that memory ran out. */
ICFOLD_API const char *icfold_message(const icfold *prog);

/* The first fault of the file's tables or debug information that a look-up met, or NULL.  What they
 * say is then not known; nothing fails. */
ICFOLD_API const char *icfold_warning(const icfold *prog);

/* Do functions share code in this file? */
ICFOLD_API int icfold_is_folded(const icfold *prog);

/* The build-id and its size in bytes; NULL: there is none. */
ICFOLD_API const uint8_t *icfold_build_id(const icfold *prog, size_t *size);

/* Looks up one address.  Addresses are those in the file: subtract where it was loaded (dlpi_addr
 * of dl_iterate_phdr(3)). */
ICFOLD_API int icfold_address(icfold *prog, uint64_t address, const icfold_answer **ret);

/* Takes a stack of N addresses, innermost first: a PC, then return addresses; 0: in another file.
 * A stack that begins with a caller has 0 before it.  VTABLE, unless NULL, has for each level the
 * address (in the file) of the vtable of the object that its function was called on; 0: not known.
 */
ICFOLD_API int icfold_stack(icfold *prog, const uint64_t *address, const uint64_t *vtable,
			    size_t n);

/* Level I of that stack. */
ICFOLD_API int icfold_level(icfold *prog, size_t i, const icfold_answer **ret);

/* Frame I of ANSWER, and its candidate I; NULL: there are not so many, or the name is not known. */
ICFOLD_API const icfold_frame *icfold_answer_frame(const icfold_answer *answer, size_t i);
ICFOLD_API const char *icfold_answer_candidate(const icfold_answer *answer, size_t i);

#ifdef __cplusplus
}
#endif
#endif
