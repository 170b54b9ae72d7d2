/* perf_address.c: see perf_address.h.
 *
 * `perf script` shows an address for a frame.  It depends on perf's version and on the presence of
 * a call chain: it is the address in the process or (in call chains, since Linux 4.3) the offset in
 * the file.  The difference to the address as linked is the same for a whole mapping.  A known
 * difference is used if the function of that name is there, OFFSET bytes before if the offset is
 * shown.  Otherwise all functions of the name are tried, and those that make the difference whole
 * pages count.
 *
 * Cost: two binary searches while differences are known; one pass over the symbols for a new one.
 * Names are demangled only for symbols at the right place. */
#include "icf/trace/perf_address.h"
#include "dwarf/stack/callchain.h"
#include "dwarf/demangle/demangle.h"
#include "dwarf/symbolize/symbolize.h"
#include "elfrw/arch/arch.h"
#include "elfrw/arch/machine.h"
#include "elfrw/base/search.h"
#include "elfrw/symtab.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SCANS 256 /* unsuccessful searches before a file is given up */
#define MAX_BACK  64  /* symbols before an address that may hold it */

static int symbol_order(const void *a, const void *b)
{
	const struct icf_perf_symbol *x = a, *y = b;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static struct elfrw_err *read_symbols(struct icf_perf_module *m)
{
	const struct elfrw_image *img = &m->code;
	uint32_t shndx = img->symtab;
	/* A stripped file may have some of the symbols; its debug file has all. */
	if (m->debug.symtab && (!shndx || m->debug.section[m->debug.symtab].hdr.sh_size >
						  img->section[shndx].hdr.sh_size)) {
		img = &m->debug;
		shndx = img->symtab;
	} else if (!shndx)
		shndx = img->dynsym;
	const struct elfrw_section *sec = shndx ? &img->section[shndx] : NULL;
	for (struct elfrw_symbols it = elfrw_symbols(sec, 1); elfrw_symbols_next(&it);) {
		const Elf64_Sym s = it.sym;
		unsigned type = ELF64_ST_TYPE(s.st_info);
		if (s.st_shndx == SHN_UNDEF ||
		    (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE))
			continue;
		const char *name = elfrw_image_string(img, sec->hdr.sh_link, s.st_name);
		struct icf_perf_symbol *p = name && *name ? VEC_PUSH(&m->symbol) : NULL;
		if (p)
			*p = (struct icf_perf_symbol){ s.st_value, s.st_size, name };
		else if (name && *name)
			return &elfrw_err_nomem;
	}
	if (m->symbol.len)
		qsort(m->symbol.data, m->symbol.len, sizeof *m->symbol.data, symbol_order);
	return NULL;
}

static struct elfrw_err *open_parts(struct icf_perf_module *m,
				    const struct dwr_sym_options *options)
{
	ELFRW_TRY(elfrw_image_open(&m->code, m->path));
	ELFRW_TRY(dwr_sym_open(m->path, options, &m->sym));
	bool apart;
	const struct elfrw_image *debug = dwr_sym_debug_image(m->sym, &apart);
	if (apart) {
		m->debug = *debug;
		m->debug.arch = m->code.arch;
		if (m->debug.ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
		    !elfrw_same_arch(&m->debug.ehdr, &m->code.ehdr))
			return elfrw_error("its separate debug file is of another machine");
	}
	/* Most files have no tables; this check reads none. */
	if (!elfrw_image_section(apart ? &m->debug : &m->code, ".debug_icfold"))
		return elfrw_error("no section .debug_icfold");
	ELFRW_TRY(dwr_callchain_open(&m->code, apart ? &m->debug : NULL, dwr_sym_debug_note(m->sym),
				     &m->cc));
	m->note = dwr_sym_note(m->sym);
	ELFRW_TRY(dwr_sym_complete(m->sym));
	if (!m->note || !dwr_callchain_note(m->cc))
		return elfrw_error("no section .debug_icfold that can be read");
	return read_symbols(m);
}

struct elfrw_err *icf_perf_open(const char *path, const struct dwr_sym_options *options, bool sure,
				struct icf_perf_module **ret)
{
	struct icf_perf_module *m = calloc(1, sizeof *m);
	*ret = NULL;
	if (!m || !(m->path = strdup(path))) {
		free(m);
		return &elfrw_err_nomem;
	}
	struct elfrw_err *err = open_parts(m, options);
	if (!err) {
		*ret = m;
		return NULL;
	}
	if (!sure && err != &elfrw_err_nomem) {
		elfrw_err_free(err);
		err = NULL;
	}
	icf_perf_close(m);
	return err;
}

void icf_perf_close(struct icf_perf_module *m)
{
	if (!m)
		return;
	for (unsigned f = 0; f < ICF_PERF_FORMS; f++) {
		for (size_t i = 0; i < m->n_name_slots[f]; i++)
			free(m->name[f][i].text);
		free(m->name[f]);
	}
	VEC_FREE(&m->symbol);
	free(m->shift);
	dwr_callchain_close(m->cc);
	dwr_sym_close(m->sym);
	if (m->code.base)
		elfrw_image_close(&m->code);
	free(m->path);
	free(m);
}

/* ---- names ---- */

static char *spell(const char *linkage, enum icf_perf_form form)
{
	char *d = NULL;
	if (form != ICF_PERF_LINKAGE &&
	    !dwr_demangle(linkage,
			  form == ICF_PERF_FULL ? DWR_SPELLING_GNU : DWR_SPELLING_GNU_SHORT, &d))
		return NULL;
	return d ? d : strdup(linkage);
}

static size_t name_slot(const char *linkage, size_t n_slots)
{
	return (((uintptr_t)linkage >> 1) * 0x9e3779b97f4a7c15) >> 20 & (n_slots - 1);
}

const char *icf_perf_spell(struct icf_perf_module *m, const char *linkage, enum icf_perf_form form)
{
	size_t *n = &m->n_names[form], *slots = &m->n_name_slots[form];
	if (form == ICF_PERF_LINKAGE || linkage[0] != '_')
		return linkage;
	if (2 * (*n + 1) > *slots) {
		size_t more = *slots ? 2 * *slots : 256;
		struct icf_perf_name *t = calloc(more, sizeof *t);
		if (!t)
			return NULL;
		for (size_t i = 0; i < *slots; i++) {
			if (!m->name[form][i].linkage)
				continue;
			size_t k = name_slot(m->name[form][i].linkage, more);
			while (t[k].linkage)
				k = (k + 1) & (more - 1);
			t[k] = m->name[form][i];
		}
		free(m->name[form]);
		m->name[form] = t;
		*slots = more;
	}
	size_t k = name_slot(linkage, *slots);
	struct icf_perf_name *t = m->name[form];
	while (t[k].linkage && t[k].linkage != linkage)
		k = (k + 1) & (*slots - 1);
	if (!t[k].linkage) {
		char *text = spell(linkage, form);
		if (!text)
			return NULL;
		t[k] = (struct icf_perf_name){ linkage, text };
		++*n;
	}
	return t[k].text;
}

static bool ends_with(const char *s, size_t *n, const char *end)
{
	size_t k = strlen(end);
	if (*n < k || memcmp(s + *n - k, end, k))
		return false;
	*n -= k;
	return true;
}

enum icf_perf_form icf_perf_form_of(const char *name, size_t n)
{
	if (n > 2 && name[0] == '_' && (name[1] == 'Z' || name[1] == 'R' || name[1] == 'D'))
		return ICF_PERF_LINKAGE;
	while (n && name[n - 1] == ']') { /* " [clone .cold]" */
		const char *open = memrchr(name, '[', n);
		if (!open || open == name || open[-1] != ' ')
			break;
		n = (size_t)(open - 1 - name);
	}
	while (ends_with(name, &n, " const") || ends_with(name, &n, " volatile") ||
	       ends_with(name, &n, "&") || ends_with(name, &n, " "))
		;
	return n && name[n - 1] == ')' && !ends_with(name, &n, "operator()") ? ICF_PERF_FULL
									     : ICF_PERF_SHORT;
}

static bool is(const char *s, const char *name, size_t n)
{
	return s && !strncmp(s, name, n) && !s[n];
}

bool icf_perf_same_name(struct icf_perf_module *m, const char *linkage, const char *name, size_t n)
{
	if (is(linkage, name, n))
		return true;
	if (linkage[0] != '_')
		return false;
	return is(icf_perf_spell(m, linkage, ICF_PERF_SHORT), name, n) ||
	       is(icf_perf_spell(m, linkage, ICF_PERF_FULL), name, n);
}

/* ---- addresses ---- */

static size_t shift_slot(int64_t pid, size_t n_slots)
{
	return ((uint64_t)pid * 0x9e3779b97f4a7c15) >> 32 & (n_slots - 1);
}

static struct elfrw_err *learn(struct icf_perf_module *m, int64_t pid, uint64_t shift)
{
	if (2 * (m->n_shifts + 1) > m->n_shift_slots) {
		size_t more = m->n_shift_slots ? 2 * m->n_shift_slots : 64;
		struct icf_perf_shift *t = calloc(more, sizeof *t);
		if (!t)
			return &elfrw_err_nomem;
		for (size_t i = 0; i < m->n_shift_slots; i++) {
			if (!m->shift[i].used)
				continue;
			size_t k = shift_slot(m->shift[i].pid, more);
			while (t[k].used)
				k = (k + 1) & (more - 1);
			t[k] = m->shift[i];
		}
		free(m->shift);
		m->shift = t;
		m->n_shift_slots = more;
	}
	size_t k = shift_slot(pid, m->n_shift_slots);
	while (m->shift[k].used && m->shift[k].pid != pid)
		k = (k + 1) & (m->n_shift_slots - 1);
	m->n_shifts += !m->shift[k].used;
	m->shift[k] = (struct icf_perf_shift){ pid, shift, true };
	return NULL;
}

static bool learned(const struct icf_perf_module *m, int64_t pid, uint64_t *shift)
{
	if (!m->n_shift_slots)
		return false;
	size_t k = shift_slot(pid, m->n_shift_slots);
	while (m->shift[k].used && m->shift[k].pid != pid)
		k = (k + 1) & (m->n_shift_slots - 1);
	*shift = m->shift[k].shift;
	return m->shift[k].used;
}

static bool is_code(const Elf64_Phdr *p)
{
	return p->p_type == PT_LOAD && (p->p_flags & PF_X);
}

struct elfrw_err *icf_perf_mapped(struct icf_perf_module *m, int64_t pid, uint64_t start,
				  uint64_t offset)
{
	for (uint32_t i = 0; i < m->code.n_phdrs; i++) {
		const Elf64_Phdr *p = &m->code.phdr[i];
		if (is_code(p) && offset >= (p->p_offset & ~(elfrw_image_page(&m->code) - 1)) &&
		    offset < p->p_offset + p->p_filesz)
			return learn(m, pid, start - (p->p_vaddr + (offset - p->p_offset)));
	}
	return NULL;
}

bool icf_perf_offset(const struct icf_perf_module *m, uint64_t offset, uint64_t *ret)
{
	for (uint32_t i = 0; i < m->code.n_phdrs; i++) {
		const Elf64_Phdr *p = &m->code.phdr[i];
		if (is_code(p) && offset >= p->p_offset && offset - p->p_offset < p->p_filesz) {
			*ret = p->p_vaddr + (offset - p->p_offset);
			return true;
		}
	}
	return false;
}

/* Is ADDRESS in a function of the name that perf shows, at the offset that perf shows? */
static bool fits(struct icf_perf_module *m, uint64_t address, const struct icf_perf_shown *shown)
{
	uint64_t offset = shown->offset;
	uint64_t at = offset == ICF_PERF_NO_OFFSET ? address : address - offset;
	size_t lo = LOWER_BOUND(0, m->symbol.len, mid, m->symbol.data[mid].address <= at);
	for (size_t i = lo, back = 0; i-- > 0 && back < MAX_BACK;) {
		const struct icf_perf_symbol *s = &m->symbol.data[i];
		if (offset != ICF_PERF_NO_OFFSET && s->address != at)
			return false;
		if (i + 1 < lo && s->address != s[1].address)
			back++;
		if ((offset != ICF_PERF_NO_OFFSET || address - s->address < s->size) &&
		    icf_perf_same_name(m, s->name, shown->name, shown->n_name))
			return true;
	}
	return false;
}

/* Searches all functions of the name that perf shows for one that makes the shift whole pages. */
static bool search(struct icf_perf_module *m, const struct icf_perf_shown *shown, uint64_t *ret)
{
	bool found = false;
	uint64_t offset = shown->offset;
	uint64_t page = m->code.arch->page_min;
	for (size_t i = 0; i < m->symbol.len; i++) {
		const struct icf_perf_symbol *s = &m->symbol.data[i];
		uint64_t rest = (shown->ip - s->address) % page, address;
		if (offset != ICF_PERF_NO_OFFSET) {
			if ((rest - offset) % page)
				continue;
			address = s->address + offset;
		} else if (rest < s->size)
			address = s->address + rest;
		else
			continue;
		if ((found && address == *ret) ||
		    !icf_perf_same_name(m, s->name, shown->name, shown->n_name))
			continue;
		if (found || (offset == ICF_PERF_NO_OFFSET && s->size > page))
			return false;
		*ret = address;
		found = true;
	}
	return found;
}

bool icf_perf_known(struct icf_perf_module *m, const struct icf_perf_shown *s, uint64_t *ret)
{
	uint64_t shift, address;
	if (fits(m, s->ip - m->last, s))
		*ret = s->ip - m->last;
	else if (icf_perf_offset(m, s->ip, &address) && fits(m, address, s))
		*ret = address;
	else if (fits(m, s->ip, s))
		*ret = s->ip;
	else if (learned(m, s->pid, &shift) && fits(m, s->ip - shift, s))
		*ret = s->ip - shift;
	else
		return false;
	m->last = s->ip - *ret;
	return true;
}

struct elfrw_err *icf_perf_address(struct icf_perf_module *m, const struct icf_perf_shown *s,
				   uint64_t *ret, bool *found)
{
	*found = icf_perf_known(m, s, ret);
	if (*found)
		return NULL;
	*found = m->scans < MAX_SCANS && search(m, s, ret);
	if (!*found) {
		m->scans += m->scans < MAX_SCANS;
		return NULL;
	}
	m->last = s->ip - *ret;
	return learn(m, s->pid, m->last);
}
