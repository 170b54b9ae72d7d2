/* near_text.c: describes the values in which near misses differ: functions, imported functions,
 * strings, data, numbers. */
#include "dwarf/symbolize/symbolize.h"
#include "elfrw/base/search.h"
#include "elfrw/symtab.h"
#include "icf/audit/near.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct datum {
	uint64_t value, size;
	const char *name;
};

struct describer {
	struct icf_audit *a;
	VEC(struct datum) datum; /* data symbols by address */
	struct icf_near_scratch scratch;
	char buf[4096];
};

static int datum_order(const void *p, const void *q)
{
	const struct datum *x = p, *y = q;
	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return strcmp(x->name, y->name);
}

static struct elfrw_err *read_data_symbols(struct describer *d)
{
	const struct elfrw_image *img = &d->a->run.img;
	uint32_t shndx = img->symtab ? img->symtab : img->dynsym;
	const struct elfrw_section *t = &img->section[shndx];
	for (struct elfrw_symbols it = elfrw_symbols(shndx ? t : NULL, 1);
	     elfrw_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		const char *name = elfrw_image_string(img, t->hdr.sh_link, sym.st_name);
		if (ELF64_ST_TYPE(sym.st_info) != STT_OBJECT || sym.st_shndx == SHN_UNDEF ||
		    !name || !*name)
			continue;
		struct datum *slot = VEC_PUSH(&d->datum);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = (struct datum){ sym.st_value, sym.st_size, name };
	}
	if (d->datum.len)
		qsort(d->datum.data, d->datum.len, sizeof *d->datum.data, datum_order);
	return NULL;
}

static const struct datum *datum_at(const struct describer *d, uint64_t va)
{
	size_t lo = LOWER_BOUND(0, d->datum.len, mid, d->datum.data[mid].value <= va);
	const struct datum *s = lo ? &d->datum.data[lo - 1] : NULL;
	return s && va - s->value < (s->size ? s->size : 1) ? s : NULL;
}

/* The name of the symbol of the dynamic relocation at the slot PLACE, or NULL. */
static const char *import_at(const struct icf_program *prog, uint64_t place)
{
	if (strncmp(prog->img->section[elfrw_image_section_at(prog->img, place)].name, ".got", 4) !=
	    0)
		return NULL;
	const struct icf_dynreloc *r = prog->dynreloc.data;
	size_t n = LOWER_BOUND(0, prog->dynreloc.len, mid, r[mid].place < place);
	if (n == prog->dynreloc.len || r[n].place != place)
		return NULL;
	r += n;
	const struct elfrw_section *s = &prog->img->section[r->shndx];
	Elf64_Rela rela;
	Elf64_Sym sym;
	if (r->relr || s->hdr.sh_type != SHT_RELA || !s->data ||
	    r->index >= s->hdr.sh_size / sizeof rela || !prog->img->dynsym)
		return NULL;
	memcpy(&rela, s->data + r->index * sizeof rela, sizeof rela);
	const struct elfrw_section *t = &prog->img->section[prog->img->dynsym];
	uint64_t i = ELF64_R_SYM(rela.r_info);
	if (!i || !elfrw_symbol(t, i, &sym))
		return NULL;
	return elfrw_image_string(prog->img, t->hdr.sh_link, sym.st_name);
}

/* The function that the PLT entry at VA jumps to, or NULL. */
static const char *stub_name(const struct icf_program *prog, uint64_t va)
{
	const struct icf_exec *e = &prog->exec.data[prog->unit.data[icf_unit_at(prog, va)].sec];
	const uint8_t *code = prog->img->section[e->shndx].data + (va - e->start);
	uint64_t slot;
	return prog->arch->read_stub(code, e->end - va, va, &slot) ? import_at(prog, slot) : NULL;
}

/* The text at VA in read-only data as a quoted string; false: there is none. */
static bool string_at(const struct elfrw_image *img, uint64_t va, char *buf, size_t size)
{
	uint32_t shndx = elfrw_image_section_at(img, va);
	const struct elfrw_section *s = &img->section[shndx];
	if (!shndx || !s->data || (s->hdr.sh_flags & (SHF_WRITE | SHF_EXECINSTR)))
		return false;
	const uint8_t *p = s->data + (va - s->hdr.sh_addr);
	uint64_t left = s->hdr.sh_size - (va - s->hdr.sh_addr);
	size_t n = 0;
	while (n < left && p[n] && n < 400) {
		if (!isprint(p[n]) && p[n] != '\n' && p[n] != '\t')
			return false;
		n++;
	}
	if (n == left || p[n] || n < 2)
		return false;
	size_t o = 0;
	buf[o++] = '"';
	for (size_t i = 0; i < n && i < 48 && o + 8 < size; i++) {
		if (p[i] == '\n' || p[i] == '\t' || p[i] == '"' || p[i] == '\\')
			buf[o++] = '\\';
		buf[o++] = p[i] == '\n' ? 'n' : p[i] == '\t' ? 't' : (char)p[i];
	}
	strcpy(buf + o, n > 48 ? "...\"" : "\"");
	return true;
}

static void put_name(struct describer *d, const char *name, uint64_t off)
{
	if (d->a->sym)
		name = dwr_sym_demangle(d->a->sym, name);
	if (off)
		snprintf(d->buf, sizeof d->buf, "%.4000s+0x%llx", name, (unsigned long long)off);
	else
		snprintf(d->buf, sizeof d->buf, "%.4000s", name);
}

static void describe_address(struct describer *d, const struct icf_ref *ref)
{
	const struct icf_program *prog = &d->a->run.prog;
	const struct datum *s = datum_at(d, ref->target);
	const char *import = import_at(prog, ref->target);
	if (import) {
		put_name(d, import, 0);
		return;
	}
	if ((!s || !*s->name) && (ref->flags & ICF_REF_LEA) &&
	    string_at(prog->img, ref->target, d->buf, sizeof d->buf))
		return;
	if (s)
		put_name(d, s->name, ref->target - s->value);
	else {
		uint32_t shndx = elfrw_image_section_at(prog->img, ref->target);
		snprintf(d->buf, sizeof d->buf, "0x%llx (%s)", (unsigned long long)ref->target,
			 shndx ? prog->img->section[shndx].name : "?");
	}
}

static void describe_code(struct describer *d, const struct icf_ref *ref)
{
	const struct icf_program *prog = &d->a->run.prog;
	const struct icf_unit *t = &prog->unit.data[ref->unit];
	const char *stub = prog->exec.data[t->sec].linkage ? stub_name(prog, ref->target) : NULL;
	if (stub)
		put_name(d, stub, 0);
	else
		put_name(d, icf_audit_name(d->a, ref->unit), ref->target - t->start);
}

static void describe_number(struct describer *d, const struct icf_near_field *f)
{
	int64_t v = (int64_t)(f->value << (64 - 8 * f->size)) >> (64 - 8 * f->size);
	if (v > -10 && v < 10)
		snprintf(d->buf, sizeof d->buf, "%lld", (long long)v);
	else
		snprintf(d->buf, sizeof d->buf, "%lld (0x%llx)", (long long)v,
			 (unsigned long long)f->value);
}

static struct elfrw_err *describe(struct describer *d, const struct icf_audit_near *n,
				  struct icf_audit_near_member *m)
{
	const struct icf_program *prog = &d->a->run.prog;
	const struct icf_near_field *f = NULL;
	ELFRW_TRY(icf_near_fields(d->a, m->unit, &d->scratch));
	for (size_t k = 0; k < d->scratch.field.len && !f; k++)
		if (d->scratch.field.data[k].off == n->off &&
		    d->scratch.field.data[k].kind == n->kind)
			f = &d->scratch.field.data[k];
	if (!f)
		strcpy(d->buf, "?");
	else if (f->ref == ICF_NONE)
		describe_number(d, f);
	else {
		const struct icf_ref *ref = &icf_unit_refs(prog, &prog->unit.data[m->unit])[f->ref];
		if (f->kind == ICF_NEAR_TABLE)
			snprintf(d->buf, sizeof d->buf, "0x%llx", (unsigned long long)ref->target);
		else if (ref->unit != ICF_NONE)
			describe_code(d, ref);
		else
			describe_address(d, ref);
	}
	m->text = icf_pool_add(&d->a->pool, d->buf, strlen(d->buf));
	return m->text == ICF_POOL_NONE ? &elfrw_err_nomem : NULL;
}

struct elfrw_err *icf_near_describe(struct icf_audit *a)
{
	struct describer d = { .a = a };
	struct elfrw_err *err = a->near.len ? read_data_symbols(&d) : NULL;
	for (size_t i = 0; i < a->near.len && !err; i++) {
		const struct icf_audit_near *n = &a->near.data[i];
		for (uint32_t k = n->member; k < n->member + n->count && !err; k++)
			err = describe(&d, n, &a->near_member.data[k]);
	}
	icf_near_scratch_deinit(&d.scratch);
	VEC_FREE(&d.datum);
	return err;
}
