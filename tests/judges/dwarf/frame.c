/* frame.c: .debug_aranges as sets, and every row of the unwind tables of every unit. A folded
 * unit must have had the rules of the code that it uses now. */
#include "tests/judges/dwarf/judge.h"
#include <dwarf.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arange {
	Dwarf_Off cu;
	Dwarf_Addr lo;
	Dwarf_Word len;
};

static int by_cu(const void *a, const void *b)
{
	const struct arange *x = a, *y = b;

	if (x->cu != y->cu)
		return x->cu < y->cu ? -1 : 1;
	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static struct arange *read_aranges(Dwarf *d, size_t *n)
{
	Dwarf_Aranges *set;
	struct arange *v;

	*n = 0;
	if (dwarf_getaranges(d, &set, n) || !set) {
		*n = 0;
		return NULL;
	}
	v = calloc(*n + 1, sizeof(*v));
	if (!v)
		abort();
	for (size_t i = 0; i < *n; i++)
		dwarf_getarangeinfo(dwarf_onearange(set, i), &v[i].lo, &v[i].len, &v[i].cu);
	if (*n)
		qsort(v, *n, sizeof(*v), by_cu);
	return v;
}

void judge_aranges(struct judge *j)
{
	size_t na, nb;
	struct arange *a = read_aranges(j->in, &na), *b = read_aranges(j->out, &nb);
	char buf[512];

	for (size_t i = 0, k = 0; i < na || k < nb;) {
		Dwarf_Off cu = i < na && (k == nb || a[i].cu <= b[k].cu) ? a[i].cu : b[k].cu;
		struct jset want = { 0 }, have = { 0 };
		const char *why;

		for (; i < na && a[i].cu == cu; i++)
			if (a[i].len && jmap_exec_in(&j->map, a[i].lo))
				jset_expect(&want, j, a[i].lo, a[i].lo + a[i].len);
		for (; k < nb && b[k].cu == cu; k++)
			jset_add(&have, j, b[k].lo, b[k].lo + b[k].len);
		why = jset_differ(&want, &have, j, j->policy == J_OVERLAY, buf, sizeof(buf));
		j->n_aranges++;
		if (why)
			judge_wrong(j, J_ARANGE, ".debug_aranges: unit %#" PRIx64 ": %s",
				    (uint64_t)cu, why);
		jset_free(&want);
		jset_free(&have);
	}
	free(a);
	free(b);
}

static bool ops_same(const Dwarf_Op *a, size_t na, const Dwarf_Op *b, size_t nb)
{
	if (na != nb)
		return false;
	for (size_t i = 0; i < na; i++)
		if (a[i].atom != b[i].atom || a[i].number != b[i].number ||
		    a[i].number2 != b[i].number2)
			return false;
	return true;
}

static const char *frame_differ(Dwarf_Frame *a, Dwarf_Frame *b, int regs)
{
	Dwarf_Op *x, *y, mx[3], my[3];
	size_t nx, ny;
	bool sa, sb;

	if (dwarf_frame_info(a, NULL, NULL, &sa) != dwarf_frame_info(b, NULL, NULL, &sb) ||
	    sa != sb)
		return "return register or signal frame";
	if (dwarf_frame_cfa(a, &x, &nx) || dwarf_frame_cfa(b, &y, &ny) || !ops_same(x, nx, y, ny))
		return "canonical frame address";
	for (int r = 0; r < regs; r++) {
		int ra = dwarf_frame_register(a, r, mx, &x, &nx),
		    rb = dwarf_frame_register(b, r, my, &y, &ny);

		if (ra != rb)
			return "register rule";
		/* No operations: x == NULL says "same value", else "undefined". */
		if (!ra && (!ops_same(x, nx, y, ny) || (!nx && !x != !y)))
			return "register rule";
	}
	return NULL;
}

static void frames_of(struct judge *j, Dwarf_CFI *in, Dwarf_CFI *out, const char *section, int regs)
{
	const struct jmap *m = &j->map;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct junit *u = &m->unit[i];

		for (uint64_t off = 0; off < u->size;) {
			Dwarf_Frame *a = NULL, *b = NULL;
			Dwarf_Addr sa, ea, sb, eb;
			int ra = dwarf_cfi_addrframe(in, u->old + off, &a),
			    rb = dwarf_cfi_addrframe(out, u->new + off, &b);

			if (ra || rb) {
				if (ra != rb)
					judge_wrong(j, J_FRAME,
						    "%s: %s + %#" PRIx64 " (%#" PRIx64
						    "): %s in the input, %s in the output",
						    section, u->name, off, u->new + off,
						    ra ? "no rules" : "rules",
						    rb ? "none" : "some");
				/* Look at the last byte too: rules may begin inside. */
				off = off < u->size - 1 ? u->size - 1 : u->size;
			} else {
				const char *why = frame_differ(a, b, regs);

				dwarf_frame_info(a, &sa, &ea, NULL);
				dwarf_frame_info(b, &sb, &eb, NULL);
				if (ea - u->old > u->size)
					ea = u->old + u->size;
				if (eb - u->new > u->size)
					eb = u->new + u->size;
				if (!why && ea - u->old != eb - u->new)
					why = "end of the row";
				j->n_frames++;
				if (why)
					judge_wrong(j, J_FRAME,
						    "%s: %s + %#" PRIx64 " (%#" PRIx64
						    "): other %s",
						    section, u->name, off, u->new + off, why);
				off = ea - u->old > off ? ea - u->old : off + 1;
			}
			free(a);
			free(b);
		}
	}
}

/* Has the output at TO the rules of the input at FROM? */
static bool same_rules(Dwarf_CFI *in, uint64_t from, Dwarf_CFI *out, uint64_t to, int regs)
{
	Dwarf_Frame *a = NULL, *b = NULL;
	int ra = dwarf_cfi_addrframe(in, from, &a), rb = dwarf_cfi_addrframe(out, to, &b);
	bool same = ra == rb && (ra || !frame_differ(a, b, regs));

	free(a);
	free(b);
	return same;
}

/* On entry to a thunk nothing was pushed yet but the return address, unless the thunk is where its
 * function was: that may be a cold part, which begins with its function's rules. */
static void thunk_frames(struct judge *j, Dwarf_CFI *in, Dwarf_CFI *out, int regs)
{
	const struct jmap *m = &j->map;

	for (uint32_t i = 0; i < m->n_thunk; i++) {
		const struct junit *u = &m->unit[m->thunk[i]];
		Dwarf_Frame *f = NULL;
		Dwarf_Op *op;
		size_t n;
		bool ok = false;

		uint64_t last = u->thunk_size - 1;

		/* A thunk in place has its function's rows, which hold where instructions begin:
		 * at the jump, which has five bytes, and at an endbr64 in front of it. */
		if (u->thunk == u->old)
			last = u->thunk_size >= 9 ? 4 : 0;
		for (uint64_t off = 0; off <= last; off += last ? last : 1) {
			ok = !dwarf_cfi_addrframe(out, u->thunk + off, &f) &&
			     !dwarf_frame_cfa(f, &op, &n) && n >= 1 &&
			     ((op->atom == DW_OP_breg7 && op->number == 8 && n == 1) ||
			      (op->atom == DW_OP_bregx && op->number == 7 && op->number2 == 8 &&
			       n == 1) ||
			      (op->atom == DW_OP_breg7 && op->number == 0 && n == 2 &&
			       op[1].number == 8));
			free(f);
			f = NULL;
			if (u->thunk == u->old)
				ok = same_rules(in, u->old + off, out, u->thunk + off, regs);
			if (!ok)
				break;
		}
		j->n_frames++;
		if (!ok)
			judge_wrong(j, J_FRAME,
				    ".eh_frame: the thunk of %s at %#" PRIx64 " has not got %s",
				    u->name, u->thunk,
				    u->thunk == u->old ? "its function's rules" : "CFA = rsp + 8");
	}
}

void judge_frames(struct judge *j)
{
	Dwarf_CFI *a = dwarf_getcfi_elf(j->elf_in), *b = dwarf_getcfi_elf(j->elf_out);
	GElf_Ehdr eh = { 0 };

	gelf_getehdr(j->elf_in, &eh);
	int regs = eh.e_machine == EM_X86_64 ? 17 : 97;

	if (a && !b && j->map.n_new)
		judge_wrong(j, J_FRAME, ".eh_frame: unreadable in the output: %s",
			    dwarf_errmsg(-1));
	if (a && b) {
		frames_of(j, a, b, ".eh_frame", regs);
		if (eh.e_machine == EM_X86_64)
			thunk_frames(j, a, b, regs);
	}
	if (a)
		dwarf_cfi_end(a);
	if (b)
		dwarf_cfi_end(b);
	/* These two belong to the Dwarf handles. */
	a = j->in ? dwarf_getcfi(j->in) : NULL;
	b = j->out ? dwarf_getcfi(j->out) : NULL;
	if (a && b)
		frames_of(j, a, b, ".debug_frame", regs);
	else if (a)
		judge_wrong(j, J_FRAME, ".debug_frame: not in the output");
}
