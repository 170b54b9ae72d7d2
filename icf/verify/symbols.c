/* symbols.c: every symbol must still be there, with the present value of its code or data. */
#include "icf/verify/state.h"
#include "elfrw/arch/symbol.h"
#include "elfrw/symtab.h"
#include <stdlib.h>
#include <string.h>

/* VA is an address of IN in no unit of section E.  The bounds of its image in OUT: the images of
 * its neighbours. */
static void between(const struct icf_vclaim *c, const struct icf_vexec *e, uint64_t va,
		    uint64_t *lo, uint64_t *hi)
{
	*lo = e->new;
	*hi = e->new_end;
	for (uint32_t i = e->unit; i < e->unit + e->n_units; i++) {
		const struct icf_vunit *u = &c->unit.data[i];
		if ((u->flags & ICF_V_FOLDED) || u->old == u->end)
			continue;
		if (u->end <= va)
			*lo = u->body + (u->end - u->old);
		else {
			*hi = u->body;
			return;
		}
	}
}

struct want {
	uint64_t lo, hi;      /* value */
	uint64_t size, size2; /* either is right */
	uint32_t shared; /* the unit that begins here, if others share its code; else ICF_V_NONE */
	uint32_t code; /* the section of OUT with its code, if that is not the image of its section;
			  else 0 */
	bool folded;   /* SIZE is that of a second name of shared code */
	bool mapping;  /* a mapping symbol: it names no function, and has no size */
	bool untyped;  /* a function's name without a size may be STT_NOTYPE: a file that was
			  folded in two steps has names of both forms */
};

/* The symbols of shared code in a table, by the unit that stands for it. */
enum {
	BODY_OWN = 1,
	BODY_OTHER = 2,
	BODY_SIZED = 4
}; /* BODY_OWN: IN has a name for this very unit; BODY_SIZED: one of OUT's has a size */

static bool names_code(const Elf64_Sym *s)
{
	unsigned type = ELF64_ST_TYPE(s->st_info);
	return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
}

/* Is VA in the ELF header or the program headers of IN? */
static bool is_header(const struct icf_vclaim *c, uint64_t va)
{
	for (uint32_t p = 0; p < c->in.n_phdrs; p++) {
		const Elf64_Phdr *ph = &c->in.phdr[p];
		if (ph->p_type == PT_LOAD && ph->p_offset == 0 &&
		    va - ph->p_vaddr < c->in.ehdr.e_phoff + c->in.n_phdrs * sizeof *ph)
			return true;
	}
	return false;
}

/* The symbols of a table of IN. */
struct table {
	bool dynamic;
	uint8_t *body; /* by unit: BODY_... */
};

/* The size of symbol S at unit X. */
static void want_size(const struct icf_vclaim *c, const struct icf_vunit *x, const Elf64_Sym *s,
		      const struct table *t, struct want *w)
{
	bool start = s->st_value == x->old, folded = x->flags & ICF_V_FOLDED;
	uint64_t whole = x->end - x->old;
	if (start && !x->thunk && x->kept < c->unit.len && c->unit.data[x->kept].shared &&
	    names_code(s) && !w->mapping)
		w->shared = x->kept;
	if (folded && start && x->thunk &&
	    (ELF64_ST_TYPE(s->st_info) != STT_NOTYPE || s->st_size)) {
		w->size = w->size2 = x->thunk;
	} else if (folded) {
		/* The kept function's symbol has the size, if the function has a symbol; otherwise
		 * a folded function's symbol does.  The others of .dynsym are a byte shorter. */
		w->size = w->size2 = t->dynamic && s->st_size ? s->st_size - 1 : 0;
		w->folded = true;
		w->untyped = !t->dynamic && !c->typed && ELF64_ST_TYPE(s->st_info) == STT_FUNC;
		if (w->shared != ICF_V_NONE && !(t->body[w->shared] & BODY_OWN))
			w->size2 = s->st_size && s->st_size < whole ? s->st_size : whole;
	} else if (!folded && w->shared != ICF_V_NONE && !s->st_size) {
		/* Without a size of its own it would be one of many there.  If another symbol has a
		 * size, it needs none. */
		w->size2 = whole;
	}
}

static void want_code(const struct icf_vclaim *c, const struct icf_vexec *e, const Elf64_Sym *s,
		      const struct table *t, struct want *w)
{
	unsigned type = ELF64_ST_TYPE(s->st_info);
	if (type == STT_TLS)
		return;
	uint32_t u = icf_v_find(c, s->st_value);
	if (type == STT_SECTION)
		w->lo = w->hi = e->new;
	else if (u != ICF_V_NONE && s->st_value >= e->old && s->st_value < e->old_end) {
		const struct icf_vunit *x = &c->unit.data[u];
		bool start = s->st_value == x->old;
		w->lo = w->hi = start ? x->entry : x->body + (s->st_value - x->old);
		if (w->lo < e->new || w->lo >= e->new_end)
			w->code = elfrw_image_section_at(&c->out, w->lo);
		want_size(c, x, s, t, w);
	} else if (s->st_value == e->old_end)
		w->lo = w->hi = e->new_end;
	else if (s->st_value == e->old)
		w->lo = w->hi = e->new;
	else if (is_header(c, s->st_value))
		return; /* __ehdr_start belongs to an arbitrary section: gold uses the first one,
			   which may be code */
	else if ((s->st_value < e->old || s->st_value > e->old_end) &&
		 !icf_v_in_exec(c, s->st_value))
		return; /* lld -N: in no segment, at the place of the headers, although these are
			   not loaded */
	else
		between(c, e, s->st_value, &w->lo, &w->hi);
}

/* Is ADDR in section SH, or its end? */
static bool touches(const Elf64_Shdr *sh, uint64_t addr)
{
	return (sh->sh_flags & SHF_ALLOC) && addr >= sh->sh_addr &&
	       addr - sh->sh_addr <= sh->sh_size;
}

/* The number says it, except that numbers in .dynsym may be those of an older file.  Then the
 * address decides, unless it is a place in the bytes of an unloaded section. */
uint32_t icf_v_stands_in(const struct icf_vclaim *c, const Elf64_Sym *s, bool dynamic)
{
	uint32_t n = s->st_shndx;
	unsigned type = ELF64_ST_TYPE(s->st_info);
	if (n >= SHN_LORESERVE || type == STT_TLS || type == STT_SECTION)
		return n;
	const Elf64_Shdr *own = n < c->in.n_sections ? &c->in.section[n].hdr : NULL;
	bool loaded = own && (own->sh_flags & SHF_ALLOC);
	if (loaded && touches(own, s->st_value) &&
	    (!s->st_size || s->st_value - own->sh_addr < own->sh_size))
		return n;
	if (own && !loaded && !dynamic)
		return n;
	uint64_t end = s->st_value + s->st_size;
	if (own && !loaded && type == STT_OBJECT && s->st_value >= own->sh_addr &&
	    end >= s->st_value && end - own->sh_addr <= own->sh_size &&
	    s->st_value - own->sh_addr < own->sh_size)
		return n;
	for (uint32_t i = 1; i < c->in.n_sections; i++) {
		const Elf64_Shdr *sh = &c->in.section[i].hdr;
		bool zeros = (sh->sh_flags & SHF_TLS) && sh->sh_type == SHT_NOBITS;
		if (touches(sh, s->st_value) && s->st_value - sh->sh_addr < sh->sh_size && !zeros)
			return i;
	}
	return n;
}

/* Symbol Y of OUT's .dynsym has lost its own section.  May it name the section that it names?  It
 * must be defined, and name the section that holds its address, if there is one. */
static bool may_name(const struct icf_vclaim *c, const Elf64_Sym *y)
{
	uint32_t k = y->st_shndx;
	if (k == SHN_UNDEF || k >= c->out.n_sections || k >= SHN_LORESERVE)
		return false;
	const Elf64_Shdr *own = &c->out.section[k].hdr;
	bool tls = ELF64_ST_TYPE(y->st_info) == STT_TLS;
	for (uint32_t i = 1; i < c->out.n_sections; i++) {
		const Elf64_Shdr *sh = &c->out.section[i].hdr;
		bool is_tls = (sh->sh_flags & SHF_TLS) && (sh->sh_flags & SHF_ALLOC);
		if (tls ? is_tls
			: touches(sh, y->st_value) && !(is_tls && sh->sh_type == SHT_NOBITS))
			return tls ? (own->sh_flags & SHF_TLS) != 0 : touches(own, y->st_value);
	}
	/* The bytes of an unloaded section, such as rustc's metadata, have a symbol of the same
	 * size. */
	for (uint32_t i = 1; i < c->out.n_sections && !y->st_value && y->st_size; i++) {
		const Elf64_Shdr *sh = &c->out.section[i].hdr;
		if (!(sh->sh_flags & SHF_ALLOC) && sh->sh_size == y->st_size)
			return !(own->sh_flags & SHF_ALLOC) && own->sh_size == y->st_size;
	}
	return true;
}

static bool is_end_of_code(const char *name)
{
	return strcmp(name, "etext") == 0 || strcmp(name, "_etext") == 0 ||
	       strcmp(name, "__etext") == 0;
}

/* A symbol for the end of the code, at VA of no section of code. */
static void want_end_of_code(const struct icf_vclaim *c, uint64_t va, struct want *w)
{
	uint64_t to;
	if (icf_v_code(c, va, &to) || to != va) {
		w->lo = w->hi = to;
		return;
	}
	for (size_t i = 0; i < c->exec.len; i++)
		if (va > c->exec.data[i].old && va < c->exec.data[i].old_end)
			between(c, &c->exec.data[i], va, &w->lo, &w->hi);
}

/* A symbol OFF bytes after the start of IN's .eh_frame.  FRAME: OUT's .eh_frame. */
static void want_frame_record(const struct icf_vclaim *c, const struct elfrw_section *frame,
			      uint64_t off, struct want *w)
{
	uint64_t start = frame->hdr.sh_addr;
	size_t n_ends = c->cfi_out.terminator.len;
	for (size_t i = 0; i < c->cfi_in.terminator.len && n_ends; i++)
		if (c->cfi_in.terminator.data[i] == off)
			w->lo = w->hi =
				start + c->cfi_out.terminator.data[i < n_ends ? i : n_ends - 1];
	if (!c->cfi_out.fde.len)
		return;
	for (size_t i = 0; i < c->cfi_in.fde.len; i++) {
		const struct dwr_fde *in = &c->cfi_in.fde.data[i];
		if (in->off != off)
			continue;
		uint64_t pc;
		uint32_t u = icf_v_find(c, in->pc_begin), f = ICF_V_NONE;
		if (u != ICF_V_NONE && !(c->unit.data[u].flags & ICF_V_FOLDED) &&
		    icf_v_code(c, in->pc_begin, &pc))
			f = dwr_cfi_find(&c->cfi_out, pc);
		if (f != ICF_V_NONE)
			w->lo = w->hi = start + c->cfi_out.fde.data[f].off;
	}
}

/* Symbol S in the data of IN's section A, which is B in OUT. */
static void want_data(const struct icf_vclaim *c, const struct elfrw_section *a,
		      const struct elfrw_section *b, const Elf64_Sym *s, struct want *w)
{
	if (!(a->hdr.sh_flags & SHF_ALLOC) || ELF64_ST_TYPE(s->st_info) == STT_TLS)
		return;
	/* __ehdr_start belongs to some section, too. */
	if (s->st_value < a->hdr.sh_addr || s->st_value > a->hdr.sh_addr + a->hdr.sh_size)
		return;
	uint64_t off = s->st_value - a->hdr.sh_addr;
	if (!icf_v_is_unwind_name(a->name) || !off) {
		w->lo = w->hi = off + b->hdr.sh_addr;
		return;
	}
	/* Records move when others go: __FRAME_END__ stands on the end mark, others anywhere in the
	 * table. */
	w->lo = b->hdr.sh_addr;
	w->hi = b->hdr.sh_addr + b->hdr.sh_size;
	if (strcmp(a->name, ".eh_frame") == 0)
		want_frame_record(c, b, off, w);
}

/* The required symbol in OUT for S of IN. */
static struct want wanted(const struct icf_vclaim *c, const Elf64_Sym *s, const char *name,
			  const struct table *t)
{
	struct want w = { .lo = s->st_value,
			  .hi = s->st_value,
			  .size = s->st_size,
			  .size2 = s->st_size,
			  .shared = ICF_V_NONE,
			  .mapping = !t->dynamic &&
				     elfrw_symbol_is_mapping(&c->in.ehdr, ELF64_ST_TYPE(s->st_info),
							     name) };
	if (s->st_shndx == SHN_UNDEF) {
		/* In programs with fixed addresses: the PLT entry that is the function's address in
		 * the whole process. */
		uint64_t to;
		if (ELF64_ST_TYPE(s->st_info) != STT_TLS && icf_v_code(c, s->st_value, &to))
			w.lo = w.hi = to;
		return w;
	}
	uint32_t shndx = icf_v_stands_in(c, s, t->dynamic);
	const struct icf_vexec *e = icf_v_exec_of(c, shndx);
	if (e) {
		want_code(c, e, s, t, &w);
		return w;
	}
	if (is_end_of_code(name)) {
		want_end_of_code(c, s->st_value, &w);
		return w;
	}
	/* Only for code is the address better evidence than the number.  Marks of merged unwind
	 * tables (.eh_frame_seg) lie outside of the section that they name, and do not change. */
	if (!t->dynamic && shndx != s->st_shndx && s->st_shndx < c->in.n_sections &&
	    (c->in.section[s->st_shndx].hdr.sh_flags & SHF_ALLOC))
		return w;
	if (shndx < c->in.n_sections && c->to_out[shndx])
		want_data(c, &c->in.section[shndx], &c->out.section[c->to_out[shndx]], s, &w);
	return w;
}

/* Two symbol tables, and the symbol of each that is compared. */
struct symbol_pair {
	const struct elfrw_section *a, *b; /* of IN and OUT */
	Elf64_Sym x, y;
	size_t number; /* of Y */
};

/* Do type, binding and section agree? */
static bool check_kind(const struct icf_vclaim *c, struct icf_vlog *log,
		       const struct symbol_pair *s, const char *name, const struct want *w)
{
	const Elf64_Sym *x = &s->x, *y = &s->y;
	const bool label = w->untyped && !y->st_size && ELF64_ST_TYPE(y->st_info) == STT_NOTYPE;
	const unsigned info =
		label ? ELF64_ST_INFO(ELF64_ST_BIND(x->st_info), STT_NOTYPE) : x->st_info;
	bool dynamic = s->a->hdr.sh_type == SHT_DYNSYM;
	uint32_t shndx = x->st_shndx;
	if (shndx != SHN_UNDEF && shndx < c->in.n_sections && shndx < SHN_LORESERVE)
		shndx = c->to_out[shndx];
	if (w->code && w->code < SHN_LORESERVE)
		shndx = w->code;
	bool gone = dynamic && x->st_shndx != SHN_UNDEF && x->st_shndx < SHN_LORESERVE &&
		    (x->st_shndx >= c->in.n_sections || !shndx);
	if (info == y->st_info && x->st_other == y->st_other &&
	    (gone && !w->code ? may_name(c, y) : shndx == y->st_shndx))
		return true;
	icf_vlog_bad(
		log, ICF_VC_SYMBOL,
		"symbol: %s of %s: expected type, binding and section 0x%x, 0x%x, %u, found 0x%x, 0x%x, %u",
		name, s->a->name, info, x->st_other, shndx, y->st_info, y->st_other, y->st_shndx);
	return false;
}

static void check_symbol(const struct icf_vclaim *c, struct icf_vlog *log,
			 const struct symbol_pair *s, const struct table *t)
{
	const struct elfrw_section *a = s->a;
	const Elf64_Sym *x = &s->x, *y = &s->y;
	const char *p = elfrw_image_string(&c->in, a->hdr.sh_link, x->st_name),
		   *q = elfrw_image_string(&c->out, s->b->hdr.sh_link, y->st_name);
	if (!p)
		p = "";
	if (!q || strcmp(p, q) != 0) {
		icf_vlog_bad(log, ICF_VC_SYMBOL, "name: %s symbol %zu: expected %s, found %s",
			     a->name, s->number, p, q ? q : "none");
		return;
	}
	struct want w = wanted(c, x, p, t);
	if (!check_kind(c, log, s, p, &w))
		return;
	if (w.shared != ICF_V_NONE && y->st_size && !(w.folded && y->st_size == w.size)) {
		uint8_t *body = &t->body[w.shared];
		if (*body & BODY_SIZED && !(*body & BODY_OWN))
			icf_vlog_bad(
				log, ICF_VC_SYMBOL,
				"size: %s of %s (0x%llx -> 0x%llx): expected %llu, another symbol there has the whole, found %llu",
				p, a->name, ICF_VX(x->st_value), ICF_VX(w.lo), ICF_VX(w.size),
				ICF_VX(y->st_size));
		*body |= BODY_SIZED;
	}
	if (y->st_value < w.lo || y->st_value > w.hi)
		icf_vlog_bad(log, ICF_VC_SYMBOL,
			     "value: %s of %s (0x%llx -> 0x%llx): expected 0x%llx, found 0x%llx", p,
			     a->name, ICF_VX(x->st_value), ICF_VX(w.lo), ICF_VX(w.lo),
			     ICF_VX(y->st_value));
	else if (y->st_size != w.size && y->st_size != w.size2)
		icf_vlog_bad(log, ICF_VC_SYMBOL,
			     "size: %s of %s (0x%llx -> 0x%llx): expected %llu, found %llu", p,
			     a->name, ICF_VX(x->st_value), ICF_VX(w.lo), ICF_VX(w.size),
			     ICF_VX(y->st_size));
}

/* Records which shared code the symbols of IN's table A name. */
static void find_bodies(const struct icf_vclaim *c, const struct elfrw_section *a,
			const struct table *t)
{
	for (struct elfrw_symbols it = elfrw_symbols(a, 1); elfrw_symbols_next(&it);) {
		const Elf64_Sym x = it.sym;
		const char *p = elfrw_image_string(&c->in, a->hdr.sh_link, x.st_name);
		struct want w = wanted(c, &x, p ? p : "", t);
		if (w.shared != ICF_V_NONE)
			t->body[w.shared] |=
				icf_v_find(c, x.st_value) == w.shared ? BODY_OWN : BODY_OTHER;
	}
}

/* A symbol without a size extends to the next one, over functions without symbols.  So one of the
 * symbols of shared code must have a size. */
static void check_bodies(const struct icf_vclaim *c, struct icf_vlog *log,
			 const struct elfrw_section *a, const uint8_t *body)
{
	for (uint32_t u = 0; u < c->unit.len; u++) {
		const struct icf_vunit *x = &c->unit.data[u];
		if (body[u] && !(body[u] & BODY_SIZED))
			icf_vlog_bad(
				log, ICF_VC_SYMBOL,
				"size: the names in %s of shared code (0x%llx -> 0x%llx): expected one with a size, found none",
				a->name, ICF_VX(x->old), ICF_VX(x->body));
	}
}

/* Does X of .symtab name code that was removed?  The name goes with the code. */
static bool is_removed(const struct icf_vclaim *c, const Elf64_Sym *x)
{
	return names_code(x) && icf_v_exec_of(c, icf_v_stands_in(c, x, false)) &&
	       icf_v_removed(c, icf_v_find(c, x->st_value));
}

static void check_table(const struct icf_vclaim *c, struct icf_vlog *log,
			const struct elfrw_section *a, const struct elfrw_section *b,
			const struct table *t)
{
	size_t n = elfrw_symbols_count(a), m = elfrw_symbols_count(b), k = 1, locals = 1;
	if (n && (!m || memcmp(a->data, b->data, sizeof(Elf64_Sym)) != 0))
		icf_vlog_bad(log, ICF_VC_SYMBOL,
			     "symbol: %s, number 0: expected zeros, found others", a->name);
	for (struct elfrw_symbols it = elfrw_symbols(a, 1); elfrw_symbols_next(&it);) {
		struct symbol_pair s = { .a = a, .b = b, .x = it.sym, .number = k };
		/* Symbols of .symtab go with their section.  None goes from .dynsym, where numbers
		 * prove nothing. */
		bool goes = a->hdr.sh_type != SHT_DYNSYM && s.x.st_shndx != SHN_UNDEF &&
			    s.x.st_shndx < c->in.n_sections;
		if (goes && (!c->to_out[s.x.st_shndx] || is_removed(c, &s.x)))
			continue;
		log->checked[ICF_VC_SYMBOL]++;
		if (!elfrw_symbol(b, k, &s.y)) {
			k++;
			continue;
		}
		/* Old GNU linkers for AArch64 leave local symbols behind the sh_info of .dynsym:
		 * these may be there still. */
		bool astray = ELF64_ST_BIND(s.x.st_info) == STB_LOCAL && it.index >= a->hdr.sh_info;
		if (ELF64_ST_BIND(s.y.st_info) == STB_LOCAL)
			locals = astray ? locals : k + 1;
		else if (k < b->hdr.sh_info)
			icf_vlog_bad(
				log, ICF_VC_SYMBOL,
				"order: %s symbol %zu: expected a local one before sh_info %u, found another",
				b->name, k, b->hdr.sh_info);
		check_symbol(c, log, &s, t);
		k++;
	}
	if (k != m)
		icf_vlog_bad(log, ICF_VC_SYMBOL, "count: %s: expected %zu symbols, found %zu",
			     a->name, k, m);
	if (b->hdr.sh_info > m && a->hdr.sh_info <= n)
		icf_vlog_bad(log, ICF_VC_SYMBOL,
			     "order: %s: expected a sh_info of at most %zu, found %u", b->name, m,
			     b->hdr.sh_info);
	/* tcc counts none of .dynsym's local symbols, not even number 0. */
	bool uncounted = !a->hdr.sh_info && !b->hdr.sh_info && locals == 1;
	if (locals > b->hdr.sh_info && !uncounted)
		icf_vlog_bad(
			log, ICF_VC_SYMBOL,
			"order: %s: expected all local symbols before sh_info %u, found one at %zu",
			b->name, b->hdr.sh_info, locals - 1);
}

static struct elfrw_err *check_table_of(const struct icf_vclaim *c, struct icf_vlog *log,
					const struct elfrw_section *a,
					const struct elfrw_section *b)
{
	uint8_t *body = calloc(c->unit.len + 1, 1);
	if (!body)
		return &elfrw_err_nomem;
	const struct table t = { a->hdr.sh_type == SHT_DYNSYM, body };
	find_bodies(c, a, &t);
	check_table(c, log, a, b, &t);
	check_bodies(c, log, a, body);
	free(body);
	return NULL;
}

struct elfrw_err *icf_v_check_symbols(const struct icf_vclaim *c, struct icf_vlog *log)
{
	for (uint32_t i = 1; i < c->in.n_sections; i++) {
		const struct elfrw_section *a = &c->in.section[i];
		if (!elfrw_holds_symbols(a))
			continue;
		const struct elfrw_section *b = c->to_out[i] ? &c->out.section[c->to_out[i]] : NULL;
		if (!b || !b->data)
			icf_vlog_bad(log, ICF_VC_SYMBOL,
				     "table: %s: expected in the output, found nothing", a->name);
		else
			ELFRW_TRY(check_table_of(c, log, a, b));
	}
	return NULL;
}
