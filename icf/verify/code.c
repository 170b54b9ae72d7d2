/* code.c: the instructions of both files in lockstep.
 *
 * For every claimed unit, kept or folded, the instructions at its old place in IN are held against
 * the bytes at its claimed place in OUT: outside of the fields that refer to something, each byte
 * must be the same; each such field must arrive at the image of what it named.  A folded unit's
 * place is the copy of another, so the same comparison proves the fold: references of both arrive
 * at the same things.  Two cases need a second look: where such a pair refers to two different
 * places in data, these must be jump tables of the same meaning, known once all tables are; where
 * it branches to two different units, these must be the same code: that is assumed, noted and
 * proved like a fold, until no new assumption comes up.
 *
 * One pass over IN's code, in parts that threads take in turn; only IN is decoded. */
#include "elfrw/base/parallel.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "icf/verify/state.h"
#include <stdlib.h>
#include <string.h>

#define PART 256 /* units */

struct relocs {
	const Elf64_Rela *rela; /* sorted by place */
	Elf64_Rela *owned;
	size_t n;
	uint32_t symtab;
};

struct part {
	struct icf_vlog log;
	VEC(struct icf_vbase) base;
	struct icf_vnamed named; /* by the unit at hand */
	VEC(struct icf_vpair) pair;
	VEC(struct icf_valias) alias;
	VEC(struct icf_vframeref) frameref;
	VEC(struct icf_vcall) call;
	VEC(struct icf_vjump) jump;
	struct icf_vplaces site;
};

struct job {
	struct icf_v *v;
	struct relocs *rel; /* by executable section */
	struct part *part;
	VEC(uint64_t) objects; /* addresses in code of symbols that say data, sorted */
};

/* The unit at hand. */
struct at {
	const struct job *job;
	struct part *part;
	const struct icf_vunit *u;
	const uint8_t *a, *b; /* its bytes in IN, in OUT */
	uint64_t size, moved;
	uint64_t same; /* compared up to here */
	uint32_t index;
	bool alias; /* not its own copy, but what stands for it somewhere */
	bool loads; /* the instruction at hand reads or writes the place that it names */
	uint64_t wrong;
};

static int rela_order(const void *a, const void *b)
{
	const Elf64_Rela *x = a, *y = b;
	return x->r_offset < y->r_offset ? -1 : x->r_offset > y->r_offset;
}

static struct elfrw_err *open_relocs(const struct icf_v *v, const struct icf_vexec *e,
				     struct relocs *ret)
{
	for (uint32_t i = 0; (i = elfrw_image_relocs_of(&v->in, e->in, i));) {
		const struct elfrw_section *s = &v->in.section[i];
		if (ret->rela)
			return elfrw_error_at(
				s->name, 0, "%s: a second relocation section for one code section",
				v->in.path);
		ret->n = s->hdr.sh_size / sizeof(Elf64_Rela);
		ret->symtab = s->hdr.sh_link;
		bool sorted = (uintptr_t)s->data % _Alignof(Elf64_Rela) == 0;
		const Elf64_Rela *r = (const void *)s->data;
		for (size_t k = 1; k < ret->n && sorted; k++)
			sorted = r[k - 1].r_offset <= r[k].r_offset;
		ret->rela = r;
		if (sorted)
			continue;
		ret->owned = malloc(s->hdr.sh_size);
		if (!ret->owned)
			return &elfrw_err_nomem;
		memcpy(ret->owned, s->data, s->hdr.sh_size);
		qsort(ret->owned, ret->n, sizeof *ret->owned, rela_order);
		ret->rela = ret->owned;
	}
	return NULL;
}

static size_t reloc_from(const struct relocs *rel, uint64_t va)
{
	return LOWER_BOUND(0, rel->n, mid, rel->rela[mid].r_offset < va);
}

static const uint8_t *new_bytes(const struct icf_v *v, uint64_t va, uint64_t size)
{
	const struct icf_vexec *e = icf_v_out_exec(v, va);
	return e && e->new_data && size <= e->new_end - va ? e->new_data + (va - e->new) : NULL;
}

static void bad(struct at *at, enum icf_verify_check check, const char *what, uint64_t off,
		uint64_t want, uint64_t found)
{
	char name[200], kept[200];
	const struct icf_v *v = at->job->v;
	uint64_t old = at->u->old + off;
	at->wrong++;
	if (!(at->u->flags & ICF_V_FOLDED))
		icf_vlog_bad(&at->part->log, check,
			     "%s: %s (0x%llx -> 0x%llx): expected 0x%llx, found 0x%llx", what,
			     icf_v_where(v, old, name), ICF_VX(old), ICF_VX(old + at->moved),
			     ICF_VX(want), ICF_VX(found));
	else
		icf_vlog_bad(
			&at->part->log, ICF_VC_FOLD,
			"%s: %s, folded into %s (0x%llx -> 0x%llx): expected 0x%llx, found 0x%llx",
			what, icf_v_where(v, old, name),
			icf_v_where(v, v->unit.data[at->u->kept].old, kept), ICF_VX(old),
			ICF_VX(old + at->moved), ICF_VX(want), ICF_VX(found));
}

/* Bytes up to TO (an offset) must be the same. */
static void compare_to(struct at *at, uint64_t to)
{
	if (to <= at->same)
		return;
	if (memcmp(at->a + at->same, at->b + at->same, to - at->same) != 0) {
		uint64_t i = at->same;
		while (at->a[i] == at->b[i])
			i++;
		bad(at, ICF_VC_CODE, "byte", i, at->a[i], at->b[i]);
	}
	at->same = to;
}

static uint64_t extend(uint64_t field, unsigned size, bool sign)
{
	if (size >= 8 || !sign)
		return field;
	return (uint64_t)((int64_t)(field << (64 - 8 * size)) >> (64 - 8 * size));
}

/* Keeps jumps to other functions, and calls of what shares its code, for the call tables. */
static void note_call(struct at *at, const struct elfrw_insn *in, uint64_t end)
{
	const struct icf_v *v = at->job->v;
	uint64_t target = in->target;
	bool optional = in->kind != ELFRW_INSN_CALL;
	if (at->alias || (optional && target - at->u->old < at->size))
		return;
	uint32_t t = icf_v_find(v, target);
	if (t == ICF_V_NONE)
		return;
	if (v->unit.data[t].old == target)
		__atomic_fetch_or(&v->unit.data[t].named, optional ? ICF_V_JUMPED : ICF_V_NAMED,
				  __ATOMIC_RELAXED);
	if (optional) {
		struct icf_vjump *j = VEC_PUSH(&at->part->jump);
		if (j)
			*j = (struct icf_vjump){ at->index, t, v->unit.data[t].old != target };
		else
			at->part->log.nomem = true;
	}
	/* Linkage code jumps through a slot that the dynamic linker fills with a symbol's value. */
	const struct icf_vexec *e = &v->exec.data[v->unit.data[t].exec];
	if (strncmp(v->in.section[e->in].name, ".plt", 4) == 0) {
		struct elfrw_insn jmp;
		unsigned len = v->arch->decode(e->old_data + (target - e->old), e->old_end - target,
					       target, &jmp);
		if (len && (jmp.flags & ELFRW_INSN_ENDBR))
			len = v->arch->decode(e->old_data + (target + len - e->old),
					      e->old_end - target - len, target + len, &jmp);
		const struct icf_vdynreloc *d =
			len && jmp.kind == ELFRW_INSN_JMP_IND && jmp.pcrel_size
				? icf_v_dynreloc_at(v, jmp.target)
				: NULL;
		if (!d || d->kind != ELFRW_RELOC_SYMBOLIC)
			return;
		target = d->value;
		optional = true;
		t = icf_v_find(v, target);
	}
	if (t == ICF_V_NONE || !((v->unit.data[t].flags & ICF_V_FOLDED) || v->unit.data[t].shared))
		return;
	optional |= v->unit.data[t].old != target;
	struct icf_vcall *c = VEC_PUSH(&at->part->call);
	if (c)
		*c = (struct icf_vcall){ at->index, t, end, optional };
	else
		at->part->log.nomem = true;
}

/* The same for a call or jump through a slot of the global offset table: what the slot holds in the
 * end. */
static void note_bound_call(struct at *at, uint64_t slot, uint64_t end)
{
	const struct icf_v *v = at->job->v;
	uint32_t s = elfrw_image_section_at(&v->in, slot);
	if (at->alias || !s || strncmp(v->in.section[s].name, ".got", 4) != 0)
		return;
	const struct icf_vdynreloc *d = icf_v_dynreloc_at(v, slot);
	const uint8_t *p = d || v->in.pic ? NULL : elfrw_image_at(&v->in, slot, 8);
	uint64_t target = !d                                ? p ? elfrw_get64(p) : 0
			  : d->kind == ELFRW_RELOC_SYMBOLIC ? d->value
			  : d->kind == ELFRW_RELOC_RELATIVE ? d->addend
							    : 0;
	uint32_t t = target ? icf_v_find(v, target) : ICF_V_NONE;
	if (t == ICF_V_NONE || v->unit.data[t].old != target ||
	    !((v->unit.data[t].flags & ICF_V_FOLDED) || v->unit.data[t].shared))
		return;
	struct icf_vcall *c = VEC_PUSH(&at->part->call);
	if (c)
		*c = (struct icf_vcall){ at->index, t, end, true };
	else
		at->part->log.nomem = true;
}

/* A copy's branch to other code at the same distance from its start: to be proved. */
static bool is_alias(struct at *at, uint64_t target, uint64_t found)
{
	const struct icf_v *v = at->job->v;
	uint32_t t = icf_v_find(v, target), o = icf_v_find_new(v, found);
	if (!(at->u->flags & ICF_V_FOLDED) || t == ICF_V_NONE || o == ICF_V_NONE)
		return false;
	const struct icf_vunit *x = &v->unit.data[t], *y = &v->unit.data[o];
	/* Only calls of the function: what is really folded and enters its middle would show the
	 * other one in a stack. */
	if (found - y->body != target - x->old || (target != x->old && !at->alias) ||
	    y->end - y->old != x->end - x->old)
		return false;
	struct icf_valias *slot = VEC_PUSH(&at->part->alias);
	if (slot)
		*slot = (struct icf_valias){ t, o };
	else
		at->part->log.nomem = true;
	return true;
}

static void name(struct at *at, uint64_t target)
{
	struct icf_vnamed *n = &at->part->named;
	if (!at->loads && n->n_code < sizeof n->code / sizeof *n->code &&
	    icf_v_in_exec(at->job->v, target))
		n->code[n->n_code++] = target;
	if (n->n_data < sizeof n->data / sizeof *n->data)
		n->data[n->n_data++] = target;
}

/* A reference: the field [OFF, OFF + SIZE) means TARGET in IN and FOUND in OUT. */
static void check_ref(struct at *at, uint64_t insn, uint64_t off, unsigned size, bool branch,
		      uint64_t target, uint64_t found)
{
	const struct icf_v *v = at->job->v;
	compare_to(at, off);
	at->same = off + size;
	enum icf_verify_check check = branch ? ICF_VC_BRANCH : ICF_VC_ADDRESS;
	at->part->log.checked[check]++;
	if (!branch)
		name(at, target);
	uint64_t want;
	if (target >= v->lo && target <= v->hi &&
	    (icf_v_in_exec(v, target) || elfrw_image_section_at(&v->in, target) == 0)) {
		bool known =
			branch ? icf_v_code(v, target, &want) : icf_v_pointer(v, target, &want);
		uint32_t t = known && !branch ? icf_v_find(v, target) : ICF_V_NONE;
		if (t != ICF_V_NONE && v->unit.data[t].old == target)
			__atomic_store_n(&v->unit.data[t].observed, 1, __ATOMIC_RELAXED);
		/* The end of a section (etext) is a place, padding is none; but compilers let cases
		 * that cannot happen lead to the end of their own function, which goes with it or
		 * with what follows. */
		const struct icf_vunit *next =
			at->index + 1 < v->unit.len ? &v->unit.data[at->index + 1] : NULL;
		if (!known && target == at->u->end &&
		    (found == at->u->body + at->size ||
		     (next && found == next->body - (next->old - target))))
			return;
		/* Or to a split-off part without code, which is the end of something else. */
		uint32_t before = known ? ICF_V_NONE : icf_v_find_end(v, target);
		const struct icf_vunit *b = before != ICF_V_NONE ? &v->unit.data[before] : NULL;
		if (b && b->end == target && found == b->body + (b->end - b->old))
			return;
		/* In a section that stays, padding does, too. */
		const struct icf_vexec *e = &v->exec.data[at->u->exec];
		if (!known && found == target && e->old == e->new && e->old_end == e->new_end)
			return;
		if (!known && icf_v_in_exec(v, target))
			bad(at, check, "reference to code that is in no unit", insn, target, found);
		else if (found != want && !(branch && known && is_alias(at, target, found)))
			bad(at, check, branch ? "branch" : "address", insn, want, found);
		else if (!branch && t != ICF_V_NONE && v->unit.data[t].old != target &&
			 !icf_v_stays_aligned(v, target, found))
			bad(at, ICF_VC_OBSERVED, "alignment of the place it names", insn, target,
			    found);
		return;
	}
	if (!branch && target >= v->frame_lo && target < v->frame_hi) {
		struct icf_vframeref *f = VEC_PUSH(&at->part->frameref);
		if (f)
			*f = (struct icf_vframeref){ at->index, at->u->old + insn, target, found };
		else
			at->part->log.nomem = true;
		return;
	}
	want = icf_v_data(v, target);
	/* 0: where the file was loaded. */
	if (!branch && (v->inferred ? target == 0 || elfrw_image_at(&v->in, target, 4) != NULL
				    : icf_v_may_have_word(v, target))) {
		size_t w = icf_v_word_from(v, target);
		if (v->inferred || (w < v->word.len && v->word.data[w].place == target)) {
			struct icf_vbase *base = VEC_PUSH(&at->part->base);
			if (base)
				*base = (struct icf_vbase){ target, at->index, at->loads };
			else
				at->part->log.nomem = true;
		}
	}
	if (found == want)
		return;
	if (branch || !(at->u->flags & ICF_V_FOLDED)) {
		bad(at, check, branch ? "branch" : "address", insn, want, found);
		return;
	}
	struct icf_vpair *p = VEC_PUSH(&at->part->pair);
	if (p)
		*p = (struct icf_vpair){ at->index, at->u->kept, at->u->old + insn, target, found };
	else
		at->part->log.nomem = true;
}

static bool is_branch(const struct elfrw_insn *in)
{
	return in->kind == ELFRW_INSN_CALL || in->kind == ELFRW_INSN_JMP ||
	       in->kind == ELFRW_INSN_JCC;
}

/* Does relocation R, in the instruction IN at VA, make a field of it an address?  *ODD: it stands
 * where no field is, so that these may not be the instructions. */
static bool is_address(const struct icf_v *v, const struct relocs *rel, const Elf64_Rela *r,
		       const struct elfrw_insn *in, uint64_t va, const uint8_t *code,
		       unsigned *size, bool *sign, bool *odd)
{
	struct elfrw_reloc_desc d = v->arch->reloc((uint32_t)ELF64_R_TYPE(r->r_info));
	unsigned at = (unsigned)(r->r_offset - va);
	bool disp = in->disp_size && at == in->disp_off, imm = in->imm_size && at == in->imm_off;
	*odd = false;
	if (d.kind != ELFRW_RELOC_ABS && d.kind != ELFRW_RELOC_GOTPCREL) {
		*odd = d.kind == ELFRW_RELOC_PCREL && !(in->pcrel_size && at == in->pcrel_off);
		return false;
	}
	if (in->pcrel_size && at == in->pcrel_off) {
		*odd = d.kind == ELFRW_RELOC_ABS;
		return false;
	}
	if (!disp && !imm) {
		*odd = d.kind == ELFRW_RELOC_ABS;
		return false;
	}
	*size = disp ? in->disp_size : in->imm_size;
	if (d.kind == ELFRW_RELOC_ABS && d.size < *size)
		*size = d.size;
	*sign = *size < 8 && (d.sign || disp || d.kind == ELFRW_RELOC_GOTPCREL);
	if (*size < 4)
		return false;
	if (d.kind == ELFRW_RELOC_ABS)
		return true;
	/* A load from the offset table that the linker made an immediate; or a stale one
	 * (thread-local storage). */
	Elf64_Sym sym;
	return icf_v_reloc_symbol(&v->in, rel->symtab, r, &sym) &&
	       extend(elfrw_get_le(code + at, *size), *size, *sign) == sym.st_value;
}

/* Everything that bytes nobody understands could mean must be where it was. */
static void check_opaque(struct at *at)
{
	const struct icf_v *v = at->job->v;
	const struct relocs *rel = &at->job->rel[at->u->exec];
	compare_to(at, at->size);
	if (at->moved)
		bad(at, ICF_VC_CODE, "bytes that are not understood moved", 0, at->u->old,
		    at->u->body);
	/* Without relocations, there may be an instruction at each byte. */
	struct elfrw_insn in;
	for (uint64_t pos = 0; v->inferred && pos < at->size; pos++) {
		if (!v->arch->decode(at->a + pos, at->size - pos, at->u->old + pos, &in) ||
		    !in.pcrel_size || in.target - at->u->old < at->size)
			continue;
		uint32_t t = icf_v_find(v, in.target);
		const struct icf_vunit *x = t != ICF_V_NONE ? &v->unit.data[t] : NULL;
		if (x && (in.target == x->old ? x->entry : x->body) != x->old)
			bad(at, ICF_VC_CODE,
			    "what bytes that are not understood may refer to moved", pos, in.target,
			    (in.target == x->old ? x->entry : x->body) + (in.target - x->old));
	}
	for (size_t r = reloc_from(rel, at->u->old);
	     r < rel->n && rel->rela[r].r_offset < at->u->end; r++) {
		Elf64_Sym sym;
		struct elfrw_reloc_desc d =
			v->arch->reloc((uint32_t)ELF64_R_TYPE(rel->rela[r].r_info));
		if ((d.kind != ELFRW_RELOC_ABS && d.kind != ELFRW_RELOC_PCREL) ||
		    !icf_v_reloc_symbol(&v->in, rel->symtab, &rel->rela[r], &sym))
			continue;
		uint64_t to = sym.st_value + (uint64_t)rel->rela[r].r_addend;
		/* A displacement counts from the instruction's end, four bytes on; a thunk may
		 * stand where a function was. */
		for (unsigned k = 0; k < (d.kind == ELFRW_RELOC_PCREL ? 8u : 4u); k += 4) {
			uint32_t t = icf_v_find(v, to + k), other = icf_v_find(v, to + (k ^ 4));
			if (t == ICF_V_NONE ||
			    (v->unit.data[t].old == to + k && v->unit.data[t].entry == to + k))
				continue;
			if (other != ICF_V_NONE && v->unit.data[other].old == to + (k ^ 4) &&
			    v->unit.data[other].entry == to + (k ^ 4))
				continue;
			if (v->unit.data[t].body != v->unit.data[t].old)
				bad(at, ICF_VC_CODE,
				    "what bytes that are not understood refer to moved",
				    rel->rela[r].r_offset - at->u->old, to + k,
				    v->unit.data[t].body + (to + k - v->unit.data[t].old));
		}
	}
}

/* Control that runs off the end must go on as before. */
static void check_fall(struct at *at, uint8_t last)
{
	const struct icf_v *v = at->job->v;
	const struct icf_vexec *e = &v->exec.data[at->u->exec];
	if (last != ELFRW_INSN_OTHER && last != ELFRW_INSN_JCC && last != ELFRW_INSN_NOP)
		return;
	if (at->index + 1 >= e->unit + e->n_units)
		return;
	const struct icf_vunit *next = &v->unit.data[at->index + 1];
	at->part->log.checked[ICF_VC_FALL]++;
	if ((at->u->flags & ICF_V_FOLDED) || (next->flags & ICF_V_FOLDED) ||
	    next->body != at->u->body + (next->old - at->u->old)) {
		bad(at, ICF_VC_FALL, "falls through", at->size,
		    at->u->body + (next->old - at->u->old), next->body);
		return;
	}
	const uint8_t *p = new_bytes(v, at->u->body, next->old - at->u->old);
	if (!p || memcmp(at->a + at->size, p + at->size, next->old - at->u->end) != 0)
		bad(at, ICF_VC_FALL, "bytes between it and what it falls into", at->size, 0, 1);
}

static bool has_object(const struct job *job, const struct icf_vunit *u)
{
	size_t lo = LOWER_BOUND(0, job->objects.len, mid, job->objects.data[mid] < u->old);
	return lo < job->objects.len && job->objects.data[lo] < u->end;
}

/* Is relocation R that of a call which the linker took away (thread-local storage)?  It stands
 * anywhere in what came in its place. */
static bool is_relaxed_call(const struct icf_v *v, const struct relocs *rel, const Elf64_Rela *r)
{
	Elf64_Sym sym;
	const char *name =
		icf_v_reloc_symbol(&v->in, rel->symtab, r, &sym)
			? elfrw_image_string(&v->in, v->in.section[rel->symtab].hdr.sh_link,
					     sym.st_name)
			: NULL;
	return name && strncmp(name, "__tls_get_addr", 14) == 0;
}

/* Are there bytes in the unit that are no code, or relocations where no instruction has a field?
 * (A stale one, of a relaxed sequence, says nothing of code that has moved rightly.) */
static bool is_strange(const struct at *at)
{
	const struct icf_v *v = at->job->v;
	const struct relocs *rel = &at->job->rel[at->u->exec];
	size_t r = reloc_from(rel, at->u->old);
	struct elfrw_insn in;
	for (uint64_t pos = 0; pos < at->size; pos += in.len) {
		if (at->a[pos] == 0)
			pos += icf_v_pad(v, at->u->old + pos);
		uint64_t va = at->u->old + pos;
		if (!v->arch->decode(at->a + pos, at->size - pos, va, &in) ||
		    (in.flags & ELFRW_INSN_LONG_CALL))
			return true;
		for (; r < rel->n && rel->rela[r].r_offset < va + in.len; r++) {
			unsigned size;
			bool sign, odd;
			is_address(v, rel, &rel->rela[r], &in, va, at->a + pos, &size, &sign, &odd);
			if (odd && !is_relaxed_call(v, rel, &rel->rela[r]))
				return true;
		}
	}
	return false;
}

/* The instruction at INSN reads bytes of its own unit, OFF bytes from its start: data, whatever it
 * reads like. */
static void check_read(struct at *at, uint64_t insn, uint64_t off)
{
	uint64_t end = at->size - off < 8 ? at->size : off + 8;
	while (off < end && at->a[off] == at->b[off])
		off++;
	if (off < end)
		bad(at, ICF_VC_CODE, "data that it reads in itself", insn, at->a[off], at->b[off]);
}

/* Does IN, with the instruction BEFORE it, go where no field of it says?  Thunks store or push an
 * address and return to it. */
static bool jumps_anywhere(const struct elfrw_insn *in, const struct elfrw_insn *before)
{
	bool push = before->opcode_map == 0 && (before->opcode & 0xf8) == 0x50;
	bool store = before->opcode_map == 0 && before->opcode == 0x89 &&
		     (before->flags & ELFRW_INSN_MEM);
	return (in->kind == ELFRW_INSN_JMP_IND && !in->pcrel_size) ||
	       (in->kind == ELFRW_INSN_RET && (push || store));
}

/* Unit I, or what is said to be the same: U with another place. */
static void check_unit(const struct job *job, struct part *part, uint32_t i, struct icf_vunit *u)
{
	const struct icf_v *v = job->v;
	const struct icf_vexec *e = &v->exec.data[u->exec];
	const struct relocs *rel = &job->rel[u->exec];
	struct at at = { .job = job,
			 .part = part,
			 .u = u,
			 .size = u->end - u->old,
			 .moved = u->body - u->old,
			 .index = i,
			 .alias = u != &v->unit.data[i] };
	if (!at.size)
		return;
	at.a = e->old_data + (u->old - e->old);
	at.b = new_bytes(v, u->body, at.size);
	if (!at.b)
		return; /* was reported with the claim */
	if (u->flags & ICF_V_FOLDED) {
		part->log.checked[ICF_VC_FOLD]++;
		const struct icf_vunit *k = &v->unit.data[u->kept];
		if (k->end - k->old != at.size) {
			bad(&at, ICF_VC_FOLD, "size", 0, at.size, k->end - k->old);
			return;
		}
	}
	/* What did not move may be data; it is then the same to the last byte. */
	bool may_be_data =
		!at.moved && !(u->flags & ICF_V_FOLDED) && memcmp(at.a, at.b, at.size) == 0;
	if (may_be_data && (u->mixed || has_object(job, u) || is_strange(&at))) {
		u->opaque = true;
		check_opaque(&at);
		return;
	}
	size_t r = reloc_from(rel, u->old);
	struct icf_vlog *log = &part->log;
	part->named.n_code = part->named.n_data = 0;
	struct elfrw_insn in, before = { .kind = ELFRW_INSN_NOP };
	uint8_t last = ELFRW_INSN_NOP;
	uint64_t n = 0;
	unsigned (*decode)(const uint8_t *, size_t, uint64_t, struct elfrw_insn *) =
		v->arch->decode;
	for (uint64_t pos = 0; pos < at.size; pos += in.len, n++) {
		if (at.a[pos] == 0)
			pos += icf_v_pad(v, u->old + pos);
		bool odd = !decode(at.a + pos, at.size - pos, u->old + pos, &in) ||
			   (in.flags & ELFRW_INSN_LONG_CALL);
		uint64_t va = u->old + pos;
		if (!odd && pos == 0 && (in.flags & ELFRW_INSN_ENDBR))
			u->endbr = true;
		if (!odd && in.pcrel_size) {
			bool branch = is_branch(&in), inside = in.target - u->old < at.size;
			if (branch)
				note_call(&at, &in, va + in.len);
			else if (in.kind == ELFRW_INSN_CALL_IND || in.kind == ELFRW_INSN_JMP_IND)
				note_bound_call(&at, in.target, va + in.len);
			at.loads = !branch && !(in.flags & ELFRW_INSN_LEA);
			if (!inside || (!branch && in.target == u->old)) {
				uint64_t off = pos + in.pcrel_off,
					 x = elfrw_get_le(at.a + off, in.pcrel_size),
					 y = elfrw_get_le(at.b + off, in.pcrel_size);
				check_ref(&at, pos, off, in.pcrel_size, branch, in.target,
					  in.target + extend(y, in.pcrel_size, true) -
						  extend(x, in.pcrel_size, true) + at.moved);
			}
			if (inside && at.loads && !v->inferred)
				check_read(&at, pos, in.target - u->old);
			if (inside && !branch && !(u->flags & ICF_V_FOLDED) &&
			    ((at.moved & 63) ||
			     !icf_v_stays_aligned(v, in.target, in.target + at.moved)))
				bad(&at, ICF_VC_CODE, "alignment of what it reads in itself", pos,
				    va & 63, (va + at.moved) & 63);
		}
		at.loads = false;
		for (; !odd && r < rel->n && rel->rela[r].r_offset < va + in.len; r++) {
			unsigned size;
			bool sign, strange;
			if (is_address(v, rel, &rel->rela[r], &in, va, at.a + pos, &size, &sign,
				       &strange)) {
				uint64_t off = rel->rela[r].r_offset - u->old;
				check_ref(&at, pos, off, size, false,
					  extend(elfrw_get_le(at.a + off, size), size, sign),
					  extend(elfrw_get_le(at.b + off, size), size, sign));
			}
		}
		if (odd) {
			bad(&at, ICF_VC_CODE, "bytes that are no instruction", pos, 0, at.b[pos]);
			return;
		}
		if ((in.kind == ELFRW_INSN_CALL || in.kind == ELFRW_INSN_CALL_IND) && !at.alias &&
		    !icf_vplace_add(&part->site, i, pos + in.len - 1, ICF_VP_CALL))
			log->nomem = true;
		if (jumps_anywhere(&in, &before))
			u->computes = true;
		before = in;
		if (in.kind != ELFRW_INSN_NOP)
			last = in.kind;
	}
	compare_to(&at, at.size);
	log->checked[ICF_VC_CODE] += n;
	if (!v->inferred)
		icf_v_check_sums(v, log, &part->named);
	check_fall(&at, last);
}

static struct elfrw_err *check_part(void *arg, size_t p)
{
	struct job *job = arg;
	struct part *part = &job->part[p];
	part->log.max = job->v->log.max;
	for (uint32_t i = (uint32_t)p * PART; i < (p + 1) * PART && i < job->v->unit.len; i++)
		check_unit(job, part, i, &job->v->unit.data[i]);
	return part->log.nomem ? &elfrw_err_nomem : NULL;
}

static struct elfrw_err *find_objects(struct job *job)
{
	const struct elfrw_image *img = &job->v->in;
	const struct elfrw_section *s = &img->section[img->symtab];
	for (size_t i = 1; img->symtab && s->data && i < s->hdr.sh_size / sizeof(Elf64_Sym); i++) {
		Elf64_Sym sym;
		memcpy(&sym, s->data + i * sizeof sym, sizeof sym);
		if (ELF64_ST_TYPE(sym.st_info) != STT_OBJECT || sym.st_shndx >= img->n_sections ||
		    !(img->section[sym.st_shndx].hdr.sh_flags & SHF_EXECINSTR))
			continue;
		uint64_t *slot = VEC_PUSH(&job->objects);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = sym.st_value;
	}
	if (job->objects.len)
		qsort(job->objects.data, job->objects.len, sizeof *job->objects.data,
		      elfrw_u64_order);
	return NULL;
}

static struct elfrw_err *gather(struct icf_v *v, struct part *part)
{
	struct elfrw_err *err = NULL;
	size_t nb = v->base.len, np = v->pair.len, na = v->alias.len;
	size_t nc = v->call.len;
	if (!VEC_RESERVE(&v->call, nc + part->call.len))
		err = &elfrw_err_nomem;
	else if (part->call.len) {
		memcpy(v->call.data + nc, part->call.data,
		       part->call.len * sizeof *part->call.data);
		v->call.len = nc + part->call.len;
	}
	VEC_FREE(&part->call);
	size_t nj = v->jump.len, ns = v->site.v.len;
	if (!VEC_RESERVE(&v->jump, nj + part->jump.len) ||
	    !VEC_RESERVE(&v->site.v, ns + part->site.v.len))
		err = &elfrw_err_nomem;
	else {
		if (part->jump.len)
			memcpy(v->jump.data + nj, part->jump.data,
			       part->jump.len * sizeof *part->jump.data);
		if (part->site.v.len)
			memcpy(v->site.v.data + ns, part->site.v.data,
			       part->site.v.len * sizeof *part->site.v.data);
		v->jump.len = nj + part->jump.len;
		v->site.v.len = ns + part->site.v.len;
	}
	VEC_FREE(&part->jump);
	VEC_FREE(&part->site.v);
	for (size_t i = 0; i < part->frameref.len && !err; i++) {
		struct icf_vframeref *slot = VEC_PUSH(&v->frameref);
		if (slot)
			*slot = part->frameref.data[i];
		else
			err = &elfrw_err_nomem;
	}
	VEC_FREE(&part->frameref);
	icf_vlog_merge(&v->log, &part->log);
	if (!VEC_RESERVE(&v->base, nb + part->base.len) ||
	    !VEC_RESERVE(&v->pair, np + part->pair.len) ||
	    !VEC_RESERVE(&v->alias, na + part->alias.len))
		err = &elfrw_err_nomem;
	else {
		if (part->base.len)
			memcpy(v->base.data + nb, part->base.data,
			       part->base.len * sizeof *part->base.data);
		if (part->pair.len)
			memcpy(v->pair.data + np, part->pair.data,
			       part->pair.len * sizeof *part->pair.data);
		if (part->alias.len)
			memcpy(v->alias.data + na, part->alias.data,
			       part->alias.len * sizeof *part->alias.data);
		v->alias.len = na + part->alias.len;
		v->base.len = nb + part->base.len;
		v->pair.len = np + part->pair.len;
	}
	VEC_FREE(&part->base);
	VEC_FREE(&part->pair);
	VEC_FREE(&part->alias);
	return err;
}

static uint32_t root(uint32_t *same, uint32_t i)
{
	while (same[i] != i)
		i = same[i] = same[same[i]];
	return i;
}

/* Proves the assumptions that were made, and those made by that.  "Is the same code as" is an
 * equivalence, each pair of which is proved while the others are assumed: a pair that follows from
 * those before needs no proof of its own, so there are as many proofs as units at most, where two
 * rings of functions could pair off in any combination. */
static struct elfrw_err *check_aliases(struct job *job)
{
	struct icf_v *v = job->v;
	struct part part = { .log.max = v->log.max };
	struct elfrw_err *err = NULL;
	size_t n = 0;
	if (!v->alias.len)
		return NULL;
	v->same = malloc(v->unit.len * sizeof *v->same);
	if (!v->same)
		return &elfrw_err_nomem;
	for (uint32_t i = 0; i < v->unit.len; i++)
		v->same[i] = i;
	for (size_t i = 0; i < v->alias.len && !err; i++) {
		struct icf_valias a = v->alias.data[i];
		uint32_t x = root(v->same, a.unit), y = root(v->same, a.other);
		if (x == y)
			continue;
		v->same[x] = y;
		v->alias.data[n++] = a;
		struct icf_vunit u = v->unit.data[a.unit];
		u.flags = ICF_V_FOLDED;
		u.kept = a.other;
		u.body = v->unit.data[a.other].body;
		check_unit(job, &part, a.unit, &u);
		err = part.log.nomem ? &elfrw_err_nomem : NULL;
		struct elfrw_err *e = gather(v, &part);
		err = err ? err : e;
	}
	v->alias.len = n;
	for (uint32_t i = 0; i < v->unit.len; i++)
		v->same[i] = root(v->same, i);
	return err;
}

struct elfrw_err *icf_v_check_code(struct icf_v *v)
{
	struct job job = { .v = v };
	size_t n = (v->unit.len + PART - 1) / PART;
	job.rel = calloc(v->exec.len, sizeof *job.rel);
	job.part = calloc(n + 1, sizeof *job.part);
	struct elfrw_err *err = job.rel && job.part ? find_objects(&job) : &elfrw_err_nomem;
	for (size_t i = 0; i < v->exec.len && !err; i++)
		err = open_relocs(v, &v->exec.data[i], &job.rel[i]);
	if (!err)
		err = elfrw_parallel(v->threads, n, check_part, &job);
	for (size_t i = 0; i < n && job.part; i++) {
		struct elfrw_err *e = gather(v, &job.part[i]);
		if (!err)
			err = e;
	}
	if (!err)
		err = check_aliases(&job);
	for (size_t i = 0; i < v->exec.len && job.rel; i++)
		free(job.rel[i].owned);
	VEC_FREE(&job.objects);
	free(job.rel);
	free(job.part);
	return err;
}
