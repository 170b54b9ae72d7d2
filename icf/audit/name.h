/* name.h: the parts of a demangled function name. */
#ifndef ICF_AUDIT_NAME_H
#define ICF_AUDIT_NAME_H
#include "icf/audit/pool.h"
#include <stdbool.h>
#include <stddef.h>

#define ICF_NAME_PARTS 48

/* "void ns::Class<int>::f<char>(int) const (.cold)" has the parts ns, Class<int>, f<char>.  The
 * return type, the parameters and what follows them are no parts.  A name that cannot be parsed has
 * one part, the whole name. */
struct icf_name {
	const char *text; /* borrowed */
	struct {
		size_t begin, end;
	} part[ICF_NAME_PARTS];
	unsigned n;    /* at least 1 */
	size_t clone;  /* start of " (.cold)", or of ".cold" in a name without brackets; the end if
			  there is none */
	bool thunk;    /* "non-virtual thunk to ..." */
	bool is_const; /* a const member function */
};

void icf_name_parse(struct icf_name *name, const char *text);

/* The length of a part's text up to its template arguments. */
size_t icf_name_base(const struct icf_name *name, unsigned part);

/* All of these write at most SIZE bytes with the final zero to BUF (SIZE > 0), and cut what does
 * not fit. */

/* The name that all instances of a template share, without arguments and clone suffixes:
 * "std::vector<...>::push_back". */
void icf_name_family(const struct icf_name *name, char *buf, size_t size);

/* Parts [FROM, TO) with template arguments as "<...>" (deeper than DEPTH levels), joined by
 * "::". */
void icf_name_parts(const struct icf_name *name, unsigned from, unsigned to, unsigned depth,
		    char *buf, size_t size);

/* Does the name show that its scope is a class (a constructor, a destructor, a const member
 * function)?  BUF gets the scope. */
bool icf_name_class(const struct icf_name *name, char *buf, size_t size);

/* The leading scopes that look like namespaces: no template arguments, no function, none of
 * CLASSES, and no initial capital letter as types usually have; or "(global)". */
void icf_name_namespace(const struct icf_name *name, const struct icf_pool *classes, char *buf,
			size_t size);

/* A short form for people: no return type, no parameters, no default arguments of the standard
 * library, and only as many nested template arguments as LIMIT columns allow.  A longer text loses
 * its middle. */
void icf_name_brief(const struct icf_name *name, size_t limit, char *buf, size_t size);

/* The same for one part.  The last part includes the clone suffix. */
void icf_name_part_brief(const struct icf_name *name, unsigned part, size_t limit, char *buf,
			 size_t size);

/* The short form of TEXT.  If AGAINST has the same short form, the place where the two differ
 * follows.  SIZE > LIMIT. */
void icf_name_contrast(const char *text, const char *against, size_t limit, char *buf, size_t size);
#endif
