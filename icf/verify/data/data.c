/* data.c: the data of both files is equal to the last byte, except for words that refer to code.
 * Each of these must refer to the image of its old target. */
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "icf/verify/state.h"
#include <stdlib.h>
#include <string.h>

static const struct icf_vtable *table_at(const struct icf_v *v, uint64_t va)
{
	size_t lo = LOWER_BOUND(0, v->words.table.len, mid, v->words.table.data[mid].base < va);
	return lo < v->words.table.len && v->words.table.data[lo].base == va
		       ? &v->words.table.data[lo]
		       : NULL;
}

/* Does unit A jump into B, behind its start?  Then they are parts of one function. */
static bool jumps_into(const struct icf_v *v, uint32_t a, uint32_t b)
{
	size_t lo = LOWER_BOUND(0, v->jump.len, mid, v->jump.data[mid].unit < a);
	for (; lo < v->jump.len && v->jump.data[lo].unit == a; lo++)
		if (v->jump.data[lo].target == b && v->jump.data[lo].inside)
			return true;
	return false;
}

/* Is W a word of a table that only removed code reads, or does it lead to removed code, which no
 * other word may do?  It then stays as it was.  In such a table, a word that leads to code that is
 * there may also be right. */
static bool check_removed(struct icf_v *v, struct icf_vword *w, uint32_t owner)
{
	char name[200];
	bool known, unread = icf_v_removed(&v->claim, owner),
		    gone = icf_v_removed(&v->claim, icf_v_find(&v->claim, w->target));
	if (!unread && !gone)
		return false;
	v->log.checked[ICF_VC_REMOVED]++;
	w->want = w->target;
	known = !gone && icf_v_code(&v->claim, w->target, &w->alt);
	if (!known)
		w->alt = w->target;
	if (!unread && !w->lost)
		icf_vlog_bad(
			&v->log, ICF_VC_REMOVED,
			"removed: %s (0x%llx): expected code that nothing reaches, found a word at 0x%llx",
			icf_v_where(&v->claim, w->target, name), ICF_VX(w->target),
			ICF_VX(w->place));
	return true;
}

/* Computes the required meaning of every word in OUT. */
static void resolve(struct icf_v *v)
{
	for (size_t i = 0; i < v->words.word.len; i++) {
		struct icf_vword *w = &v->words.word.data[i];
		uint32_t owner =
			w->table != ICF_V_NONE ? v->words.table.data[w->table].owner : ICF_V_NONE;
		bool known;
		if (check_removed(v, w, owner))
			continue;
		if (w->still) {
			w->want = w->alt = w->target;
			continue;
		}
		if (!icf_v_in_exec(&v->claim, w->target) &&
		    icf_v_data(&v->claim, w->target) != w->target) {
			w->want = w->alt = icf_v_data(&v->claim, w->target);
			continue;
		}
		if (w->table != ICF_V_NONE) {
			known = icf_v_label(&v->claim, w->target, owner, &w->want);
			w->alt = w->want;
			/* A shared table of labels looks like a table of functions, and the end of
			 * a function like the start of its cold part there.  Both meanings may be
			 * right. */
			uint32_t next =
				owner != ICF_V_NONE && w->target == v->claim.unit.data[owner].end
					? icf_v_find(&v->claim, w->target)
					: ICF_V_NONE;
			if (owner == ICF_V_NONE)
				icf_v_pointer(&v->claim, w->target, &w->want);
			else if (next != ICF_V_NONE) {
				icf_v_code(&v->claim, w->target, &w->want);
				if (!v->claim.unit.data[next].named || jumps_into(v, next, owner) ||
				    jumps_into(v, owner, next))
					w->alt = w->want;
			}
		} else {
			known = icf_v_pointer(&v->claim, w->target, &w->want);
			w->alt = w->want;
			if (w->quiet && !icf_v_is_compared(v, w))
				icf_v_code(&v->claim, w->target, &w->alt);
		}
		if (!known && icf_v_in_exec(&v->claim, w->target))
			icf_vlog_bad(
				&v->log, ICF_VC_WORD,
				"word: 0x%llx (0x%llx -> none): expected code in a unit, found none",
				ICF_VX(w->place), ICF_VX(w->target));
	}
}

struct entry {
	uint64_t target;
	uint32_t word, unit;
};

static int entry_order(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	return x->target < y->target ? -1 : x->target > y->target;
}

/* Entry W of table T leads nowhere.  If a relocation shows that it is a distance, it may count from
 * elsewhere, and T is no table. */
static void astray(struct icf_v *v, struct icf_vtable *t, const struct icf_vword *w,
		   const char *expected, const char *found)
{
	t->none = w->kind == ICF_VW_RELATIVE && !v->claim.inferred;
	icf_v_check_led(v, w->place, w->target);
	if (!t->none)
		icf_vlog_bad(&v->log, ICF_VC_TABLE, "entry: 0x%llx (0x%llx): expected %s, found %s",
			     ICF_VX(w->place), ICF_VX(w->target), expected, found);
}

/* The run is no table: its words count from their own places, or from unknown places. */
static void unmake(struct icf_v *v)
{
	for (size_t t = 0; t < v->words.table.len; t++) {
		struct icf_vtable *x = &v->words.table.data[t];
		for (uint32_t k = 0; k < x->n && x->none; k++) {
			struct icf_vword *w = &v->words.word.data[x->word + k];
			w->target += w->place - x->base;
			w->table = ICF_V_NONE;
		}
		if (x->none)
			x->n = 0;
	}
}

struct entries {
	VEC(struct entry) v;
};

/* The entries of all tables, by target. */
static struct elfrw_err *find_entries(const struct icf_v *v, struct entries *e)
{
	for (size_t t = 0; t < v->words.table.len; t++)
		for (uint32_t k = 0; k < v->words.table.data[t].n; k++) {
			const uint32_t w = v->words.table.data[t].word + k;
			const uint64_t to = v->words.word.data[w].target;
			struct entry *slot = VEC_PUSH(&e->v);
			if (!slot)
				return &elfrw_err_nomem;
			*slot = (struct entry){ to, w, icf_v_find(&v->claim, to) };
		}
	return elfrw_sort_numbers(e->v.data, e->v.len, sizeof *e->v.data, v->claim.lo, v->claim.hi,
				  entry_order)
		       ? NULL
		       : &elfrw_err_nomem;
}

/* Every entry must lead to an instruction; otherwise the tables were not read as the code reads
 * them. */
static void check_entries(struct icf_v *v, const struct entries *e)
{
	v->log.checked[ICF_VC_TABLE] += e->v.len;
	uint32_t unit = ICF_V_NONE;
	uint64_t pos = 0;
	for (size_t i = 0; i < e->v.len; i++) {
		const struct entry *x = &e->v.data[i];
		if (x->unit == ICF_V_NONE) {
			uint32_t u = icf_v_find_end(&v->claim, x->target);
			if (u == ICF_V_NONE)
				astray(v, &v->words.table.data[v->words.word.data[x->word].table],
				       &v->words.word.data[x->word], "code", "none");
			continue;
		}
		const struct icf_vunit *u = &v->claim.unit.data[x->unit];
		const struct icf_vexec *s = &v->claim.exec.data[u->exec];
		if (u->opaque)
			continue;
		if (x->unit != unit)
			pos = u->old;
		unit = x->unit;
		while (pos < x->target) {
			struct elfrw_insn in;
			if (s->old_data[pos - s->old] == 0)
				pos += icf_v_pad(v, pos);
			if (pos >= x->target)
				break;
			unsigned len = v->claim.arch->decode(s->old_data + (pos - s->old),
							     u->end - pos, pos, &in);
			if (!len)
				break;
			pos += len;
		}
		/* The case for the owner's end never happens; it may even lie in the next function.
		 */
		uint32_t owner = v->words.table.data[v->words.word.data[x->word].table].owner;
		if ((pos != x->target || icf_v_in_literals(v, x->target)) &&
		    !(owner != ICF_V_NONE && x->target == v->claim.unit.data[owner].end))
			astray(v, &v->words.table.data[v->words.word.data[x->word].table],
			       &v->words.word.data[x->word], "an instruction", "the middle of one");
	}
}

/* Do the entries A of unit X and B of unit Y lead to the same place of the two?  The case for the
 * end of a unit never happens, and what lies there may have moved elsewhere. */
static bool same_entry(const struct icf_vword *a, const struct icf_vunit *x,
		       const struct icf_vword *b, const struct icf_vunit *y)
{
	return a->want == b->want || (a->target == x->end && b->target == y->end) ||
	       (a->want - x->body <= x->end - x->old && b->want - y->body == a->want - x->body);
}

/* The tables of a folded unit and of its kept copy must lead to the same places. */
static void check_pairs(struct icf_v *v)
{
	for (size_t i = 0; i < v->pair.len; i++) {
		const struct icf_vpair *p = &v->pair.data[i];
		const struct icf_vtable *a = table_at(v, p->a), *b = table_at(v, p->b);
		uint32_t kept = p->kept;
		char name[200], other[200];
		const char *what = NULL;
		if (!a || !b || a->owner != p->unit || b->owner != kept)
			what = "the same data or a jump table of its own";
		else if (a->n != b->n ||
			 v->words.word.data[a->word].size != v->words.word.data[b->word].size)
			what = "a jump table of the same size";
		/* A unit that replaces the other only somewhere has entries of its own. */
		const struct icf_vunit *x = &v->claim.unit.data[p->unit],
				       *y = &v->claim.unit.data[kept];
		for (uint32_t k = 0; !what && k < a->n; k++)
			if (!same_entry(&v->words.word.data[a->word + k], x,
					&v->words.word.data[b->word + k], y))
				what = "a jump table with the same entries";
		if (!what)
			continue;
		icf_vlog_bad(
			&v->log, ICF_VC_FOLD,
			"data: %s, folded into %s (0x%llx -> 0x%llx): expected %s, found 0x%llx",
			icf_v_where(&v->claim, p->at, name),
			icf_v_where(&v->claim, v->claim.unit.data[kept].old, other), ICF_VX(p->a),
			ICF_VX(p->b), what, ICF_VX(p->b));
	}
}

struct elfrw_err *icf_v_check_tables(struct icf_v *v)
{
	struct entries e = { 0 };
	struct elfrw_err *err = find_entries(v, &e);
	if (!err)
		check_entries(v, &e);
	VEC_FREE(&e.v);
	ELFRW_TRY(err);
	unmake(v);
	for (size_t i = 0; i < v->words.word.len && v->run.len; i++)
		if (v->words.word.data[i].table == ICF_V_NONE &&
		    v->words.word.data[i].kind == ICF_VW_RELATIVE)
			icf_v_check_led(v, v->words.word.data[i].place,
					v->words.word.data[i].target);
	ELFRW_TRY(icf_v_check_reach(&v->claim, &v->words, &v->log));
	ELFRW_TRY(icf_v_check_objects(v));
	ELFRW_TRY(icf_v_check_unread(v));
	resolve(v);
	check_pairs(v);
	return NULL;
}

static bool has_own_check(const struct elfrw_section *s)
{
	switch (s->hdr.sh_type) {
	case SHT_RELA:
	case SHT_DYNAMIC:
	case SHT_DYNSYM: return true;
	default: return icf_v_is_unwind_name(s->name);
	}
}

static void bytes_differ(struct icf_v *v, const struct elfrw_section *s, const uint8_t *b,
			 uint64_t from, uint64_t to)
{
	uint64_t i = from;
	/* note.c checks a note, except for words. */
	if (from >= to || s->hdr.sh_type == SHT_NOTE)
		return;
	v->log.checked[ICF_VC_DATA] += to - from;
	if (memcmp(s->data + from, b + from, to - from) == 0)
		return;
	while (s->data[i] == b[i])
		i++;
	icf_vlog_bad(&v->log, ICF_VC_DATA,
		     "byte: %s+0x%llx (0x%llx): expected 0x%02x, found 0x%02x", s->name, ICF_VX(i),
		     ICF_VX(s->hdr.sh_addr + i), s->data[i], b[i]);
}

/* The required value of the field of W, whose target is TO. */
static uint64_t field_for(const struct icf_vword *w, uint64_t old, uint64_t to)
{
	if (w->kind == ICF_VW_RELATIVE || w->kind == ICF_VW_OFFSET)
		old += to - w->target;
	else
		old = to;
	return w->size < 8 ? old & ((UINT64_C(1) << (8 * w->size)) - 1) : old;
}

static void check_section(struct icf_v *v, const struct elfrw_section *s,
			  const struct elfrw_section *o)
{
	uint64_t pos = 0, size = s->hdr.sh_size;
	for (size_t i = icf_v_word_from(&v->words, s->hdr.sh_addr);
	     i < v->words.word.len && v->words.word.data[i].place - s->hdr.sh_addr < size; i++) {
		const struct icf_vword *w = &v->words.word.data[i];
		uint64_t off = w->place - s->hdr.sh_addr;
		/* The loader overwrites this field and ignores its value in the file, unless its
		 * relocation went. */
		if ((w->kind == ICF_VW_DYNAMIC && !w->stored && !w->lost) || size - off < w->size)
			continue;
		bytes_differ(v, s, o->data, pos, off);
		if (off + w->size > pos)
			pos = off + w->size;
		uint64_t old = elfrw_get_le(s->data + off, w->size),
			 new = elfrw_get_le(o->data + off, w->size);
		v->log.checked[ICF_VC_WORD]++;
		if (w->lost ? !new || (new == old && w->kind == ICF_VW_DYNAMIC && !w->stored)
			    : new == field_for(w, old, w->want) || new == field_for(w, old, w->alt))
			continue;
		char name[200];
		icf_vlog_bad(
			&v->log, w->table != ICF_V_NONE ? ICF_VC_TABLE : ICF_VC_WORD,
			"word: %s+0x%llx, of %s (0x%llx -> 0x%llx): expected 0x%llx, found 0x%llx",
			s->name, ICF_VX(off), icf_v_where(&v->claim, w->target, name),
			ICF_VX(w->target), ICF_VX(w->want), ICF_VX(field_for(w, old, w->want)),
			ICF_VX(new));
	}
	bytes_differ(v, s, o->data, pos, size);
}

struct elfrw_err *icf_v_check_data(struct icf_v *v)
{
	for (uint32_t i = 1; i < v->claim.in.n_sections; i++) {
		const struct elfrw_section *s = &v->claim.in.section[i];
		if (!(s->hdr.sh_flags & SHF_ALLOC) || (s->hdr.sh_flags & SHF_EXECINSTR) ||
		    !s->data || has_own_check(s))
			continue;
		const struct elfrw_section *o =
			v->claim.to_out[i] ? &v->claim.out.section[v->claim.to_out[i]] : NULL;
		if (!o || o->hdr.sh_size != s->hdr.sh_size || !o->data)
			icf_vlog_bad(&v->log, ICF_VC_DATA,
				     "section: %s: expected %llu bytes, found %llu", s->name,
				     ICF_VX(s->hdr.sh_size),
				     ICF_VX(o && o->data ? o->hdr.sh_size : 0));
		else
			check_section(v, s, o);
	}
	return NULL;
}
