/* infer.c: the distances in IN's data, if there are no relocations for them.
 *
 * This is the verifier's own reading, simpler than the one by which OUT was made.  A word begins a
 * table of distances if some code computes its address, and if it leads, counted from there, to an
 * instruction of that same code.  The table ends at the next address that anything refers to, or at
 * the first word that leads elsewhere.  How the code uses the table does not matter.  A word that
 * is found here and that OUT did not rewrite, or the reverse, is a difference. */
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "elfrw/symtab.h"
#include "icf/verify/state.h"
#include <stdlib.h>
#include <string.h>

static int base_order(const void *a, const void *b)
{
	const struct icf_vbase *x = a, *y = b;
	if (x->va != y->va)
		return x->va < y->va ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

static struct elfrw_err *push_name(struct icf_ventries *n, uint64_t va)
{
	uint64_t *slot = VEC_PUSH(&n->v);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = va;
	return NULL;
}

/* Collects places in data that the code, a dynamic relocation or a symbol refers to. */
static struct elfrw_err *collect_names(const struct icf_v *v, struct icf_ventries *n)
{
	for (size_t i = 0; i < v->base.len; i++)
		ELFRW_TRY(push_name(n, v->base.data[i].va));
	for (size_t i = 0; i < v->words.dynreloc.len; i++)
		if (v->words.dynreloc.data[i].kind == ELFRW_RELOC_RELATIVE)
			ELFRW_TRY(push_name(n, v->words.dynreloc.data[i].addend));
	for (struct elfrw_all_symbols it = { .img = &v->claim.in }; elfrw_all_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		if (sym.st_shndx != SHN_UNDEF && sym.st_shndx < SHN_LORESERVE &&
		    ELF64_ST_TYPE(sym.st_info) != STT_TLS)
			ELFRW_TRY(push_name(n, sym.st_value));
	}
	if (n->v.len)
		qsort(n->v.data, n->v.len, sizeof *n->v.data, elfrw_u64_order);
	return NULL;
}

/* Does a name in the string table T hold ".cold"?  Asked once, since names may be ends of one
 * string, each as long as all. */
static bool has_cold(const struct icf_v *v, uint32_t t)
{
	const struct elfrw_section *s = t < v->claim.in.n_sections ? &v->claim.in.section[t] : NULL;
	return s && s->data && memmem(s->data, s->hdr.sh_size, ".cold", 5);
}

/* Marks units whose start something other than a distance in data leads to.  Calls and jumps were
 * recorded with the code. */
static void find_named(struct icf_v *v)
{
	for (size_t i = 0; i < v->words.word.len; i++) {
		uint32_t u = icf_v_find(&v->claim, v->words.word.data[i].target);
		if (u != ICF_V_NONE && v->claim.unit.data[u].old == v->words.word.data[i].target)
			v->claim.unit.data[u].named |= ICF_V_NAMED;
	}
	for (uint32_t t = 1; t < v->claim.in.n_sections; t++) {
		const struct elfrw_section *s = &v->claim.in.section[t];
		if (!elfrw_holds_symbols(s))
			continue;
		bool cold = has_cold(v, s->hdr.sh_link);
		for (struct elfrw_symbols it = elfrw_symbols(s, 1); elfrw_symbols_next(&it);) {
			const Elf64_Sym sym = it.sym;
			uint32_t u =
				sym.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(sym.st_info) == STT_FUNC
					? icf_v_find(&v->claim, sym.st_value)
					: ICF_V_NONE;
			const char *name = u != ICF_V_NONE
						   ? elfrw_image_string(&v->claim.in,
									s->hdr.sh_link, sym.st_name)
						   : NULL;
			if (name && v->claim.unit.data[u].old == sym.st_value &&
			    !(cold && strstr(name, ".cold")))
				v->claim.unit.data[u].named |= ICF_V_NAMED;
		}
	}
	for (uint32_t i = 0; i < v->claim.unit.len; i++)
		v->claim.unit.data[i].named |= v->claim.unit.data[i].observed ? ICF_V_NAMED : 0;
}

/* The first place behind VA that something refers to and that is aligned as VA is; others do not
 * end a table of 4-byte words. */
static uint64_t next_name(const struct icf_v *v, const struct icf_ventries *n, uint64_t va)
{
	uint32_t shndx = elfrw_image_section_at(&v->claim.in, va);
	uint64_t end = shndx ? v->claim.in.section[shndx].hdr.sh_addr +
				       v->claim.in.section[shndx].hdr.sh_size
			     : va;
	size_t lo = LOWER_BOUND(0, n->v.len, mid, n->v.data[mid] <= va);
	while (lo < n->v.len && n->v.data[lo] < end && ((n->v.data[lo] - va) & 3))
		lo++;
	return lo < n->v.len && n->v.data[lo] < end ? n->v.data[lo] : end;
}

/* Where instructions begin, by byte of [v->claim.lo, v->claim.hi), in the units that were asked
 * for.  Each unit is decoded once. */
struct starts {
	uint8_t *bits, *read; /* owned; READ by unit */
};

static void read_starts(const struct icf_v *v, uint32_t unit, struct starts *s)
{
	const struct icf_vunit *u = &v->claim.unit.data[unit];
	const struct icf_vexec *e = &v->claim.exec.data[u->exec];
	if (s->read[unit])
		return;
	s->read[unit] = 1;
	for (uint64_t pos = 0; pos < u->end - u->old;) {
		struct elfrw_insn in;
		if (e->old_data[u->old - e->old + pos] == 0)
			pos += icf_v_pad(v, u->old + pos);
		unsigned len = v->claim.arch->decode(e->old_data + (u->old - e->old) + pos,
						     u->end - u->old - pos, u->old + pos, &in);
		if (!len)
			break;
		uint64_t bit = u->old + pos - v->claim.lo;
		s->bits[bit >> 3] |= (uint8_t)(1u << (bit & 7));
		pos += len;
	}
}

static bool jumps_between(const struct icf_v *v, uint32_t a, uint32_t b)
{
	/* In address order, so by unit. */
	size_t lo = LOWER_BOUND(0, v->jump.len, mid, v->jump.data[mid].unit < a);
	for (; lo < v->jump.len && v->jump.data[lo].unit == a; lo++)
		if (v->jump.data[lo].target == b)
			return true;
	return false;
}

/* May a table of unit OWNER lead to TO? */
static bool leads(const struct icf_v *v, uint32_t owner, uint64_t to, struct starts *s)
{
	uint32_t u = icf_v_find(&v->claim, to);
	/* An impossible case: the end of the function, or the end of another unit (an empty cold
	 * part). */
	if (v->claim.unit.data[owner].end == to)
		return true;
	if (u == ICF_V_NONE)
		return icf_v_find_end(&v->claim, to) != ICF_V_NONE;
	/* A unit whose other half was not understood jumps there, too. */
	if (u != owner && v->claim.unit.data[u].opaque && !jumps_between(v, owner, u))
		return false;
	/* A cold part that only tables lead to belongs to them.  So does an empty one in front of a
	 * part that others jump to. */
	uint8_t named = v->claim.unit.data[u].named;
	bool empty = named == ICF_V_JUMPED && icf_v_find_end(&v->claim, to) != ICF_V_NONE;
	if (u != owner && v->claim.unit.data[u].old == to && named && !empty &&
	    !jumps_between(v, owner, u) && !jumps_between(v, u, owner))
		return false;
	read_starts(v, u, s);
	uint64_t bit = to - v->claim.lo;
	return s->bits[bit >> 3] >> (bit & 7) & 1;
}

static bool word_at(const struct icf_v *v, uint64_t va, uint64_t *ret)
{
	const uint8_t *p = elfrw_image_at(&v->claim.in, va, 4);
	if (!p)
		return false;
	*ret = (uint64_t)(int64_t)(int32_t)elfrw_get32(p);
	return true;
}

/* Units that jump through a table: units that compute their jump targets, and units with jumps to
 * or from such a unit (thunks; the other half of a function).  By unit; the caller frees the array.
 * NULL: out of memory. */
static uint8_t *find_users(const struct icf_v *v)
{
	uint8_t *user = calloc(v->claim.unit.len + 1, 1);
	for (size_t i = 0; user && i < v->claim.unit.len; i++)
		user[i] = v->claim.unit.data[i].computes;
	for (size_t i = 0; user && i < v->jump.len; i++) {
		const struct icf_vjump *j = &v->jump.data[i];
		user[j->unit] |= v->claim.unit.data[j->target].computes;
		user[j->target] |= v->claim.unit.data[j->unit].computes;
	}
	return user;
}

static struct elfrw_err *read_table(struct icf_v *v, const struct icf_ventries *n, uint64_t base,
				    uint32_t owner, struct starts *s)
{
	uint64_t end = next_name(v, n, base), word;
	for (uint64_t place = base; place + 4 <= end && word_at(v, place, &word); place += 4) {
		if (!leads(v, owner, base + word, s))
			break;
		struct icf_vword *w = VEC_PUSH(&v->words.word);
		if (!w)
			return &elfrw_err_nomem;
		*w = (struct icf_vword){ .place = place,
					 .target = place + word,
					 .table = ICF_V_NONE,
					 .size = 4,
					 .kind = ICF_VW_RELATIVE };
	}
	return NULL;
}

/* Does a table of B's unit begin at B?  *HALF: the half of a function that only this table can lead
 * to, by its first entry; ICF_V_NONE: something else ties the target to the unit. */
static bool begins_table(const struct icf_v *v, const struct icf_vbase *b, const uint8_t *user,
			 struct starts *s, uint32_t *half)
{
	uint64_t word;
	*half = ICF_V_NONE;
	/* A place that is read directly at the given address cannot be read by an index. */
	if (b->loads || v->claim.unit.data[b->unit].opaque || !word_at(v, b->va, &word))
		return false;
	uint64_t to = b->va + word;
	const struct icf_vunit *u = &v->claim.unit.data[b->unit];
	if (to - u->old >= u->end - u->old && to != u->end && !icf_v_in_exec(&v->claim, to))
		return false;
	/* The first entry must lead into the unit, or into its other half. */
	if (!leads(v, b->unit, to, s))
		return false;
	uint32_t other = icf_v_find(&v->claim, to);
	if (other == b->unit)
		return true;
	/* Compilers align tables. */
	if (b->va & 3)
		return false;
	if (other == ICF_V_NONE || jumps_between(v, b->unit, other) ||
	    jumps_between(v, other, b->unit))
		return true;
	/* Only the table leads to this half.  Any number leads somewhere, so a jump is needed. */
	*half = other;
	return !v->claim.unit.data[other].named && user[b->unit];
}

/* Marks in ENTERED the units to whose start an entry of a table of OWNER at BASE leads. */
static void mark_entered(const struct icf_v *v, const struct icf_ventries *n, uint64_t base,
			 uint32_t owner, struct starts *s, uint8_t *entered)
{
	uint64_t end = next_name(v, n, base), word;
	for (uint64_t place = base; place + 4 <= end && word_at(v, place, &word); place += 4) {
		if (!leads(v, owner, base + word, s))
			break;
		uint32_t u = icf_v_find(&v->claim, base + word);
		if (u != ICF_V_NONE && v->claim.unit.data[u].old == base + word)
			entered[u] = 1;
	}
}

/* Marks in ENTERED the units that may begin with what an exception leads to. */
static void mark_landings(const struct icf_v *v, uint8_t *entered)
{
	for (size_t i = 0; i < v->claim.cfi_in.fde.len; i++) {
		const struct dwr_fde *f = &v->claim.cfi_in.fde.data[i];
		uint32_t u = f->lsda ? icf_v_find(&v->claim, f->pc_begin) : ICF_V_NONE;
		if (u != ICF_V_NONE)
			entered[u] = 1;
	}
}

/* Finds the tables.  A half that only tables lead to begins with what an entry leads to, or with a
 * landing pad.  Numbers that are no distances lead into the middle of functions that nobody
 * calls. */
static struct elfrw_err *find_tables(struct icf_v *v, const struct icf_ventries *n,
				     const uint8_t *user, struct starts *s)
{
	uint8_t *entered = calloc(v->claim.unit.len + 1, 1);
	struct elfrw_err *err = entered ? NULL : &elfrw_err_nomem;
	uint32_t half;
	if (!err)
		mark_landings(v, entered);
	for (size_t i = 0; i < v->base.len && !err; i++) {
		const struct icf_vbase *b = &v->base.data[i];
		if (begins_table(v, b, user, s, &half))
			mark_entered(v, n, b->va, b->unit, s, entered);
	}
	uint64_t done = 0; /* the last table's address */
	for (size_t i = 0; i < v->base.len && !err; i++) {
		const struct icf_vbase *b = &v->base.data[i];
		if (b->va == done || !begins_table(v, b, user, s, &half) ||
		    (half != ICF_V_NONE && !entered[half]))
			continue;
		err = read_table(v, n, b->va, b->unit, s);
		done = b->va;
	}
	free(entered);
	return err;
}

struct elfrw_err *icf_v_infer_words(struct icf_v *v)
{
	struct icf_ventries *names = &v->named;
	struct starts s = { calloc(((v->claim.hi - v->claim.lo) >> 3) + 1, 1),
			    calloc(v->claim.unit.len + 1, 1) };
	uint8_t *user = find_users(v);
	struct elfrw_err *err =
		s.bits && s.read && user ? collect_names(v, names) : &elfrw_err_nomem;
	find_named(v);
	if (v->base.len)
		qsort(v->base.data, v->base.len, sizeof *v->base.data, base_order);
	if (!err)
		err = find_tables(v, names, user, &s);
	if (!err)
		err = icf_v_sort_words(v);
	if (!err)
		err = icf_v_check_distances(v, names->v.data, names->v.len);
	if (!err)
		err = icf_v_check_all_based(v);
	if (!err)
		icf_v_check_listed(v);
	if (!err)
		err = icf_v_check_gaps(v, names->v.data, names->v.len);
	if (!err)
		err = icf_v_check_opaque(v);
	free(s.bits);
	free(s.read);
	free(user);
	return err;
}
