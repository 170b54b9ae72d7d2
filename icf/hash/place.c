/* place.c: the addresses outside of functions that something refers to, and what is there.
 *
 * Sources: the references of code; the addends of relative relocations; references in data to code;
 * types that exception tables name; and in programs with fixed addresses, every aligned word of
 * data that is an address in the program.  The symbols of .symtab do not count, so that a stripped
 * program has the same places. */
#include "dwarf/lsda.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "elfrw/symtab.h"
#include "icf/hash/state.h"
#include "icf/program/unit.h"
#include <stdlib.h>
#include <string.h>

struct named {
	uint64_t start, end;
	uint32_t sym;
	const char *name;
};

struct target {
	uint64_t va;
	uint8_t read; /* as in icf_place */
	bool taken;
};

struct places {
	struct icf_hasher *h;
	struct icf_text *text; /* that was read last */
	VEC(struct target) va;
	VEC(struct named) named; /* data with dynamic symbols, by address */
	VEC(uint64_t) empty;     /* where sections without bytes stand */
	uint64_t relro, relro_end;
};

static bool add(struct places *p, struct target new)
{
	if (icf_unit_at(p->h->prog, new.va) != ICF_NONE)
		return true;
	struct target *t = VEC_PUSH(&p->va);
	if (t)
		*t = new;
	return t != NULL;
}

static bool add_taken(struct places *p, uint64_t va)
{
	return add(p, (struct target){ .va = va, .taken = true });
}

static bool has_halves(const struct icf_program *prog, const struct icf_unit *u)
{
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	for (uint32_t r = 0; r < u->n_ref && prog->arch->low_form; r++)
		if (elfrw_form_is_high(icf_ref_form(prog, &ref[r])))
			return true;
	return false;
}

static const struct icf_ref *with_halves(const struct icf_program *prog, const struct icf_unit *u,
					 icf_ref_list *list, uint32_t *n)
{
	bool ok = VEC_APPEND(list, icf_unit_refs(prog, u), u->n_ref) &&
		  icf_hash_halves(prog, u, list);
	*n = ok ? (uint32_t)list->len : 1;
	return ok ? list->data : NULL;
}

const struct icf_ref *icf_hash_refs(const struct icf_program *prog, uint32_t unit,
				    icf_ref_list *scratch, uint32_t *n)
{
	const struct icf_unit *u = &prog->unit.data[unit];
	const uint8_t *code = icf_unit_bytes(prog, u);
	uint64_t size = u->end - u->start;
	struct elfrw_insn in;
	*n = u->n_ref;
	scratch->len = 0;
	if (u->kind != ICF_UNIT_OPAQUE || u->n_ref || icf_has_data(prog, u->start, u->end))
		return has_halves(prog, u) ? with_halves(prog, u, scratch, n)
					   : icf_unit_refs(prog, u);
	for (uint64_t pos = 0; pos < size; pos += in.len) {
		if (!prog->arch->decode(code + pos, size - pos, u->start + pos, &in))
			break;
		if (!in.pcrel_size || in.target - u->start < size || icf_is_half(prog->arch, &in))
			continue;
		struct icf_ref *r = VEC_PUSH(scratch);
		*n = (uint32_t)scratch->len;
		if (!r) {
			*n = 1;
			return NULL;
		}
		bool branch = in.kind == ELFRW_INSN_JMP || in.kind == ELFRW_INSN_JCC ||
			      in.kind == ELFRW_INSN_CALL;
		*r = (struct icf_ref){ .target = in.target,
				       .off = (uint32_t)pos + in.pcrel_off,
				       .unit = icf_unit_at(prog, in.target),
				       .table = ICF_NONE,
				       .form = prog->arch->pcrel_form(&in),
				       .kind = branch ? ICF_REF_BRANCH : ICF_REF_PCREL,
				       .flags = in.flags & ELFRW_INSN_LEA ? ICF_REF_LEA : 0 };
	}
	return scratch->data;
}

static bool add_unit(struct places *p, uint32_t i, icf_ref_list *scratch)
{
	const struct icf_program *prog = p->h->prog;
	const struct icf_unit *u = &prog->unit.data[i];
	uint32_t n;
	const struct icf_ref *ref = icf_hash_refs(prog, i, scratch, &n);
	for (uint32_t r = 0; r < n; r++) {
		if (!ref)
			return false;
		if (ref[r].unit != ICF_NONE || icf_names_page(&ref[r]))
			continue;
		bool reads = ref[r].kind == ICF_REF_PCREL && !(ref[r].flags & ICF_REF_LEA);
		unsigned read =
			reads && prog->arch->read_size
				? prog->arch->read_size(icf_unit_bytes(prog, u),
							(size_t)(u->end - u->start), ref[r].off)
				: 0;
		if (!add(p, (struct target){ ref[r].target, (uint8_t)read, !reads }))
			return false;
	}
	return true;
}

static bool add_refs(struct places *p)
{
	const struct icf_program *prog = p->h->prog;
	icf_ref_list scratch = { 0 };
	bool ok = true;
	for (uint32_t i = 0; i < prog->unit.len && ok; i++)
		ok = add_unit(p, i, &scratch);
	VEC_FREE(&scratch);
	for (size_t i = 0; i < prog->dynreloc.len && ok; i++)
		if (prog->dynreloc.data[i].kind == ELFRW_RELOC_RELATIVE)
			ok = add_taken(p, prog->dynreloc.data[i].addend);
		else if (prog->dynreloc.data[i].kind == ELFRW_RELOC_NONE)
			ok = add_taken(p, prog->dynreloc.data[i].place); /* a copy of data */
	for (size_t i = 0; i < prog->dataref.len && ok; i++)
		if (prog->dataref.data[i].unit == ICF_NONE)
			ok = add_taken(p, prog->dataref.data[i].target);
	return ok;
}

/* May the words of S hold addresses that no dynamic relocation tells? */
static bool holds_words(const struct elfrw_image *img, const struct elfrw_section *s)
{
	return !img->pic && s->data && s->hdr.sh_type != SHT_NOTE &&
	       (s->hdr.sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) == SHF_ALLOC &&
	       (s->hdr.sh_type == SHT_PROGBITS || s->hdr.sh_type == SHT_INIT_ARRAY ||
		s->hdr.sh_type == SHT_FINI_ARRAY) &&
	       strncmp(s->name, ".eh_frame", 9) != 0 && strcmp(s->name, ".gcc_except_table") != 0;
}

static bool add_words(struct places *p)
{
	const struct elfrw_image *img = p->h->prog->img;
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_section *s = &img->section[i];
		if (!holds_words(img, s))
			continue;
		for (uint64_t off = -s->hdr.sh_addr & 7; off + 8 <= s->hdr.sh_size; off += 8) {
			uint64_t v = elfrw_get64(s->data + off);
			if (v && elfrw_image_section_at(img, v) && !add_taken(p, v))
				return false;
		}
	}
	return true;
}

static struct elfrw_err *add_types(struct places *p)
{
	const struct icf_program *prog = p->h->prog;
	struct dwr_lsda l = { 0 };
	struct elfrw_err *err = NULL;
	for (size_t f = 0; f < prog->cfi.fde.len && !err; f++) {
		const struct dwr_fde *fde = &prog->cfi.fde.data[f];
		if (!fde->lsda || fde->pc_end <= fde->pc_begin)
			continue;
		/* What cannot be read is reported when its function is hashed, if it is one. */
		struct elfrw_err *bad =
			dwr_lsda_read(&l, prog->img, fde->lsda, fde->pc_begin, fde->pc_end);
		if (bad == &elfrw_err_nomem)
			err = bad;
		else if (bad)
			elfrw_err_free(bad);
		for (size_t t = 0; t < l.type.len && !bad && !err; t++)
			if (l.type.data[t].addr && !add_taken(p, l.type.data[t].addr))
				err = &elfrw_err_nomem;
	}
	dwr_lsda_deinit(&l);
	return err;
}

static int va_order(const void *a, const void *b)
{
	const struct target *x = a, *y = b;
	if (x->va != y->va)
		return x->va < y->va ? -1 : 1;
	return (int)y->taken - (int)x->taken;
}

static int named_order(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	int c = strcmp(x->name, y->name);
	return c ? c : x->sym < y->sym ? -1 : x->sym > y->sym;
}

/* The data that .dynsym names, each address by its first name in the alphabet.  Of the symbols of
 * programs that are unique in a process, it depends on the linker whether they are there. */
static bool find_named(struct places *p)
{
	const struct elfrw_image *img = p->h->prog->img;
	bool program = false;
	for (uint32_t i = 0; i < img->n_phdrs; i++)
		program |= img->phdr[i].p_type == PT_INTERP;
	const struct elfrw_section *s = &img->section[img->dynsym];
	for (struct elfrw_symbols it = elfrw_symbols(s, 1); elfrw_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		const char *name = elfrw_image_string(img, s->hdr.sh_link, sym.st_name);
		if (sym.st_shndx == SHN_UNDEF || sym.st_shndx == SHN_ABS || !name || !*name ||
		    ELF64_ST_TYPE(sym.st_info) != STT_OBJECT ||
		    sym.st_value + sym.st_size <= sym.st_value ||
		    (program && ELF64_ST_BIND(sym.st_info) == STB_GNU_UNIQUE))
			continue;
		struct named *n = VEC_PUSH(&p->named);
		if (!n)
			return false;
		*n = (struct named){ sym.st_value, sym.st_value + sym.st_size, (uint32_t)it.index,
				     name };
	}
	if (p->named.len)
		qsort(p->named.data, p->named.len, sizeof *p->named.data, named_order);
	return true;
}

/* Is N in this program only because the linker copies it from a library? */
static bool is_copy(const struct places *p, const struct named *n)
{
	const struct icf_dynreloc *d = icf_dynreloc_at(p->h->prog, n->start);
	return d && d->kind == ELFRW_RELOC_NONE;
}

static const struct named *named_at(const struct places *p, uint64_t va)
{
	const struct named *n = p->named.data;
	size_t k = LOWER_BOUND(0, p->named.len, mid, n[mid].start <= va);
	if (!k || va >= n[k - 1].end)
		return NULL;
	uint64_t start = n[k - 1].start;
	return &n[LOWER_BOUND(0, k, mid, n[mid].start < start)];
}

/* Do the contents of S at VA stay as they are once the program is loaded?  The parts of a linker's
 * script for that have equal names with and without -z relro. */
static bool is_constant(const struct places *p, const struct elfrw_section *s, uint64_t va)
{
	static const char *const part[] = { ".data.rel.ro", ".init_array", ".fini_array", ".ctors",
					    ".dtors" };
	if (!s->data || s->hdr.sh_type == SHT_NOBITS)
		return false;
	for (size_t i = 0; i < sizeof part / sizeof *part; i++)
		if (strncmp(s->name, part[i], strlen(part[i])) == 0)
			return true;
	return !(s->hdr.sh_flags & SHF_WRITE) || va - p->relro < p->relro_end - p->relro;
}

/* The end of constant K, which instructions read directly and nothing else refers to.  Where it is
 * not known how much they read, compilers align such constants to their size. */
static uint64_t read_end(const struct icf_place *k, uint64_t next, uint64_t end)
{
	uint64_t size = k->va & -k->va;
	if (k->read)
		return end - k->va < k->read ? end : k->va + k->read;
	size = size > 64 || !size ? 64 : size;
	return next - k->va < size ? next : k->va + size;
}

/* In a program with fixed addresses: is the aligned word at VA one of them? */
static bool is_address(const struct icf_program *prog, uint64_t va)
{
	const uint8_t *p = prog->img->pic || (va & 7) ? NULL : elfrw_image_at(prog->img, va, 8);
	return p && elfrw_get64(p) && elfrw_image_section_at(prog->img, elfrw_get64(p));
}

/* Does a virtual table's first function stand at VA, in bytes that begin at FROM: behind an offset
 * and a type (Itanium C++ ABI 2.5.2)? */
static bool is_vtable(const struct places *places, uint64_t from, uint64_t va)
{
	const struct icf_hasher *h = places->h;
	const struct icf_program *prog = h->prog;
	if (va < from || va - from <= 16)
		return false;
	const struct icf_dynreloc *type = icf_dynreloc_at(prog, va - 8),
				  *first = icf_dynreloc_at(prog, va);
	const uint8_t *p = elfrw_image_at(prog->img, va - 16, 16);
	bool code = icf_hash_dataref_at(h, va) || (first && first->kind == ELFRW_RELOC_SYMBOLIC) ||
		    (is_address(prog, va) &&
		     icf_in_exec(prog, elfrw_get64(elfrw_image_at(prog->img, va, 8))));
	return code && p && (int64_t)elfrw_get64(p) <= 0 && (int64_t)elfrw_get64(p) > -0x100000 &&
	       !icf_dynreloc_at(prog, va - 16) && !icf_hash_dataref_at(h, va - 8) &&
	       (type ? type->kind == ELFRW_RELOC_RELATIVE || type->kind == ELFRW_RELOC_SYMBOLIC
		     : is_address(prog, va - 8));
}

/* Is the object at VA a type (Itanium C++ ABI 2.9.5)?  It begins with the address of a virtual
 * table of the C++ library, or of the copy of one. */
static bool is_type(const struct places *p, uint64_t va)
{
	static const char prefix[] = "_ZTVN10__cxxabiv1";
	const struct icf_program *prog = p->h->prog;
	const struct elfrw_section *s = &prog->img->section[prog->img->dynsym];
	const struct icf_dynreloc *d = icf_dynreloc_at(prog, va);
	const uint8_t *word = elfrw_image_at(prog->img, va, 8);
	const char *name = NULL;
	Elf64_Sym sym;
	if (d && d->kind != ELFRW_RELOC_RELATIVE) {
		if (elfrw_symbol(s, icf_hash_dynreloc_symbol(prog, d), &sym))
			name = elfrw_image_string(prog->img, s->hdr.sh_link, sym.st_name);
	} else if (d || (word && !prog->img->pic)) {
		const struct named *n = named_at(p, d ? d->addend : elfrw_get64(word));
		name = n ? n->name : NULL;
	}
	return name && strncmp(name, prefix, sizeof prefix - 1) == 0;
}

/* The same as is_vtable(), and what stands in front of the functions is a type. */
static bool is_typed_vtable(const struct places *p, uint64_t from, uint64_t va)
{
	const struct icf_program *prog = p->h->prog;
	const struct icf_dynreloc *type = icf_dynreloc_at(prog, va - 8);
	const uint8_t *word = elfrw_image_at(prog->img, va - 8, 8);
	return word && is_vtable(p, from, va) &&
	       is_type(p, type ? type->addend : elfrw_get64(word));
}

/* before_vtable() for the places from FIRST on, in a position-independent file: the address of a
 * type has a relocation, and most data has few. */
static uint64_t before_relocated(const struct places *p, uint64_t va, uint64_t first, uint64_t next)
{
	const struct icf_program *prog = p->h->prog;
	for (size_t d = icf_first_dynreloc(prog, first - 8); d < prog->dynreloc.len; d++) {
		uint64_t at = prog->dynreloc.data[d].place + 8;
		if (at >= next)
			break;
		/* In front of the type stands a number; in tables of pointers another pointer. */
		if (d && prog->dynreloc.data[d - 1].place == at - 16)
			continue;
		if (at % 8 == 0 && is_typed_vtable(p, va, at))
			return at - 16;
	}
	return next;
}

/* In a program with fixed addresses: could the offset and the type of a virtual table stand in
 * front of VA, at WORD?  Most data shows that they do not at first sight. */
static bool may_follow_type(const struct icf_program *prog, const uint8_t *word, uint64_t va)
{
	int64_t offset = (int64_t)elfrw_get64(word - 16);
	return offset <= 0 && offset > -0x100000 &&
	       (elfrw_get64(word - 8) || icf_dynreloc_at(prog, va - 8));
}

/* The first place from VA to NEXT where a virtual table begins that nothing refers to, or that NEXT
 * is in; or NEXT.  Only a type in front of the functions shows it: tables of records can look like
 * virtual tables. */
static uint64_t before_vtable(const struct places *p, uint64_t va, uint64_t next)
{
	const struct icf_program *prog = p->h->prog;
	if (is_vtable(p, va, next))
		next -= 16;
	const uint64_t first = ((va + 7) & ~(uint64_t)7) + 24;
	if (prog->img->pic)
		return before_relocated(p, va, first, next);
	const uint8_t *word = elfrw_image_at(prog->img, va, next - va);
	for (uint64_t at = first; at < next; at += 8)
		if ((!word || may_follow_type(prog, word + (at - va), at)) &&
		    is_typed_vtable(p, va, at))
			return at - 16;
	return next;
}

/* Sets the end of constant K in section S, which ends at NEXT at the latest, unless it is a string:
 * linkers let one be the end of another.  A string ends at its NUL.  Other data ends where
 * something refers to the next. */
static void find_end(const struct places *p, const struct elfrw_section *s, struct icf_place *k,
		     uint64_t next)
{
	const struct icf_program *prog = p->h->prog;
	const uint8_t *at = s->data + (k->va - s->hdr.sh_addr);
	uint64_t least = k->va, end = s->hdr.sh_addr + s->hdr.sh_size;
	next = before_vtable(p, k->va, next);
	size_t d = icf_first_dynreloc(prog, next);
	if (d && prog->dynreloc.data[d - 1].place >= k->va)
		least = prog->dynreloc.data[d - 1].place + 8;
	d = icf_hash_first_dataref(p->h, next);
	const struct icf_dataref *r = d ? &prog->dataref.data[d - 1] : NULL;
	if (r && r->place >= k->va && r->place + r->size > least)
		least = r->place + r->size;
	if (is_address(prog, k->va) && least < k->va + 8)
		least = k->va + 8;
	if (least == k->va && k->taken) {
		int64_t n = icf_string_length(p->text, at, k->va, end - k->va, next - k->va,
					      icf_is_behind_text(s, k->va - s->hdr.sh_addr));
		k->text = n >= 0;
		k->end = k->va + (uint64_t)n;
		if (k->text)
			return;
	}
	if (!k->taken && (least == k->va || k->read >= 8)) {
		k->end = read_end(k, next, end);
		return;
	}
	least = least > next ? next : least;
	k->end = least > k->va ? next : k->va + icf_before_text(at, k->va, next - k->va);
	while (k->end > least && !at[k->end - k->va - 1])
		k->end--;
	/* Bytes of an address may be zero. */
	uint64_t word = (k->end - 1) & ~(uint64_t)7;
	if (k->end > k->va && word >= k->va && next - word >= 8 && is_address(prog, word))
		k->end = word + 8;
}

/* Is VA, in section SHNDX (0: in none), no place of data but one that the start files know: where
 * the table of clones for transactions stands, which has no bytes and may be left out?  Then VA is
 * where the data ends, or something begins that functions do not name. */
static bool is_edge(const struct places *p, uint64_t va, uint32_t shndx)
{
	const struct elfrw_image *img = p->h->prog->img;
	const struct elfrw_section *in = &img->section[shndx];
	uint32_t type = in->hdr.sh_type;
	if (shndx && type != SHT_INIT_ARRAY && type != SHT_FINI_ARRAY && type != SHT_DYNAMIC &&
	    strncmp(in->name, ".got", 4) != 0)
		return false;
	for (size_t k = 0; k < p->empty.len; k++)
		if (p->empty.data[k] == va)
			return true;
	for (uint32_t i = 1; i < img->n_sections && !shndx; i++) {
		const Elf64_Shdr *s = &img->section[i].hdr;
		if ((s->sh_flags & (SHF_ALLOC | SHF_WRITE | SHF_TLS)) == (SHF_ALLOC | SHF_WRITE) &&
		    s->sh_type == SHT_PROGBITS && s->sh_addr + s->sh_size == va)
			return true;
	}
	return false;
}

static bool find_empty(struct places *p)
{
	const struct elfrw_image *img = p->h->prog->img;
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const Elf64_Shdr *s = &img->section[i].hdr;
		if (s->sh_size || s->sh_type != SHT_PROGBITS ||
		    strcmp(img->section[i].name, ".tm_clone_table") != 0)
			continue;
		uint64_t *va = VEC_PUSH(&p->empty);
		if (!va)
			return false;
		*va = s->sh_addr;
	}
	return true;
}

static void describe(const struct places *p, struct icf_place *k, uint64_t next)
{
	const struct elfrw_image *img = p->h->prog->img;
	uint32_t shndx = elfrw_image_section_at(img, k->va);
	const struct elfrw_section *s = &img->section[shndx];
	const struct named *n = named_at(p, k->va);
	uint32_t type = s->hdr.sh_type;
	uint64_t end = s->hdr.sh_addr + s->hdr.sh_size;
	bool loaded = type == SHT_PROGBITS || type == SHT_INIT_ARRAY || type == SHT_FINI_ARRAY;
	k->kind = ICF_PLACE_OTHER;
	k->end = k->va;
	if (is_edge(p, k->va, shndx)) {
		k->kind = ICF_PLACE_VARIABLE;
		k->nothing = true;
		return;
	}
	if (!shndx || (s->hdr.sh_flags & SHF_EXECINSTR) || strncmp(s->name, ".eh_frame", 9) == 0)
		return;
	if (loaded && is_constant(p, s, k->va) && !(n && is_copy(p, n))) {
		k->kind = ICF_PLACE_CONSTANT;
		find_end(p, s, k, next < end ? next : end);
	} else if (n) {
		k->kind = ICF_PLACE_NAMED;
		k->sym = n->sym;
		k->copy = is_copy(p, n);
		k->end = n->start;
	} else if (loaded || type == SHT_NOBITS)
		k->kind = ICF_PLACE_VARIABLE;
}

static bool sort_targets(struct places *p)
{
	const struct elfrw_image *img = p->h->prog->img;
	uint64_t lo = UINT64_MAX, hi = 0;
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const Elf64_Shdr *s = &img->section[i].hdr;
		if (!(s->sh_flags & SHF_ALLOC))
			continue;
		lo = s->sh_addr < lo ? s->sh_addr : lo;
		hi = s->sh_addr + s->sh_size > hi ? s->sh_addr + s->sh_size : hi;
	}
	return elfrw_sort_numbers(p->va.data, p->va.len, sizeof *p->va.data, lo, hi, va_order);
}

static bool settle(struct places *p)
{
	struct icf_hasher *h = p->h;
	size_t n = 0;
	if (!sort_targets(p))
		return false;
	for (size_t i = 0; i < p->va.len; i++)
		if (!n || p->va.data[n - 1].va != p->va.data[i].va)
			p->va.data[n++] = p->va.data[i];
		else if (p->va.data[n - 1].read < p->va.data[i].read)
			p->va.data[n - 1].read = p->va.data[i].read;
	if (!VEC_RESERVE(&h->place, n + 1))
		return false;
	for (size_t i = 0; i < n; i++) {
		struct icf_place *k = VEC_PUSH(&h->place);
		k->va = p->va.data[i].va;
		k->taken = p->va.data[i].taken;
		k->read = p->va.data[i].read;
		describe(p, k, i + 1 < n ? p->va.data[i + 1].va : UINT64_MAX);
	}
	return true;
}

struct elfrw_err *icf_hash_find_places(struct icf_hasher *h)
{
	struct icf_text text = { 0 };
	struct places p = { .h = h, .text = &text };
	const struct elfrw_image *img = h->prog->img;
	for (uint32_t i = 0; i < img->n_phdrs; i++)
		if (img->phdr[i].p_type == PT_GNU_RELRO) {
			p.relro = img->phdr[i].p_vaddr;
			p.relro_end = p.relro + img->phdr[i].p_memsz;
		}
	bool ok = find_empty(&p) && add_refs(&p) && add_words(&p);
	struct elfrw_err *err = ok ? add_types(&p) : &elfrw_err_nomem;
	if (!err && !(find_named(&p) && settle(&p)))
		err = &elfrw_err_nomem;
	VEC_FREE(&p.va);
	VEC_FREE(&p.empty);
	VEC_FREE(&p.named);
	if (!err && h->place.len > UINT32_MAX / 2 - h->n_units)
		err = elfrw_error("more than 2147483647 functions and data that they refer to");
	return err;
}
