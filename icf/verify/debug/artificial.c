/* artificial.c: the unit that only OUT has: its DIEs, and its line table. */
#include "dwarf/calls/vtables.h"
#include "icf/verify/debug/debug.h"
#include "icf/verify/lines/lines.h"
#include <ctype.h>
#include <dwarf.h>
#include <stdio.h>
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

/* Checks the unit's entries for vtables: the place and the class of each. */
static struct elfrw_err *check_vtables(struct icf_vdebug *d, Dwarf_Die *unit)
{
	Dwarf_Die die, type;
	Dwarf_Attribute attr;
	struct dwr_vtables vt;
	if (dwarf_child(unit, &die) != 0)
		return NULL;
	ELFRW_TRY(icf_v_named(d->v->claim.in.path,
			      dwr_vtables_read(&d->v->claim.in, &d->v->claim.in, &vt)));
	do {
		Dwarf_Op *op;
		size_t n;
		bool ok = dwarf_tag(&die) == TAG_VTABLE && !dwarf_haschildren(&die) &&
			  dwarf_formref_die(dwarf_attr(&die, DW_AT_type, &attr), &type) &&
			  !dwarf_getlocation(dwarf_attr(&die, DW_AT_location, &attr), &op, &n) &&
			  n == 1 && op->atom == DW_OP_addr;
		int tag = ok ? dwarf_tag(&type) : 0;
		const struct dwr_vtable *t = NULL;
		for (size_t i = 0; ok && i < vt.table.len && !t; i++)
			if (icf_v_data(&d->v->claim, vt.table.data[i].object) == op->number)
				t = &vt.table.data[i];
		d->log->checked[ICF_VC_DIE]++;
		if (!ok || !t || (tag != DW_TAG_class_type && tag != DW_TAG_structure_type) ||
		    !names_class(t->name, dwarf_diename(&type)))
			icf_vlog_bad(
				d->log, ICF_VC_DIE,
				"vtable: DIE 0x%llx: expected one of a vtable and its class, found another",
				ICF_VX(dwarf_dieoffset(&die)));
	} while (dwarf_siblingof(&die, &die) == 0);
	dwr_vtables_deinit(&vt);
	return NULL;
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
	ELFRW_TRY(check_vtables(d, &die));
	return icf_vd_own_table(d, &die);
}
