/* place.c: where the frames of a stack are: the file, the address as linked, and whether it is an
 * instruction's or one to return to.
 *
 * Callers are printed as return addresses, or as places in the calls (sanitizers print return
 * addresses minus one; minus four where instructions have that size).  Which one it is, the code
 * says: does a call end there?  Where no call ends, the frame was interrupted, as by a signal. */
#include "dwarf/stack/callchain.h"
#include "elfrw/arch/arch.h"
#include "elfrw/image.h"
#include "icf/cmd/cmd.h"
#include "icf/cmd/log/state.h"

#define PAGE UINT64_C(4096)

/* The address of NAME+OFFSET of a GLIBC frame: glibc takes symbols of the dynamic table, and local
 * ones of the same name may be anywhere. */
static bool from_name(const struct icf_log *g, const struct icf_log_line *l, uint64_t *ret)
{
	struct dwr_sym_symbol sym;
	struct dwr_sym *s = g->file.data[l->file]->sym;
	char *name = strndup(icf_log_at(g, l, l->f.name), l->f.name.n);
	bool found = false;
	for (size_t from = 0; name && !found && dwr_sym_symbol_named(s, name, &from, &sym);
	     from++) {
		*ret = sym.address + l->f.offset;
		found = (l->f.address - *ret) % PAGE == 0;
	}
	free(name);
	return found;
}

/* Can L's place be AT?  The symbol that L names begins where it says, or a call returns there. */
static struct elfrw_err *fits(const struct icf_log_file *file, const struct icf_log_frame *f,
			      uint64_t at, bool *ret)
{
	struct dwr_sym_symbol sym;
	struct dwr_callchain *cc = icf_stack_tables(file->stack);
	bool again;
	*ret = icf_log_is_code(file, at);
	if (!*ret)
		return NULL;
	if (f->name.n) {
		uint64_t start = at - f->into;
		*ret = dwr_sym_symbol_at(file->sym, start, &sym) && sym.address == start;
		return NULL;
	}
	*ret = false;
	if (!cc || !dwr_callchain_note(cc))
		return NULL;
	ELFRW_TRY(dwr_callchain_is_return(cc, at, ret, &again));
	return *ret ? NULL : dwr_callchain_is_return(cc, at + 1, ret, &again);
}

/* What strace shows is an address as linked if it unwinds with libdw, and a place in the file if it
 * does with libunwind.  The two differ in programs with fixed addresses, and in most programs that
 * lld and mold linked. */
static struct elfrw_err *from_strace(const struct icf_log_file *file, const struct icf_log_frame *f,
				     uint64_t *at, bool *found)
{
	uint64_t other;
	bool linked, in_file = icf_log_from_offset(file, f->offset, &other);
	*at = f->offset;
	*found = true;
	if (!in_file || other == f->offset)
		return NULL;
	if (!icf_log_is_code(file, f->offset)) {
		*at = other;
		return NULL;
	}
	ELFRW_TRY(fits(file, f, f->offset, &linked));
	ELFRW_TRY(fits(file, f, other, &in_file));
	*at = in_file ? other : f->offset;
	*found = linked != in_file;
	return NULL;
}

/* Writers of FILE+0xOFFSET count from address 0, or from where the file's first segment is.  With
 * fixed addresses these differ, and the offset tells which it is if only one of the two has code.
 */
static bool from_module(const struct icf_log_file *file, const struct icf_log_frame *f,
			uint64_t *at)
{
	uint64_t low = icf_log_lowest(file);
	bool linked = icf_log_is_code(file, f->offset);
	*at = f->offset;
	if (f->in_module)
		*at += low;
	else if (low && icf_log_is_code(file, f->offset + low)) {
		*at += low;
		return !linked;
	}
	return true;
}

/* Finds L's file, and in *AT the address that it shows, as linked. */
static struct elfrw_err *find_place(struct icf_log *g, struct icf_log_line *l, uint64_t *at)
{
	const struct icf_log_frame *f = &l->f;
	bool found = false;
	l->file = ICF_LOG_NO_FILE;
	if (f->file.n)
		ELFRW_TRY(icf_log_file_of(g, icf_log_at(g, l, f->file), f->file.n,
					  icf_log_at(g, l, f->build_id), f->build_id.n, &l->file));
	else if (icf_log_from_address(g, f->address, &l->file, at))
		return NULL;
	else
		l->file = ICF_LOG_NO_FILE;
	if (l->file == ICF_LOG_NO_FILE)
		return NULL;
	struct icf_log_file *file = g->file.data[l->file];
	*at = f->offset;
	if (f->in_file || f->in_code)
		found = icf_log_from_offset(file, f->offset + (f->in_code ? icf_log_code(file) : 0),
					    at);
	else if (f->form == ICF_LOG_STRACE)
		ELFRW_TRY(from_strace(file, f, at, &found));
	else if (f->form == ICF_LOG_OFFSET)
		found = from_module(file, f, at);
	else if (f->form == ICF_LOG_GLIBC && f->name.n)
		found = f->has_offset && from_name(g, l, at);
	else if (f->has_offset)
		found = !f->has_address || (f->address - f->offset) % PAGE == 0;
	if (found && f->has_address) {
		file->has_bias = true;
		file->bias = f->address - *at;
	} else if (!found && f->has_address) {
		uint32_t other;
		found = icf_log_from_address(g, f->address, &other, at) && other == l->file;
	}
	if (!found || !icf_log_is_code(file, *at))
		l->file = ICF_LOG_NO_FILE;
	return NULL;
}

/* Do callers of this form stand as places in the calls? */
static bool shows_calls(enum icf_log_form form)
{
	return form == ICF_LOG_SANITIZER || form == ICF_LOG_THREAD;
}

/* L is a caller, shown as AT. */
static struct elfrw_err *find_site(const struct icf_log_file *f, struct icf_log_line *l,
				   uint64_t at)
{
	struct dwr_callchain *cc = icf_stack_tables(f->stack);
	if (cc && !dwr_callchain_note(cc))
		cc = NULL;
	unsigned insn = cc ? icf_stack_image(f->stack)->arch->fill_size : 1;
	bool in_call = shows_calls(l->f.form), is = false, again;
	const uint64_t ends[3] = { at + 1, at + insn, at };
	l->address = in_call ? at + 1 : at;
	for (unsigned i = 0; cc && i < 3 && !is; i++) {
		/* from the most likely to the least */
		uint64_t site = ends[in_call ? i : 2 - i];
		ELFRW_TRY(dwr_callchain_is_return(cc, site, &is, &again));
		if (is)
			l->address = site;
	}
	/* Only folded files can tell. */
	l->pc = cc && !is && !in_call;
	return NULL;
}

/* Is the first frame of a stack, L, an instruction?  Backtraces that a program makes of itself
 * begin with a caller, and so does what follows the frames of another stack in between.  glog
 * prints the instruction of a crash in a line of its own. */
static bool begins_with_pc(const struct icf_log *g, const struct icf_log_line *l)
{
	static const char pc[] = "PC: ";
	const struct icf_log_part *p = &l->f.prefix;
	if (l->f.has_number && l->f.n)
		return false; /* the first frames are not here */
	switch (l->f.form) {
	case ICF_LOG_GLIBC:
	case ICF_LOG_RUST: return false;
	case ICF_LOG_GLOG:
		return p->n >= strlen(pc) &&
		       !memcmp(icf_log_at(g, l, *p) + p->n - strlen(pc), pc, strlen(pc));
	default: return true;
	}
}

/* Finds what the lines in hand show.  A frame with both an address and a place may come behind
 * those with addresses alone: _start has no lines. */
static struct elfrw_err *find_places(struct icf_log *g)
{
	bool bare = false, named = false, found = false;
	for (unsigned again = 0; again <= bare; again++)
		for (size_t i = 0; i < g->line.len; i++) {
			struct icf_log_line *l = &g->line.data[i];
			bool alone = !l->f.file.n;
			if (again && (!alone || l->file != ICF_LOG_NO_FILE))
				continue;
			l->address = 0;
			ELFRW_TRY(find_place(g, l, &l->address));
			bare |= alone && l->file == ICF_LOG_NO_FILE;
			named |= alone && l->f.form == ICF_LOG_SANITIZER;
			found |= l->file != ICF_LOG_NO_FILE;
		}
	if (named && !found && !g->warned) {
		icf_message(
			NULL,
			"frames of sanitizers with names stay as they are if nothing tells where their file was: see symbolize=0 in icfold-symbolize(1)");
		g->warned = true;
	}
	return NULL;
}

struct elfrw_err *icf_log_places(struct icf_log *g)
{
	ELFRW_TRY(find_places(g));
	ELFRW_TRY(icf_log_group(g));
	for (size_t i = 0; i < g->line.len; i++) {
		struct icf_log_line *l = &g->line.data[i];
		l->pc = !i && begins_with_pc(g, l);
		if (l->file != ICF_LOG_NO_FILE && !l->pc)
			ELFRW_TRY(find_site(g->file.data[l->file], l, l->address));
	}
	return NULL;
}
