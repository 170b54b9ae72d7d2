/* stack.c: counts stacks.  The levels of a sample's call chain, or the place of the sample alone,
 * are numbered; a stack is a list of such numbers.  Both are found by their 128-bit hashes.
 *
 * Cost: memory for each different stack. */
#include "icf/profile/stack.h"
#include "elfrw/base/printable.h"
#include "icf/profile/state.h"
#include <inttypes.h>

struct elfrw_err *icf_prof_stack_open(struct icf_profile *p)
{
	p->stack = calloc(1, sizeof *p->stack);
	return p->stack ? NULL : &elfrw_err_nomem;
}

void icf_prof_stack_close(struct icf_profile *p)
{
	struct icf_prof_stack *s = p->stack;
	if (!s)
		return;
	for (size_t i = 0; i < s->level.len; i++) {
		free(s->level.data[i].name);
		free(s->level.data[i].dso);
	}
	VEC_FREE(&s->level);
	VEC_FREE(&s->stack);
	VEC_FREE(&s->item);
	VEC_FREE(&s->current);
	free(s->level_slot);
	free(s->stack_slot);
	free(s);
}

/* The slot of KEY in a table whose elements are SIZE bytes and begin with their key. */
static uint32_t *find_slot(uint32_t *slot, size_t n_slots, const void *data, size_t size,
			   XXH128_hash_t key)
{
	size_t i = key.low64 & (n_slots - 1);
	for (; slot[i]; i = (i + 1) & (n_slots - 1)) {
		XXH128_hash_t k;
		memcpy(&k, (const char *)data + (slot[i] - 1) * size, sizeof k);
		if (k.low64 == key.low64 && k.high64 == key.high64)
			break;
	}
	return &slot[i];
}

/* Makes room for one more in a table of N. */
static bool make_room(uint32_t **slot, size_t *n_slots, const void *data, size_t size, size_t n)
{
	if (2 * (n + 1) <= *n_slots)
		return true;
	size_t more = *n_slots ? 2 * *n_slots : 4096;
	uint32_t *t = calloc(more, sizeof *t);
	if (!t)
		return false;
	for (size_t i = 0; i < n; i++) {
		XXH128_hash_t k;
		memcpy(&k, (const char *)data + i * size, sizeof k);
		*find_slot(t, more, data, size, k) = (uint32_t)i + 1;
	}
	free(*slot);
	*slot = t;
	*n_slots = more;
	return true;
}

/* The number of level L, whose names are borrowed and have N_NAME and N_DSO bytes. */
static struct elfrw_err *put_level(struct icf_profile *p, struct icf_prof_level *l,
				   const char *name, size_t n_name, const char *dso, size_t n_dso)
{
	struct icf_prof_stack *s = p->stack;
	bool places = p->in->to == ICF_PROFILE_PPROF;
	uint64_t part[4] = { l->address, l->member, (uint64_t)l->in << 1 | l->undecided,
			     places && dso ? XXH3_64bits(dso, n_dso) : 0 };
	l->key = XXH3_128bits_withSeed(name, n_name, places ? XXH3_64bits(part, sizeof part) : 0);
	if (!make_room(&s->level_slot, &s->n_level_slots, s->level.data, sizeof *s->level.data,
		       s->level.len))
		return &elfrw_err_nomem;
	uint32_t *slot = find_slot(s->level_slot, s->n_level_slots, s->level.data,
				   sizeof *s->level.data, l->key),
		 *item = VEC_PUSH(&s->current);
	if (!item)
		return &elfrw_err_nomem;
	if (!*slot) {
		l->name = strndup(name, n_name);
		l->dso = dso ? strndup(dso, n_dso) : NULL;
		if (!l->name || (dso && !l->dso) || !VEC_APPEND(&s->level, l, 1)) {
			free(l->name);
			free(l->dso);
			return &elfrw_err_nomem;
		}
		*slot = (uint32_t)s->level.len;
	}
	*item = *slot - 1;
	return NULL;
}

/* The name of the function that A is attributed to.  F: the frame at LINE; its name is taken if it
 * is right. */
static const char *name_of(struct icf_profile *p, const struct icf_prof_address *a, uint64_t va,
			   const char *line, const struct icf_perf_parts *f, size_t *n)
{
	const struct dwr_icfold *note = p->m->note;
	uint32_t m = a->unit == ICF_PROF_NONE ? ICF_PROF_NONE : note->unit_member[a->unit];
	const char *linkage = NULL;
	struct dwr_sym_symbol sym;
	bool shown = f->n_name && !icf_perf_is(line + f->name, f->n_name, "[unknown]");
	if (m != ICF_PROF_NONE) {
		const struct dwr_icfold_member *k = &note->member[m];
		for (uint32_t i = 0; i < k->n_names; i++)
			if (shown && icf_perf_same_name(p->m, note->names[k->name + i],
							line + f->name, f->n_name))
				linkage = "";
		if (!linkage && k->n_names)
			linkage = note->names[k->name];
	} else if (!shown && a->unit != ICF_PROF_NONE && dwr_sym_symbol_at(p->m->sym, va, &sym))
		linkage = sym.name;
	else if (shown)
		linkage = "";
	if (linkage && *linkage) {
		const char *text = icf_perf_spell(
			p->m, linkage,
			shown ? icf_perf_form_of(line + f->name, f->n_name) : ICF_PERF_SHORT);
		*n = text ? strlen(text) : 0;
		return text;
	}
	*n = linkage ? f->n_name : strlen("[unknown]");
	return linkage ? line + f->name : "[unknown]";
}

static struct elfrw_err *add_level(struct icf_profile *p, const struct icf_prof_frame *k)
{
	const struct icf_prof_address *a = &p->address.data[k->address];
	const char *line = p->text.data + k->line;
	bool in = a->in && !k->inlined;
	struct icf_prof_level l = { .address = in ? a->other : a->raw,
				    .va = p->in->forward ? a->other : a->va,
				    .member = ICF_PROF_NONE,
				    .in = in,
				    .ret = a->ret,
				    .undecided = a->undecided };
	if (in && a->unit != ICF_PROF_NONE)
		l.member = p->m->note->unit_member[a->unit];
	size_t n;
	const char *name = name_of(p, a, l.va, line, &k->f, &n);
	if (!name)
		return &elfrw_err_nomem;
	return put_level(p, &l, name, n, in ? NULL : line + k->f.dso, k->f.n_dso);
}

/* Inlined calls of code that is shared are those of the kept function: they are left out.  pprof's
 * come from the debug information. */
static bool is_wanted(const struct icf_profile *p, size_t i)
{
	const struct icf_prof_frame *k = &p->frame.data[i];
	if (!k->inlined)
		return true;
	size_t next = i;
	while (next < p->frame.len && p->frame.data[next].inlined)
		next++;
	const struct icf_prof_address *a =
		next < p->frame.len ? &p->address.data[p->frame.data[next].address] : NULL;
	return !a || !a->in || a->raw != p->address.data[k->address].raw ||
	       (p->in->to == ICF_PROFILE_COLLAPSED && a->unit != ICF_PROF_NONE &&
		p->m->note->unit_member[a->unit] == UINT32_MAX);
}

struct elfrw_err *icf_prof_stack_add(struct icf_profile *p)
{
	struct icf_prof_stack *s = p->stack;
	s->current.len = 0;
	for (size_t i = 0; i < p->frame.len; i++)
		if (p->address.data[p->frame.data[i].address].dropped)
			return NULL;
	for (size_t i = 0; i < p->frame.len; i++)
		if (is_wanted(p, i))
			ELFRW_TRY(add_level(p, &p->frame.data[i]));
	if (!s->current.len)
		return NULL;
	if (p->in->to == ICF_PROFILE_COLLAPSED && p->n_comm) {
		struct icf_prof_level comm = { .member = ICF_PROF_NONE };
		ELFRW_TRY(put_level(p, &comm, p->text.data + p->comm, p->n_comm, NULL, 0));
	}
	XXH128_hash_t key = XXH3_128bits(s->current.data, s->current.len * sizeof *s->current.data);
	if (!make_room(&s->stack_slot, &s->n_stack_slots, s->stack.data, sizeof *s->stack.data,
		       s->stack.len))
		return &elfrw_err_nomem;
	uint32_t *slot = find_slot(s->stack_slot, s->n_stack_slots, s->stack.data,
				   sizeof *s->stack.data, key);
	if (!*slot) {
		struct icf_prof_counted *c = VEC_PUSH(&s->stack);
		if (!c)
			return &elfrw_err_nomem;
		*c = (struct icf_prof_counted){ key, (uint32_t)s->item.len,
						(uint32_t)s->current.len, 0, 0 };
		if (!VEC_APPEND(&s->item, s->current.data, s->current.len))
			return &elfrw_err_nomem;
		*slot = (uint32_t)s->stack.len;
	}
	struct icf_prof_counted *c = &s->stack.data[*slot - 1];
	c->count += p->count;
	c->weight += p->weight * p->count;
	return NULL;
}

/* ---- flame graphs ---- */

/* ';' ends a level, and a blank the last one's name is part of. */
static void put_name(FILE *out, const char *name)
{
	for (; *name; name++) {
		char c[2] = { *name == ';' ? ':' : *name, 0 };
		elfrw_put_printable(out, c);
	}
}

static struct elfrw_err *put_collapsed(struct icf_profile *p)
{
	const struct icf_prof_stack *s = p->stack;
	for (size_t i = 0; i < s->stack.len; i++) {
		const struct icf_prof_counted *c = &s->stack.data[i];
		for (uint32_t k = c->n; k-- > 0;) {
			put_name(p->in->out, s->level.data[s->item.data[c->at + k]].name);
			fputc(k ? ';' : ' ', p->in->out);
		}
		fprintf(p->in->out, "%" PRIu64 "\n", c->count);
	}
	return NULL;
}

struct elfrw_err *icf_prof_stack_put(struct icf_profile *p)
{
	if (!p->stack->stack.len && !p->counts.undecided)
		return elfrw_error("the samples have neither places nor call chains, "
				   "which this form is made of");
	return p->in->to == ICF_PROFILE_COLLAPSED ? put_collapsed(p) : icf_prof_put_pprof(p);
}
