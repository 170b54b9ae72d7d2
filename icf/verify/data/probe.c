/* probe.c: notes with static probes (sys/sdt.h: owner "stapsdt", type 3; PC, base, semaphore,
 * strings).  They must give the present places of code, each place once.  Functions that became one
 * must have had the same probes at the same places. */
#include "elfrw/base/search.h"
#include "elfrw/note.h"
#include "icf/verify/state.h"
#include <stdlib.h>
#include <string.h>

struct note {
	uint64_t at, desc, end; /* offsets */
	uint32_t size;
	bool id, probe;
};

/* The next note of R, with the 4-byte alignment that all of these have;
 * false: there is none. */
static bool next_note(struct elfrw_rbuf *r, struct note *ret)
{
	struct elfrw_note n;
	if (!elfrw_note_next(r, 4, &n))
		return false;
	*ret = (struct note){ n.at,
			      n.desc,
			      n.end,
			      n.size,
			      elfrw_note_is(&n, "GNU", NT_GNU_BUILD_ID),
			      elfrw_note_is(&n, "stapsdt", 3) && n.size >= 24 };
	return true;
}

/* Checks note N of A, which is at offset POS of B.  A build-id may be any other one; a probe's
 * first word is its address. */
static void check_note(struct icf_v *v, const struct elfrw_section *a,
		       const struct elfrw_section *b, const struct note *n, uint64_t pos)
{
	uint64_t size = n->end - n->at, head = n->desc - n->at,
		 rest = head + (n->id      ? n->size
				: n->probe ? 8
					   : 0);
	v->log.checked[ICF_VC_NOTE]++;
	if (pos > b->hdr.sh_size || b->hdr.sh_size - pos < size) {
		icf_vlog_bad(&v->log, ICF_VC_NOTE, "note: %s+0x%llx: expected one, found the end",
			     a->name, ICF_VX(n->at));
		return;
	}
	const uint8_t *x = a->data + n->at, *y = b->data + pos;
	if (memcmp(x, y, head) != 0 || memcmp(x + rest, y + rest, size - rest) != 0)
		icf_vlog_bad(&v->log, ICF_VC_NOTE,
			     "note: %s+0x%llx: expected the same bytes, found others", a->name,
			     ICF_VX(n->at));
	if (!n->probe)
		return;
	uint64_t pc = elfrw_get64(x + head), new = elfrw_get64(y + head), want;
	icf_v_code(&v->claim, pc, &want);
	if (new != want)
		icf_vlog_bad(&v->log, ICF_VC_NOTE,
			     "probe: %s+0x%llx (0x%llx -> 0x%llx): expected 0x%llx, found 0x%llx",
			     a->name, ICF_VX(n->desc), ICF_VX(pc), ICF_VX(want), ICF_VX(want),
			     ICF_VX(new));
}

void icf_v_check_notes(struct icf_v *v, const struct elfrw_section *a,
		       const struct elfrw_section *b)
{
	struct elfrw_rbuf r = elfrw_rbuf(a->data, b->data ? a->hdr.sh_size : 0);
	struct note n;
	uint64_t from = 0, pos = 0;
	while (next_note(&r, &n)) {
		/* A tracer attached to a probe of folded code would be called twice. */
		uint32_t u =
			n.probe ? icf_v_find(&v->claim, elfrw_get64(a->data + n.desc)) : ICF_V_NONE;
		from = n.end;
		if (icf_v_removed(&v->claim, u))
			icf_vlog_bad(
				&v->log, ICF_VC_REMOVED,
				"removed: 0x%llx: expected code that nothing reaches, found a probe",
				ICF_VX(v->claim.unit.data[u].old));
		if (u != ICF_V_NONE && (v->claim.unit.data[u].flags & ICF_V_FOLDED))
			continue;
		check_note(v, a, b, &n, pos);
		pos += n.end - n.at;
	}
	uint64_t tail = a->hdr.sh_size - from;
	if (!b->data || b->hdr.sh_size != pos + tail ||
	    memcmp(a->data + from, b->data + pos, tail) != 0)
		icf_vlog_bad(&v->log, ICF_VC_NOTE,
			     "section: %s: expected %llu bytes, found %llu or others", a->name,
			     ICF_VX(pos + tail), ICF_VX(b->hdr.sh_size));
}

bool icf_v_has_probes(const struct elfrw_section *s)
{
	struct elfrw_rbuf r =
		elfrw_rbuf(s->data, s->hdr.sh_type == SHT_NOTE && s->data ? s->hdr.sh_size : 0);
	struct note n = { 0 };
	while (!n.probe && next_note(&r, &n))
		;
	return n.probe;
}

struct probe {
	uint32_t unit, size;
	uint64_t off;        /* in the unit */
	const uint8_t *data; /* semaphore, strings */
};

struct probes {
	VEC(struct probe) v;
};

static int probe_order(const void *a, const void *b)
{
	const struct probe *x = a, *y = b;
	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	if (x->off != y->off)
		return x->off < y->off ? -1 : 1;
	int c = memcmp(x->data, y->data, x->size < y->size ? x->size : y->size);
	return c ? c : (x->size > y->size) - (x->size < y->size);
}

static struct elfrw_err *collect(const struct icf_v *v, struct probes *p)
{
	for (uint32_t i = 1; i < v->claim.in.n_sections; i++) {
		const struct elfrw_section *s = &v->claim.in.section[i];
		struct elfrw_rbuf r = elfrw_rbuf(
			s->data, s->hdr.sh_type == SHT_NOTE && s->data ? s->hdr.sh_size : 0);
		struct note n;
		while (next_note(&r, &n)) {
			uint64_t pc = n.probe ? elfrw_get64(s->data + n.desc) : 0;
			uint32_t u = n.probe ? icf_v_find(&v->claim, pc) : ICF_V_NONE;
			if (u == ICF_V_NONE)
				continue;
			struct probe *slot = VEC_PUSH(&p->v);
			if (!slot)
				return &elfrw_err_nomem;
			*slot = (struct probe){ u, n.size - 16, pc - v->claim.unit.data[u].old,
						s->data + n.desc + 16 };
		}
	}
	return NULL;
}

/* Are the probes of units I and K the same? */
static bool same_probes(const struct probes *p, uint32_t i, uint32_t k)
{
	size_t n = p->v.len;
	size_t a = LOWER_BOUND(0, n, mid, p->v.data[mid].unit < i),
	       b = LOWER_BOUND(0, n, mid, p->v.data[mid].unit < k);
	for (;; a++, b++) {
		bool mine = a < n && p->v.data[a].unit == i, its = b < n && p->v.data[b].unit == k;
		if (!mine || !its)
			return mine == its;
		struct probe as = p->v.data[a];
		as.unit = k;
		if (probe_order(&as, &p->v.data[b]) != 0)
			return false;
	}
}

static void check_pair(struct icf_v *v, const struct probes *p, const char *what, uint32_t i,
		       uint32_t k)
{
	const struct icf_vunit *u = &v->claim.unit.data[i];
	char name[200], kept[200];
	if (!same_probes(p, i, k))
		icf_vlog_bad(
			&v->log, ICF_VC_FOLD,
			"probes: %s, %s %s (0x%llx -> 0x%llx): expected the same ones, found others",
			icf_v_where(&v->claim, u->old, name), what,
			icf_v_where(&v->claim, v->claim.unit.data[k].old, kept), ICF_VX(u->old),
			ICF_VX(u->body));
}

/* Code that the program itself patches, at places in a list, must stand for one function only. */
static void check_patched(struct icf_v *v)
{
	static const char *const lists[] = { "__patchable_function_entries", "__mcount_loc",
					     "xray_instr_map", "__jump_table",
					     "__static_call_sites" };
	for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
		const struct elfrw_section *s = elfrw_image_section(&v->claim.in, lists[l]);
		uint64_t from = s ? s->hdr.sh_addr : 0,
			 size = s && (s->hdr.sh_flags & SHF_ALLOC) ? s->hdr.sh_size : 0;
		for (size_t i = size ? icf_v_word_from(&v->words, from) : 0;
		     size && i < v->words.word.len && v->words.word.data[i].place - from < size;
		     i++) {
			uint32_t u = icf_v_find(&v->claim, v->words.word.data[i].target);
			char name[200];
			if (u != ICF_V_NONE && ((v->claim.unit.data[u].flags & ICF_V_FOLDED) ||
						v->claim.unit.data[u].shared))
				icf_vlog_bad(
					&v->log, ICF_VC_FOLD,
					"place: %s, which %s+0x%llx (0x%llx) names: expected code of one function, found "
					"shared code",
					icf_v_where(&v->claim, v->words.word.data[i].target, name),
					s->name, ICF_VX(v->words.word.data[i].place - from),
					ICF_VX(v->words.word.data[i].target));
		}
	}
}

struct elfrw_err *icf_v_check_probes(struct icf_v *v)
{
	check_patched(v);
	struct probes p = { 0 };
	struct elfrw_err *err = collect(v, &p);
	if (p.v.len)
		qsort(p.v.data, p.v.len, sizeof *p.v.data, probe_order);
	for (uint32_t i = 0; i < v->claim.unit.len && p.v.len && !err; i++)
		if (v->claim.unit.data[i].flags & ICF_V_FOLDED)
			check_pair(v, &p, "folded into", i, v->claim.unit.data[i].kept);
	for (size_t i = 0; i < v->alias.len && p.v.len && !err; i++)
		check_pair(v, &p, "called as", v->alias.data[i].unit, v->alias.data[i].other);
	VEC_FREE(&p.v);
	return err;
}
