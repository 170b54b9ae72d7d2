/* symbols.c: the symbols of the executable sections, sorted by address, and the list of those
 * sections. */
#include "elfrw/arch/symbol.h"
#include "icf/program/unit.h"
#include "elfrw/symtab.h"
#include <stdlib.h>
#include <string.h>

static bool is_linkage(const char *name)
{
	return strncmp(name, ".plt", 4) == 0 || strcmp(name, ".init") == 0 ||
	       strcmp(name, ".fini") == 0 || strcmp(name, ".iplt") == 0;
}

bool icf_is_c_identifier(const char *s)
{
	if (!*s || (*s >= '0' && *s <= '9'))
		return false;
	for (; *s; s++)
		if (!(*s == '_' || (*s >= '0' && *s <= '9') || (*s >= 'a' && *s <= 'z') ||
		      (*s >= 'A' && *s <= 'Z')))
			return false;
	return true;
}

static uint8_t section_hotness(const char *name)
{
	if (strncmp(name, ".text.hot", 9) == 0)
		return 0;
	if (strncmp(name, ".text.startup", 13) == 0 || strncmp(name, ".text.exit", 10) == 0)
		return 2;
	if (strncmp(name, ".text.unlikely", 14) == 0 || strncmp(name, ".text.split", 11) == 0)
		return 3;
	return 1;
}

static int exec_order(const void *a, const void *b)
{
	const struct icf_exec *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

static struct elfrw_err *find_exec_sections(struct icf_program *prog)
{
	const struct elfrw_image *img = prog->img;
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_section *s = &img->section[i];
		if (!(s->hdr.sh_flags & SHF_ALLOC) || !(s->hdr.sh_flags & SHF_EXECINSTR) ||
		    s->hdr.sh_size == 0)
			continue;
		if (!s->data)
			return elfrw_error_at(s->name, 0, "executable section without contents");
		struct icf_exec *e = VEC_PUSH(&prog->exec);
		if (!e)
			return &elfrw_err_nomem;
		e->shndx = i;
		e->start = s->hdr.sh_addr;
		e->end = s->hdr.sh_addr + s->hdr.sh_size;
		e->writable = elfrw_image_is_writable(img, s);
		e->linkage = !e->writable && is_linkage(s->name);
		e->named = icf_is_c_identifier(s->name);
		e->hotness = section_hotness(s->name);
	}
	if (!prog->exec.len)
		return elfrw_error("has no executable section");
	qsort(prog->exec.data, prog->exec.len, sizeof *prog->exec.data, exec_order);
	const struct icf_exec *last = &prog->exec.data[prog->exec.len - 1];
	if (last->end - prog->exec.data->start > ELFRW_BLOCKS_MAX)
		return elfrw_error_at(img->section[last->shndx].name, 0,
				      "lies more than 4 GiB behind other code");
	return NULL;
}

/* By address.  At one address functions come first, then global symbols, then local ones, then
 * table order; the first symbol gives the name. */
static int symbol_order(const void *a, const void *b)
{
	const struct icf_symbol *x = a, *y = b;
	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	bool fx = x->type == STT_FUNC || x->type == STT_GNU_IFUNC,
	     fy = y->type == STT_FUNC || y->type == STT_GNU_IFUNC;
	if (fx != fy)
		return fx ? -1 : 1;
	bool lx = x->bind == STB_LOCAL, ly = y->bind == STB_LOCAL;
	if (lx != ly)
		return lx ? 1 : -1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* A mapping symbol: the bytes from `value` on are data or code, up to the next one, or to LIMIT,
 * where the section ends. */
struct mapping {
	uint64_t value, limit;
	bool data;
};

struct mappings {
	VEC(struct mapping) v;
};

/* At one address code counts: an empty run of data may stand before it. */
static int mapping_order(const void *a, const void *b)
{
	const struct mapping *x = a, *y = b;
	return x->value != y->value ? (x->value < y->value ? -1 : 1) : y->data - x->data;
}

/* A mapping symbol of code says what a linker's stubs and other bytes without a name are.  Where
 * there is a name, it is not needed. */
static void drop_mappings(struct icf_program *prog)
{
	size_t n = 0;
	for (size_t i = 0; i < prog->sym.len; i++) {
		const struct icf_symbol *s = &prog->sym.data[i];
		bool alone = (i == 0 || s[-1].value != s->value) &&
			     (i + 1 == prog->sym.len || s[1].value != s->value);
		if (alone || !elfrw_symbol_is_mapping(&prog->img->ehdr, s->type, s->name))
			prog->sym.data[n++] = *s;
	}
	prog->sym.len = n;
}

/* The runs of data in code. */
static struct elfrw_err *find_data(struct icf_program *prog, struct mappings *m)
{
	if (m->v.len)
		qsort(m->v.data, m->v.len, sizeof *m->v.data, mapping_order);
	for (size_t i = 0; i < m->v.len; i++) {
		const struct mapping *x = &m->v.data[i];
		uint64_t end = i + 1 < m->v.len && x[1].value < x->limit ? x[1].value : x->limit;
		struct icf_data_run *last =
			prog->data.len ? &prog->data.data[prog->data.len - 1] : NULL;
		if (!x->data || x->value == end)
			continue;
		if (last && last->end == x->value) {
			last->end = end;
			continue;
		}
		struct icf_data_run *run = VEC_PUSH(&prog->data);
		if (!run)
			return &elfrw_err_nomem;
		*run = (struct icf_data_run){ x->value, end };
	}
	return NULL;
}

static struct elfrw_err *read_table(struct icf_program *prog, uint32_t shndx, uint32_t index_mask,
				    struct mappings *mapping)
{
	const struct elfrw_image *img = prog->img;
	const struct elfrw_section *s = &img->section[shndx];
	if (elfrw_symbols_count(s) > UINT32_MAX / 2)
		return elfrw_error_at(s->name, 0, "too many symbols");
	for (struct elfrw_symbols it = elfrw_symbols(s, 1); elfrw_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		const size_t i = it.index;
		unsigned type = ELF64_ST_TYPE(sym.st_info);
		if (sym.st_shndx == SHN_UNDEF || sym.st_shndx >= SHN_LORESERVE ||
		    type == STT_SECTION || type == STT_FILE || type == STT_TLS)
			continue;
		uint32_t in = elfrw_image_symbol_section(img, &sym, shndx == img->dynsym);
		if (in >= img->n_sections || !(img->section[in].hdr.sh_flags & SHF_EXECINSTR))
			continue;
		const Elf64_Shdr *sh = &img->section[in].hdr;
		/* A symbol at a section's end (etext, __stop_x) marks a boundary; it does not name
		 * code. */
		if (sym.st_value < sh->sh_addr || sym.st_value - sh->sh_addr >= sh->sh_size)
			continue;
		const char *name = elfrw_image_string(img, s->hdr.sh_link, sym.st_name);
		if (!name)
			return elfrw_error_at(s->name, i * sizeof sym, "symbol %zu has a bad name",
					      i);
		if (elfrw_symbol_is_mapping(&img->ehdr, type, name)) {
			prog->mapped = true;
			struct mapping *m = VEC_PUSH(&mapping->v);
			if (!m)
				return &elfrw_err_nomem;
			*m = (struct mapping){ sym.st_value, sh->sh_addr + sh->sh_size,
					       elfrw_symbol_begins_data(name) };
			if (m->data)
				continue;
		}
		struct icf_symbol *out = VEC_PUSH(&prog->sym);
		if (!out)
			return &elfrw_err_nomem;
		*out = (struct icf_symbol){ .value = sym.st_value,
					    .size = sym.st_size,
					    .index = (uint32_t)i | index_mask,
					    .type = (uint8_t)type,
					    .bind = ELF64_ST_BIND(sym.st_info),
					    .other = sym.st_other,
					    .name = name };
		uint64_t room = sh->sh_size - (sym.st_value - sh->sh_addr);
		if (out->size > room)
			out->size = room;
	}
	return NULL;
}

/* Does NAME say that the compiler chose the section?  clang's large code model has .ltext. */
static bool is_usual(const char *name)
{
	name += strncmp(name, ".l", 2) == 0 ? 2 : 1;
	return strncmp(name, "text", 4) == 0 && (name[4] == 0 || name[4] == '.');
}

/* Linkers define __start_X and __stop_X for a section whose name X is an identifier (GNU ld manual,
 * "Input Section Example").  The program may take the bytes between them for all of X, even if no
 * symbol is left.  So the code of a section whose name does not begin with a dot stays in that
 * section.
 *
 * Whoever gave a section another name than compilers do wants its code there: to copy the section
 * to another place or process, to unmap it, to know it by its bounds.  A branch out of it to a copy
 * elsewhere would break that; linkers do not fold over sections either.  The largest section is the
 * program's code, whatever its name. */
/* How far from where it runs section E is loaded (its segment's physical address, if it has one).
 */
static uint64_t load_shift(const struct elfrw_image *img, const struct icf_exec *e)
{
	for (uint32_t p = 0; p < img->n_phdrs; p++) {
		const Elf64_Phdr *ph = &img->phdr[p];
		if (ph->p_type == PT_LOAD && ph->p_paddr && e->start - ph->p_vaddr < ph->p_memsz)
			return ph->p_paddr - ph->p_vaddr;
	}
	return 0;
}

static void find_delimited(struct icf_program *prog)
{
	const struct elfrw_image *img = prog->img;
	const struct icf_exec *most = prog->exec.data;
	for (size_t k = 0; k < prog->exec.len; k++)
		if (prog->exec.data[k].end - prog->exec.data[k].start > most->end - most->start)
			most = &prog->exec.data[k];
	for (size_t k = 0; k < prog->exec.len; k++) {
		struct icf_exec *e = &prog->exec.data[k];
		const char *name = img->section[e->shndx].name;
		e->named = strcmp(name, ".text") != 0 && name[0] != '.';
		/* Code that is copied before it runs is not there before. */
		e->apart = e->named || (e != most && !is_usual(name)) ||
			   load_shift(img, e) != load_shift(img, most);
	}
}

/* Symbols in a section whose number does not fit into st_shndx have it in a section of this type.
 * No linker writes one for a program, short of 65,280 output sections. */
static struct elfrw_err *refuse_far_sections(const struct elfrw_image *img)
{
	for (uint32_t i = 1; i < img->n_sections; i++)
		if (img->section[i].hdr.sh_type == SHT_SYMTAB_SHNDX)
			return elfrw_error_at(img->section[i].name, 0,
					      "more than 65,279 sections are not supported");
	return NULL;
}

struct elfrw_err *icf_load_symbols(struct icf_program *prog)
{
	ELFRW_TRY(refuse_far_sections(prog->img));
	ELFRW_TRY(find_exec_sections(prog));
	find_delimited(prog);
	const struct elfrw_image *img = prog->img;
	struct mappings mapping = { 0 };
	struct elfrw_err *err = NULL;
	if (img->symtab)
		err = read_table(prog, img->symtab, 0, &mapping);
	else if (img->dynsym)
		err = read_table(prog, img->dynsym, ICF_IN_DYNSYM, &mapping);
	if (prog->sym.len)
		qsort(prog->sym.data, prog->sym.len, sizeof *prog->sym.data, symbol_order);
	if (mapping.v.len)
		drop_mappings(prog);
	if (!err)
		err = find_data(prog, &mapping);
	VEC_FREE(&mapping.v);
	return err;
}
