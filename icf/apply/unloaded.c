/* unloaded.c: records about functions in sections that are not loaded: stack sizes, LLVM's maps of
 * basic blocks, clang's pseudo probes.
 *
 * A record moves with its function.  The record of a folded function is dropped, as with linkers:
 * the record of the kept copy says the same, and each address has one owner. */
#include "elfrw/base/rbuf.h"
#include "elfrw/base/wbuf.h"
#include "icf/apply/apply.h"
#include "icf/fold/pseudo.h"
#include "icf/refs/ref.h"
#include "icf/fold/unloaded.h"

/* Is VALUE the address of a function that is gone? */
static bool is_gone(const struct icf_apply *a, uint64_t value)
{
	uint32_t u = icf_unit_at(a->prog, value);
	return u != ICF_NONE && a->plan->map.unit[u].old == value &&
	       (a->plan->map.unit[u].flags & ELFRW_UNIT_FOLDED);
}

static struct elfrw_err *rewrite_pseudo(struct icf_apply *a, uint32_t shndx)
{
	struct elfrw_wbuf w = { 0 };
	bool ok;
	struct elfrw_err *err = icf_pseudo_rewrite(a->prog, a->plan, shndx, &w, &ok);
	if (err)
		elfrw_wbuf_free(&w);
	else
		elfrw_output_replace(a->out, shndx, w.data, w.len);
	return err;
}

static struct elfrw_err *rewrite(struct icf_apply *a, uint32_t shndx)
{
	const struct elfrw_section *s = &a->prog->img->section[shndx];
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
	struct elfrw_wbuf w = { 0 };
	uint64_t field[ICF_UNLOADED_FIELDS];
	uint32_t n;
	while (elfrw_rbuf_left(&r)) {
		uint64_t at = elfrw_rbuf_off(&r);
		if (!icf_unloaded_record(s, &r, field, &n))
			break; /* impossible: icf_unloaded_kind() has read it */
		if (is_gone(a, elfrw_get64(s->data + field[0])))
			continue;
		size_t to = w.len;
		elfrw_wbuf_bytes(&w, s->data + at, elfrw_rbuf_off(&r) - at);
		for (uint32_t k = 0; k < n && !w.bad; k++) {
			uint64_t old = elfrw_get64(s->data + field[k]);
			if (elfrw_addrmap_covers(&a->plan->map, old))
				elfrw_put64(
					w.data + to + (field[k] - at),
					icf_new_target(a, icf_unit_at(a->prog, old), old, false));
		}
	}
	if (w.bad) {
		elfrw_wbuf_free(&w);
		return &elfrw_err_nomem;
	}
	elfrw_output_replace(a->out, shndx, w.data, w.len);
	return NULL;
}

struct elfrw_err *icf_apply_unloaded(struct icf_apply *a)
{
	for (uint32_t i = 1; i < a->prog->img->n_sections && a->plan->changes; i++) {
		enum icf_unloaded kind = icf_unloaded_kind(a->prog->img, i);
		if ((kind == ICF_UNLOADED_STACKS || kind == ICF_UNLOADED_BLOCKS) &&
		    !a->out->sec[i].drop)
			ELFRW_TRY(rewrite(a, i));
		if (kind == ICF_UNLOADED_PSEUDO && !a->out->sec[i].drop)
			ELFRW_TRY(rewrite_pseudo(a, i));
	}
	return NULL;
}
