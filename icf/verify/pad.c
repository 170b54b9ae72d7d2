/* pad.c: zeros between functions, inside of a unit.
 *
 * Some linkers fill gaps between functions with zeros.  If neither a symbol nor an FDE divides the
 * functions, they form one unit.  Decoded as instructions, a run of zeros may swallow the first
 * bytes of the function behind it.  So zeros behind a jump, a return or a call, up to a place that
 * is known to be entered or read, are padding.  More such places become known as more code is
 * decoded correctly; the passes continue until there is nothing new.  Cost: one pass over the code;
 * more only if there is such padding. */
#include "icf/verify/state.h"
#include "elfrw/symtab.h"
#include <stdlib.h>
#include <string.h>

struct labels {
	uint8_t *bits; /* by byte of [lo, hi) */
	const struct icf_v *v;
	bool any_new; /* in a unit that may have padding */
	uint8_t *open;
};

static int pad_order(const void *a, const void *b)
{
	const struct icf_vpad *x = a, *y = b;
	return x->va < y->va ? -1 : x->va > y->va;
}

static bool is_label(const struct labels *l, uint64_t va)
{
	uint64_t i = va - l->v->claim.lo;
	return va < l->v->claim.hi && (l->bits[i >> 3] >> (i & 7) & 1);
}

static void label(struct labels *l, uint64_t va)
{
	uint64_t i = va - l->v->claim.lo;
	if (va < l->v->claim.lo || va >= l->v->claim.hi || is_label(l, va))
		return;
	uint32_t u = icf_v_find(&l->v->claim, va);
	l->bits[i >> 3] |= (uint8_t)(1u << (i & 7));
	l->any_new |= u != ICF_V_NONE && l->open[u];
}

/* Adds labels from the file itself. */
static void label_named(struct labels *l)
{
	const struct icf_v *v = l->v;
	label(l, v->claim.in.ehdr.e_entry);
	for (size_t i = 0; i < v->words.word.len; i++)
		label(l, v->words.word.data[i].target);
	for (size_t i = 0; i < v->claim.cfi_in.fde.len; i++)
		label(l, v->claim.cfi_in.fde.data[i].pc_begin);
	for (struct elfrw_all_symbols it = { .img = &v->claim.in }; elfrw_all_symbols_next(&it);) {
		const Elf64_Sym sym = it.sym;
		if (sym.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(sym.st_info) != STT_TLS)
			label(l, sym.st_value);
	}
}

/* Decodes unit I; its references become labels.  PAD, in the last pass: where to record its
 * padding, and labels inside of instructions; or NULL. */
static struct elfrw_err *read_unit(struct labels *l, uint32_t i, struct icf_v *pad)
{
	const struct icf_v *v = l->v;
	const struct icf_vunit *u = &v->claim.unit.data[i];
	const struct icf_vexec *e = &v->claim.exec.data[u->exec];
	const uint8_t *code = e->old_data + (u->old - e->old);
	uint64_t size = u->end - u->old;
	bool stopped = false;
	struct elfrw_insn in;
	for (uint64_t pos = 0; pos < size; pos += in.len) {
		uint64_t k = pos;
		if (stopped && l->open[i] && code[pos] == 0 && !is_label(l, u->old + pos))
			while (k < size && code[k] == 0 && !is_label(l, u->old + k))
				k++;
		if (k > pos && k < size && is_label(l, u->old + k)) {
			struct icf_vpad *p = pad ? VEC_PUSH(&pad->pad) : NULL;
			if (pad && !p)
				return &elfrw_err_nomem;
			if (p)
				*p = (struct icf_vpad){ u->old + pos, (uint32_t)(k - pos) };
			pos = k;
		}
		if (!v->claim.arch->decode(code + pos, size - pos, u->old + pos, &in))
			return NULL;
		for (unsigned b = 1; pad && b < in.len; b++)
			pad->claim.unit.data[i].mixed |= is_label(l, u->old + pos + b);
		if (in.pcrel_size)
			label(l, in.target);
		/* Other padding may come first. */
		if (in.kind != ELFRW_INSN_NOP)
			stopped = in.kind != ELFRW_INSN_OTHER && in.kind != ELFRW_INSN_JCC;
	}
	return NULL;
}

/* Does an FDE show that unit U is a function of its own?  Then it holds no padding between
 * functions. */
static bool is_described(const struct icf_v *v, const struct icf_vunit *u)
{
	uint32_t f = dwr_cfi_find(&v->claim.cfi_in, u->old);
	return f != ICF_V_NONE && v->claim.cfi_in.fde.data[f].pc_begin <= u->old &&
	       v->claim.cfi_in.fde.data[f].pc_end >= u->end;
}

struct elfrw_err *icf_v_find_pads(struct icf_v *v)
{
	struct labels l = { .v = v };
	struct elfrw_err *err = NULL;
	bool any = false;
	v->pad.len = 0;
	if (v->claim.hi <= v->claim.lo)
		return NULL;
	l.open = calloc(v->claim.unit.len + 1, 1);
	l.bits = calloc((v->claim.hi - v->claim.lo) / 8 + 1, 1);
	if (!l.open || !l.bits)
		err = &elfrw_err_nomem;
	for (uint32_t i = 0; i < v->claim.unit.len && !err; i++)
		any |= l.open[i] = !is_described(v, &v->claim.unit.data[i]) &&
				   v->claim.exec.data[v->claim.unit.data[i].exec].old_data;
	if (!err && any) {
		label_named(&l);
		for (uint32_t i = 0; i < v->claim.unit.len && !err; i++)
			if (v->claim.exec.data[v->claim.unit.data[i].exec].old_data)
				err = read_unit(&l, i, NULL);
		for (unsigned pass = 0; l.any_new && pass < 8 && !err; pass++) {
			l.any_new = false;
			for (uint32_t i = 0; i < v->claim.unit.len && !err; i++)
				if (l.open[i])
					err = read_unit(&l, i, NULL);
		}
		for (uint32_t i = 0; i < v->claim.unit.len && !err; i++)
			if (l.open[i])
				err = read_unit(&l, i, v);
	}
	free(l.open);
	free(l.bits);
	return err;
}

uint64_t icf_v_pad(const struct icf_v *v, uint64_t va)
{
	const struct icf_vpad key = { va, 0 };
	const struct icf_vpad *p =
		v->pad.len ? bsearch(&key, v->pad.data, v->pad.len, sizeof key, pad_order) : NULL;
	return p ? p->size : 0;
}
