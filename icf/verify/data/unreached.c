/* unreached.c: no number of IN leads to code that was removed, if no relocations tell which numbers
 * are references.
 *
 * The references of instructions and the words that the loader sets are checked elsewhere.  All
 * other bytes may hold a way to a function, as a distance that code adds to an address.  So each
 * number that would lead to the entry of a removed function, in any of these ways, is a difference:
 *   - four bytes of data, at any place, counted from there, from their end, from the last
 *     places before them that something refers to, from the file's first byte, or from the global
 *     offset table;
 *   - an operand of code that remains, counted from the file's first byte, from the global offset
 *     table or from data that the code refers to nearby, or added to an address of code;
 *   - words behind a jump table, counted from its start: it may go on there.
 * Code that remains must not call the sum of two registers, or add a register to the address of a
 * function.  If it jumps to one, by a distance that
 * it loads, and no table explains that, then tables of removed functions near the data that it
 * refers to may be what it reads.
 *
 * The numbers stay as they are, so OUT is not read.  Cost: one pass over the data, and one over the
 * code, if anything was removed. */
#include "elfrw/arch/judge.h"
#include "elfrw/base/parallel.h"
#include "elfrw/base/search.h"
#include "icf/verify/state.h"
#include <stdlib.h>

#define NAMES 4   /* addresses and numbers that are remembered */
#define NEAR  256 /* bytes from such an address to a table */
#define PER   256

struct unreached {
	struct icf_v *v;
	uint64_t got;         /* the global offset table */
	struct icf_vlog *log; /* by part of the code */
};

static void reached(const struct unreached *x, struct icf_vlog *log, uint64_t va, uint64_t at,
		    const char *by)
{
	char name[200];
	icf_vlog_bad(log, ICF_VC_REMOVED,
		     "removed: %s (0x%llx): expected code that nothing reaches, found %s at 0x%llx",
		     icf_v_where(&x->v->claim, va, name), ICF_VX(va), by, ICF_VX(at));
}

/* Is VA the entry of a removed function? */
static bool is_entry(const struct unreached *x, uint64_t va)
{
	const struct icf_vclaim *c = &x->v->claim;
	if (va - c->lo >= c->hi - c->lo)
		return false;
	uint32_t u = icf_v_find(c, va);
	return icf_v_removed(c, u) && c->unit.data[u].old == va;
}

static void look_at_entry(const struct unreached *x, struct icf_vlog *log, uint64_t va, uint64_t at,
			  const char *by)
{
	if (is_entry(x, va))
		reached(x, log, va, at, by);
}

/* The same for NUMBER, counted from places that code anywhere may know: the file's first byte, the
 * global offset table. */
static void look_at_known(const struct unreached *x, struct icf_vlog *log, uint64_t number,
			  uint64_t at)
{
	look_at_entry(x, log, number, at, "its place in the file");
	look_at_entry(x, log, x->got + number, at, "its distance from the global offset table");
}

/* --- data --- */

/* Words that are checked elsewhere, and words of the loader; both pass by with the places. */
struct passed {
	size_t word, dynreloc;
};

static bool is_known(const struct icf_v *v, struct passed *p, uint64_t va)
{
	const struct icf_vwords *w = &v->words;
	while (p->word < w->word.len &&
	       w->word.data[p->word].place + w->word.data[p->word].size <= va)
		p->word++;
	while (p->dynreloc < w->dynreloc.len && w->dynreloc.data[p->dynreloc].place + 8 <= va)
		p->dynreloc++;
	return (p->word < w->word.len && w->word.data[p->word].place < va + 4) ||
	       (p->dynreloc < w->dynreloc.len && w->dynreloc.data[p->dynreloc].place < va + 4);
}

static bool holds_numbers(const struct elfrw_section *s)
{
	return (s->hdr.sh_flags & SHF_ALLOC) && !(s->hdr.sh_flags & SHF_EXECINSTR) && s->data &&
	       !icf_v_is_unwind_name(s->name) &&
	       (s->hdr.sh_type == SHT_PROGBITS || s->hdr.sh_type == SHT_INIT_ARRAY ||
		s->hdr.sh_type == SHT_FINI_ARRAY || s->hdr.sh_type == SHT_NOTE);
}

static void look_at_section(const struct unreached *x, const struct elfrw_section *s)
{
	struct icf_vlog *log = &x->v->log;
	struct passed p = { 0 };
	uint64_t va = s->hdr.sh_addr, from[NAMES] = { va }, size = s->hdr.sh_size;
	unsigned n = 1;
	const struct icf_ventries *name = &x->v->named;
	size_t next = LOWER_BOUND(0, name->v.len, mid, name->v.data[mid] < va);
	for (uint64_t off = 0; off <= size && size - off >= 4; off++) {
		uint64_t at = va + off,
			 word = (uint64_t)(int64_t)(int32_t)elfrw_get32(s->data + off);
		for (; next < name->v.len && name->v.data[next] <= at; next++)
			from[n++ % NAMES] = name->v.data[next];
		if (!word || is_known(x->v, &p, at))
			continue;
		look_at_entry(x, log, at + word, at, "a distance");
		look_at_entry(x, log, at + 4 + word, at, "a distance from its end");
		for (unsigned k = 0; k < NAMES && k < n; k++)
			look_at_entry(x, log, from[k] + word, at, "a distance from data");
		look_at_known(x, log, word, at);
	}
	log->checked[ICF_VC_REMOVED] += size / 4;
}

/* Does only code that was removed name VA?  Then its own table may begin there, and no other one
 * goes on. */
static bool begins_removed(const struct icf_v *v, uint64_t va)
{
	size_t k = LOWER_BOUND(0, v->base.len, mid, v->base.data[mid].va < va);
	bool any = false;
	for (; k < v->base.len && v->base.data[k].va == va; k++) {
		if (!icf_v_removed(&v->claim, v->base.data[k].unit))
			return false;
		any = true;
	}
	return any;
}

/* Words behind the tables of functions that remain: other code may refer to a table's middle. */
static void look_behind_tables(const struct unreached *x)
{
	const struct icf_v *v = x->v;
	for (size_t t = 0; t < v->words.table.len; t++) {
		const struct icf_vtable *b = &v->words.table.data[t];
		uint64_t at = b->base + 4 * (uint64_t)b->n;
		if (!b->n || v->words.word.data[b->word].size != 4 ||
		    icf_v_removed(&v->claim, b->owner))
			continue;
		for (const uint8_t *p; (p = elfrw_image_at(&v->claim.in, at, 4)); at += 4) {
			uint64_t to = b->base + (uint64_t)(int64_t)(int32_t)elfrw_get32(p);
			size_t w = icf_v_word_from(&v->words, at);
			if ((w < v->words.word.len && v->words.word.data[w].place < at + 4) ||
			    !icf_v_in_exec(&v->claim, to) || begins_removed(v, at))
				break;
			if (icf_v_removed(&v->claim, icf_v_find(&v->claim, to)))
				reached(x, &x->v->log, to, at,
					"a word behind a table that leads to it");
		}
	}
}

/* --- code --- */

#define REGS 32

/* A unit while its code is read: where, and what was read last. */
struct reader {
	const struct unreached *x;
	struct icf_vlog *log;
	uint32_t unit;
	uint64_t at; /* address of the instruction */
	uint64_t name[NAMES], number[NAMES];
	unsigned n_names, n_numbers; /* so far */
	uint64_t code[REGS];         /* by register: the address of code in it, or 0 */
	unsigned sum;                /* the register that the last instruction added to, or none */
	bool loads;                  /* a distance was loaded */
	bool jumps;                  /* to the sum of it and something */
};

static uint64_t operand(const uint8_t *p, unsigned size)
{
	uint64_t n = size ? elfrw_get_le(p, size) : 0;
	switch (size) {
	case 1: return (uint64_t)(int64_t)(int8_t)n;
	case 2: return (uint64_t)(int64_t)(int16_t)n;
	case 4: return (uint64_t)(int64_t)(int32_t)n;
	default: return n;
	}
}

static void look_at_sum(struct reader *r, uint64_t name, uint64_t number)
{
	look_at_entry(r->x, r->log, name + number, r->at, "its distance from data");
	look_at_entry(r->x, r->log, name - number, r->at, "its distance to data");
}

static void look_at_number(struct reader *r, uint64_t number)
{
	if (!number)
		return;
	look_at_known(r->x, r->log, number, r->at);
	for (unsigned k = 0; k < NAMES && k < r->n_names; k++)
		look_at_sum(r, r->name[k], number);
	r->number[r->n_numbers++ % NAMES] = number;
}

static void look_at_name(struct reader *r, uint64_t va)
{
	for (unsigned k = 0; k < NAMES && k < r->n_numbers; k++)
		look_at_sum(r, va, r->number[k]);
	r->name[r->n_names++ % NAMES] = va;
}

/* NUMBER is added to the address of code in register REG. */
static void add_number(struct reader *r, unsigned reg, uint64_t number)
{
	const struct icf_vclaim *c = &r->x->v->claim;
	uint64_t to = reg < REGS && r->code[reg] ? r->code[reg] + number : 0;
	if (to && icf_v_removed(c, icf_v_find(c, to)))
		reached(r->x, r->log, to, r->at, "its distance from other code");
	if (reg < REGS)
		r->code[reg] = to;
}

/* Something else is added to register REG: not to the address of another function. */
static void add_unknown(struct reader *r, unsigned reg)
{
	const struct icf_vclaim *c = &r->x->v->claim;
	uint64_t va = reg < REGS ? r->code[reg] : 0;
	uint32_t u = va ? icf_v_find(c, va) : ICF_V_NONE;
	if (u != ICF_V_NONE && u != r->unit && c->unit.data[u].old == va)
		icf_vlog_bad(
			r->log, ICF_VC_REMOVED,
			"sum: 0x%llx: expected nothing that is added to the address of a function (0x%llx)",
			ICF_VX(r->at), ICF_VX(va));
}

/* Follows addresses of code through registers. */
static void follow(struct reader *r, const struct elfrw_insn *in, const struct elfrw_judgement *j)
{
	uint64_t value = 0;
	if (j->kind == ELFRW_JUDGE_UNKNOWN || in->kind != ELFRW_INSN_OTHER) {
		memset(r->code, 0, sizeof r->code);
		return;
	}
	for (unsigned k = 0; k < REGS; k++)
		if (j->lost >> k & 1)
			r->code[k] = 0;
	switch (j->kind) {
	case ELFRW_JUDGE_COPY: value = j->from < REGS ? r->code[j->from] : 0; break;
	case ELFRW_JUDGE_ADD: add_number(r, j->to, (uint64_t)j->number); return;
	case ELFRW_JUDGE_SUM:
		add_unknown(r, j->to);
		add_unknown(r, j->from);
		break;
	case ELFRW_JUDGE_ADDRESS:
		if (in->pcrel_size) {
			value = icf_v_in_exec(&r->x->v->claim, in->target) ? in->target : 0;
		} else if (in->index != ELFRW_REG_NONE) {
			add_unknown(r, in->base);
			add_unknown(r, in->index);
		} else if (in->base < REGS && j->to < REGS) {
			r->code[j->to] = r->code[in->base];
			add_number(r, j->to, (uint64_t)j->disp);
			return;
		}
	}
	if (j->to < REGS)
		r->code[j->to] = value;
}

/* The instruction IN at P. */
static void look_at_insn(struct reader *r, const struct elfrw_insn *in, const uint8_t *p)
{
	const struct icf_vclaim *c = &r->x->v->claim;
	struct elfrw_judgement j = { .kind = ELFRW_JUDGE_UNKNOWN };
	bool jump = in->kind == ELFRW_INSN_JMP_IND, call = in->kind == ELFRW_INSN_CALL_IND;
	if (in->kind == ELFRW_INSN_NOP || in->kind == ELFRW_INSN_TRAP)
		return;
	if ((in->flags & ELFRW_INSN_LEA) && in->pcrel_size && !icf_v_in_exec(c, in->target))
		look_at_name(r, in->target);
	look_at_number(r, operand(p + in->imm_off, in->imm_size));
	if (in->flags & ELFRW_INSN_LEA)
		look_at_number(r, operand(p + in->disp_off, in->disp_size));
	if ((call || jump) && r->sum != ELFRW_REG_NONE && c->arch->judge->goes_to(in) == r->sum) {
		if (call)
			icf_vlog_bad(
				r->log, ICF_VC_REMOVED,
				"call: 0x%llx: expected no call of a sum, which may lead to anything",
				ICF_VX(r->at));
		r->jumps |= jump && r->loads;
	}
	if (in->kind == ELFRW_INSN_OTHER)
		c->arch->judge->look(in, p, &j);
	follow(r, in, &j);
	r->loads |= j.kind == ELFRW_JUDGE_LOAD_WORD;
	r->sum = j.kind == ELFRW_JUDGE_SUM ? j.to : ELFRW_REG_NONE;
}

/* Unit I jumps by a distance that it loads.  Does a table say where to? */
static void look_at_jump(const struct unreached *x, struct icf_vlog *log, uint32_t unit)
{
	const struct icf_v *v = x->v;
	for (size_t t = 0; t < v->words.table.len; t++)
		if (v->words.table.data[t].owner == unit ||
		    v->words.table.data[t].owner == ICF_V_NONE)
			return;
	for (size_t b = 0; b < v->base.len; b++) {
		uint64_t va = v->base.data[b].va;
		size_t t =
			LOWER_BOUND(0, v->words.table.len, mid, v->words.table.data[mid].base < va);
		if (v->base.data[b].unit == unit && t < v->words.table.len &&
		    v->words.table.data[t].base - va < NEAR &&
		    icf_v_removed(&v->claim, v->words.table.data[t].owner))
			reached(x, log, v->claim.unit.data[v->words.table.data[t].owner].old, va,
				"data in front of its table, with code that jumps by such a table");
	}
}

/* Marks in LABEL, by byte of unit U, where its branches lead. */
static void mark_labels(const struct icf_v *v, const struct icf_vunit *u, const uint8_t *code,
			uint8_t *label)
{
	struct elfrw_insn in;
	for (uint64_t pos = 0; pos < u->end - u->old; pos += in.len) {
		if (!v->claim.arch->decode(code + pos, u->end - u->old - pos, u->old + pos, &in))
			in.len = 1;
		else if ((in.kind == ELFRW_INSN_JMP || in.kind == ELFRW_INSN_JCC) &&
			 in.target - u->old < u->end - u->old)
			label[in.target - u->old] = 1;
	}
}

static void look_at_unit(const struct unreached *x, struct icf_vlog *log, uint32_t i)
{
	const struct icf_v *v = x->v;
	const struct icf_vunit *u = &v->claim.unit.data[i];
	const struct icf_vexec *e = &v->claim.exec.data[u->exec];
	const uint8_t *code = e->old_data + (u->old - e->old);
	uint64_t size = u->end - u->old;
	uint8_t *label = calloc(size + 1, 1);
	struct reader r = { .x = x, .log = log, .unit = i, .sum = ELFRW_REG_NONE };
	struct elfrw_insn in;
	log->nomem |= !label;
	if (label)
		mark_labels(v, u, code, label);
	for (uint64_t pos = 0; label && pos < size; pos += in.len) {
		if (code[pos] == 0)
			pos += icf_v_pad(v, u->old + pos);
		/* Other values may come from where it branches. */
		if (pos < size && label[pos])
			memset(r.code, 0, sizeof r.code);
		r.at = u->old + pos;
		if (pos < size && v->claim.arch->decode(code + pos, size - pos, r.at, &in))
			look_at_insn(&r, &in, code + pos);
		else
			in.len = 1;
	}
	free(label);
	if (r.jumps)
		look_at_jump(x, log, i);
}

static struct elfrw_err *look_at_units(void *arg, size_t part)
{
	const struct unreached *x = arg;
	const struct icf_vclaim *c = &x->v->claim;
	struct icf_vlog *log = &x->log[part];
	log->max = x->v->log.max;
	for (uint32_t i = (uint32_t)part * PER; i < (part + 1) * PER && i < c->unit.len; i++)
		if (!icf_v_removed(c, i) && c->exec.data[c->unit.data[i].exec].old_data)
			look_at_unit(x, log, i);
	return log->nomem ? &elfrw_err_nomem : NULL;
}

struct elfrw_err *icf_v_check_unreached(struct icf_v *v)
{
	struct icf_vclaim *c = &v->claim;
	size_t n = (c->unit.len + PER - 1) / PER;
	const struct elfrw_section *got = elfrw_image_section(&c->in, ".got.plt");
	if (!got)
		got = elfrw_image_section(&c->in, ".got");
	struct unreached x = { .v = v, .got = got ? got->hdr.sh_addr : 0 };
	if (!c->n_removed || !c->inferred)
		return NULL;
	for (uint32_t i = 1; i < c->in.n_sections; i++)
		if (holds_numbers(&c->in.section[i]))
			look_at_section(&x, &c->in.section[i]);
	look_behind_tables(&x);
	x.log = calloc(n + 1, sizeof *x.log);
	struct elfrw_err *err =
		x.log ? elfrw_parallel(v->threads, n, look_at_units, &x) : &elfrw_err_nomem;
	for (size_t i = 0; i < n && x.log; i++)
		icf_vlog_merge(&v->log, &x.log[i]);
	free(x.log);
	return err;
}
