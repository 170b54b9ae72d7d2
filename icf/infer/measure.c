/* measure.c: which tables the indirect jumps of one unit go through.  Each explained jump says more
 * about the others, so the search is repeated until nothing new is learnt. */
#include "icf/infer/unit.h"
#include "icf/infer/effect.h"
#include "elfrw/base/rbuf.h"

struct elfrw_err *icf_forget_labels(struct icf_finder *f, uint32_t i)
{
	const struct icf_unit *u = &f->prog->unit.data[i];
	size_t bytes = (u->end - u->start + 7) / 8;
	f->work = 0;
	if (!VEC_RESERVE(&f->labels, bytes))
		return &elfrw_err_nomem;
	if (bytes)
		memset(f->labels.data, 0, bytes);
	f->labels.len = bytes;
	return NULL;
}

bool icf_name_label(struct icf_finder *f, uint32_t i, uint64_t to)
{
	const struct icf_unit *u = &f->prog->unit.data[i];
	uint64_t off = to - u->start;
	if (off >= u->end - u->start || (f->labels.data[off >> 3] >> (off & 7) & 1))
		return true;
	uint64_t *slot = VEC_PUSH(&f->found->named.v);
	if (!slot)
		return false;
	*slot = to;
	f->labels.data[off >> 3] |= (uint8_t)(1u << (off & 7));
	return true;
}

/* The entries of SIZE bytes from VA to the end of its section begin at *RET: their number. */
static uint64_t entries_at(const struct elfrw_image *img, uint64_t va, unsigned size,
			   const uint8_t **ret)
{
	uint32_t i = elfrw_image_section_at(img, va);
	uint64_t off = i ? va - img->section[i].hdr.sh_addr : 0;
	if (!i || !img->section[i].data || off > img->section[i].hdr.sh_size)
		return 0;
	*ret = img->section[i].data + off;
	return (img->section[i].hdr.sh_size - off) / size;
}

/* The same as icf_name_labels() for the table of J, whose start is known, and perhaps its end.  The
 * small entries are distances between places of one section, as the assembler computes them, and
 * compilers put each function into one section, or its cold part into another one.  So all entries
 * lead into the unit, and an open table ends where they no longer do.  What stands behind it may
 * look like more entries: labels too many do no harm.  In a large unit each byte leads to a label,
 * through megabytes of data; when all 256 have been there, no more are looked at. */
static struct elfrw_err *name_cases(struct icf_finder *f, uint32_t i, const struct icf_jump *j,
				    bool *good)
{
	const struct icf_unit *u = &f->prog->unit.data[i];
	unsigned size = j->shape->size, spare = 64 - 8 * size, left = 256;
	bool seen[256] = { false };
	const uint8_t *p = NULL;
	*good = false;
	for (uint64_t k = 0, room = 0; k < j->bound || j->open; k++, room--, p += size) {
		*good = k >= j->bound;
		if (!room && !(room = entries_at(f->prog->img, j->table + k * size, size, &p)))
			return NULL;
		uint64_t n = elfrw_get_le(p, size), rest = left ? 0 : room - 1;
		if (!j->open && rest > j->bound - k - 1)
			rest = j->bound - k - 1;
		if ((f->work += 1 + rest) > ICF_MAX_WORK) {
			*good = false;
			return NULL;
		}
		k += rest;
		room -= rest;
		p += rest;
		if (size == 1 && seen[n])
			continue;
		if (size == 1)
			seen[n] = left--;
		if (j->shape->sign)
			n = (uint64_t)((int64_t)(n << spare) >> spare);
		uint64_t to = j->base + (n << j->shape->shift);
		if (to - u->start >= u->end - u->start ||
		    !icf_trace_bit(f->t.start.data, to - u->start))
			return NULL;
		if (!icf_name_label(f, i, to))
			return &elfrw_err_nomem;
	}
	*good = true;
	return NULL;
}

/* The targets of jump K of unit I, which goes through the tables of J and nothing else. */
static struct elfrw_err *push_cases(struct icf_finder *f, uint32_t i, uint32_t k,
				    const struct icf_jumps *j)
{
	const struct icf_unit *u = &f->prog->unit.data[i];
	for (size_t n = 0; n < f->cand.v.len; n++) {
		const struct icf_candidate *c = &f->cand.v.data[n];
		uint64_t word;
		bool used = false;
		for (unsigned t = 0; t < j->n; t++)
			used |= !j->jump[t].base || j->jump[t].base == c->base;
		const struct icf_distances words = icf_distances_from(f->prog, c->base);
		for (uint64_t w = 0; used && w < c->n && icf_distance_of(&words, w, &word); w++) {
			uint64_t to = c->base + word - u->start;
			if (to >= u->end - u->start)
				continue;
			struct icf_edge *e = VEC_PUSH(&f->cases);
			if (!e)
				return &elfrw_err_nomem;
			*e = (struct icf_edge){ (uint32_t)to, k };
		}
	}
	return NULL;
}

/* Measures the tables of indirect jump K of unit I.  *GOOD is false if there may be others. */
static struct elfrw_err *measure_jump(struct icf_finder *f, uint32_t i, uint32_t k,
				      struct icf_jumps *j, bool *good)
{
	*good = true;
	icf_classify_jump(f->prog, i, &f->t, k, j);
	for (unsigned n = 0; n < j->n && *good;) {
		unsigned group = j->jump[n].group;
		for (*good = false; n < j->n && j->jump[n].group == group; n++)
			if (j->jump[n].kind == ICF_JUMP_LOCAL) {
				bool local;
				ELFRW_TRY(j->jump[n].table
						  ? name_cases(f, i, &j->jump[n], &local)
						  : icf_name_labels(f, i, j->jump[n].base, &local));
				*good |= local;
			} else if (j->jump[n].kind == ICF_JUMP_TABLE)
				*good |= icf_use_table(f, i, &j->jump[n]);
	}
	return NULL;
}

/* Removes the elements of WHAT from FROM; both ascend. */
static void without(struct icf_indices *from, const struct icf_indices *what)
{
	size_t n = 0, w = 0;
	for (size_t k = 0; k < from->v.len; k++) {
		while (w < what->v.len && what->v.data[w] < from->v.data[k])
			w++;
		if (w == what->v.len || what->v.data[w] != from->v.data[k])
			from->v.data[n++] = from->v.data[k];
	}
	from->v.len = n;
}

/* Adds the cases that push_cases() found. */
static struct elfrw_err *add_cases(struct icf_finder *f, uint32_t i)
{
	const struct icf_unit *u = &f->prog->unit.data[i];
	if (!VEC_APPEND(&f->t.cases, f->cases.data, f->cases.len))
		return &elfrw_err_nomem;
	f->cases.len = 0;
	return icf_trace_sort_cases(&f->t, u->end - u->start) ? NULL : &elfrw_err_nomem;
}

/* Measures the tables of the jumps in f->todo, which keeps the jumps that may lead anywhere, until
 * nothing new is learnt.  At first any jump may lead to any case of a switch.  Each explained jump
 * says more about the others. */
static struct elfrw_err *measure_jumps(struct icf_finder *f, uint32_t i)
{
	struct icf_trace *t = &f->t;
	size_t known;
	bool adds;
	do {
		size_t left = 0;
		known = t->cases.len;
		f->closed.v.len = 0;
		adds = false;
		for (size_t k = 0; k < f->todo.v.len; k++) {
			struct icf_jumps j;
			uint32_t at = f->todo.v.data[k], *slot;
			bool good;
			ELFRW_TRY(measure_jump(f, i, at, &j, &good));
			if (!good) {
				adds |= j.adds;
				f->todo.v.data[left++] = at;
				continue;
			}
			if (j.adds)
				icf_set_unit_flag(f->prog, i, ICF_UNIT_RELATIVE);
			if (!j.closed)
				continue;
			if (!(slot = VEC_PUSH(&f->closed.v)))
				return &elfrw_err_nomem;
			*slot = at;
			ELFRW_TRY(push_cases(f, i, at, &j));
		}
		f->todo.v.len = left;
		without(&t->open, &f->closed);
		ELFRW_TRY(add_cases(f, i));
	} while (f->todo.v.len && t->cases.len > known);
	f->adds = adds;
	return NULL;
}

/* Finds the targets of the jumps in f->todo, assuming that t->cases is complete.  *GOOD: they lead
 * nowhere else. */
static struct elfrw_err *suppose(struct icf_finder *f, uint32_t i, bool *good)
{
	size_t known = f->t.cases.len;
	*good = true;
	for (size_t k = 0; k < f->todo.v.len; k++) {
		struct icf_jumps j;
		bool one;
		ELFRW_TRY(measure_jump(f, i, f->todo.v.data[k], &j, &one));
		one = one && j.closed && !j.adds;
		*good &= one;
		if (one)
			ELFRW_TRY(push_cases(f, i, f->todo.v.data[k], &j));
	}
	ELFRW_TRY(add_cases(f, i));
	*good &= f->t.cases.len == known;
	return NULL;
}

/* Jumps may lead to each other's cases.  Start with the code that control reaches from the
 * function's entry while these jumps lead nowhere.  This code shows some tables, whose cases show
 * more tables.  If each jump, reached from these cases, uses only these tables, no execution can
 * ever leave them.  This is tested for all jumps except those to pointers.  *GOOD is false if it
 * does not hold. */
static struct elfrw_err *measure_circle(struct icf_finder *f, uint32_t i, bool *good)
{
	struct icf_trace *t = &f->t;
	size_t known;
	f->closed.v.len = 0;
	if (!VEC_APPEND(&f->closed.v, f->todo.v.data, f->todo.v.len))
		return &elfrw_err_nomem;
	without(&t->open, &f->closed);
	f->todo.v.len = t->cases.len = 0;
	if (!VEC_APPEND(&f->todo.v, t->jump.v.data, t->jump.v.len))
		return &elfrw_err_nomem;
	without(&f->todo, &t->open);
	t->forward = true;
	do {
		known = t->cases.len;
		ELFRW_TRY(suppose(f, i, good));
	} while (t->cases.len > known);
	t->forward = false;
	return suppose(f, i, good);
}

/* Sets t->sealed and t->plain: can an indirect jump lead to the inside of unit I? */
static struct elfrw_err *find_seal(struct icf_finder *f, uint32_t i)
{
	const struct icf_unit *u = &f->prog->unit.data[i];
	struct icf_trace *t = &f->t;
	bool good;
	ELFRW_TRY(icf_trace_pads(f->prog, i, t, &good));
	good = good && f->joined && !f->half_code;
	for (size_t k = 0; k < t->insn.len && good; k++) {
		uint64_t va = u->start + t->insn.data[k].pos;
		const struct elfrw_insn *in = &t->insn.data[k].in;
		good = va == u->start || (!icf_bit(f->called, va) && !icf_bit(f->joined, va));
		/* The unit also takes no address of a label, does not read its own code, and does
		 * not call its inside. */
		bool branch = in->kind == ELFRW_INSN_JMP || in->kind == ELFRW_INSN_JCC;
		const struct icf_ref *low = icf_low_at(f->prog, i, t, k);
		uint64_t to = low ? low->target : in->target;
		good = good && ((!in->pcrel_size && !low) || branch ||
				to - u->start - 1 >= u->end - u->start - 1);
	}
	t->sealed = good;
	t->plain = good && !f->cand.v.len;
	return NULL;
}

/* Do all jumps of unit I go to pointers, none of which leads to its inside?  Then control reaches
 * only what it reaches from the entry and the landing pads: the first jump elsewhere would have to
 * be one of these jumps. */
static bool leaves_all(struct icf_finder *f, uint32_t i)
{
	struct icf_trace *t = &f->t;
	struct icf_jumps j = { .closed = t->plain };
	t->forward = true;
	for (size_t k = 0; k < t->jump.v.len && j.closed && !j.adds && !j.n; k++)
		icf_classify_jump(f->prog, i, t, t->jump.v.data[k], &j);
	t->forward = false;
	return j.closed && !j.adds && !j.n;
}

/* Does nothing but a jump use the label that instruction K puts into a register?  Compilers write
 * the label that a switch counts from, the sum with an entry, and the jump in a row; the load of
 * the entry may come before the sum.  What the jump does is measured. */
static bool is_of_switch(const struct icf_program *prog, uint32_t i, const struct icf_trace *t,
			 size_t k)
{
	uint8_t label = icf_effect_at(prog, i, t, k).dst;
	for (size_t n = k + 1; n <= k + 2 && n + 1 < t->insn.len; n++) {
		struct elfrw_effect e = icf_effect_at(prog, i, t, n);
		const struct elfrw_insn *jump = &t->insn.data[n + 1].in;
		if (e.shift && e.a == label && e.b != label)
			return jump->kind == ELFRW_INSN_JMP_IND &&
			       !(jump->flags & ELFRW_INSN_MEM) &&
			       icf_effect_at(prog, i, t, n + 1).a == e.dst;
		if ((e.reads | e.writes) & elfrw_reg_bit(label))
			return false;
	}
	return false;
}

struct elfrw_err *icf_measure_jumps(struct icf_finder *f, uint32_t i, bool *ret)
{
	struct icf_program *prog = f->prog;
	const struct icf_unit *u = &prog->unit.data[i];
	bool good = true;
	ELFRW_TRY(find_seal(f, i));
	if (leaves_all(f, i)) {
		*ret = true;
		return NULL;
	}
	bool names = f->t.inner || prog->arch->low_form; /* places inside, perhaps */
	for (size_t k = 0; k < f->t.insn.len && good && names; k++) {
		uint64_t to;
		bool computes;
		/* A sum with a label may have been kept in memory. */
		if (icf_names_place(prog, i, &f->t, k, &to, &computes) && computes &&
		    to - u->start < u->end - u->start && to != u->start &&
		    !is_of_switch(prog, i, &f->t, k))
			ELFRW_TRY(icf_name_labels(f, i, to, &good));
	}
	*ret = good;
	f->todo.v.len = 0;
	if (!good)
		return NULL;
	if (!VEC_APPEND(&f->todo.v, f->t.jump.v.data, f->t.jump.v.len))
		return &elfrw_err_nomem;
	ELFRW_TRY(measure_jumps(f, i));
	if (f->todo.v.len)
		ELFRW_TRY(measure_circle(f, i, ret));
	if (!*ret && f->adds)
		icf_set_unit_flag(prog, i, ICF_UNIT_RELATIVE);
	return NULL;
}
