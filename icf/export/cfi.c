/* cfi.c: the STACK CFI records of Breakpad's symbol files, from .eh_frame and, where that says
 * nothing, .debug_frame.
 *
 * A record says what changes since the one before it.  Breakpad takes a register without a rule
 * for one that the callee preserves, so "not known any more" cannot be said: a new description
 * begins there.  Where a rule cannot be expressed there is no description at all: a wrong one would
 * be believed. */
#include "dwarf/cfi.h"
#include "dwarf/sections.h"
#include "icf/export/postfix.h"
#include "icf/export/state.h"
#include <inttypes.h>

#define RULES (ICF_CFI_REGISTERS + 1) /* the CFA's is the last */

struct writer {
	struct icf_export *x;
	FILE *out;
	const struct dwr_cfi *cfi;
	const struct dwr_fde *fde;
	bool open;     /* records of this description can be continued */
	uint64_t end;  /* of the last row */
	FILE *records; /* of the open description, behind its first; in memory */
	char *text;
	size_t size;
	uint64_t start;
	char first[RULES][ICF_POSTFIX_SIZE]; /* rules of the description's first row */
	char now[RULES][ICF_POSTFIX_SIZE];   /* of the last row */
	char next[RULES][ICF_POSTFIX_SIZE];
};

/* Puts the rules of RULE that WAS (may be NULL) does not have. */
static void put_rules(struct writer *w, FILE *out, char (*rule)[ICF_POSTFIX_SIZE],
		      char (*was)[ICF_POSTFIX_SIZE])
{
	const struct dwr_cie *cie = &w->cfi->cie.data[w->fde->cie];
	const struct icf_postfix_at at = { w->x->code.arch, cie, 0 };
	for (unsigned i = 0; i < RULES; i++) {
		unsigned reg = (i + RULES - 1) % RULES; /* the CFA first */
		if (!*rule[reg] || (was && !strcmp(rule[reg], was[reg])))
			continue;
		const char *name = reg == RULES - 1 ? ".cfa"
				   : reg == cie->ra ? ".ra"
						    : icf_postfix_register(&at, reg);
		fprintf(out, " %s: %s", name, rule[reg]);
	}
	fputc('\n', out);
}

/* Ends the open description at address END. */
static void close_description(struct writer *w)
{
	if (!w->open)
		return;
	w->open = false;
	fprintf(w->out, "STACK CFI INIT %" PRIx64 " %" PRIx64, w->start - w->x->base,
		w->end - w->start);
	put_rules(w, w->out, w->first, NULL);
	fflush(w->records);
	fwrite(w->text, 1, w->size, w->out);
	rewind(w->records);
}

/* Spells the rules that hold at PC out in w->next; false: one cannot be. */
static bool spell_row(struct writer *w, const struct icf_cfi_row *row, uint64_t pc)
{
	const struct dwr_cie *cie = &w->cfi->cie.data[w->fde->cie];
	const struct icf_postfix_at at = { w->x->code.arch, cie, pc };
	if (!icf_postfix_cfa(&at, &row->cfa, w->next[RULES - 1]))
		return false;
	for (unsigned r = 0; r < ICF_CFI_REGISTERS; r++) {
		const struct icf_rule *rule = &row->reg[r];
		*w->next[r] = 0;
		if (r == cie->ra) {
			struct icf_rule same = { .kind = ICF_RULE_SAME };
			if (rule->kind == ICF_RULE_UNDEFINED) /* the outermost frame */
				strcpy(w->next[r], "0");
			else if (!icf_postfix_rule(&at, rule->kind ? rule : &same, r, w->next[r]))
				return false;
		} else if (rule->kind && icf_postfix_register(&at, r) &&
			   !icf_postfix_rule(&at, rule, r, w->next[r]))
			return false;
	}
	return true;
}

/* Registers that had a rule and have none: those that the callee preserves are said to be the same
 * again.  false: that would be a lie. */
static bool keep_rules(struct writer *w, const struct icf_cfi_row *row)
{
	const struct icf_postfix_at at = { w->x->code.arch, &w->cfi->cie.data[w->fde->cie], 0 };
	const struct icf_rule same = { .kind = ICF_RULE_SAME };
	for (unsigned r = 0; r < ICF_CFI_REGISTERS; r++) {
		if (*w->next[r] || !*w->now[r])
			continue;
		if (row->reg[r].kind == ICF_RULE_UNDEFINED ||
		    !icf_postfix_rule(&at, &same, r, w->next[r]))
			return false;
	}
	return true;
}

static void put_row(struct writer *w, const struct icf_cfi_row *row, uint64_t lo, uint64_t hi)
{
	bool known = spell_row(w, row, lo);
	if (w->open && (!known || w->end != lo || !keep_rules(w, row)))
		close_description(w);
	if (!known)
		return;
	if (!w->open) {
		memcpy(w->first, w->next, sizeof w->first);
		w->start = lo;
		w->open = true;
	} else if (memcmp(w->now, w->next, sizeof w->now)) {
		fprintf(w->records, "STACK CFI %" PRIx64, lo - w->x->base);
		put_rules(w, w->records, w->next, w->now);
	}
	memcpy(w->now, w->next, sizeof w->now);
	w->end = hi;
}

/* Rules that depend on the address are spelled out for each. */
#define MAX_PLACED (UINT64_C(1) << 21)

static bool take_row(void *ctx, const struct icf_cfi_row *row)
{
	struct writer *w = ctx;
	const struct dwr_cie *cie = &w->cfi->cie.data[w->fde->cie];
	if (!((cie->cfa_flags | w->fde->cfa_flags) & DWR_CFA_USES_PC) ||
	    row->hi - row->lo > MAX_PLACED) {
		put_row(w, row, row->lo, row->hi);
		return true;
	}
	for (uint64_t at = row->lo; at < row->hi; at++)
		put_row(w, row, at, at + 1);
	return true;
}

static void put_fde(struct writer *w, const struct dwr_cfi *cfi, const struct dwr_fde *fde)
{
	w->cfi = cfi;
	w->fde = fde;
	w->open = false;
	if (fde->pc_begin >= fde->pc_end || fde->pc_begin < w->x->base)
		return;
	if (icf_cfi_rows(cfi, fde, take_row, w))
		close_description(w);
	else { /* the start may be right, but the rest is not known */
		w->open = false;
		rewind(w->records);
	}
}

/* Does a description of CFI overlap [LO, HI)? */
static bool overlaps(const struct dwr_cfi *cfi, const struct dwr_fde *fde)
{
	size_t lo = 0, hi = cfi->fde.len;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct dwr_fde *at = &cfi->fde.data[cfi->by_pc[mid]];
		if (at->pc_end <= fde->pc_begin)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < cfi->fde.len && cfi->fde.data[cfi->by_pc[lo]].pc_begin < fde->pc_end;
}

static struct elfrw_err *put_debug_frame(struct writer *w, const struct dwr_cfi *eh)
{
	struct dwr_sections secs;
	struct dwr_cfi cfi;
	ELFRW_TRY(dwr_sections_init(&secs, dwr_sym_debug_image(w->x->sym, NULL)));
	struct elfrw_err *err = dwr_sections_load(&secs, DWR_FRAME);
	const struct dwr_section *s = &secs.sec[DWR_FRAME];
	if (!err && s->size) {
		const struct dwr_bytes bytes = { s->data, s->size };
		err = dwr_cfi_read(&cfi, ".debug_frame", bytes, 0, false,
				   w->x->code.arch->address_size);
		for (size_t i = 0; !err && i < cfi.fde.len; i++) {
			const struct dwr_fde *fde = &cfi.fde.data[cfi.by_pc[i]];
			if (!overlaps(eh, fde))
				put_fde(w, &cfi, fde);
		}
		if (!err)
			dwr_cfi_deinit(&cfi);
	}
	dwr_sections_deinit(&secs);
	return err;
}

struct elfrw_err *icf_export_cfi(struct icf_export *x)
{
	struct dwr_cfi eh;
	ELFRW_TRY(dwr_eh_frame_read(&eh, &x->code, x->code.arch->address_size));
	struct writer *w = calloc(1, sizeof *w);
	struct elfrw_err *err = w ? NULL : &elfrw_err_nomem;
	if (w) {
		w->x = x;
		w->out = x->in->out;
		w->records = open_memstream(&w->text, &w->size);
		if (!w->records)
			err = &elfrw_err_nomem;
	}
	for (size_t i = 0; !err && i < eh.fde.len; i++)
		put_fde(w, &eh, &eh.fde.data[eh.by_pc[i]]);
	if (!err)
		err = put_debug_frame(w, &eh);
	if (w && w->records) {
		if (ferror(w->records) && !err)
			err = &elfrw_err_nomem;
		fclose(w->records);
		free(w->text);
	}
	free(w);
	dwr_cfi_deinit(&eh);
	return err;
}
