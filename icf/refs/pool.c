/* pool.c: functions with literals.
 *
 * Compilers and assemblers put numbers and addresses that do not fit into instructions behind the
 * function that loads them, or behind a jump in it.  Mapping symbols tell where.  Such a function
 * moves and folds like any other, with its literals, if nothing but its own code knows these:
 *   - each instruction that names a literal loads from it, and from nothing else; none computes its
 *     address, stores there or leads control there, and control does not run into literals;
 *   - no other code names one, nor does anything else: a relocation, a symbol, a word of data, an
 *     exception table, the dynamic section;
 *   - all but what fills gaps is loaded whole: anything else may be code that a jump leads to;
 *   - addresses among the literals have relocations, and are references like any other;
 *   - what is no address is no distance of code either.  The assembler resolves `f - g` itself, so
 *     nothing tells.  A number that only vector registers get is none.  Any other number is none if
 *     no place that the function names, nor its own place, is that far from code.
 * Everything else stays as it was: not understood, and pinned.
 *
 * Cost: nothing if there are no data among code that may be literals.  Else each such function is
 * decoded twice, and all code once more. */
#include "icf/refs/pool.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "elfrw/symtab.h"
#include "icf/program/unit.h"
#include "icf/refs/code_reloc.h"
#include <stdlib.h>
#include <string.h>

#define MAX_SHIFT 4 /* distances count in units of up to 16 bytes */
/* Loads and places that the literals of a function are compared with, for each of its bytes: for
 * the cost to be linear.  The verifier takes more. */
#define MAX_WORK 1024

/* An instruction loads SIZE bytes at VA. */
struct load {
	uint64_t va;
	unsigned size;
	bool number; /* into a general register */
};

/* A function that may have literals. */
struct pool {
	uint32_t unit;
	uint64_t start, end; /* of both, without padding */
	uint64_t data;       /* the first literal */
	uint8_t align;       /* exponent of two: what its loads ask for */
	bool gap;            /* the literals of the next unit belong to it */
	bool bad;
};

struct finder {
	struct icf_program *prog;
	const struct elfrw_relocs *rel; /* by section */
	VEC(struct pool) pool;          /* by address */
	/* Of the current one: */
	VEC(struct load) load;
	VEC(uint64_t) base; /* code that it names */
	uint64_t used;      /* the end of the last literal that something names, or that is not 0 */
	uint64_t work;      /* loads and places that literals were compared with */
};

static bool is_branch(const struct elfrw_insn *in)
{
	return in->kind == ELFRW_INSN_CALL || in->kind == ELFRW_INSN_JMP ||
	       in->kind == ELFRW_INSN_JCC;
}

static const uint8_t *bytes_at(const struct icf_program *prog, const struct icf_unit *u,
			       uint64_t va)
{
	const struct icf_exec *e = &prog->exec.data[u->sec];
	return prog->img->section[e->shndx].data + (va - e->start);
}

static bool in_data(const struct icf_program *prog, const struct pool *p, uint64_t va)
{
	return va >= p->start && va < p->end && icf_data_end(prog, va) != va;
}

/* The function loads SIZE bytes at VA, which is among its literals. */
static bool add_load(struct finder *f, struct pool *p, uint64_t va, unsigned size, bool number)
{
	struct load *slot = VEC_PUSH(&f->load);
	if (!slot)
		return false;
	*slot = (struct load){ va, size, number };
	uint64_t end = icf_data_end(f->prog, va);
	p->bad |= size > (end < p->end ? end : p->end) - va;
	uint8_t align = size ? (uint8_t)__builtin_ctz(size) : 0;
	p->align = align > p->align ? align : p->align;
	f->used = va + size > f->used ? va + size : f->used;
	return true;
}

static bool add_base(struct finder *f, uint64_t va)
{
	uint64_t *slot = icf_in_exec(f->prog, va) ? VEC_PUSH(&f->base) : NULL;
	if (slot)
		*slot = va;
	return slot || !icf_in_exec(f->prog, va);
}

/* The only relocation at VA, or NULL. */
static const Elf64_Rela *only_reloc(const struct elfrw_relocs *rel, uint64_t va)
{
	size_t r = elfrw_relocs_from(rel, va);
	bool one = r < rel->n && rel->rela[r].r_offset == va &&
		   (r + 1 == rel->n || rel->rela[r + 1].r_offset != va);
	return one ? &rel->rela[r] : NULL;
}

static bool symbol_in_code(const struct icf_program *prog, const Elf64_Sym *sym)
{
	return sym->st_shndx != SHN_UNDEF && sym->st_shndx < prog->img->n_sections &&
	       (prog->img->section[sym->st_shndx].hdr.sh_flags & SHF_EXECINSTR);
}

/* IN, at VA, is the high half of an address.  If its low half could name a literal, a relocation
 * must tell whether it does. */
static bool is_known_half(const struct finder *f, const struct pool *p, uint32_t sec, uint64_t va,
			  const struct elfrw_insn *in)
{
	uint64_t from, to;
	elfrw_form_span(&f->prog->arch->form[f->prog->arch->pcrel_form(in)], in->target, &from,
			&to);
	if (p->end <= from || p->data >= to)
		return true;
	const Elf64_Rela *r = only_reloc(&f->rel[sec], va);
	Elf64_Sym sym;
	uint64_t told;
	return r && elfrw_reloc_symbol(f->prog->img, f->rel[sec].symtab, r, &sym) &&
	       (symbol_in_code(f->prog, &sym)
			? icf_tells_half(f->prog, sec, &f->rel[sec], va, &told)
			: sym.st_shndx != SHN_UNDEF && !icf_is_doubted(f->prog, sec, va));
}

/* The relocation R of the instruction at R's place names TO, which is among the literals. */
static bool add_named(struct finder *f, struct pool *p, uint32_t sec, const Elf64_Rela *r,
		      uint64_t to)
{
	const struct icf_program *prog = f->prog;
	struct elfrw_reloc_desc d = prog->arch->reloc((uint32_t)ELF64_R_TYPE(r->r_info));
	const uint8_t *code = bytes_at(prog, &prog->unit.data[p->unit], r->r_offset);
	unsigned size;
	uint64_t told;
	bool number;
	/* A field that counts from its own place tells by itself. */
	if (d.form && prog->arch->form[d.form].base == ELFRW_BASE_PLACE)
		return true;
	if (!d.form || !icf_tells_half(prog, sec, &f->rel[sec], r->r_offset, &told))
		p->bad = true;
	else if (d.kind == ELFRW_RELOC_LOW && prog->arch->reads(code, &size, &number))
		return add_load(f, p, to, size, number);
	else if (d.kind != ELFRW_RELOC_PCREL)
		p->bad = true;
	return true;
}

/* Reads the instruction at VA of section SEC. */
static bool read_insn(struct finder *f, struct pool *p, uint32_t sec, uint64_t va,
		      const struct elfrw_insn *in)
{
	const struct icf_program *prog = f->prog;
	const uint8_t *code = bytes_at(prog, &prog->unit.data[p->unit], va);
	const struct elfrw_relocs *rel = &f->rel[sec];
	if (in->pcrel_size && icf_is_half(prog->arch, in))
		p->bad |= !is_known_half(f, p, sec, va, in);
	else if (in->pcrel_size && in_data(prog, p, in->target)) {
		unsigned size;
		bool number;
		if (is_branch(in) || (in->flags & ELFRW_INSN_LEA) ||
		    !prog->arch->reads(code, &size, &number))
			p->bad = true;
		else if (!add_load(f, p, in->target, size, number))
			return false;
	} else if (in->pcrel_size && (in->flags & ELFRW_INSN_LEA) && !add_base(f, in->target))
		return false;
	for (size_t r = elfrw_relocs_from(rel, va);
	     r < rel->n && rel->rela[r].r_offset < va + in->len; r++) {
		Elf64_Sym sym;
		if (!elfrw_reloc_symbol(prog->img, rel->symtab, &rel->rela[r], &sym))
			continue;
		uint64_t to = sym.st_value + (uint64_t)rel->rela[r].r_addend;
		struct elfrw_reloc_desc d =
			prog->arch->reloc((uint32_t)ELF64_R_TYPE(rel->rela[r].r_info));
		if (in_data(prog, p, to) ? !add_named(f, p, sec, &rel->rela[r], to)
					 : d.kind == ELFRW_RELOC_LOW && !add_base(f, to))
			return false;
	}
	return true;
}

/* Reads the instructions; false: out of memory. */
static bool read_code(struct finder *f, struct pool *p)
{
	const struct icf_program *prog = f->prog;
	const struct icf_unit *u = &prog->unit.data[p->unit];
	bool goes_on = true;
	for (uint64_t va = p->start; va < p->end && !p->bad;) {
		struct elfrw_insn in;
		uint64_t end = icf_data_end(prog, va);
		if (end != va) {
			p->bad = goes_on || va % prog->arch->fill_size;
			va = end;
			continue;
		}
		if (!prog->arch->decode(bytes_at(prog, u, va), p->end - va, va, &in) ||
		    (in.flags & ELFRW_INSN_LONG_CALL)) {
			/* Padding before literals. */
			p->bad = goes_on || elfrw_get32(bytes_at(prog, u, va)) != 0;
			va += prog->arch->fill_size;
			continue;
		}
		if (!read_insn(f, p, u->sec, va, &in))
			return false;
		/* Compilers end a function with a call that does not return. */
		bool call = in.kind == ELFRW_INSN_CALL || in.kind == ELFRW_INSN_CALL_IND;
		if (in.kind != ELFRW_INSN_NOP)
			goes_on = in.kind == ELFRW_INSN_OTHER || in.kind == ELFRW_INSN_JCC ||
				  (call && !u->n_fde);
		va += in.len;
	}
	return true;
}

/* Does a load read all bytes from VA up to END?  *NUMBER: a general register gets some. */
static bool is_read(const struct finder *f, uint64_t va, uint64_t end, bool *number)
{
	bool whole = false;
	*number = false;
	for (size_t k = 0; k < f->load.len; k++) {
		const struct load *l = &f->load.data[k];
		if (l->va >= end || l->va + l->size <= va)
			continue;
		*number |= l->number;
		whole |= l->va <= va && l->va + l->size >= end;
	}
	return whole;
}

/* Is the literal at VA, with a relocation, an address of 8 bytes, or a number that stays?  Then
 * *SIZE bytes are explained. */
static bool is_address(struct finder *f, struct pool *p, uint32_t sec, const Elf64_Rela *r,
		       unsigned *size)
{
	const struct icf_program *prog = f->prog;
	struct elfrw_reloc_desc d = prog->arch->reloc((uint32_t)ELF64_R_TYPE(r->r_info));
	uint64_t va = r->r_offset, room = icf_data_end(prog, va) - va;
	Elf64_Sym sym;
	if (d.kind != ELFRW_RELOC_ABS || d.form || !only_reloc(&f->rel[sec], va) ||
	    icf_is_doubted(prog, sec, va) || d.size > room || d.size > p->end - va ||
	    !elfrw_reloc_symbol(prog->img, f->rel[sec].symtab, r, &sym))
		return false;
	bool number;
	if (!is_read(f, va, va + d.size, &number))
		return false;
	*size = d.size;
	const uint8_t *at = bytes_at(prog, &prog->unit.data[p->unit], va);
	if (!prog->arch->address_form(d.size, false))
		return !symbol_in_code(prog, &sym);
	uint64_t to = elfrw_get_le(at, d.size);
	f->used = va + d.size > f->used ? va + d.size : f->used;
	if (symbol_in_code(prog, &sym) && !icf_in_exec(prog, to))
		return false;
	/* Nothing sees a part of an address. */
	for (size_t k = 0; k < f->load.len; k++) {
		const struct load *l = &f->load.data[k];
		if (l->va < va + d.size && va < l->va + l->size && icf_in_exec(prog, to) &&
		    (l->number ? l->va != va || l->size != d.size
			       : l->va > va || l->va + l->size < va + d.size))
			return false;
	}
	return !(to >= p->data && to < p->end) && add_base(f, to);
}

static bool is_own(const struct pool *p, uint64_t va)
{
	return va >= p->start && va < p->end;
}

/* Could W be the distance of code from BASE, which are not both in P? */
static bool leads_out(const struct icf_program *prog, const struct pool *p, uint64_t base,
		      uint64_t w)
{
	for (unsigned shift = 0; shift <= MAX_SHIFT && w; shift++) {
		uint64_t to = base + (w << shift);
		if (!(is_own(p, base) && is_own(p, to)) && icf_in_exec(prog, to))
			return true;
	}
	return false;
}

static bool may_lead(const struct finder *f, const struct pool *p, uint64_t va, uint64_t w)
{
	bool ret = leads_out(f->prog, p, va, w) || leads_out(f->prog, p, p->start, w);
	for (size_t k = 0; k < f->base.len && !ret; k++)
		ret = leads_out(f->prog, p, f->base.data[k], w);
	return ret;
}

/* Do assemblers or linkers fill the gap behind the literals with a no-op at VA, where the run that
 * ends at END has neither loads nor relocations any more? */
static bool is_fill(const struct finder *f, const struct pool *p, uint64_t va, uint64_t end)
{
	const struct icf_program *prog = f->prog;
	const struct icf_unit *u = &prog->unit.data[p->unit];
	const struct elfrw_relocs *rel = &f->rel[u->sec];
	const uint8_t *at = bytes_at(prog, u, va);
	struct elfrw_insn in;
	if (va % prog->arch->fill_size || end - va < prog->arch->fill_size ||
	    !prog->arch->decode(at, end - va, va, &in) || !elfrw_is_fill_nop(&in, at))
		return false;
	size_t r = elfrw_relocs_from(rel, va);
	if (r < rel->n && rel->rela[r].r_offset < end)
		return false;
	for (size_t k = 0; k < f->load.len; k++)
		if (f->load.data[k].va < end && f->load.data[k].va + f->load.data[k].size > va)
			return false;
	return true;
}

/* Could the number at VA, of up to 8 bytes in front of END, be a distance or an address of code? */
static bool may_be_place(const struct finder *f, const struct pool *p, uint64_t va, uint64_t end)
{
	const struct icf_program *prog = f->prog;
	const uint8_t *at = bytes_at(prog, &prog->unit.data[p->unit], va);
	uint64_t four = end - va >= 4 ? (uint64_t)(int64_t)(int32_t)elfrw_get32(at)
				      : elfrw_get_le(at, (unsigned)(end - va)),
		 low = end - va >= 4 ? elfrw_get32(at) : four;
	if (may_lead(f, p, va, four) || may_lead(f, p, va, low) || icf_in_exec(prog, low))
		return true;
	uint64_t eight = end - va >= 8 ? elfrw_get64(at) : 0;
	return may_lead(f, p, va, eight) || icf_in_exec(prog, eight);
}

/* Are small parts of literals read as numbers?  Nobody knows in what units these count. */
static bool reads_parts(const struct finder *f)
{
	for (size_t k = 0; k < f->load.len; k++)
		if (f->load.data[k].number && f->load.data[k].size && f->load.data[k].size < 4)
			return true;
	return false;
}

/* Reads the literals from VA up to END.  First the addresses, since numbers may count from these;
 * then NUMBERS. */
static void read_run(struct finder *f, struct pool *p, uint64_t va, uint64_t end, bool numbers)
{
	const struct icf_program *prog = f->prog;
	const struct icf_unit *u = &prog->unit.data[p->unit];
	const struct elfrw_relocs *rel = &f->rel[u->sec];
	for (size_t r = elfrw_relocs_from(rel, va); va < end && !p->bad;) {
		unsigned size = 0;
		f->work += f->load.len + f->base.len;
		p->bad |= f->work > MAX_WORK * (p->end - p->start);
		if (r < rel->n && rel->rela[r].r_offset == va) {
			p->bad = !is_address(f, p, u->sec, &rel->rela[r++], &size);
			va += size;
			p->bad |= r < rel->n && rel->rela[r].r_offset < va;
			continue;
		}
		uint64_t next = (va & ~(uint64_t)3) + 4, stop = (va & ~(uint64_t)3) + 8;
		uint64_t limit =
			r < rel->n && rel->rela[r].r_offset < end ? rel->rela[r].r_offset : end;
		next = next < limit ? next : limit;
		stop = stop < limit ? stop : limit;
		if (elfrw_all_zero(bytes_at(prog, u, va), next - va) || is_fill(f, p, va, end)) {
			va = next;
			continue;
		}
		f->used = next > f->used ? next : f->used;
		/* What nothing loads may be code that a jump leads to. */
		bool number;
		p->bad |= !is_read(f, va, next, &number) ||
			  (numbers && number && may_be_place(f, p, va, stop));
		va = next;
	}
}

static void read_literals(struct finder *f, struct pool *p)
{
	const struct icf_program *prog = f->prog;
	p->bad |= reads_parts(f);
	for (unsigned numbers = 0; numbers < 2; numbers++)
		for (size_t i = LOWER_BOUND(0, prog->data.len, mid,
					    prog->data.data[mid].end <= p->start);
		     i < prog->data.len && prog->data.data[i].start < p->end && !p->bad; i++) {
			uint64_t end = prog->data.data[i].end;
			read_run(f, p, prog->data.data[i].start, end < p->end ? end : p->end,
				 numbers != 0);
		}
	/* What fills the gap behind the last literal is padding. */
	if (p->gap && f->used < p->end && f->used > p->data)
		p->end = f->used;
	p->bad |= p->end % prog->arch->fill_size != 0;
}

/* Do symbols name no literal but for the assembler's own use? */
static bool is_nameless(const struct icf_program *prog, const struct pool *p)
{
	size_t s = LOWER_BOUND(0, prog->sym.len, mid, prog->sym.data[mid].value < p->data);
	for (; s < prog->sym.len && prog->sym.data[s].value < p->end; s++) {
		const struct icf_symbol *sym = &prog->sym.data[s];
		if (icf_data_end(prog, sym->value) != sym->value &&
		    (sym->type != STT_NOTYPE || sym->bind != STB_LOCAL))
			return false;
	}
	return true;
}

/* Is unit I a function, perhaps with data, and is what lies between it and the next function data
 * behind padding?  Then it may have literals: *RET. */
static bool may_have(const struct icf_program *prog, uint32_t i, struct pool *ret)
{
	const struct icf_unit *u = &prog->unit.data[i],
			      *gap = i + 1 < prog->unit.len ? u + 1 : NULL;
	bool inside = u->kind == ICF_UNIT_OPAQUE && u->reason == ICF_DATA_AMONG_CODE &&
		      icf_has_data(prog, u->start, u->end),
	     function = (u->flags & ICF_UNIT_FUNC_SYMBOL) && (inside || u->kind == ICF_UNIT_FUNC);
	if (!function || u->end - u->start > UINT32_MAX || prog->exec.data[u->sec].linkage)
		return false;
	*ret = (struct pool){ .unit = i, .start = u->start, .end = u->end };
	size_t k = LOWER_BOUND(0, prog->data.len, mid, prog->data.data[mid].end <= u->start);
	if (inside)
		ret->data = prog->data.data[k].start;
	ret->gap = gap && gap->sec == u->sec && gap->start == u->end && !gap->n_sym &&
		   !gap->n_fde && gap->kind == ICF_UNIT_OPAQUE &&
		   gap->reason == ICF_DATA_AMONG_CODE;
	if (!ret->gap)
		return inside && ret->data > u->start;
	k = LOWER_BOUND(0, prog->data.len, mid, prog->data.data[mid].end <= gap->start);
	const struct icf_data_run *run = &prog->data.data[k];
	ret->data = inside ? ret->data : run->start;
	ret->end = run->end < gap->end ? run->end : gap->end;
	return ret->data > u->start &&
	       (run->start <= gap->start || icf_is_padding(prog, gap->start, run->start)) &&
	       (ret->end == gap->end || (!icf_has_data(prog, ret->end, gap->end) &&
					 icf_is_padding(prog, ret->end, gap->end)));
}

/* Finds the functions whose own code reads literals as it may. */
static struct elfrw_err *find_candidates(struct finder *f)
{
	struct icf_program *prog = f->prog;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		struct pool one;
		if (!f->rel[prog->unit.data[i].sec].n || !may_have(prog, i, &one) ||
		    !is_nameless(prog, &one))
			continue;
		f->load.len = f->base.len = 0;
		f->used = one.data;
		f->work = 0;
		if (!read_code(f, &one))
			return &elfrw_err_nomem;
		read_literals(f, &one);
		/* Data that the function does not read are somebody else's. */
		if (one.bad || !f->load.len)
			continue;
		struct pool *slot = VEC_PUSH(&f->pool);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = one;
	}
	return NULL;
}

/* Something at PLACE names VA. */
static void name(struct finder *f, uint64_t place, uint64_t va)
{
	size_t k = LOWER_BOUND(0, f->pool.len, mid, f->pool.data[mid].end <= va);
	struct pool *p = k < f->pool.len ? &f->pool.data[k] : NULL;
	if (p && !(place >= p->start && place < p->end) && in_data(f->prog, p, va))
		p->bad = true;
}

/* All code, read from each place where an instruction may begin. */
static void find_names_in_code(struct finder *f)
{
	const struct icf_program *prog = f->prog;
	for (size_t k = 0; k < prog->exec.len; k++) {
		const struct icf_exec *e = &prog->exec.data[k];
		const uint8_t *p = prog->img->section[e->shndx].data;
		unsigned step = prog->arch->fill_size;
		for (uint64_t va = e->start; e->end - va >= step; va += step) {
			struct elfrw_insn in;
			if (prog->arch->decode(p + (va - e->start), e->end - va, va, &in) &&
			    in.pcrel_size && !icf_is_half(prog->arch, &in))
				name(f, va, in.target);
		}
	}
}

static void find_names_in_relocs(struct finder *f)
{
	const struct elfrw_image *img = f->prog->img;
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_section *s = &img->section[i];
		if (!elfrw_image_kept_relocs(img, s) || s->hdr.sh_info >= img->n_sections ||
		    !(img->section[s->hdr.sh_info].hdr.sh_flags & SHF_ALLOC))
			continue;
		for (uint64_t k = 0; k < s->hdr.sh_size / sizeof(Elf64_Rela); k++) {
			Elf64_Rela r;
			Elf64_Sym sym;
			memcpy(&r, s->data + k * sizeof r, sizeof r);
			if (elfrw_reloc_symbol(img, s->hdr.sh_link, &r, &sym))
				name(f, r.r_offset, sym.st_value + (uint64_t)r.r_addend);
		}
	}
}

/* Makes units of the functions and their literals. */
static struct elfrw_err *join(struct finder *f)
{
	struct icf_program *prog = f->prog;
	size_t n = 0, k = 0;
	bool any = false;
	for (size_t i = 0; i < prog->unit.len; i++) {
		struct icf_unit u = prog->unit.data[i];
		const struct pool *p =
			k < f->pool.len && f->pool.data[k].unit == i ? &f->pool.data[k++] : NULL;
		if (p && !p->bad) {
			u.end = p->end;
			u.kind = ICF_UNIT_FUNC;
			u.reason = ICF_OK;
			u.flags |= ICF_UNIT_POOL;
			u.read_align = p->align;
			i += p->gap;
			any = true;
		}
		prog->unit.data[n++] = u;
	}
	prog->unit.len = n;
	if (!any)
		return NULL;
	ELFRW_TRY(icf_index_units(prog));
	return icf_attach(prog);
}

struct elfrw_err *icf_find_pools(struct icf_program *prog, const struct elfrw_relocs *rel)
{
	struct finder f = { .prog = prog, .rel = rel };
	if (!prog->arch->reads || !prog->mapped || !prog->data.len || prog->inferred)
		return NULL;
	struct elfrw_err *err = find_candidates(&f);
	if (!err && f.pool.len) {
		find_names_in_code(&f);
		find_names_in_relocs(&f);
		err = join(&f);
	}
	VEC_FREE(&f.pool);
	VEC_FREE(&f.load);
	VEC_FREE(&f.base);
	return err;
}
