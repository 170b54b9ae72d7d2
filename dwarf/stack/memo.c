/* memo.c: see memo.h.  A hash table, half full at most, which grows up to 1 MB, and 32 bytes for
 * each number.  Levels beyond that are looked up each time. */
#include "dwarf/stack/memo.h"

#define FIRST (1u << 11)
#define MOST  (1u << 18)

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

/* The slot of KEY, or the free one where it belongs. */
static uint32_t *slot_of(const struct dwr_memo *m, const struct dwr_memo_key *key)
{
	const uint32_t mask = m->slots - 1;
	uint32_t i = (uint32_t)hash(key) & mask;
	while (m->slot[i] && !equal(&m->key.data[m->slot[i] - 1], key))
		i = (i + 1) & mask;
	return &m->slot[i];
}

/* Makes room for one more number.  False: there is none. */
static bool grow(struct dwr_memo *m)
{
	if (m->key.len < m->slots / 2)
		return true;
	struct dwr_memo more = *m;
	more.slots = m->slots ? 2 * m->slots : FIRST;
	if (more.slots > MOST || !(more.slot = calloc(more.slots, sizeof *more.slot)))
		return false;
	for (uint32_t k = 0; k < m->key.len; k++)
		*slot_of(&more, &m->key.data[k]) = k + 1;
	free(m->slot);
	*m = more;
	return true;
}

uint32_t dwr_memo_number(struct dwr_memo *m, const struct dwr_memo_key *key, bool *known)
{
	*known = false;
	uint32_t *slot = m->slot ? slot_of(m, key) : NULL;
	if (slot && *slot) {
		*known = true;
		return *slot - 1;
	}
	struct dwr_memo_key *k = grow(m) ? VEC_PUSH(&m->key) : NULL;
	if (!k)
		return DWR_MEMO_NONE;
	*k = *key;
	*slot_of(m, key) = (uint32_t)m->key.len;
	return (uint32_t)m->key.len - 1;
}

void dwr_memo_deinit(struct dwr_memo *m)
{
	free(m->slot);
	VEC_FREE(&m->key);
}
