/* alias.c: the rows of functions that share their code, where the line table of their unit has a
 * sequence for each of them (policy alias).
 *
 * No table says whose such a sequence is.  If all of them agree, it does not matter.  Otherwise it
 * is that of the function that is declared at the line of its first row, or last before that: a
 * compiler gives the entry of a function the line of its name or of its opening brace.  This is
 * believed only if each function gets its sequence in this way, and never of cold parts, which
 * begin with any row, often one that reaches over from other code. */
#include "dwarf/symbolize/state.h"

#define MAX_MEMBERS 64 /* of one group in one unit; more are not told apart */

/* The member's last DIE in UNIT; DWR_SYM_NO_DIE: none. */
static uint64_t die_in(const struct dwr_icfold *n, const struct dwr_icfold_member *m,
		       const struct dwr_sym_unit *unit)
{
	const struct dwr_icfold_die *die = m->n_dies ? n->dies + m->die : NULL;
	for (uint32_t i = m->n_dies; i > 0; i--)
		if (die[i - 1].die >= unit->u.off && die[i - 1].die < unit->u.end)
			return die[i - 1].die;
	return DWR_SYM_NO_DIE;
}

/* How many functions of MEMBER's group are in UNIT. */
static uint32_t members_in(const struct dwr_icfold *n, uint32_t member,
			   const struct dwr_sym_unit *unit)
{
	const struct dwr_icfold_group *g = &n->group[n->member[member].group];
	uint32_t ret = 0;
	for (uint32_t i = 0; i < g->n_members && ret < MAX_MEMBERS; i++)
		ret += die_in(n, &n->member[g->member + i], unit) != DWR_SYM_NO_DIE;
	return ret;
}

/* A function of the group, and where it is declared. */
struct declared {
	struct dwr_sym_decl decl;
	uint32_t member;
};

/* Is DIE, at OFF of UNIT, of a function that begins at BODY?  It may be one whose cold part lies
 * there.  The range of the entry comes first. */
static bool begins_at(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
		      const struct dwr_sym_die *die, uint64_t body)
{
	const struct dwr_sym_extent extent = { &die->low, &die->high, &die->ranges };
	struct dwr_spans spans = { 0 };
	struct elfrw_err *err = dwr_sym_ranges(sym, unit, &extent, 0, &spans);
	const bool ret = !err && spans.len && spans.data[0].lo == body;
	dwr_sym_forget(sym, err);
	VEC_FREE(&spans);
	return ret;
}

/* Fills RET with the functions of MEMBER's group in UNIT, and *N; false: one of them does not say
 * where it is declared, or begins elsewhere, or there are more than MAX_MEMBERS. */
static bool find_declared(struct dwr_sym *sym, uint32_t member, const struct dwr_sym_unit *unit,
			  struct declared ret[MAX_MEMBERS], uint32_t *n)
{
	const struct dwr_icfold *note = &sym->note;
	const struct dwr_icfold_group *g = &note->group[note->member[member].group];
	const uint64_t body = note->map.unit[note->member[member].unit].body;
	*n = 0;
	for (uint32_t i = 0; i < g->n_members; i++) {
		struct dwr_sym_die d;
		const uint64_t die = die_in(note, &note->member[g->member + i], unit);
		if (die == DWR_SYM_NO_DIE)
			continue;
		struct declared *slot = &ret[*n];
		if (*n == MAX_MEMBERS || !dwr_sym_die_read(sym, unit, die, &d) ||
		    !begins_at(sym, unit, &d, body))
			return false;
		dwr_sym_die_decl(sym, &d, &slot->decl);
		if (!slot->decl.file || !slot->decl.line)
			return false;
		slot->member = g->member + i;
		++*n;
	}
	return true;
}

static bool same_decl(const struct dwr_sym_decl *a, const struct dwr_sym_decl *b)
{
	return a->line == b->line && !strcmp(a->file, b->file);
}

/* Which of the N functions V has the row PLACE at its entry; NULL: none. */
static const struct declared *owner(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
				    const struct dwr_place *place, const struct declared *v,
				    uint32_t n)
{
	const struct declared *ret = NULL;
	const char *file = place->line ? dwr_sym_file_name(sym, unit, place->file) : NULL;
	for (uint32_t i = 0; i < n && file; i++)
		if (v[i].decl.line <= place->line && !strcmp(v[i].decl.file, file) &&
		    (!ret || v[i].decl.line > ret->decl.line))
			ret = &v[i];
	return ret;
}

/* Leaves in *S, the sequences at the entry of MEMBER, those of the functions that are declared
 * where it is; false: they are not known. */
static bool choose(struct dwr_sym *sym, uint32_t member, const struct dwr_sym_unit *unit,
		   struct dwr_lines_at *s)
{
	struct declared v[MAX_MEMBERS];
	const struct declared *of[DWR_LINES_AT], *own = NULL;
	uint32_t n;
	if (!find_declared(sym, member, unit, v, &n) || s->n < n)
		return false;
	for (uint32_t i = 0; i < s->n; i++)
		of[i] = owner(sym, unit, &s->first[i], v, n);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t functions = 0, sequences = 0;
		for (uint32_t i = 0; i < n; i++)
			functions += same_decl(&v[i].decl, &v[k].decl);
		for (uint32_t i = 0; i < s->n; i++)
			sequences += of[i] && same_decl(&of[i]->decl, &v[k].decl);
		if (functions != sequences)
			return false;
		own = v[k].member == member ? &v[k] : own;
	}
	uint32_t left = 0;
	for (uint32_t i = 0; i < s->n && own; i++)
		if (of[i] && same_decl(&of[i]->decl, &own->decl))
			s->seq[left++] = s->seq[i];
	s->n = left;
	return left;
}

static bool choose_at_entry(struct dwr_sym *sym, uint32_t member, struct dwr_sym_unit *unit,
			    struct dwr_lines_at *s)
{
	const uint64_t body = sym->note.map.unit[sym->note.member[member].unit].body;
	return dwr_lines_at(unit->lines, body, s) && choose(sym, member, unit, s);
}

struct elfrw_err *dwr_sym_alias_place(struct dwr_sym *sym, uint32_t member,
				      struct dwr_sym_unit *unit, uint64_t address,
				      struct dwr_place *ret, bool *found)
{
	struct dwr_lines_at s;
	uint32_t n;
	*found = false;
	ELFRW_TRY(dwr_sym_unit_lines(sym, unit));
	if (!unit->lines)
		return NULL;
	if (dwr_lines_find_sure(unit->lines, address, ret, &n))
		*found = n >= members_in(&sym->note, member, unit);
	else
		*found = choose_at_entry(sym, member, unit, &s) &&
			 dwr_lines_find_at(unit->lines, &s, address, ret);
	return NULL;
}

struct elfrw_err *dwr_sym_alias_runs(struct dwr_sym *sym, uint32_t member,
				     struct dwr_sym_unit *unit, uint64_t lo, uint64_t hi,
				     struct dwr_sym_runs *runs)
{
	struct dwr_lines_at s;
	ELFRW_TRY(dwr_sym_unit_lines(sym, unit));
	if (!unit->lines)
		return NULL;
	const size_t before = runs->len;
	if (choose_at_entry(sym, member, unit, &s))
		ELFRW_TRY(dwr_lines_runs_at(unit->lines, &s, lo, hi, runs));
	else
		ELFRW_TRY(dwr_lines_runs(unit->lines, lo, hi, runs));
	size_t n = before;
	for (size_t i = before; i < runs->len; i++) {
		struct dwr_sym_run *r = &runs->data[i];
		bool found;
		ELFRW_TRY(dwr_sym_alias_place(sym, member, unit, r->lo, &r->place, &found));
		if (found)
			runs->data[n++] = *r;
	}
	runs->len = n;
	return NULL;
}
