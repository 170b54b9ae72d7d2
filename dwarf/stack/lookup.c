/* lookup.c: see lookup.h.
 *
 * dwr_callchain gives the function of each level; dwr_sym gives the frames of that function at the
 * address.  A return address belongs to the instruction before it, so lines are looked up one byte
 * earlier.
 *
 * Cost: a few look-ups for each level; candidates are named only for undecided levels. */
#include "dwarf/stack/lookup.h"
#include "dwarf/calls/icfold_note.h"
#include "elfrw/arch/arch.h"
#include "elfrw/arch/machine.h"
#include "elfrw/base/vec.h"
#include "elfrw/image.h"
#include <stdlib.h>
#include <string.h>

struct dwr_lookup {
	struct dwr_sym *sym;
	struct elfrw_image code;
	struct elfrw_image
		debug; /* of the separate debug file, for this machine; sym owns its arrays */
	bool has_code;
	struct dwr_callchain *cc; /* NULL: no tables */
	struct elfrw_err *fault;  /* of the tables; owned */
	struct dwr_chain chain;
	struct dwr_memo memo;  /* what levels show */
	VEC(uint32_t) same;    /* the numbers in it, by dwr_chain_frame.same */
	VEC(uint64_t) address; /* as linked, by level */
	VEC(const char *) candidate;
	struct dwr_sym_frames frames, scratch;
};

/* Opens the tables for shared code.  A file without tables is looked up level by level. */
static struct elfrw_err *open_tables(struct dwr_lookup *s, const char *path)
{
	struct elfrw_err *err = elfrw_image_open(&s->code, path);
	s->has_code = !err;
	if (err) { /* a machine, or a class, whose functions icfold does not fold: no tables to use
		    */
		bool memory = err == &elfrw_err_nomem;
		elfrw_err_free(err);
		return memory ? err : NULL;
	}
	bool apart;
	const struct elfrw_image *debug = dwr_sym_debug_image(s->sym, &apart);
	if (apart) {
		if (debug->ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
		    !elfrw_same_arch(&debug->ehdr, &s->code.ehdr))
			return NULL;
		s->debug = *debug;
		s->debug.arch = s->code.arch; /* sym handles all machines and does not set it */
	}
	err = dwr_callchain_open(&s->code, apart ? &s->debug : NULL, dwr_sym_debug_note(s->sym),
				 &s->cc);
	if (!err)
		return NULL;
	s->cc = NULL;
	if (err == &elfrw_err_nomem)
		return err;
	s->fault = err;
	return NULL;
}

static struct elfrw_err *candidate_name(struct dwr_lookup *s, const struct dwr_chain_member *m,
					uint64_t address, unsigned flags, const char **ret)
{
	const struct dwr_icfold *note = dwr_sym_note(s->sym);
	if (m->member == UINT32_MAX || !note || m->member >= note->n_members)
		return dwr_sym_die_name(s->sym, m->die, flags, ret);
	const struct dwr_icfold_member *k = &note->member[m->member];
	if (k->n_names && !(flags & (DWR_SYM_SHORT_NAMES | DWR_SYM_NO_SYMTAB))) {
		const char *name = note->names[k->name];
		*ret = flags & DWR_SYM_DEMANGLE ? dwr_sym_demangle(s->sym, name) : name;
		return NULL;
	}
	ELFRW_TRY(dwr_sym_frames_for_member(s->sym, address, m->member, flags, &s->scratch));
	*ret = s->scratch.len ? s->scratch.data[s->scratch.len - 1].function : NULL;
	return NULL;
}

/* Without .debug_icfold a call site names its callee, which may have jumped on to other code.  Then
 * the call site does not decide the frame. */
static bool called_directly(const struct dwr_lookup *s, uint64_t site, uint64_t address)
{
	const struct elfrw_arch *arch = s->code.arch;
	const uint8_t *p =
		site >= arch->call_size
			? elfrw_image_at(&s->code, site - arch->call_size, arch->call_size)
			: NULL;
	struct dwr_sym_symbol a, b;
	struct elfrw_insn in;
	if (!p ||
	    arch->decode(p, arch->call_size, site - arch->call_size, &in) != arch->call_size ||
	    in.kind != ELFRW_INSN_CALL)
		return true;
	return dwr_sym_symbol_at(s->sym, in.target, &a) && dwr_sym_symbol_at(s->sym, address, &b) &&
	       a.address == b.address;
}

struct elfrw_err *dwr_lookup_level(struct dwr_lookup *s, size_t i, unsigned flags,
				   struct dwr_level *ret)
{
	const struct dwr_chain_frame *f = s->cc ? &s->chain.frame.data[i] : NULL;
	uint64_t at = s->address.data[i];
	if (i && at)
		at--;
	bool merged = f && f->merged &&
		      (dwr_callchain_note(s->cc) || called_directly(s, s->address.data[i + 1], at));
	const struct dwr_chain_member *m = merged && f->n ? &s->chain.member.data[f->first] : NULL;
	if (m && f->decided && m->member != UINT32_MAX)
		ELFRW_TRY(dwr_sym_frames_for_member(s->sym, at, m->member, flags, &s->frames));
	else
		ELFRW_TRY(dwr_sym_frames(s->sym, at, flags, &s->frames));
	s->candidate.len = 0;
	for (uint32_t k = 0; m && k < f->n; k++) {
		const char **name = VEC_PUSH(&s->candidate);
		if (!name)
			return &elfrw_err_nomem;
		ELFRW_TRY(candidate_name(s, &m[k], at, flags, name));
	}
	if (m && f->decided && m->member == UINT32_MAX && s->frames.len && s->candidate.data[0])
		s->frames.data[s->frames.len - 1].function = s->candidate.data[0];
	*ret = (struct dwr_level){ .frames = &s->frames,
				   .merged = merged,
				   .decided = merged && f->decided,
				   .by = merged ? dwr_chain_by_text((enum dwr_chain_by)f->by)
						: NULL,
				   .candidate = s->candidate.data,
				   .n_candidates = s->candidate.len };
	return NULL;
}

/* Without tables, and in code that is not shared, the address says it all.  In shared code, the
 * function does, if it is decided, and otherwise the whole of what the tables found. */
static uint32_t number_level(struct dwr_lookup *s, size_t i, const struct dwr_chain_frame *f)
{
	struct dwr_memo_key key = { .at = s->address.data[i], .pc = i == 0 };
	bool known;
	if (f && f->merged && f->decided) {
		key.site = 1 + (uint64_t)f->by;
		key.outer = s->chain.member.data[f->first].member;
	} else if (f && f->merged)
		key.outer = UINT64_C(1) << 32 | f->same;
	return dwr_memo_number(&s->memo, &key, &known);
}

uint32_t dwr_lookup_same(struct dwr_lookup *s, size_t i)
{
	const struct dwr_chain_frame *f = s->cc ? &s->chain.frame.data[i] : NULL;
	if (!f)
		return number_level(s, i, f);
	if (f->same == DWR_MEMO_NONE)
		return DWR_MEMO_NONE;
	while (s->same.len <= f->same) {
		uint32_t *slot = VEC_PUSH(&s->same);
		if (!slot)
			return DWR_MEMO_NONE;
		*slot = DWR_MEMO_NONE;
	}
	uint32_t *number = &s->same.data[f->same];
	if (*number == DWR_MEMO_NONE)
		*number = number_level(s, i, f);
	return *number;
}

struct elfrw_err *dwr_lookup_resolve(struct dwr_lookup *s, const uint64_t *addr,
				     const uint64_t *vtable, size_t n)
{
	if (!VEC_RESERVE(&s->address, n))
		return &elfrw_err_nomem;
	if (n)
		memcpy(s->address.data, addr, n * sizeof *addr);
	s->address.len = n;
	return s->cc ? dwr_callchain_resolve(s->cc, s->address.data, vtable, n, &s->chain) : NULL;
}

struct elfrw_err *dwr_lookup_open(struct dwr_sym *sym, const char *path, struct dwr_lookup **ret)
{
	struct dwr_lookup *s = calloc(1, sizeof *s);
	if (!s)
		return &elfrw_err_nomem;
	s->sym = sym;
	struct elfrw_err *err = open_tables(s, path);
	if (err)
		dwr_lookup_close(s);
	else
		*ret = s;
	return err;
}

void dwr_lookup_close(struct dwr_lookup *s)
{
	if (!s)
		return;
	VEC_FREE(&s->address);
	VEC_FREE(&s->candidate);
	dwr_chain_deinit(&s->chain);
	dwr_memo_deinit(&s->memo);
	VEC_FREE(&s->same);
	dwr_sym_frames_deinit(&s->frames);
	dwr_sym_frames_deinit(&s->scratch);
	dwr_callchain_close(s->cc);
	if (s->has_code)
		elfrw_image_close(&s->code);
	elfrw_err_free(s->fault);
	free(s);
}

const char *dwr_lookup_warning(const struct dwr_lookup *s)
{
	return s->fault ? elfrw_err_text(s->fault) : dwr_sym_warning(s->sym);
}

struct dwr_callchain *dwr_lookup_tables(const struct dwr_lookup *s)
{
	return s->cc;
}
const struct dwr_chain *dwr_lookup_chain(const struct dwr_lookup *s)
{
	return &s->chain;
}
const struct elfrw_image *dwr_lookup_image(const struct dwr_lookup *s)
{
	return &s->code;
}
