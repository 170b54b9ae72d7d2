/* artificial.c: the unit that only OUT has: its DIEs, and its line table. */
#include "dwarf/calls/vtables.h"
#include "elfrw/base/sort.h"
#include "icf/verify/debug/debug.h"
#include "icf/verify/lines/lines.h"
#include <ctype.h>
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Does some unit of IN have the language?  If none has a language (assemblers' debug information),
 * it is C++. */
static bool has_language(Dwarf *dw, int language)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	bool any = false;
	while (dwarf_get_units(dw, cu, &cu, NULL, NULL, &die, NULL) == 0) {
		int have = dwarf_srclang(&die);
		if (have == language)
			return true;
		any |= have != -1;
	}
	return !any && language == DW_LANG_C_plus_plus;
}

static int known_attribute(Dwarf_Attribute *attr, void *arg)
{
	bool *known = arg;
	switch (dwarf_whatattr(attr)) {
	case DW_AT_producer:
	case DW_AT_language:
	case DW_AT_name:
	case DW_AT_comp_dir:
	case DW_AT_stmt_list:
	case DW_AT_low_pc:
	case DW_AT_high_pc: return DWARF_CB_OK;
	default: *known = false; return DWARF_CB_ABORT;
	}
}

#define TAG_VTABLE 0x4fc1 /* as icfold-format(5) has it */

/* Does the mangled name contain the class's own name, with its length before it? */
static bool names_class(const char *mangled, const char *name)
{
	char text[300];
	size_t n = name ? strcspn(name, "<") : 0;
	/* Nameless, or with a special abbreviation in the mangling. */
	if (!n || n > 200 || strncmp(name, "basic_", 6) == 0 || strcmp(name, "allocator") == 0)
		return true;
	snprintf(text, sizeof text, "%zu%.*s", n, (int)n, name);
	return strstr(mangled, text) != NULL;
}

/* Checks DIE, the entry of a vtable: its place and its class. */
static void check_vtable(struct icf_vdebug *d, Dwarf_Die *die, const struct dwr_vtables *vt)
{
	Dwarf_Die type;
	Dwarf_Attribute attr;
	Dwarf_Op *op;
	size_t n;
	bool ok = dwarf_tag(die) == TAG_VTABLE && !dwarf_haschildren(die) &&
		  dwarf_formref_die(dwarf_attr(die, DW_AT_type, &attr), &type) &&
		  !dwarf_getlocation(dwarf_attr(die, DW_AT_location, &attr), &op, &n) && n == 1 &&
		  op->atom == DW_OP_addr;
	int tag = ok ? dwarf_tag(&type) : 0;
	const struct dwr_vtable *t = NULL;
	for (size_t i = 0; ok && i < vt->table.len && !t; i++)
		if (icf_v_data(&d->v->claim, vt->table.data[i].object) == op->number)
			t = &vt->table.data[i];
	if (!ok || !t || (tag != DW_TAG_class_type && tag != DW_TAG_structure_type) ||
	    !names_class(t->name, dwarf_diename(&type)))
		icf_vlog_bad(
			d->log, ICF_VC_DIE,
			"vtable: DIE 0x%llx: expected one of a vtable and its class, found another",
			ICF_VX(dwarf_dieoffset(die)));
}

static int only_declaration(Dwarf_Attribute *attr, void *arg)
{
	bool *known = arg, flag;
	*known = *known && dwarf_whatattr(attr) == DW_AT_declaration &&
		 dwarf_formflag(attr, &flag) == 0 && flag;
	return *known ? DWARF_CB_OK : DWARF_CB_ABORT;
}

/* Checks DIE, which stands in for a function in the call tables: it says nothing.  STANDS: the
 * offsets of all such DIEs, sorted. */
static void check_stand_in(struct icf_vdebug *d, Dwarf_Die *die, const struct icf_ventries *stands)
{
	bool known = dwarf_hasattr(die, DW_AT_declaration) && !dwarf_haschildren(die);
	uint64_t off = (uint64_t)dwarf_dieoffset(die);
	dwarf_getattrs(die, only_declaration, &known, 0);
	if (!known || !stands->v.len ||
	    !bsearch(&off, stands->v.data, stands->v.len, sizeof off, elfrw_u64_order))
		icf_vlog_bad(
			d->log, ICF_VC_DIE,
			"artificial unit: DIE 0x%llx: expected one that stands for a function and says nothing else, found another",
			ICF_VX(off));
}

/* Collects the DIEs that stand in for functions: by the note, for those without a DIE of their
 * own. */
static struct elfrw_err *find_stand_ins(struct icf_vdebug *d, struct icf_ventries *ret)
{
	const struct dwr_icfold *n = &d->v->claim.note;
	for (size_t i = 0; i < n->n_members; i++) {
		const uint64_t off = n->member[i].stand_in;
		if (off && n->member[i].n_dies) {
			icf_vlog_bad(
				d->log, ICF_VC_NOTE,
				"DIEs: 0x%llx: expected to stand for a function without a DIE, found one with",
				ICF_VX(off));
		} else if (off) {
			uint64_t *slot = VEC_PUSH(&ret->v);
			if (!slot)
				return &elfrw_err_nomem;
			*slot = off;
		}
	}
	if (ret->v.len)
		qsort(ret->v.data, ret->v.len, sizeof *ret->v.data, elfrw_u64_order);
	return NULL;
}

/* Checks the unit's entries: for vtables, and for functions. */
static struct elfrw_err *check_children(struct icf_vdebug *d, Dwarf_Die *unit)
{
	Dwarf_Die die;
	struct dwr_vtables vt = { 0 };
	struct icf_ventries stands = { 0 };
	size_t n = 0, different = 0;
	struct elfrw_err *err = find_stand_ins(d, &stands);
	bool any = !err && dwarf_child(unit, &die) == 0;
	if (any)
		err = icf_v_named(d->v->claim.in.path,
				  dwr_vtables_read(&d->v->claim.in, &d->v->claim.in, &vt));
	while (any && !err) {
		d->log->checked[ICF_VC_DIE]++;
		if (dwarf_tag(&die) == DW_TAG_subprogram) {
			check_stand_in(d, &die, &stands);
			n++;
		} else
			check_vtable(d, &die, &vt);
		any = dwarf_siblingof(&die, &die) == 0;
	}
	for (size_t i = 0; i < stands.v.len; i++)
		different += !i || stands.v.data[i - 1] != stands.v.data[i];
	if (!err && (n != different || different != stands.v.len))
		icf_vlog_bad(
			d->log, ICF_VC_DIE,
			"artificial unit: expected a DIE for each of %zu functions without one, found %zu for %zu",
			stands.v.len, n, different);
	dwr_vtables_deinit(&vt);
	VEC_FREE(&stands.v);
	return err;
}

/* "icfold" and a version, as --version prints it. */
static bool is_producer(const char *s)
{
	if (!s || strncmp(s, "icfold ", 7) != 0)
		return false;
	for (s += 7; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("+-.:~_ ()", *s))
			return false;
	return true;
}

/* The unit has no code of its own: a byte that is never executed, or no address. */
static bool is_one_byte(Dwarf_Die *die)
{
	Dwarf_Addr from = 0, to = 0;
	bool any = dwarf_hasattr(die, DW_AT_low_pc);
	if (any != (dwarf_hasattr(die, DW_AT_high_pc) != 0))
		return false;
	return !any ||
	       (dwarf_lowpc(die, &from) == 0 && dwarf_highpc(die, &to) == 0 && to - from == 1);
}

struct elfrw_err *icf_vd_artificial_unit(struct icf_vdebug *d)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	uint64_t unit = d->v->claim.has_note ? d->v->claim.note.artificial_unit : UINT64_MAX;
	bool found = false;
	while (unit != UINT64_MAX && !found &&
	       dwarf_get_units(d->out.dw, cu, &cu, NULL, NULL, &die, NULL) == 0)
		found = (uint64_t)dwarf_dieoffset(&die) - dwarf_cuoffset(&die) == unit &&
			dwarf_diename(&die) && strcmp(dwarf_diename(&die), ICF_VD_ARTIFICIAL) == 0;
	if (!found)
		return NULL; /* reported before */
	Dwarf_Attribute attr;
	const char *producer = dwarf_formstring(dwarf_attr(&die, DW_AT_producer, &attr));
	int language = dwarf_srclang(&die);
	bool known = true;
	dwarf_getattrs(&die, known_attribute, &known, 0);
	d->log->checked[ICF_VC_DIE]++;
	if (!known || !is_producer(producer) || dwarf_tag(&die) != DW_TAG_compile_unit ||
	    !is_one_byte(&die) || (language != -1 && !has_language(d->in.dw, language)))
		icf_vlog_bad(
			d->log, ICF_VC_DIE,
			"artificial unit: expected this program's, in a language of the input, found another");
	ELFRW_TRY(check_children(d, &die));
	return icf_vd_own_table(d, &die);
}
