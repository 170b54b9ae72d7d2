/* d.h: private to d.c and its parts: the reader of a D name.
 *
 * Readers return false if there is no valid name, if it is too much work, or if memory runs out. */
#ifndef DWARF_DEMANGLE_D_H
#define DWARF_DEMANGLE_D_H
#include "elfrw/base/vec.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dwr_d {
	const char *s; /* from "_D" on, with a NUL at the end */
	size_t at, n;
	size_t base; /* start in the text of the part that "initializer for " precedes */
	size_t last; /* position of the current reference to a type: references inside must lie
			before it */
	unsigned steps, depth;
	bool nomem;
	VEC(char) text;
};

/* ---- d_text.c ---- */

/* The letter MORE places behind the next one; 0: the name has ended. */
static inline char dwr_d_peek(const struct dwr_d *r, size_t more)
{
	return r->at + more < r->n ? r->s[r->at + more] : 0;
}

/* Counts N steps. */
bool dwr_d_step(struct dwr_d *r, size_t n);

/* Enters a level; the other leaves it and returns OK. */
bool dwr_d_enter(struct dwr_d *r);
bool dwr_d_leave(struct dwr_d *r, bool ok);

bool dwr_d_put(struct dwr_d *r, const char *s, size_t n);
bool dwr_d_say(struct dwr_d *r, const char *s);

/* Appends the text from FROM to TO again. */
bool dwr_d_put_again(struct dwr_d *r, size_t from, size_t to);

/* Drops the text from FROM to TO. */
void dwr_d_drop(struct dwr_d *r, size_t from, size_t to);

/* Does WHAT stand at AT? */
bool dwr_d_starts(const struct dwr_d *r, size_t at, const char *what);

/* Reads C, if it is next. */
bool dwr_d_eat(struct dwr_d *r, char c);

/* A decimal number that something follows. */
bool dwr_d_number(struct dwr_d *r, size_t *ret);

/* A reference back: Q and how far, in base 26 with the last digit in lower case. */
bool dwr_d_back_target(const struct dwr_d *r, size_t at, size_t *to, size_t *next);

/* ---- d.c ---- */

/* Does a name begin at AT? */
bool dwr_d_is_name(const struct dwr_d *r, size_t at);

/* Names with dots between, functions with their parameters; with MODIFIERS also the modifiers of
 * `this`. */
bool dwr_d_qualified(struct dwr_d *r, bool show);

/* A name that begins with "_D". */
bool dwr_d_mangled_name(struct dwr_d *r);

/* ---- d_type.c ---- */

bool dwr_d_is_convention(char c);

/* The parameters of an enclosing function, if they are next. */
bool dwr_d_outer_function(struct dwr_d *r, bool show);

bool dwr_d_type(struct dwr_d *r);

/* ---- d_value.c ---- */

/* A value of a type that begins with OF and whose name is NAME_LEN letters of the text at NAME. */
bool dwr_d_value(struct dwr_d *r, char of, size_t name, size_t name_len);
#endif
