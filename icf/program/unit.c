/* unit.c: divides the executable sections into units.
 *
 * Bounds come from function symbols with sizes and from the PC ranges of FDEs.  Overlapping ranges
 * (aliases of different sizes, an FDE over several symbols) form one unit.  A symbol without a size
 * (crtstuff, hand-written assembler) begins a unit that extends to the next bound, less trailing
 * padding.  All other bytes that are not padding are opaque: they do not move, and neither does
 * anything that they could reach by an unknown distance.  So is a section that the program may
 * write to: code there may change before it runs. */
#include "elfrw/arch/symbol.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "icf/program/program.h"
#include "icf/program/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct interval {
	uint64_t start, end;
	uint8_t flags;
};

#define BOUND_SYMBOL 1 /* a function symbol with a size */
#define BOUND_FDE    2
#define BOUND_POINT  4 /* a symbol without a size: the end is unknown */
#define BOUND_DATA   8 /* an object symbol */
#define BOUND_NOTYPE 16
#define BOUND_MAP    32 /* a mapping symbol: what follows is code, or a gap in code */

struct bounds {
	VEC(struct interval) v;
};

static int interval_order(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

static struct elfrw_err *add(struct bounds *b, uint64_t start, uint64_t end, uint8_t flags)
{
	struct interval *it = VEC_PUSH(&b->v);
	if (!it)
		return &elfrw_err_nomem;
	*it = (struct interval){ start, end, flags };
	return NULL;
}

static const struct icf_exec *exec_at(const struct icf_program *prog, uint64_t va)
{
	/* Most addresses that anybody asks about are in no code. */
	if (!prog->exec.len || va < prog->exec.data[0].start ||
	    va >= prog->exec.data[prog->exec.len - 1].end)
		return NULL;
	size_t i = LOWER_BOUND(0, prog->exec.len, mid, prog->exec.data[mid].end <= va);
	return i < prog->exec.len && va >= prog->exec.data[i].start ? &prog->exec.data[i] : NULL;
}

static bool is_mapping(const struct icf_program *prog, const struct icf_symbol *s)
{
	return elfrw_symbol_is_mapping(&prog->img->ehdr, s->type, s->name);
}

static struct elfrw_err *collect(const struct icf_program *prog, struct bounds *b)
{
	for (size_t i = 0; i < prog->sym.len; i++) {
		const struct icf_symbol *s = &prog->sym.data[i];
		const struct icf_exec *e = exec_at(prog, s->value);
		if (!e || e->linkage)
			continue;
		bool func = s->type == STT_FUNC || s->type == STT_GNU_IFUNC;
		uint8_t flags = func                    ? BOUND_SYMBOL
				: s->type == STT_OBJECT ? BOUND_DATA
				: is_mapping(prog, s)   ? BOUND_MAP
							: BOUND_NOTYPE;
		if (s->size == 0)
			ELFRW_TRY(add(b, s->value, s->value + 1, flags | BOUND_POINT));
		else
			ELFRW_TRY(add(b, s->value, s->value + s->size, flags));
	}
	for (size_t i = 0; i < prog->cfi.fde.len; i++) {
		const struct dwr_fde *f = &prog->cfi.fde.data[prog->cfi.by_pc[i]];
		const struct icf_exec *e = exec_at(prog, f->pc_begin);
		if (!e || e->linkage || f->pc_end <= f->pc_begin)
			continue;
		if (f->pc_end > e->end)
			return elfrw_error_at(".eh_frame", f->off,
					      "FDE for 0x%llx reaches past the end of its section",
					      (unsigned long long)f->pc_begin);
		ELFRW_TRY(add(b, f->pc_begin, f->pc_end, BOUND_FDE));
	}
	/* These are two ascending runs, except for intervals with equal starts. */
	return elfrw_sort_runs(b->v.data, b->v.len, sizeof *b->v.data, interval_order)
		       ? NULL
		       : &elfrw_err_nomem;
}

bool icf_is_padding(const struct icf_program *prog, uint64_t start, uint64_t end)
{
	const struct icf_exec *e = exec_at(prog, start);
	const uint8_t *p = prog->img->section[e->shndx].data + (start - e->start);
	uint64_t n = end - start;
	for (uint64_t i = 0; i < n;) {
		unsigned fill = elfrw_fill_size(prog->arch, p + i, n - i, start + i);
		if (fill) {
			i += fill;
			continue;
		}
		/* The last no-op may reach beyond END: glibc's FDE of __restore_rt begins one byte
		 * before the function. */
		struct elfrw_insn insn;
		unsigned len = prog->arch->decode(p + i, e->end - start - i, start + i, &insn);
		/* gold and the GNU assembler fill long gaps with a jump over no-ops. */
		if (len && insn.kind == ELFRW_INSN_JMP && insn.target > start + i + len &&
		    insn.target <= end) {
			uint64_t over = insn.target - start;
			for (i += len; i < over; i += len) {
				len = prog->arch->decode(p + i, over - i, start + i, &insn);
				if (!len || !elfrw_is_fill_nop(&insn, p + i))
					return false;
			}
			continue;
		}
		if (!len || !elfrw_is_fill_nop(&insn, p + i))
			return false;
		i += len;
	}
	return true;
}

/* Does control continue behind INSN?  A call may not return. */
static bool falls_through(const struct elfrw_insn *insn)
{
	return insn->kind == ELFRW_INSN_OTHER || insn->kind == ELFRW_INSN_JCC;
}

/* The end of the code that begins at START and ends at LIMIT or before: LIMIT less trailing
 * padding.  *CLEAN: all of the code decodes.  Zeros are no padding if control would run into them;
 * then all of it is data. */
static uint64_t trim(const struct icf_program *prog, const struct icf_exec *e, uint64_t start,
		     uint64_t limit, bool *clean)
{
	const uint8_t *p = prog->img->section[e->shndx].data + (start - e->start);
	uint64_t n = limit - start, used = 0;
	bool goes_on = false;
	*clean = true;
	for (uint64_t i = 0; i < n;) {
		struct elfrw_insn insn;
		unsigned len = prog->arch->decode(p + i, n - i, start + i, &insn);
		if (!len) {
			*clean = !goes_on && icf_is_padding(prog, start + used, limit);
			return *clean && used ? start + used : limit;
		}
		i += len;
		const uint8_t *at = p + i - len;
		bool zeros = elfrw_all_zero(at, len);
		bool fill = elfrw_fill_size(prog->arch, at, n - (i - len), start + i - len) == len;
		bool pad = elfrw_is_fill_nop(&insn, at) || zeros || fill;
		if (zeros && goes_on && used) {
			*clean = false;
			return limit;
		}
		if (pad)
			continue;
		used = i;
		goes_on = falls_through(&insn);
	}
	return used ? start + used : limit;
}

/* The bytes at START are in the middle of padding or at the start of the section.  Are they a no-op
 * that a symbol names?  Assembler without types and sizes has these: a jump there continues behind
 * the no-op.  At MARKED, the end of the function before by its size, a symbol only marks that
 * end. */
static bool is_named_nop(const struct icf_program *prog, const struct icf_exec *e, uint64_t start,
			 uint64_t marked, uint64_t next)
{
	const uint8_t *p = prog->img->section[e->shndx].data + (start - e->start);
	struct elfrw_insn insn;
	return start != marked && next > start &&
	       !elfrw_fill_size(prog->arch, p, next - start, start) &&
	       prog->arch->decode(p, next - start, start, &insn) && insn.kind == ELFRW_INSN_NOP;
}

bool icf_has_data(const struct icf_program *prog, uint64_t start, uint64_t end)
{
	size_t i = LOWER_BOUND(0, prog->data.len, mid, prog->data.data[mid].end <= start);
	return i < prog->data.len && prog->data.data[i].start < end;
}

uint64_t icf_data_end(const struct icf_program *prog, uint64_t va)
{
	size_t i = LOWER_BOUND(0, prog->data.len, mid, prog->data.data[mid].end <= va);
	const struct icf_data_run *run = i < prog->data.len ? &prog->data.data[i] : NULL;
	return run && run->start <= va ? run->end : va;
}

static struct icf_unit *push_unit(struct icf_program *prog, uint32_t exec, uint64_t start,
				  uint64_t end, uint8_t kind)
{
	struct icf_unit *u = VEC_PUSH(&prog->unit);
	if (!u)
		return NULL;
	u->start = start;
	u->end = end;
	u->sec = exec;
	u->kind = kind;
	u->sym = u->sym_first = ICF_NONE;
	u->hotness = prog->exec.data[exec].hotness;
	if (kind == ICF_UNIT_OPAQUE)
		u->reason = prog->exec.data[exec].writable ? ICF_WRITABLE_CODE : ICF_NOT_UNDERSTOOD;
	else if (kind == ICF_UNIT_RIGID)
		u->reason = ICF_NOT_A_FUNCTION;
	return u;
}

static struct elfrw_err *push_gap(struct icf_program *prog, uint32_t exec, uint64_t start,
				  uint64_t end)
{
	bool data = start < end && icf_has_data(prog, start, end);
	if (start >= end || (!data && icf_is_padding(prog, start, end)))
		return NULL;
	struct icf_unit *u = push_unit(prog, exec, start, end, ICF_UNIT_OPAQUE);
	if (u && data)
		u->reason = ICF_DATA_AMONG_CODE;
	return u ? NULL : &elfrw_err_nomem;
}

/* The union of all intervals that share a byte. */
struct extent {
	uint64_t start, end;
	uint64_t next; /* where the next one begins, or the section ends */
	uint8_t flags; /* BOUND_* */
	bool sized;
};

static struct extent unite(const struct bounds *b, const struct icf_exec *e, size_t *at)
{
	size_t i = *at;
	struct extent x = { b->v.data[i].start, b->v.data[i].start, e->end, 0, false };
	while (i < b->v.len && (b->v.data[i].start < x.end || b->v.data[i].start == x.start)) {
		const struct interval *it = &b->v.data[i];
		if (!(it->flags & BOUND_POINT)) {
			x.sized = true;
			if (it->end > x.end)
				x.end = it->end;
		} else if (it->start == x.start && x.end == x.start)
			x.end = x.start + 1;
		if (!(it->flags & BOUND_POINT) || it->start == x.start)
			x.flags |= it->flags & ~BOUND_POINT;
		i++;
	}
	if (i < b->v.len && b->v.data[i].start < e->end)
		x.next = b->v.data[i].start;
	if (x.end > e->end)
		x.end = e->end;
	*at = i;
	return x;
}

/* What kind of unit is X, and where does it end?  false: it is none.  MARKED: where a function with
 * a size ended last. */
static bool classify(const struct icf_program *prog, const struct icf_exec *e, uint64_t marked,
		     struct extent *x, uint8_t *kind)
{
	*kind = ICF_UNIT_FUNC;
	/* The symbol of a cold part that is empty. */
	bool empty = !x->sized && icf_is_padding(prog, x->start, x->next),
	     nop = empty && is_named_nop(prog, e, x->start, marked, x->next);
	if (empty && x->flags == BOUND_MAP)
		return false;
	/* Zeros with a symbol that is not a function are data. */
	bool zeros = empty && !(x->flags & BOUND_SYMBOL) &&
		     prog->img->section[e->shndx].data[x->start - e->start] == 0;
	if (empty && !nop && !zeros)
		return false;
	if (nop || zeros) {
		x->end = x->next;
		*kind = nop ? ICF_UNIT_RIGID : ICF_UNIT_OPAQUE;
	} else if (!x->sized) {
		bool clean;
		x->end = trim(prog, e, x->start, x->next, &clean);
		if (!clean)
			*kind = ICF_UNIT_OPAQUE;
		else if (!(x->flags & BOUND_SYMBOL))
			*kind = ICF_UNIT_RIGID;
	} else if ((x->flags & BOUND_DATA) && !(x->flags & (BOUND_SYMBOL | BOUND_FDE)))
		*kind = ICF_UNIT_OPAQUE;
	return true;
}

/* Cuts section EXEC by the bounds [*AT ...) that lie in it. */
static struct elfrw_err *cut_section(struct icf_program *prog, uint32_t exec,
				     const struct bounds *b, size_t *at)
{
	const struct icf_exec *e = &prog->exec.data[exec];
	uint64_t pos = e->start, marked = UINT64_MAX;
	while (*at < b->v.len && b->v.data[*at].start < e->end) {
		struct extent x = unite(b, e, at);
		uint8_t kind;
		ELFRW_TRY(push_gap(prog, exec, pos, x.start));
		if (!classify(prog, e, marked, &x, &kind)) {
			pos = x.start;
			continue;
		}
		struct icf_unit *u = push_unit(prog, exec, x.start, x.end, kind);
		if (!u)
			return &elfrw_err_nomem;
		if ((x.flags & BOUND_DATA) || icf_has_data(prog, x.start, x.end)) {
			u->kind = ICF_UNIT_OPAQUE;
			u->reason = ICF_DATA_AMONG_CODE;
		}
		if (x.flags & BOUND_SYMBOL)
			u->flags |= ICF_UNIT_FUNC_SYMBOL;
		pos = x.end;
		marked = x.sized ? x.end : marked;
	}
	/* The code of a folded file ends with a trap that debug information names. */
	const uint8_t *rest = prog->img->section[e->shndx].data + (pos - e->start);
	if (pos + prog->arch->fill_size == e->end &&
	    memcmp(rest, prog->arch->fill, prog->arch->fill_size) == 0 &&
	    elfrw_image_section(prog->img, ".debug_icfold"))
		return push_unit(prog, exec, pos, e->end, ICF_UNIT_RIGID) ? NULL : &elfrw_err_nomem;
	return push_gap(prog, exec, pos, e->end);
}

bool icf_in_exec(const struct icf_program *prog, uint64_t va)
{
	return exec_at(prog, va) != NULL;
}

bool icf_ends_exec(const struct icf_program *prog, uint64_t va)
{
	size_t i = LOWER_BOUND(0, prog->exec.len, mid, prog->exec.data[mid].end < va);
	return i < prog->exec.len && prog->exec.data[i].end == va;
}

const uint8_t *icf_unit_bytes(const struct icf_program *prog, const struct icf_unit *u)
{
	const struct icf_exec *e = &prog->exec.data[u->sec];
	return prog->img->section[e->shndx].data + (u->start - e->start);
}

struct elfrw_err *icf_index_units(struct icf_program *prog)
{
	uint64_t lo = prog->exec.data[0].start, hi = prog->exec.data[prog->exec.len - 1].end;
	if (!elfrw_blocks_make(&prog->blocks, lo, hi, prog->unit.len ? &prog->unit.data->end : NULL,
			       sizeof *prog->unit.data, (uint32_t)prog->unit.len))
		return &elfrw_err_nomem;
	uint32_t u = 0;
	for (size_t i = 0; i < prog->exec.len; i++) {
		struct icf_exec *e = &prog->exec.data[i];
		e->unit = u;
		while (u < prog->unit.len && prog->unit.data[u].start < e->end)
			prog->unit.data[u++].sec = (uint32_t)i;
		e->n_units = u - e->unit;
	}
	return NULL;
}

uint32_t icf_unit_at(const struct icf_program *prog, uint64_t va)
{
	uint64_t lo = prog->exec.data[0].start;
	if (va < lo || va >= prog->exec.data[prog->exec.len - 1].end)
		return ICF_NONE;
	for (uint32_t u = elfrw_blocks_from(&prog->blocks, va); u < prog->unit.len; u++) {
		if (va < prog->unit.data[u].start)
			return ICF_NONE;
		if (va < prog->unit.data[u].end)
			return u;
	}
	return ICF_NONE;
}

uint32_t icf_unit_ending(const struct icf_program *prog, uint64_t va)
{
	uint32_t i = va ? icf_unit_at(prog, va - 1) : ICF_NONE;
	return i != ICF_NONE && prog->unit.data[i].end == va ? i : ICF_NONE;
}

/* S, the first symbol in U, if it is a name of U.  Where tools took the names away, a mapping
 * symbol may stand there alone. */
static uint32_t name_at(const struct icf_program *prog, const struct icf_unit *u, uint32_t s)
{
	bool is = u->n_sym && prog->sym.data[s].value == u->start &&
		  !is_mapping(prog, &prog->sym.data[s]);
	return is ? s : ICF_NONE;
}

/* Gives every unit its symbols and FDEs; also after units were merged. */
struct elfrw_err *icf_attach(struct icf_program *prog)
{
	uint32_t s = 0;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		struct icf_unit *u = &prog->unit.data[i];
		while (s < prog->sym.len && prog->sym.data[s].value < u->start)
			s++;
		u->sym_first = s;
		uint32_t e = s;
		while (e < prog->sym.len && prog->sym.data[e].value < u->end)
			e++;
		u->n_sym = e - s;
		u->sym = name_at(prog, u, s);
		s = e;
		u->n_fde = 0;
	}
	for (uint32_t k = 0; k < prog->cfi.fde.len; k++) {
		uint32_t f = prog->cfi.by_pc[k],
			 i = icf_unit_at(prog, prog->cfi.fde.data[f].pc_begin);
		prog->fde_unit[f] = i;
		if (i == ICF_NONE)
			continue;
		struct icf_unit *u = &prog->unit.data[i];
		if (u->n_fde++ == 0)
			u->fde = k;
	}
	return NULL;
}

void icf_attach_unit(struct icf_program *prog, uint32_t i)
{
	struct icf_unit *u = &prog->unit.data[i];
	const struct icf_symbol *sym = prog->sym.data;
	const struct dwr_fde *fde = prog->cfi.fde.data;
	const uint32_t *by_pc = prog->cfi.by_pc;
	size_t n = prog->sym.len, n_fde = prog->cfi.fde.len;
	uint32_t s = (uint32_t)LOWER_BOUND(0, n, mid, sym[mid].value < u->start),
		 k = (uint32_t)LOWER_BOUND(0, n_fde, mid, fde[by_pc[mid]].pc_begin < u->start);
	u->sym_first = s;
	u->n_sym = (uint32_t)LOWER_BOUND(s, n, mid, sym[mid].value < u->end) - s;
	u->sym = name_at(prog, u, s);
	u->n_fde = 0;
	for (; k < n_fde && fde[by_pc[k]].pc_begin < u->end; k++) {
		prog->fde_unit[by_pc[k]] = i;
		if (u->n_fde++ == 0)
			u->fde = k;
	}
}

struct elfrw_err *icf_find_units(struct icf_program *prog)
{
	struct bounds b = { 0 };
	struct elfrw_err *err = collect(prog, &b);
	size_t at = 0;
	for (uint32_t e = 0; e < prog->exec.len && !err; e++) {
		const struct icf_exec *x = &prog->exec.data[e];
		if (x->linkage || x->writable) {
			if (!push_unit(prog, e, x->start, x->end,
				       x->linkage ? ICF_UNIT_RIGID : ICF_UNIT_OPAQUE))
				err = &elfrw_err_nomem;
			continue;
		}
		while (at < b.v.len && b.v.data[at].start < prog->exec.data[e].start)
			at++;
		err = cut_section(prog, e, &b, &at);
	}
	VEC_FREE(&b.v);
	if (err)
		return err;
	if (prog->unit.len >= UINT32_MAX / 2)
		return elfrw_error("too many functions");
	prog->fde_unit = malloc((prog->cfi.fde.len + 1) * sizeof *prog->fde_unit);
	if (!prog->fde_unit)
		return &elfrw_err_nomem;
	ELFRW_TRY(icf_index_units(prog));
	return icf_attach(prog);
}

const char *icf_unit_name(const struct icf_program *prog, uint32_t i, char buf[32])
{
	const struct icf_unit *u = &prog->unit.data[i];
	if (u->sym != ICF_NONE && prog->sym.data[u->sym].name[0])
		return prog->sym.data[u->sym].name;
	snprintf(buf, 32, "0x%llx", (unsigned long long)u->start);
	return buf;
}

const char *icf_reason_key(enum icf_reason reason)
{
	static const char *const key[ICF_N_REASONS] = {
		[ICF_OK] = "shared",
		[ICF_NOT_A_FUNCTION] = "not_a_function",
		[ICF_NOT_UNDERSTOOD] = "not_understood",
		[ICF_WRITABLE_CODE] = "writable_code",
		[ICF_DATA_AMONG_CODE] = "data_among_code",
		[ICF_NEAR_OPAQUE] = "near_not_understood",
		[ICF_GLUED] = "glued",
		[ICF_ENTRY_POINT] = "entry_point",
		[ICF_KEEP_UNIQUE] = "keep_unique",
		[ICF_NAMED_SECTION] = "named_section",
		[ICF_INNER_ENTRY] = "inner_entry",
		[ICF_UNWIND] = "unwind",
		[ICF_UNIQUE] = "unique",
		[ICF_ADDRESS_OBSERVED] = "address_observed",
		[ICF_PARTNER_STAYS] = "partner_stays",
		[ICF_NOT_WORTH] = "not_worth",
		[ICF_UNUSED] = "unused",
	};
	return key[reason];
}

const char *icf_reason_text(enum icf_reason reason)
{
	static const char *const text[ICF_N_REASONS] = {
		[ICF_OK] = "folded or kept for others",
		[ICF_NOT_A_FUNCTION] = "linkage code or code without a name",
		[ICF_NOT_UNDERSTOOD] = "not understood, pinned",
		[ICF_WRITABLE_CODE] = "the program may write to it, pinned",
		[ICF_DATA_AMONG_CODE] = "data among code, pinned",
		[ICF_NEAR_OPAQUE] =
			"within reach of data among code or bytes not understood, pinned",
		[ICF_GLUED] = "falls through, or is in reach only where it is",
		[ICF_ENTRY_POINT] = "entry point",
		[ICF_KEEP_UNIQUE] = "kept unique on request",
		[ICF_NAMED_SECTION] = "in a section that the program can delimit",
		[ICF_INNER_ENTRY] = "its middle is named from elsewhere",
		[ICF_UNWIND] = "unwind rules hold addresses or are not understood",
		[ICF_UNIQUE] = "nothing equals it",
		[ICF_ADDRESS_OBSERVED] = "address observed and a thunk would not pay",
		[ICF_PARTNER_STAYS] = "refers to equal functions that stay apart",
		[ICF_NOT_WORTH] = "not worth its record: the file would be larger",
		[ICF_UNUSED] = "removed: nothing uses it",
	};
	return text[reason];
}

void icf_forget_looks(struct icf_program *prog)
{
	for (uint32_t i = 0; i < prog->n_chunks; i++) {
		VEC_FREE(&prog->chunk[i].look.island);
		VEC_FREE(&prog->chunk[i].look.far);
	}
	free(prog->looked);
	free(prog->insn);
	prog->looked = prog->insn = NULL;
}

void icf_program_deinit(struct icf_program *prog)
{
	for (size_t i = 0; i < prog->exec.len; i++)
		VEC_FREE(&prog->exec.data[i].doubted);
	VEC_FREE(&prog->exec);
	VEC_FREE(&prog->sym);
	VEC_FREE(&prog->data);
	VEC_FREE(&prog->dead);
	VEC_FREE(&prog->unit);
	VEC_FREE(&prog->dataref);
	VEC_FREE(&prog->table);
	VEC_FREE(&prog->dynreloc);
	elfrw_blocks_deinit(&prog->dynreloc_index.blocks);
	VEC_FREE(&prog->inferred_table);
	VEC_FREE(&prog->probe);
	VEC_FREE(&prog->mark);
	VEC_FREE(&prog->pad);
	icf_forget_looks(prog);
	for (uint32_t i = 0; i < prog->n_chunks; i++) {
		VEC_FREE(&prog->chunk[i].ref);
		VEC_FREE(&prog->chunk[i].astray);
	}
	free(prog->chunk);
	dwr_cfi_deinit(&prog->cfi);
	free(prog->fde_unit);
	elfrw_blocks_deinit(&prog->blocks);
}

const char *icf_all_writable_text(const struct icf_program *prog)
{
	uint64_t writable = 0, other = 0;
	for (size_t e = 0; e < prog->exec.len; e++) {
		const struct icf_exec *x = &prog->exec.data[e];
		*(x->writable ? &writable : &other) += x->end - x->start;
	}
	return writable && !other
		       ? "all code is in sections or segments that the program may write to: it stays as it is"
		       : NULL;
}
