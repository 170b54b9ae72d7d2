/* memo.c: see memo.h.  A hash table of a fixed size, half full at most: 1 MB, and 32 bytes for each
 * number.  Levels beyond that are looked up each time. */
#include "dwarf/stack/memo.h"

#define SLOTS (1u << 18)

static uint64_t hash(const struct dwr_memo_key *k)
{
	const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
	uint64_t h = k->at * odd;
	h = (h ^ h >> 29 ^ k->site) * odd;
	h = (h ^ h >> 29 ^ k->outer << 1 ^ k->pc) * odd;
	return h ^ h >> 32;
}

static bool equal(const struct dwr_memo_key *a, const struct dwr_memo_key *b)
{
	return a->at == b->at && a->site == b->site && a->outer == b->outer && a->pc == b->pc;
}

uint32_t dwr_memo_number(struct dwr_memo *m, const struct dwr_memo_key *key, bool *known)
{
	*known = false;
	if (!m->slot && !(m->slot = calloc(SLOTS, sizeof *m->slot)))
		return DWR_MEMO_NONE;
	uint32_t i = (uint32_t)hash(key) % SLOTS;
	for (; m->slot[i]; i = (i + 1) % SLOTS)
		if (equal(&m->key.data[m->slot[i] - 1], key)) {
			*known = true;
			return m->slot[i] - 1;
		}
	struct dwr_memo_key *k = m->key.len < SLOTS / 2 ? VEC_PUSH(&m->key) : NULL;
	if (!k)
		return DWR_MEMO_NONE;
	*k = *key;
	m->slot[i] = (uint32_t)m->key.len;
	return m->slot[i] - 1;
}

void dwr_memo_deinit(struct dwr_memo *m)
{
	free(m->slot);
	VEC_FREE(&m->key);
}
