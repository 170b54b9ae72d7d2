/* debug.c: passes the address map, and names and vtable slots, which the map does not hold, to
 * dwarf/. */
#include "icf/apply/debug.h"
#include "dwarf/rewrite/rewrite.h"
#include "icf/cli/version.h"
#include <stdlib.h>
#include <string.h>

/* Of two symbols at one address, do symbolizers print B?  They print the larger one, then the one
 * further back in the table (dwr_sym_symbol_at), and read .dynsym only where there is no .symtab.
 */
static bool prints_second(const struct icf_symbol *a, const struct icf_symbol *b)
{
	const bool x = a->index & ICF_IN_DYNSYM, y = b->index & ICF_IN_DYNSYM;
	if (x != y)
		return x;
	return a->size != b->size ? a->size < b->size : a->index < b->index;
}

/* Collects the names of unit I, which shares its code, besides the primary one. */
static struct elfrw_err *collect_aliases(const struct icf_program *prog, uint32_t i,
					 struct icf_shared *x)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_symbol *shown = &prog->sym.data[u->sym];
	const size_t first = x->alias.len;
	for (uint32_t s = u->sym + 1;
	     s < u->sym_first + u->n_sym && prog->sym.data[s].value == u->start; s++) {
		const struct icf_symbol *sym = &prog->sym.data[s];
		if (sym->type != STT_FUNC && sym->type != STT_GNU_IFUNC)
			continue;
		if (prints_second(shown, sym))
			shown = sym;
		if (strcmp(sym->name, x->name[i]) == 0)
			continue;
		struct dwr_unit_alias *slot = VEC_PUSH(&x->alias);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = (struct dwr_unit_alias){ .unit = i, .name = sym->name };
	}
	for (size_t k = first; k < x->alias.len; k++)
		if (x->alias.data[k].name == shown->name) {
			x->alias.data[k].shown = true;
			break;
		}
	return NULL;
}

/* Collects the primary name of every unit that shares its code, and the other names at its first
 * byte. */
static struct elfrw_err *collect_names(const struct icf_apply *a, struct icf_shared *x)
{
	const struct icf_program *prog = a->prog;
	x->name = calloc(prog->unit.len + 1, sizeof *x->name);
	if (!x->name)
		return &elfrw_err_nomem;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		if (u->sym == ICF_NONE)
			continue;
		x->name[i] = prog->sym.data[u->sym].name;
		if (a->plan->map.unit[i].flags & (ELFRW_UNIT_FOLDED | ELFRW_UNIT_KEPT))
			ELFRW_TRY(collect_aliases(prog, i, x));
	}
	return NULL;
}

/* Collects vtable slots whose function was folded.  After folding they hold the kept copy's address
 * and no longer show which function it was. */
static struct elfrw_err *collect_slots(const struct icf_apply *a, struct icf_shared *x)
{
	for (size_t i = 0; i < a->prog->dataref.len; i++) {
		const struct icf_dataref *d = &a->prog->dataref.data[i];
		if (!d->quiet || d->unit == ICF_NONE ||
		    d->target != a->prog->unit.data[d->unit].start ||
		    !(a->plan->map.unit[d->unit].flags & (ELFRW_UNIT_FOLDED | ELFRW_UNIT_KEPT)) ||
		    icf_is_removed(a, d->unit))
			continue;
		if (x->vslot.len && x->vslot.data[x->vslot.len - 1].slot == d->place)
			continue;
		struct dwr_vslot *slot = VEC_PUSH(&x->vslot);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = (struct dwr_vslot){ d->place, d->unit };
	}
	return NULL;
}

struct elfrw_err *icf_apply_debug(struct icf_apply *a)
{
	if (a->opt->strip_all)
		return NULL;
	struct icf_shared *x = &a->shared;
	ELFRW_TRY(collect_names(a, x));
	ELFRW_TRY(collect_slots(a, x));
	const struct dwr_rewrite_in in = {
		.image = a->prog->img,
		.map = &a->plan->map,
		.policy = (enum dwr_policy)a->opt->debug_folded,
		.threads = a->opt->threads,
		.unit_name = x->name,
		.alias = x->alias.data,
		.n_aliases = x->alias.len,
		.vslot = x->vslot.data,
		.n_vslots = x->vslot.len,
		.producer = "icfold " ICF_VERSION,
		.note_only = a->opt->strip_debug,
		.vtables = a->opt->emit_vtables,
		.room = a->room,
		.calls = a->query.scanned ? &a->query.wanted : NULL,
	};
	return dwr_rewrite(&in, &a->rewritten);
}

static struct elfrw_err *take_sections(struct icf_apply *a)
{
	for (uint32_t i = 0; i < a->rewritten.n_sections; i++) {
		struct dwr_section_out *s = &a->rewritten.section[i];
		uint8_t *data = s->data;
		s->data = NULL;
		if (strcmp(s->name, ".debug_icfold") == 0) {
			a->note_size = s->size;
			a->shared.noted = true;
		}
		if (s->shndx == 0) {
			ELFRW_TRY(elfrw_output_add(a->out, s->name, data, s->size, s->sh_flags,
						   s->sh_addralign));
			continue;
		}
		elfrw_output_replace(a->out, s->shndx, data, s->size);
		a->out->sec[s->shndx].flags = s->sh_flags;
		a->out->sec[s->shndx].align = s->sh_addralign;
	}
	return NULL;
}

struct elfrw_err *icf_take_debug(struct icf_apply *a)
{
	struct dwr_rewrite_out *new = &a->rewritten;
	a->no_room |= new->crowded;
	if (a->no_room)
		return NULL;
	a->n_vtables = new->stats.vtables;
	a->n_vtables_left_out = new->stats.vtables_left_out;
	a->shared.die = new->die;
	a->shared.n_dies = new->n_dies;
	new->die = NULL;
	a->query.answered = new->searched;
	a->query.answer = new->found;
	new->found = (struct dwr_call_found){ 0 };
	return take_sections(a);
}

void icf_shared_deinit(struct icf_shared *x)
{
	free(x->name);
	free(x->die);
	VEC_FREE(&x->alias);
	VEC_FREE(&x->vslot);
	*x = (struct icf_shared){ 0 };
}
