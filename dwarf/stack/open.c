/* open.c: reads the tables that decide stacks (.debug_icfold, .debug_dcall, .debug_vcall) and sorts
 * them for look-ups; see callchain.h and state.h. */
#include "dwarf/calls/call_sites.h"
#include "dwarf/stack/callchain.h"
#include "dwarf/stack/state.h"
#include "elfrw/arch/machine.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include <string.h>

static int dcall_order(const void *a, const void *b)
{
	const struct dwr_dcall *x = a, *y = b;
	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	if (x->caller != y->caller)
		return x->caller < y->caller ? -1 : 1;
	return x->die < y->die ? -1 : x->die > y->die;
}

static int die_order(const void *a, const void *b)
{
	const struct die_member *x = a, *y = b;
	if (x->die != y->die)
		return x->die < y->die ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

size_t dwr_chain_first_die(const struct dwr_callchain *cc, uint64_t die)
{
	return LOWER_BOUND(0, cc->die.len, mid, cc->die.data[mid].die < die);
}

/* Decodes .debug_icfold, unless the caller has. */
static struct elfrw_err *read_note(struct dwr_callchain *cc)
{
	if (cc->note)
		return NULL;
	ELFRW_TRY(dwr_sections_load(&cc->secs, DWR_ICFOLD));
	const struct dwr_section *s = &cc->secs.sec[DWR_ICFOLD];
	if (!s->size)
		return NULL;
	ELFRW_TRY(dwr_icfold_read(&cc->own_note, s->data, s->size));
	cc->note = &cc->own_note;
	return NULL;
}

static struct elfrw_err *open_note(struct dwr_callchain *cc)
{
	ELFRW_TRY(read_note(cc));
	if (!cc->note)
		return NULL;
	const struct elfrw_addrmap *map = &cc->note->map;
	for (uint32_t u = 0; u < map->n_units; u++)
		if (map->unit[u].kept >= map->n_units || map->unit[u].old_end < map->unit[u].old)
			return elfrw_error_at(cc->secs.sec[DWR_ICFOLD].name, 0,
					      "broken address map");
	cc->seen = calloc((size_t)map->n_units + 1, sizeof *cc->seen);
	if (!cc->seen)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < cc->note->n_members; i++)
		for (uint32_t k = 0; k < cc->note->member[i].n_dies; k++) {
			struct die_member *d = VEC_PUSH(&cc->die);
			if (!d)
				return &elfrw_err_nomem;
			*d = (struct die_member){ cc->note->dies[cc->note->member[i].die + k].die,
						  cc->note->member[i].unit };
		}
	if (cc->die.len)
		qsort(cc->die.data, cc->die.len, sizeof *cc->die.data, die_order);
	return dwr_code_init(&cc->code, cc->img, cc->note);
}

struct nameless {
	const char *name;
	uint32_t member;
};

static int nameless_order(const void *a, const void *b)
{
	const struct nameless *x = a, *y = b;
	int c = strcmp(x->name, y->name);
	return c ? c : x->member < y->member ? -1 : x->member > y->member;
}

static struct elfrw_err *match_declared(struct dwr_callchain *cc, const uint64_t *die, size_t n,
					const struct nameless *v, size_t n_names)
{
	struct dwr_abbrev_table table = { 0 };
	struct elfrw_err *err = dwr_sections_load(&cc->secs, DWR_STR);
	if (!err)
		err = dwr_sections_load(&cc->secs, DWR_LINE_STR);
	if (!err)
		err = dwr_sections_load(&cc->secs, DWR_STR_OFFSETS);
	for (size_t i = 0; i < n && !err; i++) {
		struct dwr_die_chain chain;
		if (i && die[i] == die[i - 1])
			continue;
		err = dwr_die_chain(&cc->secs, &cc->units, &table, die[i], &chain);
		const char *name = chain.name;
		if (err || !name)
			continue;
		size_t lo = LOWER_BOUND(0, n_names, mid, strcmp(v[mid].name, name) < 0);
		bool one = lo < n_names && strcmp(v[lo].name, name) == 0 &&
			   (lo + 1 == n_names || strcmp(v[lo + 1].name, name));
		if (!one)
			continue;
		struct die_member *d = VEC_PUSH(&cc->die);
		if (!d)
			err = &elfrw_err_nomem;
		else
			*d = (struct die_member){ die[i], cc->note->member[v[lo].member].unit };
		cc->declared[v[lo].member] = die[i];
	}
	dwr_abbrev_deinit(&table);
	return err;
}

/* DIEs that only the tables know. */
static struct elfrw_err *open_stand_ins(struct dwr_callchain *cc)
{
	for (size_t i = 0; i < cc->note->n_members; i++) {
		const struct dwr_icfold_member *m = &cc->note->member[i];
		struct die_member *d = m->stand_in ? VEC_PUSH(&cc->die) : NULL;
		if (m->stand_in && !d)
			return &elfrw_err_nomem;
		if (d)
			*d = (struct die_member){ m->stand_in, m->unit };
		cc->declared[i] = m->stand_in;
	}
	if (cc->die.len)
		qsort(cc->die.data, cc->die.len, sizeof *cc->die.data, die_order);
	return NULL;
}

/* DIEs in the tables that belong to no member: declarations of members without a DIE, recognised by
 * name. */
static struct elfrw_err *open_declared(struct dwr_callchain *cc)
{
	VEC(uint64_t) odd = { 0 };
	VEC(struct nameless) v = { 0 };
	struct elfrw_err *err = NULL;
	cc->declared = calloc(cc->note->n_members + 1, sizeof *cc->declared);
	if (!cc->declared)
		return &elfrw_err_nomem;
	ELFRW_TRY(open_stand_ins(cc));
	for (size_t i = 0; i < 2 * cc->calls.dcall.len && !err; i++) {
		const struct dwr_dcall *c = &cc->calls.dcall.data[i / 2];
		uint64_t die = i & 1 ? c->caller : c->die, *slot;
		size_t lo = dwr_chain_first_die(cc, die);
		if (!die || (odd.len && odd.data[odd.len - 1] == die) ||
		    (lo < cc->die.len && cc->die.data[lo].die == die))
			continue;
		if (!(slot = VEC_PUSH(&odd)))
			err = &elfrw_err_nomem;
		else
			*slot = die;
	}
	for (size_t i = 0; i < cc->note->n_members && odd.len && !err; i++)
		for (uint32_t k = 0; k < cc->note->member[i].n_names &&
				     !cc->note->member[i].n_dies && !cc->declared[i] && !err;
		     k++) {
			struct nameless *n = VEC_PUSH(&v);
			if (!n)
				err = &elfrw_err_nomem;
			else
				*n = (struct nameless){
					cc->note->names[cc->note->member[i].name + k], (uint32_t)i
				};
		}
	if (v.len && !err) {
		qsort(v.data, v.len, sizeof *v.data, nameless_order);
		qsort(odd.data, odd.len, sizeof *odd.data, elfrw_u64_order);
		err = match_declared(cc, odd.data, odd.len, v.data, v.len);
	}
	VEC_FREE(&odd);
	VEC_FREE(&v);
	if (!err && cc->die.len)
		qsort(cc->die.data, cc->die.len, sizeof *cc->die.data, die_order);
	return err;
}

static struct elfrw_err *open_tables(struct dwr_callchain *cc)
{
	bool any = cc->secs.sec[DWR_DCALL].shndx || cc->secs.sec[DWR_VCALL].shndx;
	if (!any)
		return NULL;
	ELFRW_TRY(dwr_units_read(&cc->secs, &cc->units));
	ELFRW_TRY(dwr_calls_read(&cc->secs, &cc->units, &cc->calls));
	cc->has_dcall = cc->calls.dcall.len != 0;
	if (cc->calls.dcall.len)
		qsort(cc->calls.dcall.data, cc->calls.dcall.len, sizeof *cc->calls.dcall.data,
		      dcall_order);
	if (cc->calls.vcall.len)
		qsort(cc->calls.vcall.data, cc->calls.vcall.len, sizeof *cc->calls.vcall.data,
		      dwr_vcall_order);
	return cc->note && cc->has_dcall && cc->secs.sec[DWR_INFO].shndx ? open_declared(cc) : NULL;
}

struct elfrw_err *dwr_callchain_open(const struct elfrw_image *code,
				     const struct elfrw_image *debug, const struct dwr_icfold *note,
				     struct dwr_callchain **ret)
{
	if (!code->arch || (debug && !elfrw_same_arch(&debug->ehdr, &code->ehdr)))
		return elfrw_error(
			"tables for shared code: not of a machine that they are made for");
	struct dwr_callchain *cc = calloc(1, sizeof *cc);
	if (!cc)
		return &elfrw_err_nomem;
	cc->img = code;
	cc->debug = debug ? debug : code;
	cc->note = note;
	if (!cc->debug->arch) {
		cc->own = *debug;
		cc->own.arch = code->arch;
		cc->debug = &cc->own;
	}
	struct elfrw_err *err = dwr_sections_init(&cc->secs, cc->debug);
	if (!err)
		err = open_note(cc);
	if (!err)
		err = open_tables(cc);
	if (err)
		dwr_callchain_close(cc);
	else
		*ret = cc;
	return err;
}

void dwr_callchain_close(struct dwr_callchain *cc)
{
	if (!cc)
		return;
	dwr_code_deinit(&cc->code);
	dwr_calls_deinit(&cc->calls);
	dwr_units_deinit(&cc->units);
	if (cc->note == &cc->own_note)
		dwr_icfold_deinit(&cc->own_note);
	if (cc->has_vt)
		dwr_vtables_deinit(&cc->vt);
	dwr_sections_deinit(&cc->secs);
	VEC_FREE(&cc->die);
	VEC_FREE(&cc->slot);
	VEC_FREE(&cc->holder);
	VEC_FREE(&cc->roots);
	VEC_FREE(&cc->reached);
	dwr_memo_deinit(&cc->memo);
	VEC_FREE(&cc->level);
	VEC_FREE(&cc->level_member);
	VEC_FREE(&cc->level_unit);
	VEC_FREE(&cc->set);
	VEC_FREE(&cc->outer);
	free(cc->declared);
	free(cc->seen);
	free(cc);
}

const struct dwr_icfold *dwr_callchain_note(const struct dwr_callchain *cc)
{
	return cc->note;
}

const struct dwr_calls *dwr_callchain_calls(const struct dwr_callchain *cc)
{
	return &cc->calls;
}

uint32_t dwr_callchain_die_unit(const struct dwr_callchain *cc, uint64_t die, size_t k)
{
	size_t i = dwr_chain_first_die(cc, die);
	if (k >= cc->die.len - i || cc->die.data[i + k].die != die)
		return UINT32_MAX;
	return cc->die.data[i + k].unit;
}
