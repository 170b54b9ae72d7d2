/* sum.c: differences of two functions in IN's data, without relocations.
 *
 * A unit may refer to one function and to words that lead to the starts of several other functions
 * when added to the first one's address.  Such a unit computes this sum, so the distances must
 * still be the same in OUT.  Only words in a row from the very place that the unit refers to count,
 * and more of them are required than the fold requires.
 *
 * Words in units of more than a byte prove nothing if small functions stand in a row, so that every
 * multiple is the start of one: with basic block sections, each block is a unit.  Most of the same
 * words then also lead to starts when they are counted from nearby places. */
#include "elfrw/arch/judge.h"
#include "elfrw/base/search.h"
#include "icf/verify/state.h"

#define ROW    64
#define BESIDE 8 /* places before and behind, in the words' units */

static bool covered(const struct icf_v *v, uint64_t va, unsigned size)
{
	size_t i = icf_v_word_from(&v->words, va > 7 ? va - 7 : 0);
	return i < v->words.word.len && v->words.word.data[i].place < va + size &&
	       v->words.word.data[i].place + v->words.word.data[i].size > va;
}

struct row {
	uint64_t at, size; /* where it begins, how many bytes there are */
	const uint8_t *data;
};

/* Where word K of ROW may lead to, counted from FROM; 0: nowhere. */
static uint64_t may_lead_to(const struct icf_v *v, uint64_t from, const struct row *row, unsigned k,
			    unsigned size, unsigned scale)
{
	uint64_t off = (uint64_t)k * size;
	if (off > row->size || row->size - off < size)
		return 0;
	uint64_t w = elfrw_get_le(row->data + off, size);
	if (size < 8 && w >> (8 * size - 1))
		w -= UINT64_C(1) << (8 * size);
	uint64_t to = from + w * scale;
	uint32_t u = icf_v_find(&v->claim, to);
	return u != ICF_V_NONE && v->claim.unit.data[u].old == to ? to : 0;
}

/* The same, unless the word is known to mean something else. */
static uint64_t leads_to(const struct icf_v *v, uint64_t from, const struct row *row, unsigned k,
			 unsigned size, unsigned scale)
{
	uint64_t to = may_lead_to(v, from, row, k, size, scale);
	return to && !covered(v, row->at + (uint64_t)k * size, size) ? to : 0;
}

/* May ROW lead to LEAST different starts?  Nearly none does; to see it, words need not be looked
 * up. */
static bool may_matter(const struct icf_v *v, uint64_t from, const struct row *row, unsigned size,
		       unsigned scale, unsigned least)
{
	uint64_t to;
	unsigned other = 0;
	for (unsigned n = 0; n < ROW && other < least; n++) {
		if ((to = may_lead_to(v, from, row, n, size, scale)) == 0)
			return false;
		other += to != from;
	}
	return other == least;
}

/* Do most of the N words of ROW lead to starts from another place, near FROM, as well? */
static bool leads_anyway(const struct icf_v *v, uint64_t from, const struct row *row, unsigned n,
			 unsigned size, unsigned scale)
{
	for (unsigned d = 1; d <= 2 * BESIDE; d++) {
		uint64_t other =
			from + (d <= BESIDE ? (uint64_t)d : -(uint64_t)(d - BESIDE)) * scale;
		unsigned hits = 0;
		for (unsigned k = 0; k < n; k++)
			hits += leads_to(v, other, row, k, size, scale) != 0;
		if (4 * hits >= 3 * n)
			return true;
	}
	return false;
}

static void check_row(const struct icf_v *v, struct icf_vlog *log, uint64_t from,
		      const struct row *row, unsigned size, unsigned scale)
{
	uint64_t to[ROW], now_from, now;
	unsigned n = 0, different = 0;
	const unsigned least = size == 2 || scale > 1 ? 5 : 3;
	if (!may_matter(v, from, row, size, scale, least))
		return;
	while (n < ROW && (to[n] = leads_to(v, from, row, n, size, scale)) != 0) {
		unsigned k = 0;
		while (k < n && to[k] != to[n])
			k++;
		different += k == n && to[n] != from;
		n++;
	}
	if (different < least || (scale > 1 && leads_anyway(v, from, row, n, size, scale)))
		return;
	icf_v_pointer(&v->claim, from, &now_from);
	log->checked[ICF_VC_WORD] += n;
	for (unsigned k = 0; k < n; k++) {
		char name[200];
		icf_v_pointer(&v->claim, to[k], &now);
		if (now - now_from == to[k] - from)
			continue;
		icf_vlog_bad(
			log, ICF_VC_WORD,
			"difference: 0x%llx (0x%llx): expected %s as far from 0x%llx (-> 0x%llx) as it was, found it at 0x%llx",
			ICF_VX(row->at + (uint64_t)k * size), ICF_VX(to[k]),
			icf_v_where(&v->claim, to[k], name), ICF_VX(from), ICF_VX(now_from),
			ICF_VX(now));
		return;
	}
}

/* Is a function at VA, and no data?  It has a frame description; and where instructions hold halves
 * of addresses, mapping symbols say where data is among the code. */
static bool is_function(const struct icf_v *v, uint64_t va)
{
	uint32_t u = v->claim.arch->judge->half ? icf_v_find(&v->claim, va) : ICF_V_NONE;
	if (u == ICF_V_NONE || v->claim.unit.data[u].old != va ||
	    dwr_cfi_find(&v->claim.cfi_in, va) == ICF_V_NONE)
		return false;
	size_t k = LOWER_BOUND(0, v->run.len, mid, v->run.data[mid].end <= va);
	return k == v->run.len || v->run.data[k].start > va;
}

/* The unit also has NUMBER.  If that is an absolute symbol, and leads from FROM to the start of a
 * function, it must still. */
static void check_number(const struct icf_v *v, struct icf_vlog *log, uint64_t from,
			 uint64_t number)
{
	uint64_t to = from + number, now_from, now;
	uint32_t u = to != from ? icf_v_find(&v->claim, to) : ICF_V_NONE;
	char name[200];
	bool absolute = false;
	for (size_t k = 0; k < v->absolute.v.len; k++)
		absolute |= v->absolute.v.data[k] == number;
	if (u == ICF_V_NONE || v->claim.unit.data[u].old != to || !absolute)
		return;
	icf_v_pointer(&v->claim, from, &now_from);
	icf_v_pointer(&v->claim, to, &now);
	if (now - now_from != number)
		icf_vlog_bad(
			log, ICF_VC_WORD,
			"difference: 0x%llx: expected %s as far from 0x%llx (-> 0x%llx) as it was, found it at 0x%llx",
			ICF_VX(number), icf_v_where(&v->claim, to, name), ICF_VX(from),
			ICF_VX(now_from), ICF_VX(now));
}

void icf_v_check_sums(const struct icf_v *v, struct icf_vlog *log, const struct icf_vnamed *n)
{
	for (unsigned d = 0; d < n->n_data && n->n_code; d++) {
		const struct elfrw_section *s =
			&v->claim.in.section[elfrw_image_section_at(&v->claim.in, n->data[d])];
		for (unsigned c = 0; c < n->n_code && v->absolute.v.len; c++)
			check_number(v, log, n->code[c], n->data[d]);
		if (!s->data || is_function(v, n->data[d]))
			continue;
		uint64_t off = n->data[d] - s->hdr.sh_addr;
		const struct row row = { n->data[d], s->hdr.sh_size - off, s->data + off };
		for (unsigned c = 0; c < n->n_code; c++) {
			if (n->data[d] == n->code[c])
				continue;
			for (unsigned scale = 1; scale <= 16; scale *= 2) {
				check_row(v, log, n->code[c], &row, 4, scale);
				check_row(v, log, n->code[c], &row, 2, scale);
			}
			check_row(v, log, n->code[c], &row, 8, 1);
		}
	}
}
