/* table.c: jump tables, found from the code that reads them and confirmed by the relocations of
 * their entries.
 *
 * A position-independent table holds distances from its own start.  Its relocations are
 * PC-relative, which gives a wrong target for all entries but the first.  So the table's start must
 * be known.  It is an address that code computes or uses as a displacement.  The table is the run
 * of relocated fields that follows without a gap, up to the next such address, the next symbol of
 * data or place that data points to, or the end of the section: what begins there counts from
 * elsewhere.  Its entries lead into the function that reads it or into its cold part.  If
 * no symbol distinguishes the cold part from another function, the jump through the table must be
 * found (infer/ask.c).  check.c checks the entries' targets and the fields that no table
 * explains.
 *
 * A table that only one function reads, and whose entries lead into units (the function or its cold
 * part), belongs to that function and is compared by meaning.  A shared table is plain data: it is
 * rewritten correctly, but prevents folding. */
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "elfrw/relocs.h"
#include "elfrw/symtab.h"
#include "icf/infer/parts.h"
#include "icf/refs/table/table.h"
#include "icf/program/unit.h"
#include <stdlib.h>
#include <string.h>

static int base_order(const void *a, const void *b)
{
	const struct icf_base *x = a, *y = b;
	if (x->va != y->va)
		return x->va < y->va ? -1 : 1;
	return x->owner < y->owner ? -1 : x->owner > y->owner;
}

/* Bit i: some field stands in the i-th 64 bytes from the first field.  This filter rejects most
 * data references at once. */
struct filter {
	uint64_t lo, hi;
	uint8_t *bits;
};

static bool may_have(const struct filter *f, uint64_t va)
{
	if (va < f->lo || va >= f->hi)
		return false;
	uint64_t i = (va - f->lo) >> 6;
	return f->bits[i >> 3] >> (i & 7) & 1;
}

/* There are fields.  F->bits is NULL if they are too far apart for a filter. */
static struct elfrw_err *make_filter(const struct icf_program *prog, struct filter *f)
{
	*f = (struct filter){ .lo = prog->dataref.data[0].place,
			      .hi = prog->dataref.data[prog->dataref.len - 1].place + 1 };
	uint64_t span = 0;
	/* Data sections are in the file, so its size bounds their span, except for gaps between
	 * segments. */
	for (uint32_t i = 1; i < prog->img->n_sections; i++)
		span += prog->img->section[i].hdr.sh_flags & SHF_ALLOC
				? prog->img->section[i].hdr.sh_size
				: 0;
	if (f->hi - f->lo > span + prog->img->size + (1u << 24))
		return NULL;
	f->bits = calloc(((f->hi - f->lo) >> 9) + 1, 1);
	if (!f->bits)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < prog->dataref.len; i++) {
		uint64_t k = (prog->dataref.data[i].place - f->lo) >> 6;
		f->bits[k >> 3] |= (uint8_t)(1u << (k & 7));
	}
	return NULL;
}

static bool has_field(const struct icf_program *prog, const struct filter *f, uint64_t va)
{
	return (!f->bits || may_have(f, va)) && icf_dataref_at(prog, va);
}

static struct elfrw_err *collect_bases(const struct icf_program *prog, const struct filter *f,
				       struct icf_bases *ret)
{
	struct elfrw_err *err = NULL;
	for (uint32_t i = 0; i < prog->unit.len && !err; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		struct icf_ref *ref = prog->chunk[u->chunk].ref.data + u->ref;
		for (uint32_t r = 0; r < u->n_ref; r++) {
			if (ref[r].unit != ICF_NONE || ref[r].kind == ICF_REF_BRANCH ||
			    !has_field(prog, f, ref[r].target))
				continue;
			struct icf_base *b = VEC_PUSH(&ret->v);
			if (!b) {
				err = &elfrw_err_nomem;
				break;
			}
			*b = (struct icf_base){ ref[r].target, &ref[r], i };
		}
	}
	return err;
}

/* Places of fields at which something begins that has a name or a pointer to it.  Compilers give
 * jump tables neither, so such a place ends the table before it. */
struct marks {
	VEC(uint64_t) v;
};

static struct elfrw_err *add_mark(const struct icf_program *prog, const struct filter *f,
				  uint64_t va, struct marks *ret)
{
	if (!has_field(prog, f, va))
		return NULL;
	uint64_t *slot = VEC_PUSH(&ret->v);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = va;
	return NULL;
}

static struct elfrw_err *mark_symbols(const struct icf_program *prog, const struct filter *f,
				      struct marks *ret)
{
	const struct elfrw_image *img = prog->img;
	for (struct elfrw_all_symbols it = { .img = img }; elfrw_all_symbols_next(&it);) {
		unsigned type = ELF64_ST_TYPE(it.sym.st_info);
		if ((type != STT_OBJECT && type != STT_NOTYPE) || it.sym.st_shndx == SHN_UNDEF ||
		    !has_field(prog, f, it.sym.st_value))
			continue;
		/* Mapping symbols (AArch64) say what is there, not that anything begins. */
		const char *name =
			elfrw_image_string(img, img->section[it.table].hdr.sh_link, it.sym.st_name);
		if (name && *name && *name != '$')
			ELFRW_TRY(add_mark(prog, f, it.sym.st_value, ret));
	}
	return NULL;
}

/* Pointers that the dynamic linker relocates, and those of a program with fixed addresses. */
static struct elfrw_err *mark_pointers(const struct icf_program *prog, const struct filter *f,
				       struct marks *ret)
{
	const struct elfrw_image *img = prog->img;
	for (size_t i = 0; i < prog->dynreloc.len; i++)
		if (prog->dynreloc.data[i].kind == ELFRW_RELOC_RELATIVE)
			ELFRW_TRY(add_mark(prog, f, prog->dynreloc.data[i].addend, ret));
	for (uint32_t i = 1; i < img->n_sections && !img->pic; i++) {
		const struct elfrw_section *rel = &img->section[i];
		if (!elfrw_image_kept_relocs(img, rel))
			continue;
		const struct elfrw_section *to = &img->section[rel->hdr.sh_info];
		if (!(to->hdr.sh_flags & SHF_ALLOC) || (to->hdr.sh_flags & SHF_EXECINSTR) ||
		    !to->data)
			continue;
		for (uint64_t k = 0; k + sizeof(Elf64_Rela) <= rel->hdr.sh_size;
		     k += sizeof(Elf64_Rela)) {
			Elf64_Rela r;
			memcpy(&r, rel->data + k, sizeof r);
			uint64_t off = r.r_offset - to->hdr.sh_addr;
			struct elfrw_reloc_desc d =
				img->arch->reloc((uint32_t)ELF64_R_TYPE(r.r_info));
			if (d.kind == ELFRW_RELOC_ABS && d.size >= 4 && off < to->hdr.sh_size &&
			    d.size <= to->hdr.sh_size - off)
				ELFRW_TRY(add_mark(prog, f, elfrw_get_le(to->data + off, d.size),
						   ret));
		}
	}
	return NULL;
}

static int mark_order(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

static struct elfrw_err *collect_marks(const struct icf_program *prog, const struct filter *f,
				       struct marks *ret)
{
	ELFRW_TRY(mark_symbols(prog, f, ret));
	ELFRW_TRY(mark_pointers(prog, f, ret));
	if (ret->v.len)
		qsort(ret->v.data, ret->v.len, sizeof *ret->v.data, mark_order);
	return NULL;
}

/* Bases are sorted.  Each address is at most one table, whoever refers to it. */
static uint32_t single_owner(const struct icf_bases *b, size_t first, size_t end)
{
	for (size_t i = first + 1; i < end; i++)
		if (b->v.data[i].owner != b->v.data[first].owner)
			return ICF_NONE;
	return b->v.data[first].owner;
}

/* A position-independent table leads back into a function that reads it, or into a cold part.
 * Anything else means that the assumed start is wrong. */
static bool plausible(const struct icf_program *prog, const struct icf_bases *b, size_t first,
		      size_t end, uint32_t unit, uint64_t target)
{
	if (unit == ICF_NONE)
		return false;
	for (size_t i = first; i < end; i++)
		if (b->v.data[i].owner == unit)
			return true;
	const struct icf_unit *u = &prog->unit.data[unit];
	/* The entry of an impossible case leads to an empty cold part, which is the end of another
	 * unit. */
	if (target == u->end || prog->inferred)
		return true;
	if (u->sym != ICF_NONE && strstr(prog->sym.data[u->sym].name, ".cold"))
		return true;
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	for (uint32_t r = 0; r < u->n_ref; r++)
		for (size_t i = first; i < end && ref[r].kind == ICF_REF_BRANCH; i++)
			if (ref[r].unit == b->v.data[i].owner &&
			    ref[r].target != prog->unit.data[ref[r].unit].start)
				return true;
	return false;
}

static bool jumps_into(const struct icf_program *prog, uint32_t from, const struct icf_unit *to)
{
	const struct icf_ref *ref = icf_unit_refs(prog, &prog->unit.data[from]);
	for (uint32_t r = 0; r < prog->unit.data[from].n_ref; r++)
		if (ref[r].kind == ICF_REF_BRANCH && ref[r].target > to->start &&
		    ref[r].target < to->end)
			return true;
	return false;
}

/* What an entry of a candidate means. */
struct meaning {
	uint64_t target;
	uint32_t unit; /* the unit that holds the target, or ICF_NONE */
};

/* The state of making tables. */
struct maker {
	struct icf_program *prog;
	const struct icf_bases *b;
	const struct marks *marks;
	struct icf_asker *ask;
	uint32_t asked; /* the last unit that split_off() was asked about, and the answer */
	bool answer;
	bool no_memory;            /* for `entered` */
	struct icf_bits entered;   /* of code; made when it is needed, see find_entered() */
	VEC(struct meaning) entry; /* of the current candidate */
};

/* Sets the bits in ENTERED of the code that something refers to: anything but branches, other than
 * calls, of the unit that ends there.  false: out of memory. */
static bool find_entered(const struct icf_program *prog, struct icf_bits *entered)
{
	if (!icf_bits_init(entered, prog->exec.data[0].start,
			   prog->exec.data[prog->exec.len - 1].end))
		return false;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const uint64_t end = prog->unit.data[i].end;
		const struct icf_ref *ref = icf_unit_refs(prog, &prog->unit.data[i]);
		for (uint32_t r = 0; r < prog->unit.data[i].n_ref; r++)
			if (ref[r].target != end || ref[r].kind != ICF_REF_BRANCH ||
			    (ref[r].flags & ICF_REF_CALL))
				icf_set_bit(entered, ref[r].target);
	}
	for (size_t i = 0; i < prog->dataref.len; i++) {
		const struct icf_dataref *d = &prog->dataref.data[i];
		if (d->kind == ICF_DATA_ADDRESS || d->kind == ICF_DATA_OFFSET)
			icf_set_bit(entered, d->target);
	}
	return true;
}

/* Unit K begins where unit OWNER ends.  Is it the cold part of OWNER?  Then an entry that leads
 * there may be used. */
static bool split_off(struct maker *m, uint32_t owner, uint32_t k)
{
	const struct icf_program *prog = m->prog;
	const struct icf_unit *u = &prog->unit.data[k];
	if (u->sym != ICF_NONE && prog->sym.data[u->sym].type == STT_FUNC)
		return strstr(prog->sym.data[u->sym].name, ".cold") != NULL;
	if (jumps_into(prog, owner, u) || jumps_into(prog, k, &prog->unit.data[owner]))
		return true;
	if (!m->entered.bits && !find_entered(prog, &m->entered)) {
		m->no_memory = true;
		return false;
	}
	/* Does anything else refer to it? */
	return !icf_bit(&m->entered, u->start);
}

/* A tool lists places of this code in a section of this name (static keys, probes).  Such a section
 * holds no compiler's jump tables. */
static bool is_list(const struct icf_program *prog, uint64_t va)
{
	uint32_t shndx = elfrw_image_section_at(prog->img, va);
	return shndx && icf_is_c_identifier(prog->img->section[shndx].name);
}

/* The run begins with field I and ends before LIMIT.  Do all its distances lead to entries of
 * units, counted from their own places?  For a table that would be a rare chance: its second entry
 * names a place 4 bytes behind a label. */
static bool counts_from_itself(const struct icf_program *prog, size_t i, uint64_t limit)
{
	const struct icf_dataref *first = &prog->dataref.data[i], *d = first;
	const struct icf_dataref *end = prog->dataref.data + prog->dataref.len;
	for (; d < end && d->place < limit &&
	       d->place == first->place + (uint64_t)(d - first) * first->size &&
	       d->kind == ICF_DATA_DISTANCE;
	     d++)
		if (d->unit == ICF_NONE || prog->unit.data[d->unit].start != d->target)
			return false;
	return d - first > 1;
}

/* The longest table at the address of bases [FIRST, END) that one of their jumps uses. */
static struct elfrw_err *ask_all(struct icf_asker *ask, const struct icf_bases *b, size_t first,
				 size_t end, uint32_t *ret)
{
	*ret = 0;
	for (size_t i = first; i < end; i++) {
		uint32_t n = 0;
		if (i == first || b->v.data[i].owner != b->v.data[i - 1].owner)
			ELFRW_TRY(icf_ask_table(ask, b->v.data[i].owner, b->v.data[i].va, &n));
		*ret = n > *ret ? n : *ret;
	}
	return NULL;
}

/* The bases with one address, and the run of fields that begins there. */
struct candidate {
	size_t first, end;  /* bases */
	uint64_t va, limit; /* where the run ends at the latest */
	uint32_t owner;
	size_t field; /* index into dataref */
	bool pcrel;
};

/* Could a table begin with the candidate's first field? */
static bool may_begin(const struct maker *m, const struct candidate *c)
{
	const struct icf_dataref *first = &m->prog->dataref.data[c->field];
	if (first->place != c->va || first->kind == ICF_DATA_OFFSET || first->quiet)
		return false;
	return !c->pcrel ||
	       (!is_list(m->prog, c->va) &&
		(m->prog->inferred || !counts_from_itself(m->prog, c->field, c->limit)));
}

/* Does field I continue the run of C, as its entry N? */
static bool goes_on(const struct icf_program *prog, const struct candidate *c, size_t i, size_t n)
{
	const struct icf_dataref *first = &prog->dataref.data[c->field],
				 *d = &prog->dataref.data[i];
	return i < prog->dataref.len && d->place == c->va + n * first->size &&
	       d->place < c->limit && d->size == first->size &&
	       (d->kind == ICF_DATA_DISTANCE) == c->pcrel && d->dynamic == first->dynamic &&
	       d->kind != ICF_DATA_OFFSET;
}

static struct meaning read_entry(struct maker *m, const struct candidate *c,
				 const struct icf_dataref *d)
{
	struct icf_program *prog = m->prog;
	uint64_t target = c->pcrel ? c->va + (d->target - d->place) : d->target;
	uint32_t unit = icf_unit_at(prog, target);
	/* clang lets the entries of impossible cases lead to the function's end. */
	if (c->owner != ICF_NONE && target == prog->unit.data[c->owner].end) {
		if (m->asked != c->owner)
			m->answer = unit != ICF_NONE && split_off(m, c->owner, unit);
		m->asked = c->owner;
		if (!m->answer)
			unit = c->owner;
	} else if (unit == ICF_NONE)
		unit = icf_unit_ending(prog, target);
	return (struct meaning){ target, unit };
}

/* The number of fields from the candidate's first on that are entries of one table; m->entry gets
 * their meanings.  Changes nothing else. */
static struct elfrw_err *measure(struct maker *m, const struct candidate *c)
{
	struct icf_program *prog = m->prog;
	uint32_t seen = UINT32_MAX; /* number of entries that a jump uses; not asked yet */
	m->entry.len = 0;
	for (size_t i = c->field; goes_on(prog, c, i, m->entry.len); i++) {
		struct meaning x = read_entry(m, c, &prog->dataref.data[i]);
		/* A field behind a table of labels that does not belong to it. */
		if (!c->pcrel && c->owner != x.unit &&
		    (x.unit == ICF_NONE || x.target == prog->unit.data[x.unit].start))
			break;
		if (c->pcrel && !plausible(prog, m->b, c->first, c->end, x.unit, x.target)) {
			if (seen == UINT32_MAX)
				ELFRW_TRY(ask_all(m->ask, m->b, c->first, c->end, &seen));
			if (m->entry.len == seen)
				break;
			if (m->entry.len > seen || x.unit == ICF_NONE) {
				m->entry.len = 0;
				break;
			}
		}
		struct meaning *slot = VEC_PUSH(&m->entry);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = x;
	}
	return NULL;
}

/* Do the entries lead into the candidate's only owner, or from there into other units' middles (its
 * cold part)? */
static bool owned(const struct maker *m, const struct candidate *c)
{
	if (c->owner == ICF_NONE)
		return false;
	const struct icf_unit *u = &m->prog->unit.data[c->owner];
	bool self = false;
	for (size_t i = 0; i < m->entry.len; i++) {
		const struct meaning *x = &m->entry.data[i];
		if (x->unit == ICF_NONE)
			return false;
		/* A table's end may be the next function's start, and the owner's start may be a
		 * pointer to the owner. */
		self |= x->target > u->start && x->target < u->end;
		if (x->unit != c->owner && x->target == m->prog->unit.data[x->unit].start)
			return false; /* a table of functions: their addresses are observed */
	}
	return self;
}

/* Is the measured run a table?  Addresses in writable data may change at run time: they are
 * pointers, not a jump table. */
static bool accept(const struct maker *m, const struct candidate *c)
{
	if (!m->entry.len || c->pcrel)
		return m->entry.len != 0;
	const struct elfrw_section *sec =
		&m->prog->img->section[elfrw_image_section_at(m->prog->img, c->va)];
	bool writable =
		(sec->hdr.sh_flags & SHF_WRITE) && strncmp(sec->name, ".data.rel.ro", 12) != 0;
	return !writable && owned(m, c);
}

/* Makes the candidate a table, and marks its owner's references as references to their own
 * table. */
static struct elfrw_err *commit(struct maker *m, const struct candidate *c)
{
	struct icf_program *prog = m->prog;
	struct icf_table t = { .base = c->va,
			       .entry = (uint32_t)c->field,
			       .n = (uint32_t)m->entry.len,
			       .owner = owned(m, c) ? c->owner : ICF_NONE,
			       .ref = UINT32_MAX };
	for (uint32_t i = 0; i < t.n; i++) {
		struct icf_dataref *d = &prog->dataref.data[c->field + i];
		d->target = m->entry.data[i].target;
		d->unit = m->entry.data[i].unit;
		d->kind = c->pcrel ? ICF_DATA_ENTRY : d->kind;
		d->table = (uint32_t)prog->table.len;
	}
	for (size_t r = c->first; r < c->end && t.owner != ICF_NONE; r++) {
		struct icf_ref *ref = m->b->v.data[r].ref;
		uint32_t at = (uint32_t)(ref - icf_unit_refs(prog, &prog->unit.data[t.owner]));
		ref->table = (uint32_t)prog->table.len;
		t.ref = at < t.ref ? at : t.ref;
	}
	struct icf_table *slot = VEC_PUSH(&prog->table);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = t;
	return NULL;
}

/* Where a table at VA must end: at NEXT, at the next mark, or with its section. */
static uint64_t end_of_run(const struct maker *m, uint64_t va, uint64_t next)
{
	uint32_t shndx = elfrw_image_section_at(m->prog->img, va);
	const Elf64_Shdr *sh = &m->prog->img->section[shndx].hdr;
	if (shndx && sh->sh_addr + sh->sh_size < next)
		next = sh->sh_addr + sh->sh_size;
	size_t i = LOWER_BOUND(0, m->marks->v.len, mid, m->marks->v.data[mid] <= va);
	return i < m->marks->v.len && m->marks->v.data[i] < next ? m->marks->v.data[i] : next;
}

static struct elfrw_err *make_tables(struct maker *m)
{
	const struct icf_program *prog = m->prog;
	const struct icf_bases *b = m->b;
	struct candidate c = { 0 };
	for (size_t field = 0; c.end < b->v.len;) {
		c.first = c.end;
		c.va = b->v.data[c.first].va;
		while (c.end < b->v.len && b->v.data[c.end].va == c.va)
			c.end++;
		c.owner = single_owner(b, c.first, c.end);
		c.limit = end_of_run(m, c.va, c.end < b->v.len ? b->v.data[c.end].va : UINT64_MAX);
		while (field < prog->dataref.len && prog->dataref.data[field].place < c.va)
			field++;
		if (field == prog->dataref.len)
			break;
		c.field = field;
		c.pcrel = prog->dataref.data[field].kind == ICF_DATA_DISTANCE;
		if (!may_begin(m, &c))
			continue;
		ELFRW_TRY(measure(m, &c));
		if (m->no_memory)
			return &elfrw_err_nomem;
		if (accept(m, &c))
			ELFRW_TRY(commit(m, &c));
	}
	return NULL;
}

struct elfrw_err *icf_find_tables(struct icf_program *prog, unsigned threads)
{
	struct icf_bases b = { 0 };
	struct marks marks = { 0 };
	struct filter f = { 0 };
	struct icf_asker ask = { .prog = prog };
	struct elfrw_err *err = prog->dataref.len ? make_filter(prog, &f) : NULL;
	if (!err && prog->dataref.len)
		err = collect_bases(prog, &f, &b);
	/* Without relocations, tables are what jumps were seen to read. */
	if (!err && b.v.len && !prog->inferred)
		err = collect_marks(prog, &f, &marks);
	free(f.bits);
	if (!err) {
		if (b.v.len)
			qsort(b.v.data, b.v.len, sizeof *b.v.data, base_order);
		struct maker m = {
			.prog = prog, .b = &b, .marks = &marks, .ask = &ask, .asked = ICF_NONE
		};
		err = make_tables(&m);
		VEC_FREE(&m.entry);
		icf_bits_deinit(&m.entered);
	}
	if (!err)
		err = icf_check_tables(prog, &b, &ask, threads);
	icf_asker_deinit(&ask);
	VEC_FREE(&marks.v);
	VEC_FREE(&b.v);
	return err;
}
