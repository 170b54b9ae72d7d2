/* unused.c: see unused.h.
 *
 * Marking, from roots along references.  A live function that is taken for an unused one is a wrong
 * program, so all that is not certain keeps what it could reach.  Everything in data is taken to be
 * used: only code can be unused.
 *
 * Roots, each with an example of what would break without it:
 *   - the entry point, DT_INIT and DT_FINI; what the file exports, whether anybody imports it or
 *     not: a plug-in finds it by dlsym();
 *   - what a word of data refers to: init arrays that the linker sorted by name, vtables, tables of
 *     operations, slots of the GOT.  Only the entries of a jump table that a single function reads
 *     are references of that function.  A table that two functions share is data, and so is one
 *     that anything else refers to (unused/table.c);
 *   - personality routines; IFUNC resolvers; functions with static probes, which tracers look for;
 *   - code that has to stay where it is: something unknown may refer to it.  That includes
 *     everything that bytes which are not understood could reach, and distances of unknown origin;
 *   - code that is no function of its own: linkage code, code without a name, functions that fall
 *     through into each other;
 *   - sections that the program can delimit by __start_ and __stop_ symbols, or by labels of a
 *     linker script: it may walk through the code there;
 *   - functions that the user names;
 *   - if relocations were not kept, all that any number might lead to (infer/run/doubt.c).
 * References: of instructions; of the entries of a function's own jump tables; landing pads in
 * other units; control that runs off the end.
 *
 * Debug information, unwind tables and symbols are no references.  What was reached from where is
 * noted only if somebody asks (--why-live).  Cost: linear. */
#include "icf/fold/unused.h"
#include "elfrw/base/search.h"
#include "elfrw/relocs.h"
#include "elfrw/symtab.h"
#include "icf/fold/fold.h"
#include "icf/fold/probe.h"
#include "icf/fold/unused/object.h"
#include "icf/fold/unused/table.h"
#include "icf/infer/infer.h"
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

struct marking {
	struct icf_program *prog;
	uint8_t *live;             /* by unit */
	uint32_t *queue;           /* live units in the order in which they were found */
	uint32_t n_queue;          /* never more than there are units: each is queued once */
	uint32_t n_followed;       /* of them */
	uint32_t *first_case;      /* by unit: its first element of `target`; one more at the end */
	uint32_t *target;          /* units that the entries of own tables lead to */
	uint8_t *offered;          /* by table: it is data */
	struct elfrw_relocs *rel;  /* of the code, by executable section, if they stay; or NULL */
	struct icf_use *use;       /* by unit, if somebody asks; or NULL */
	struct icf_use now;        /* what mark() comes from */
	struct icf_objects object; /* empty: none may be unused */
};

static void come_from(struct marking *m, enum icf_use_kind kind, uint32_t from, uint64_t place)
{
	m->now = (struct icf_use){ place, from, (uint8_t)kind };
}

static void mark(struct marking *m, uint32_t i)
{
	if (i == ICF_NONE || m->live[i])
		return;
	m->live[i] = 1;
	if (m->use)
		m->use[i] = m->now;
	m->queue[m->n_queue++] = i;
}

static void mark_address(struct marking *m, uint64_t va)
{
	mark(m, icf_unit_at(m->prog, va));
}

static void mark_section(struct marking *m, const struct icf_exec *e)
{
	for (uint32_t i = e->unit; i < e->unit + e->n_units; i++)
		mark(m, i);
}

/* The unit whose reference D is, as an entry of its own jump table; ICF_NONE: D is data. */
static uint32_t owner_of(const struct marking *m, const struct icf_dataref *d)
{
	/* The dynamic linker writes a dynamic entry, whether its function is there or not. */
	if (d->table == ICF_NONE || d->dynamic || d->left || m->offered[d->table])
		return ICF_NONE;
	return m->prog->table.data[d->table].owner;
}

/* The units that entry D may lead to.  At the end of the owner begins another function: compilers
 * let impossible cases lead there, but an assembler's table may mean that function. */
static unsigned leads_to(const struct icf_program *prog, const struct icf_dataref *d,
			 uint32_t ret[2])
{
	unsigned n = 0;
	uint32_t at = icf_unit_at(prog, d->target);
	if (d->unit != ICF_NONE)
		ret[n++] = d->unit;
	if (at != ICF_NONE && at != d->unit)
		ret[n++] = at;
	return n;
}

static struct elfrw_err *make_cases(struct marking *m)
{
	const struct icf_program *prog = m->prog;
	size_t n = prog->unit.len;
	m->first_case = calloc(n + 2, sizeof *m->first_case);
	m->target = malloc((2 * prog->dataref.len + 1) * sizeof *m->target);
	m->offered = calloc(prog->table.len + 1, 1);
	if (!m->first_case || !m->target || !m->offered)
		return &elfrw_err_nomem;
	ELFRW_TRY(icf_find_offered_tables(prog, m->offered));
	for (unsigned pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < prog->dataref.len; i++) {
			const struct icf_dataref *d = &prog->dataref.data[i];
			uint32_t owner = owner_of(m, d), to[2];
			unsigned n_to = owner == ICF_NONE ? 0 : leads_to(prog, d, to);
			for (unsigned k = 0; k < n_to && pass; k++)
				m->target[m->first_case[owner + 1]++] = to[k];
			m->first_case[owner == ICF_NONE ? 0 : owner + 2] += pass ? 0 : n_to;
		}
		for (size_t i = 2; i < n + 2 && !pass; i++)
			m->first_case[i] += m->first_case[i - 1];
	}
	return NULL;
}

/* Why unit I is live whatever refers to it; ICF_USE_NONE: it is not. */
static enum icf_use_kind root_kind(const struct icf_program *prog, uint32_t i)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_exec *e = &prog->exec.data[u->sec];
	if (e->linkage)
		return ICF_USE_LINKAGE;
	if (e->named)
		return ICF_USE_DELIMITED;
	if (u->flags & ICF_UNIT_PINNED)
		return ICF_USE_PINNED;
	if (u->kind != ICF_UNIT_FUNC || (u->flags & ICF_UNIT_GLUED))
		return ICF_USE_NO_FUNCTION;
	for (uint32_t f = 0; f < u->n_fde; f++)
		if (dwr_cfi_has_address(&prog->cfi, prog->cfi.by_pc[u->fde + f]))
			return ICF_USE_UNWIND;
	for (uint32_t s = u->sym_first; s < u->sym_first + u->n_sym; s++)
		if (prog->sym.data[s].type == STT_GNU_IFUNC)
			return ICF_USE_IFUNC;
	return ICF_USE_NONE;
}

static void mark_dynamic(struct marking *m)
{
	const struct elfrw_image *img = m->prog->img;
	const struct elfrw_section *s = &img->section[img->dynamic];
	if (!img->dynamic || !s->data)
		return;
	for (size_t i = 0; i < s->hdr.sh_size / sizeof(Elf64_Dyn); i++) {
		Elf64_Dyn d;
		memcpy(&d, s->data + i * sizeof d, sizeof d);
		if (elfrw_dynamic_is_code(img->arch, d.d_tag))
			mark_address(m, d.d_un.d_ptr);
	}
}

/* A relocation against a section's symbol may mean any place of the section. */
static void mark_exports(struct marking *m)
{
	const struct elfrw_image *img = m->prog->img;
	const struct elfrw_section *s = &img->section[img->dynsym];
	for (struct elfrw_symbols it = elfrw_symbols(img->dynsym ? s : NULL, 1);
	     elfrw_symbols_next(&it);)
		if (ELF64_ST_TYPE(it.sym.st_info) != STT_TLS)
			mark_address(m, it.sym.st_value);
	for (size_t e = 0; elfrw_dynrelocs_name_sections(img) && e < m->prog->exec.len; e++)
		mark_section(m, &m->prog->exec.data[e]);
}

static void mark_marked_parts(struct marking *m)
{
	const struct icf_program *prog = m->prog;
	for (size_t i = 0; i < prog->mark.len; i++)
		for (size_t e = 0; e < prog->exec.len; e++)
			if (prog->mark.data[i] >= prog->exec.data[e].start &&
			    prog->mark.data[i] <= prog->exec.data[e].end)
				mark_section(m, &prog->exec.data[e]);
}

static bool is_pattern(const char *name)
{
	return strpbrk(name, "*?[\\") != NULL;
}

static struct elfrw_err *mark_named(struct marking *m, const struct icf_options *opt)
{
	const struct icf_program *prog = m->prog;
	for (size_t k = 0; k < opt->n_keep; k++) {
		const char *name = opt->keep[k];
		bool pattern = is_pattern(name), found = pattern;
		for (size_t i = 0; i < prog->sym.len; i++) {
			const struct icf_symbol *s = &prog->sym.data[i];
			if (pattern ? fnmatch(name, s->name, 0) : strcmp(name, s->name))
				continue;
			found = true;
			mark_address(m, s->value);
		}
		/* A function without a name is listed by its address. */
		uint32_t at = strncmp(name, "0x", 2) == 0
				      ? icf_unit_at(prog, strtoull(name, NULL, 16))
				      : ICF_NONE;
		mark(m, at);
		if (!found && at == ICF_NONE)
			return elfrw_error("--keep: no function is named %s", name);
	}
	return NULL;
}

static void mark_data(struct marking *m)
{
	const struct icf_program *prog = m->prog;
	for (size_t i = 0; i < prog->dataref.len; i++) {
		const struct icf_dataref *d = &prog->dataref.data[i];
		if (owner_of(m, d) != ICF_NONE || icf_objects_hold(&m->object, d->place, d->size))
			continue;
		uint32_t to[2];
		come_from(m, ICF_USE_DATA, ICF_NONE, d->place);
		for (unsigned k = leads_to(prog, d, to); k--;)
			mark(m, to[k]);
	}
	for (size_t i = 0; i < prog->dynreloc.len; i++) {
		const struct icf_dynreloc *d = &prog->dynreloc.data[i];
		come_from(m, ICF_USE_DATA, ICF_NONE, d->place);
		if (!d->relr && !icf_objects_hold(&m->object, d->place, 8))
			mark_address(m, d->addend);
	}
}

/* Without relocations: what something might lead to. */
static struct elfrw_err *mark_doubtful(struct marking *m, unsigned threads)
{
	uint8_t *keep = calloc(m->prog->unit.len + 1, 1);
	struct elfrw_err *err =
		keep ? icf_find_doubtful(m->prog, threads, m->live, keep) : &elfrw_err_nomem;
	come_from(m, ICF_USE_DOUBT, ICF_NONE, 0);
	for (uint32_t i = 0; i < m->prog->unit.len && !err; i++)
		if (keep[i])
			mark(m, i);
	free(keep);
	return err;
}

static struct elfrw_err *mark_roots(struct marking *m, const struct icf_options *opt)
{
	struct icf_program *prog = m->prog;
	come_from(m, ICF_USE_ENTRY, ICF_NONE, 0);
	if (prog->img->ehdr.e_entry)
		mark_address(m, prog->img->ehdr.e_entry);
	for (size_t i = 0; i < prog->sym.len; i++)
		if (icf_is_found_by_name(prog->sym.data[i].name))
			mark_address(m, prog->sym.data[i].value);
	come_from(m, ICF_USE_DYNAMIC, ICF_NONE, 0);
	mark_dynamic(m);
	come_from(m, ICF_USE_EXPORT, ICF_NONE, 0);
	mark_exports(m);
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		enum icf_use_kind kind = root_kind(prog, i);
		come_from(m, kind, ICF_NONE, 0);
		if (kind != ICF_USE_NONE)
			mark(m, i);
	}
	mark_data(m);
	come_from(m, ICF_USE_PERSONALITY, ICF_NONE, 0);
	for (size_t i = 0; i < prog->cfi.cie.len; i++)
		mark_address(m, prog->cfi.cie.data[i].personality);
	ELFRW_TRY(icf_find_probes(prog, opt));
	come_from(m, ICF_USE_PROBE, ICF_NONE, 0);
	for (size_t i = 0; i < prog->probe.len; i++)
		mark_address(m, prog->probe.data[i].pc);
	ELFRW_TRY(icf_find_marks(prog));
	come_from(m, ICF_USE_DELIMITED, ICF_NONE, 0);
	mark_marked_parts(m);
	prog->mark.len = 0; /* icf_find_eligible() finds them again */
	come_from(m, ICF_USE_KEEP, ICF_NONE, 0);
	ELFRW_TRY(mark_named(m, opt));
	/* Who asks for the ways from the roots wants the shortest. */
	return prog->inferred && m->use ? mark_doubtful(m, opt->threads) : NULL;
}

/* A relocation that stays in the file needs its symbol, even if the field leads elsewhere. */
static void mark_name(struct marking *m, uint32_t symtab, const Elf64_Rela *r)
{
	Elf64_Sym sym;
	if (elfrw_reloc_symbol(m->prog->img, symtab, r, &sym) && sym.st_shndx != SHN_UNDEF &&
	    ELF64_ST_TYPE(sym.st_info) != STT_SECTION && ELF64_ST_TYPE(sym.st_info) != STT_TLS)
		mark_address(m, sym.st_value);
}

static void follow_names(struct marking *m, const struct icf_unit *u)
{
	uint32_t i = (uint32_t)(u - m->prog->unit.data);
	const struct elfrw_relocs *rel = m->rel ? &m->rel[u->sec] : NULL;
	for (size_t r = rel ? elfrw_relocs_from(rel, u->start) : 0;
	     rel && r < rel->n && rel->rela[r].r_offset < u->end; r++) {
		come_from(m, ICF_USE_RELOC, i, rel->rela[r].r_offset);
		mark_name(m, rel->symtab, &rel->rela[r]);
	}
}

/* The same for the relocations of data, except those of the tables of functions. */
static void mark_names_in_data(struct marking *m)
{
	const struct elfrw_image *img = m->prog->img;
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_section *s = &img->section[i];
		if (!elfrw_image_kept_relocs(img, s) || !s->hdr.sh_info ||
		    (img->section[s->hdr.sh_info].hdr.sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) !=
			    SHF_ALLOC ||
		    strncmp(img->section[s->hdr.sh_info].name, ".eh_frame", 9) == 0)
			continue;
		for (uint64_t k = 0; k < s->hdr.sh_size / sizeof(Elf64_Rela); k++) {
			Elf64_Rela r;
			memcpy(&r, s->data + k * sizeof r, sizeof r);
			const struct icf_dataref *d = icf_dataref_at(m->prog, r.r_offset);
			come_from(m, ICF_USE_RELOC, ICF_NONE, r.r_offset);
			if ((!d || owner_of(m, d) == ICF_NONE) &&
			    !icf_objects_hold(&m->object, r.r_offset, 1))
				mark_name(m, s->hdr.sh_link, &r);
		}
	}
}

/* Opens the relocations of the code, which the output keeps. */
static struct elfrw_err *open_names(struct marking *m)
{
	const struct icf_program *prog = m->prog;
	m->rel = calloc(prog->exec.len + 1, sizeof *m->rel);
	if (!m->rel)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < prog->exec.len; i++)
		ELFRW_TRY(elfrw_relocs_open(&m->rel[i], prog->img, prog->exec.data[i].shndx));
	mark_names_in_data(m);
	return NULL;
}

/* Follows the references of unit I. */
static void follow(struct marking *m, uint32_t i)
{
	const struct icf_program *prog = m->prog;
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	for (uint32_t r = 0; r < u->n_ref; r++) {
		come_from(m, ICF_USE_CODE, i, u->start + ref[r].off);
		mark(m, ref[r].unit);
	}
	come_from(m, ICF_USE_TABLE, i, 0);
	for (uint32_t k = m->first_case[i]; k < m->first_case[i + 1]; k++)
		mark(m, m->target[k]);
	uint32_t n;
	come_from(m, ICF_USE_PAD, i, 0);
	const struct icf_pad *pad = icf_unit_pads(prog, i, &n);
	for (uint32_t k = 0; k < n; k++)
		mark(m, pad[k].unit);
	come_from(m, ICF_USE_FALLS, i, 0);
	if ((u->flags & ICF_UNIT_FALLS) && i + 1 < prog->unit.len)
		mark(m, i + 1);
	follow_names(m, u);
}

/* Follows the references of object K. */
static void follow_object(struct marking *m, uint32_t k)
{
	const struct icf_program *prog = m->prog;
	const struct icf_object *x = &m->object.v.data[k];
	const struct elfrw_relocs *rel = m->rel ? &m->object.rel[x->shndx] : NULL;
	size_t i = LOWER_BOUND(0, prog->dataref.len, mid, prog->dataref.data[mid].place < x->start);
	for (; i < prog->dataref.len && prog->dataref.data[i].place < x->end; i++) {
		uint32_t to[2];
		come_from(m, ICF_USE_OBJECT, x->use.from, prog->dataref.data[i].place);
		for (unsigned n = leads_to(prog, &prog->dataref.data[i], to); n--;)
			mark(m, to[n]);
	}
	for (size_t r = icf_first_dynreloc(prog, x->start);
	     r < prog->dynreloc.len && prog->dynreloc.data[r].place < x->end; r++) {
		come_from(m, ICF_USE_OBJECT, x->use.from, prog->dynreloc.data[r].place);
		if (!prog->dynreloc.data[r].relr)
			mark_address(m, prog->dynreloc.data[r].addend);
	}
	for (size_t r = rel ? elfrw_relocs_from(rel, x->start) : 0;
	     rel && r < rel->n && rel->rela[r].r_offset < x->end; r++) {
		come_from(m, ICF_USE_RELOC, x->use.from, rel->rela[r].r_offset);
		mark_name(m, rel->symtab, &rel->rela[r]);
	}
	icf_objects_of_object(&m->object, k);
}

/* First come, first served: the ways from the roots are short. */
static void follow_all(struct marking *m)
{
	bool objects = m->object.v.len;
	for (uint32_t n = 0; m->n_followed < m->n_queue || n < m->object.n_queue;) {
		if (n < m->object.n_queue)
			follow_object(m, m->object.queue[n++]);
		else {
			const uint32_t k = m->n_followed++;
			if (objects)
				icf_objects_of_unit(&m->object, m->queue[k]);
			follow(m, m->queue[k]);
		}
	}
}

/* Without relocations (then no object may be unused), what is known to be reached goes first: what
 * may lead to it need not be asked. */
static struct elfrw_err *follow_roots(struct marking *m, unsigned threads)
{
	follow_all(m);
	if (!m->prog->inferred || m->use)
		return NULL;
	ELFRW_TRY(mark_doubtful(m, threads));
	follow_all(m);
	return NULL;
}

/* Without relocations: who calls the sum of two numbers could call anything. */
static bool calls_sums(const struct icf_program *prog)
{
	for (uint32_t i = 0; i < prog->unit.len; i++)
		if (prog->unit.data[i].flags & ICF_UNIT_RELATIVE)
			return true;
	return false;
}

const char *icf_unused_obstacle(const struct icf_program *prog, const struct icf_options *opt)
{
	if (!opt->gc_functions)
		return NULL;
	if (prog->inferred && !prog->loose && calls_sums(prog))
		return "it has no relocations of its code, and some code calls the sum of two numbers";
	/* Not enough of such programs have been tried. */
	if (prog->inferred && prog->arch->low_form)
		return "on AArch64 it needs the relocations of the code (--emit-relocs)";
	return prog->loose;
}

struct elfrw_err *icf_find_unused(struct icf_program *prog, const struct icf_options *opt,
				  struct icf_use **use)
{
	if (!opt->gc_functions || icf_unused_obstacle(prog, opt))
		return NULL;
	struct marking m = { .prog = prog,
			     .live = calloc(prog->unit.len + 1, 1),
			     .queue = malloc((prog->unit.len + 1) * sizeof *m.queue) };
	if (use)
		m.use = calloc(prog->unit.len + 1, sizeof *m.use);
	struct elfrw_err *err =
		m.live && m.queue && (m.use || !use) ? make_cases(&m) : &elfrw_err_nomem;
	if (!err && opt->gc_functions == ICF_GC_OBJECTS && !prog->inferred)
		err = icf_objects_init(&m.object, prog);
	if (!err)
		err = mark_roots(&m, opt);
	if (!err && opt->emit_relocs)
		err = open_names(&m);
	if (!err && m.object.v.len)
		icf_objects_roots(&m.object);
	if (!err)
		err = follow_roots(&m, opt->threads);
	if (!err)
		err = icf_objects_finish(&m.object, prog);
	for (uint32_t i = 0; i < prog->unit.len && !err; i++)
		if (!m.live[i]) {
			prog->unit.data[i].flags |= ICF_UNIT_UNUSED;
			prog->unit.data[i].reason = ICF_UNUSED;
		}
	for (size_t i = 0; m.rel && i < prog->exec.len; i++)
		elfrw_relocs_close(&m.rel[i]);
	free(m.rel);
	free(m.live);
	free(m.queue);
	free(m.first_case);
	free(m.target);
	free(m.offered);
	icf_objects_deinit(&m.object);
	if (err)
		free(m.use);
	else if (use)
		*use = m.use;
	return err;
}

void icf_keep_unused(struct icf_program *prog)
{
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		struct icf_unit *u = &prog->unit.data[i];
		if (u->flags & ICF_UNIT_UNUSED)
			u->reason = ICF_NOT_WORTH;
		u->flags &= ~(uint32_t)ICF_UNIT_UNUSED;
	}
	prog->dead.len = 0;
}
