/* leads.c: see leads.h.  A unit that something leads into is decoded once; all other questions are
 * answered by one or two bits. */
#include "icf/refs/leads.h"
#include "icf/program/unit.h"
#include <stdlib.h>
#include <string.h>

/* OFF: from the first byte of code. */
static void set_leads(struct icf_leads *l, uint64_t off, enum icf_leads_to what)
{
	uint8_t *p = &l->map[off >> 2];
	unsigned shift = (off & 3) * 2;
	*p = (uint8_t)((*p & ~(3u << shift)) | (unsigned)what << shift);
}

/* The same for all bytes from FROM to TO. */
static void fill_leads(struct icf_leads *l, uint64_t from, uint64_t to, enum icf_leads_to what)
{
	for (; from < to && from & 3; from++)
		set_leads(l, from, what);
	for (; from < to && to & 3; to--)
		set_leads(l, to - 1, what);
	if (from < to)
		memset(l->map + (from >> 2), (int)what * 0x55, (to - from) >> 2);
}

static void read_unit(struct icf_leads *l, uint32_t i)
{
	const struct icf_unit *u = &l->prog->unit.data[i];
	const uint8_t *code = icf_unit_bytes(l->prog, u);
	struct elfrw_insn in;
	fill_leads(l, u->start - l->lo, u->end - l->lo, ICF_LEADS_NOWHERE);
	for (uint64_t pos = 0; pos < u->end - u->start; pos += in.len) {
		set_leads(l, u->start + pos - l->lo, ICF_LEADS_TO_CODE);
		if (!l->prog->arch->decode(code + pos, u->end - u->start - pos, u->start + pos,
					   &in))
			break;
	}
}

/* Other units that are not understood stay as well, and padding holds nothing. */
void icf_leads_ask(struct icf_leads *l, uint64_t to)
{
	uint32_t k = icf_unit_at(l->prog, to);
	if (!icf_in_exec(l->prog, to))
		set_leads(l, to - l->lo, ICF_LEADS_NOWHERE);
	else if (k == ICF_NONE)
		set_leads(l, to - l->lo, ICF_LEADS_TO_ITSELF);
	else if (l->prog->unit.data[k].kind == ICF_UNIT_OPAQUE)
		fill_leads(l, l->prog->unit.data[k].start - l->lo,
			   l->prog->unit.data[k].end - l->lo, ICF_LEADS_TO_ITSELF);
	else
		read_unit(l, k);
}

/* Marks the blocks that understood code is in or in front of: `leads` has ICF_LEADS_TO_CODE for no
 * others. */
static bool find_near(struct icf_leads *l)
{
	const struct icf_program *prog = l->prog;
	l->near = calloc((l->hi - l->lo) / ICF_LEADS_NEAR / 8 + 2, 1);
	if (!l->near)
		return false;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		if (u->kind == ICF_UNIT_OPAQUE || u->start == u->end)
			continue;
		uint64_t end = (u->end - 1 - l->lo) / ICF_LEADS_NEAR + 1;
		for (uint64_t b = (u->start - l->lo) / ICF_LEADS_NEAR; b <= end; b++)
			l->near[b >> 3] |= (uint8_t)(1u << (b & 7));
	}
	return true;
}

bool icf_leads_init(struct icf_leads *ret, const struct icf_program *prog)
{
	*ret = (struct icf_leads){ .prog = prog,
				   .lo = prog->exec.data[0].start,
				   .hi = prog->exec.data[prog->exec.len - 1].end };
	ret->map = calloc(((ret->hi - ret->lo) >> 2) + 1, 1);
	return ret->map && find_near(ret);
}

void icf_leads_deinit(struct icf_leads *l)
{
	free(l->map);
	free(l->near);
	*l = (struct icf_leads){ 0 };
}
