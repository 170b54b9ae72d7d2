/* places.c: see places.h. */
#include "icf/verify/calls/places.h"
#include <stdlib.h>
#include <string.h>

/* A counting sort, 16 bits at a time: there are about a million places. */
struct elfrw_err *icf_vplaces_sort(struct icf_vplaces *p)
{
	size_t n = p->v.len, (*count)[1 << 16] = calloc(1, sizeof *count);
	icf_vplace *from = p->v.data, *to = malloc((n + 1) * sizeof *to), all = 0;
	struct elfrw_err *err = count && to ? NULL : &elfrw_err_nomem;
	for (size_t i = 0; i < n; i++)
		all |= from[i];
	for (unsigned shift = 0; shift < 64 && !err; shift += 16) {
		if (!(all >> shift & 0xffff))
			continue;
		memset(count, 0, sizeof *count);
		for (size_t i = 0; i < n; i++)
			(*count)[from[i] >> shift & 0xffff]++;
		for (size_t i = 0, sum = 0; i < 1 << 16; i++) {
			size_t here = (*count)[i];
			(*count)[i] = sum;
			sum += here;
		}
		for (size_t i = 0; i < n; i++)
			to[(*count)[from[i] >> shift & 0xffff]++] = from[i];
		icf_vplace *t = from;
		from = to;
		to = t;
	}
	if (!err && from != p->v.data) {
		p->v.data = from;
		p->v.cap = n + 1;
	}
	free(to);
	free(count);
	return err;
}

struct elfrw_err *icf_vplaces_deal(struct icf_v *v, struct icf_vplaces *part, size_t n, bool calls)
{
	uint8_t *owner = malloc(v->claim.unit.len + 1);
	struct elfrw_err *err = owner ? NULL : &elfrw_err_nomem;
	for (size_t u = 0; !err && u < v->claim.unit.len; u++)
		owner[u] = (uint8_t)(u * n / v->claim.unit.len);
	for (size_t p = n; p-- > 0 && !err;)
		for (size_t i = 0; i < part[p].v.len; i++)
			owner[part[p].v.data[i] >> 32] = (uint8_t)p;
	/* Several tables may describe one unit. */
	for (size_t p = 0; p < n && !err; p++) {
		size_t kept = 0;
		for (size_t i = 0; i < part[p].v.len && !err; i++) {
			icf_vplace x = part[p].v.data[i];
			icf_vplace *slot = owner[x >> 32] == p ? &part[p].v.data[kept++]
							       : VEC_PUSH(&part[owner[x >> 32]].v);
			if (slot)
				*slot = x;
			else
				err = &elfrw_err_nomem;
		}
		part[p].v.len = kept;
	}
	for (uint32_t u = 0; !err && u < v->claim.unit.len; u++)
		if (!icf_vplace_add(&part[owner[u]], u, 0, ICF_VP_START))
			err = &elfrw_err_nomem;
	for (size_t i = 0; !err && calls && i < v->site.v.len; i++) {
		icf_vplace *slot = VEC_PUSH(&part[owner[v->site.v.data[i] >> 32]].v);
		if (slot)
			*slot = v->site.v.data[i];
		else
			err = &elfrw_err_nomem;
	}
	VEC_FREE(&v->site.v);
	free(owner);
	return err;
}
