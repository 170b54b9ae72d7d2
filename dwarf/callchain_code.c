/* callchain_code.c: see callchain_code.h.  The address map of .debug_icfold, read backwards, gives the bodies of the output; a
 * body is decoded when it is first asked for, once. */
#include "dwarf/callchain_code.h"
#include "elfrw/arch.h"
#include <stdlib.h>
#include <string.h>

static int span_order(const void *a, const void *b)
{
	const struct dwr_span *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

struct elfrw_err *dwr_code_init(struct dwr_code *code, const struct elfrw_image *img, const struct dwr_icfold *note)
{
	*code = (struct dwr_code){ .img = img, .note = note };
	const struct elfrw_addrmap *map = &note->map;
	code->body = calloc((size_t)map->n_units + 1, sizeof *code->body);
	if (!code->body)
		return &elfrw_err_nomem;
	for (uint32_t u = 0; u < map->n_units; u++) {
		const struct elfrw_addrmap_unit *m = &map->unit[u];
		if (m->flags & ELFRW_UNIT_FOLDED && !m->thunk_size)
			continue;
		struct dwr_span *s = VEC_PUSH(&code->span);
		if (!s)
			return &elfrw_err_nomem;
		if (m->flags & ELFRW_UNIT_FOLDED)
			*s = (struct dwr_span){ m->entry, m->entry + m->thunk_size, u, true };
		else
			*s = (struct dwr_span){ m->body, m->body + (m->old_end - m->old), u, false };
	}
	if (code->span.len)
		qsort(code->span.data, code->span.len, sizeof *code->span.data, span_order);
	return NULL;
}

void dwr_code_deinit(struct dwr_code *code)
{
	VEC_FREE(&code->span);
	VEC_FREE(&code->branch);
	free(code->body);
}

const struct dwr_span *dwr_code_at(const struct dwr_code *code, uint64_t va)
{
	size_t lo = 0, hi = code->span.len;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (code->span.data[mid].start <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && va < code->span.data[lo - 1].end ? &code->span.data[lo - 1] : NULL;
}

bool dwr_code_is_linkage(const struct dwr_code *code, uint32_t unit)
{
	uint32_t shndx = elfrw_image_section_at(code->img, code->note->map.unit[unit].body);
	const char *name = shndx ? code->img->section[shndx].name : "";
	return strncmp(name, ".plt", 4) == 0 || strcmp(name, ".iplt") == 0 || strcmp(name, ".init") == 0 || strcmp(name, ".fini") == 0;
}

/* Registers that hold the address of a case of a switch: loaded through an index, or a sum of two registers.  Kept for a few
 * instructions. */
struct switches {
	uint8_t age[16];
};

#define SWITCH_AGE 4

static void watch(struct switches *s, const struct elfrw_insn *in)
{
	for (unsigned r = 0; r < 16; r++)
		s->age[r] -= s->age[r] != 0;
	if (in->opcode_map)
		return;
	bool mem = in->flags & ELFRW_INSN_MEM;
	unsigned to = 16;
	if (in->opcode == 0x01 && !mem)
		to = in->rm;
	else if (in->opcode == 0x03 || ((in->opcode == 0x8b || in->opcode == 0x63) && mem && in->index != ELFRW_REG_NONE))
		to = in->reg;
	if (to < 16)
		s->age[to] = SWITCH_AGE;
}

static bool is_switch(const struct switches *s, const struct elfrw_insn *in)
{
	if (in->flags & ELFRW_INSN_NOTRACK)
		return true;
	if (in->flags & ELFRW_INSN_MEM)
		return in->index != ELFRW_REG_NONE;
	return in->rm < 16 && s->age[in->rm];
}

static struct elfrw_err *push(struct dwr_code *code, uint64_t site, uint64_t target, bool call)
{
	struct dwr_branch *b = VEC_PUSH(&code->branch);
	if (!b)
		return &elfrw_err_nomem;
	*b = (struct dwr_branch){ site, target, call };
	return NULL;
}

static struct elfrw_err *decode(struct dwr_code *code, uint32_t unit)
{
	const struct elfrw_addrmap_unit *m = &code->note->map.unit[unit];
	uint64_t va = m->body, end = m->body + (m->old_end - m->old);
	const uint8_t *p = elfrw_image_at(code->img, va, end - va);
	struct switches sw = { 0 };
	struct elfrw_insn in;
	if (!p)
		return NULL;
	for (const uint8_t *start = p; va < end; va += in.len) {
		if (!code->img->arch->decode(start + (va - m->body), end - va, va, &in))
			break;
		uint64_t site = va + in.len;
		switch (in.kind) {
		case ELFRW_INSN_CALL:
			ELFRW_TRY(push(code, site, in.target, true));
			break;
		case ELFRW_INSN_CALL_IND:
			ELFRW_TRY(push(code, site, 0, true));
			break;
		case ELFRW_INSN_JMP:
		case ELFRW_INSN_JCC:
			if (in.target < m->body || in.target >= end)
				ELFRW_TRY(push(code, site, in.target, false));
			break;
		case ELFRW_INSN_JMP_IND:
			if (!is_switch(&sw, &in))
				ELFRW_TRY(push(code, site, 0, false));
			break;
		}
		watch(&sw, &in);
	}
	return NULL;
}

struct elfrw_err *dwr_code_branches(struct dwr_code *code, uint32_t unit, const struct dwr_branch **ret, uint32_t *n)
{
	unit = code->note->map.unit[unit].kept;
	struct dwr_body *b = &code->body[unit];
	if (!b->decoded) {
		size_t first = code->branch.len;
		ELFRW_TRY(decode(code, unit));
		*b = (struct dwr_body){ true, (uint32_t)first, (uint32_t)(code->branch.len - first) };
	}
	*ret = code->branch.data ? code->branch.data + b->branch : NULL;
	*n = b->n_branches;
	return NULL;
}
