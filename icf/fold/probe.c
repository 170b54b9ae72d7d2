/* probe.c: static probes (USDT) are part of what a function does, although its bytes do not show
 * them.  A tracer that attaches to a probe counts passes there, reads the arguments that the note
 * describes, and counts itself in a semaphore.
 *
 * Formats: sys/sdt.h of SystemTap, notes of owner "stapsdt" and type 3: PC, address of
 * .stapsdt.base at the link, address of the semaphore, then provider, name and arguments as
 * strings.  Equal probes at equal places of equal functions may become one.  Its note stays once,
 * so that no tracer attaches twice. */
#include "icf/fold/probe.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include <stdlib.h>
#include <string.h>

#define SDT_TYPE  3
#define SDT_WORDS 24 /* PC, base, semaphore */

static int probe_order(const void *a, const void *b)
{
	const struct icf_probe *x = a, *y = b;
	if (x->pc != y->pc)
		return x->pc < y->pc ? -1 : 1;
	return x->text < y->text ? -1 : x->text > y->text;
}

struct elfrw_err *icf_each_note(const struct elfrw_section *s,
				struct elfrw_err *(*fn)(void *arg, const struct elfrw_note *note),
				void *arg)
{
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
	struct elfrw_note note;
	while (elfrw_note_next(&r, 4, &note))
		ELFRW_TRY(fn(arg, &note));
	return r.bad ? elfrw_error_at(s->name, note.at, "note reaches past the end of its section")
		     : NULL;
}

bool icf_is_probe(const struct elfrw_note *n)
{
	return elfrw_note_is(n, "stapsdt", SDT_TYPE) && n->size >= SDT_WORDS;
}

static struct elfrw_err *look(void *arg, const struct elfrw_note *note)
{
	*(bool *)arg |= icf_is_probe(note);
	return NULL;
}

bool icf_has_probes(const struct elfrw_section *s)
{
	bool any = false;
	elfrw_err_free(icf_each_note(s, look, &any));
	return any;
}

struct adding {
	struct icf_program *prog;
	const struct elfrw_section *s;
};

static struct elfrw_err *add(void *arg, const struct elfrw_note *note)
{
	struct adding *a = arg;
	if (!icf_is_probe(note))
		return NULL;
	struct icf_probe *p = VEC_PUSH(&a->prog->probe);
	if (!p)
		return &elfrw_err_nomem;
	const uint8_t *desc = a->s->data + note->desc;
	*p = (struct icf_probe){ elfrw_get64(desc), elfrw_get64(desc + 16), desc + SDT_WORDS,
				 note->size - SDT_WORDS };
	return NULL;
}

struct elfrw_err *icf_find_probes(struct icf_program *prog, const struct icf_options *opt)
{
	prog->probe.len = 0;
	for (uint32_t i = 1; i < prog->img->n_sections; i++) {
		const struct elfrw_section *s = &prog->img->section[i];
		if (s->hdr.sh_type != SHT_NOTE || !s->data || !icf_has_probes(s))
			continue;
		struct adding a = { prog, s };
		ELFRW_TRY(icf_each_note(s, add, &a));
		/* Notes that something counts in cannot be removed. */
		prog->probes_apart |= (s->hdr.sh_flags & SHF_ALLOC) || opt->emit_relocs;
	}
	if (prog->probe.len)
		qsort(prog->probe.data, prog->probe.len, sizeof *prog->probe.data, probe_order);
	return NULL;
}

void icf_put_probes(const struct icf_program *prog, uint32_t unit, struct elfrw_wbuf *w)
{
	const struct icf_unit *u = &prog->unit.data[unit];
	for (size_t i = LOWER_BOUND(0, prog->probe.len, mid, prog->probe.data[mid].pc < u->start);
	     i < prog->probe.len && prog->probe.data[i].pc < u->end; i++) {
		const struct icf_probe *p = &prog->probe.data[i];
		elfrw_wbuf_u64(w, p->pc - u->start);
		elfrw_wbuf_u64(w, p->semaphore);
		elfrw_wbuf_u64(w, p->size);
		elfrw_wbuf_bytes(w, p->text, p->size);
		if (prog->probes_apart)
			elfrw_wbuf_u32(w, unit);
	}
}
