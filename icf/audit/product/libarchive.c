/* libarchive.c: see libarchive.h. */
#include "icf/audit/product/libarchive.h"
#include <dlfcn.h>

bool icf_libarchive_open(struct icf_libarchive *ret)
{
	void *lib = dlopen("libarchive.so.13", RTLD_LAZY);
	bool all = lib != NULL;
	/* POSIX's way to turn the result of dlsym() into a function pointer. */
#define FIND(name) all = all && (*(void **)&ret->name = dlsym(lib, #name)) != NULL;
	ICF_LIBARCHIVE(FIND)
#undef FIND
	return all;
}
