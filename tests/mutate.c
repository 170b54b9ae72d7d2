/* mutate.c: breaks one thing in a good output, to see whether `icfold verify` notices.
 *
 *   mutate --list                      the kinds of mutants, one a line
 *   mutate KIND I N IN OUT NEW         writes NEW: OUT with the I-th of N places of that kind changed
 *
 * A kind is a way to find places (fields of a given meaning) and a change.  The places of a kind are spread evenly over the
 * file.  Exit status: 0 done, one line says what was changed; 3 there is no such place in this file; 2 trouble. */
#include "dwarf/cfi.h"
#include "dwarf/icfold_layout.h"
#include "dwarf/icfold_note.h"
#include "dwarf/lsda.h"
#include "elfrw/arch.h"
#include "elfrw/image.h"
#include "elfrw/rbuf.h"
#include "elfrw/vec.h"
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A field of the output file. */
struct place {
	uint64_t off;
	unsigned size;
};

struct ctx {
	struct elfrw_image in, out;
	struct dwr_icfold note;
	struct dwr_cfi cfi;
	bool has_note;
	VEC(struct place) place;
	/* What the kind asks for: a section, a tag, an attribute, an index. */
	const char *name;
	long arg;
};

static void die(const char *what)
{
	fprintf(stderr, "mutate: %s\n", what);
	exit(2);
}

static void check(struct elfrw_err *err)
{
	if (err)
		die(elfrw_err_text(err));
}

static void add(struct ctx *c, const void *p, unsigned size)
{
	struct place *x = VEC_PUSH(&c->place);
	if (!x)
		die("out of memory");
	*x = (struct place){ (uint64_t)((const uint8_t *)p - c->out.base), size };
}

static void add_off(struct ctx *c, uint64_t off, unsigned size)
{
	if (off <= c->out.size && size <= c->out.size - off)
		add(c, c->out.base + off, size);
}

static const struct elfrw_section *section(struct ctx *c, const char *name)
{
	const struct elfrw_section *s = elfrw_image_section(&c->out, name);
	return s && s->data ? s : NULL;
}

static bool in_code(const struct elfrw_image *img, uint64_t va)
{
	uint32_t s = elfrw_image_section_at(img, va);
	return s && (img->section[s].hdr.sh_flags & SHF_EXECINSTR);
}

/* --- code ----------------------------------------------------------------------------------------------------------- */

typedef void (*on_insn)(struct ctx *c, const struct elfrw_addrmap_unit *u, const struct elfrw_insn *in, const uint8_t *p, uint64_t va);

static void each_insn(struct ctx *c, on_insn fn)
{
	for (uint32_t i = 0; c->has_note && i < c->note.map.n_units; i++) {
		const struct elfrw_addrmap_unit *u = &c->note.map.unit[i];
		uint64_t size = u->old_end - u->old;
		const uint8_t *p = u->flags & (ELFRW_UNIT_FOLDED | ELFRW_UNIT_PINNED) ? NULL : elfrw_image_at(&c->out, u->body, size);
		struct elfrw_insn in;
		for (uint64_t at = 0; p && at < size; at += in.len) {
			if (!c->out.arch->decode(p + at, size - at, u->body + at, &in))
				break;
			fn(c, u, &in, p + at, u->body + at);
		}
	}
}

static bool leaves(const struct elfrw_addrmap_unit *u, uint64_t target)
{
	return target - u->body >= u->old_end - u->old;
}

static void insn_call(struct ctx *c, const struct elfrw_addrmap_unit *u, const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)va;
	if (in->kind == ELFRW_INSN_CALL && leaves(u, in->target))
		add(c, p + in->pcrel_off, in->pcrel_size);
}
static void insn_tail(struct ctx *c, const struct elfrw_addrmap_unit *u, const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)va;
	if (in->kind == ELFRW_INSN_JMP && leaves(u, in->target))
		add(c, p + in->pcrel_off, in->pcrel_size);
}
static void insn_cold(struct ctx *c, const struct elfrw_addrmap_unit *u, const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)va;
	if (in->kind == ELFRW_INSN_JCC && leaves(u, in->target))
		add(c, p + in->pcrel_off, in->pcrel_size);
}
static void insn_inner(struct ctx *c, const struct elfrw_addrmap_unit *u, const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)va;
	if ((in->kind == ELFRW_INSN_JCC || in->kind == ELFRW_INSN_JMP) && !leaves(u, in->target))
		add(c, p + in->pcrel_off, in->pcrel_size);
}
static void insn_lea_code(struct ctx *c, const struct elfrw_addrmap_unit *u, const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)u, (void)va;
	if ((in->flags & ELFRW_INSN_LEA) && in->pcrel_size && in_code(&c->out, in->target))
		add(c, p + in->pcrel_off, in->pcrel_size);
}
static void insn_lea_data(struct ctx *c, const struct elfrw_addrmap_unit *u, const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)u, (void)va;
	if ((in->flags & ELFRW_INSN_LEA) && in->pcrel_size && !in_code(&c->out, in->target))
		add(c, p + in->pcrel_off, in->pcrel_size);
}
static void insn_load(struct ctx *c, const struct elfrw_addrmap_unit *u, const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)u, (void)va;
	if (in->pcrel_size && in->kind == ELFRW_INSN_OTHER && !(in->flags & ELFRW_INSN_LEA))
		add(c, p + in->pcrel_off, in->pcrel_size);
}
static void insn_indirect(struct ctx *c, const struct elfrw_addrmap_unit *u, const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)u, (void)va;
	if (in->pcrel_size && (in->kind == ELFRW_INSN_CALL_IND || in->kind == ELFRW_INSN_JMP_IND))
		add(c, p + in->pcrel_off, in->pcrel_size);
}
static void insn_opcode(struct ctx *c, const struct elfrw_addrmap_unit *u, const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)u, (void)va;
	if (in->kind == ELFRW_INSN_OTHER)
		add(c, p + in->opcode_off, 1);
}
static void insn_operand(struct ctx *c, const struct elfrw_addrmap_unit *u, const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)u, (void)va;
	if (in->kind == ELFRW_INSN_OTHER && in->reg != ELFRW_REG_NONE && in->len > in->opcode_off + 1)
		add(c, p + in->opcode_off + 1, 1);
}
static void insn_imm(struct ctx *c, const struct elfrw_addrmap_unit *u, const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)u, (void)va;
	if (in->imm_size)
		add(c, p + in->imm_off, 1);
}
static void insn_disp(struct ctx *c, const struct elfrw_addrmap_unit *u, const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)u, (void)va;
	if (in->disp_size)
		add(c, p + in->disp_off, 1);
}
static void insn_last(struct ctx *c, const struct elfrw_addrmap_unit *u, const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	if (va + in->len == u->body + (u->old_end - u->old))
		add(c, p + in->len - 1, 1);
}
static void insn_abs(struct ctx *c, const struct elfrw_addrmap_unit *u, const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)u, (void)va;
	if (!c->out.pic && in->imm_size == 4 && in->kind == ELFRW_INSN_OTHER && in_code(&c->out, elfrw_get32(p + in->imm_off)) &&
	    (in->opcode & 0xf8) == 0xb8)
		add(c, p + in->imm_off, 4);
}
static void insn_abs_data(struct ctx *c, const struct elfrw_addrmap_unit *u, const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)u, (void)va;
	uint64_t v = in->disp_size == 4 ? elfrw_get32(p + in->disp_off) : 0;
	if (!c->out.pic && v && elfrw_image_section_at(&c->out, v))
		add(c, p + in->disp_off, 4);
}

static void code_calls(struct ctx *c) { each_insn(c, insn_call); }
static void code_tails(struct ctx *c) { each_insn(c, insn_tail); }
static void code_colds(struct ctx *c) { each_insn(c, insn_cold); }
static void code_inner(struct ctx *c) { each_insn(c, insn_inner); }
static void code_lea_code(struct ctx *c) { each_insn(c, insn_lea_code); }
static void code_lea_data(struct ctx *c) { each_insn(c, insn_lea_data); }
static void code_loads(struct ctx *c) { each_insn(c, insn_load); }
static void code_indirect(struct ctx *c) { each_insn(c, insn_indirect); }
static void code_opcodes(struct ctx *c) { each_insn(c, insn_opcode); }
static void code_operands(struct ctx *c) { each_insn(c, insn_operand); }
static void code_imms(struct ctx *c) { each_insn(c, insn_imm); }
static void code_disps(struct ctx *c) { each_insn(c, insn_disp); }
static void code_last(struct ctx *c) { each_insn(c, insn_last); }
static void code_abs(struct ctx *c) { each_insn(c, insn_abs); }
static void code_abs_data(struct ctx *c) { each_insn(c, insn_abs_data); }

static bool covered(const struct ctx *c, uint64_t va)
{
	for (uint32_t i = 0; i < c->note.map.n_units; i++) {
		const struct elfrw_addrmap_unit *u = &c->note.map.unit[i];
		if ((!(u->flags & ELFRW_UNIT_FOLDED) && va - u->body < u->old_end - u->old) || va - u->entry < u->thunk_size)
			return true;
	}
	return false;
}

static void code_fill(struct ctx *c)
{
	const struct elfrw_section *s = section(c, ".text");
	for (uint64_t i = 0; c->has_note && s && i < s->hdr.sh_size && c->place.len < 400; i++)
		if (s->data[i] == c->out.arch->fill && !covered(c, s->hdr.sh_addr + i))
			add(c, s->data + i, 1);
}

static void thunks(struct ctx *c, unsigned from, unsigned size)
{
	for (uint32_t i = 0; c->has_note && i < c->note.map.n_units; i++) {
		const struct elfrw_addrmap_unit *u = &c->note.map.unit[i];
		const uint8_t *p = u->flags & ELFRW_UNIT_THUNK ? elfrw_image_at(&c->out, u->entry, u->thunk_size) : NULL;
		if (p)
			add(c, p + (u->thunk_size > 6 ? 4 : 0) + from, size);
	}
}
static void thunk_jumps(struct ctx *c) { thunks(c, 1, 4); }
static void thunk_opcodes(struct ctx *c) { thunks(c, 0, 1); }
static void thunk_tails(struct ctx *c) { thunks(c, 5, 1); }

/* --- sections and tables ---------------------------------------------------------------------------------------------- */

static void bytes(struct ctx *c)
{
	const struct elfrw_section *s = section(c, c->name);
	for (uint64_t i = 0; s && i < s->hdr.sh_size; i += s->hdr.sh_size > 2000 ? s->hdr.sh_size / 997 : 1)
		add(c, s->data + i, 1);
}

/* Words of a section that are not zero. */
static void words(struct ctx *c)
{
	const struct elfrw_section *s = section(c, c->name);
	for (uint64_t i = 0; s && i + 8 <= s->hdr.sh_size; i += 8)
		if (elfrw_get64(s->data + i))
			add(c, s->data + i, 8);
}

/* Fields of data that a kept relocation of the input describes: 4-byte distances to code (jump tables), or words that hold
 * an address of code. */
static void kept_fields(struct ctx *c, bool distance)
{
	const struct elfrw_image *in = &c->in;
	for (uint32_t i = 1; i < in->n_sections; i++) {
		const struct elfrw_section *r = &in->section[i];
		if (r->hdr.sh_type != SHT_RELA || (r->hdr.sh_flags & SHF_ALLOC) || !r->data)
			continue;
		const struct elfrw_section *s = &in->section[r->hdr.sh_info];
		if (!(s->hdr.sh_flags & SHF_ALLOC) || (s->hdr.sh_flags & SHF_EXECINSTR) || !s->data || strncmp(s->name, ".eh_frame", 9) == 0 ||
		    strncmp(s->name, ".gcc_except", 11) == 0)
			continue;
		for (uint64_t k = 0; k + sizeof(Elf64_Rela) <= r->hdr.sh_size; k += sizeof(Elf64_Rela)) {
			Elf64_Rela rel;
			memcpy(&rel, r->data + k, sizeof rel);
			uint32_t type = (uint32_t)ELF64_R_TYPE(rel.r_info);
			const uint8_t *p = elfrw_image_at(&c->out, rel.r_offset, distance ? 4 : 8);
			if (!p || type != (distance ? R_X86_64_PC32 : R_X86_64_64))
				continue;
			Elf64_Sym sym = { 0 };
			if (ELF64_R_SYM(rel.r_info))
				memcpy(&sym, in->section[r->hdr.sh_link].data + ELF64_R_SYM(rel.r_info) * sizeof sym, sizeof sym);
			if (distance ? sym.st_shndx < in->n_sections && (in->section[sym.st_shndx].hdr.sh_flags & SHF_EXECINSTR)
				     : !in->pic && in_code(&c->out, elfrw_get64(p)))
				add(c, p, distance ? 4 : 8);
		}
	}
}
static void table_entries(struct ctx *c) { kept_fields(c, true); }
static void code_words(struct ctx *c) { kept_fields(c, false); }

enum { RELA_CODE, RELA_DATA, RELA_OFFSET, RELA_INFO, RELA_SYMBOLIC };

static void dynamic_relocs(struct ctx *c)
{
	for (uint32_t i = 1; i < c->out.n_sections; i++) {
		const struct elfrw_section *s = &c->out.section[i];
		if (s->hdr.sh_type != SHT_RELA || !(s->hdr.sh_flags & SHF_ALLOC) || !s->data)
			continue;
		for (uint64_t k = 0; k + sizeof(Elf64_Rela) <= s->hdr.sh_size; k += sizeof(Elf64_Rela)) {
			Elf64_Rela r;
			memcpy(&r, s->data + k, sizeof r);
			bool relative = ELF64_R_TYPE(r.r_info) == R_X86_64_RELATIVE, code = in_code(&c->out, (uint64_t)r.r_addend);
			if ((c->arg == RELA_CODE && relative && code) || (c->arg == RELA_DATA && relative && !code) || (c->arg == RELA_SYMBOLIC && !relative))
				add(c, s->data + k + offsetof(Elf64_Rela, r_addend), 8);
			else if (c->arg == RELA_OFFSET)
				add(c, s->data + k, 8);
			else if (c->arg == RELA_INFO)
				add(c, s->data + k + offsetof(Elf64_Rela, r_info), 8);
		}
	}
}

static void irelative(struct ctx *c)
{
	for (uint32_t i = 1; i < c->out.n_sections; i++) {
		const struct elfrw_section *s = &c->out.section[i];
		for (uint64_t k = 0; s->hdr.sh_type == SHT_RELA && (s->hdr.sh_flags & SHF_ALLOC) && s->data && k + sizeof(Elf64_Rela) <= s->hdr.sh_size;
		     k += sizeof(Elf64_Rela)) {
			Elf64_Rela r;
			memcpy(&r, s->data + k, sizeof r);
			if (ELF64_R_TYPE(r.r_info) == R_X86_64_IRELATIVE)
				add(c, s->data + k + offsetof(Elf64_Rela, r_addend), 8);
		}
	}
}

static void dynamic(struct ctx *c)
{
	const struct elfrw_section *s = section(c, ".dynamic");
	for (uint64_t k = 0; s && k + sizeof(Elf64_Dyn) <= s->hdr.sh_size; k += sizeof(Elf64_Dyn)) {
		Elf64_Dyn d;
		memcpy(&d, s->data + k, sizeof d);
		if (c->arg ? d.d_tag == c->arg : d.d_tag != DT_NULL)
			add(c, s->data + k + 8, 8);
	}
}

static void dynamic_tags(struct ctx *c)
{
	const struct elfrw_section *s = section(c, ".dynamic");
	for (uint64_t k = 0; s && k + sizeof(Elf64_Dyn) <= s->hdr.sh_size; k += sizeof(Elf64_Dyn))
		add(c, s->data + k, 8);
}

/* --- unwind tables ------------------------------------------------------------------------------------------------------ */

enum { FDE_BEGIN, FDE_RANGE, FDE_INSN, FDE_CIE, FDE_LSDA, FDE_LENGTH };

static void fdes(struct ctx *c)
{
	for (size_t i = 0; i < c->cfi.fde.len; i++) {
		const struct dwr_fde *f = &c->cfi.fde.data[i];
		const uint8_t *p = c->cfi.data + f->off;
		if (f->pc_end <= f->pc_begin || !in_code(&c->out, f->pc_begin))
			continue;
		switch (c->arg) {
		case FDE_BEGIN:
			add(c, p + f->pc_off, f->pc_size);
			break;
		case FDE_RANGE:
			add(c, p + f->pc_off + f->pc_size, f->range_size);
			break;
		case FDE_INSN:
			if (f->insn_size > 1)
				add(c, f->insn + f->insn_size - 1, 1);
			break;
		case FDE_CIE:
			add(c, p + 4, 4);
			break;
		case FDE_LSDA:
			if (f->lsda)
				add(c, p + f->lsda_off, 4);
			break;
		case FDE_LENGTH:
			add(c, p, 4);
			break;
		}
	}
}

static void cies(struct ctx *c)
{
	for (size_t i = 0; i < c->cfi.cie.len; i++) {
		const struct dwr_cie *e = &c->cfi.cie.data[i];
		const uint8_t *p = c->cfi.data + e->off;
		if (!e->used)
			continue;
		if (c->arg == 0 && e->insn_size > 1)
			add(c, e->insn + 1, 1);
		else if (c->arg == 1 && e->personality_off)
			add(c, p + e->personality_off, 4);
		else if (c->arg == 2)
			add(c, p + 9 + strlen(e->augmentation) + 2, 1); /* data alignment, behind a one-byte code alignment */
	}
}

/* Bytes of the call-site tables: 0 start, 1 length, 2 landing pad, 3 action. */
static void lsda_sites(struct ctx *c)
{
	for (size_t i = 0; i < c->cfi.fde.len; i++) {
		const struct dwr_fde *f = &c->cfi.fde.data[i];
		const uint8_t *start = f->lsda && f->pc_end > f->pc_begin ? elfrw_image_at(&c->out, f->lsda, 4) : NULL;
		if (!start)
			continue;
		uint32_t s = elfrw_image_section_at(&c->out, f->lsda);
		struct elfrw_rbuf r = elfrw_rbuf(start, c->out.section[s].hdr.sh_size - (f->lsda - c->out.section[s].hdr.sh_addr));
		if (elfrw_rbuf_u8(&r) != DWR_PE_OMIT)
			continue;
		if (elfrw_rbuf_u8(&r) != DWR_PE_OMIT)
			elfrw_rbuf_uleb(&r);
		if (elfrw_rbuf_u8(&r) != DWR_PE_ULEB128)
			continue;
		uint64_t size = elfrw_rbuf_uleb(&r);
		const uint8_t *end = r.pos + size;
		while (r.pos < end && elfrw_rbuf_ok(&r)) {
			const uint8_t *field[4];
			uint64_t value[4];
			for (int k = 0; k < 4; k++) {
				field[k] = r.pos;
				value[k] = elfrw_rbuf_uleb(&r);
			}
			if (c->arg < 2 ? value[1] > 1 : c->arg == 2 ? value[2] != 0 : value[2] && value[3])
				add(c, field[c->arg], 1);
		}
	}
}

/* Entries of type tables that a chain names; or the actions themselves (filters). */
static void lsda_types(struct ctx *c)
{
	struct dwr_lsda l = { 0 };
	for (size_t i = 0; i < c->cfi.fde.len; i++) {
		const struct dwr_fde *f = &c->cfi.fde.data[i];
		if (!f->lsda || f->pc_end <= f->pc_begin)
			continue;
		check(dwr_lsda_read(&l, &c->out, f->lsda, f->pc_begin, f->pc_end));
		for (size_t k = 0; k < l.field.len; k++) {
			const uint8_t *p = elfrw_image_at(&c->out, l.field.data[k].va, l.field.data[k].size);
			if (p && l.field.data[k].used && l.field.data[k].addr)
				add(c, p, l.field.data[k].size);
		}
	}
	dwr_lsda_deinit(&l);
}

static void frame_hdr(struct ctx *c)
{
	const struct elfrw_section *s = section(c, ".eh_frame_hdr");
	if (!s || s->hdr.sh_size < 20)
		return;
	if (c->arg < 0) {
		add(c, s->data - c->arg, 4); /* pointer, count */
		return;
	}
	for (uint64_t k = 12 + (uint64_t)c->arg; k + 4 <= s->hdr.sh_size; k += 8)
		add(c, s->data + k, 4);
}

static void frame_hdr_pairs(struct ctx *c)
{
	const struct elfrw_section *s = section(c, ".eh_frame_hdr");
	for (uint64_t k = 12; s && k + 8 <= s->hdr.sh_size; k += 8)
		add(c, s->data + k, 8);
}

static void frame_end(struct ctx *c)
{
	for (size_t i = 0; i < c->cfi.terminator.len; i++)
		add(c, c->cfi.data + c->cfi.terminator.data[i], 4);
}

/* --- symbols, hash tables --------------------------------------------------------------------------------------------------- */

enum { SYM_ANY, SYM_FUNC, SYM_OBJECT, SYM_FOLDED };

static void symbols(struct ctx *c, const char *table, unsigned field, unsigned size)
{
	const struct elfrw_section *s = section(c, table);
	for (uint64_t k = sizeof(Elf64_Sym); s && k + sizeof(Elf64_Sym) <= s->hdr.sh_size; k += sizeof(Elf64_Sym)) {
		Elf64_Sym sym;
		memcpy(&sym, s->data + k, sizeof sym);
		unsigned type = ELF64_ST_TYPE(sym.st_info);
		if (sym.st_shndx == SHN_UNDEF || type == STT_FILE || type == STT_SECTION || !sym.st_name)
			continue;
		if (c->arg == SYM_ANY || (c->arg == SYM_FUNC && type == STT_FUNC && sym.st_size) || (c->arg == SYM_OBJECT && type == STT_OBJECT) ||
		    (c->arg == SYM_FOLDED && type == STT_FUNC && !sym.st_size))
			add(c, s->data + k + field, size);
	}
}
static void sym_values(struct ctx *c) { symbols(c, c->name, offsetof(Elf64_Sym, st_value), 8); }
static void sym_sizes(struct ctx *c) { symbols(c, c->name, offsetof(Elf64_Sym, st_size), 8); }
static void sym_infos(struct ctx *c) { symbols(c, c->name, offsetof(Elf64_Sym, st_info), 1); }
static void sym_others(struct ctx *c) { symbols(c, c->name, offsetof(Elf64_Sym, st_other), 1); }
static void sym_names(struct ctx *c) { symbols(c, c->name, offsetof(Elf64_Sym, st_name), 4); }
static void sym_shndx(struct ctx *c) { symbols(c, c->name, offsetof(Elf64_Sym, st_shndx), 2); }
static void sym_whole(struct ctx *c) { symbols(c, c->name, 0, sizeof(Elf64_Sym)); }

/* --- headers ----------------------------------------------------------------------------------------------------------------- */

static void ehdr(struct ctx *c)
{
	add_off(c, (uint64_t)c->arg & 0xff, (unsigned)(c->arg >> 8));
}

#define PHDR(type, field) ((long)(type) << 8 | (long)offsetof(Elf64_Phdr, field))

/* arg: type << 8 | offset of the field. */
static void phdrs(struct ctx *c)
{
	for (uint32_t i = 0; i < c->out.n_phdrs; i++) {
		unsigned field = (unsigned)(c->arg & 0xff);
		if (c->out.phdr[i].p_type != (uint32_t)(c->arg >> 8) || (field == offsetof(Elf64_Phdr, p_filesz) && !c->out.phdr[i].p_filesz))
			continue;
		add_off(c, c->out.ehdr.e_phoff + i * sizeof(Elf64_Phdr) + field, field < 8 ? 4 : 8);
	}
}

static void shdrs(struct ctx *c)
{
	for (uint32_t i = 1; i < c->out.n_sections; i++) {
		const struct elfrw_section *s = &c->out.section[i];
		if (strcmp(c->name, s->name) == 0 || (!*c->name && s->data && (s->hdr.sh_flags & SHF_ALLOC)))
			add_off(c, c->out.ehdr.e_shoff + i * sizeof(Elf64_Shdr) + (uint64_t)(c->arg & 0xff), c->arg >> 8 ? (unsigned)(c->arg >> 8) : 8);
	}
}

/* --- debug information -------------------------------------------------------------------------------------------------------- */

struct dies {
	struct ctx *c;
	const struct elfrw_section *info, *other;
	const char *base; /* of .debug_info in libdw's memory */
	unsigned attr, form;
	unsigned skip;     /* bytes of the value to pass over */
	unsigned size;
};

static int on_attr(Dwarf_Attribute *attr, void *arg)
{
	struct dies *d = arg;
	if (attr->code != d->attr || (d->form && attr->form != d->form))
		return DWARF_CB_OK;
	uint64_t off = (uint64_t)((const char *)attr->valp - d->base);
	if (d->other) {
		/* What the value says is an offset there. */
		Dwarf_Word v;
		if (dwarf_formudata(attr, &v) == 0 && v + d->skip + 1 < d->other->hdr.sh_size && d->other->data[v])
			add(d->c, d->other->data + v + d->skip, 1);
	} else if (off + d->skip + d->size <= d->info->hdr.sh_size && attr->form != DW_FORM_implicit_const && attr->form != DW_FORM_flag_present)
		add(d->c, d->info->data + off + d->skip, d->size);
	return DWARF_CB_OK;
}

static void walk(struct dies *d, Dwarf_Die *die, int depth)
{
	do {
		Dwarf_Die child;
		dwarf_getattrs(die, on_attr, d, 0);
		if (depth < 100 && dwarf_child(die, &child) == 0)
			walk(d, &child, depth + 1);
	} while (dwarf_siblingof(die, die) == 0);
}

static void each_die(struct ctx *c, unsigned attr, unsigned form, const char *other, unsigned skip, unsigned size)
{
	struct dies d = { .c = c, .info = section(c, ".debug_info"), .other = other ? section(c, other) : NULL, .attr = attr, .form = form, .skip = skip, .size = size };
	int fd = open(c->out.path, O_RDONLY);
	Dwarf *dw = d.info && (!other || d.other) ? dwarf_begin(fd, DWARF_C_READ) : NULL;
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	while (dw && dwarf_get_units(dw, cu, &cu, NULL, NULL, &die, NULL) == 0) {
		d.base = (const char *)die.addr - dwarf_dieoffset(&die);
		const char *name = dwarf_diename(&die);
		if (!name || strcmp(name, "<folded functions>") != 0)
			walk(&d, &die, 0);
	}
	if (dw)
		dwarf_end(dw);
}
static void attrs(struct ctx *c) { each_die(c, (unsigned)c->arg & 0xffff, (unsigned)(c->arg >> 16) & 0xffff, NULL, 0, (unsigned)(c->arg >> 32)); }
static void expressions(struct ctx *c) { each_die(c, DW_AT_location, DW_FORM_exprloc, NULL, 2, 1); }
static void pointed_at(struct ctx *c) { each_die(c, (unsigned)c->arg & 0xffff, (unsigned)(c->arg >> 16) & 0xffff, c->name, (unsigned)(c->arg >> 32), 1); }
#define ATTR(code, form, size) ((long)(code) | (long)(form) << 16 | (long)(size) << 32)

/* Line programs: places of one kind of operation. */
enum { LINE_SPECIAL = 100, LINE_EXTENDED = 200 };

static void line_table(struct ctx *c, const struct elfrw_section *s, struct elfrw_rbuf *r)
{
	const uint8_t *start = r->pos;
	uint64_t length = elfrw_rbuf_u32(r);
	if (length == 0xffffffff || length > elfrw_rbuf_left(r)) {
		r->pos = r->end;
		return;
	}
	const uint8_t *end = r->pos + length;
	unsigned version = elfrw_rbuf_u16(r);
	if (version >= 5)
		elfrw_rbuf_skip(r, 2);
	uint64_t header = elfrw_rbuf_u32(r);
	const uint8_t *program = r->pos + header;
	elfrw_rbuf_skip(r, version >= 4 ? 5 : 4);
	unsigned opcode_base = elfrw_rbuf_u8(r);
	uint8_t operands[256] = { 0 };
	for (unsigned i = 1; i < opcode_base; i++)
		operands[i] = elfrw_rbuf_u8(r);
	(void)start, (void)s;
	r->pos = program;
	while (r->pos < end && elfrw_rbuf_ok(r)) {
		const uint8_t *at = r->pos;
		unsigned op = elfrw_rbuf_u8(r);
		if (op >= opcode_base) {
			if (c->arg == LINE_SPECIAL)
				add(c, at, 1);
			continue;
		}
		if (op == 0) {
			uint64_t n = elfrw_rbuf_uleb(r);
			unsigned sub = n ? r->pos[0] : 0;
			if (c->arg == LINE_EXTENDED + (long)sub && n > 1)
				add(c, r->pos + 1, sub == DW_LNE_set_address ? 8 : 1);
			else if (c->arg == LINE_EXTENDED + (long)sub)
				add(c, r->pos, 1);
			elfrw_rbuf_skip(r, n);
			continue;
		}
		if (c->arg == (long)op)
			add(c, operands[op] ? r->pos : at, 1);
		if (op == DW_LNS_fixed_advance_pc)
			elfrw_rbuf_skip(r, 2);
		else
			for (unsigned k = 0; k < operands[op]; k++)
				elfrw_rbuf_uleb(r);
	}
	r->pos = end;
}

static void line_ops(struct ctx *c)
{
	const struct elfrw_section *s = section(c, ".debug_line");
	if (!s)
		return;
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
	while (elfrw_rbuf_left(&r) > 10)
		line_table(c, s, &r);
}

/* The last table: that of the artificial unit. */
static void artificial_ops(struct ctx *c)
{
	const struct elfrw_section *s = section(c, ".debug_line");
	if (!s || !c->has_note || c->note.artificial_unit == UINT64_MAX)
		return;
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
	while (elfrw_rbuf_left(&r) > 10) {
		c->place.len = 0;
		line_table(c, s, &r);
	}
}

static void aranges(struct ctx *c)
{
	const struct elfrw_section *s = section(c, ".debug_aranges");
	if (!s)
		return;
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
	while (elfrw_rbuf_left(&r) > 16) {
		uint64_t n = elfrw_rbuf_u32(&r);
		const uint8_t *end = r.pos + n;
		elfrw_rbuf_skip(&r, 12);
		for (const uint8_t *p = r.pos; p + 32 <= end; p += 16)
			if (elfrw_get64(p + 8))
				add(c, p + (c->arg ? 8 : 0), 8);
		elfrw_rbuf_skip(&r, n - 12);
	}
}

static void addresses(struct ctx *c)
{
	const struct elfrw_section *s = section(c, ".debug_addr");
	for (uint64_t k = 8; s && k + 8 <= s->hdr.sh_size; k += 8)
		if (in_code(&c->out, elfrw_get64(s->data + k)))
			add(c, s->data + k, 8);
}

static void call_table(struct ctx *c)
{
	const struct elfrw_section *s = section(c, c->name);
	if (!s)
		return;
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
	elfrw_rbuf_skip(&r, strcmp(c->name, ".debug_dcall") == 0 ? 10 : 6);
	while (elfrw_rbuf_left(&r) > 8) {
		const uint8_t *at = r.pos;
		uint64_t site = elfrw_rbuf_u64(&r);
		const uint8_t *number = r.pos;
		elfrw_rbuf_uleb(&r);
		if (c->arg == 0 && site)
			add(c, at, 8);
		else if (c->arg == 1 && site)
			add(c, number, 1);
		else if (c->arg == 2 && !site)
			add(c, number, 1);
	}
}

static void gdb_index(struct ctx *c)
{
	const struct elfrw_section *s = section(c, ".gdb_index");
	if (!s || s->hdr.sh_size < 24)
		return;
	for (uint64_t k = elfrw_get32(s->data + 12); k + 20 <= elfrw_get32(s->data + 16); k += 20)
		add(c, s->data + k + c->arg, c->arg == 16 ? 4 : 8);
}

/* --- .debug_icfold -------------------------------------------------------------------------------------------------------------- */

static void note_part(struct ctx *c)
{
	const struct elfrw_section *s = section(c, ".debug_icfold");
	if (!s || s->hdr.sh_size < NOTE_HEADER_SIZE)
		return;
	uint64_t off = elfrw_get64(s->data + NOTE_FIXED + 24 * c->arg), size = elfrw_get64(s->data + NOTE_FIXED + 24 * c->arg + 8);
	for (uint64_t i = 0; i < size; i++)
		if (c->arg != NOTE_STRINGS || s->data[off + i])
			add(c, s->data + off + i, 1);
}

static void note_header(struct ctx *c)
{
	const struct elfrw_section *s = section(c, ".debug_icfold");
	if (s)
		add(c, s->data + (c->arg & 0xff), (unsigned)(c->arg >> 8));
}

/* --- the kinds --------------------------------------------------------------------------------------------------------------------- */

enum edit { ADD, XOR, SWAP, COPY, ZERO, CUT, APPEND };

struct kind {
	const char *name;
	void (*find)(struct ctx *c);
	const char *section;
	long arg;
	enum edit edit;
	int64_t by;
};

#define EHDR(field) ((long)offsetof(Elf64_Ehdr, field) | (long)sizeof(((Elf64_Ehdr *)0)->field) << 8)
#define SHDR(field) ((long)offsetof(Elf64_Shdr, field) | (long)sizeof(((Elf64_Shdr *)0)->field) << 8)

static const struct kind kinds[] = {
	{ "call-target", code_calls, NULL, 0, ADD, 16 },
	{ "call-target-by-one", code_calls, NULL, 0, ADD, 1 },
	{ "calls-swapped", code_calls, NULL, 0, SWAP, 0 },
	{ "tail-jump", code_tails, NULL, 0, ADD, -2 },
	{ "jump-to-cold-part", code_colds, NULL, 0, ADD, 1 },
	{ "inner-branch", code_inner, NULL, 0, ADD, 1 },
	{ "function-address", code_lea_code, NULL, 0, ADD, 16 },
	{ "data-address", code_lea_data, NULL, 0, ADD, 8 },
	{ "data-load", code_loads, NULL, 0, ADD, 4 },
	{ "slot-of-indirect-call", code_indirect, NULL, 0, ADD, 8 },
	{ "opcode", code_opcodes, NULL, 0, XOR, 2 },
	{ "operand", code_operands, NULL, 0, XOR, 8 },
	{ "immediate", code_imms, NULL, 0, ADD, 1 },
	{ "displacement", code_disps, NULL, 0, ADD, 8 },
	{ "last-byte-of-function", code_last, NULL, 0, XOR, 1 },
	{ "absolute-function-address", code_abs, NULL, 0, ADD, 16 },
	{ "absolute-data-address", code_abs_data, NULL, 0, ADD, 4 },
	{ "fill-to-nop", code_fill, NULL, 0, XOR, 0xcc ^ 0x90 },
	{ "fill-to-ret", code_fill, NULL, 0, XOR, 0xcc ^ 0xc3 },
	{ "thunk-target", thunk_jumps, NULL, 0, ADD, 2 },
	{ "thunks-swapped", thunk_jumps, NULL, 0, SWAP, 0 },
	{ "thunk-calls", thunk_opcodes, NULL, 0, XOR, 1 },
	{ "thunk-tail", thunk_tails, NULL, 0, XOR, 0x55 },
	{ "plt-byte", bytes, ".plt", 0, XOR, 4 },
	{ "init-byte", bytes, ".init", 0, XOR, 4 },
	{ "fini-byte", bytes, ".fini", 0, XOR, 4 },
	{ "table-entry", table_entries, NULL, 0, ADD, 1 },
	{ "table-entries-swapped", table_entries, NULL, 0, SWAP, 0 },
	{ "table-entry-copied", table_entries, NULL, 0, COPY, 0 },
	{ "table-entry-zero", table_entries, NULL, 0, ZERO, 0 },
	{ "code-word", code_words, NULL, 0, ADD, 1 },
	{ "code-words-swapped", code_words, NULL, 0, SWAP, 0 },
	{ "relative-code-addend", dynamic_relocs, NULL, RELA_CODE, ADD, 1 },
	{ "relative-code-addend-copied", dynamic_relocs, NULL, RELA_CODE, COPY, 0 },
	{ "relative-data-addend", dynamic_relocs, NULL, RELA_DATA, ADD, 8 },
	{ "symbolic-addend", dynamic_relocs, NULL, RELA_SYMBOLIC, ADD, 8 },
	{ "relocation-place", dynamic_relocs, NULL, RELA_OFFSET, ADD, 8 },
	{ "relocation-type", dynamic_relocs, NULL, RELA_INFO, XOR, 1 },
	{ "relocation-symbol", dynamic_relocs, NULL, RELA_INFO, ADD, INT64_C(1) << 32 },
	{ "relocation-gone", dynamic_relocs, NULL, RELA_INFO, ZERO, 0 },
	{ "irelative-addend", irelative, NULL, 0, ADD, 16 },
	{ "relr-word", words, ".relr.dyn", 0, XOR, 2 },
	{ "got-word", words, ".got", 0, ADD, 8 },
	{ "got-plt-word", words, ".got.plt", 0, ADD, 8 },
	{ "init-array-word", words, ".init_array", 0, ADD, 1 },
	{ "fini-array-word", words, ".fini_array", 0, ADD, 1 },
	{ "relro-word", words, ".data.rel.ro", 0, ADD, 8 },
	{ "rodata-byte", bytes, ".rodata", 0, XOR, 1 },
	{ "data-byte", bytes, ".data", 0, XOR, 1 },
	{ "tdata-byte", bytes, ".tdata", 0, XOR, 1 },
	{ "interp-byte", bytes, ".interp", 0, XOR, 1 },
	{ "dt-init", dynamic, NULL, DT_INIT, ADD, 4 },
	{ "dt-fini", dynamic, NULL, DT_FINI, ADD, 4 },
	{ "dt-value", dynamic, NULL, 0, ADD, 1 },
	{ "dt-tag", dynamic_tags, NULL, 0, XOR, 1 },
	{ "entry-point", ehdr, NULL, EHDR(e_entry), ADD, 1 },
	{ "fde-begin", fdes, NULL, FDE_BEGIN, ADD, 1 },
	{ "fde-range", fdes, NULL, FDE_RANGE, ADD, 1 },
	{ "fde-range-zero", fdes, NULL, FDE_RANGE, ZERO, 0 },
	{ "fde-rules", fdes, NULL, FDE_INSN, ADD, 1 },
	{ "fde-cie", fdes, NULL, FDE_CIE, ADD, 8 },
	{ "fde-lsda", fdes, NULL, FDE_LSDA, ADD, 2 },
	{ "fde-lsda-none", fdes, NULL, FDE_LSDA, ZERO, 0 },
	{ "fde-length", fdes, NULL, FDE_LENGTH, ADD, 4 },
	{ "fde-ends-table", fdes, NULL, FDE_LENGTH, ZERO, 0 },
	{ "cie-rules", cies, NULL, 0, ADD, 1 },
	{ "cie-personality", cies, NULL, 1, ADD, 8 },
	{ "cie-data-alignment", cies, NULL, 2, XOR, 1 },
	{ "frame-end", frame_end, NULL, 0, ADD, 4 },
	{ "lsda-site-start", lsda_sites, NULL, 0, XOR, 1 },
	{ "lsda-site-length", lsda_sites, NULL, 1, XOR, 1 },
	{ "lsda-landing-pad", lsda_sites, NULL, 2, XOR, 1 },
	{ "lsda-action", lsda_sites, NULL, 3, XOR, 2 },
	{ "lsda-no-action", lsda_sites, NULL, 3, ZERO, 0 },
	{ "lsda-type", lsda_types, NULL, 0, ADD, 8 },
	{ "lsda-types-swapped", lsda_types, NULL, 0, SWAP, 0 },
	{ "frame-hdr-address", frame_hdr, NULL, 0, ADD, 1 },
	{ "frame-hdr-record", frame_hdr, NULL, 4, ADD, 4 },
	{ "frame-hdr-swapped", frame_hdr_pairs, NULL, 0, SWAP, 0 },
	{ "frame-hdr-pointer", frame_hdr, NULL, -4, ADD, 4 },
	{ "frame-hdr-count", frame_hdr, NULL, -8, ADD, -1 },
	{ "symbol-value", sym_values, ".symtab", SYM_FUNC, ADD, 1 },
	{ "symbol-value-copied", sym_values, ".symtab", SYM_FUNC, COPY, 0 },
	{ "symbol-size", sym_sizes, ".symtab", SYM_FUNC, ADD, 1 },
	{ "folded-symbol-value", sym_values, ".symtab", SYM_FOLDED, ADD, 2 },
	{ "folded-symbol-size", sym_sizes, ".symtab", SYM_FOLDED, ADD, 16 },
	{ "symbol-type", sym_infos, ".symtab", SYM_ANY, XOR, 1 },
	{ "symbol-binding", sym_infos, ".symtab", SYM_ANY, XOR, 0x20 },
	{ "symbol-visibility", sym_others, ".symtab", SYM_ANY, XOR, 2 },
	{ "symbol-name", sym_names, ".symtab", SYM_ANY, ADD, 1 },
	{ "symbol-section", sym_shndx, ".symtab", SYM_FUNC, ADD, 1 },
	{ "symbols-swapped", sym_whole, ".symtab", SYM_FUNC, SWAP, 0 },
	{ "data-symbol-value", sym_values, ".symtab", SYM_OBJECT, ADD, 8 },
	{ "strtab-byte", bytes, ".strtab", 0, XOR, 1 },
	{ "dynsym-value", sym_values, ".dynsym", SYM_FUNC, ADD, 2 },
	{ "dynsym-name", sym_names, ".dynsym", SYM_ANY, ADD, 1 },
	{ "dynsym-section", sym_shndx, ".dynsym", SYM_ANY, ADD, 1 },
	{ "dynstr-byte", bytes, ".dynstr", 0, XOR, 1 },
	{ "gnu-hash-byte", bytes, ".gnu.hash", 0, XOR, 1 },
	{ "version-byte", bytes, ".gnu.version", 0, XOR, 1 },
	{ "version-need-byte", bytes, ".gnu.version_r", 0, XOR, 1 },
	{ "load-offset", phdrs, NULL, PHDR(PT_LOAD, p_offset), ADD, 4096 },
	{ "load-offset-by-one", phdrs, NULL, PHDR(PT_LOAD, p_offset), ADD, 1 },
	{ "load-address", phdrs, NULL, PHDR(PT_LOAD, p_vaddr), ADD, 4096 },
	{ "load-file-size", phdrs, NULL, PHDR(PT_LOAD, p_filesz), ADD, -16 },
	{ "load-memory-size", phdrs, NULL, PHDR(PT_LOAD, p_memsz), ADD, -16 },
	{ "load-protection", phdrs, NULL, PHDR(PT_LOAD, p_flags), XOR, PF_W },
	{ "load-not-executable", phdrs, NULL, PHDR(PT_LOAD, p_flags), XOR, PF_X },
	{ "load-alignment", phdrs, NULL, PHDR(PT_LOAD, p_align), XOR, 0x1000 | 0x10 },
	{ "load-type", phdrs, NULL, PHDR(PT_LOAD, p_type), ZERO, 0 },
	{ "dynamic-segment", phdrs, NULL, PHDR(PT_DYNAMIC, p_vaddr), ADD, 16 },
	{ "interp-segment", phdrs, NULL, PHDR(PT_INTERP, p_offset), ADD, 1 },
	{ "frame-segment", phdrs, NULL, PHDR(PT_GNU_EH_FRAME, p_vaddr), ADD, 4 },
	{ "frame-segment-size", phdrs, NULL, PHDR(PT_GNU_EH_FRAME, p_memsz), ADD, -8 },
	{ "relro-size", phdrs, NULL, PHDR(PT_GNU_RELRO, p_memsz), ADD, -4096 },
	{ "tls-size", phdrs, NULL, PHDR(PT_TLS, p_memsz), ADD, 8 },
	{ "tls-alignment", phdrs, NULL, PHDR(PT_TLS, p_align), ADD, 8 },
	{ "stack-protection", phdrs, NULL, PHDR(PT_GNU_STACK, p_flags), XOR, PF_X },
	{ "note-segment", phdrs, NULL, PHDR(PT_NOTE, p_offset), ADD, 4 },
	{ "phdr-segment", phdrs, NULL, PHDR(PT_PHDR, p_memsz), ADD, 56 },
	{ "file-type", ehdr, NULL, EHDR(e_type), XOR, 1 },
	{ "file-machine", ehdr, NULL, EHDR(e_machine), ADD, 1 },
	{ "file-flags", ehdr, NULL, EHDR(e_flags), ADD, 1 },
	{ "program-header-count", ehdr, NULL, EHDR(e_phnum), ADD, -1 },
	{ "program-header-offset", ehdr, NULL, EHDR(e_phoff), ADD, 8 },
	{ "section-header-count", ehdr, NULL, EHDR(e_shnum), ADD, -1 },
	{ "section-header-offset", ehdr, NULL, EHDR(e_shoff), ADD, 8 },
	{ "section-names", ehdr, NULL, EHDR(e_shstrndx), ADD, -1 },
	{ "section-address", shdrs, "", SHDR(sh_addr), ADD, 16 },
	{ "section-offset", shdrs, "", SHDR(sh_offset), ADD, 16 },
	{ "section-size", shdrs, "", SHDR(sh_size), ADD, -8 },
	{ "section-flags", shdrs, "", SHDR(sh_flags), XOR, SHF_WRITE },
	{ "section-type", shdrs, "", SHDR(sh_type), ADD, 1 },
	{ "section-link", shdrs, ".dynsym", SHDR(sh_link), ADD, 1 },
	{ "section-info", shdrs, ".symtab", SHDR(sh_info), ADD, 1 },
	{ "section-name", shdrs, "", SHDR(sh_name), ADD, 1 },
	{ "section-alignment", shdrs, "", SHDR(sh_addralign), ADD, 1 },
	{ "truncated", NULL, NULL, 0, CUT, 64 },
	{ "truncated-half", NULL, NULL, 0, CUT, 0 },
	{ "appended", NULL, NULL, 0, APPEND, 64 },
	{ "comment-byte", bytes, ".comment", 0, XOR, 1 },
	{ "property-note", bytes, ".note.gnu.property", 0, XOR, 1 },
	{ "abi-note", bytes, ".note.ABI-tag", 0, XOR, 1 },
	{ "probe-note", bytes, ".note.stapsdt", 0, XOR, 1 },
	{ "map-sections", note_part, NULL, NOTE_SECTIONS, XOR, 1 },
	{ "map-units", note_part, NULL, NOTE_MAP, XOR, 1 },
	{ "map-groups", note_part, NULL, NOTE_GROUPS, XOR, 1 },
	{ "map-slots", note_part, NULL, NOTE_VSLOTS, XOR, 1 },
	{ "map-overlay", note_part, NULL, NOTE_OVERLAY, XOR, 1 },
	{ "map-names", note_part, NULL, NOTE_STRINGS, XOR, 1 },
	{ "map-magic", note_header, NULL, 0 | 8 << 8, XOR, 1 },
	{ "map-artificial-unit", note_header, NULL, 16 | 8 << 8, ADD, 1 },
	{ "map-trap-byte", note_header, NULL, 24 | 8 << 8, ADD, -16 },
	{ "map-thunks", note_header, NULL, 32 | 8 << 8, ADD, 6 },
	{ "die-low-pc", attrs, NULL, ATTR(DW_AT_low_pc, DW_FORM_addr, 8), ADD, 1 },
	{ "die-high-pc", attrs, NULL, ATTR(DW_AT_high_pc, DW_FORM_data8, 8), ADD, 1 },
	{ "die-entry-pc", attrs, NULL, ATTR(DW_AT_entry_pc, DW_FORM_addr, 8), ADD, 1 },
	{ "die-return-pc", attrs, NULL, ATTR(DW_AT_call_return_pc, DW_FORM_addr, 8), ADD, 1 },
	{ "die-name", attrs, NULL, ATTR(DW_AT_name, DW_FORM_strp, 4), ADD, 1 },
	{ "die-decl-line", attrs, NULL, ATTR(DW_AT_decl_line, 0, 1), XOR, 1 },
	{ "die-call-line", attrs, NULL, ATTR(DW_AT_call_line, 0, 1), XOR, 1 },
	{ "die-type", attrs, NULL, ATTR(DW_AT_type, DW_FORM_ref4, 4), ADD, 1 },
	{ "die-origin", attrs, NULL, ATTR(DW_AT_abstract_origin, DW_FORM_ref4, 4), ADD, 1 },
	{ "die-call-origin", attrs, NULL, ATTR(DW_AT_call_origin, DW_FORM_ref4, 4), ADD, 1 },
	{ "die-byte-size", attrs, NULL, ATTR(DW_AT_byte_size, 0, 1), XOR, 1 },
	{ "die-ranges", attrs, NULL, ATTR(DW_AT_ranges, DW_FORM_sec_offset, 4), ADD, 1 },
	{ "die-location-list", attrs, NULL, ATTR(DW_AT_location, DW_FORM_sec_offset, 4), ADD, 1 },
	{ "die-line-table", attrs, NULL, ATTR(DW_AT_stmt_list, DW_FORM_sec_offset, 4), ADD, 1 },
	{ "die-expression", expressions, NULL, 0, XOR, 4 },
	{ "range-list", pointed_at, ".debug_rnglists", ATTR(DW_AT_ranges, DW_FORM_sec_offset, 1), ADD, 1 },
	{ "range-list-4", pointed_at, ".debug_ranges", ATTR(DW_AT_ranges, DW_FORM_sec_offset, 0), ADD, 1 },
	{ "location-list", pointed_at, ".debug_loclists", ATTR(DW_AT_location, DW_FORM_sec_offset, 1), ADD, 1 },
	{ "location-views", pointed_at, ".debug_loclists", ATTR(DW_AT_GNU_locviews, DW_FORM_sec_offset, 0), ADD, 1 },
	{ "abbreviation", bytes, ".debug_abbrev", 0, XOR, 1 },
	{ "debug-string", bytes, ".debug_str", 0, XOR, 1 },
	{ "line-string", bytes, ".debug_line_str", 0, XOR, 1 },
	{ "line-special", line_ops, NULL, LINE_SPECIAL, ADD, 1 },
	{ "line-advance-pc", line_ops, NULL, DW_LNS_advance_pc, XOR, 1 },
	{ "line-advance-line", line_ops, NULL, DW_LNS_advance_line, XOR, 1 },
	{ "line-column", line_ops, NULL, DW_LNS_set_column, XOR, 1 },
	{ "line-file", line_ops, NULL, DW_LNS_set_file, ADD, 2 },
	{ "line-is-stmt", line_ops, NULL, DW_LNS_negate_stmt, ADD, 1 },
	{ "line-address", line_ops, NULL, LINE_EXTENDED + DW_LNE_set_address, ADD, 1 },
	{ "line-discriminator", line_ops, NULL, LINE_EXTENDED + DW_LNE_set_discriminator, XOR, 1 },
	{ "folded-line", artificial_ops, NULL, LINE_SPECIAL, ADD, 1 },
	{ "folded-line-advance", artificial_ops, NULL, DW_LNS_advance_line, XOR, 1 },
	{ "folded-line-address", artificial_ops, NULL, LINE_EXTENDED + DW_LNE_set_address, ADD, 1 },
	{ "arange-address", aranges, NULL, 0, ADD, 1 },
	{ "arange-length", aranges, NULL, 1, ADD, 1 },
	{ "debug-address", addresses, NULL, 0, ADD, 1 },
	{ "dcall-site", call_table, ".debug_dcall", 0, ADD, 1 },
	{ "dcall-callee", call_table, ".debug_dcall", 1, XOR, 1 },
	{ "dcall-caller", call_table, ".debug_dcall", 2, XOR, 1 },
	{ "vcall-site", call_table, ".debug_vcall", 0, ADD, 1 },
	{ "vcall-slot", call_table, ".debug_vcall", 1, XOR, 1 },
	{ "gdb-index-start", gdb_index, NULL, 0, ADD, 1 },
	{ "gdb-index-end", gdb_index, NULL, 8, ADD, 1 },
	{ "gdb-index-unit", gdb_index, NULL, 16, XOR, 1 },
};

/* Changes place I of BUF; false: it would stay what it is. */
static bool edit(const struct ctx *c, const struct kind *k, size_t i, uint8_t *buf)
{
	struct place a = c->place.data[i], b = c->place.data[(i + 1) % c->place.len];
	uint8_t *p = buf + a.off, *q = buf + b.off, keep[64];
	uint64_t v = a.size <= 8 ? elfrw_get_le(p, a.size) : 0;
	memcpy(keep, p, a.size);
	switch (k->edit) {
	case ADD:
		elfrw_put_le(p, v + (uint64_t)k->by, a.size);
		break;
	case XOR:
		elfrw_put_le(p, v ^ (uint64_t)k->by, a.size);
		break;
	case ZERO:
		memset(p, 0, a.size);
		break;
	case COPY:
		memcpy(p, q, a.size);
		break;
	case SWAP:
		memcpy(p, q, a.size);
		memcpy(q, keep, a.size);
		break;
	default:
		return false;
	}
	return memcmp(keep, p, a.size) != 0;
}

int main(int argc, char **argv)
{
	struct ctx c = { 0 };
	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
			puts(kinds[i].name);
		return 0;
	}
	if (argc != 7)
		die("usage: mutate KIND I N IN OUT NEW");
	const struct kind *k = kinds;
	while (k < kinds + sizeof kinds / sizeof *kinds && strcmp(k->name, argv[1]) != 0)
		k++;
	if (k == kinds + sizeof kinds / sizeof *kinds)
		die("no such kind");
	size_t index = strtoul(argv[2], NULL, 10), of = strtoul(argv[3], NULL, 10);
	check(elfrw_image_open(&c.in, argv[4]));
	check(elfrw_image_open(&c.out, argv[5]));
	const struct elfrw_section *s = section(&c, ".debug_icfold");
	if (s)
		check(dwr_icfold_read(&c.note, s->data, s->hdr.sh_size));
	c.has_note = s != NULL;
	s = section(&c, ".eh_frame");
	check(dwr_cfi_read(&c.cfi, ".eh_frame", s ? s->data : NULL, s ? s->hdr.sh_size : 0, s ? s->hdr.sh_addr : 0, true, 8));
	c.name = k->section;
	c.arg = k->arg;
	size_t size = c.out.size;
	uint8_t *buf = calloc(1, size + 4096);
	if (!buf || !of || index >= of)
		die("bad arguments");
	memcpy(buf, c.out.base, size);
	if (k->edit == CUT)
		size -= k->by ? (size_t)k->by * (index + 1) : size / 2 + index * 1000;
	else if (k->edit == APPEND)
		size += (size_t)k->by * (index + 1);
	else {
		k->find(&c);
		if (!c.place.len)
			return 3;
		size_t i = (2 * index + 1) * c.place.len / (2 * of), tries = 0;
		while (!edit(&c, k, i, buf)) {
			memcpy(buf, c.out.base, size);
			i = (i + 1) % c.place.len;
			if (++tries > 200 || tries > c.place.len)
				return 3;
		}
		printf("%s: %zu of %zu places, file offset 0x%llx\n", k->name, i, c.place.len, (unsigned long long)c.place.data[i].off);
	}
	FILE *f = fopen(argv[6], "wb");
	if (!f || fwrite(buf, 1, size, f) != size || fclose(f) != 0)
		die("cannot write");
	return 0;
}
