/* unit.c: compares one unit's instructions at its old place in IN with the bytes at its claimed
 * place in OUT. */
#include "elfrw/arch/judge.h"
#include "elfrw/symtab.h"
#include "icf/verify/code/state.h"
#include <string.h>

static const uint8_t *new_bytes(const struct icf_v *v, uint64_t va, uint64_t size)
{
	const struct icf_vexec *e = icf_v_out_exec(&v->claim, va);
	return e && e->new_data && size <= e->new_end - va ? e->new_data + (va - e->new) : NULL;
}

void icf_vcode_bad(struct icf_vcode_at *at, enum icf_verify_check check, const char *what,
		   uint64_t off, uint64_t want, uint64_t found)
{
	char name[200], kept[200];
	const struct icf_v *v = at->job->v;
	uint64_t old = at->u->old + off;
	at->wrong++;
	if (!(at->u->flags & ICF_V_FOLDED))
		icf_vlog_bad(&at->part->log, check,
			     "%s: %s (0x%llx -> 0x%llx): expected 0x%llx, found 0x%llx", what,
			     icf_v_where(&v->claim, old, name), ICF_VX(old),
			     ICF_VX(old + at->moved), ICF_VX(want), ICF_VX(found));
	else
		icf_vlog_bad(
			&at->part->log, ICF_VC_FOLD,
			"%s: %s, folded into %s (0x%llx -> 0x%llx): expected 0x%llx, found 0x%llx",
			what, icf_v_where(&v->claim, old, name),
			icf_v_where(&v->claim, v->claim.unit.data[at->u->kept].old, kept),
			ICF_VX(old), ICF_VX(old + at->moved), ICF_VX(want), ICF_VX(found));
}

/* The bytes up to TO (an offset) must be the same. */
void icf_vcode_compare_to(struct icf_vcode_at *at, uint64_t to)
{
	if (to <= at->same)
		return;
	if (memcmp(at->a + at->same, at->b + at->same, to - at->same) != 0) {
		uint64_t i = at->same;
		while (at->a[i] == at->b[i])
			i++;
		icf_vcode_bad(at, ICF_VC_CODE, "byte", i, at->a[i], at->b[i]);
	}
	at->same = to;
}

static bool is_branch(const struct elfrw_insn *in)
{
	return in->kind == ELFRW_INSN_CALL || in->kind == ELFRW_INSN_JMP ||
	       in->kind == ELFRW_INSN_JCC;
}

/* Has the code at VA, which is not of AT's unit, an instruction that leads back to its caller? */
static bool comes_back(const struct icf_v *v, uint64_t va)
{
	uint32_t to = icf_v_find(&v->claim, va);
	const struct icf_vunit *u = to == ICF_V_NONE ? NULL : &v->claim.unit.data[to];
	const struct icf_vexec *e = u ? &v->claim.exec.data[u->exec] : NULL;
	struct elfrw_insn in;
	if (!e || !e->old_data)
		return false;
	for (uint64_t at = u->old; at < u->end; at += in.len)
		if (!v->claim.arch->decode(e->old_data + (at - e->old), u->end - at, at, &in))
			return false;
		else if (in.kind == ELFRW_INSN_RET)
			return true;
	return false;
}

/* The unit ends in a call, and no unwind tables were made for it: then somebody wrote it in
 * assembler, which may count on it that the call returns, and run into what follows.  Unless most
 * code is without tables: then compilers wrote it, and only a callee that returns says so, or a
 * pointer: compilers know of few that none of the functions returns. */
static bool call_goes_on(const struct icf_vcode_at *at)
{
	const struct icf_vclaim *c = &at->job->v->claim;
	const struct icf_vexec *e = &c->exec.data[at->u->exec];
	uint32_t f = dwr_cfi_find(&c->cfi_in, at->u->end - 1), to = icf_v_find(c, at->called);
	if (!icf_vcode_runs_on(c, at->index) || f != ICF_V_NONE ||
	    !strncmp(c->in.section[e->in].name, ".plt", 4))
		return false;
	if (at->called && to != ICF_V_NONE &&
	    strncmp(c->in.section[c->exec.data[c->unit.data[to].exec].in].name, ".plt", 4) != 0)
		return comes_back(at->job->v, at->called);
	return at->by_pointer || c->cfi_in.fde.len >= c->unit.len - c->unit.len / 4;
}

/* Control that runs off the end must continue as before. */
static void check_fall(struct icf_vcode_at *at, uint8_t last)
{
	const struct icf_v *v = at->job->v;
	const struct icf_vexec *e = &v->claim.exec.data[at->u->exec];
	bool call = last == ELFRW_INSN_CALL || last == ELFRW_INSN_CALL_IND;
	if (!call && last != ELFRW_INSN_OTHER && last != ELFRW_INSN_JCC && last != ELFRW_INSN_NOP)
		return;
	if (at->index + 1 >= e->unit + e->n_units)
		return;
	const struct icf_vunit *next = &v->claim.unit.data[at->index + 1];
	if (call && !call_goes_on(at))
		return;
	/* It does not, if a trap is there (behind a system call that ends the program). */
	struct elfrw_insn in;
	uint64_t gap = next->old - at->u->end;
	if (gap && v->claim.arch->decode(at->a + at->size, gap, at->u->end, &in) &&
	    in.kind == ELFRW_INSN_TRAP)
		return;
	at->part->log.checked[ICF_VC_FALL]++;
	if ((at->u->flags & ICF_V_FOLDED) || (next->flags & ICF_V_FOLDED) ||
	    next->body != at->u->body + (next->old - at->u->old)) {
		icf_vcode_bad(at, ICF_VC_FALL, "falls through", at->size,
			      at->u->body + (next->old - at->u->old), next->body);
		return;
	}
	const uint8_t *p = new_bytes(v, at->u->body, next->old - at->u->old);
	if (!p || memcmp(at->a + at->size, p + at->size, next->old - at->u->end) != 0)
		icf_vcode_bad(at, ICF_VC_FALL, "bytes between it and what it falls into", at->size,
			      0, 1);
}

/* The instruction at INSN reads bytes of its own unit, OFF bytes from the start: these bytes are
 * data, even if they decode. */
static void check_read(struct icf_vcode_at *at, uint64_t insn, uint64_t off)
{
	uint64_t end = at->size - off < 8 ? at->size : off + 8;
	while (off < end && at->a[off] == at->b[off])
		off++;
	if (off < end)
		icf_vcode_bad(at, ICF_VC_CODE, "data that it reads in itself", insn, at->a[off],
			      at->b[off]);
}

/* The instruction at POS loads the literal at VA: as aligned as it was. */
static void check_literal_place(struct icf_vcode_at *at, uint64_t pos, uint64_t va)
{
	unsigned size = icf_vcode_load_size(at, pos);
	uint64_t rest = size ? size - 1 : 0;
	if (!(va & rest) && (at->moved & rest))
		icf_vcode_bad(at, ICF_VC_CODE, "alignment of a literal that it loads", pos, va,
			      va + at->moved);
}

/* Does IN, with the instruction BEFORE it, go to a place that no field of it shows?  Thunks store
 * or push an address and return to it. */
static bool jumps_anywhere(const struct icf_v *v, const struct elfrw_insn *in,
			   const struct elfrw_insn *before, const uint8_t *code)
{
	struct elfrw_judgement j;
	if (in->kind != ELFRW_INSN_RET)
		return in->kind == ELFRW_INSN_JMP_IND && !in->pcrel_size;
	if (before->kind != ELFRW_INSN_OTHER || !v->claim.arch->judge->returns_from_memory)
		return false;
	v->claim.arch->judge->look(before, code, &j);
	return j.kind == ELFRW_JUDGE_PUSH || j.kind == ELFRW_JUDGE_STORE ||
	       (j.kind == ELFRW_JUDGE_WRITE && j.from != ELFRW_REG_NONE);
}

/* Does a field of X hold a number?  Nothing is accessed through it, and REL has no relocation for
 * it.  A no-op that fills a gap has 0 there; a trap's own number has one byte. */
static bool is_number(const struct icf_vcode_insn *x, const struct elfrw_relocs *rel)
{
	const struct elfrw_insn *in = &x->in;
	if (in->kind != ELFRW_INSN_NOP && in->kind != ELFRW_INSN_TRAP)
		return false;
	uint64_t field = x->va + (in->pcrel_size ? in->pcrel_off : in->disp_off);
	if (!in->pcrel_size) {
		if (!in->disp_size || (in->kind == ELFRW_INSN_TRAP && in->disp_size == 1))
			return false;
		if (in->kind == ELFRW_INSN_NOP &&
		    elfrw_get_le(x->code + in->disp_off, in->disp_size) == 0)
			return false;
	}
	size_t r = elfrw_relocs_from(rel, field);
	return r == rel->n || rel->rela[r].r_offset != field;
}

/* A number in the instruction X, POS bytes from the unit's start, must be the same.  false: it
 * leads into the image; then it must lead there as before, too. */
static bool check_number(struct icf_vcode_at *at, const struct icf_vcode_insn *x, uint64_t pos)
{
	const struct elfrw_insn *in = &x->in;
	if (!elfrw_image_section_at(&at->job->v->claim.in, in->target))
		return true;
	uint64_t was = elfrw_get_le(x->code + in->pcrel_off, in->pcrel_size),
		 is = elfrw_get_le(at->b + pos + in->pcrel_off, in->pcrel_size);
	if (was != is)
		icf_vcode_bad(at, ICF_VC_CODE, "number in an operand that nothing accesses", pos,
			      was, is);
	return false;
}

/* The PC-relative field of the instruction X, POS bytes from the unit's start. */
static void check_pcrel(struct icf_vcode_at *at, const struct icf_vcode_insn *x, uint64_t pos)
{
	const struct icf_v *v = at->job->v;
	const struct elfrw_insn *in = &x->in;
	uint64_t off = in->target - at->u->old;
	bool branch = is_branch(in), inside = off < at->size;
	if (v->claim.arch->judge->half && !branch &&
	    elfrw_form_is_high(&v->claim.arch->form[v->claim.arch->pcrel_form(in)]))
		return;
	if (v->claim.arch->judge->half && branch && inside)
		icf_vcode_note_inner(at, off);
	at->own |= inside && (branch ? in->kind == ELFRW_INSN_CALL && off
				     : (in->flags & ELFRW_INSN_LEA) != 0);
	if (branch)
		icf_vcode_note_call(at, in, x->va + in->len);
	else if (in->kind == ELFRW_INSN_CALL_IND || in->kind == ELFRW_INSN_JMP_IND)
		icf_vcode_note_bound_call(at, in->target, x->va + in->len);
	at->loads = !branch && !(in->flags & ELFRW_INSN_LEA);
	if ((!inside || (!branch && !off)) && !icf_vcode_widened(at, x, pos)) {
		struct icf_vref r = { .insn = pos,
				      .off = pos + in->pcrel_off,
				      .form = &v->claim.arch->form[v->claim.arch->pcrel_form(in)],
				      .branch = branch,
				      .target = in->target };
		uint64_t from = x->va + (v->claim.arch->from_end ? in->len : 0);
		r.found = elfrw_form_read(r.form, at->b + r.off, from + at->moved);
		icf_vcode_ref(at, r);
	}
	bool literal = icf_vcode_literals(at, in->target) != 0;
	at->label |= inside && off && !branch && !at->loads && !literal;
	if (inside && at->loads && !v->claim.inferred && !literal)
		check_read(at, pos, off);
	if (literal)
		check_literal_place(at, pos, in->target);
	else if (inside && !branch && !(at->u->flags & ICF_V_FOLDED) &&
		 ((at->moved & 63) ||
		  !icf_v_stays_aligned(&v->claim, in->target, in->target + at->moved)))
		icf_vcode_bad(at, ICF_VC_CODE, "alignment of what it reads in itself", pos,
			      x->va & 63, (x->va + at->moved) & 63);
	at->loads = false;
}

/* If relocation R says that a field holds a part of an address, that place must be where it was. */
static void check_part(struct icf_vcode_at *at, const struct elfrw_relocs *rel, const Elf64_Rela *r)
{
	const struct icf_v *v = at->job->v;
	Elf64_Sym sym;
	if (v->claim.arch->reloc((uint32_t)ELF64_R_TYPE(r->r_info)).kind != ELFRW_RELOC_PART ||
	    !elfrw_reloc_symbol(&v->claim.in, rel->symtab, r, &sym))
		return;
	uint64_t target = sym.st_value + (uint64_t)r->r_addend, to;
	if (!icf_v_in_exec(&v->claim, target))
		return;
	at->part->log.checked[ICF_VC_ADDRESS]++;
	if (!icf_v_pointer(&v->claim, target, &to) || to != target)
		icf_vcode_bad(at, ICF_VC_ADDRESS, "part of an address of code that moved",
			      r->r_offset - at->u->old, target, to);
}

/* The fields of the instruction X that relocations make addresses; *R is the next relocation. */
static void check_addresses(struct icf_vcode_at *at, const struct icf_vcode_insn *x, uint64_t pos,
			    size_t *r)
{
	const struct elfrw_relocs *rel = &at->job->rel[at->u->exec];
	for (; *r < rel->n && rel->rela[*r].r_offset < x->va + x->in.len; ++*r) {
		struct icf_vref f = { .insn = pos, .off = rel->rela[*r].r_offset - at->u->old };
		bool strange;
		check_part(at, rel, &rel->rela[*r]);
		if (!icf_vcode_is_address(at->job->v, rel, &rel->rela[*r], x, &f.form, &strange))
			continue;
		f.target = elfrw_form_read(f.form, at->a + f.off, 0);
		f.found = elfrw_form_read(f.form, at->b + f.off, 0);
		icf_vcode_ref(at, f);
	}
}

/* The instruction X, POS bytes from the start of a unit that moved, begins a sequence that some
 * processors execute wrongly at its new place. */
static void check_hazard(struct icf_vcode_at *at, const struct icf_vcode_insn *x, uint64_t pos)
{
	const struct elfrw_judge *judge = at->job->v->claim.arch->judge;
	if (judge->hazard && at->moved && !(at->u->flags & ICF_V_FOLDED) &&
	    judge->hazard(at->b + pos, at->size - pos, x->va + at->moved))
		icf_vcode_bad(at, ICF_VC_CODE, "sequence that a processor's erratum forbids there",
			      pos, x->va, x->va + at->moved);
}

/* All instructions; false: there are bytes that are none.  *LAST: the kind of the last one that is
 * no padding. */
static bool check_insns(struct icf_vcode_at *at, struct icf_vunit *u, uint8_t *last)
{
	const struct icf_v *v = at->job->v;
	struct icf_vcode_part *part = at->part;
	size_t r = elfrw_relocs_from(&at->job->rel[u->exec], u->old);
	struct icf_vcode_insn x, before = { .in.kind = ELFRW_INSN_NOP, .code = at->a };
	const struct elfrw_insn *in = &x.in;
	uint64_t n = 0;
	*last = ELFRW_INSN_NOP;
	for (uint64_t pos = 0; pos < at->size; pos += in->len, n++) {
		uint64_t literals = icf_vcode_literals(at, u->old + pos);
		if (literals) {
			icf_vcode_check_literals(at, pos, literals, &r);
			pos += literals;
			x.in.len = 0;
			*last = before.in.kind = ELFRW_INSN_TRAP;
			continue;
		}
		if (at->a[pos] == 0)
			pos += icf_v_pad(v, u->old + pos);
		x.va = u->old + pos;
		x.code = at->a + pos;
		if (!v->claim.arch->decode(x.code, at->size - pos, x.va, &x.in) ||
		    (in->flags & ELFRW_INSN_LONG_CALL)) {
			icf_vcode_bad(at, ICF_VC_CODE, "bytes that are no instruction", pos, 0,
				      at->b[pos]);
			return false;
		}
		if (pos == 0 && (in->flags & ELFRW_INSN_ENDBR))
			u->endbr = true;
		if (in->kind == ELFRW_INSN_CALL || in->kind == ELFRW_INSN_CALL_IND) {
			at->called = in->kind == ELFRW_INSN_CALL ? in->target : 0;
			at->by_pointer = in->kind == ELFRW_INSN_CALL_IND && !in->pcrel_size;
		}
		bool number = is_number(&x, &at->job->rel[u->exec]);
		if (in->pcrel_size && !(number && check_number(at, &x, pos)))
			check_pcrel(at, &x, pos);
		if (v->claim.arch->judge->half)
			icf_vcode_half(at, &x, pos);
		check_hazard(at, &x, pos);
		check_addresses(at, &x, pos, &r);
		icf_vcode_added(at, &x, pos);
		if ((in->kind == ELFRW_INSN_CALL || in->kind == ELFRW_INSN_CALL_IND) &&
		    !at->alias &&
		    !icf_vplace_add(&part->site, at->index, pos + in->len - 1, ICF_VP_CALL))
			part->log.nomem = true;
		if (jumps_anywhere(v, in, &before.in, before.code) &&
		    !icf_vcode_goes_to_whole(at, &x, pos))
			u->computes = true;
		before = x;
		/* A number belongs to what follows: its readers count from there. */
		if (number)
			*last = ELFRW_INSN_OTHER;
		else if (in->kind != ELFRW_INSN_NOP)
			*last = in->kind;
	}
	part->log.checked[ICF_VC_CODE] += n;
	return true;
}

/* Are the data of AT, which is U, all literals? */
static void find_literals(struct icf_vcode_at *at, struct icf_vunit *u)
{
	at->literals = icf_vcode_knows_literals(at);
	if (!at->literals || at->alias)
		return;
	u->literals = true;
	u->tail = at->tail;
}

/* Code that the program may change has one place and one meaning, and nobody else's. */
static bool is_shared_writable(const struct icf_vcode_at *at)
{
	const struct icf_vclaim *c = &at->job->v->claim;
	const struct icf_vunit *u = at->u,
			       *k = u->flags & ICF_V_FOLDED ? &c->unit.data[u->kept] : u;
	return (c->exec.data[u->exec].writable || c->exec.data[k->exec].writable) &&
	       (k != u || (u->flags & ICF_V_REMOVED) || at->moved || u->entry != u->old);
}

/* Does the folded unit of AT fit the one that was kept? */
static bool fits_kept(struct icf_vcode_at *at)
{
	const struct icf_vclaim *c = &at->job->v->claim;
	const struct icf_vunit *u = at->u, *k = &c->unit.data[u->kept];
	at->part->log.checked[ICF_VC_FOLD]++;
	if (c->exec.data[u->exec].apart || c->exec.data[k->exec].apart)
		icf_vcode_bad(at, ICF_VC_FOLD, "in a section of its own", 0, u->old, k->old);
	if (k->end - k->old == at->size)
		return true;
	icf_vcode_bad(at, ICF_VC_FOLD, "size", 0, at->size, k->end - k->old);
	return false;
}

/* Compares the instructions of AT, which is U, and what they mean together. */
static void check_code(struct icf_vcode_at *at, struct icf_vunit *u)
{
	const struct icf_v *v = at->job->v;
	struct icf_vcode_part *part = at->part;
	uint8_t last;
	part->named.n_code = part->named.n_data = 0;
	part->named.computes = 0;
	part->inner.len = 0;
	part->whole.len = 0;
	part->unit_span = part->span.len;
	bool good = check_insns(at, u, &last);
	if (v->claim.arch->judge->half)
		icf_vcode_end_halves(at);
	if (!good)
		return;
	icf_vcode_compare_to(at, at->size);
	if (!v->claim.inferred) {
		icf_v_check_sums(v, &part->log, &part->named);
		icf_v_check_based(v, &part->log, &part->named);
	}
	check_fall(at, last);
	/* Whoever gets the address of a place in it may know it by that. */
	if (at->label && !u->computes && !at->alias && (u->flags & ICF_V_FOLDED) &&
	    v->opt->mode == ICF_VERIFY_SAFE)
		icf_vcode_bad(at, ICF_VC_OBSERVED, "place in it, whose address it tells others", 0,
			      u->old, u->body);
}

/* Compares unit I, or an assumed equal: U with another place. */
void icf_vcode_unit(const struct icf_vcode_job *job, struct icf_vcode_part *part, uint32_t i,
		    struct icf_vunit *u)
{
	const struct icf_v *v = job->v;
	const struct icf_vexec *e = &v->claim.exec.data[u->exec];
	struct icf_vcode_at at = { .job = job,
				   .part = part,
				   .u = u,
				   .size = u->end - u->old,
				   .moved = u->body - u->old,
				   .index = i,
				   .alias = u != &v->claim.unit.data[i] };
	if (!at.size)
		return;
	at.a = e->old_data + (u->old - e->old);
	if (!at.alias && is_shared_writable(&at)) {
		icf_vcode_bad(&at, ICF_VC_CODE, "code that the program may write to", 0, u->old,
			      u->body);
		return;
	}
	if (u->flags & ICF_V_REMOVED) {
		icf_vcode_removed(&at);
		return;
	}
	at.b = new_bytes(v, u->body, at.size);
	if (!at.b)
		return; /* was reported with the claim */
	if (u->flags & ICF_V_FOLDED && !fits_kept(&at))
		return;
	if (e->writable) {
		u->opaque = true;
		icf_vcode_opaque(&at);
		return;
	}
	/* Bytes that did not move may be data; then they are equal to the last byte. */
	bool may_be_data =
		!at.moved && !(u->flags & ICF_V_FOLDED) && memcmp(at.a, at.b, at.size) == 0;
	find_literals(&at, u);
	if (!may_be_data && !at.literals && at.why) {
		icf_vcode_bad(&at, ICF_VC_CODE, at.why, at.why_at, 0, 0);
		return;
	}
	if (may_be_data && !at.literals &&
	    (u->mixed || icf_vcode_has_object(job, u) || icf_vcode_is_strange(&at))) {
		u->opaque = true;
		icf_vcode_opaque(&at);
		return;
	}
	check_code(&at, u);
}
