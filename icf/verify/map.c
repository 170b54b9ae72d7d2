/* map.c: the claim: which section is which, and where every unit of code is said to be.
 *
 * Nothing here is believed.  A unit that does not lie in the code of both files is reported and
 * left out; the checks prove the rest.  Look-ups use a table of 256-byte blocks and a short
 * scan. */
#include "elfrw/base/search.h"
#include "elfrw/symtab.h"
#include "icf/verify/state.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int exec_order(const void *a, const void *b)
{
	const struct icf_vexec *x = a, *y = b;
	return x->old < y->old ? -1 : x->old > y->old;
}

static bool is_exec(const struct elfrw_section *s)
{
	return (s->hdr.sh_flags & SHF_ALLOC) && (s->hdr.sh_flags & SHF_EXECINSTR) && s->data;
}

/* Finds which section of OUT is which of IN.  The sections of OUT must be those of IN in order,
 * some of them left out; then new ones. */
static void match_sections(struct icf_v *v)
{
	const struct elfrw_image *in = &v->claim.in, *out = &v->claim.out;
	uint32_t i = 1;
	for (uint32_t k = 1; k < out->n_sections; k++) {
		uint32_t j = i;
		while (j < in->n_sections &&
		       (strcmp(in->section[j].name, out->section[k].name) != 0 ||
			in->section[j].hdr.sh_type != out->section[k].hdr.sh_type))
			j++;
		if (j == in->n_sections)
			continue;
		v->claim.to_out[j] = k;
		v->claim.from_out[k] = j;
		i = j + 1;
	}
}

/* Code in a section of another name than .text, .text.X, .ltext or .ltext.X is there on purpose:
 * the program may copy the section, or ask what lies in it.  Not so the largest section, MOST. */
static bool is_apart(const struct elfrw_image *in, uint32_t i, uint64_t most)
{
	const char *name = in->section[i].name;
	size_t n = strncmp(name, ".text", 5) == 0 ? 5 : strncmp(name, ".ltext", 6) == 0 ? 6 : 0;
	if (name[0] != '.')
		return true;
	return in->section[i].hdr.sh_size != most && (!n || (name[n] && name[n] != '.'));
}

/* Adds the executable section I of IN, whose image in OUT is O (NULL: none). */
static bool add_exec(struct icf_v *v, uint32_t i, const struct elfrw_section *o)
{
	const struct elfrw_section *s = &v->claim.in.section[i];
	struct icf_vexec *e = VEC_PUSH(&v->claim.exec);
	if (!e)
		return false;
	*e = (struct icf_vexec){ .in = i,
				 .out = v->claim.to_out[i],
				 .old = s->hdr.sh_addr,
				 .old_end = s->hdr.sh_addr + s->hdr.sh_size,
				 .old_data = s->data,
				 .writable = elfrw_image_is_writable(&v->claim.in, s) };
	if (o && (o->data || !o->hdr.sh_size)) {
		e->new = o->hdr.sh_addr;
		e->new_end = o->hdr.sh_addr + (o->data ? o->hdr.sh_size : 0);
		e->new_data = o->data;
	} else
		v->incomplete = true;
	return true;
}

/* Widens the range of addresses of data that moved by those of the section S of IN. */
static void widen_moved(struct icf_v *v, const struct elfrw_section *s)
{
	if (v->claim.moved_lo == v->claim.moved_hi)
		v->claim.moved_lo = s->hdr.sh_addr;
	if (s->hdr.sh_addr < v->claim.moved_lo)
		v->claim.moved_lo = s->hdr.sh_addr;
	if (s->hdr.sh_addr + s->hdr.sh_size > v->claim.moved_hi)
		v->claim.moved_hi = s->hdr.sh_addr + s->hdr.sh_size;
}

/* Makes the table from a section of IN to its entry among the executable ones, which are in order
 * of address, and finds the range of their addresses. */
static struct elfrw_err *index_exec(struct icf_v *v)
{
	v->claim.exec_at = calloc(v->claim.in.n_sections, sizeof *v->claim.exec_at);
	if (!v->claim.exec_at)
		return &elfrw_err_nomem;
	for (uint32_t e = 0; e < v->claim.exec.len; e++)
		v->claim.exec_at[v->claim.exec.data[e].in] = e + 1;
	v->claim.lo = v->claim.exec.data[0].old;
	v->claim.hi = v->claim.exec.data[v->claim.exec.len - 1].old_end;
	if (v->claim.hi - v->claim.lo > UINT64_C(1) << 36)
		return elfrw_error("%s: code is spread over too many addresses", v->claim.in.path);
	return NULL;
}

struct elfrw_err *icf_v_sections(struct icf_v *v)
{
	const struct elfrw_image *in = &v->claim.in, *out = &v->claim.out;
	v->claim.to_out = calloc(in->n_sections, sizeof *v->claim.to_out);
	v->claim.from_out = calloc(out->n_sections, sizeof *v->claim.from_out);
	if (!v->claim.to_out || !v->claim.from_out)
		return &elfrw_err_nomem;
	match_sections(v);
	for (uint32_t i = 1; i < out->n_sections; i++) {
		const Elf64_Shdr *h = &out->section[i].hdr;
		v->claim.typed |= (h->sh_type == SHT_RELA || h->sh_type == SHT_REL) &&
				  !(h->sh_flags & SHF_ALLOC);
	}
	for (uint32_t i = 1; i < in->n_sections; i++) {
		const struct elfrw_section *s = &in->section[i];
		const struct elfrw_section *o =
			v->claim.to_out[i] ? &out->section[v->claim.to_out[i]] : NULL;
		v->incomplete |= (s->hdr.sh_flags & SHF_ALLOC) && s->hdr.sh_size && !o;
		if (is_exec(s)) {
			if (!add_exec(v, i, o))
				return &elfrw_err_nomem;
		} else if ((s->hdr.sh_flags & SHF_ALLOC) && s->hdr.sh_size && o &&
			   o->hdr.sh_addr != s->hdr.sh_addr)
			widen_moved(v, s);
	}
	if (!v->claim.exec.len)
		return elfrw_error("%s: has no executable section", in->path);
	uint64_t most = 0;
	for (size_t k = 0; k < v->claim.exec.len; k++) {
		uint64_t size = in->section[v->claim.exec.data[k].in].hdr.sh_size;
		most = size > most ? size : most;
	}
	for (size_t k = 0; k < v->claim.exec.len; k++)
		v->claim.exec.data[k].apart = is_apart(in, v->claim.exec.data[k].in, most);
	qsort(v->claim.exec.data, v->claim.exec.len, sizeof *v->claim.exec.data, exec_order);
	return index_exec(v);
}

static struct elfrw_err *claim_from_note(struct icf_v *v)
{
	const struct elfrw_addrmap *map = &v->claim.note.map;
	for (uint32_t i = 0; i < map->n_sections; i++) {
		const struct elfrw_addrmap_section *s = &map->section[i];
		const struct icf_vexec *e = i < v->claim.exec.len ? &v->claim.exec.data[i] : NULL;
		bool taken = e && elfrw_image_section_at(&v->claim.in, e->old_end) != 0;
		if (!e || s->shndx != e->in || s->end_taken != taken || s->old != e->old ||
		    s->old_end != e->old_end || s->new_start != e->new || s->new_end != e->new_end)
			icf_vlog_bad(
				&v->log, ICF_VC_CLAIM,
				"section: %s (0x%llx -> 0x%llx): expected 0x%llx to 0x%llx, found 0x%llx to 0x%llx",
				e ? v->claim.in.section[e->in].name : "more than there are",
				ICF_VX(s->old), ICF_VX(s->new_start), ICF_VX(e ? e->new : 0),
				ICF_VX(e ? e->new_end : 0), ICF_VX(s->new_start),
				ICF_VX(s->new_end));
	}
	if (!VEC_RESERVE(&v->claim.unit, map->n_units))
		return &elfrw_err_nomem;
	for (uint32_t i = 0; i < map->n_units; i++) {
		const struct elfrw_addrmap_unit *m = &map->unit[i];
		v->claim.unit.data[v->claim.unit.len++] = (struct icf_vunit){
			.old = m->old,
			.end = m->old_end,
			.body = m->body,
			.entry = m->entry,
			.kept = m->kept,
			.thunk = m->flags & ELFRW_UNIT_THUNK ? m->thunk_size : 0,
			.flags = (m->flags & ELFRW_UNIT_FOLDED ? ICF_V_FOLDED : 0) |
				 (m->flags & ELFRW_UNIT_PINNED ? ICF_V_PINNED : 0) |
				 (m->flags & ELFRW_UNIT_REMOVED ? ICF_V_REMOVED : 0),
		};
	}
	return NULL;
}

static bool in_new(const struct icf_vexec *e, uint64_t va, uint64_t size)
{
	return va >= e->new &&va <= e->new_end &&size <= e->new_end - va;
}

/* What unit U lacks in OUT, or NULL. */
static const char *misses_place(const struct icf_v *v, const struct icf_vunit *u)
{
	const struct icf_vexec *p = icf_v_out_exec(&v->claim, u->body),
			       *q = icf_v_out_exec(&v->claim, u->entry);
	bool body = p && in_new(p, u->body, u->end - u->old),
	     entry = q && in_new(q, u->entry, u->thunk);
	/* At the end of one, when it has no bytes. */
	for (size_t k = 0; k < v->claim.exec.len && !(body && entry); k++) {
		body |= in_new(&v->claim.exec.data[k], u->body, u->end - u->old);
		entry |= in_new(&v->claim.exec.data[k], u->entry, u->thunk);
	}
	if (!body)
		return "code in the output";
	return !entry || (!u->thunk && u->entry != u->body) ? "an entry in the output" : NULL;
}

/* Drops units that cannot be examined. */
static void check_units(struct icf_v *v)
{
	uint32_t e = 0;
	uint64_t end = 0;
	for (uint32_t i = 0; i < v->claim.unit.len; i++) {
		struct icf_vunit *u = &v->claim.unit.data[i];
		const char *what = NULL;
		v->log.checked[ICF_VC_CLAIM]++;
		while (e + 1 < v->claim.exec.len && u->old >= v->claim.exec.data[e].old_end)
			e++;
		struct icf_vexec *x = &v->claim.exec.data[e];
		u->exec = e;
		if (u->old < end || u->end < u->old || u->old < x->old || u->end > x->old_end)
			what = "a run of code of its own in the input";
		else if (u->flags & ICF_V_REMOVED)
			what = u->kept == i && !u->thunk && !u->body && !u->entry
				       ? NULL
				       : "no code for what was removed";
		else if (u->kept >= v->claim.unit.len ||
			 (u->kept != i) != ((u->flags & ICF_V_FOLDED) != 0) ||
			 ((u->flags & ICF_V_FOLDED) &&
			  (v->claim.unit.data[u->kept].flags & ICF_V_FOLDED)))
			what = "a kept function for it";
		else if ((u->flags & ICF_V_FOLDED) && u->body != v->claim.unit.data[u->kept].body)
			what = "the code of the function that it was folded into";
		else if (u->thunk && !(u->flags & ICF_V_FOLDED))
			what = "no thunk for a function that was not folded";
		else
			what = misses_place(v, u);
		if (what) {
			icf_vlog_bad(&v->log, ICF_VC_CLAIM,
				     "unit: 0x%llx to 0x%llx (-> 0x%llx): expected %s, found none",
				     ICF_VX(u->old), ICF_VX(u->end), ICF_VX(u->body), what);
			u->old = u->end = end;
			u->flags = 0;
			u->kept = i;
			u->thunk = 0;
			u->body = u->entry = x->new;
			continue;
		}
		end = u->end;
	}
	for (uint32_t i = 0, k = 0; k < v->claim.exec.len; k++) {
		struct icf_vexec *x = &v->claim.exec.data[k];
		x->unit = i;
		while (i < v->claim.unit.len && v->claim.unit.data[i].exec == k)
			i++;
		x->n_units = i - x->unit;
	}
}

static int new_order(const void *a, const void *b, void *arg)
{
	const struct icf_vunit *unit = arg, *x = &unit[*(const uint32_t *)a],
			       *y = &unit[*(const uint32_t *)b];
	if (x->body != y->body)
		return x->body < y->body ? -1 : 1;
	if (x->end - x->old != y->end - y->old)
		return x->end - x->old < y->end - y->old ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int thunk_order(const void *a, const void *b, void *arg)
{
	const struct icf_vunit *unit = arg, *x = &unit[*(const uint32_t *)a],
			       *y = &unit[*(const uint32_t *)b];
	if (x->entry != y->entry)
		return x->entry < y->entry ? -1 : 1;
	return x < y ? -1 : x > y;
}

struct elfrw_err *icf_v_index(struct icf_v *v)
{
	free(v->claim.by_new);
	free(v->claim.by_thunk);
	v->claim.n_new = v->claim.n_thunk = v->claim.n_removed = 0;
	v->claim.by_new = malloc((v->claim.unit.len + 1) * sizeof *v->claim.by_new);
	v->claim.by_thunk = malloc((v->claim.unit.len + 1) * sizeof *v->claim.by_thunk);
	if (!elfrw_blocks_make(&v->claim.blocks, v->claim.lo, v->claim.hi,
			       v->claim.unit.len ? &v->claim.unit.data->end : NULL,
			       sizeof *v->claim.unit.data, (uint32_t)v->claim.unit.len) ||
	    !v->claim.by_new || !v->claim.by_thunk)
		return &elfrw_err_nomem;
	for (uint32_t i = 0; i < v->claim.unit.len; i++) {
		if (v->claim.unit.data[i].thunk)
			v->claim.by_thunk[v->claim.n_thunk++] = i;
		v->claim.n_removed += icf_v_removed(&v->claim, i);
		if ((v->claim.unit.data[i].flags & ICF_V_FOLDED) && !icf_v_removed(&v->claim, i))
			v->claim.unit.data[v->claim.unit.data[i].kept].shared = true;
	}
	qsort_r(v->claim.by_thunk, v->claim.n_thunk, sizeof *v->claim.by_thunk, thunk_order,
		v->claim.unit.data);
	bool sorted = true;
	for (uint32_t i = 0; i < v->claim.unit.len; i++) {
		const struct icf_vunit *x = &v->claim.unit.data[i];
		if ((x->flags & ICF_V_FOLDED) || x->old == x->end)
			continue;
		sorted = sorted &&
			 (!v->claim.n_new ||
			  v->claim.unit.data[v->claim.by_new[v->claim.n_new - 1]].body < x->body);
		v->claim.by_new[v->claim.n_new++] = i;
	}
	if (!sorted)
		qsort_r(v->claim.by_new, v->claim.n_new, sizeof *v->claim.by_new, new_order,
			v->claim.unit.data);
	return NULL;
}

/* OUT's map refers to the first input, even if OUT was folded in several steps. */
static struct elfrw_err *refuse_folded(const struct icf_v *v)
{
	struct dwr_sections secs;
	struct dwr_icfold note = { 0 };
	bool folded = false;
	ELFRW_TRY(icf_v_named(v->claim.in.path, dwr_sections_init(&secs, &v->claim.in)));
	struct elfrw_err *err = dwr_sections_load(&secs, DWR_ICFOLD);
	if (!err && secs.sec[DWR_ICFOLD].size) {
		err = dwr_icfold_read(&note, secs.sec[DWR_ICFOLD].data, secs.sec[DWR_ICFOLD].size);
		for (uint32_t i = 0; !err && i < note.map.n_units && !folded; i++)
			folded = note.map.unit[i].body != note.map.unit[i].old ||
				 note.map.unit[i].entry != note.map.unit[i].old;
		dwr_icfold_deinit(&note);
	}
	dwr_sections_deinit(&secs);
	/* An unreadable section is compared, not used. */
	if (err && err != &elfrw_err_nomem) {
		elfrw_err_free(err);
		err = NULL;
	}
	return err ? err
	       : folded
		       ? elfrw_error(
				 "%s: was folded already: compare with the file that it was made from",
				 v->claim.in.path)
		       : NULL;
}

struct elfrw_err *icf_v_claim(struct icf_v *v)
{
	const struct dwr_section *s = &v->claim.note_secs.sec[DWR_ICFOLD];
	ELFRW_TRY(refuse_folded(v));
	struct elfrw_err *err = dwr_sections_init(&v->claim.note_secs, &v->claim.out);
	if (!err)
		err = dwr_sections_load(&v->claim.note_secs, DWR_ICFOLD);
	if (!err && s->size)
		err = dwr_icfold_read(&v->claim.note, s->data, s->size);
	if (err == &elfrw_err_nomem)
		return err;
	if (err) {
		icf_vlog_bad(&v->log, ICF_VC_CLAIM,
			     ".debug_icfold: expected a map of the fold, found: %s",
			     elfrw_err_text(err));
		elfrw_err_free(err);
	} else
		v->claim.has_note = s->size != 0;
	ELFRW_TRY(v->claim.has_note ? claim_from_note(v) : icf_v_claim_from_symbols(v));
	check_units(v);
	return icf_v_index(v);
}

uint32_t icf_v_find(const struct icf_vclaim *c, uint64_t va)
{
	if (va < c->lo || va >= c->hi)
		return ICF_V_NONE;
	for (uint32_t u = elfrw_blocks_from(&c->blocks, va); u < c->unit.len; u++) {
		const struct icf_vunit *x = &c->unit.data[u];
		if (va < x->end)
			return va >= x->old ? u : ICF_V_NONE;
	}
	return ICF_V_NONE;
}

uint32_t icf_v_find_after(const struct icf_vclaim *c, uint64_t va)
{
	if (va >= c->hi)
		return ICF_V_NONE;
	uint32_t u = va < c->lo ? 0 : elfrw_blocks_from(&c->blocks, va);
	while (u < c->unit.len && c->unit.data[u].end <= va)
		u++;
	return u < c->unit.len ? u : ICF_V_NONE;
}

uint32_t icf_v_find_end(const struct icf_vclaim *c, uint64_t va)
{
	return va ? icf_v_find(c, va - 1) : ICF_V_NONE;
}

uint32_t icf_v_find_new(const struct icf_vclaim *c, uint64_t va)
{
	size_t lo = LOWER_BOUND(0, c->n_new, mid, c->unit.data[c->by_new[mid]].body <= va);
	if (!lo)
		return ICF_V_NONE;
	const struct icf_vunit *u = &c->unit.data[c->by_new[lo - 1]];
	return va - u->body < u->end - u->old ? c->by_new[lo - 1] : ICF_V_NONE;
}

uint32_t icf_v_find_thunk(const struct icf_vclaim *c, uint64_t va)
{
	for (uint32_t lo = 0, hi = c->n_thunk; lo < hi;) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct icf_vunit *u = &c->unit.data[c->by_thunk[mid]];
		if (va - u->entry < u->thunk)
			return c->by_thunk[mid];
		if (u->entry < va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return ICF_V_NONE;
}

bool icf_v_in_exec(const struct icf_vclaim *c, uint64_t va)
{
	if (va < c->lo || va >= c->hi)
		return false;
	size_t i = LOWER_BOUND(0, c->exec.len, mid, c->exec.data[mid].old_end <= va);
	return i < c->exec.len && va >= c->exec.data[i].old;
}

bool icf_v_in_end(const struct icf_vclaim *c, uint64_t va)
{
	size_t i = LOWER_BOUND(0, c->exec.len, mid, c->exec.data[mid].old_end < va);
	return i < c->exec.len && c->exec.data[i].old_end == va;
}

bool icf_v_out_end(const struct icf_vclaim *c, uint64_t va)
{
	for (size_t i = 0; i < c->exec.len; i++)
		if (c->exec.data[i].new_end == va)
			return true;
	return false;
}

const struct icf_vexec *icf_v_exec_of(const struct icf_vclaim *c, uint32_t shndx)
{
	uint32_t i = shndx < c->in.n_sections ? c->exec_at[shndx] : 0;
	return i ? &c->exec.data[i - 1] : NULL;
}

const struct icf_vexec *icf_v_out_exec(const struct icf_vclaim *c, uint64_t va)
{
	return icf_v_exec_of(c, c->from_out[elfrw_image_section_at(&c->out, va)]);
}

bool icf_v_code(const struct icf_vclaim *c, uint64_t va, uint64_t *ret)
{
	uint32_t u = icf_v_find(c, va);
	*ret = va;
	if (u != ICF_V_NONE) {
		*ret = c->unit.data[u].body + (va - c->unit.data[u].old);
		return true;
	}
	size_t i = LOWER_BOUND(0, c->exec.len, mid, c->exec.data[mid].old_end < va);
	for (; i < c->exec.len && c->exec.data[i].old_end == va; i++)
		*ret = c->exec.data[i].new_end;
	return false;
}

bool icf_v_pointer(const struct icf_vclaim *c, uint64_t va, uint64_t *ret)
{
	uint32_t u = icf_v_find(c, va);
	if (u != ICF_V_NONE && c->unit.data[u].old == va) {
		*ret = c->unit.data[u].entry;
		return true;
	}
	return icf_v_code(c, va, ret);
}

bool icf_v_label(const struct icf_vclaim *c, uint64_t va, uint32_t owner, uint64_t *ret)
{
	/* Compilers let impossible cases lead to the end of their own function. */
	if (owner != ICF_V_NONE && va == c->unit.data[owner].end) {
		*ret = c->unit.data[owner].body + (va - c->unit.data[owner].old);
		return true;
	}
	if (icf_v_code(c, va, ret))
		return true;
	uint32_t u = icf_v_find_end(c, va);
	if (u == ICF_V_NONE)
		return false;
	*ret = c->unit.data[u].body + (va - c->unit.data[u].old);
	return true;
}

uint64_t icf_v_data(const struct icf_vclaim *c, uint64_t va)
{
	if (va < c->moved_lo || va >= c->moved_hi)
		return va;
	uint32_t s = elfrw_image_section_at(&c->in, va);
	if (!s || !c->to_out[s])
		return va;
	const Elf64_Shdr *a = &c->in.section[s].hdr, *b = &c->out.section[c->to_out[s]].hdr;
	return va - a->sh_addr + b->sh_addr;
}

const char *icf_v_where(const struct icf_vclaim *c, uint64_t va, char buf[200])
{
	const struct elfrw_section *s = c->in.symtab ? &c->in.section[c->in.symtab] : NULL;
	uint32_t u = icf_v_find(c, va);
	uint64_t start = u != ICF_V_NONE ? c->unit.data[u].old : va;
	const char *name = NULL;
	/* A scan: only for messages. */
	for (struct elfrw_symbols it = elfrw_symbols(s, 1); !name && elfrw_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		if (sym.st_value == start && sym.st_shndx != SHN_UNDEF &&
		    ELF64_ST_TYPE(sym.st_info) != STT_SECTION &&
		    ELF64_ST_TYPE(sym.st_info) != STT_TLS)
			name = elfrw_image_string(&c->in, s->hdr.sh_link, sym.st_name);
	}
	if (!name || !*name)
		snprintf(buf, 200, "0x%llx", ICF_VX(va));
	else if (va == start)
		snprintf(buf, 200, "%.150s", name);
	else
		snprintf(buf, 200, "%.150s+0x%llx", name, ICF_VX(va - start));
	return buf;
}
