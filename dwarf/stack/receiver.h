/* receiver.h: the objects that virtual functions on a stack were called on, and their vtables, read
 * in a stopped program. */
#ifndef DWARF_STACK_RECEIVER_H
#define DWARF_STACK_RECEIVER_H
#include "dwarf/stack/frame_value.h"

/* Sets VTABLE[level] (as linked; stack->n of them, 0 on entry) for the levels of STACK that CHAIN
 * (what dwr_callchain_resolve said without it) left open and that a virtual call reached.  The
 * object is what the caller passed as first argument, kept in a register that the callee preserves,
 * or `this` as the function's own debug information has it; its first word must be the address
 * point of a vtable of this file, from whose slot the call comes to this code.
 *
 * That word is read now and was needed at the call.  In between only the end of the object's life
 * changes it, so a level says nothing when
 *  - it, or a level inside of it, may be in a destructor: ENDING[level] (see dwr_names_destructor),
 *  or a candidate's name;
 *  - its code, or that of a level inside of it, names the vtable itself, as an inlined destructor
 *  does.
 * An object that was destroyed by a function which has returned, in memory that still looks like an
 * object, is not noticed. */
struct elfrw_err *dwr_receiver_vtables(struct dwr_stack *stack, const struct dwr_chain *chain,
				       const bool *ending, uint64_t *vtable);

/* Whether LINKAGE (a mangled name, or what stands in DW_AT_name) is a destructor's; then *CLS, of
 * *LEN bytes, is its class as it stands in the name: _ZTV, then *CLS or N *CLS E, is the class's
 * vtable.  *LEN 0: the name does not tell. */
bool dwr_names_destructor(const char *linkage, const char **cls, size_t *len);
#endif
