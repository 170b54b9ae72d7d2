/* opaque.c: bytes of code that may not be code.
 *
 * A unit with data among its code, or with unknown instructions, may not move.  Nothing in it may
 * change, and all that it could refer to must be at its old place. */
#include "elfrw/arch/judge.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "elfrw/symtab.h"
#include "icf/verify/code/state.h"
#include <stdlib.h>
#include <string.h>

#define MAX_SMALL 4096 /* bytes of a unit in which each word may count from each place */

bool icf_vcode_has_object(const struct icf_vcode_job *job, const struct icf_vunit *u)
{
	size_t lo = LOWER_BOUND(0, job->objects.len, mid, job->objects.data[mid] < u->old);
	return lo < job->objects.len && job->objects.data[lo] < u->end;
}

/* Is R the relocation of a call that the linker removed (thread-local storage)?  It stands anywhere
 * in the replacement. */
static bool is_relaxed_call(const struct icf_v *v, const struct elfrw_relocs *rel,
			    const Elf64_Rela *r)
{
	Elf64_Sym sym;
	const char *name =
		elfrw_reloc_symbol(&v->claim.in, rel->symtab, r, &sym)
			? elfrw_image_string(&v->claim.in,
					     v->claim.in.section[rel->symtab].hdr.sh_link,
					     sym.st_name)
			: NULL;
	return name && strncmp(name, "__tls_get_addr", 14) == 0;
}

/* Does IN load from the unit itself?  Where instructions hold halves of addresses, mapping symbols
 * tell where data is, and they are wrong or missing if it does. */
static bool loads_from(const struct icf_vcode_at *at, const struct elfrw_insn *in)
{
	return at->job->v->claim.arch->judge->half && in->pcrel_size &&
	       in->kind == ELFRW_INSN_OTHER && !(in->flags & ELFRW_INSN_LEA) &&
	       !elfrw_form_is_high(
		       &at->job->v->claim.arch->form[at->job->v->claim.arch->pcrel_form(in)]) &&
	       in->target - at->u->old < at->size;
}

/* Does the unit have bytes that are not code, or relocations where no instruction has a field?  (A
 * stale relocation of a relaxed sequence says nothing about code that moved correctly.) */
bool icf_vcode_is_strange(const struct icf_vcode_at *at)
{
	const struct icf_v *v = at->job->v;
	const struct elfrw_relocs *rel = &at->job->rel[at->u->exec];
	size_t r = elfrw_relocs_from(rel, at->u->old);
	struct icf_vcode_insn x;
	for (uint64_t pos = 0; pos < at->size; pos += x.in.len) {
		if (at->a[pos] == 0)
			pos += icf_v_pad(v, at->u->old + pos);
		x.va = at->u->old + pos;
		x.code = at->a + pos;
		if (!v->claim.arch->decode(x.code, at->size - pos, x.va, &x.in) ||
		    (x.in.flags & ELFRW_INSN_LONG_CALL) || loads_from(at, &x.in))
			return true;
		for (; r < rel->n && rel->rela[r].r_offset < x.va + x.in.len; r++) {
			const struct elfrw_form *form;
			bool odd;
			icf_vcode_is_address(v, rel, &rel->rela[r], &x, &form, &odd);
			if (odd && !is_relaxed_call(v, rel, &rel->rela[r]))
				return true;
		}
	}
	return false;
}

/* What is POS bytes from the unit's start may lead to TO: a BRANCH, or something that takes the
 * address.  Is TO in padding that changed, or behind which other code is now? */
static void check_padding(struct icf_vcode_at *at, uint64_t pos, uint64_t to, bool branch)
{
	const struct icf_vclaim *c = &at->job->v->claim;
	if (icf_v_in_exec(c, to) && icf_v_find(c, to) == ICF_V_NONE &&
	    !icf_vcode_padding_stays(c, to, branch))
		icf_vcode_bad(at, ICF_VC_CODE,
			      "padding that bytes that are not understood may lead into changed",
			      pos, to, to);
}

void icf_vcode_still(struct icf_vcode_at *at, uint64_t pos, uint64_t to)
{
	const struct icf_v *v = at->job->v;
	uint32_t t = icf_v_find(&v->claim, to);
	const struct icf_vunit *x = t != ICF_V_NONE ? &v->claim.unit.data[t] : NULL;
	uint64_t now = !x ? to : to == x->old ? x->entry : x->body + (to - x->old);
	if (now != to)
		icf_vcode_bad(at, ICF_VC_CODE,
			      "what bytes that are not understood may refer to moved", pos, to,
			      now);
	check_padding(at, pos, to, false);
}

/* The same for the instruction IN. */
static void check_led(struct icf_vcode_at *at, uint64_t pos, const struct elfrw_insn *in)
{
	check_padding(at, pos, in->target,
		      in->kind == ELFRW_INSN_CALL || in->kind == ELFRW_INSN_JMP ||
			      in->kind == ELFRW_INSN_JCC);
}

/* Control may run off the unit's end, into what it ran into before. */
static void check_end(struct icf_vcode_at *at)
{
	const struct icf_vclaim *c = &at->job->v->claim;
	const struct icf_vunit *next = c->unit.data + at->index + 1;
	if (!icf_vcode_runs_on(c, at->index))
		return;
	if (next->old != at->u->end)
		check_padding(at, at->size, at->u->end, true);
	else if (next->entry != next->old)
		icf_vcode_bad(at, ICF_VC_CODE,
			      "what bytes that are not understood may run into moved", at->size,
			      next->old, next->entry);
}

/* IN may hold half of an address. */
static void check_half(struct icf_vcode_at *at, uint64_t pos, const struct elfrw_insn *in)
{
	const struct icf_v *v = at->job->v;
	uint64_t from, to;
	elfrw_form_span(&v->claim.arch->form[v->claim.arch->pcrel_form(in)], in->target, &from,
			&to);
	if (!icf_vcode_range_stays(&v->claim, from, to))
		icf_vcode_bad(at, ICF_VC_CODE,
			      "what half of an address may name, in bytes that are not understood, "
			      "moved",
			      pos, in->target, in->target);
}

/* Checks what instructions name.  Notes the places in the unit that they compute, ascending. */
static void check_named(struct icf_vcode_at *at)
{
	const struct elfrw_arch *arch = at->job->v->claim.arch;
	struct icf_vcode_part *part = at->part;
	struct elfrw_insn in;
	part->place.len = 0;
	for (uint64_t pos = 0, len; pos < at->size; pos += len ? len : arch->fill_size) {
		len = arch->decode(at->a + pos, at->size - pos, at->u->old + pos, &in);
		if (!len || !in.pcrel_size)
			continue;
		if (elfrw_form_is_high(&arch->form[arch->pcrel_form(&in)]))
			check_half(at, pos, &in);
		else if (in.target - at->u->old >= at->size)
			icf_vcode_still(at, pos, in.target);
		else if (in.flags & ELFRW_INSN_LEA) {
			uint64_t *slot = VEC_PUSH(&part->place);
			if (slot)
				*slot = in.target;
			else
				part->log.nomem = true;
		}
	}
	if (part->place.len)
		qsort(part->place.data, part->place.len, sizeof *part->place.data, elfrw_u64_order);
}

/* The word W, POS bytes from the unit's start, may be a distance from a place that code computes.
 * In a large unit that is the last place before it. */
static void check_distance(struct icf_vcode_at *at, uint64_t pos, uint64_t w)
{
	const struct icf_vcode_part *part = at->part;
	size_t from = 0, to = part->place.len;
	if (w == 0)
		return;
	if (at->size > MAX_SMALL) {
		to = LOWER_BOUND(0, to, mid, part->place.data[mid] <= at->u->old + pos);
		from = to ? to - 1 : 0;
	}
	for (size_t k = from; k < to; k++)
		icf_vcode_still(at, pos, part->place.data[k] + w);
}

/* What has no relocation: addresses relative to instructions, and what linkers and assemblers write
 * into stubs and tables: addresses of 8 bytes, or distances of 4 or 8 bytes from a place in the
 * unit.  They may stand anywhere. */
static void check_stub(struct icf_vcode_at *at)
{
	check_named(at);
	for (uint64_t pos = 0; pos + 4 <= at->size; pos++) {
		uint64_t w = (uint64_t)(int64_t)(int32_t)elfrw_get32(at->a + pos);
		check_distance(at, pos, w);
		if (pos + 8 > at->size)
			continue;
		uint64_t eight = elfrw_get64(at->a + pos);
		icf_vcode_still(at, pos, eight);
		if (eight != w)
			check_distance(at, pos, eight);
	}
}

/* Without relocations, each byte may begin an instruction. */
static void check_bytes(struct icf_vcode_at *at)
{
	const struct icf_v *v = at->job->v;
	const struct elfrw_arch *arch = v->claim.arch;
	struct elfrw_insn in;
	for (uint64_t pos = 0; pos < at->size; pos++) {
		if (!arch->decode(at->a + pos, at->size - pos, at->u->old + pos, &in) ||
		    !in.pcrel_size)
			continue;
		bool half = elfrw_form_is_high(&arch->form[arch->pcrel_form(&in)]);
		if (half)
			check_half(at, pos, &in);
		if (in.target - at->u->old < at->size)
			continue;
		if (!half)
			check_led(at, pos, &in);
		uint32_t t = icf_v_find(&v->claim, in.target);
		const struct icf_vunit *x = t != ICF_V_NONE ? &v->claim.unit.data[t] : NULL;
		if (x && (in.target == x->old ? x->entry : x->body) != x->old)
			icf_vcode_bad(at, ICF_VC_CODE,
				      "what bytes that are not understood may refer to moved", pos,
				      in.target,
				      (in.target == x->old ? x->entry : x->body) +
					      (in.target - x->old));
	}
}

/* All possible references of bytes that are not understood must lead to places that did not
 * move. */
void icf_vcode_opaque(struct icf_vcode_at *at)
{
	const struct icf_v *v = at->job->v;
	const struct elfrw_relocs *rel = &at->job->rel[at->u->exec];
	icf_vcode_compare_to(at, at->size);
	if (at->moved)
		icf_vcode_bad(at, ICF_VC_CODE, "bytes that are not understood moved", 0, at->u->old,
			      at->u->body);
	check_end(at);
	if (v->claim.inferred) {
		check_bytes(at);
		icf_vcode_tables(at);
	} else {
		check_stub(at);
	}
	for (size_t r = elfrw_relocs_from(rel, at->u->old);
	     r < rel->n && rel->rela[r].r_offset < at->u->end; r++) {
		Elf64_Sym sym;
		struct elfrw_reloc_desc d =
			v->claim.arch->reloc((uint32_t)ELF64_R_TYPE(rel->rela[r].r_info));
		if ((d.kind != ELFRW_RELOC_ABS && d.kind != ELFRW_RELOC_PCREL) ||
		    !elfrw_reloc_symbol(&v->claim.in, rel->symtab, &rel->rela[r], &sym))
			continue;
		uint64_t to = sym.st_value + (uint64_t)rel->rela[r].r_addend;
		/* It may count from the instruction's end.  A thunk may stand at the old place. */
		unsigned reloc_short = v->claim.arch->reloc_short;
		check_padding(at, rel->rela[r].r_offset - at->u->old,
			      to + (d.kind == ELFRW_RELOC_PCREL ? reloc_short : 0), false);
		for (unsigned n = 0; n < (d.kind == ELFRW_RELOC_PCREL ? 2u : 1u); n++) {
			unsigned k = n * reloc_short, not_k = reloc_short - k;
			uint32_t t = icf_v_find(&v->claim, to + k),
				 other = icf_v_find(&v->claim, to + not_k);
			if (t == ICF_V_NONE || (v->claim.unit.data[t].old == to + k &&
						v->claim.unit.data[t].entry == to + k))
				continue;
			if (other != ICF_V_NONE && v->claim.unit.data[other].old == to + not_k &&
			    v->claim.unit.data[other].entry == to + not_k)
				continue;
			if (v->claim.unit.data[t].body != v->claim.unit.data[t].old)
				icf_vcode_bad(at, ICF_VC_CODE,
					      "what bytes that are not understood refer to moved",
					      rel->rela[r].r_offset - at->u->old, to + k,
					      v->claim.unit.data[t].body +
						      (to + k - v->claim.unit.data[t].old));
		}
	}
}
