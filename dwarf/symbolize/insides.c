/* insides.c: the lines and inlined copies of one piece of code; see pieces.h.
 *
 * Tables for look-ups say which copy an address is in.  Going through such a table from start to
 * end shows where each copy begins and ends: those around an address stay while the code goes on in
 * them. */
#include "dwarf/symbolize/pieces.h"
#include "dwarf/symbolize/state.h"
#include "elfrw/base/search.h"

/* A hostile file can nest its copies so that their ranges are the square of its size. */
#define MAX_RANGES 1000000

/* A range of a node. */
struct part {
	uint32_t node, order;
	uint64_t lo, hi;
};

struct parts {
	struct part *data; /* owned */
	size_t len, cap;
};

static int by_node(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Adds [LO, HI) to NODE and to all around it.  LAST: by node, 1 + the index of its newest part. */
static struct elfrw_err *add_parts(const struct dwr_sym_body *body, uint32_t node, uint64_t lo,
				   uint64_t hi, uint32_t *last, struct parts *parts)
{
	for (; node && parts->len <= MAX_RANGES; node = body->node.data[node].parent) {
		struct part *p = last[node] ? &parts->data[last[node] - 1] : NULL;
		if (p && p->hi == lo) {
			p->hi = hi;
			continue;
		}
		if (!(p = VEC_PUSH(parts)))
			return &elfrw_err_nomem;
		*p = (struct part){ node, (uint32_t)parts->len, lo, hi };
		last[node] = (uint32_t)parts->len;
	}
	return NULL;
}

static struct elfrw_err *find_parts(const struct dwr_sym_body *body, uint64_t lo, uint64_t hi,
				    struct parts *parts)
{
	const struct dwr_spans *s = &body->spans;
	uint32_t *last = calloc(body->node.len + 1, sizeof *last);
	struct elfrw_err *err = last ? NULL : &elfrw_err_nomem;
	for (size_t i = LOWER_BOUND(0, s->len, mid, s->data[mid].hi <= lo);
	     i < s->len && s->data[i].lo < hi && !err && parts->len <= MAX_RANGES; i++)
		err = add_parts(body, (uint32_t)s->data[i].id,
				s->data[i].lo > lo ? s->data[i].lo : lo,
				s->data[i].hi < hi ? s->data[i].hi : hi, last, parts);
	free(last);
	if (parts->len)
		qsort(parts->data, parts->len, sizeof *parts->data, by_node);
	return err;
}

static void name_copy(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
		      struct dwr_sym_copy *copy)
{
	struct dwr_sym_die die;
	struct dwr_sym_decl decl;
	if (!dwr_sym_die_read(sym, unit, copy->die, &die))
		return;
	dwr_sym_die_decl(sym, &die, &decl);
	copy->linkage = decl.linkage ? decl.linkage : decl.name;
	copy->function = copy->linkage ? dwr_sym_demangle(sym, copy->linkage) : NULL;
	copy->start_file = decl.file;
	copy->start_line = decl.line;
	copy->call_file = dwr_sym_file_name(sym, unit, die.call_file.u);
	copy->call_line = copy->call_file ? (uint32_t)die.call_line.u : 0;
	copy->call_column = copy->call_file ? (uint32_t)die.call_column.u : 0;
}

/* Makes copies of PARTS.  INDEX: by node, 1 + the index of its copy. */
static struct elfrw_err *make_copies(const struct dwr_sym_body *body, const struct parts *parts,
				     uint32_t *index, struct dwr_sym_insides *ret)
{
	for (size_t i = 0; i < parts->len; i++) {
		const struct part *p = &parts->data[i];
		struct dwr_sym_code *code = VEC_PUSH(&ret->range);
		if (!code)
			return &elfrw_err_nomem;
		*code = (struct dwr_sym_code){ p->lo, p->hi };
		if (i && parts->data[i - 1].node == p->node) {
			ret->copy.data[ret->copy.len - 1].n++;
			continue;
		}
		struct dwr_sym_copy *c = VEC_PUSH(&ret->copy);
		if (!c)
			return &elfrw_err_nomem;
		uint32_t around = body->node.data[p->node].parent;
		*c = (struct dwr_sym_copy){ .die = body->node.data[p->node].die,
					    .parent = UINT32_MAX,
					    .range = (uint32_t)i,
					    .n = 1 };
		if (around) { /* it has the code of those inside: its index is known */
			c->parent = index[around] - 1;
			c->depth = ret->copy.data[c->parent].depth + 1;
		}
		index[p->node] = (uint32_t)ret->copy.len;
	}
	return NULL;
}

static struct elfrw_err *read_copies(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
				     uint64_t die, uint32_t member,
				     const struct dwr_sym_piece *piece, struct dwr_sym_insides *ret)
{
	const struct dwr_sym_body *body;
	struct parts parts = { 0 };
	ELFRW_TRY(dwr_sym_body_of(sym, unit, die, member, &body));
	if (!body->flat || !body->node.len)
		return NULL;
	uint32_t *index = calloc(body->node.len, sizeof *index);
	struct elfrw_err *err =
		index ? find_parts(body, piece->lo, piece->hi, &parts) : &elfrw_err_nomem;
	ret->crowded = parts.len > MAX_RANGES;
	if (!err && !ret->crowded)
		err = make_copies(body, &parts, index, ret);
	free(index);
	VEC_FREE(&parts);
	for (size_t i = 0; i < ret->copy.len && !err; i++)
		name_copy(sym, unit, &ret->copy.data[i]);
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct dwr_sym_run *x = a, *y = b;
	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* Turns RUNS into rows, with the names of files.  Those that overlap others are cut. */
static struct elfrw_err *add_rows(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
				  struct dwr_sym_runs *runs, struct dwr_sym_insides *ret)
{
	uint64_t end = 0;
	bool sorted = true;
	for (size_t i = 1; i < runs->len && sorted; i++)
		sorted = runs->data[i - 1].lo <= runs->data[i].lo;
	if (!sorted)
		qsort(runs->data, runs->len, sizeof *runs->data, by_start);
	for (size_t i = 0; i < runs->len; i++) {
		const struct dwr_sym_run *r = &runs->data[i];
		uint64_t lo = r->lo > end ? r->lo : end;
		const char *file = dwr_sym_file_name(sym, unit, r->place.file);
		if (lo >= r->hi || !file)
			continue;
		end = r->hi;
		struct dwr_sym_row *row = VEC_PUSH(&ret->row);
		if (!row)
			return &elfrw_err_nomem;
		*row = (struct dwr_sym_row){
			lo, r->hi, file, r->place.line, r->place.column, r->place.discriminator
		};
	}
	return NULL;
}

/* The rows of UNIT's line table. */
static struct elfrw_err *unit_rows(struct dwr_sym *sym, struct dwr_sym_unit *unit,
				   const struct dwr_sym_piece *piece, struct dwr_sym_insides *ret)
{
	struct dwr_sym_runs runs = { 0 };
	ELFRW_TRY(dwr_sym_unit_lines(sym, unit));
	if (!unit->lines)
		return NULL;
	struct elfrw_err *err = dwr_lines_runs(unit->lines, piece->lo, piece->hi, &runs);
	if (!err)
		err = add_rows(sym, unit, &runs, ret);
	VEC_FREE(&runs);
	return err;
}

/* Those of a member that are among others in UNIT's line table. */
static struct elfrw_err *alias_rows(struct dwr_sym *sym, struct dwr_sym_unit *unit, uint32_t member,
				    const struct dwr_sym_piece *piece, struct dwr_sym_insides *ret)
{
	struct dwr_sym_runs runs = { 0 };
	struct elfrw_err *err = dwr_sym_alias_runs(sym, member, unit, piece->lo, piece->hi, &runs);
	if (!err)
		err = add_rows(sym, unit, &runs, ret);
	VEC_FREE(&runs);
	return err;
}

/* The rows of a member that has its own. */
static struct elfrw_err *own_rows(struct dwr_sym *sym, const struct dwr_note_rows *rows,
				  const struct dwr_sym_piece *piece, struct dwr_sym_insides *ret)
{
	struct dwr_sym_unit *unit;
	struct dwr_sym_runs runs = { 0 };
	if (sym->note.artificial_unit == UINT64_MAX)
		return NULL;
	ELFRW_TRY(dwr_sym_unit_at(sym, sym->debug, sym->note.artificial_unit, &unit));
	if (unit)
		ELFRW_TRY(dwr_sym_unit_lines(sym, unit));
	if (!unit || !unit->lines)
		return NULL;
	struct elfrw_err *err = dwr_lines_runs_in(unit->lines, rows->seq, rows->n_seqs, piece->lo,
						  piece->hi, &runs);
	if (!err)
		err = add_rows(sym, unit, &runs, ret);
	VEC_FREE(&runs);
	return err;
}

/* What dwr_sym_frames_for_member() says of a function whose code was folded. */
static struct elfrw_err *read_member(struct dwr_sym *sym, const struct dwr_sym_piece *piece,
				     struct dwr_sym_unit *kept, uint32_t member,
				     struct dwr_sym_insides *ret)
{
	const struct dwr_note_rows *rows = &sym->note.member[member].rows;
	struct dwr_sym_unit *unit = NULL;
	struct dwr_sym_inside in = { 0 };
	if (rows->status == DWR_NOTE_ROWS_SAME && kept)
		ELFRW_TRY(unit_rows(sym, kept, piece, ret));
	else if (rows->status == DWR_NOTE_ROWS_OWN)
		ELFRW_TRY(own_rows(sym, rows, piece, ret));
	ELFRW_TRY(dwr_sym_member_body(sym, member, piece->lo, &unit, &in));
	if (!in.body)
		return NULL;
	uint64_t die = in.body->die;
	if (sym->note.policy == DWR_FOLDED_ALIAS && !ret->row.len)
		ELFRW_TRY(alias_rows(sym, unit, member, piece, ret));
	return read_copies(sym, unit, die, member, piece, ret);
}

struct elfrw_err *dwr_sym_read_insides(struct dwr_sym *sym, const struct dwr_sym_piece *piece,
				       uint32_t member, struct dwr_sym_insides *ret)
{
	struct dwr_sym_unit *unit = NULL;
	const struct dwr_icfold *n = dwr_sym_note(sym);
	ret->row.len = ret->copy.len = ret->range.len = 0;
	ret->crowded = false;
	if (piece->unit != DWR_SYM_NO_DIE)
		ELFRW_TRY(dwr_sym_unit_at(sym, sym->debug, piece->unit, &unit));
	if (n && member < n->n_members &&
	    (n->map.unit[n->member[member].unit].flags & ELFRW_UNIT_FOLDED ||
	     n->policy == DWR_FOLDED_ALIAS))
		ELFRW_TRY(read_member(sym, piece, unit, member, ret));
	else if (unit) {
		ELFRW_TRY(unit_rows(sym, unit, piece, ret));
		if (piece->die != DWR_SYM_NO_DIE)
			ELFRW_TRY(read_copies(sym, unit, piece->die, UINT32_MAX, piece, ret));
	}
	return dwr_sym_complete(sym);
}

void dwr_sym_insides_deinit(struct dwr_sym_insides *insides)
{
	VEC_FREE(&insides->row);
	VEC_FREE(&insides->copy);
	VEC_FREE(&insides->range);
}
