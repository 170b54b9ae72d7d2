/* literal.c: functions with literals among or behind their code.
 *
 * Mapping symbols of IN tell where data are.  A unit with data may move, or share its code, if all
 * of these are literals that it alone loads.  That is read here anew, from IN: each instruction
 * that names a literal is a load of no more than the literals there; control does not run into
 * them; relocations among them are whole addresses, which are checked as references of the unit;
 * and a number that a general register gets leads, from no place that the unit names, to code that
 * moved against that place.  When all units are read, nothing else may have named a literal
 * (icf_vcode_check_outside).
 *
 * Cost: units with data are decoded once more. */
#include "elfrw/arch/judge.h"
#include "elfrw/arch/symbol.h"
#include "elfrw/base/search.h"
#include "elfrw/symtab.h"
#include "icf/verify/code/state.h"
#include <stdlib.h>
#include <string.h>

#define MAX_SHIFT 4 /* distances in words may count units of up to 16 bytes */
/* Loads and places that the literals of a unit are compared with, for each of its bytes: for the
 * cost to be linear. */
#define MAX_WORK 4096

/* --- where data are --- */

/* A mapping symbol. */
struct mark {
	uint64_t va, limit; /* the section's end */
	bool data;
};

/* At one place, code comes last: it counts. */
static int mark_order(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;
	if (x->va != y->va)
		return x->va < y->va ? -1 : 1;
	return (int)y->data - (int)x->data;
}

struct elfrw_err *icf_vcode_find_literals(struct icf_vcode_job *job)
{
	const struct elfrw_image *img = &job->v->claim.in;
	const struct elfrw_section *s = &img->section[img->symtab];
	VEC(struct mark) mark = { 0 };
	bool ok = true;
	if (!job->v->claim.arch->judge->loads || !img->symtab)
		return NULL;
	for (struct elfrw_symbols it = elfrw_symbols(s, 1); ok && elfrw_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		const char *name = elfrw_image_string(img, s->hdr.sh_link, sym.st_name);
		if (sym.st_shndx >= img->n_sections || !name ||
		    !(img->section[sym.st_shndx].hdr.sh_flags & SHF_EXECINSTR) ||
		    !elfrw_symbol_is_mapping(&img->ehdr, ELF64_ST_TYPE(sym.st_info), name))
			continue;
		const Elf64_Shdr *sh = &img->section[sym.st_shndx].hdr;
		struct mark *m = VEC_PUSH(&mark);
		ok = m != NULL;
		if (m)
			*m = (struct mark){ sym.st_value, sh->sh_addr + sh->sh_size,
					    elfrw_symbol_begins_data(name) };
	}
	if (ok && mark.len)
		qsort(mark.data, mark.len, sizeof *mark.data, mark_order);
	for (size_t i = 0; i < mark.len && ok; i++) {
		const struct mark *m = &mark.data[i];
		uint64_t next = i + 1 < mark.len ? m[1].va : UINT64_MAX;
		struct icf_vrun *run = m->data && next != m->va && m->va < m->limit
					       ? VEC_PUSH(&job->v->run)
					       : NULL;
		if (run)
			*run = (struct icf_vrun){ m->va, next < m->limit ? next : m->limit };
		ok = run || !m->data || next == m->va || m->va >= m->limit;
	}
	VEC_FREE(&mark);
	return ok ? NULL : &elfrw_err_nomem;
}

/* The end of the data that hold VA, or VA. */
static uint64_t end_of_data(const struct icf_v *v, uint64_t va)
{
	while (true) {
		size_t k = LOWER_BOUND(0, v->run.len, mid, v->run.data[mid].end <= va);
		if (k == v->run.len || v->run.data[k].start > va)
			return va;
		va = v->run.data[k].end;
	}
}

bool icf_vcode_has_data(const struct icf_vcode_job *job, const struct icf_vunit *u)
{
	size_t k = LOWER_BOUND(0, job->v->run.len, mid, job->v->run.data[mid].end <= u->old);
	return k < job->v->run.len && job->v->run.data[k].start < u->end;
}

/* Bytes of literals from VA on, in unit U. */
static uint64_t room_at(const struct icf_vcode_job *job, const struct icf_vunit *u, uint64_t va)
{
	if (va - u->old >= u->end - u->old)
		return 0;
	uint64_t end = end_of_data(job->v, va);
	return (end < u->end ? end : u->end) - va;
}

uint64_t icf_vcode_literals(const struct icf_vcode_at *at, uint64_t va)
{
	return at->literals ? room_at(at->job, at->u, va) : 0;
}

uint64_t icf_vcode_data(const struct icf_vcode_at *at, uint64_t va)
{
	return room_at(at->job, at->u, va);
}

/* --- does the unit alone know its data? --- */

struct load {
	uint64_t va;
	unsigned size;
	bool number;
};

struct reader {
	const struct icf_vcode_at *at;
	const struct elfrw_relocs *rel;
	VEC(struct load) load;
	VEC(uint64_t) named; /* code that the unit names other than by branches */
	const char *bad;     /* why these are no literals of the unit's own */
	uint64_t where, end; /* of the last instruction */
	uint64_t work;       /* loads and places that literals were compared with */
	bool nomem;
};

static void fault(struct reader *r, uint64_t va, const char *what)
{
	if (!r->bad) {
		r->bad = what;
		r->where = va;
	}
}

static const uint8_t *bytes_at(const struct reader *r, uint64_t va)
{
	return r->at->a + (va - r->at->u->old);
}

static bool is_own(const struct reader *r, uint64_t va)
{
	return va - r->at->u->old < r->at->size;
}

static void note_named(struct reader *r, uint64_t va)
{
	uint64_t *slot = icf_v_in_exec(&r->at->job->v->claim, va) ? VEC_PUSH(&r->named) : NULL;
	if (slot)
		*slot = va;
	else if (icf_v_in_exec(&r->at->job->v->claim, va))
		r->nomem = true;
}

/* The instruction at VA names the literal TO. */
static void note_load(struct reader *r, uint64_t va, uint64_t to)
{
	struct load l = { .va = to };
	if (!r->at->job->v->claim.arch->judge->loads(bytes_at(r, va), &l.size, &l.number)) {
		fault(r, va, "something other than a load names a literal");
		return;
	}
	if (l.size > room_at(r->at->job, r->at->u, to))
		fault(r, va, "load beyond the literals");
	if (l.number && l.size < 4 && l.size)
		fault(r, va, "load of a part of a literal");
	struct load *slot = VEC_PUSH(&r->load);
	if (slot)
		*slot = l;
	else
		r->nomem = true;
}

static struct elfrw_reloc_desc kind_of(const struct reader *r, const Elf64_Rela *x)
{
	return r->at->job->v->claim.arch->reloc((uint32_t)ELF64_R_TYPE(x->r_info));
}

static bool is_code(const struct elfrw_image *img, const Elf64_Sym *sym)
{
	return sym->st_shndx != SHN_UNDEF && sym->st_shndx < img->n_sections &&
	       (img->section[sym->st_shndx].hdr.sh_flags & SHF_EXECINSTR);
}

/* The relocations of the instruction X. */
static void read_insn_relocs(struct reader *r, const struct icf_vcode_insn *x, bool high)
{
	const struct icf_vclaim *c = &r->at->job->v->claim;
	size_t k = elfrw_relocs_from(r->rel, x->va), n = 0;
	bool told = false;
	for (; k < r->rel->n && r->rel->rela[k].r_offset < x->va + x->in.len; k++, n++) {
		Elf64_Sym sym;
		if (!elfrw_reloc_symbol(&c->in, r->rel->symtab, &r->rel->rela[k], &sym))
			continue;
		uint64_t to = sym.st_value + (uint64_t)r->rel->rela[k].r_addend;
		struct elfrw_reloc_desc d = kind_of(r, &r->rel->rela[k]);
		uint8_t base = d.form ? c->arch->form[d.form].base : ELFRW_BASE_ZERO;
		bool literal = room_at(r->at->job, r->at->u, to) != 0;
		told |= d.form && sym.st_shndx != SHN_UNDEF;
		if (literal && base == ELFRW_BASE_IN_PAGE)
			note_load(r, x->va, to);
		else if (literal && base != ELFRW_BASE_PAGE && base != ELFRW_BASE_PLACE)
			fault(r, x->va, "a relocation of an unknown kind names a literal");
		else if (!literal && base == ELFRW_BASE_IN_PAGE)
			note_named(r, to);
		if (literal && high && (to & ~UINT64_C(0xfff)) != x->in.target)
			fault(r, x->va, "the page of a literal is not what the relocation says");
	}
	/* Without a relocation, the page may be that of the literals. */
	uint64_t page = x->in.target;
	for (size_t i = 0; high && (!told || n != 1) && i < r->at->job->v->run.len; i++) {
		const struct icf_vrun *run = &r->at->job->v->run.data[i];
		if (run->start < r->at->u->end && run->end > r->at->u->old &&
		    run->start < page + 4096 && run->end > page)
			fault(r, x->va, "half of an address that may be a literal's");
	}
}

static void read_insn(struct reader *r, const struct icf_vcode_insn *x)
{
	const struct icf_vclaim *c = &r->at->job->v->claim;
	bool high =
		x->in.pcrel_size && elfrw_form_is_high(&c->arch->form[c->arch->pcrel_form(&x->in)]);
	bool branch = x->in.kind == ELFRW_INSN_CALL || x->in.kind == ELFRW_INSN_JMP ||
		      x->in.kind == ELFRW_INSN_JCC;
	if (x->in.pcrel_size && !high && room_at(r->at->job, r->at->u, x->in.target)) {
		if (branch || (x->in.flags & ELFRW_INSN_LEA))
			fault(r, x->va, branch ? "branch to a literal" : "address of a literal");
		else
			note_load(r, x->va, x->in.target);
	} else if (x->in.pcrel_size && !high && (x->in.flags & ELFRW_INSN_LEA))
		note_named(r, x->in.target);
	read_insn_relocs(r, x, high);
}

/* Control may come from VA, behind instruction X, to the data there. */
static bool goes_on(const struct reader *r, const struct icf_vcode_insn *x, uint64_t va)
{
	bool call = x->in.kind == ELFRW_INSN_CALL || x->in.kind == ELFRW_INSN_CALL_IND;
	return x->in.kind == ELFRW_INSN_OTHER || x->in.kind == ELFRW_INSN_JCC ||
	       (call && dwr_cfi_find(&r->at->job->v->claim.cfi_in, va - 1) == ICF_V_NONE);
}

static void read_code(struct reader *r)
{
	const struct icf_vunit *u = r->at->u;
	const struct elfrw_arch *arch = r->at->job->v->claim.arch;
	struct icf_vcode_insn x, last = { .in.kind = ELFRW_INSN_OTHER, .va = u->old };
	for (uint64_t va = u->old; va < u->end && !r->bad;) {
		uint64_t n = room_at(r->at->job, u, va);
		if (n) {
			if (goes_on(r, &last, last.va + last.in.len))
				fault(r, va, "control runs into a literal");
			va += n;
			continue;
		}
		x.va = va;
		x.code = bytes_at(r, va);
		if (!arch->decode(x.code, u->end - va, va, &x.in) ||
		    (x.in.flags & ELFRW_INSN_LONG_CALL)) {
			fault(r, va, "bytes that are no instruction");
			return;
		}
		read_insn(r, &x);
		if (x.in.kind != ELFRW_INSN_NOP)
			last = x;
		va += x.in.len;
		r->end = last.va + last.in.len;
	}
	if (!room_at(r->at->job, u, u->end - 1))
		r->end = u->end;
}

/* The number W, loaded by the unit, may count from BASE: does it lead to code that moved against
 * BASE? */
static bool leads_astray(const struct reader *r, uint64_t base, uint64_t w)
{
	const struct icf_vclaim *c = &r->at->job->v->claim;
	for (unsigned shift = 0; shift <= MAX_SHIFT && w; shift++) {
		uint64_t to = base + (w << shift), from_now = base, to_now = to;
		if (!icf_v_in_exec(c, to) || (is_own(r, base) && is_own(r, to)))
			continue;
		icf_v_pointer(c, base, &from_now);
		icf_v_pointer(c, to, &to_now);
		if (to_now - to != from_now - base)
			return true;
	}
	return false;
}

static void read_number(struct reader *r, uint64_t va, uint64_t w)
{
	uint64_t now;
	const struct icf_vclaim *c = &r->at->job->v->claim;
	bool bad = leads_astray(r, va, w) || leads_astray(r, r->at->u->old, w);
	for (size_t k = 0; k < r->named.len && !bad; k++)
		bad = leads_astray(r, r->named.data[k], w);
	if (icf_v_in_exec(c, w) && icf_v_pointer(c, w, &now) && now != w)
		bad = true;
	if (bad)
		fault(r, va, "number that may be a distance of code that moved");
}

/* Are the SIZE bytes at VA, at most 8, loaded, each of them?  *NUMBER: some by a general register.
 */
static bool is_loaded(const struct reader *r, uint64_t va, uint64_t size, bool *number)
{
	unsigned left = (1u << size) - 1;
	*number = false;
	for (size_t k = 0; k < r->load.len; k++) {
		const struct load *l = &r->load.data[k];
		for (unsigned i = 0; i < size; i++)
			if (va + i - l->va < l->size) {
				left &= ~(1u << i);
				*number |= l->number;
			}
	}
	return !left;
}

/* Is there nothing from VA up to END but what fills gaps: no-ops and zeros, that nothing loads? */
static bool is_fill(const struct reader *r, uint64_t va, uint64_t end)
{
	const struct elfrw_arch *arch = r->at->job->v->claim.arch;
	for (size_t k = 0; k < r->load.len; k++)
		if (r->load.data[k].va < end && r->load.data[k].va + r->load.data[k].size > va)
			return false;
	for (; va < end; va += arch->fill_size) {
		struct elfrw_insn in;
		const uint8_t *p = bytes_at(r, va);
		if (end - va < arch->fill_size)
			return elfrw_all_zero(p, end - va);
		if (!elfrw_all_zero(p, arch->fill_size) &&
		    !(arch->decode(p, end - va, va, &in) && elfrw_is_fill_nop(&in, p)))
			return false;
	}
	return true;
}

/* The N bytes at VA, at most 4, have no relocation.  The next one is at NEXT. */
static void read_plain(struct reader *r, uint64_t va, unsigned n, uint64_t next, bool numbers)
{
	bool number;
	if (!is_loaded(r, va, n, &number) && !elfrw_all_zero(bytes_at(r, va), n))
		fault(r, va, "data that it does not load");
	if (!numbers || n < 4 || !number)
		return;
	uint32_t low = elfrw_get32(bytes_at(r, va));
	read_number(r, va, low);
	read_number(r, va, (uint64_t)(int64_t)(int32_t)low);
	if (next - va >= 8)
		read_number(r, va, elfrw_get64(bytes_at(r, va)));
}

/* The literal at VA, up to END or before, has the relocation X.  Its bytes, or 1. */
static unsigned read_address(struct reader *r, uint64_t va, uint64_t end, const Elf64_Rela *x)
{
	const struct icf_vclaim *c = &r->at->job->v->claim;
	Elf64_Sym sym;
	struct elfrw_reloc_desc d = kind_of(r, x);
	bool number, known = d.kind == ELFRW_RELOC_ABS && !d.form && d.size <= 8 &&
			     d.size <= end - va &&
			     elfrw_reloc_symbol(&c->in, r->rel->symtab, x, &sym);
	uint64_t to = known ? elfrw_get_le(bytes_at(r, va), d.size) : 0;
	for (size_t i = 0; i < r->load.len; i++) {
		const struct load *l = &r->load.data[i];
		bool meets = l->va < va + d.size && va < l->va + l->size,
		     whole = l->va <= va && l->va + l->size >= va + d.size,
		     more = l->number && l->size != d.size;
		if (meets && (!whole || more) && icf_v_in_exec(c, to))
			fault(r, va, "load of a part of an address");
	}
	if (!known || (d.size != 8 && is_code(&c->in, &sym)) ||
	    (d.size == 8 && room_at(r->at->job, r->at->u, to)))
		fault(r, va, "literal with a relocation of an unknown kind");
	else if (!is_loaded(r, va, d.size, &number))
		fault(r, va, "address that it does not load");
	else if (d.size == 8)
		note_named(r, to);
	return d.size ? d.size : 1;
}

/* The literals from VA up to END: addresses, then numbers. */
static void read_literals(struct reader *r, uint64_t va, uint64_t end, bool numbers)
{
	for (size_t k = elfrw_relocs_from(r->rel, va); va < end && !r->bad;) {
		const Elf64_Rela *x = k < r->rel->n ? &r->rel->rela[k] : NULL;
		r->work += r->load.len + r->named.len;
		if (r->work > MAX_WORK * (r->at->u->end - r->at->u->old))
			fault(r, va, "too many loads of literals");
		uint64_t next = x && x->r_offset < end ? x->r_offset : end;
		if (next == va && x) {
			va += read_address(r, va, end, x);
			if (++k < r->rel->n && r->rel->rela[k].r_offset < va)
				fault(r, va, "two relocations of a literal");
			continue;
		}
		if (next == end && is_fill(r, va, end))
			return;
		unsigned n = next - va < 4 ? (unsigned)(next - va) : 4;
		read_plain(r, va, n, next, numbers);
		va += n;
	}
}

bool icf_vcode_knows_literals(struct icf_vcode_at *at)
{
	struct reader r = { .at = at, .rel = &at->job->rel[at->u->exec] };
	if (!at->job->v->claim.arch->judge->loads || at->job->v->claim.inferred ||
	    !icf_vcode_has_data(at->job, at->u))
		return false;
	if (room_at(at->job, at->u, at->u->old))
		fault(&r, at->u->old, "data at its start");
	read_code(&r);
	for (unsigned numbers = 0; numbers < 2; numbers++)
		for (uint64_t va = at->u->old; va < at->u->end && !r.bad;) {
			uint64_t n = room_at(at->job, at->u, va);
			if (n)
				read_literals(&r, va, va + n, numbers != 0);
			va += n ? n : at->job->v->claim.arch->fill_size;
		}
	if (r.nomem)
		at->part->log.nomem = true;
	VEC_FREE(&r.load);
	VEC_FREE(&r.named);
	at->tail = r.bad ? 0 : (uint32_t)(at->u->end - r.end);
	at->why = r.bad;
	at->why_at = r.bad ? r.where - at->u->old : 0;
	return !r.bad;
}

/* --- comparing them --- */

void icf_vcode_check_literals(struct icf_vcode_at *at, uint64_t pos, uint64_t n, size_t *r)
{
	const struct elfrw_relocs *rel = &at->job->rel[at->u->exec];
	const struct elfrw_arch *arch = at->job->v->claim.arch;
	for (; *r < rel->n && rel->rela[*r].r_offset < at->u->old + pos + n; ++*r) {
		uint64_t off = rel->rela[*r].r_offset - at->u->old;
		struct elfrw_reloc_desc d =
			arch->reloc((uint32_t)ELF64_R_TYPE(rel->rela[*r].r_info));
		if (off < pos || d.size != 8)
			continue;
		struct icf_vref f = { .insn = off,
				      .off = off,
				      .form = &arch->form[arch->address_form(8, false)] };
		f.target = elfrw_form_read(f.form, at->a + off, 0);
		f.found = elfrw_form_read(f.form, at->b + off, 0);
		icf_vcode_ref(at, f);
	}
	icf_vcode_compare_to(at, pos + n);
	at->part->log.checked[ICF_VC_CODE] += n / arch->fill_size;
}

unsigned icf_vcode_load_size(const struct icf_vcode_at *at, uint64_t pos)
{
	unsigned size;
	bool number;
	return at->job->v->claim.arch->judge->loads(at->a + pos, &size, &number) ? size : 0;
}

uint64_t icf_vcode_loaded(const struct icf_vcode_at *at, uint64_t pos, uint64_t to)
{
	const struct elfrw_relocs *rel = &at->job->rel[at->u->exec];
	size_t r = elfrw_relocs_from(rel, to);
	if (icf_vcode_literals(at, to) < 8 || icf_vcode_load_size(at, pos) != 8 || r == rel->n ||
	    rel->rela[r].r_offset != to)
		return 0;
	return elfrw_get64(at->a + (to - at->u->old));
}

void icf_vcode_note_outside(struct icf_vcode_at *at, uint64_t target)
{
	uint64_t *slot = target - at->u->old >= at->size && at->job->v->run.len &&
					 end_of_data(at->job->v, target) != target
				 ? VEC_PUSH(&at->part->outside)
				 : NULL;
	if (slot)
		*slot = target;
	else if (target - at->u->old >= at->size && at->job->v->run.len &&
		 end_of_data(at->job->v, target) != target)
		at->part->log.nomem = true;
}

/* Something else than its own code names the data at VA of a unit that seemed to know them alone.
 * The unit must be as if it were not understood. */
static void check_outside(struct icf_vcode_job *job, struct icf_vcode_part *part, uint64_t va)
{
	struct icf_vclaim *c = &job->v->claim;
	uint32_t i = icf_v_find(c, va);
	struct icf_vunit *u = i != ICF_V_NONE ? &c->unit.data[i] : NULL;
	if (!u || !u->literals || end_of_data(job->v, va) == va)
		return;
	u->literals = false;
	u->opaque = true;
	const struct icf_vexec *e = &c->exec.data[u->exec], *o = icf_v_out_exec(c, u->body);
	struct icf_vcode_at at = { .job = job,
				   .part = part,
				   .u = u,
				   .size = u->end - u->old,
				   .moved = u->body - u->old,
				   .index = i,
				   .a = e->old_data + (u->old - e->old) };
	if (!o || !o->new_data || at.size > o->new_end - u->body)
		return; /* was reported with the claim */
	at.b = o->new_data + (u->body - o->new);
	if (u->flags & ICF_V_FOLDED)
		icf_vcode_bad(&at, ICF_VC_CODE, "literal that other code names, too", va - u->old,
			      va, va + at.moved);
	icf_vcode_opaque(&at);
}

/* What the dynamic section names. */
static void check_dynamic(struct icf_vcode_job *job, struct icf_vcode_part *part)
{
	const struct elfrw_image *in = &job->v->claim.in;
	const struct elfrw_section *s = &in->section[in->dynamic];
	if (!in->dynamic || !s->data)
		return;
	for (uint64_t off = 0; off + sizeof(Elf64_Dyn) <= s->hdr.sh_size;
	     off += sizeof(Elf64_Dyn)) {
		Elf64_Dyn d;
		memcpy(&d, s->data + off, sizeof d);
		if (elfrw_dynamic_is_code(job->v->claim.arch, d.d_tag))
			check_outside(job, part, d.d_un.d_ptr);
	}
}

void icf_vcode_check_outside(struct icf_vcode_job *job, struct icf_vcode_part *part)
{
	const struct icf_v *v = job->v;
	if (!v->run.len)
		return;
	for (size_t i = 0; i < job->outside.len; i++)
		check_outside(job, part, job->outside.data[i]);
	/* What distances count from is known later (icf_v_check_led). */
	for (size_t i = 0; i < v->words.word.len; i++)
		if (v->words.word.data[i].kind != ICF_VW_RELATIVE)
			check_outside(job, part, v->words.word.data[i].target);
	check_outside(job, part, v->claim.in.ehdr.e_entry);
	check_dynamic(job, part);
}

bool icf_v_in_literals(const struct icf_v *v, uint64_t va)
{
	uint32_t i = v->run.len ? icf_v_find(&v->claim, va) : ICF_V_NONE;
	return i != ICF_V_NONE && v->claim.unit.data[i].literals && end_of_data(v, va) != va;
}

void icf_v_check_led(struct icf_v *v, uint64_t place, uint64_t va)
{
	if (!icf_v_in_literals(v, va))
		return;
	const struct icf_vunit *u = &v->claim.unit.data[icf_v_find(&v->claim, va)];
	const struct icf_vexec *e = &v->claim.exec.data[u->exec];
	bool stay = u->body == u->old && !(u->flags & ICF_V_FOLDED);
	for (uint64_t at = u->old; at < u->end && stay; at += v->claim.arch->fill_size) {
		struct elfrw_insn in;
		uint64_t now;
		if (end_of_data(v, at) != at &&
		    v->claim.arch->decode(e->old_data + (at - e->old), u->end - at, at, &in) &&
		    in.pcrel_size && icf_v_in_exec(&v->claim, in.target))
			stay = icf_v_code(&v->claim, in.target, &now) && now == in.target;
	}
	if (!stay)
		icf_vlog_bad(
			&v->log, ICF_VC_TABLE,
			"place: 0x%llx (0x%llx): expected an instruction, or literals that stay, found others",
			ICF_VX(place), ICF_VX(va));
}
