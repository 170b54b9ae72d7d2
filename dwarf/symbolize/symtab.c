/* symtab.c: names from the symbol table.
 *
 * A pass over the table in the file answers the first questions.  Copies sorted by address and by
 * name are made only for further questions. */
#include "dwarf/symbolize/state.h"
#include "elfrw/arch/symbol.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"

#define SCANS 4 /* questions before the table is sorted */

struct entry {
	uint64_t address, size;
	uint32_t index, name;
	bool several; /* other symbols have the address */
};

struct dwr_symtab {
	const struct elfrw_image *image; /* borrowed; NULL: no table */
	uint32_t shndx;
	size_t n;
	unsigned asked;
	bool sorted;
	VEC(struct entry) entry; /* one for each address, ascending */
	unsigned asked_name;
	VEC(uint64_t) name;          /* of hash << 32 | index, ascending; empty: not made */
	uint32_t file_from, file_to; /* last known symbol of the file of each STT_FILE symbol */
	const char *file;
	VEC(uint32_t) files; /* the STT_FILE symbols, when has_files */
	bool has_files;
};

void dwr_symtab_free(struct dwr_symtab *t)
{
	if (t) {
		VEC_FREE(&t->entry);
		VEC_FREE(&t->name);
		VEC_FREE(&t->files);
	}
	free(t);
}

static bool is64(const struct elfrw_image *img)
{
	return img->ehdr.e_ident[EI_CLASS] == ELFCLASS64;
}

/* The number of symbols in section SHNDX, with number 0. */
static size_t count(const struct elfrw_image *img, uint32_t shndx)
{
	return shndx && img->section[shndx].data
		       ? img->section[shndx].hdr.sh_size /
				 (is64(img) ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym))
		       : 0;
}

static bool use(struct dwr_symtab *t, const struct elfrw_image *img, uint32_t shndx)
{
	size_t n = count(img, shndx);
	if (n < 2)
		return false;
	t->image = img;
	t->shndx = shndx;
	t->n = n;
	return true;
}

static struct dwr_symtab *table(struct dwr_sym *sym)
{
	struct dwr_symtab *t = sym->symtab;
	if (t)
		return t;
	t = sym->symtab = calloc(1, sizeof *t);
	if (!t) {
		sym->nomem = true;
		return t;
	}
	/* A stripped file may have some of the symbols (strip --strip-unneeded); its debug file has
	 * all. */
	const struct elfrw_image *own = &sym->main->image, *debug = &sym->debug->image;
	bool more = count(debug, debug->symtab) > count(own, own->symtab);
	if (!(more && use(t, debug, debug->symtab)) && !use(t, own, own->symtab))
		use(t, own, own->dynsym);
	return t;
}

bool dwr_symtab_is_dynamic(struct dwr_sym *sym)
{
	const struct dwr_symtab *t = table(sym);
	return t && t->image && t->shndx == t->image->dynsym;
}

static Elf64_Sym get(const struct dwr_symtab *t, size_t i)
{
	const uint8_t *data = t->image->section[t->shndx].data;
	Elf64_Sym s;
	if (is64(t->image)) {
		memcpy(&s, data + i * sizeof s, sizeof s);
		return s;
	}
	Elf32_Sym n;
	memcpy(&n, data + i * sizeof n, sizeof n);
	return (Elf64_Sym){ n.st_name, n.st_info, n.st_other, n.st_shndx, n.st_value, n.st_size };
}

static const char *name_of(const struct dwr_symtab *t, uint32_t name)
{
	const char *s = elfrw_image_string(t->image, t->image->section[t->shndx].hdr.sh_link, name);
	return s ? s : "";
}

static bool counts(const struct dwr_symtab *t, const Elf64_Sym *s)
{
	unsigned type = s->st_info & 15;
	if (type != STT_FUNC && type != STT_OBJECT && type != STT_NOTYPE && type != STT_GNU_IFUNC)
		return false;
	if (s->st_shndx == SHN_UNDEF || (s->st_shndx >= SHN_LORESERVE && s->st_shndx != SHN_XINDEX))
		return false;
	if (s->st_shndx < SHN_LORESERVE && s->st_shndx < t->image->n_sections &&
	    !(t->image->section[s->st_shndx].hdr.sh_flags & SHF_ALLOC))
		return false;
	return !elfrw_symbol_is_mapping(&t->image->ehdr, type, name_of(t, s->st_name));
}

static uint64_t value_of(const struct dwr_symtab *t, const Elf64_Sym *s)
{
	return elfrw_symbol_address(&t->image->ehdr, s->st_info & 15, s->st_value);
}

static int by_address(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

/* Collects the STT_FILE symbols, for further questions: the way back to the one before a symbol can
 * be as long as the table. */
static void find_files(struct dwr_symtab *t)
{
	t->files.len = 0;
	for (size_t i = 1; i < t->n; i++) {
		if ((get(t, i).st_info & 15) != STT_FILE)
			continue;
		uint32_t *slot = VEC_PUSH(&t->files);
		if (!slot)
			return;
		*slot = (uint32_t)i;
	}
	t->has_files = true;
}

/* Most symbols are in code.  false: no memory. */
static bool sort_entries(struct dwr_symtab *t)
{
	uint64_t lo = UINT64_MAX, hi = 0;
	for (uint32_t i = 1; i < t->image->n_sections; i++) {
		const Elf64_Shdr *h = &t->image->section[i].hdr;
		if (!(h->sh_flags & SHF_EXECINSTR) || !h->sh_size)
			continue;
		lo = h->sh_addr < lo ? h->sh_addr : lo;
		hi = h->sh_addr > hi ? h->sh_addr + h->sh_size : hi;
	}
	return elfrw_sort_numbers(t->entry.data, t->entry.len, sizeof *t->entry.data, lo, hi,
				  by_address);
}

static bool sort_table(struct dwr_symtab *t)
{
	for (size_t i = 1; i < t->n; i++) {
		Elf64_Sym s = get(t, i);
		if (!counts(t, &s))
			continue;
		struct entry *e = VEC_PUSH(&t->entry);
		if (!e) {
			t->entry.len = 0;
			return false;
		}
		*e = (struct entry){ value_of(t, &s), s.st_size, (uint32_t)i, s.st_name, false };
	}
	if (!sort_entries(t)) {
		t->entry.len = 0;
		return false;
	}
	size_t n = 0;
	for (size_t i = 0; i < t->entry.len; i++) {
		bool several = n && t->entry.data[n - 1].address == t->entry.data[i].address;
		if (several)
			n--;
		t->entry.data[n] = t->entry.data[i];
		t->entry.data[n++].several = several;
	}
	t->entry.len = n;
	t->sorted = true;
	if (!t->has_files)
		find_files(t);
	return true;
}

static bool search(const struct dwr_symtab *t, uint64_t address, struct entry *ret)
{
	size_t lo = LOWER_BOUND(0, t->entry.len, mid, t->entry.data[mid].address <= address);
	if (lo)
		*ret = t->entry.data[lo - 1];
	return lo != 0;
}

static bool scan(const struct dwr_symtab *t, uint64_t address, struct entry *ret)
{
	struct entry best = { 0 };
	bool found = false;
	for (size_t i = 1; i < t->n; i++) {
		Elf64_Sym s = get(t, i);
		uint64_t v = value_of(t, &s);
		if (v > address ||
		    (found && (v < best.address || (v == best.address && s.st_size < best.size))) ||
		    !counts(t, &s))
			continue;
		best = (struct entry){ v, s.st_size, (uint32_t)i, s.st_name, false };
		found = true;
	}
	*ret = best;
	return found;
}

static const char *file_before(const struct dwr_symtab *t, uint32_t index)
{
	size_t lo = LOWER_BOUND(0, t->files.len, mid, t->files.data[mid] < index);
	const char *file = lo ? name_of(t, get(t, t->files.data[lo - 1]).st_name) : "";
	return *file ? file : NULL;
}

static void fill(struct dwr_symtab *t, const struct entry *e, struct dwr_sym_symbol *ret)
{
	*ret = (struct dwr_sym_symbol){ .name = name_of(t, e->name),
					.address = e->address,
					.size = e->size };
	Elf64_Sym s = get(t, e->index);
	if (s.st_info >> 4 != STB_LOCAL)
		return;
	if (t->has_files) {
		ret->file = file_before(t, e->index);
		return;
	}
	uint32_t i = e->index;
	while (i > 1 && !(i > t->file_from && i <= t->file_to)) {
		s = get(t, --i);
		if ((s.st_info & 15) != STT_FILE)
			continue;
		const char *file = name_of(t, s.st_name);
		t->file = *file ? file : NULL;
		t->file_from = i++;
		t->file_to = 0;
		break;
	}
	if (i <= 1)
		return;
	if (t->file_to < e->index)
		t->file_to = e->index;
	ret->file = t->file;
}

/* Is ADDRESS, for which E without a size is the symbol before it, in another section than E?  The
 * number of a section that strip took away says nothing. */
static bool in_other_section(const struct dwr_symtab *t, const struct entry *e, uint64_t address)
{
	Elf64_Sym s = get(t, e->index);
	if (s.st_shndx >= SHN_LORESERVE || s.st_shndx >= t->image->n_sections)
		return false;
	const Elf64_Shdr *h = &t->image->section[s.st_shndx].hdr;
	return e->address >= h->sh_addr && e->address - h->sh_addr <= h->sh_size &&
	       address - h->sh_addr >= h->sh_size;
}

void dwr_sym_expect_many(struct dwr_sym *sym)
{
	struct dwr_symtab *t = table(sym);
	if (t && t->image && !t->sorted)
		sort_table(t);
}

bool dwr_sym_symbol_at(struct dwr_sym *sym, uint64_t address, struct dwr_sym_symbol *ret)
{
	struct dwr_symtab *t = table(sym);
	struct entry e;
	if (!t || !t->image)
		return false;
	if (!t->sorted && ++t->asked > SCANS)
		sort_table(t);
	if (!(t->sorted ? search(t, address, &e) : scan(t, address, &e)))
		return false;
	if (e.size && e.address + e.size <= address)
		return false;
	fill(t, &e, ret);
	ret->in_other_section = !e.size && in_other_section(t, &e, address);
	return true;
}

bool dwr_sym_symbol_next(struct dwr_sym *sym, size_t *i, struct dwr_sym_symbol *ret)
{
	struct dwr_symtab *t = table(sym);
	if (!t || !t->image || (!t->sorted && !sort_table(t))) {
		sym->nomem |= t && t->image;
		return false;
	}
	if (*i >= t->entry.len)
		return false;
	const struct entry *e = &t->entry.data[(*i)++];
	fill(t, e, ret);
	ret->several = e->several;
	ret->object = (get(t, e->index).st_info & 15) == STT_OBJECT;
	return true;
}

/* Does the symbol S have the name NAME of LEN letters?  The length is compared first: names may be
 * ends of one string, alike except for their length. */
static bool is_named(const struct dwr_symtab *t, const Elf64_Sym *s, const char *name, size_t len)
{
	const struct elfrw_section *strings =
		&t->image->section[t->image->section[t->shndx].hdr.sh_link];
	const char *has = name_of(t, s->st_name);
	if (!*has)
		return !len;
	return strings->hdr.sh_size - s->st_name > len && !has[len] && !memcmp(has, name, len);
}

/* A hash of a name's length, beginning and end: names may be suffixes of one string that is as long
 * as the table. */
static uint32_t hash_of(const char *s, size_t n)
{
	enum { PART = 256 };
	uint32_t h = 5381 + (uint32_t)n;
	for (size_t i = 0; i < n; i++) {
		if (i == PART && n > 2 * PART)
			i = n - PART;
		h = h * 33 + (uint8_t)s[i];
	}
	return h;
}

static void sort_names(struct dwr_symtab *t)
{
	for (size_t i = 1; i < t->n; i++) {
		Elf64_Sym s = get(t, i);
		if (!counts(t, &s))
			continue;
		uint64_t *e = VEC_PUSH(&t->name);
		if (!e) {
			VEC_FREE(&t->name);
			return;
		}
		const char *name = name_of(t, s.st_name);
		*e = (uint64_t)hash_of(name, strlen(name)) << 32 | i;
	}
	if (!elfrw_sort_numbers(t->name.data, t->name.len, sizeof *t->name.data, 0, UINT64_MAX,
				elfrw_u64_order)) {
		VEC_FREE(&t->name);
		return;
	}
	if (!t->has_files)
		find_files(t);
}

/* The first symbol named NAME, of LEN letters, from index I on; t->n: none. */
static size_t find_name(const struct dwr_symtab *t, const char *name, size_t len, size_t i)
{
	uint32_t hash = hash_of(name, len);
	const uint64_t *e = t->name.data;
	size_t lo = LOWER_BOUND(0, t->name.len, mid, e[mid] < ((uint64_t)hash << 32 | i));
	for (; lo < t->name.len && e[lo] >> 32 == hash; lo++) {
		const uint32_t index = (uint32_t)e[lo];
		Elf64_Sym s = get(t, index);
		if (is_named(t, &s, name, len))
			return index;
	}
	return t->n;
}

bool dwr_sym_symbol_named(struct dwr_sym *sym, const char *name, size_t *from,
			  struct dwr_sym_symbol *ret)
{
	struct dwr_symtab *t = table(sym);
	if (!t || !t->image)
		return false;
	if (!t->name.len && !*from && ++t->asked_name == SCANS + 1)
		sort_names(t);
	size_t len = strlen(name);
	if (t->name.len) {
		size_t i = find_name(t, name, len, *from);
		if (i >= t->n)
			return false;
		Elf64_Sym s = get(t, i);
		fill(t,
		     &(struct entry){ value_of(t, &s), s.st_size, (uint32_t)i, s.st_name, false },
		     ret);
		*from = i + 1;
		return true;
	}
	for (size_t i = *from ? *from : 1; i < t->n; i++) {
		Elf64_Sym s = get(t, i);
		if (!counts(t, &s) || !is_named(t, &s, name, len))
			continue;
		fill(t,
		     &(struct entry){ value_of(t, &s), s.st_size, (uint32_t)i, s.st_name, false },
		     ret);
		*from = i + 1;
		return true;
	}
	return false;
}
