/* a64.c: places in AArch64 programs: packed fields of instructions, data among code, mapping
 * symbols, rules for signed return addresses. */
#include "elfrw/arch/symbol.h"
#include "elfrw/symtab.h"
#include "tests/mutate/mutate.h"

/* Instructions W with W & MASK == BITS. */
struct shape {
	uint32_t mask, bits;
};
static const struct shape shapes[] = {
	[A64_PAGE] = { 0x9f000000, 0x90000000 },      /* adrp */
	[A64_NEAR] = { 0x9f000000, 0x10000000 },      /* adr */
	[A64_LOW_ADD] = { 0xffc00000, 0x91000000 },   /* add, of an unshifted number */
	[A64_LOW_LOAD] = { 0xffc00000, 0xf9400000 },  /* ldr, 8 bytes */
	[A64_LOW_STORE] = { 0xffc00000, 0xf9000000 }, /* str, 8 bytes */
	[A64_CALL] = { 0xfc000000, 0x94000000 },
	[A64_JUMP] = { 0xfc000000, 0x14000000 },
	[A64_CONDITION] = { 0xff000010, 0x54000000 },
	[A64_ZERO] = { 0x7e000000, 0x34000000 }, /* cbz, cbnz */
	[A64_BIT] = { 0x7e000000, 0x36000000 },  /* tbz, tbnz */
	[A64_PART] = { 0x7f800000, 0x52800000 }, /* movz */
	[A64_LITERAL] = { 0x3b000000, 0x18000000 },
};

void mutate_a64_insns(struct ctx *c)
{
	const struct shape *s = &shapes[c->arg];
	for (uint32_t i = 0; c->has_note && i < c->note.map.n_units; i++) {
		const struct elfrw_addrmap_unit *u = &c->note.map.unit[i];
		uint64_t size = u->old_end - u->old;
		const uint8_t *p = u->flags & (ELFRW_UNIT_FOLDED | ELFRW_UNIT_PINNED)
					   ? NULL
					   : elfrw_image_at(&c->out, u->body, size);
		for (uint64_t at = 0; p && at + 4 <= size; at += 4)
			if ((elfrw_get32(p + at) & s->mask) == s->bits)
				mutate_add(c, p + at, 4);
	}
}

/* The landing pads of thunks. */
void mutate_a64_pads(struct ctx *c)
{
	for (uint32_t i = 0; c->has_note && i < c->note.map.n_units; i++) {
		const struct elfrw_addrmap_unit *u = &c->note.map.unit[i];
		const uint8_t *p = u->flags & ELFRW_UNIT_THUNK
					   ? elfrw_image_at(&c->out, u->entry, u->thunk_size)
					   : NULL;
		if (p && u->thunk_size >= 8 && elfrw_get32(p) == 0xd503245f)
			mutate_add(c, p, 4);
	}
}

/* Mapping symbols in code.  ARG 0: the values of those of data; 1: names that differ from the one
 * before; 2: words behind those of data. */
void mutate_a64_mapping(struct ctx *c)
{
	const struct elfrw_section *s = &c->out.section[c->out.symtab];
	bool before = false;
	for (struct elfrw_symbols it = elfrw_symbols(s, 1); elfrw_symbols_next(&it);) {
		const char *name = elfrw_image_string(&c->out, s->hdr.sh_link, it.sym.st_name);
		const uint8_t *p = s->data + it.index * sizeof(Elf64_Sym),
			      *code = elfrw_image_at(&c->out, it.sym.st_value, 4);
		if (!name || !code || !mutate_in_code(&c->out, it.sym.st_value) ||
		    !elfrw_symbol_is_mapping(&c->out.ehdr, ELF64_ST_TYPE(it.sym.st_info), name))
			continue;
		bool data = elfrw_symbol_begins_data(name);
		if (c->arg == 0 && data)
			mutate_add(c, p + offsetof(Elf64_Sym, st_value), 8);
		else if (c->arg == 1 && data != before)
			mutate_add(c, p + offsetof(Elf64_Sym, st_name), 4);
		else if (c->arg == 2 && data)
			mutate_add(c, code, 4);
		before = data;
	}
}

/* Bytes ARG of the rules of functions: instructions without operands, or operands that are alike.
 */
void mutate_a64_rules(struct ctx *c)
{
	for (size_t i = 0; i < c->cfi.fde.len; i++) {
		const struct dwr_fde *f = &c->cfi.fde.data[i];
		if (f->pc_end <= f->pc_begin || !mutate_in_code(&c->out, f->pc_begin))
			continue;
		for (size_t k = 0; k < f->insn_size; k++)
			if (f->insn[k] == c->arg)
				mutate_add(c, f->insn + k, 1);
	}
}
