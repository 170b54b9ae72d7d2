/* code.c: places in instructions, padding and thunks; words that lead into code. */
#include "tests/mutate/mutate.h"

typedef void (*on_insn)(struct ctx *c, const struct elfrw_addrmap_unit *u,
			const struct elfrw_insn *in, const uint8_t *p, uint64_t va);

static void each_insn(struct ctx *c, on_insn fn)
{
	for (uint32_t i = 0; c->has_note && i < c->note.map.n_units; i++) {
		const struct elfrw_addrmap_unit *u = &c->note.map.unit[i];
		uint64_t size = u->old_end - u->old;
		const uint8_t *p = u->flags & (ELFRW_UNIT_FOLDED | ELFRW_UNIT_PINNED)
					   ? NULL
					   : elfrw_image_at(&c->out, u->body, size);
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

static void insn_call(struct ctx *c, const struct elfrw_addrmap_unit *u,
		      const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)va;
	if (in->kind == ELFRW_INSN_CALL && leaves(u, in->target))
		mutate_add(c, p + in->pcrel_off, in->pcrel_size);
}
static void insn_tail(struct ctx *c, const struct elfrw_addrmap_unit *u,
		      const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)va;
	if (in->kind == ELFRW_INSN_JMP && leaves(u, in->target))
		mutate_add(c, p + in->pcrel_off, in->pcrel_size);
}
static void insn_cold(struct ctx *c, const struct elfrw_addrmap_unit *u,
		      const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)va;
	if (in->kind == ELFRW_INSN_JCC && leaves(u, in->target))
		mutate_add(c, p + in->pcrel_off, in->pcrel_size);
}
static void insn_inner(struct ctx *c, const struct elfrw_addrmap_unit *u,
		       const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)va;
	if ((in->kind == ELFRW_INSN_JCC || in->kind == ELFRW_INSN_JMP) && !leaves(u, in->target))
		mutate_add(c, p + in->pcrel_off, in->pcrel_size);
}
static void insn_lea_code(struct ctx *c, const struct elfrw_addrmap_unit *u,
			  const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)u, (void)va;
	if ((in->flags & ELFRW_INSN_LEA) && in->pcrel_size && mutate_in_code(&c->out, in->target))
		mutate_add(c, p + in->pcrel_off, in->pcrel_size);
}
static void insn_lea_data(struct ctx *c, const struct elfrw_addrmap_unit *u,
			  const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)u, (void)va;
	if ((in->flags & ELFRW_INSN_LEA) && in->pcrel_size && !mutate_in_code(&c->out, in->target))
		mutate_add(c, p + in->pcrel_off, in->pcrel_size);
}
static void insn_load(struct ctx *c, const struct elfrw_addrmap_unit *u,
		      const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)u, (void)va;
	if (in->pcrel_size && in->kind == ELFRW_INSN_OTHER && !(in->flags & ELFRW_INSN_LEA))
		mutate_add(c, p + in->pcrel_off, in->pcrel_size);
}
static void insn_indirect(struct ctx *c, const struct elfrw_addrmap_unit *u,
			  const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)u, (void)va;
	if (in->pcrel_size && (in->kind == ELFRW_INSN_CALL_IND || in->kind == ELFRW_INSN_JMP_IND))
		mutate_add(c, p + in->pcrel_off, in->pcrel_size);
}
static void insn_opcode(struct ctx *c, const struct elfrw_addrmap_unit *u,
			const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)u, (void)va;
	if (in->kind == ELFRW_INSN_OTHER)
		mutate_add(c, p + in->opcode_off, 1);
}
static void insn_operand(struct ctx *c, const struct elfrw_addrmap_unit *u,
			 const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)u, (void)va;
	if (in->kind == ELFRW_INSN_OTHER && in->reg != ELFRW_REG_NONE &&
	    in->len > in->opcode_off + 1)
		mutate_add(c, p + in->opcode_off + 1, 1);
}
static void insn_imm(struct ctx *c, const struct elfrw_addrmap_unit *u, const struct elfrw_insn *in,
		     const uint8_t *p, uint64_t va)
{
	(void)u, (void)va;
	if (in->imm_size)
		mutate_add(c, p + in->imm_off, 1);
}
static void insn_disp(struct ctx *c, const struct elfrw_addrmap_unit *u,
		      const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)u, (void)va;
	if (in->disp_size)
		mutate_add(c, p + in->disp_off, 1);
}
/* Operands of traps and no-ops, which are no references. The change treats them as distances to
 * moved code. */
static void insn_number(struct ctx *c, const struct elfrw_addrmap_unit *u,
			const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)va;
	if ((in->kind == ELFRW_INSN_TRAP || in->kind == ELFRW_INSN_NOP) && in->pcrel_size &&
	    u->old != u->body)
		mutate_add_moved(c, p + in->pcrel_off, in->pcrel_size, u->old - u->body);
}
/* An address of data, which does not move. */
static uint64_t data_address(const struct ctx *c)
{
	const struct elfrw_section *a = elfrw_image_section(&c->in, ".rodata"),
				   *b = elfrw_image_section(&c->out, ".rodata");
	return a && b && a->hdr.sh_addr == b->hdr.sh_addr ? a->hdr.sh_addr : 0;
}
/* The same operands, as numbers that by chance are distances to data, and that the output has
 * corrected as such.  Nothing but the rule for numbers can tell: both lead to one address. */
static void insn_number_inside(struct ctx *c, const struct elfrw_addrmap_unit *u,
			       const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	uint64_t was = u->old + (va - u->body), data = data_address(c);
	const uint8_t *q = elfrw_image_at(&c->in, was, in->len);
	if ((in->kind == ELFRW_INSN_TRAP || in->kind == ELFRW_INSN_NOP) && in->pcrel_size && q &&
	    u->old != u->body && data)
		mutate_add_both(c, p + in->pcrel_off, data - (va + in->len), q + in->pcrel_off,
				data - (was + in->len), in->pcrel_size);
}
static void insn_last(struct ctx *c, const struct elfrw_addrmap_unit *u,
		      const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	if (va + in->len == u->body + (u->old_end - u->old))
		mutate_add(c, p + in->len - 1, 1);
}
static void insn_abs(struct ctx *c, const struct elfrw_addrmap_unit *u, const struct elfrw_insn *in,
		     const uint8_t *p, uint64_t va)
{
	(void)u, (void)va;
	if (!c->out.pic && in->imm_size == 4 && in->kind == ELFRW_INSN_OTHER &&
	    mutate_in_code(&c->out, elfrw_get32(p + in->imm_off)) && (in->opcode & 0xf8) == 0xb8)
		mutate_add(c, p + in->imm_off, 4);
}
static void insn_abs_data(struct ctx *c, const struct elfrw_addrmap_unit *u,
			  const struct elfrw_insn *in, const uint8_t *p, uint64_t va)
{
	(void)u, (void)va;
	uint64_t v = in->disp_size == 4 ? elfrw_get32(p + in->disp_off) : 0;
	if (!c->out.pic && v && elfrw_image_section_at(&c->out, v))
		mutate_add(c, p + in->disp_off, 4);
}

void mutate_code_calls(struct ctx *c)
{
	each_insn(c, insn_call);
}
void mutate_code_tails(struct ctx *c)
{
	each_insn(c, insn_tail);
}
void mutate_code_colds(struct ctx *c)
{
	each_insn(c, insn_cold);
}
void mutate_code_inner(struct ctx *c)
{
	each_insn(c, insn_inner);
}
void mutate_code_lea_code(struct ctx *c)
{
	each_insn(c, insn_lea_code);
}
void mutate_code_lea_data(struct ctx *c)
{
	each_insn(c, insn_lea_data);
}
void mutate_code_loads(struct ctx *c)
{
	each_insn(c, insn_load);
}
void mutate_code_indirect(struct ctx *c)
{
	each_insn(c, insn_indirect);
}
void mutate_code_opcodes(struct ctx *c)
{
	each_insn(c, insn_opcode);
}
void mutate_code_operands(struct ctx *c)
{
	each_insn(c, insn_operand);
}
void mutate_code_imms(struct ctx *c)
{
	each_insn(c, insn_imm);
}
void mutate_code_disps(struct ctx *c)
{
	each_insn(c, insn_disp);
}
void mutate_code_numbers(struct ctx *c)
{
	each_insn(c, insn_number);
}
void mutate_code_numbers_inside(struct ctx *c)
{
	each_insn(c, insn_number_inside);
}
void mutate_code_last(struct ctx *c)
{
	each_insn(c, insn_last);
}
void mutate_code_abs(struct ctx *c)
{
	each_insn(c, insn_abs);
}
void mutate_code_abs_data(struct ctx *c)
{
	each_insn(c, insn_abs_data);
}

static bool covered(const struct ctx *c, uint64_t va)
{
	for (uint32_t i = 0; i < c->note.map.n_units; i++) {
		const struct elfrw_addrmap_unit *u = &c->note.map.unit[i];
		if ((!(u->flags & ELFRW_UNIT_FOLDED) && va - u->body < u->old_end - u->old) ||
		    va - u->entry < u->thunk_size)
			return true;
	}
	return false;
}

void mutate_code_fill(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, ".text");
	for (uint64_t i = 0; c->has_note && s && i < s->hdr.sh_size && c->place.len < 400; i++)
		if (s->data[i] == elfrw_fill_byte(c->out.arch, s->hdr.sh_addr + i) &&
		    !covered(c, s->hdr.sh_addr + i))
			mutate_add(c, s->data + i, 1);
}

static void thunks(struct ctx *c, unsigned from, unsigned size)
{
	for (uint32_t i = 0; c->has_note && i < c->note.map.n_units; i++) {
		const struct elfrw_addrmap_unit *u = &c->note.map.unit[i];
		const uint8_t *p = u->flags & ELFRW_UNIT_THUNK
					   ? elfrw_image_at(&c->out, u->entry, u->thunk_size)
					   : NULL;
		if (p)
			mutate_add(c, p + (u->thunk_size > 6 ? 4 : 0) + from, size);
	}
}
/* What is left of bodies that were folded in place. */
void mutate_thunk_bodies(struct ctx *c)
{
	for (uint32_t i = 0; c->has_note && i < c->note.map.n_units; i++) {
		const struct elfrw_addrmap_unit *u = &c->note.map.unit[i];
		uint64_t size = u->old_end - u->old;
		if (!(u->flags & ELFRW_UNIT_THUNK) || u->entry != u->old || size <= u->thunk_size)
			continue;
		const uint8_t *p = elfrw_image_at(&c->out, u->old, size);
		if (p) {
			mutate_add(c, p + u->thunk_size, 1);
			mutate_add(c, p + (u->thunk_size + size) / 2, 1);
			mutate_add(c, p + size - 1, 1);
		}
	}
}
void mutate_thunk_jumps(struct ctx *c)
{
	thunks(c, 1, 4);
}
void mutate_thunk_opcodes(struct ctx *c)
{
	thunks(c, 0, 1);
}
void mutate_thunk_tails(struct ctx *c)
{
	thunks(c, 5, 1);
}

/* Is U what the kind asks for?  One that only moved, one that only stands for others too. */
static bool is_wanted(const struct ctx *c, const struct elfrw_addrmap_unit *u)
{
	if (c->arg == LIST_FOLDED || (u->flags & ELFRW_UNIT_FOLDED))
		return c->arg == LIST_FOLDED && (u->flags & ELFRW_UNIT_FOLDED);
	return (c->arg == LIST_MOVED) == (u->body != u->old) &&
	       (c->arg == LIST_SHARED) == ((u->flags & ELFRW_UNIT_KEPT) != 0);
}

/* The word at VA of both files leads to the second instruction of functions that did not stay as
 * they were: what a folder leaves behind that does not know such lists. */
static void list_word(struct ctx *c, uint64_t va)
{
	const uint8_t *p = elfrw_image_at(&c->out, va, 4), *q = elfrw_image_at(&c->in, va, 4);
	for (uint32_t i = 0; p && q && i < c->note.map.n_units; i++) {
		const struct elfrw_addrmap_unit *u = &c->note.map.unit[i];
		uint64_t size = u->old_end - u->old;
		const uint8_t *code = is_wanted(c, u) ? elfrw_image_at(&c->in, u->old, size) : NULL;
		struct elfrw_insn in;
		if (code && c->in.arch->decode(code, size, u->old, &in) && in.len < size)
			mutate_add_both(c, p, u->old + in.len - va, q, u->old + in.len - va, 4);
	}
}

static bool has_relocations(const struct elfrw_image *img)
{
	for (uint32_t i = 1; i < img->n_sections; i++)
		if (img->section[i].hdr.sh_type == SHT_RELA &&
		    !(img->section[i].hdr.sh_flags & SHF_ALLOC))
			return true;
	return false;
}

/* Words of sections whose names are C identifiers that lead into code from their own places.  Where
 * relocations were kept, they say which words these are. */
void mutate_lists(struct ctx *c)
{
	bool infers = c->has_note && !has_relocations(&c->in);
	for (uint32_t i = 1; infers && i < c->in.n_sections; i++) {
		const struct elfrw_section *s = &c->in.section[i];
		if (!(s->hdr.sh_flags & SHF_ALLOC) || !s->data || strchr(s->name, '.'))
			continue;
		for (uint64_t k = 0; k + 4 <= s->hdr.sh_size; k += 4) {
			uint64_t va = s->hdr.sh_addr + k;
			int32_t word = (int32_t)elfrw_get32(s->data + k);
			if (word && mutate_in_code(&c->in, va + (uint64_t)(int64_t)word))
				list_word(c, va);
		}
	}
}
