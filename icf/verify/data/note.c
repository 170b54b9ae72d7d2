/* note.c: notes, other sections that are not loaded, and the contents of .debug_icfold except the
 * map. */
#include "icf/verify/state.h"
#include "elfrw/arch/symbol.h"
#include "elfrw/base/search.h"
#include "elfrw/symtab.h"
#include "elfrw/note.h"
#include <stdlib.h>
#include <string.h>

/* A field of a section that holds a code address. */
struct field {
	uint64_t off;
	uint8_t size;
	bool loaded; /* a word of data, which data.c checks */
};

struct fields {
	VEC(struct field) v; /* sorted */
};

static int field_order(const void *a, const void *b)
{
	const struct field *x = a, *y = b;
	return x->off < y->off ? -1 : x->off > y->off;
}

static struct elfrw_err *push_field(struct fields *f, uint64_t off, uint8_t size, bool loaded)
{
	struct field *slot = VEC_PUSH(&f->v);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = (struct field){ off, size, loaded };
	return NULL;
}

/* Finds fields that a kept relocation marks as addresses or, if A is loaded, that are words of
 * data. */
static struct elfrw_err *find_fields(const struct icf_v *v, uint32_t i,
				     const struct elfrw_section *a, struct fields *f)
{
	for (size_t k = icf_v_word_from(&v->words, a->hdr.sh_addr);
	     (a->hdr.sh_flags & SHF_ALLOC) && k < v->words.word.len &&
	     v->words.word.data[k].place - a->hdr.sh_addr < a->hdr.sh_size;
	     k++) {
		const struct icf_vword *w = &v->words.word.data[k];
		uint64_t off = w->place - a->hdr.sh_addr;
		if (w->size <= a->hdr.sh_size - off && (w->kind != ICF_VW_DYNAMIC || w->stored))
			ELFRW_TRY(push_field(f, off, w->size, true));
	}
	for (uint32_t k = 0;
	     !(a->hdr.sh_flags & SHF_ALLOC) && (k = elfrw_image_relocs_of(&v->claim.in, i, k));) {
		const struct elfrw_section *rel = &v->claim.in.section[k];
		for (uint64_t off = 0; off + sizeof(Elf64_Rela) <= rel->hdr.sh_size;
		     off += sizeof(Elf64_Rela)) {
			Elf64_Rela r;
			memcpy(&r, rel->data + off, sizeof r);
			struct elfrw_reloc_desc d =
				v->claim.arch->reloc((uint32_t)ELF64_R_TYPE(r.r_info));
			uint64_t at = r.r_offset - a->hdr.sh_addr;
			if (d.kind == ELFRW_RELOC_ABS && d.size == 8 && at <= a->hdr.sh_size &&
			    a->hdr.sh_size - at >= 8)
				ELFRW_TRY(push_field(f, at, 8, false));
		}
	}
	if (f->v.len)
		qsort(f->v.data, f->v.len, sizeof *f->v.data, field_order);
	return NULL;
}

static void check_field(struct icf_v *v, const struct elfrw_section *a,
			const struct elfrw_section *b, uint64_t off)
{
	uint64_t old = elfrw_get64(a->data + off), new = elfrw_get64(b->data + off), want, body,
		 mark;
	icf_v_pointer(&v->claim, old, &want);
	icf_v_code(&v->claim, old, &body);
	/* An end address may belong to the unit before it; padding that is gone has no place. */
	uint32_t prev = icf_v_find_end(&v->claim, old);
	mark = prev == ICF_V_NONE
		       ? want
		       : v->claim.unit.data[prev].body + (old - v->claim.unit.data[prev].old);
	bool gone = icf_v_in_exec(&v->claim, old) && icf_v_find(&v->claim, old) == ICF_V_NONE;
	if (new != want &&new != body &&new != mark &&
	    !(gone && (icf_v_out_exec(&v->claim, new) || new == old)))
		icf_vlog_bad(&v->log, ICF_VC_NOTE,
			     "word: %s+0x%llx (0x%llx): expected 0x%llx, found 0x%llx", a->name,
			     ICF_VX(off), ICF_VX(old), ICF_VX(want), ICF_VX(new));
}

/* Bytes [POS, STOP) of a section must be equal except for fields. */
static void check_range(struct icf_v *v, const struct elfrw_section *a,
			const struct elfrw_section *b, const struct fields *f, uint64_t pos,
			uint64_t stop)
{
	size_t k = LOWER_BOUND(0, f->v.len, mid, f->v.data[mid].off < pos);
	for (;; k++) {
		bool last = k >= f->v.len || f->v.data[k].off >= stop;
		uint64_t end = last ? stop : f->v.data[k].off;
		if (end > pos && memcmp(a->data + pos, b->data + pos, end - pos) != 0) {
			while (a->data[pos] == b->data[pos])
				pos++;
			icf_vlog_bad(&v->log, ICF_VC_NOTE,
				     "byte: %s+0x%llx: expected 0x%02x, found 0x%02x", a->name,
				     ICF_VX(pos), a->data[pos], b->data[pos]);
		}
		if (last)
			return;
		if (!f->v.data[k].loaded)
			check_field(v, a, b, end);
		if (end + f->v.data[k].size > pos)
			pos = end + f->v.data[k].size;
	}
}

/* Checks one note after the other (gABI, "Note Section", with the 4-byte alignment that all of
 * these have). */
static void check_notes(struct icf_v *v, const struct elfrw_section *a,
			const struct elfrw_section *b, const struct fields *f)
{
	struct elfrw_rbuf r = elfrw_rbuf(a->data, a->hdr.sh_size);
	uint64_t pos = 0;
	struct elfrw_note n;
	while (elfrw_note_next(&r, 4, &n)) {
		v->log.checked[ICF_VC_NOTE]++;
		bool id = elfrw_note_is(&n, "GNU", NT_GNU_BUILD_ID);
		bool probe = elfrw_note_is(&n, "stapsdt", 3) && n.size >= 24;
		if (!id && !probe)
			continue;
		/* The build-id differs; a probe's first word is its address. */
		check_range(v, a, b, f, pos, n.desc);
		pos = n.desc + (id ? n.size : 8);
		if (!probe)
			continue;
		uint64_t pc = elfrw_get64(a->data + n.desc), new = elfrw_get64(b->data + n.desc),
			 want;
		icf_v_code(&v->claim, pc, &want);
		if (new != want)
			icf_vlog_bad(
				&v->log, ICF_VC_NOTE,
				"probe: %s+0x%llx (0x%llx -> 0x%llx): expected 0x%llx, found 0x%llx",
				a->name, ICF_VX(n.desc), ICF_VX(pc), ICF_VX(want), ICF_VX(want),
				ICF_VX(new));
	}
	check_range(v, a, b, f, pos, a->hdr.sh_size);
}

/* Checks notes, and sections that are not loaded. */
static struct elfrw_err *check_contents(struct icf_v *v, uint32_t i, const struct elfrw_section *a,
					const struct elfrw_section *b)
{
	struct fields f = { 0 };
	v->log.checked[ICF_VC_NOTE]++;
	if (a->hdr.sh_size != b->hdr.sh_size || !a->data != !b->data) {
		icf_vlog_bad(&v->log, ICF_VC_NOTE, "section: %s: expected %llu bytes, found %llu",
			     a->name, ICF_VX(a->hdr.sh_size), ICF_VX(b->hdr.sh_size));
		return NULL;
	}
	struct elfrw_err *err = a->data ? find_fields(v, i, a, &f) : NULL;
	if (a->data && !err && a->hdr.sh_type == SHT_NOTE)
		check_notes(v, a, b, &f);
	else if (a->data && !err)
		check_range(v, a, b, &f, 0, a->hdr.sh_size);
	if (!err && !f.v.len && !(a->hdr.sh_flags & SHF_ALLOC))
		icf_v_check_stale(&v->claim, &v->log, a);
	VEC_FREE(&f.v);
	return err;
}

struct name {
	uint64_t value;
	const char *name;
};

static int name_order(const void *a, const void *b)
{
	const struct name *x = a, *y = b;
	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return strcmp(x->name, y->name);
}

struct names {
	VEC(struct name) v;
};

static struct elfrw_err *collect_names(const struct icf_v *v, struct names *ret)
{
	uint32_t shndx = v->claim.in.symtab ? v->claim.in.symtab : v->claim.in.dynsym;
	const struct elfrw_section *s = &v->claim.in.section[shndx];
	for (struct elfrw_symbols it = elfrw_symbols(shndx ? s : NULL, 1);
	     elfrw_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		unsigned type = ELF64_ST_TYPE(sym.st_info);
		if (sym.st_shndx == SHN_UNDEF ||
		    (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) ||
		    !icf_v_in_exec(&v->claim, sym.st_value))
			continue;
		const char *name = elfrw_image_string(&v->claim.in, s->hdr.sh_link, sym.st_name);
		if (name && elfrw_symbol_is_mapping(&v->claim.in.ehdr, type, name))
			continue;
		struct name *slot = name ? VEC_PUSH(&ret->v) : NULL;
		if (name && !slot)
			return &elfrw_err_nomem;
		if (name)
			*slot = (struct name){ sym.st_value, name };
	}
	if (ret->v.len)
		qsort(ret->v.data, ret->v.len, sizeof *ret->v.data, name_order);
	return NULL;
}

/* The names at 0 .. N - 1 of NAME must be symbols of the function at U; if it has symbols, there
 * must be one. */
static void check_names(struct icf_v *v, const struct names *names, const struct icf_vunit *u,
			const char *const *name, uint32_t n)
{
	char text[200];
	for (uint32_t k = 0; k < n; k++) {
		struct name key = { u->old, name[k] };
		if (!names->v.len ||
		    !bsearch(&key, names->v.data, names->v.len, sizeof key, name_order))
			icf_vlog_bad(
				&v->log, ICF_VC_NOTE,
				"name: of the function at 0x%llx: expected %s or another of its symbols, found %s",
				ICF_VX(u->old), icf_v_where(&v->claim, u->old, text), key.name);
	}
	size_t lo = LOWER_BOUND(0, names->v.len, mid, names->v.data[mid].value < u->old);
	if (!n && lo < names->v.len && names->v.data[lo].value == u->old)
		icf_vlog_bad(&v->log, ICF_VC_NOTE,
			     "name: of the function at 0x%llx: expected %s, found none",
			     ICF_VX(u->old), names->v.data[lo].name);
}

static void check_members(struct icf_v *v, const struct names *names)
{
	const struct dwr_icfold *n = &v->claim.note;
	char text[200];
	for (size_t i = 0; i < n->n_members; i++) {
		const struct dwr_icfold_member *m = &n->member[i];
		const struct icf_vunit *u = &v->claim.unit.data[m->unit];
		const struct dwr_icfold_group *g = &n->group[m->group];
		v->log.checked[ICF_VC_NOTE]++;
		if (i == g->member ? (u->flags & ICF_V_FOLDED) != 0
				   : u->kept != n->member[g->member].unit)
			icf_vlog_bad(
				&v->log, ICF_VC_NOTE,
				"member: %s: expected in the group of its kept copy, found in another",
				icf_v_where(&v->claim, u->old, text));
		check_names(v, names, u, n->names + m->name, m->n_names);
	}
	for (size_t i = 0; i < n->n_removed; i++) {
		const struct dwr_icfold_removed *x = &n->removed[i];
		v->log.checked[ICF_VC_NOTE]++;
		check_names(v, names, &v->claim.unit.data[x->unit], n->names + x->name, x->n_names);
	}
	for (uint32_t i = 0; i < n->map.n_units; i++)
		if ((v->claim.unit.data[i].flags & ICF_V_FOLDED) && !icf_v_removed(&v->claim, i) &&
		    n->unit_member[i] == UINT32_MAX)
			icf_vlog_bad(&v->log, ICF_VC_NOTE,
				     "group: %s (0x%llx): expected it in one, found it in none",
				     icf_v_where(&v->claim, v->claim.unit.data[i].old, text),
				     ICF_VX(v->claim.unit.data[i].old));
}

static void check_slots(struct icf_v *v)
{
	const struct dwr_icfold *n = &v->claim.note;
	char text[200];
	for (size_t i = 0; i < n->n_vslots; i++) {
		const struct dwr_vslot *s = &n->vslot[i];
		bool found = false;
		v->log.checked[ICF_VC_NOTE]++;
		for (size_t w = icf_v_word_from(&v->words, s->slot);
		     w < v->words.word.len && v->words.word.data[w].place == s->slot; w++)
			found |= v->words.word.data[w].target == v->claim.unit.data[s->unit].old;
		if (!found)
			icf_vlog_bad(&v->log, ICF_VC_NOTE,
				     "slot: 0x%llx: expected the function that it held, found %s",
				     ICF_VX(s->slot),
				     icf_v_where(&v->claim, v->claim.unit.data[s->unit].old, text));
	}
	/* Every slot of a folded or kept function must be there. */
	size_t k = 0;
	for (size_t w = 0; w < v->words.word.len; w++) {
		const struct icf_vword *x = &v->words.word.data[w];
		uint32_t u = x->quiet ? icf_v_find(&v->claim, x->target) : ICF_V_NONE;
		if (u == ICF_V_NONE || v->claim.unit.data[u].old != x->target ||
		    n->unit_member[u] == UINT32_MAX)
			continue;
		while (k < n->n_vslots && n->vslot[k].slot < x->place)
			k++;
		if (k == n->n_vslots || n->vslot[k].slot != x->place)
			icf_vlog_bad(&v->log, ICF_VC_NOTE,
				     "slot: 0x%llx of %s: expected in .debug_icfold, found none",
				     ICF_VX(x->place), icf_v_where(&v->claim, x->target, text));
	}
}

/* Parts of .debug_icfold (icfold-format(5)). */
enum { SECTIONS, MAP, GROUPS, SLOTS, OVERLAY, STRINGS, REMOVED, PARTS };
#define NOTE_HEADER 48 /* and 24 for each part */

static bool skip_ulebs(struct elfrw_rbuf *r, uint64_t n)
{
	while (n-- && elfrw_rbuf_ok(r))
		elfrw_rbuf_uleb(r);
	return elfrw_rbuf_ok(r);
}

static bool skip_member(struct elfrw_rbuf *r)
{
	if (!skip_ulebs(r, elfrw_rbuf_uleb(r)))
		return false;
	uint64_t dies = elfrw_rbuf_uleb(r);
	if (dies > elfrw_rbuf_left(r) || !skip_ulebs(r, 2 * dies))
		return false;
	return elfrw_rbuf_uleb(r) < 2 || skip_ulebs(r, 2);
}

/* Reads the columns of the map: gaps, sizes, flags, distances, thunks.  false: an undefined flag,
 * or flags that contradict the units. */
static bool skip_map(const struct icf_v *v, uint64_t n, struct elfrw_rbuf *r)
{
	uint64_t thunks = 0;
	if (n != v->claim.unit.len || n > elfrw_rbuf_left(r) || !skip_ulebs(r, 2 * n))
		return false;
	for (uint64_t i = 0; i < n; i++) {
		const struct icf_vunit *u = &v->claim.unit.data[i];
		unsigned flags = elfrw_rbuf_u8(r);
		thunks += (flags & 2) != 0;
		if ((flags & 16) && u->flags & ICF_V_REMOVED && flags == 17)
			continue;
		if (flags > 15 || (!(flags & 1) && (flags & 2)) || ((flags & 1) && (flags & 4)) ||
		    !(flags & 4) != !u->shared ||
		    ((flags & 8) && u->body != u->old && !(flags & 1)))
			return false;
	}
	return skip_ulebs(r, n + 2 * thunks);
}

/* Skips an entry of a part; false: it has undefined bits. */
static bool skip_entry(int part, struct elfrw_rbuf *r)
{
	uint64_t n;
	switch (part) {
	case SECTIONS: skip_ulebs(r, 5); return elfrw_rbuf_u8(r) < 2;
	case GROUPS:
		elfrw_rbuf_uleb(r);
		n = elfrw_rbuf_uleb(r);
		for (bool ok = skip_member(r); ok && n--; ok = skip_member(r))
			elfrw_rbuf_sleb(r);
		return true;
	case SLOTS: return skip_ulebs(r, 2);
	case REMOVED: return skip_ulebs(r, elfrw_rbuf_uleb(r));
	default:
		n = elfrw_rbuf_uleb(r) / 2;
		elfrw_rbuf_uleb(r);
		return n <= elfrw_rbuf_left(r) && skip_ulebs(r, 3 * n);
	}
}

/* The section must hold only what the reader reads: the parts are adjacent, and their entries fill
 * them. */
static void check_shape(struct icf_v *v)
{
	const struct dwr_icfold *note = &v->claim.note;
	struct elfrw_rbuf r = elfrw_rbuf(note->data, note->size);
	elfrw_rbuf_seek(&r, 8);
	/* Version 4 has the names of removed functions; without any, it is version 3. */
	const int parts = elfrw_rbuf_u16(&r) == 4 ? PARTS : REMOVED;
	const uint64_t header = NOTE_HEADER + 24 * (uint64_t)parts;
	uint64_t end = header;
	const char *what = elfrw_rbuf_u16(&r) != header ? "a header as long as its version says"
			   : (parts == PARTS) != (note->n_removed != 0)
				   ? "the version that its contents need"
				   : NULL;
	for (int part = SECTIONS; part < parts && !what; part++) {
		elfrw_rbuf_seek(&r, 48 + 24 * (uint64_t)part);
		uint64_t off = elfrw_rbuf_u64(&r), size = elfrw_rbuf_u64(&r),
			 n = elfrw_rbuf_u64(&r);
		v->log.checked[ICF_VC_NOTE]++;
		if (off != end || size > note->size - end)
			what = "each part behind the one before";
		end += size;
		if (what)
			break;
		struct elfrw_rbuf p = elfrw_rbuf(note->data + off, size);
		if (part == STRINGS) {
			if (n || (size && note->data[end - 1]))
				what = "strings that end";
			continue;
		}
		if (part == MAP ? !skip_map(v, n, &p) : n > size)
			what = "the columns of a map, or as many entries as there are";
		for (uint64_t i = 0; i < n && !what && part != MAP; i++)
			if (!skip_entry(part, &p))
				what = "entries without other bits";
		if (!what && (!elfrw_rbuf_ok(&p) || elfrw_rbuf_left(&p)))
			what = "parts that their entries fill";
	}
	if (!what && end != note->size)
		what = "nothing behind the parts";
	if (what)
		icf_vlog_bad(&v->log, ICF_VC_NOTE,
			     "section: .debug_icfold: expected %s, found something else", what);
}

static struct elfrw_err *check_own_note(struct icf_v *v)
{
	struct names names = { 0 };
	const struct elfrw_addrmap *map = &v->claim.note.map;
	check_shape(v);
	struct elfrw_err *err = collect_names(v, &names);
	if (!err) {
		check_members(v, &names);
		check_slots(v);
	}
	VEC_FREE(&names.v);
	if (map->trap_byte) {
		bool inside = icf_v_out_exec(&v->claim, map->trap_byte),
		     taken = icf_v_find_new(&v->claim, map->trap_byte) != ICF_V_NONE;
		v->log.checked[ICF_VC_NOTE]++;
		for (uint32_t i = 0; i < v->claim.unit.len; i++)
			taken |= v->claim.unit.data[i].thunk &&
				 map->trap_byte - v->claim.unit.data[i].entry <
					 v->claim.unit.data[i].thunk;
		if (!inside || taken)
			icf_vlog_bad(
				&v->log, ICF_VC_NOTE,
				"trap byte: 0x%llx: expected in the code and in no function, found elsewhere",
				ICF_VX(map->trap_byte));
	}
	uint64_t from = map->thunks, to = map->thunks;
	if (v->claim.n_thunk) {
		const struct icf_vunit *last =
			&v->claim.unit.data[v->claim.by_thunk[v->claim.n_thunk - 1]];
		from = v->claim.unit.data[v->claim.by_thunk[0]].entry;
		to = last->entry + last->thunk;
	}
	if (map->thunks != from || map->thunks_end != to)
		icf_vlog_bad(&v->log, ICF_VC_NOTE,
			     "thunks: expected from 0x%llx to 0x%llx, found 0x%llx to 0x%llx",
			     ICF_VX(from), ICF_VX(to), ICF_VX(map->thunks),
			     ICF_VX(map->thunks_end));
	return err;
}

struct elfrw_err *icf_v_check_note(struct icf_v *v)
{
	for (uint32_t i = 1; i < v->claim.in.n_sections; i++) {
		const struct elfrw_section *a = &v->claim.in.section[i];
		/* The link leads to another debug file. */
		if (!v->claim.to_out[i] || !a->data || strcmp(a->name, ".gnu_debuglink") == 0)
			continue;
		const struct elfrw_section *b = &v->claim.out.section[v->claim.to_out[i]];
		bool other = !(a->hdr.sh_flags & SHF_ALLOC) && a->hdr.sh_type != SHT_SYMTAB &&
			     a->hdr.sh_type != SHT_RELA && a->hdr.sh_type != SHT_REL &&
			     !icf_v_is_debug_name(a->name) && i != v->claim.in.shstrndx;
		if (icf_v_is_records(a))
			icf_v_check_records(&v->claim, &v->log, a, b);
		else if (other && strcmp(a->name, ".pseudo_probe") == 0)
			ELFRW_TRY(icf_v_check_pseudo(&v->claim, &v->log, a, b));
		else if (icf_v_has_probes(a) && other)
			icf_v_check_notes(v, a, b);
		else if (a->hdr.sh_type == SHT_NOTE || other)
			ELFRW_TRY(check_contents(v, i, a, b));
	}
	ELFRW_TRY(icf_v_check_probes(v));
	return v->claim.has_note ? check_own_note(v) : NULL;
}
