/* gap.c: code without a symbol or an FDE in IN must still find what it reaches by distances in
 * data.
 *
 * This is the verifier's own reading, which does not depend on functions.  Such code did not move.
 * It may call or jump to a register that was added to just before, behind a load of a distance.
 * Then the data that the code refers to nearby is read as a list of distances, counted from the
 * data's address and from each nearby code address.  A list leads to code from its first word on,
 * at least twice, and ends with the first word that does not.  The words are unchanged, so their
 * targets must be at their old places.  A list may also be among the bytes of the code itself, with
 * numbers of 4 or 8 bytes: there, what is no distance to the start of other code is passed over.
 * Cost: one pass over that code; each list is read up to LIST words. */
#include "elfrw/arch/judge.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "elfrw/symtab.h"
#include "icf/verify/state.h"
#include <stdlib.h>
#include <string.h>

#define NAMES    16  /* most recently computed addresses */
#define NEAR     200 /* bytes before the jump in which they must be */
#define LIST     256
#define OWN_LIST 64 /* words behind a place in the code itself */

struct gap {
	struct icf_v *v;
	const uint64_t *name; /* sorted: what ends a list */
	size_t n_names;
	uint32_t unit;
	uint64_t va[NAMES], pos[NAMES]; /* a ring */
	unsigned n;                     /* written so far */
};

struct symbols {
	VEC(uint64_t) v; /* sorted */
};

static bool collect_symbols(const struct icf_v *v, struct symbols *ret)
{
	for (struct elfrw_all_symbols it = { .img = &v->claim.in }; elfrw_all_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		if (sym.st_shndx == SHN_UNDEF || !icf_v_in_exec(&v->claim, sym.st_value))
			continue;
		uint64_t *slot = VEC_PUSH(&ret->v);
		if (!slot)
			return false;
		*slot = sym.st_value;
	}
	if (ret->v.len)
		qsort(ret->v.data, ret->v.len, sizeof *ret->v.data, elfrw_u64_order);
	return true;
}

static bool is_bare(const struct icf_v *v, const struct symbols *sym, const struct icf_vunit *u)
{
	const struct dwr_cfi *c = &v->claim.cfi_in;
	size_t f = LOWER_BOUND(0, c->fde.len, mid, c->fde.data[c->by_pc[mid]].pc_begin < u->end);
	size_t k = LOWER_BOUND(0, sym->v.len, mid, sym->v.data[mid] < u->old);
	return !(f && c->fde.data[c->by_pc[f - 1]].pc_end > u->old) &&
	       !(k < sym->v.len && sym->v.data[k] < u->end);
}

/* Is the byte of IN at VA elsewhere in OUT? */
static bool left(const struct gap *g, uint64_t va)
{
	uint32_t t = icf_v_find(&g->v->claim, va);
	if (t == ICF_V_NONE || t == g->unit)
		return false;
	const struct icf_vunit *x = &g->v->claim.unit.data[t];
	return (va == x->old ? x->entry : x->body) != x->old;
}

/* Is the word at VA one that is checked elsewhere? */
static bool explained(const struct icf_v *v, uint64_t va)
{
	size_t i = icf_v_word_from(&v->words, va);
	return i < v->words.word.len && v->words.word.data[i].place < va + 4;
}

/* Reads the data at LIST as distances from FROM. */
static void look_at(const struct gap *g, uint64_t list, uint64_t from, uint64_t at)
{
	const struct icf_v *v = g->v;
	size_t next = LOWER_BOUND(0, g->n_names, mid, g->name[mid] <= list);
	uint64_t end = next < g->n_names ? g->name[next] : UINT64_MAX, lost = 0;
	unsigned n = 0;
	for (uint64_t p = list; n < LIST && end - p >= 4; p += 4, n++) {
		const uint8_t *word = elfrw_image_at(&v->claim.in, p, 4);
		uint64_t to = word ? from + (uint64_t)(int64_t)(int32_t)elfrw_get32(word) : 0;
		if (!word || explained(v, p) || !icf_v_in_exec(&v->claim, to))
			break;
		if (!lost && left(g, to))
			lost = to;
	}
	char name[200];
	if (lost && n >= 2)
		icf_vlog_bad(
			&g->v->log, ICF_VC_WORD,
			"distances at 0x%llx, used at 0x%llx: expected %s (0x%llx) to stay; it moved",
			ICF_VX(list), ICF_VX(at), icf_v_where(&v->claim, lost, name), ICF_VX(lost));
}

/* The same for a list among the unit's own bytes. */
static void look_at_own(const struct gap *g, uint64_t list, uint64_t from, uint64_t at)
{
	const struct icf_v *v = g->v;
	const struct icf_vunit *u = &v->claim.unit.data[g->unit];
	const uint8_t *code = v->claim.exec.data[u->exec].old_data;
	char name[200];
	for (uint64_t p = list, n = 0; n < OWN_LIST && u->end - p >= 4; p += 4, n++) {
		const uint8_t *word = code + (p - v->claim.exec.data[u->exec].old);
		uint64_t to = from + (uint64_t)(int64_t)(int32_t)elfrw_get32(word);
		uint32_t t = icf_v_in_exec(&v->claim, to) ? icf_v_find(&v->claim, to) : ICF_V_NONE;
		if (t == ICF_V_NONE || v->claim.unit.data[t].old != to || !left(g, to))
			continue;
		icf_vlog_bad(
			&g->v->log, ICF_VC_WORD,
			"distance at 0x%llx, used at 0x%llx: expected %s (0x%llx) to stay; it moved",
			ICF_VX(p), ICF_VX(at), icf_v_where(&v->claim, to, name), ICF_VX(to));
		return;
	}
}

/* What a jump at POS, to a sum with a number from memory, may be about; WORD: the number had 4
 * bytes. */
static void look_from(const struct gap *g, uint64_t pos, uint64_t at, bool word)
{
	const struct icf_vunit *u = &g->v->claim.unit.data[g->unit];
	unsigned n = g->n < NAMES ? g->n : NAMES;
	for (unsigned d = 0; d < n; d++) {
		bool own = g->va[d] - u->old < u->end - u->old;
		if (pos - g->pos[d] > NEAR ||
		    (!own && (!word || icf_v_in_exec(&g->v->claim, g->va[d]))))
			continue;
		if (!own)
			look_at(g, g->va[d], g->va[d], at);
		for (unsigned c = 0; c < n; c++)
			if (pos - g->pos[c] > NEAR || !icf_v_in_exec(&g->v->claim, g->va[c]))
				continue;
			else if (own)
				look_at_own(g, g->va[d], g->va[c], at);
			else
				look_at(g, g->va[d], g->va[c], at);
	}
}

static void read_gap(struct gap *g)
{
	const struct icf_v *v = g->v;
	const struct icf_vunit *u = &v->claim.unit.data[g->unit];
	const struct icf_vexec *e = &v->claim.exec.data[u->exec];
	const uint8_t *code = e->old_data + (u->old - e->old);
	uint64_t size = u->end - u->old, loaded = 0, loaded_long = 0, added = 0;
	unsigned sum = ELFRW_REG_NONE;
	struct elfrw_insn in;
	struct elfrw_judgement j;
	struct icf_vhighs high = { 0 };
	for (uint64_t pos = 0; pos < size; pos += in.len) {
		if (!v->claim.arch->decode(code + pos, size - pos, u->old + pos, &in)) {
			in.len = 1;
			continue;
		}
		v->claim.arch->judge->look(&in, code + pos, &j);
		uint64_t to = in.target;
		bool names = icf_v_names(&v->claim, &high, &in, code + pos, &to) &&
			     !(in.flags & ELFRW_INSN_MEM);
		if (names || ((in.flags & ELFRW_INSN_LEA) && in.pcrel_size)) {
			g->va[g->n % NAMES] = to;
			g->pos[g->n++ % NAMES] = pos;
		} else if (j.kind == ELFRW_JUDGE_LOAD_WORD)
			loaded = pos + 1;
		else if (j.kind == ELFRW_JUDGE_LOAD)
			loaded_long = pos + 1;
		else if (j.kind == ELFRW_JUDGE_SUM) {
			sum = j.to;
			added = pos + 1;
		} else if ((in.kind == ELFRW_INSN_CALL_IND || in.kind == ELFRW_INSN_JMP_IND) &&
			   sum != ELFRW_REG_NONE && v->claim.arch->judge->goes_to(&in) == sum &&
			   pos - added < 32) {
			bool word = loaded && pos - loaded < 64;
			if (word || (loaded_long && pos - loaded_long < 64))
				look_from(g, pos, u->old + pos, word);
		}
	}
}

struct elfrw_err *icf_v_check_gaps(struct icf_v *v, const uint64_t *name, size_t n_names)
{
	struct symbols sym = { 0 };
	bool moved = false;
	for (size_t i = 0; i < v->claim.unit.len && !moved; i++)
		moved = v->claim.unit.data[i].entry != v->claim.unit.data[i].old;
	struct elfrw_err *err = !moved || collect_symbols(v, &sym) ? NULL : &elfrw_err_nomem;
	for (uint32_t i = 0; i < v->claim.unit.len && moved && !err; i++) {
		const struct icf_vunit *u = &v->claim.unit.data[i];
		struct gap g = { .v = v, .name = name, .n_names = n_names, .unit = i };
		if (u->body == u->old && u->end != u->old && !(u->flags & ICF_V_FOLDED) &&
		    is_bare(v, &sym, u))
			read_gap(&g);
	}
	VEC_FREE(&sym.v);
	return err;
}
