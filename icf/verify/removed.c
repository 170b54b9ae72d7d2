/* removed.c: can anything reach what was removed?
 *
 * The removed units are not reached if nothing outside of them refers into them.  So no walk is
 * needed: each reference is looked at once, where it is read, and none may lead into a removed unit
 * unless it is of a removed unit itself.  code/ref.c looks at the references of code, data/data.c
 * at the words of data, unwind/ at landing pads, data/unreached.c at numbers if IN has no
 * relocations.  This file looks at everything else that leads to
 * code, and at code that a program could reach in ways that no reference shows. */
#include "elfrw/base/rbuf.h"
#include "elfrw/symtab.h"
#include "icf/verify/state.h"
#include <ctype.h>
#include <string.h>

static void reached(const struct icf_vclaim *c, struct icf_vlog *log, uint64_t va, const char *by)
{
	char name[200];
	log->checked[ICF_VC_REMOVED]++;
	if (icf_v_removed(c, icf_v_find(c, va)))
		icf_vlog_bad(log, ICF_VC_REMOVED,
			     "removed: %s (0x%llx): expected code that nothing reaches, found %s",
			     icf_v_where(c, va, name), ICF_VX(va), by);
}

static void check_dynamic(const struct icf_vclaim *c, struct icf_vlog *log)
{
	const struct elfrw_section *s = &c->in.section[c->in.dynamic];
	if (!c->in.dynamic || !s->data)
		return;
	for (uint64_t off = 0; off + sizeof(Elf64_Dyn) <= s->hdr.sh_size;
	     off += sizeof(Elf64_Dyn)) {
		Elf64_Dyn d;
		memcpy(&d, s->data + off, sizeof d);
		if (d.d_tag == DT_INIT || d.d_tag == DT_FINI)
			reached(c, log, d.d_un.d_ptr, "it in .dynamic");
	}
}

/* Other modules, and dlsym(), find what .dynsym names.  A resolver of .symtab runs at startup. */
static void check_symbols(const struct icf_vclaim *c, struct icf_vlog *log)
{
	for (struct elfrw_all_symbols it = { .img = &c->in }; elfrw_all_symbols_next(&it);) {
		unsigned type = ELF64_ST_TYPE(it.sym.st_info);
		bool dynamic = c->in.section[it.table].hdr.sh_type == SHT_DYNSYM;
		if (type == STT_GNU_IFUNC)
			reached(c, log, it.sym.st_value, "a resolver of the dynamic linker");
		else if (dynamic && type != STT_TLS)
			reached(c, log, it.sym.st_value, "a dynamic symbol");
	}
}

/* A program can find the bounds of a section whose name is a C identifier. */
static bool can_be_delimited(const char *name)
{
	if (!*name || isdigit((unsigned char)*name))
		return false;
	while (isalnum((unsigned char)*name) || *name == '_')
		name++;
	return !*name;
}

static bool has_pointers(const struct icf_vclaim *c, const struct icf_vunit *u)
{
	uint32_t f = dwr_cfi_find(&c->cfi_in, u->old);
	return f != ICF_V_NONE && dwr_cfi_has_address(&c->cfi_in, f);
}

/* What unit U itself must not be. */
static void check_unit(const struct icf_vclaim *c, struct icf_vlog *log, const struct icf_vunit *u)
{
	const char *section = c->in.section[c->exec.data[u->exec].in].name;
	const char *what = NULL;
	char name[200];
	if (can_be_delimited(section))
		what = "a section that the program can delimit";
	else if (u->flags & ICF_V_PINNED)
		what = "code that must stay";
	else if (has_pointers(c, u))
		what = "unwind rules with addresses";
	else if (!strncmp(section, ".plt", 4) || !strcmp(section, ".init") ||
		 !strcmp(section, ".fini"))
		what = "linkage code";
	if (what)
		icf_vlog_bad(log, ICF_VC_REMOVED,
			     "removed: %s (0x%llx): expected a function, found %s",
			     icf_v_where(c, u->old, name), ICF_VX(u->old), what);
}

/* Bytes that are not understood may be branches, or tables of distances that count from their
 * start or from their own places. */
static void check_opaque(const struct icf_vclaim *c, struct icf_vlog *log,
			 const struct icf_vunit *u)
{
	static const char by[] = "bytes that are not understood and may refer to it";
	const struct icf_vexec *e = &c->exec.data[u->exec];
	const uint8_t *code = e->old_data + (u->old - e->old);
	uint64_t size = u->end - u->old;
	for (uint64_t pos = 0; pos < size;) {
		struct elfrw_insn in;
		unsigned len = c->arch->decode(code + pos, size - pos, u->old + pos, &in);
		if (len && in.pcrel_size)
			reached(c, log, in.target, by);
		pos += len ? len : 1;
	}
	for (uint64_t pos = 0; pos + 4 <= size; pos += 4) {
		uint64_t d = (uint64_t)(int64_t)(int32_t)elfrw_get32(code + pos);
		if (!d)
			continue;
		reached(c, log, u->old + d, by);
		reached(c, log, u->old + pos + d, by);
	}
}

void icf_v_check_removed(const struct icf_vclaim *c, const struct icf_vwords *words, bool allowed,
			 struct icf_vlog *log)
{
	char name[200];
	uint32_t first = 0;
	if (!c->n_removed)
		return;
	while (!icf_v_removed(c, first))
		first++;
	if (!allowed)
		icf_vlog_bad(
			log, ICF_VC_REMOVED,
			"removed: %s (0x%llx): expected it, found none: verify --gc-functions allows that",
			icf_v_where(c, c->unit.data[first].old, name),
			ICF_VX(c->unit.data[first].old));
	for (uint32_t i = first; i < c->unit.len; i++)
		if (icf_v_removed(c, i))
			check_unit(c, log, &c->unit.data[i]);
	for (uint32_t i = 0; i < c->unit.len; i++)
		if (c->unit.data[i].opaque)
			check_opaque(c, log, &c->unit.data[i]);
	if (c->in.ehdr.e_entry)
		reached(c, log, c->in.ehdr.e_entry, "the entry point");
	check_dynamic(c, log);
	check_symbols(c, log);
	for (size_t i = 0; i < words->dynreloc.len; i++) {
		const struct icf_vdynreloc *d = &words->dynreloc.data[i];
		if (d->value)
			reached(c, log, d->value + d->addend, "a dynamic relocation");
	}
	for (size_t i = 0; i < c->cfi_in.cie.len; i++)
		reached(c, log, c->cfi_in.cie.data[i].personality, "a personality routine");
}
