/* infer_table.c: position-independent jump tables without relocations.
 *
 * A unit with a jump through a register names its tables by address.  A table is the run of 4-byte distances from its own
 * start that lead to instructions of that unit or of its split-off part; it ends where a comparison of the index proves, or
 * else at the first word that leads elsewhere or that something names.  What a jump takes its target from is read from
 * the code before it (infer_jump.c); a unit one of whose jumps cannot be accounted for is pinned with all that it could
 * jump to, so that its tables, wherever they are, stay right. */
#include "elfrw/rbuf.h"
#include "icf/infer_parts.h"
#include "icf/unit.h"
#include <stdlib.h>
#include <string.h>

void icf_bits_deinit(struct icf_bits *b)
{
	free(b->bits);
	*b = (struct icf_bits){ 0 };
}

bool icf_bits_init(struct icf_bits *b, uint64_t lo, uint64_t hi)
{
	*b = (struct icf_bits){ lo, hi, calloc(((hi - lo) >> 3) + 1, 1) };
	return b->bits != NULL;
}

static bool is_data(const struct elfrw_section *s)
{
	return (s->hdr.sh_flags & SHF_ALLOC) && !(s->hdr.sh_flags & (SHF_EXECINSTR | SHF_TLS)) && s->hdr.sh_size;
}

static void name_symbols(const struct elfrw_image *img, uint32_t shndx, struct icf_bits *named)
{
	if (!shndx || !img->section[shndx].data)
		return;
	const struct elfrw_section *s = &img->section[shndx];
	for (size_t i = 1; i < s->hdr.sh_size / sizeof(Elf64_Sym); i++) {
		Elf64_Sym sym;
		memcpy(&sym, s->data + i * sizeof sym, sizeof sym);
		if (sym.st_shndx != SHN_UNDEF && sym.st_shndx < SHN_LORESERVE && ELF64_ST_TYPE(sym.st_info) != STT_TLS)
			icf_set_bit(named, sym.st_value);
	}
}

struct elfrw_err *icf_data_map_init(const struct icf_program *prog, struct icf_data_map *map)
{
	uint64_t lo = UINT64_MAX, hi = 0, sum = 0;
	*map = (struct icf_data_map){ 0 };
	for (uint32_t i = 1; i < prog->img->n_sections; i++) {
		const struct elfrw_section *s = &prog->img->section[i];
		if (!is_data(s) || !s->data)
			continue;
		lo = s->hdr.sh_addr < lo ? s->hdr.sh_addr : lo;
		hi = s->hdr.sh_addr + s->hdr.sh_size > hi ? s->hdr.sh_addr + s->hdr.sh_size : hi;
		sum += s->hdr.sh_size;
	}
	if (lo >= hi)
		lo = hi = 0;
	/* Data is a part of the file, so its span is bounded by the file's size but for gaps between segments. */
	if (hi - lo > sum + 2 * (uint64_t)prog->img->size + (1u << 26))
		return elfrw_error("data sections are too far apart");
	lo &= ~(uint64_t)7; /* so that a word's places are in one byte */
	if (!icf_bits_init(&map->named, lo, hi) || !icf_bits_init(&map->table, lo, hi)) {
		icf_data_map_deinit(map);
		return &elfrw_err_nomem;
	}
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_ref *ref = icf_unit_refs(prog, &prog->unit.data[i]);
		for (uint32_t r = 0; r < prog->unit.data[i].n_ref; r++)
			if (ref[r].kind != ICF_REF_BRANCH)
				icf_set_bit(&map->named, ref[r].target);
	}
	for (size_t i = 0; i < prog->dynreloc.len; i++)
		if (prog->dynreloc.data[i].kind == ELFRW_RELOC_RELATIVE)
			icf_set_bit(&map->named, prog->dynreloc.data[i].addend);
	name_symbols(prog->img, prog->img->symtab, &map->named);
	name_symbols(prog->img, prog->img->dynsym, &map->named);
	return NULL;
}

void icf_data_map_deinit(struct icf_data_map *map)
{
	icf_bits_deinit(&map->named);
	icf_bits_deinit(&map->table);
}

uint64_t icf_next_named(const struct icf_program *prog, const struct icf_data_map *map, uint64_t va)
{
	uint32_t shndx = elfrw_image_section_at(prog->img, va);
	uint64_t end = shndx ? prog->img->section[shndx].hdr.sh_addr + prog->img->section[shndx].hdr.sh_size : va;
	for (uint64_t p = va + 1; p < end;) {
		uint64_t off = p - map->named.lo;
		if (p < map->named.lo || p >= map->named.hi)
			return end;
		if (!(off & 7) && !map->named.bits[off >> 3]) {
			p += 8;
			continue;
		}
		if (icf_bit(&map->named, p))
			return p;
		p++;
	}
	return end;
}

struct finder {
	struct icf_program *prog;
	struct icf_data_map *map;
	struct icf_places *named;
	struct icf_bits called; /* unit entries that a call, an address or a symbol of a function names; by byte of code */
	struct icf_trace t, other;
	uint32_t other_unit; /* that `other` holds, or ICF_NONE */
	struct { uint32_t a, b; bool yes; } linked[64]; /* answers of are_linked() */
	struct icf_places loads; /* where the unit that `t` holds loads 4 bytes from a fixed place */
};

/* The executable sections' entries that are functions to someone. */
static struct elfrw_err *find_called(struct finder *f)
{
	const struct icf_program *prog = f->prog;
	if (!icf_bits_init(&f->called, prog->exec.data[0].start, prog->exec.data[prog->exec.len - 1].end))
		return &elfrw_err_nomem;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		const struct icf_ref *ref = icf_unit_refs(prog, u);
		for (uint32_t r = 0; r < u->n_ref; r++)
			if (ref[r].kind != ICF_REF_BRANCH || icf_unit_bytes(prog, u)[ref[r].off - 1] == 0xe8)
				icf_set_bit(&f->called, ref[r].target);
	}
	for (size_t i = 0; i < prog->dataref.len; i++)
		icf_set_bit(&f->called, prog->dataref.data[i].target);
	for (size_t i = 0; i < prog->sym.len; i++) {
		const struct icf_symbol *s = &prog->sym.data[i];
		if (s->type == STT_FUNC && !strstr(s->name, ".cold"))
			icf_set_bit(&f->called, s->value);
	}
	return NULL;
}

/* Does an instruction of unit I begin at VA? */
static struct elfrw_err *is_insn(struct finder *f, uint32_t i, uint64_t va, bool *ret)
{
	if (f->other_unit != i) {
		bool clean;
		f->other_unit = ICF_NONE;
		ELFRW_TRY(icf_trace_unit(f->prog, i, &f->other, &clean));
		f->other_unit = i;
	}
	*ret = icf_trace_bit(f->other.start.data, va - f->prog->unit.data[i].start);
	return NULL;
}

/* Do A and B jump into each other's middle?  Then they are parts of one function. */
static bool jumps_into(const struct icf_program *prog, uint32_t a, uint32_t b)
{
	const struct icf_unit *u = &prog->unit.data[a], *v = &prog->unit.data[b];
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	if (prog->exec.data[v->sec].linkage)
		return false;
	for (uint32_t r = 0; r < u->n_ref; r++)
		if (ref[r].kind == ICF_REF_BRANCH && ref[r].target > v->start && ref[r].target < v->end)
			return true;
	return false;
}

static bool branches_to(const struct icf_program *prog, const struct icf_unit *u, uint64_t to)
{
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	for (uint32_t r = 0; r < u->n_ref; r++)
		if (ref[r].kind == ICF_REF_BRANCH && ref[r].target == to)
			return true;
	return false;
}

/* May a table of unit I (which f->t holds) lead to TO? */
static struct elfrw_err *leads(struct finder *f, uint32_t i, uint64_t to, bool *ret)
{
	const struct icf_program *prog = f->prog;
	const struct icf_unit *u = &prog->unit.data[i];
	*ret = false;
	if (to - u->start < u->end - u->start) {
		*ret = icf_trace_bit(f->t.start.data, to - u->start);
		return NULL;
	}
	/* Cases that cannot happen: clang lets them lead to the function's end, GCC to a split-off part without code. */
	uint32_t k = icf_unit_at(prog, to);
	if (to == u->end || (k == ICF_NONE && icf_unit_ending(prog, to) != ICF_NONE && branches_to(prog, u, to))) {
		*ret = true;
		return NULL;
	}
	if (k == ICF_NONE || prog->unit.data[k].kind == ICF_UNIT_OPAQUE)
		return NULL;
	/* A split-off part: nobody calls it, or it jumps back. */
	if (icf_bit(&f->called, prog->unit.data[k].start) && !jumps_into(prog, k, i) && !jumps_into(prog, i, k))
		return NULL;
	return is_insn(f, k, to, ret);
}

static bool word_at(const struct icf_program *prog, uint64_t va, uint64_t *ret)
{
	const uint8_t *p = elfrw_image_at(prog->img, va, 4);
	if (!p)
		return false;
	*ret = (uint64_t)(int64_t)(int32_t)elfrw_get32(p);
	return true;
}

/* Where a table at BASE ends at the latest: where something else can begin.  What is not aligned as its entries are is an address
 * that something is added to, in some other function. */
static uint64_t table_limit(const struct icf_program *prog, const struct icf_data_map *map, uint64_t base)
{
	uint64_t end = icf_next_named(prog, map, base);
	while (((end - base) & 3) && icf_bit(&map->named, end))
		end = icf_next_named(prog, map, end);
	return end;
}

/* The number of entries of the table at BASE that jump J goes through, 0: none. */
static struct elfrw_err *extent(struct finder *f, uint32_t i, uint64_t base, const struct icf_jump *j, uint64_t *ret)
{
	uint64_t room = (table_limit(f->prog, f->map, base) - base) / 4, bound = j->bound, n = 0, word;
	*ret = 0;
	if (j->cap && room > j->cap)
		room = j->cap;
	for (; n < (bound && bound < room ? bound : room); n++) {
		bool good;
		if (!word_at(f->prog, base + 4 * n, &word))
			break;
		ELFRW_TRY(leads(f, i, base + word, &good));
		if (!good)
			break;
	}
	/* Compilers leave entries out that they know to be unused; the next table then begins early.  Otherwise a proof that
	 * the data does not bear out is none. */
	if (n < bound) {
		bool good = n < room;
		if (!good && word_at(f->prog, base + 4 * n, &word))
			ELFRW_TRY(leads(f, i, base + word, &good));
		if (good)
			return NULL;
	}
	*ret = n;
	return NULL;
}

static void pin(struct icf_program *prog, uint32_t i)
{
	if (i != ICF_NONE)
		prog->unit.data[i].flags |= ICF_UNIT_PINNED;
}

/* A load of 4 bytes at a fixed place, as of one entry of a table that the compiler knows. */
static bool loads_word(const struct elfrw_insn *in)
{
	return in->opcode_map == 0 && in->pcrel_size && (in->flags & ELFRW_INSN_MEM) &&
	       (in->opcode == 0x63 || (in->opcode == 0x8b && !(in->flags & ELFRW_INSN_REX_W)));
}

static struct elfrw_err *find_loads(struct finder *f)
{
	uint64_t word;
	f->loads.v.len = 0;
	for (size_t k = 0; k < f->t.insn.len; k++) {
		const struct elfrw_insn *in = &f->t.insn.data[k].in;
		if (!loads_word(in) || !word_at(f->prog, in->target, &word))
			continue;
		uint64_t *slot = VEC_PUSH(&f->loads.v);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = in->target;
	}
	return NULL;
}

/* Entries further than this from their table's start are not looked for. */
#define FAR 65536

/* TO is a label of unit I, if it lies there. */
static bool name_label(struct finder *f, uint32_t i, uint64_t to)
{
	const struct icf_unit *u = &f->prog->unit.data[i];
	if (to - u->start >= u->end - u->start)
		return true;
	uint64_t *slot = VEC_PUSH(&f->named->v);
	if (slot)
		*slot = to;
	return slot != NULL;
}

/* Unit I, what it jumps to, and whatever a table that it names could mean stay. */
static struct elfrw_err *pin_tables(struct finder *f, uint32_t i)
{
	struct icf_program *prog = f->prog;
	const struct icf_unit *u = &prog->unit.data[i];
	pin(prog, i);
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	for (uint32_t r = 0; r < u->n_ref; r++) {
		uint64_t base = ref[r].target, word;
		if (ref[r].kind == ICF_REF_BRANCH) {
			if (icf_unit_bytes(prog, u)[ref[r].off - 1] != 0xe8)
				pin(prog, icf_unit_at(prog, base));
			continue;
		}
		if (icf_in_exec(prog, base))
			continue;
		uint64_t end = table_limit(prog, f->map, base);
		for (uint64_t p = base; p + 4 <= end && word_at(prog, p, &word); p += 4) {
			pin(prog, icf_unit_at(prog, base + word));
			pin(prog, icf_unit_at(prog, p + word));
			if (!name_label(f, i, base + word))
				return &elfrw_err_nomem;
		}
		if (!(ref[r].flags & ICF_REF_LEA))
			continue;
		for (size_t k = 0; k < f->loads.v.len; k++)
			if (f->loads.v.data[k] - base < FAR && word_at(prog, f->loads.v.data[k], &word))
				pin(prog, icf_unit_at(prog, base + word));
	}
	return NULL;
}

/* A jump of unit I is not accounted for. */
static struct elfrw_err *pin_all(struct finder *f, uint32_t i)
{
	const struct icf_unit *u = &f->prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(f->prog, u);
	ELFRW_TRY(pin_tables(f, i));
	for (uint32_t r = 0; r < u->n_ref; r++)
		if (ref[r].kind != ICF_REF_BRANCH && icf_in_exec(f->prog, ref[r].target))
			icf_infer_loose(f->prog, u->start + ref[r].off, "a jump that is not understood may add to an address of code");
	return NULL;
}

static bool push_table(struct finder *f, uint32_t i, uint64_t base, uint64_t n)
{
	struct icf_program *prog = f->prog;
	struct icf_inferred_table *t = VEC_PUSH(&prog->inferred_table);
	if (!t)
		return false;
	*t = (struct icf_inferred_table){ base, prog->unit.data[i].start, (uint32_t)n };
	for (uint64_t k = 0; k < n; k++) {
		uint64_t place = base + 4 * k, word;
		if (icf_bit(&f->map->table, place) || !word_at(prog, place, &word))
			continue;
		struct icf_dataref *d = VEC_PUSH(&prog->dataref);
		uint64_t *to = VEC_PUSH(&f->named->v);
		if (!d || !to)
			return false;
		*d = (struct icf_dataref){ .place = place, .target = place + word, .unit = ICF_NONE, .table = ICF_NONE, .size = 4, .pcrel = 1 };
		*to = base + word;
		for (unsigned b = 0; b < 4; b++)
			icf_set_bit(&f->map->table, place + b);
	}
	return true;
}

/* Data that unit I names and whose first word leads into it. */
struct candidate {
	uint64_t base;
	uint64_t n; /* entries that its jumps can use; 0: none goes through it */
};

struct candidates {
	VEC(struct candidate) v;
};

static struct candidate *candidate_at(struct candidates *c, uint64_t base)
{
	for (size_t i = 0; i < c->v.len; i++)
		if (c->v.data[i].base == base)
			return &c->v.data[i];
	return NULL;
}

/* Words of a candidate that are looked at, and of a table that no jump of the unit can go through. */
#define MAX_WORDS 1024
#define FEW_WORDS 4

/* Do A and B jump into each other's middle?  Remembers some answers. */
static bool are_linked(struct finder *f, uint32_t a, uint32_t b)
{
	size_t slot = (a * 31 + b) % (sizeof f->linked / sizeof *f->linked);
	if (f->linked[slot].a != a || f->linked[slot].b != b) {
		f->linked[slot].a = a;
		f->linked[slot].b = b;
		f->linked[slot].yes = jumps_into(f->prog, a, b) || jumps_into(f->prog, b, a);
	}
	return f->linked[slot].yes;
}

/* Could TO be a case of unit I (which f->t holds)? */
static bool may_lead(struct finder *f, uint32_t i, uint64_t to)
{
	const struct icf_unit *u = &f->prog->unit.data[i];
	if (to - u->start < u->end - u->start)
		return icf_trace_bit(f->t.start.data, to - u->start);
	uint32_t k = icf_in_exec(f->prog, to) ? icf_unit_at(f->prog, to) : ICF_NONE;
	return k != ICF_NONE && are_linked(f, i, k);
}

/* The first of the words [FROM, N) behind BASE, up to what something names, that may lead into unit I; N: none. */
static uint64_t first_lead(struct finder *f, uint32_t i, uint64_t base, uint64_t from, uint64_t n)
{
	uint64_t room = (table_limit(f->prog, f->map, base) - base) / 4, word;
	for (uint64_t k = from; k < n && k < room && word_at(f->prog, base + 4 * k, &word); k++)
		if (word && !icf_bit(&f->map->table, base + 4 * k) && may_lead(f, i, base + word))
			return k;
	return n;
}

static struct elfrw_err *find_candidates(struct finder *f, uint32_t i, struct candidates *ret)
{
	struct icf_program *prog = f->prog;
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	for (uint32_t r = 0; r < u->n_ref; r++) {
		uint64_t base = ref[r].target, word;
		bool good;
		if (ref[r].kind == ICF_REF_BRANCH || !(ref[r].flags & ICF_REF_LEA) || icf_in_exec(prog, base) || !word_at(prog, base, &word))
			continue;
		/* The first entry may lead to nowhere. */
		ELFRW_TRY(leads(f, i, base + word, &good));
		good = good || first_lead(f, i, base, 1, MAX_WORDS) < MAX_WORDS;
		if (!good || candidate_at(ret, base))
			continue;
		struct candidate *c = VEC_PUSH(&ret->v);
		if (!c)
			return &elfrw_err_nomem;
		*c = (struct candidate){ .base = base };
	}
	return NULL;
}

/* Does unit I name data that leads into it and that no jump was found to use?  Its distances may go through memory on their way to the
 * jump, or the compiler chose the entry. */
static bool find_missed(struct finder *f, uint32_t i, const struct candidates *c)
{
	const struct icf_program *prog = f->prog;
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	for (size_t k = 0; k < c->v.len; k++) {
		const struct candidate *one = &c->v.data[k];
		uint64_t n = MAX_WORDS + one->n, hit = first_lead(f, i, one->base, one->n, n);
		for (size_t o = 0; o < c->v.len && hit < n; o++)
			if (one->base + 4 * hit - c->v.data[o].base < 4 * c->v.data[o].n)
				hit = n;
		if (hit < n)
			return true;
	}
	for (size_t k = 0; k < f->loads.v.len; k++) {
		uint64_t p = f->loads.v.data[k], word = 0;
		word_at(prog, p, &word);
		for (uint32_t r = 0; r < u->n_ref; r++)
			if ((ref[r].flags & ICF_REF_LEA) && p - ref[r].target < FAR && may_lead(f, i, ref[r].target + word))
				return true;
	}
	return false;
}

/* Measures the candidates that jump J may go through (any one when its table is not seen). */
static struct elfrw_err *use(struct finder *f, uint32_t i, const struct icf_jump *j, struct candidates *c, bool *any)
{
	for (size_t k = 0; k < c->v.len; k++) {
		struct candidate *one = &c->v.data[k];
		uint64_t n;
		if (j->base && one->base != j->base)
			continue;
		ELFRW_TRY(extent(f, i, one->base, j, &n));
		*any |= n > 0;
		if (n > one->n)
			one->n = n;
	}
	return NULL;
}

/* A distance between labels of one unit stays what it is; between the parts of a split function nobody sees it.  FROM: the label that
 * distances are added to, in data that the unit names; *GOOD: they lead to labels of unit I, which then have a name. */
static struct elfrw_err *name_labels(struct finder *f, uint32_t i, uint64_t from, bool *good)
{
	const struct icf_program *prog = f->prog;
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	*good = true;
	for (uint32_t r = 0; r < u->n_ref; r++) {
		uint64_t base = ref[r].target, word;
		if (ref[r].kind == ICF_REF_BRANCH) {
			uint32_t o = icf_unit_at(prog, base);
			if (o != ICF_NONE && *good && are_linked(f, i, o))
				*good = false;
			continue;
		}
		if (icf_in_exec(prog, base))
			continue;
		uint64_t end = icf_next_named(prog, f->map, base);
		for (uint64_t p = base; p + 4 <= end && word_at(prog, p, &word); p += 4) {
			uint64_t to = from + word;
			if (to - u->start >= u->end - u->start) {
				uint32_t o = icf_in_exec(prog, to) ? icf_unit_at(prog, to) : ICF_NONE;
				bool out = o != ICF_NONE && prog->unit.data[o].kind == ICF_UNIT_OPAQUE;
				if (o != ICF_NONE && !out)
					ELFRW_TRY(leads(f, i, to, &out));
				if (out)
					*good = false;
				break;
			}
			if (!icf_trace_bit(f->t.start.data, to - u->start))
				break;
			if (!name_label(f, i, to))
				return &elfrw_err_nomem;
		}
	}
	return NULL;
}

static struct elfrw_err *tables_of(struct finder *f, uint32_t i, struct candidates *c)
{
	struct icf_program *prog = f->prog;
	bool clean, good = true;
	f->other_unit = ICF_NONE;
	ELFRW_TRY(icf_trace_unit(prog, i, &f->t, &clean));
	c->v.len = 0;
	ELFRW_TRY(icf_trace_edges(prog, i, &f->t));
	ELFRW_TRY(find_candidates(f, i, c));
	ELFRW_TRY(find_loads(f));
	const struct icf_unit *u = &prog->unit.data[i];
	for (size_t k = 0; k < f->t.insn.len && good; k++) {
		const struct elfrw_insn *in = &f->t.insn.data[k].in;
		/* A sum with a label may have been kept in memory. */
		if ((in->flags & ELFRW_INSN_LEA) && in->pcrel_size && in->target - u->start < u->end - u->start && in->target != u->start)
			ELFRW_TRY(name_labels(f, i, in->target, &good));
		if (in->kind != ELFRW_INSN_JMP_IND)
			continue;
		struct icf_jumps j;
		icf_classify_jump(prog, i, &f->t, k, &j);
		prog->unit.data[i].flags |= j.adds ? ICF_UNIT_RELATIVE : 0;
		for (unsigned n = 0; n < j.n && good;) {
			unsigned group = j.jump[n].group;
			for (good = false; n < j.n && j.jump[n].group == group; n++)
				if (j.jump[n].kind == ICF_JUMP_LOCAL) {
					bool local;
					ELFRW_TRY(name_labels(f, i, j.jump[n].base, &local));
					good |= local;
				} else if (j.jump[n].kind == ICF_JUMP_TABLE)
					ELFRW_TRY(use(f, i, &j.jump[n], c, &good));
		}
	}
	if (!good)
		return pin_all(f, i);
	if (find_missed(f, i, c))
		ELFRW_TRY(pin_tables(f, i));
	for (size_t k = 0; k < c->v.len; k++)
		if (c->v.data[k].n && !push_table(f, i, c->v.data[k].base, c->v.data[k].n))
			return &elfrw_err_nomem;
	return NULL;
}

/* Unit I does not jump, but its other half may: data that it names and that leads into it keeps it where it is. */
static struct elfrw_err *tables_of_half(struct finder *f, uint32_t i)
{
	struct icf_program *prog = f->prog;
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	for (uint32_t r = 0; r < u->n_ref; r++) {
		uint64_t base = ref[r].target, word;
		bool clean, inside = false;
		if (!(ref[r].flags & ICF_REF_LEA) || icf_in_exec(prog, base))
			continue;
		for (unsigned k = 0; k < FEW_WORDS && !inside && word_at(prog, base + 4 * k, &word); k++)
			inside = base + word - u->start < u->end - u->start;
		if (!inside)
			continue;
		f->other_unit = ICF_NONE;
		ELFRW_TRY(icf_trace_unit(prog, i, &f->t, &clean));
		if (first_lead(f, i, base, 0, FEW_WORDS) == FEW_WORDS)
			continue;
		ELFRW_TRY(find_loads(f));
		ELFRW_TRY(pin_tables(f, i));
		break;
	}
	return NULL;
}

struct elfrw_err *icf_infer_tables(struct icf_program *prog, struct icf_data_map *map, struct icf_places *named)
{
	struct finder f = { .prog = prog, .map = map, .named = named, .other_unit = ICF_NONE };
	struct candidates c = { 0 };
	struct elfrw_err *err = find_called(&f);
	for (uint32_t i = 0; i < prog->unit.len && !err; i++)
		if (prog->unit.data[i].kind != ICF_UNIT_OPAQUE)
			err = prog->unit.data[i].flags & ICF_UNIT_JUMPS ? tables_of(&f, i, &c) : tables_of_half(&f, i);
	VEC_FREE(&c.v);
	VEC_FREE(&f.loads.v);
	icf_trace_deinit(&f.t);
	icf_trace_deinit(&f.other);
	icf_bits_deinit(&f.called);
	return err;
}

void icf_drop_tables(struct icf_program *prog)
{
	for (size_t i = 0; i < prog->inferred_table.len; i++) {
		const struct icf_inferred_table *t = &prog->inferred_table.data[i];
		uint32_t owner = icf_unit_at(prog, t->owner);
		if (owner == ICF_NONE || prog->unit.data[owner].kind != ICF_UNIT_OPAQUE)
			continue;
		size_t lo = 0, hi = prog->dataref.len;
		while (lo < hi) {
			size_t mid = lo + (hi - lo) / 2;
			if (prog->dataref.data[mid].place < t->base)
				lo = mid + 1;
			else
				hi = mid;
		}
		for (; lo < prog->dataref.len && prog->dataref.data[lo].place < t->base + 4 * (uint64_t)t->n; lo++) {
			struct icf_dataref *d = &prog->dataref.data[lo];
			pin(prog, icf_unit_at(prog, t->base + (d->target - d->place)));
			d->size = 0;
		}
	}
	size_t n = 0;
	for (size_t i = 0; i < prog->dataref.len; i++)
		if (prog->dataref.data[i].size)
			prog->dataref.data[n++] = prog->dataref.data[i];
	prog->dataref.len = n;
}
